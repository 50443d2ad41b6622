// SPDX-License-Identifier: Apache-2.0
#include "reprise/index/detail/token_hash.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <span>
#include <vector>

#include "support/streams.hpp"

namespace token_hash_test {
namespace {

using reprise::Token;
using reprise::detail::CyclicHash;
using reprise::detail::token_hash;
using reprise::testing::make_stream;
using reprise::testing::Stream;

constexpr std::uint64_t key = 7;

/// Returns the hash of these tokens alone, by its definition.
std::uint64_t hash_of(std::span<const Token> ngram) {
  CyclicHash hash;
  for (const Token token : ngram) hash.advance(token_hash(key, token));
  return hash.value();
}

TEST(CyclicHash, RollingGivesTheHashOfTheLastTokensAlone) {
  const std::vector<Token> tokens = make_stream(Stream::trace_like, 200, 1);
  for (std::uint32_t n = 1; n <= 32; ++n) {
    CyclicHash hash;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i < n) {
        hash.advance(token_hash(key, tokens[i]));
      } else {
        hash.advance(token_hash(key, tokens[i]), token_hash(key, tokens[i - n]), n);
      }
      if (i + 1 < n) continue;
      ASSERT_EQ(hash.value(), hash_of(std::span(tokens).subspan(i + 1 - n, n)));
    }
  }
}

TEST(CyclicHash, RetreatUndoesAdvance) {
  CyclicHash hash;
  hash.advance(11);
  const std::uint64_t before = hash.value();
  hash.advance(12, 13, 5);
  EXPECT_NE(hash.value(), before);
  hash.retreat(12, 13, 5);
  EXPECT_EQ(hash.value(), before);
  hash.retreat(11);
  EXPECT_EQ(hash.value(), CyclicHash().value());
}

TEST(CyclicHash, TellsTheBlocksOfStructuredWordsApart) {
  for (const Stream kind : {Stream::thue_morse, Stream::fibonacci, Stream::de_bruijn, Stream::period_3}) {
    const std::vector<Token> tokens = make_stream(kind, 4096, 1);
    for (const std::size_t n : {std::size_t{1}, std::size_t{8}, std::size_t{16}, std::size_t{32}}) {
      std::set<std::vector<Token>> blocks;
      std::set<std::uint64_t> hashes;
      for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
        const auto block = std::span(tokens).subspan(i, n);
        blocks.emplace(block.begin(), block.end());
        hashes.insert(hash_of(block));
      }
      EXPECT_EQ(hashes.size(), blocks.size()) << name(kind) << " n " << n;
    }
  }
}

TEST(TokenHash, DependsOnTheKeyAndTakesNegativeTokens) {
  EXPECT_NE(token_hash(1, 5), token_hash(2, 5));
  EXPECT_NE(token_hash(1, -1), token_hash(1, 1));
  EXPECT_NE(token_hash(1, 0), token_hash(1, std::numeric_limits<Token>::min()));
}

}  // namespace
}  // namespace token_hash_test
