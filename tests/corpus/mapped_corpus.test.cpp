// SPDX-License-Identifier: Apache-2.0
#include "reprise_corpus/mapped_corpus.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "reprise/history/snapshot_file.hpp"
#include "reprise_corpus/verify_corpus.hpp"
#include "support/corpora.hpp"
#include "support/folder_test.hpp"

namespace reprise::mapped_corpus_test {
namespace {

namespace fs = std::filesystem;
using testing::corpus_of;
using testing::CorpusBytes;
using Tokens = std::vector<Token>;

class MappedCorpusTest : public testing::FolderTest {};

TEST_F(MappedCorpusTest, ReadsASavedCorpus) {
  const CorpusBytes bytes = corpus_of({{1, 2, 3}}, 10, 5);
  ASSERT_TRUE(save_file(folder_ / "a.corpus", bytes));
  auto corpus = MappedCorpus::open(folder_ / "a.corpus", {5, 10});
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), corpus->bytes().begin(), corpus->bytes().end()));
  EXPECT_TRUE(verify_corpus(corpus->bytes()));
  MappedCorpus moved = *std::move(corpus);
  std::array<StoreMatch, 2> out;
  ASSERT_EQ(moved.store().find(Tokens{1, 2}, out), 1U);
  EXPECT_EQ(out[0], (StoreMatch{2, 3}));
  MappedCorpus other;
  EXPECT_EQ(other.store().find(Tokens{1, 2}, out), 0U);
  other = std::move(moved);
  EXPECT_EQ(other.store().find(Tokens{1, 2}, out), 1U);
}

TEST_F(MappedCorpusTest, KeepsTheOldFileWhenItIsReplaced) {
  ASSERT_TRUE(save_file(folder_ / "a.corpus", corpus_of({{1, 2}}, 10)));
  const auto before = MappedCorpus::open(folder_ / "a.corpus");
  [[maybe_unused]] const auto replaced = save_file(folder_ / "a.corpus", corpus_of({{3, 4, 5}}, 10));
#if !defined(_WIN32)  // Windows cannot replace a file that is mapped
  ASSERT_TRUE(replaced);
  EXPECT_EQ(MappedCorpus::open(folder_ / "a.corpus")->store().tokens(), 3U);
#endif
  EXPECT_EQ(before->store().tokens(), 2U);
  EXPECT_EQ(before->store().count(Tokens{1, 2}), 1U);
}

TEST_F(MappedCorpusTest, RefusesOtherFiles) {
  const auto code = [&](const fs::path& path) { return MappedCorpus::open(path).error().code; };
  EXPECT_EQ(code(""), ErrorCode::bad_file_name);
  EXPECT_EQ(code(folder_ / "none"), ErrorCode::no_such_file);
  EXPECT_EQ(code(folder_), ErrorCode::not_a_regular_file);
  std::ofstream(folder_ / "empty").flush();
  EXPECT_EQ(code(folder_ / "empty"), ErrorCode::corpus_truncated);
  std::ofstream(folder_ / "text") << std::string(1000, 'x');
  EXPECT_EQ(code(folder_ / "text"), ErrorCode::not_a_corpus);
  EXPECT_EQ(code(folder_ / "text" / "file"), ErrorCode::file_failed);
  EXPECT_EQ(code(folder_ / std::string(300, 'x')), ErrorCode::file_failed);
  ASSERT_TRUE(save_file(folder_ / "a.corpus", corpus_of({{1, 2}}, 10, 5)));
  EXPECT_EQ(MappedCorpus::open(folder_ / "a.corpus", {5, 11}).error().code, ErrorCode::other_vocabulary);
  EXPECT_EQ(MappedCorpus::open(folder_ / "a.corpus", {6, 10}).error().code, ErrorCode::other_tokenizer);
}

/// Calls of which one fails.
struct FailingCalls {
  static inline int open_error = 0;
  static inline int measure_error = 0;
  static inline int map_error = 0;
  static inline int open_files = 0;
  static bool interrupted(int) noexcept { return false; }
  static int open(const detail::PathChar*, int& file) noexcept {
    if (open_error != 0) return open_error;
    ++open_files;
    file = 1;
    return 0;
  }
  static int measure(int, detail::FileKind& kind, std::uint64_t& bytes) noexcept {
    kind = detail::FileKind::regular;
    bytes = 100;
    return measure_error;
  }
  static int map(int, std::size_t, const std::byte*&) noexcept { return map_error; }
  static void unmap(const std::byte*, std::size_t) noexcept {}
  static int close(int) noexcept {
    --open_files;
    return 0;
  }
};

TEST(MappedCorpus, ReportsErrorsOfTheSystem) {
  const auto failed = [] {
    const auto mapping = detail::Mapping<FailingCalls>::of("name");
    EXPECT_EQ(FailingCalls::open_files, 0);
    return mapping ? Error{} : mapping.error();
  };
  for (int* const error : {&FailingCalls::open_error, &FailingCalls::measure_error, &FailingCalls::map_error})
    for (const int number : {EACCES, EMFILE, EIO, ENOMEM}) {
      *error = number;
      EXPECT_EQ(failed().code, ErrorCode::file_failed);
      EXPECT_EQ(failed().value, static_cast<std::uint64_t>(number));
      EXPECT_FALSE(failed().message.empty());
      *error = 0;
    }
}

}  // namespace
}  // namespace reprise::mapped_corpus_test
