// SPDX-License-Identifier: Apache-2.0
/// \file The speculation type of llama-server, and its files: its own code, with stand-ins for the types of llama.cpp.
#include <gtest/gtest.h>

#if !defined(_WIN32)  // the tests cause faults with POSIX calls

#include <reprise_c/reprise.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "private_files.h"
#include "siphash.h"
#include "support/file_size_limit.hpp"
#include "support/folder_test.hpp"

namespace reprise::server_files_test {
namespace {

namespace fs = std::filesystem;

std::string warnings;

// What reprise_speculative.h uses of common/speculative.cpp and llama.h. NOLINTBEGIN: the names are llama.cpp's.
#define SPC_WRN(...)                                      \
  do {                                                    \
    std::vector<char> line(4096);                         \
    std::snprintf(line.data(), line.size(), __VA_ARGS__); \
    warnings += line.data();                              \
  } while (false)
using llama_token = int32_t;
using llama_seq_id = int32_t;
using llama_tokens = std::vector<llama_token>;
struct llama_vocab {};
struct llama_context {};
struct llama_model {};
enum { COMMON_SPECULATIVE_TYPE_REPRISE };
const llama_model* llama_get_model(const llama_context*) { return nullptr; }
const llama_vocab* llama_model_get_vocab(const llama_model*) { return nullptr; }
uint32_t llama_n_batch(const llama_context*) { return 512; }
int32_t llama_vocab_n_tokens(const llama_vocab*) { return 1000; }
llama_token end_of_generation = -1;
bool llama_vocab_is_eog(const llama_vocab*, llama_token id) { return id == end_of_generation; }
const char* llama_vocab_get_text(const llama_vocab*, llama_token) { return "token"; }
void llama_model_desc(const llama_model*, char* text, size_t room) { std::snprintf(text, room, "a model"); }
struct common_params_speculative {
  struct {
    llama_context* ctx_tgt = nullptr;
  } draft;
  std::string reprise_memory;
};
struct common_batch {
  llama_tokens tokens;
};
struct common_speculative_draft_params {
  bool drafting = false;
  const llama_tokens* prompt = nullptr;
  llama_token id_last = 0;
  int32_t n_max = -1;
  llama_tokens* result = nullptr;
  std::string cache_salt = {};
};
using common_speculative_draft_params_vec = std::vector<common_speculative_draft_params>;
struct common_speculative_impl {
  common_speculative_impl(int, uint32_t sequences, int32_t) : n_seq(sequences) {}
  virtual ~common_speculative_impl() = default;
  virtual void begin(llama_seq_id, const llama_tokens&) = 0;
  virtual void draft(common_speculative_draft_params_vec&) = 0;
  virtual bool process(const common_batch&) = 0;
  virtual void accept(llama_seq_id, uint16_t, bool) = 0;
  uint32_t n_seq;
};
#include "reprise_speculative.h"
// NOLINTEND
#undef SPC_WRN

class ServerFiles : public testing::FolderTest {
 protected:
  /// Runs a server with one slot that answers one request. Returns true if it drafts from the text of an earlier one.
  bool run() {
    warnings.clear();
    common_params_speculative params;
    params.reprise_memory = path("history");
    common_speculative_impl_reprise server(params, 1);
    const llama_tokens prompt(text_.begin(), text_.begin() + 20);
    server.begin(0, prompt);
    llama_tokens draft;
    common_speculative_draft_params_vec passes = {{true, &prompt, text_[20], -1, &draft}};
    server.draft(passes);
    const bool known = !draft.empty() && draft[0] == text_[21];
    passes = {{true, &text_, 7, -1, &draft}};
    server.draft(passes);
    return known;
  }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename().string());
    return names;
  }
  [[nodiscard]] unsigned mode(const std::string& name) const {
    struct stat status = {};
    return ::stat(path(name).c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }
  static bool warned(std::string_view words) { return warnings.find(words) != std::string::npos; }

  const std::set<std::string> all_ = {"history", "history.1", "history.key"};
  const llama_tokens text_ = [] {
    llama_tokens text;
    for (llama_token token = 100; token < 400; ++token) text.push_back(token);
    return text;
  }();
};

TEST_F(ServerFiles, AreForTheirOwnerAloneAndServeTheNextServer) {
  const auto before = ::umask(0);
  EXPECT_FALSE(run());
  ::chmod(path("history").c_str(), 0666);
  EXPECT_TRUE(run());
  ::umask(before);
  EXPECT_EQ(files(), all_);
  for (const std::string& name : all_) EXPECT_EQ(mode(name), 0600U) << name << ": not the mode of the old file";
  EXPECT_EQ(warnings, "");
}

TEST_F(ServerFiles, AreNotWrittenThroughPlantedLinks) {
  write("victim", "precious");
  std::set<std::string> expected = all_;
  for (const std::string& planted : {std::string("history.new"), "history." + std::to_string(::getpid()) + "-0.tmp"}) {
    fs::create_symlink(path("victim"), path(planted));
    expected.insert(planted);
  }
  run();
  EXPECT_TRUE(run());
  EXPECT_EQ(read(path("victim")), "precious");
  expected.insert("victim");
  EXPECT_EQ(files(), expected);
}

TEST_F(ServerFiles, OfADiskThatIsFullAreTheOldOnes) {
  run();
  const std::string old = read(path("history"));
  {
    const testing::FileSizeLimit full(old.size() / 2);
    run();
  }
  EXPECT_TRUE(warned("history cannot be written: ")) << warnings;
  EXPECT_EQ(read(path("history")), old);
  EXPECT_EQ(files(), all_);
}

TEST_F(ServerFiles, ThatCannotBeReplacedAreLeftAsTheyAre) {
  write("others", "text of somebody else");
  fs::create_symlink(path("others"), path("history"));
  run();
  EXPECT_TRUE(warned("history is a link: give the path of the file itself")) << warnings;
  EXPECT_TRUE(warned("nothing is kept in ")) << warnings;
  EXPECT_EQ(files(), (std::set<std::string>{"history", "others"}));
  EXPECT_EQ(read(path("others")), "text of somebody else");

  fs::remove(path("history"));
  ASSERT_EQ(::mkfifo(path("history").c_str(), 0600), 0);
  run();  // and does not wait for a writer of the pipe
  EXPECT_TRUE(warned("give the path of a regular file")) << warnings;
  EXPECT_FALSE(fs::is_regular_file(path("history")));

  fs::remove(path("history"));
  write("history", "no snapshot");
  run();
  EXPECT_TRUE(warned("nothing is kept in ")) << warnings;
  EXPECT_EQ(read(path("history")), "no snapshot");

  fs::remove(path("history.key"));
  fs::create_directory(path("history.key"));
  run();
  EXPECT_TRUE(warned("history.key: the path is a folder")) << warnings;
  EXPECT_EQ(read(path("history")), "no snapshot");
}

/// Returns the longest run of drafted tokens after `end`, in the second slot, which answers two requests. Each pass
/// also holds a prompt of another slot, so that no time is learned.
std::size_t drafted_after(llama_token end, const std::string& salt) {
  common_speculative_impl_reprise server({}, 2);
  std::size_t longest = 0;
  for (const llama_token first : {500, 600}) {
    llama_tokens text;
    const auto next = [&] { return first + static_cast<llama_token>(text.size() % 40); };
    while (text.size() < 200) text.push_back(next());
    server.begin(1, text);
    while (text.size() < 240) {
      llama_tokens draft;
      common_speculative_draft_params_vec passes(2);
      passes[1] = {true, &text, next(), -1, &draft, salt};
      server.draft(passes);
      const auto at = std::find(draft.begin(), draft.end(), end);
      if (at != draft.end()) longest = std::max(longest, static_cast<std::size_t>(draft.end() - at) - 1);
      server.process({llama_tokens(1 + draft.size() + 100)});
      text.push_back(next());
      for (const llama_token drafted : draft) {
        EXPECT_EQ(drafted, next()) << "the text repeats";
        text.push_back(drafted);
      }
      server.accept(1, static_cast<uint16_t>(draft.size()), false);
    }
  }
  return longest;
}

TEST(ServerDrafts, EndWhereTheServerEndsARequest) {
  for (const char* salt : {"", "a"}) {
    for (const llama_token end : {501, 620}) {
      EXPECT_GT(drafted_after(end, salt), 0U);
      end_of_generation = end;
      EXPECT_EQ(drafted_after(end, salt), 0U);
      end_of_generation = -1;
    }
  }
}

/// Answers a request with one text, whose tokens all differ. Returns the number of tokens that an earlier request with
/// that text lets it draft.
std::size_t drafted_again(common_speculative_impl_reprise& server, const std::string& salt, llama_seq_id slot = 0,
                          int32_t n_max = -1) {
  llama_tokens text;
  for (llama_token token = 100; token < 400; ++token) text.push_back(token);
  const llama_tokens prompt(text.begin(), text.begin() + 20);
  server.begin(slot, prompt);
  llama_tokens draft;
  common_speculative_draft_params_vec passes(server.n_seq);
  auto& pass = passes[static_cast<std::size_t>(slot)];
  pass = {true, &prompt, text[20], n_max, &draft, salt};
  server.draft(passes);
  const std::size_t drafted = draft.size();
  EXPECT_TRUE(std::equal(draft.begin(), draft.end(), text.begin() + 21));
  pass = {true, &text, 7, n_max, &draft, salt};
  server.draft(passes);
  return drafted;
}

TEST(ServerSalts, SeeTheirOwnTextOnly) {
  common_speculative_impl_reprise server({}, 1);
  for (const char* salt : {"a", "b", ""}) EXPECT_EQ(drafted_again(server, salt), 0U) << salt;
  for (const char* salt : {"a", "b", ""}) EXPECT_GT(drafted_again(server, salt), 0U) << salt;
  common_speculative_impl_reprise another({}, 1);
  EXPECT_NE(server.salt_number("a"), another.salt_number("a")) << "nobody can name the salt of another client";
  EXPECT_EQ(server.salt_number(""), 0U);
}

TEST(ServerSalts, AreKeptForEachSlot) {
  common_speculative_impl_reprise server({}, 6);
  const auto drafted = [&](llama_seq_id slot) { return drafted_again(server, "salt " + std::to_string(slot), slot); };
  for (llama_seq_id slot = 0; slot < 6; ++slot) EXPECT_EQ(drafted(slot), 0U) << slot;
  for (llama_seq_id slot = 0; slot < 6; ++slot) EXPECT_GT(drafted(slot), 0U) << slot;
}

TEST(ServerSalts, DoNotReplaceTextWithoutASalt) {
  common_speculative_impl_reprise server({}, 1);
  EXPECT_EQ(drafted_again(server, ""), 0U);
  for (int salt = 0; salt < 10; ++salt) EXPECT_EQ(drafted_again(server, std::to_string(salt)), 0U);
  EXPECT_EQ(drafted_again(server, "0"), 0U) << "the oldest salts are forgotten";
  EXPECT_GT(drafted_again(server, ""), 0U) << "the history is written from it";
}

TEST(ServerSalts, HaveNumbersBySipHash) {
  const std::array<uint64_t, 2> key = {0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
  std::string text;
  const auto hash_of = [&](std::size_t size) {
    while (text.size() < size) text.push_back(static_cast<char>(text.size()));
    return reprise_server::siphash(key, text);
  };
  EXPECT_EQ(hash_of(0), 0x726fdb47dd0e0e31U) << "the vectors of its authors";
  EXPECT_EQ(hash_of(8), 0x93f5f5799a932462U);
  EXPECT_EQ(hash_of(15), 0xa129ca6149be45e5U);
}

TEST(ServerDrafts, AreBoundedByTheRequest) {
  common_speculative_impl_reprise server({}, 1);
  EXPECT_EQ(drafted_again(server, "", 0, 0), 0U);
  EXPECT_EQ(drafted_again(server, "", 0, 1), 1U) << "the text of a request that drafts nothing is kept";
  EXPECT_EQ(drafted_again(server, "", 0, 0), 0U);
  EXPECT_GT(drafted_again(server, ""), 1U);
}

TEST_F(ServerFiles, AreAtMost256MiB) {
  fs::resize_file(write("history", ""), (std::uintmax_t{256} << 20) + 1);
  run();
  EXPECT_TRUE(warned("the file is larger than allowed")) << warnings;
  EXPECT_EQ(fs::file_size(path("history")), (std::uintmax_t{256} << 20) + 1);
}

}  // namespace
}  // namespace reprise::server_files_test

#endif
