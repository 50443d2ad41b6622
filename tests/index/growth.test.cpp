// SPDX-License-Identifier: Apache-2.0
// The rolling-hash index while its tables and arrays move to larger memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/index/detail/column.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "support/index_queries.hpp"
#include "support/naive_index.hpp"
#include "support/streams.hpp"

namespace reprise::growth_test {
namespace {

using testing::make_stream;
using testing::matches;
using testing::NaiveIndex;
using testing::SplitMix;
using testing::Stream;

/// Appends tokens one by one and finds the moves in memory_bytes(): it rises when a move begins, and it falls when the
/// move ends, because the old memory is freed. Growth in one step never frees memory.
struct Moves {
  std::size_t ended = 0;
  std::size_t shortest = unlimited;  ///< in tokens
  double most_bytes = 0;             ///< memory_bytes() for each token

  void append(RollingHashIndex& index, TokenSpan tokens) {
    for (const Token& token : tokens) {
      const std::size_t before = index.memory_bytes();
      index.append({&token, 1});
      const std::size_t after = index.memory_bytes();
      const std::size_t size = index.tokens().size();
      if (after > before) begun_ = size;
      if (after < before) {
        ++ended;
        shortest = std::min(shortest, size - begun_);
      }
      most_bytes = std::max(most_bytes, static_cast<double>(after) / static_cast<double>(size));
    }
  }

