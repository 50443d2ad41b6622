// SPDX-License-Identifier: Apache-2.0
#include "reprise_corpus/corpus_writer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/detail/xxh64.hpp"
#include "reprise_testing/random.hpp"
#include "support/corpora.hpp"

namespace reprise::corpus_writer_test {
namespace {

using Tokens = std::vector<Token>;
using testing::corpus_of;
using testing::CorpusBytes;

std::uint64_t checksum_of(std::string_view text) { return detail::Xxh64::of(std::as_bytes(std::span(text))); }

TEST(Xxh64, HasTheValuesOfItsSpecification) {
  EXPECT_EQ(checksum_of(""), 0xef46db3751d8e999U);
  EXPECT_EQ(checksum_of("a"), 0xd24ec4f1a98c6e5bU);
  EXPECT_EQ(checksum_of("abc"), 0x44bc2cf5ad770999U);
  EXPECT_EQ(checksum_of("Call me Ishmael. Some years ago--never mind how long precisely-"), 0x02a2e85470d6fd96U);
}

TEST(Xxh64, IsTheSameInParts) {
  testing::Random random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::byte> bytes(random.below(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() & 255);
    detail::Xxh64 parts;
    for (std::span<const std::byte> rest(bytes); !rest.empty();) {
      const std::size_t size = 1 + random.below(rest.size());
      parts.update(rest.first(size));
      rest = rest.subspan(size);
    }
    EXPECT_EQ(parts.value(), detail::Xxh64::of(bytes));
  }
}

/// Returns bytes as numbers, for messages.
std::vector<int> numbers(std::span<const std::byte> bytes) {
  std::vector<int> found;
  for (const std::byte byte : bytes) found.push_back(std::to_integer<int>(byte));
  return found;
}

TEST(CorpusWriter, WritesTheBytesOfTheFormat) {
  const CorpusBytes bytes = corpus_of({{1, 2, 1}, {1, 2}}, 3, 0x1122334455667788);
  ASSERT_EQ(bytes.size(), 584U);
  const auto part = [&](std::size_t begin, std::size_t size) {
    return numbers(std::span<const std::byte>(bytes).subspan(begin, size));
  };
  EXPECT_EQ(part(0, 16), (std::vector<int>{0x93, 'R', 'P', 'C', '\r', '\n', 0x1a, '\n', 1, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(part(16, 8), (std::vector<int>{0x48, 2, 0, 0, 0, 0, 0, 0}));  // 584 bytes
  EXPECT_EQ(part(24, 16), (std::vector<int>{2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 64, 0, 0, 0}));
  EXPECT_EQ(part(40, 8), (std::vector<int>{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}));
  EXPECT_EQ(part(48, 24), (std::vector<int>{7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(part(256, 16), (std::vector<int>{1, 0, 2, 0, 1, 0, 255, 255, 1, 0, 2, 0, 255, 255, 0, 0}));
  EXPECT_EQ(part(320, 24), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(part(384, 28), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0,   0,   0,   0,
                                             0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 'd', '0', 'd', '1'}));
  // In order: "1" at 2, "1 2" at 4, "1 2 1" at 0, "2" at 5, "2 1" at 1.
  EXPECT_EQ(part(448, 20), (std::vector<int>{2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(part(512, 32), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                             3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(CorpusWriter, LeavesOutDocumentsWithoutTokens) {
  EXPECT_EQ(corpus_of({{1, 2}, {3}}, 10).size(), corpus_of({{1, 2}, {3}}, 10).size());
  const Tokens one = {1, 2};
  const std::vector<CorpusDocument> documents = {{{}, "none"}, {one, "one"}, {{}, ""}};
  const auto made = make_corpus(documents, {.vocabulary = 10});
  ASSERT_TRUE(made);
  const auto expected = make_corpus(std::span(documents).subspan(1, 1), {.vocabulary = 10});
  EXPECT_TRUE(std::equal(made->begin(), made->end(), expected->begin(), expected->end()));
}

TEST(CorpusWriter, RefusesTokensOutsideOfTheVocabulary) {
  for (const Token token : {-1, 10, 0x7fffffff}) {
    const Tokens tokens = {1, token};
    const auto made = make_corpus({{{tokens, ""}}}, {.vocabulary = 10});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::token_out_of_range);
    EXPECT_EQ(made.error().value, static_cast<std::uint32_t>(token));
    EXPECT_EQ(made.error().limit, 10U);
  }
}

TEST(CorpusWriter, RefusesAnImpossibleVocabulary) {
  for (const std::uint32_t vocabulary : {0U, 0x80000000U, 0xffffffffU}) {
    const auto made = make_corpus({}, {.vocabulary = vocabulary});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
  }
}

TEST(CorpusWriter, HoldsTheLargestIdOfEachWidth) {
  for (const std::uint32_t vocabulary : {1U, 65'535U, 65'536U, 200'000U}) {
    const CorpusBytes bytes = corpus_of({{static_cast<Token>(vocabulary - 1), 0}}, vocabulary);
    EXPECT_TRUE(verify_corpus(bytes)) << vocabulary;
    EXPECT_EQ(CorpusStore::open(bytes)->count(Tokens{static_cast<Token>(vocabulary - 1)}), vocabulary == 1 ? 2U : 1U);
    EXPECT_EQ(detail::decode(bytes)->token_bytes, vocabulary <= 65'535 ? 2U : 4U);
  }
}

}  // namespace
}  // namespace reprise::corpus_writer_test
