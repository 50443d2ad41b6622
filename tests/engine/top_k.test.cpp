// SPDX-License-Identifier: Apache-2.0
#include "reprise/engine/top_k.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace reprise::top_k_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

using Scores = std::vector<float>;
using Tokens = std::vector<Token>;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float denormal = std::numeric_limits<float>::denorm_min();
constexpr std::size_t most_wanted = 64;

static_assert(noexcept(top_k({}, {})));

Tokens best(const Scores& scores, std::size_t k) {
  Tokens out(k, -7);
  const TokenSpan found = top_k(scores, out);
  return {found.begin(), found.end()};
}

/// All numbers of a row by a stable sort: the order that top_k() promises.
Tokens sorted(const Scores& scores) {
  Tokens tokens;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!std::isnan(scores[i])) tokens.push_back(static_cast<Token>(i));
  std::stable_sort(tokens.begin(), tokens.end(), [&](Token left, Token right) {
    return scores[static_cast<std::size_t>(left)] > scores[static_cast<std::size_t>(right)];
  });
  return tokens;
}

/// Compares top_k() for each k, and argmax(), with the sorted row.
void expect_sorted_order(const Scores& scores, const std::string& name) {
  const Tokens expected = sorted(scores);
  for (std::size_t k = 0; k <= most_wanted; ++k) {
    const auto wanted = TokenSpan(expected).first(std::min(k, expected.size()));
    ASSERT_THAT(best(scores, k), ElementsAreArray(wanted)) << name << ", " << scores.size() << " scores, k = " << k;
  }
  ASSERT_EQ(argmax(scores), expected.empty() ? 0 : expected[0]) << name << ", " << scores.size() << " scores";
}

/// Draws each score from a few values, so that there are many ties.
struct Pool {
  const char* name;
  Scores values;
};
const std::array<Pool, 7> pools = {{
    {"ties", {-1, 0, 1, 2}},
    {"one value", {3}},
    {"zeros", {0.0F, -0.0F}},
    {"infinities", {-infinite, infinite, 0, -1e38F, 1e38F}},
    {"denormals", {denormal, -denormal, 0.0F, -0.0F, 2 * denormal}},
    {"NaN and numbers", {nan_value, -nan_value, nan_value, nan_value, 1, -infinite}},
    {"NaN only", {nan_value, -nan_value}},
}};

TEST(TopK, ReturnsThePartOfTheOutputThatItWrote) {
  std::array<Token, 4> out = {-7, -7, -7, -7};
  const TokenSpan found = top_k(Scores{1, nan_value, 2}, out);
  EXPECT_EQ(found.data(), out.data());
  EXPECT_EQ(found.size(), 2U);
  EXPECT_THAT(out, ElementsAre(2, 0, -7, -7));
}
TEST(TopK, HoldsForMoreTokensThanABlock) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Scores scores(1000);
  for (float& score : scores) score = normal(random);
  EXPECT_EQ(best(scores, 1000), sorted(scores));
  EXPECT_EQ(best(scores, 2000), sorted(scores));
}

TEST(TopKAndArgmax, AreThoseOfAStableSortAtEveryLength) {
  std::mt19937 random(1);
  for (const Pool& pool : pools) {
    std::uniform_int_distribution<std::size_t> any(0, pool.values.size() - 1);
    for (std::size_t size = 0; size <= 200; ++size) {
      Scores scores(size);
      for (float& score : scores) score = pool.values[any(random)];
      expect_sorted_order(scores, pool.name);
      if (HasFatalFailure()) return;
    }
  }
}
TEST(TopKAndArgmax, AreThoseOfAStableSortInOrderedAndShuffledRows) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (std::size_t size = 0; size <= 200; ++size) {
    Scores scores(size);
    for (float& score : scores) score = normal(random);
    expect_sorted_order(scores, "shuffled");
    std::sort(scores.begin(), scores.end());
    expect_sorted_order(scores, "ascending");
    std::reverse(scores.begin(), scores.end());
    expect_sorted_order(scores, "descending");
    if (HasFatalFailure()) return;
  }
}
TEST(TopKAndArgmax, FindAHighScoreAtEveryPlaceOfALongRow) {
  Scores scores(330, -1.0F);
  for (std::size_t at = 0; at < scores.size(); ++at) {
    scores[at] = 1;
    const auto high = static_cast<Token>(at);
    ASSERT_EQ(argmax(scores), high);
    ASSERT_THAT(best(scores, 2), ElementsAre(high, at == 0 ? 1 : 0));
    scores[at] = nan_value;
    ASSERT_THAT(best(scores, 2), ElementsAre(at == 0 ? 1 : 0, at <= 1 ? 2 : 1));
    scores[at] = -1;
  }
}
TEST(TopKAndArgmax, AreThoseOfAStableSortInLongRowsWithNan) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::size_t size : {4096U, 5000U, 12345U}) {
    Scores scores(size);
    for (float& score : scores) score = std::round(normal(random) * 100);
    for (std::size_t i = 0; i < size; i += 1 + random() % 97) scores[i] = nan_value;
    for (std::size_t i = 0; i < 100; ++i) scores[i] = nan_value;
    expect_sorted_order(scores, "rounded");
  }
}

}  // namespace
}  // namespace reprise::top_k_test
