// SPDX-License-Identifier: Apache-2.0
#include "reprise/index/detail/token_counts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "support/streams.hpp"

namespace reprise::detail::token_counts_test {
namespace {

using Tokens = std::vector<Token>;
using Entry = TokenCounts::Entry;

/// The naive reference.
class CountsModel {
 public:
  void add(Token token) { ++counts_[token]; }
  void remove(TokenSpan tokens) {
    for (const Token token : tokens)
      if (--counts_[token] == 0) counts_.erase(token);
  }
  void clear() { counts_.clear(); }
  [[nodiscard]] const std::map<Token, std::uint32_t>& counts() const { return counts_; }
  [[nodiscard]] std::vector<Entry> frequent() const {
    std::vector<Entry> sorted;
    for (const auto& [token, count] : counts_) sorted.push_back({token, count});
    std::stable_sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) { return a.count > b.count; });
    sorted.resize(std::min(sorted.size(), TokenCounts::most_frequent));
    return sorted;
  }

 private:
  std::map<Token, std::uint32_t> counts_;
};

void expect_same(const TokenCounts& counts, const CountsModel& model, Token vocabulary) {
  std::uint64_t total = 0;
  for (const auto& [token, count] : model.counts()) {
    ASSERT_EQ(counts.count(token), count) << token;
    total += count;
  }
  for (Token token = -vocabulary; token < vocabulary; ++token) {
    const auto found = model.counts().find(token);
    ASSERT_EQ(counts.count(token), found == model.counts().end() ? 0 : found->second) << token;
  }
  ASSERT_EQ(counts.total(), total);
  const auto frequent = counts.frequent();
  ASSERT_EQ(std::vector<Entry>(frequent.begin(), frequent.end()), model.frequent());
}

TEST(TokenCounts, RefusesToReserveWhatNoMemoryHas) { EXPECT_FALSE(TokenCounts().reserve(unlimited)); }

TEST(TokenCounts, IgnoreTokensThatWereNeverAdded) {
  TokenCounts counts;
  counts.remove(Tokens{1, 2});
  counts.add(3);
  counts.remove(Tokens{1, 3, 3, 3});
  EXPECT_EQ(counts.count(3), 0U);
  EXPECT_EQ(counts.total(), 0U);
  EXPECT_TRUE(counts.frequent().empty());
}

TEST(TokenCounts, AreThoseOfAMapWhateverIsAddedAndRemoved) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    testing::SplitMix random(seed);
    const auto vocabulary = static_cast<Token>(random.between(1, random.one_in(2) ? 40 : 2000));
    const bool last_in_first_out = random.one_in(2);
    constexpr std::array<Token, 3> extreme = {std::numeric_limits<Token>::min(), std::numeric_limits<Token>::max(),
                                              1 << 30};
    TokenCounts counts(random.next());
    CountsModel model;
    Tokens held;
    for (int step = 0; step < 60; ++step) {
      switch (random.below(8)) {
        case 0: {
          if (!last_in_first_out)
            for (std::size_t i = held.size(); i > 1; --i) std::swap(held[i - 1], held[random.below(i)]);
          const std::size_t kept = random.one_in(10) ? 0 : held.size() - random.below(held.size() / 2 + 1);
          const TokenSpan removed = TokenSpan(held).subspan(kept);
          counts.remove(removed);
          model.remove(removed);
          held.resize(kept);
          break;
        }
        case 1:
          if (random.one_in(10)) {
            counts.clear();
            model.clear();
            held.clear();
          }
          break;
        case 2:
          ASSERT_TRUE(counts.reserve(random.below(100)));
          break;
        case 3: {
          TokenCounts copy = counts;
          counts = copy;
          copy.add(1);
          break;
        }
        default:
          for (std::size_t i = random.below(80); i > 0; --i) {
            // The lower half is more frequent. Negative tokens occur as well.
            const std::size_t rank = std::min(random.below(static_cast<std::size_t>(vocabulary)),
                                              random.below(static_cast<std::size_t>(vocabulary)));
            held.push_back(random.one_in(3) ? -static_cast<Token>(rank) : static_cast<Token>(rank));
            if (random.one_in(20)) held.back() = extreme[random.below(extreme.size())];
            counts.add(held.back());
            model.add(held.back());
          }
      }
      expect_same(counts, model, vocabulary);
      if (HasFatalFailure()) FAIL() << "seed " << seed << " step " << step;
    }
  }
}

/// Returns the number of slots read when the last `taken` of these tokens are removed.
std::size_t looked_at(const Tokens& tokens, std::size_t taken) {
  TokenCounts counts(3);
  CountsModel model;
  for (const Token token : tokens) {
    counts.add(token);
    model.add(token);
  }
  const TokenSpan last = TokenSpan(tokens).last(taken);
  counts.remove(last);
  model.remove(last);
  const auto frequent = counts.frequent();
  EXPECT_EQ(std::vector<Entry>(frequent.begin(), frequent.end()), model.frequent());
  return counts.looked_at();
}

TEST(TokenCounts, ReadFewSlotsWhenOneOfTheMostFrequentIsTakenBack) {
  // All tokens differ, and the last added come first in the list.
  for (const Token size : {1'000, 10'000, 100'000, 300'000}) {
    Tokens tokens;
    for (Token token = size; token > 0; --token) tokens.push_back(token);
    EXPECT_LE(looked_at(tokens, 1), 24'000U + static_cast<std::size_t>(size) / 64) << size;
    EXPECT_LE(looked_at(tokens, 24), 80'000U + static_cast<std::size_t>(size) / 64) << size;
  }
  // Removing a token that is not in the list reads no slot.
  Tokens rising(100'000);
  std::iota(rising.begin(), rising.end(), 0);
  EXPECT_EQ(looked_at(rising, 1), 0U);
  EXPECT_EQ(looked_at(rising, 50'000), 0U);
}

TEST(TokenCounts, ReadFewSlotsHoweverOftenOneIsTakenBack) {
  TokenCounts counts(3);
  CountsModel model;
  Tokens tokens;
  for (Token token = 20'000; token > 0; --token)
    tokens.insert(tokens.end(), static_cast<std::size_t>(token % 3), token);
  for (const Token token : tokens) {
    counts.add(token);
    model.add(token);
  }
  std::size_t looked_at = 0;
  for (std::size_t left = tokens.size(); left-- > 0;) {
    const TokenSpan last = TokenSpan(tokens).subspan(left, 1);
    counts.remove(last);
    model.remove(last);
    looked_at += counts.looked_at();
    if (left % 1000 != 0) continue;
    const auto frequent = counts.frequent();
    ASSERT_EQ(std::vector<Entry>(frequent.begin(), frequent.end()), model.frequent()) << left;
  }
  EXPECT_LE(looked_at / tokens.size(), 16'000U);
}

TEST(TokenCounts, TakeTenToTwentyTwoBytesForEachDistinctToken) {
  TokenCounts counts;
  for (Token token = 0; token < 30'000; ++token) {
    counts.add(token * 7);
    if (token < 48) continue;
    const double each = static_cast<double>(counts.memory_bytes()) / (token + 1);
    ASSERT_GE(each, 10.6) << token;
    ASSERT_LE(each, 21.4) << token;
  }
}

}  // namespace
}  // namespace reprise::detail::token_counts_test
