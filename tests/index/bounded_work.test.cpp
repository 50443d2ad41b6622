// SPDX-License-Identifier: Apache-2.0
// The hash tables against texts whose author knows the key: the work is bounded, and every match is true.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "reprise/index/detail/ngram_table.hpp"
#include "reprise/index/detail/token_counts.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "support/aimed_tokens.hpp"
#include "support/naive_index.hpp"
#include "support/streams.hpp"

namespace reprise::bounded_work_test {
namespace {

using detail::NgramTable;
using detail::TokenCounts;
using testing::Aim;
using testing::NaiveIndex;
using testing::SplitMix;

constexpr std::uint64_t public_key = IndexOptions{}.key;
constexpr std::uint64_t other_key = 0x243f6a8885a308d3;
// Promised in RollingHashIndex and TokenCounts.
constexpr std::size_t runs = 8;
constexpr std::size_t most_slots_read = 128;
constexpr std::size_t most_asked = 32;

/// The work of one lookup.
struct Work {
  std::size_t read = 0;
  std::size_t asked = 0;
};

/// Looks up an n-gram that the table does not hold.
Work work_of(const NgramTable& table, std::uint64_t hash) {
  Work work;
  const auto equal = [&work](Position) { return ++work.asked, false; };
  EXPECT_EQ(table.last(hash, equal, [&work] { ++work.read; }), 0U);
  return work;
}

/// A random hash whose runs all begin in the first half of a table.
std::uint64_t aimed_hash(SplitMix& random) {
  std::uint64_t hash = random.next();
  while (!testing::aimed_at_ngrams(hash, runs, 50)) hash = random.next();
  return hash;
}

TEST(BoundedWork, ATableReadsAtMostItsRunsHoweverFullTheyAre) {
  SplitMix random(1);
  NgramTable table;
  ASSERT_TRUE(table.reset(4000));
  Position end = 0;
  while (table.complete()) static_cast<void>(table.replace(aimed_hash(random), ++end, [](Position) { return false; }));
  EXPECT_LT(table.distinct(), table.room()) << "there is room, but not where the hashes are aimed";
  for (std::size_t i = 0; i < 1000; ++i)
    static_cast<void>(table.replace(aimed_hash(random), ++end, [](Position) { return false; }));
  std::size_t most = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const Work work = work_of(table, aimed_hash(random));
    EXPECT_LE(work.asked, most_asked);
    most = std::max(most, work.read);
  }
  EXPECT_EQ(most, most_slots_read);
}

TEST(BoundedWork, ATableComparesFewNgramsHoweverManyTagsAreEqual) {
  constexpr std::uint64_t hash = 0x42;
  NgramTable table;
  ASSERT_TRUE(table.reset(4000));
  for (Position end = 1; end <= 1000; ++end) EXPECT_EQ(table.replace(hash, end, [](Position) { return false; }), 0U);
  EXPECT_FALSE(table.complete());
  EXPECT_EQ(work_of(table, hash).asked, most_asked);
  EXPECT_EQ(table.distinct(), most_asked);
  for (Position end = 1; end <= table.distinct(); ++end)
    EXPECT_EQ(table.last(hash, [end](Position held) { return held == end; }), end) << "it was stored";
}

TEST(BoundedWork, AFullTableStoresNothingMore) {
  SplitMix random(2);
  NgramTable table;
  ASSERT_TRUE(table.reset(100));
  for (Position end = 1; end <= 200; ++end)
    static_cast<void>(table.replace(random.next(), end, [](Position) { return false; }));
  EXPECT_EQ(table.distinct(), table.room());
}

// 500 n-grams, most of them aimed, are entered and undone in reverse, like appends and truncations of a text.
TEST(BoundedWork, ATableIsAMapButForWhatItDidNotStore) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SplitMix random(seed);
    std::vector<std::uint64_t> hashes(500);
    for (std::uint64_t& hash : hashes) hash = random.one_in(4) ? random.next() : aimed_hash(random);
    struct Step {
      std::size_t ngram;
      Position before;
    };
    std::vector<Step> steps;
    std::vector<std::vector<Position>> stored(hashes.size());  // the ends of each n-gram, in order
    NgramTable table;
    ASSERT_TRUE(table.reset(500));
    const std::vector<Position> none;
    std::size_t given_up = 0;
    const auto is = [&](std::size_t ngram) {
      return [&, ngram](Position end) { return steps[end - 1].ngram == ngram; };
    };
    for (int i = 0; i < 20'000; ++i) {
      if (!steps.empty() && random.one_in(i % 4000 < 3000 ? 8 : 3)) {
        for (std::size_t n = random.below(std::min<std::size_t>(steps.size(), 8)) + 1; n > 0; --n) {
          const Step step = steps.back();
          table.undo(hashes[step.ngram], static_cast<Position>(steps.size()), step.before);
          std::vector<Position>& ends = stored[step.ngram];
          if (!ends.empty() && ends.back() == steps.size()) ends.pop_back();
          steps.pop_back();
        }
      } else {
        const std::size_t ngram = random.below(hashes.size());
        const auto end = static_cast<Position>(steps.size() + 1);
        std::vector<Position>& ends = stored[ngram];
        steps.push_back({ngram, 0});
        const Position before = table.replace(hashes[ngram], end, is(ngram));
        steps.back().before = before;
        ASSERT_EQ(before, ends.empty() ? 0 : ends.back());
        if (table.last(hashes[ngram], is(ngram)) == end) {
          ends.push_back(end);
        } else {
          ASSERT_TRUE(ends.empty()) << "an n-gram that was stored stays known";
          ++given_up;
        }
      }
      ASSERT_EQ(table.distinct(),
                hashes.size() - static_cast<std::size_t>(std::count(stored.begin(), stored.end(), none)));
      const std::size_t asked = random.below(hashes.size());
      ASSERT_EQ(table.last(hashes[asked], is(asked)), stored[asked].empty() ? 0 : stored[asked].back());
    }
    EXPECT_GT(given_up, 0U);
  }
}

