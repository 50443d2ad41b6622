// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/lookahead_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::ngram_pool_test {
namespace {

using detail::NgramPool;
using ::testing::ElementsAre;
using Tokens = std::vector<Token>;

NgramPool pool_of(std::size_t following, std::size_t ways, std::size_t ngrams) {
  NgramPool pool(following, ways, ngrams, 7);
  pool.prepare();
  return pool;
}
std::vector<Tokens> found(NgramPool& pool, Token first, std::size_t following, std::size_t most = 16) {
  std::array<const NgramPool::Ngram*, 16> ngrams{};
  std::vector<Tokens> tokens;
  const std::size_t count = pool.find(first, std::span(ngrams).first(most));
  for (std::size_t i = 0; i < count; ++i)
    tokens.emplace_back(ngrams[i]->following.begin(),
                        ngrams[i]->following.begin() + static_cast<std::ptrdiff_t>(following));
  return tokens;
}

TEST(NgramPool, FindsWhatFollowedATokenTheLastOneFirst) {
  NgramPool pool = pool_of(2, 4, 64);
  pool.add(1, Tokens{2, 3});
  pool.add(1, Tokens{4, 5});
  pool.add(9, Tokens{6, 7});
  EXPECT_THAT(found(pool, 1, 2), ElementsAre(Tokens{4, 5}, Tokens{2, 3}));
  EXPECT_THAT(found(pool, 1, 2, 1), ElementsAre(Tokens{4, 5}));
  EXPECT_THAT(found(pool, 8, 2), ElementsAre());
}

TEST(NgramPool, CountsAnNgramThatComesAgainAndMovesItUp) {
  NgramPool pool = pool_of(1, 4, 64);
  for (const Token token : {2, 3, 2}) pool.add(1, Tokens{token});
  EXPECT_THAT(found(pool, 1, 1), ElementsAre(Tokens{2}, Tokens{3}));
  std::array<const NgramPool::Ngram*, 2> ngrams{};
  ASSERT_EQ(pool.find(1, ngrams), 2U);
  EXPECT_EQ(ngrams[0]->times, 2U);
  EXPECT_EQ(ngrams[1]->times, 1U);
}

TEST(NgramPool, ReplacesTheOneThatWasNotAddedForLongest) {
  NgramPool pool = pool_of(1, 2, 64);
  for (const Token token : {2, 3, 2, 4}) pool.add(1, Tokens{token});
  EXPECT_THAT(found(pool, 1, 1), ElementsAre(Tokens{4}, Tokens{2}));
}

TEST(NgramPool, NeverAnswersForAnotherToken) {
  NgramPool pool = pool_of(1, 2, 2);  // a pool with room for one first token
  pool.add(1, Tokens{2});
  EXPECT_THAT(found(pool, 5, 1), ElementsAre());
  pool.add(5, Tokens{6});
  pool.add(5, Tokens{7});
  EXPECT_THAT(found(pool, 1, 1), ElementsAre());
}

TEST(NgramPool, KeepsToItsSizeWhateverIsAdded) {
  NgramPool pool = pool_of(3, 4, 100);
  EXPECT_LE(pool.capacity(), 100U);
  const std::size_t bytes = pool.memory_bytes();
  testing::Random random(3);
  for (int i = 0; i < 5000; ++i) {
    const auto token = [&] { return static_cast<Token>(static_cast<std::uint32_t>(random.next())); };
    const Token first = token();
    const Tokens following = {token(), std::numeric_limits<Token>::min(), -1};
    pool.add(first, following);
    ASSERT_THAT(found(pool, first, 3, 1), ElementsAre(following));
  }
  EXPECT_EQ(pool.memory_bytes(), bytes);
}

TEST(NgramPool, IsEmptyBeforeAndAfterItIsPrepared) {
  NgramPool pool(1, 4, 64, 7);
  pool.add(1, Tokens{2});
  EXPECT_THAT(found(pool, 1, 1), ElementsAre());
  pool.prepare();
  pool.add(1, Tokens{2});
  EXPECT_THAT(found(pool, 1, 1), ElementsAre(Tokens{2}));
  pool.prepare();
  EXPECT_THAT(found(pool, 1, 1), ElementsAre());
}

TEST(NgramPool, TakesNgramsOfItsOwnLengthOnly) {
  NgramPool pool = pool_of(2, 4, 64);
  pool.add(1, Tokens{2});
  pool.add(1, Tokens{2, 3, 4});
  EXPECT_THAT(found(pool, 1, 2), ElementsAre());
}

}  // namespace
}  // namespace reprise::ngram_pool_test