 private:
  std::size_t begun_ = 0;
};

TEST(Growth, IsSpreadOverManyAppends) {
  for (const Stream kind : {Stream::all_distinct, Stream::zipf, Stream::trace_like}) {
    const std::vector<Token> tokens = make_stream(kind, 200'000, 1, 50'000);
    RollingHashIndex index;
    index.append(TokenSpan(tokens).first(50'000));
    Moves moves;
    moves.append(index, TokenSpan(tokens).subspan(50'000));
    EXPECT_GT(moves.ended, 20U) << name(kind);
    EXPECT_LT(moves.ended, 90U) << name(kind) << ": each makes room for many more tokens";
    EXPECT_GT(moves.shortest, 50U) << name(kind);
  }
}

TEST(Growth, IsSpreadOverManyAppendsOfATextWithFewDistinctTokens) {
  for (const std::size_t one_new_in : {200U, 50U, 1U}) {
    SplitMix random(1);
    std::vector<Token> tokens;
    Token known = 500;
    for (std::size_t i = 0; i < 400'000; ++i)
      tokens.push_back(i > 200'000 && i % one_new_in == 0 ? known++ : static_cast<Token>(random.below(500)));
    RollingHashIndex index(IndexOptions{.orders = {1}});
    index.append(TokenSpan(tokens).first(150'000));
    Moves moves;
    moves.append(index, TokenSpan(tokens).subspan(150'000));
    EXPECT_GT(moves.ended, 2U) << one_new_in;
    EXPECT_GT(moves.shortest, 200U) << one_new_in;
  }
}

TEST(Growth, FreesTheMemoryOfAMoveWithTheTokens) {
  const std::vector<Token> tokens = make_stream(Stream::all_distinct, 60'000, 1);
  RollingHashIndex index;
  index.append(TokenSpan(tokens).first(50'000));
  std::size_t moving = 0;
  for (std::size_t i = 50'000; i < tokens.size(); ++i) {
    const std::size_t before = index.memory_bytes();
    index.append({&tokens[i], 1});
    if (index.memory_bytes() <= before) continue;
    ++moving;
    RollingHashIndex cleared = index;
    const std::size_t all = cleared.memory_bytes();
    cleared.clear();
    EXPECT_LT(cleared.memory_bytes(), all) << i;
    RollingHashIndex cut = index;
    cut.truncate(700);  // so few that clear() removes them one by one
    cut.clear();
    EXPECT_EQ(cut.memory_bytes(), cleared.memory_bytes()) << i;
  }
  EXPECT_GT(moving, 3U);
}

// If each cut ended a move, a table could become full, and one append would move all of it.
TEST(Growth, GoesOnAfterACut) {
  const std::vector<Token> tokens = make_stream(Stream::all_distinct, 60'000, 1);
  RollingHashIndex index;
  index.append(TokenSpan(tokens).first(50'000));
  std::size_t cuts = 0;
  std::size_t begun = 0;
  for (std::size_t i = 50'000; i < tokens.size(); ++i) {
    const std::size_t before = index.memory_bytes();
    index.append({&tokens[i], 1});
    if (index.memory_bytes() != before) begun = index.memory_bytes() > before ? i : 0;
    if (begun == 0 || (i - begun) % 100 != 99) continue;
    RollingHashIndex cut = index;
    const std::size_t bytes = cut.memory_bytes();
    const std::size_t kept = i - i % 8 + 1 - 8 * (++cuts % 5);
    cut.truncate(kept);
    EXPECT_EQ(cut.memory_bytes(), bytes) << i;
    for (const Token& token : TokenSpan(tokens).subspan(1'000, 400)) cut.append({&token, 1});
    RollingHashIndex moved = index;
    const std::size_t held = moved.memory_bytes();
    moved.truncate(4);  // into the part that has moved
    EXPECT_EQ(moved.memory_bytes(), held) << i;
    NaiveIndex naive(IndexOptions{});
    naive.append(cut.tokens());
    const MatchLimits limits{.shortest = 1, .longest = 8, .candidates = 8};
    EXPECT_EQ(matches(cut, limits), matches(naive, limits)) << i;
  }
  EXPECT_GT(cuts, 3U);
}

// Each of several moves is cut, this many tokens after it has begun.
TEST(Growth, HoldsTheMemoryOfOneMoveAtATimeWhateverIsCut) {
  for (const std::size_t tokens_after : {0U, 100U, 300U, 500U, 1000U}) {
    constexpr std::size_t distinct = 30'000;
    SplitMix random(1);
    RollingHashIndex index(IndexOptions{.orders = {1, 2, 4}});
    std::vector<Token> tokens = make_stream(Stream::all_distinct, distinct, 1);
    index.append(tokens);
    std::size_t longest = distinct;
    double most = 0;
    const auto append = [&](Token token) {
      index.append({&token, 1});
      longest = std::max(longest, index.tokens().size());
      most = std::max(most, static_cast<double>(index.memory_bytes()) / static_cast<double>(longest));
    };
    // New tokens fill all tables, new pairs of known tokens those of two orders, new orders of known pairs the last
    // one.
    for (const std::size_t known : {0U, 1U, 2U}) {
      const std::size_t bytes = index.memory_bytes();
      std::size_t begun = 0;
      for (std::size_t i = 0; i < 4 * distinct; ++i) {
        const std::size_t from = random.below(distinct - 2);
        if (known == 0) append(static_cast<Token>((1 << 28) + i));
        for (std::size_t k = 0; k < known; ++k) append(tokens[from + k]);
        if (index.memory_bytes() > bytes && begun == 0) begun = index.tokens().size();
        if (begun != 0 && index.tokens().size() > begun + tokens_after) break;
      }
      index.truncate(index.tokens().size() * 15 / 16);
    }
    EXPECT_LE(most, 57.0) << tokens_after;
  }
}

// The bound is documented in docs/performance/memory.md.
TEST(Growth, TakesAtMostFiftySevenBytesATokenWhenNoneRepeats) {
  const std::vector<Token> tokens = make_stream(Stream::all_distinct, 300'000, 1);
  RollingHashIndex index;
  index.append(TokenSpan(tokens).first(10'000));
  Moves moves;
  moves.append(index, TokenSpan(tokens).subspan(10'000));
  EXPECT_LE(moves.most_bytes, 57.0);
}

TEST(Growth, IsInOneStepUnderACeiling) {
  const std::vector<Token> tokens = make_stream(Stream::zipf, 60'000, 1, 50'000);
  RollingHashIndex index(IndexOptions{.max_bytes = 1 << 20});
  Moves moves;
  moves.append(index, tokens);
  EXPECT_TRUE(index.exhausted());
  EXPECT_GT(index.tokens().size(), 10'000U);
  EXPECT_EQ(moves.ended, 0U);
}

TEST(Growth, BeginsAfterTheReservation) {
  const std::vector<Token> tokens = make_stream(Stream::all_distinct, 40'000, 1);
  RollingHashIndex index;
  ASSERT_TRUE(index.reserve(20'000));
  const std::size_t bytes = index.memory_bytes();
  for (std::size_t i = 0; i < 20'000; ++i) {
    index.append({&tokens[i], 1});
    ASSERT_EQ(index.memory_bytes(), bytes) << i;
  }
  Moves moves;
  moves.append(index, TokenSpan(tokens).subspan(20'000));
  EXPECT_GT(moves.ended, 0U);
}

/// The index and its reference over the same tokens.
struct Pair {
  explicit Pair(const IndexOptions& options) : index(options), naive(options) {}
  void append(TokenSpan tokens) {
    index.append(tokens);
    naive.append(tokens);
  }
  void truncate(std::size_t size) {
    index.truncate(size);
    naive.truncate(size);
  }
  [[nodiscard]] std::size_t size() const { return naive.tokens().size(); }
  /// Returns the number of matches, which are equal.
  [[nodiscard]] std::size_t compare(const NgramOrders& orders) const {
    std::size_t found = 0;
    EXPECT_TRUE(std::equal(index.tokens().begin(), index.tokens().end(), naive.tokens().begin(), naive.tokens().end()));
    for (const std::uint32_t n : orders) {
      for (const MatchLimits::Order order : {MatchLimits::Order::most_recent, MatchLimits::Order::earliest}) {
        const MatchLimits limits{.shortest = n, .order = order};
        const std::vector<Match> expected = matches(naive, limits);
        EXPECT_EQ(matches(index, limits), expected) << n << " at " << size();
        found += expected.size();
      }
    }
    return found;
  }

  RollingHashIndex index;
  NaiveIndex naive;
};

void run_world(Stream kind, std::uint64_t seed) {
  SplitMix random(seed);
  const IndexOptions options{.orders = {1, 2, 5}, .earliest = true, .key = random.next()};
  const std::vector<Token> tokens = make_stream(kind, 20'000, seed, 50'000);
  Pair pair(options);
  pair.append(TokenSpan(tokens).first(4000 + random.below(1000)));
  std::size_t found = 0;
  for (int step = 0; step < 1500; ++step) {
    const std::size_t size = pair.size();
    if (random.one_in(10)) {
      pair.truncate(size - random.below(20));
    } else if (random.one_in(100)) {
      pair.truncate(size - random.below(size / 3 + 1));  // into the part that has moved
    } else if (random.one_in(100)) {
      pair = Pair(pair);
    } else if (random.one_in(800)) {
      pair.index.clear();
      pair.naive.clear();
      pair.append(TokenSpan(tokens).first(4500));
    } else if (random.one_in(200)) {
      ASSERT_TRUE(pair.index.reserve(size + random.below(200)));
    } else {
      const std::size_t most = random.one_in(50) ? 600 : random.one_in(8) ? 50 : 4;
      const std::size_t count = random.between(1, most);
      const std::size_t from = random.one_in(4) ? random.below(size) : size % 15'000;
      pair.append(TokenSpan(tokens).subspan(std::min<std::size_t>(from, 19'000), count));
    }
    found += pair.compare(options.orders);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << " step " << step;
  }
  EXPECT_GT(found, 1000U);
}

TEST(Growth, FindsWhatTheNaiveIndexFinds) {
  for (const Stream kind : {Stream::zipf, Stream::trace_like})
    for (std::uint64_t seed = 0; seed < 4; ++seed) run_world(kind, seed);
}

// Every state of a move is cut by a truncation, into the moved part or above it, and dropped by clear(). Then other
// text follows.
TEST(Growth, MayBeCutOffAtAnyTime) {
  const IndexOptions options{.orders = {1, 3}, .earliest = true};
  const std::vector<Token> tokens = make_stream(Stream::trace_like, 12'000, 5, 50'000);
  const std::vector<Token> other = make_stream(Stream::trace_like, 12'000, 6, 50'000);
  Pair pair(options);
  pair.append(TokenSpan(tokens).first(5000));
  bool moving = false;
  std::size_t states = 0;
  for (std::size_t i = 5000; i < 11'000; ++i) {
    const std::size_t bytes = pair.index.memory_bytes();
    pair.append(TokenSpan(tokens).subspan(i, 1));
    if (pair.index.memory_bytes() != bytes) moving = pair.index.memory_bytes() > bytes;
    if (!moving) continue;
    ++states;
    Pair fork = pair;
    fork.append(TokenSpan(tokens).subspan(i + 1, i % 40));
    static_cast<void>(fork.compare(options.orders));
    fork.truncate(i % 2 == 0 ? 50 : i - i / 8);
    static_cast<void>(fork.compare(options.orders));
    const auto refill = [&] {
      while (fork.size() < i + 400) {
        fork.append(TokenSpan(other).subspan(fork.size(), 31));
        if (fork.size() % 16 == 0) static_cast<void>(fork.compare(options.orders));
      }
    };
    refill();
    fork = pair;
    fork.index.clear();
    fork.naive.clear();
    refill();
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_GT(states, 50U);
}

TEST(Column, WritesReachTheElementsThatHaveMoved) {
  constexpr std::size_t room = 4096;
  detail::Column<int> column;
  ASSERT_TRUE(column.reserve(room));
  for (int i = 0; i < 4000; ++i) column.push_reserved(i);
  ASSERT_TRUE(column.move(1));
  ASSERT_EQ(column.capacity(), room);
  ASSERT_GT(column.memory_bytes(), room * sizeof(int)) << "some have moved";
  column.truncate(100);  // into the part that has moved
  EXPECT_GT(column.memory_bytes(), room * sizeof(int)) << "the move goes on";
  EXPECT_FALSE(column.move(1)) << "enough is free";
  EXPECT_EQ(column.memory_bytes(), room * sizeof(int));
  for (int i = 100; i < 4000; ++i) column.push_reserved(-i);
  ASSERT_TRUE(column.move(1));
  column.set(1, 11);
  while (column.capacity() == room) ASSERT_TRUE(column.move(1));
  EXPECT_EQ(column.memory_bytes(), column.capacity() * sizeof(int)) << "the old memory is freed";
  ASSERT_EQ(column.size(), 4000U);
  for (int i = 0; i < 4000; ++i) ASSERT_EQ(column[static_cast<std::size_t>(i)], i == 1 ? 11 : i < 100 ? i : -i);
}

}  // namespace
}  // namespace reprise::growth_test
