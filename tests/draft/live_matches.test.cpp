// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/followed_context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "reprise/index/rolling_hash.hpp"

namespace reprise::detail::live_matches_test {
namespace {

using Tokens = std::vector<Token>;

/// A text 100, 101, ..., followed by a partial copy of itself.
class Copying {
 public:
  explicit Copying(std::size_t original = 80) : text_(original) { std::iota(text_.begin(), text_.end(), 100); }

  /// Follows the original from `begin` and appends its first `length` tokens from there.
  void copy(std::size_t begin, std::size_t length) {
    say(text_[begin]);
    matches_.look_at(text_, static_cast<Position>(begin + 1));
    for (std::size_t i = 1; i < length; ++i) say(text_[begin + i]);
  }
  void say(Token token) {
    text_.push_back(token);
    matches_.advance(text_);
  }
  /// Returns the match whose next token is the original's token `at`, or null.
  [[nodiscard]] const LiveMatch* at(std::size_t at) const {
    for (const LiveMatch& match : matches_.matches())
      if (match.next == at) return &match;
    return nullptr;
  }
  [[nodiscard]] std::size_t size() const { return matches_.matches().size(); }
  LiveMatches& matches() { return matches_; }
  [[nodiscard]] const Tokens& text() const { return text_; }

 private:
  Tokens text_;
  LiveMatches matches_;
};

TEST(BitCount, CountsBits) {
  EXPECT_EQ(bit_count(0), 0);
  EXPECT_EQ(bit_count(0xffffffffU), 32);
  for (std::uint32_t bits = 1, i = 0; i < 1000; ++i, bits = bits * 1664525U + 1013904223U)
    ASSERT_EQ(bit_count(bits), std::popcount(bits)) << bits;
}

TEST(AgreementsAt, AreThoseOfAPlainLoop) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    Tokens a(random() % 70);
    Tokens b(random() % 70);
    for (Token& token : a) token = static_cast<Token>(random() % 2);
    for (Token& token : b) token = static_cast<Token>(random() % 2);
    std::uint32_t agreements = 0;
    for (std::size_t i = 0; i < std::min({a.size(), b.size(), std::size_t{32}}); ++i)
      if (a[a.size() - 1 - i] == b[b.size() - 1 - i]) agreements |= std::uint32_t{1} << i;
    ASSERT_EQ(agreements_of(a, b), agreements) << a.size() << " and " << b.size() << " tokens";
  }
}

TEST(LiveMatches, CountTheLengthUpToAThousand) {
  Copying copying(3000);
  copying.copy(0, 999);
  EXPECT_EQ(copying.at(999)->length, 999U);
  copying.say(copying.text()[999]);
  copying.say(copying.text()[1000]);
  EXPECT_EQ(copying.at(1001)->length, 1000U);
}

TEST(LiveMatches, KeepTheBestEight) {
  // Twelve places after a 5. The i-th one agrees in i more tokens.
  Tokens text;
  std::vector<Position> places;
  for (Token i = 0; i < 12; ++i) {
    text.push_back(-1 - i);
    for (Token j = 12 - i; j <= 12; ++j) text.push_back(j);
    text.push_back(5);
    places.push_back(static_cast<Position>(text.size()));
  }
  for (Token j = 0; j <= 12; ++j) text.push_back(j);
  text.push_back(5);
  for (const bool backwards : {false, true}) {
    std::vector<Position> order = places;
    if (backwards) std::reverse(order.begin(), order.end());
    LiveMatches matches;
    for (const Position place : order) matches.look_at(text, place);
    ASSERT_EQ(matches.matches().size(), LiveMatches::capacity);
    std::vector<Position> kept;
    for (const LiveMatch& match : matches.matches()) kept.push_back(match.next);
    std::sort(kept.begin(), kept.end());
    EXPECT_EQ(kept, std::vector<Position>(places.begin() + 4, places.end()));
  }
}

TEST(LiveMatches, PreferTheLaterOfEqualPlaces) {
  Tokens text;
  for (Token i = 0; i < 10; ++i) {
    text.push_back(100 + i);
    text.push_back(5);
  }
  text.push_back(7);
  text.push_back(5);
  LiveMatches matches;
  for (std::size_t i = 0; i < 10; ++i) matches.look_at(text, static_cast<Position>(2 * i + 2));
  ASSERT_EQ(matches.matches().size(), LiveMatches::capacity);
  for (const LiveMatch& match : matches.matches()) EXPECT_GE(match.next, 6U);
}

TEST(LiveMatches, PreferTheLaterOfAllThatAgreeInSixteenTokens) {
  // Nine places. The first agrees in 17 tokens, the second in 15, the others in 16.
  Tokens text;
  std::vector<Position> places;
  for (Token i = 0; i < 9; ++i) {
    text.push_back(-1 - i);
    for (Token j = i == 0 ? 0 : i == 1 ? 2 : 1; j < 17; ++j) text.push_back(j);
    places.push_back(static_cast<Position>(text.size()));
  }
  for (Token j = 0; j < 17; ++j) text.push_back(j);
  LiveMatches matches;
  for (const Position place : places) matches.look_at(text, place);
  ASSERT_EQ(matches.matches().size(), LiveMatches::capacity);
  for (const LiveMatch& match : matches.matches()) EXPECT_NE(match.next, places[1]);
}

// A text of 80 tokens that differ, then four of them at another place, then a copy of the text's end.
TEST(FollowedContext, LooksUpEverySixteenthTokenWhileAMatchAgreesWith32) {
  constexpr std::size_t common = 50;                     // where the four tokens begin in the text
  for (std::size_t length = 28; length <= 36; ++length)  // number of the first of the four in the copy
    for (std::size_t gap = 0; gap < 16; ++gap) {
      Tokens text(80);
      std::iota(text.begin(), text.end(), 100);
      for (std::size_t i = 0; i < 4; ++i) text.push_back(text[common + i]);
      text.insert(text.end(), gap + 1, -1);
      for (std::size_t i = 0; i < length + 3; ++i) text.push_back(text[common + 1 - length + i]);
      FollowedContext<RollingHashIndex> context(1, unlimited, IndexOptions{}.vocabulary);
      bool expected = false;
      for (std::size_t size = 1; size <= text.size(); ++size) {
        context.observe(TokenSpan(text).first(size), 1);
        const std::size_t copied = length + 3 - (text.size() - size);
        if (size + 4 > text.size()) expected = expected || copied < 32 || size % 16 == 0;
      }
      const auto other = [](const LiveMatch& match) { return match.next == 84; };
      const auto matches = context.matches();
      EXPECT_EQ(std::any_of(matches.begin(), matches.end(), other), expected) << length << ", " << gap;
      EXPECT_EQ(matches.front().length, length + 3);
    }
}

}  // namespace
}  // namespace reprise::detail::live_matches_test