/// Counts of a comparison with the naive index.
struct Seen {
  std::size_t expected = 0;
  std::size_t found = 0;
};

/// Every match is one of the true ones, in their order.
void compare(const RollingHashIndex& index, const NaiveIndex& naive, const MatchLimits& limits, Seen& seen) {
  std::vector<Match> all(naive.tokens().size());
  all.resize(naive.find(limits, all));
  std::vector<Match> found(all.size());
  found.resize(index.find(limits, found));
  seen.expected += all.size();
  seen.found += found.size();
  auto next = all.begin();
  for (const Match& match : found) {
    next = std::find(next, all.end(), match);
    ASSERT_NE(next, all.end()) << "no such occurrence, or out of order: " << match.end << " " << match.length;
    ++next;
  }
  const TokenSpan ngram = naive.tokens().last(limits.shortest);
  const Position latest = index.latest(ngram);
  if (latest != 0) {
    const TokenSpan before = naive.tokens().first(latest).last(ngram.size());
    ASSERT_TRUE(std::equal(ngram.begin(), ngram.end(), before.begin()));
  }
}

/// Compares with the naive index while text and copies of earlier text are appended, truncated, forked and cleared.
Seen run_world(const std::vector<Token>& text, std::uint64_t key, std::uint64_t seed) {
  SplitMix random(seed);
  const IndexOptions options{.orders = {1, 2, 4}, .earliest = true, .key = key};
  RollingHashIndex index(options);
  NaiveIndex naive(options);
  if (random.one_in(2)) {
    EXPECT_TRUE(index.reserve(text.size()));
  }
  Seen seen;
  std::size_t next = 0;  // in the text
  for (int step = 0; step < 300; ++step) {
    std::vector<Token> more;
    if (const std::size_t size = naive.tokens().size(); size > 50 && random.one_in(2)) {
      const std::size_t from = random.below(size - 20);
      more.assign(naive.tokens().begin() + static_cast<std::ptrdiff_t>(from),
                  naive.tokens().begin() + static_cast<std::ptrdiff_t>(from + random.between(1, 20)));
    } else {
      for (std::size_t n = random.between(1, random.one_in(4) ? 200 : 30); n > 0; --n)
        more.push_back(text[next++ % text.size()]);
    }
    index.append(more);
    naive.append(more);
    if (random.one_in(8)) {
      const std::size_t size = naive.tokens().size() - random.below(naive.tokens().size() / 4 + 1);
      index.truncate(size);
      naive.truncate(size);
    }
    if (random.one_in(20)) index = RollingHashIndex(index);
    if (random.one_in(200)) {
      index.clear();
      naive.clear();
      next = 0;
    }
    for (const std::uint32_t n : {1U, 2U, 4U}) {
      if (naive.tokens().size() <= n) continue;
      for (const MatchLimits::Order order : {MatchLimits::Order::most_recent, MatchLimits::Order::earliest})
        compare(index, naive, {.shortest = n, .longest = 16, .candidates = 10'000, .order = order}, seen);
    }
    if (::testing::Test::HasFatalFailure()) {
      ADD_FAILURE() << "seed " << seed << " step " << step;
      return seen;
    }
  }
  return seen;
}

TEST(BoundedWork, AnIndexOverAimedTextFindsTrueOccurrencesOnly) {
  const std::vector<Token> text = testing::aimed_text(3000, {.runs = runs, .pair = 50}, public_key);
  Seen aimed;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Seen seen = run_world(text, public_key, seed);
    aimed.expected += seen.expected;
    aimed.found += seen.found;
    const Seen exact = run_world(text, other_key, seed);
    EXPECT_EQ(exact.found, exact.expected) << "this text is not aimed at that key";
    if (HasFailure()) return;
  }
  EXPECT_LT(aimed.found, aimed.expected) << "the text reaches the bound";
}

/// An index of pairs over twice the same aimed text, with its reference.
struct AimedWorld {
  static constexpr IndexOptions options{.orders = {2}, .earliest = true, .key = public_key};
  std::vector<Token> text = testing::aimed_text(3000, {.runs = runs, .pair = 50}, public_key);
  RollingHashIndex index{options};
  NaiveIndex naive{options};

  AimedWorld() {
    append(text);
    append(text);
  }
  void append(TokenSpan tokens) {
    index.append(tokens);
    naive.append(tokens);
  }
  void truncate(std::size_t size) {
    index.truncate(size);
    naive.truncate(size);
  }
  [[nodiscard]] std::size_t size() const { return naive.tokens().size(); }
  /// Returns the number of pairs of the text that the index finds.
  [[nodiscard]] std::size_t known() const {
    std::size_t count = 0;
    for (std::size_t end = 2; end <= text.size(); ++end)
      count += index.latest(TokenSpan(text).subspan(end - 2, 2)) != 0 ? 1 : 0;
    return count;
  }
  /// Compares in both orders.
  [[nodiscard]] Seen compare() const {
    Seen seen;
    for (const MatchLimits::Order order : {MatchLimits::Order::most_recent, MatchLimits::Order::earliest})
      bounded_work_test::compare(index, naive, {.shortest = 2, .longest = 2, .candidates = 10'000, .order = order},
                                 seen);
    return seen;
  }
  /// Truncates down to one text, and finds everything on the way.
  void expect_everything() {
    for (std::size_t cut = size(); cut > text.size(); cut -= 7) {
      truncate(cut);
      const Seen seen = compare();
      ASSERT_EQ(seen.found, seen.expected) << cut;
    }
  }
};

TEST(BoundedWork, AnIndexFindsEverythingAgainAfterItsTableHasGrown) {
  AimedWorld world;
  EXPECT_LT(world.known(), world.text.size() - 1);
  ASSERT_TRUE(world.index.reserve(20'000));
  EXPECT_EQ(world.known(), world.text.size() - 1);
  world.expect_everything();
  world.append(world.text);
  world.expect_everything();
}

// The text repeats while its table moves, so that n-grams are linked that the old table did not store.
TEST(BoundedWork, AnIndexFindsMoreAfterItsTableHasMoved) {
  AimedWorld world;
  const std::size_t before = world.known();
  ASSERT_LT(before, world.text.size() - 1);
  SplitMix random(1);
  const std::size_t bytes = world.index.memory_bytes();
  std::size_t moving = 0;
  for (Token token = 1 << 28; world.known() == before; ++token) {
    ASSERT_LT(world.size(), 20'000U);
    world.append({&token, 1});  // a new token, so that the table fills up
    if (world.index.memory_bytes() != bytes) ++moving;
    world.append(TokenSpan(world.text).subspan(random.below(world.text.size() - 3), 3));
    static_cast<void>(world.compare());
    if (random.one_in(16)) world.truncate(world.size() - random.below(8));
    if (HasFailure()) return;
  }
  EXPECT_GT(moving, 10U);
  EXPECT_GT(world.known(), before);
  ASSERT_TRUE(world.index.reserve(20'000));
  EXPECT_EQ(world.known(), world.text.size() - 1);
  world.expect_everything();
}

constexpr Aim aimed_counts{.runs = runs, .counted = 60, .counted_slots = 4096};

TEST(BoundedWork, CountsOfAimedTokensAreNeverTooHigh) {
  const std::vector<Token> vocabulary = testing::aimed_vocabulary(aimed_counts, public_key, 1 << 21);
  ASSERT_GT(vocabulary.size(), 3000U);
  const std::span<const Token> tokens = std::span(vocabulary).first(3000);
  TokenCounts counts(public_key);
  ASSERT_TRUE(counts.reserve(3000));
  std::map<Token, std::uint32_t> model;
  SplitMix random(1);
  std::vector<Token> held;
  std::size_t missed = 0;
  for (int step = 0; step < 400; ++step) {
    if (random.one_in(3)) {
      const std::size_t kept = held.size() - random.below(held.size() / (step % 40 == 0 ? 2 : 10) + 1);
      const TokenSpan removed = TokenSpan(held).subspan(kept);
      counts.remove(removed);
      for (const Token token : removed) --model[token];
      held.resize(kept);
    } else {
      for (std::size_t n = random.below(300); n > 0; --n) {
        held.push_back(tokens[random.below(tokens.size())]);
        counts.add(held.back());
        ++model[held.back()];
      }
    }
    std::uint64_t total = 0;
    for (const auto& [token, count] : model) {
      ASSERT_LE(counts.count(token), count) << token;
      ASSERT_LE(counts.slots_read(token), most_slots_read);
      missed += count - counts.count(token);
      total += counts.count(token);
    }
    ASSERT_EQ(counts.total(), total);
    for (const TokenCounts::Entry& entry : counts.frequent()) ASSERT_EQ(entry.count, counts.count(entry.token));
  }
  EXPECT_GT(missed, 0U) << "the tokens reach the bound";
  counts.remove(held);
  EXPECT_EQ(counts.total(), 0U);
  EXPECT_TRUE(counts.frequent().empty());
}

TEST(BoundedWork, CountsForgetATokenThatFindsNoSlotAfterGrowth) {
  std::size_t lost = 0;
  for (std::uint64_t key = 0; key < 10; ++key) {
    const Aim aim{.runs = runs, .counted = 30, .counted_slots = 256};
    TokenCounts counts(key);
    std::vector<Token> tokens = testing::aimed_vocabulary(aim, key, 1 << 21);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      for (std::size_t n = 0; n <= i % 7; ++n) counts.add(tokens[i]);
    const std::uint64_t before = counts.total();
    std::uint64_t added = 0;
    const std::size_t bytes = counts.memory_bytes();
    for (Token token = 1 << 21; counts.memory_bytes() == bytes; ++token, ++added) {
      counts.add(token);
      tokens.push_back(token);
    }
    lost += before + added - counts.total();
    std::uint64_t total = 0;
    std::vector<TokenCounts::Entry> frequent;
    for (const Token token : tokens) {
      total += counts.count(token);
      if (counts.count(token) != 0) frequent.push_back({token, counts.count(token)});
    }
    ASSERT_EQ(counts.total(), total);
    std::stable_sort(frequent.begin(), frequent.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
    frequent.resize(TokenCounts::most_frequent);
    ASSERT_EQ(std::vector<TokenCounts::Entry>(counts.frequent().begin(), counts.frequent().end()), frequent);
  }
  EXPECT_GT(lost, 0U);
}

TEST(BoundedWork, CountsReuseTheSlotsOfTokensThatAreGone) {
  TokenCounts counts;
  ASSERT_TRUE(counts.reserve(1000));
  const std::size_t bytes = counts.memory_bytes();
  for (Token round = 0; round < 500; ++round) {
    std::vector<Token> tokens;
    for (Token token = 0; token < 900; ++token) tokens.push_back(round * 450 + token);
    for (const Token token : tokens) counts.add(token);
    for (const Token token : tokens) ASSERT_EQ(counts.count(token), 1U) << round;
    ASSERT_EQ(counts.total(), 900U);
    counts.remove(tokens);
    for (const Token token : tokens) ASSERT_EQ(counts.count(token), 0U) << round;
    ASSERT_TRUE(counts.frequent().empty());
  }
  EXPECT_EQ(counts.memory_bytes(), bytes);
}

}  // namespace
}  // namespace reprise::bounded_work_test
