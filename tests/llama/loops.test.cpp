// SPDX-License-Identifier: Apache-2.0
#include "loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::llama::loops_test {
namespace {

using testing::Random;
using Tokens = std::vector<Token>;

void append(Tokens& text, const Tokens& more) { text.insert(text.end(), more.begin(), more.end()); }

/// `count` consecutive tokens from `first` on, which occur nowhere else in the text.
Tokens fresh(Token first, std::size_t count) {
  Tokens tokens(count);
  for (Token& token : tokens) token = first++;
  return tokens;
}

Tokens times(std::size_t count, const Tokens& block) {
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) append(tokens, block);
  return tokens;
}

/// Text like prose: a Markov chain in which some words follow others more often.
Tokens prose(Random& random, std::size_t size, std::size_t words) {
  Tokens text;
  Token word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t next =
        random.chance(70) ? (static_cast<std::size_t>(word) * 7 + random.below(4)) % words : random.below(words);
    word = static_cast<Token>(next);
    text.push_back(word);
  }
  return text;
}

TEST(Loops, ProseIsNone) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    EXPECT_FALSE(find_loop(prose(random, 3000, 300))) << seed;
  }
}

TEST(Loops, ABlockThatComesAgainAndAgainIsFoundAndCutToOneWhateverItsLength) {
  for (std::size_t period = 1; period <= 300; ++period) {
    Tokens text = fresh(10000, period % 40);
    const std::size_t before = text.size();
    append(text, times(60, fresh(0, period)));
    const auto loop = find_loop(text);
    ASSERT_TRUE(loop) << period;
    EXPECT_EQ(loop->keep, before + period) << period;
    EXPECT_EQ(loop->period, period);
    EXPECT_EQ(loop->found, before + 48 + 2 * period) << period;
  }
}

TEST(Loops, ALoopThatIsNoPeriodIsCutBeforeTheSecondSaying) {
  const Tokens block = fresh(0, 60);
  Tokens text = fresh(1000, 20);
  append(text, block);
  append(text, fresh(2000, 33));
  const std::size_t keep = text.size();
  append(text, block);
  append(text, fresh(3000, 71));
  append(text, block);
  const auto loop = find_loop(text);
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->keep, keep);
  EXPECT_EQ(loop->found, text.size() - 12);  // at the 48th token of the block
}

TEST(Loops, ShortRepetitionsAreNone) {
  const Tokens rule(40, 5);  // ----------
  const Tokens row = {1, 2, 3, 2, 4, 2, 4, 2, 1, 9};
  Tokens zeros;  // 0, 0, 0, ...
  for (int i = 0; i < 24; ++i) append(zeros, {7, 8});
  for (const Tokens& repeated : {rule, times(6, row), zeros, times(2, fresh(100, 500))}) {
    Tokens text = fresh(5000, 30);
    append(text, repeated);
    append(text, fresh(6000, 30));
    EXPECT_FALSE(find_loop(text)) << repeated.size();
  }
}

/// "Item 10: see above. Item 11: see above. ...", with `filler` tokens that stay the same.
Tokens items(std::size_t count, std::size_t filler) {
  Tokens text;
  for (std::size_t i = 0; i < count; ++i) {
    append(text, {1, static_cast<Token>(10 + (10 + i) / 10), static_cast<Token>(10 + i % 10)});
    append(text, fresh(100, filler));
  }
  return text;
}

TEST(Loops, LoopsThatCountAreFound) {
  for (const std::size_t filler : {20U, 40U, 90U, 200U}) {
    Tokens text = fresh(1000, 25);
    append(text, items(20, filler));
    const auto loop = find_loop(text);
    ASSERT_TRUE(loop) << filler;
    EXPECT_EQ(loop->period, filler + 3);
    // One item is kept. If the exact rule finds the loop first, the next item's number is kept as well.
    EXPECT_GE(loop->keep, 25 + filler + 3) << filler;
    EXPECT_LE(loop->keep, 25 + filler + 3 + 3) << filler;
    EXPECT_LE(loop->found, 25 + 5 * (filler + 3) + 96) << filler;
  }
  // Numbered lines with different texts.
  Tokens list;
  for (Token i = 0; i < 60; ++i) {
    append(list, {1, 2, 10 + i / 10, 10 + i % 10, 3, 4, 5, 6});
    append(list, fresh(1000 + 10 * i, 3));
  }
  EXPECT_FALSE(find_loop(list));
}

TEST(Loops, WhatTheContextSaysAsOftenIsACopy) {
  const Tokens block = fresh(0, 100);
  Tokens file;
  for (Token i = 0; i < 5; ++i) {
    append(file, block);
    append(file, fresh(1000 + 100 * i, 30));
  }
  EXPECT_TRUE(find_loop(file));
  EXPECT_FALSE(find_loop(file, file));
  const Tokens counted = items(30, 40);
  EXPECT_FALSE(find_loop(counted, counted));

  // A block that the context has once and the output repeats is a loop, found a little later.
  Tokens context = fresh(5000, 10);
  append(context, block);
  const auto loop = find_loop(times(9, block), context);
  ASSERT_TRUE(loop);
  EXPECT_EQ(loop->keep, 100U);
  EXPECT_EQ(loop->found, 301U);  // the context does not have the block twice in a row
}

TEST(Loops, WhatStaysIsNoLoopAndEndsBeforeARepetition) {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    LoopRule rule;
    rule.window = 3 + random.below(10);
    rule.sayings = 2 + random.below(3);
    rule.counted_window = 10 + random.below(40);
    rule.seed = 2 + random.below(6);
    const Tokens context = prose(random, random.below(100), 5 + random.below(40));
    const Tokens output = prose(random, 400, 5 + random.below(40));
    const auto loop = find_loop(output, context, rule);
    if (!loop) continue;
    ++found;
    ASSERT_GT(loop->keep, 0U) << seed;
    ASSERT_LT(loop->keep, loop->found) << seed;
    ASSERT_LE(loop->found, output.size());
    EXPECT_EQ(output[loop->keep], output[loop->keep - loop->period]) << seed;
    const TokenSpan kept = TokenSpan(output).first(loop->keep);
    EXPECT_FALSE(find_loop(kept, context, rule)) << seed;
    EXPECT_FALSE(find_loop(TokenSpan(output).first(loop->found - 1), context, rule)) << seed;
  }
  EXPECT_GT(found, 100U);
}

std::size_t sayings(TokenSpan block, TokenSpan text) {
  std::size_t count = 0;
  for (std::size_t end = block.size(); end <= text.size(); ++end)
    count += std::ranges::equal(block, text.subspan(end - block.size(), block.size())) ? 1 : 0;
  return count;
}

TEST(Loops, TheExactRuleIsWhatCountingByHandFinds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    LoopRule rule;
    rule.window = 1 + random.below(6);
    rule.sayings = 2 + random.below(3);
    rule.counted_window = 1000;  // never reached
    const Tokens context = prose(random, random.below(60), 12);
    const Tokens output = prose(random, 80, 12);
    std::size_t expected = 0;
    for (std::size_t size = rule.window; size <= output.size() && expected == 0; ++size) {
      const TokenSpan text = TokenSpan(output).first(size);
      const TokenSpan block = text.last(rule.window);
      if (sayings(block, text) >= sayings(block, context) + rule.sayings) expected = size;
    }
    const auto loop = find_loop(output, context, rule);
    ASSERT_EQ(loop ? loop->found : 0, expected) << seed;
    if (loop) {
      const TokenSpan block = TokenSpan(output).subspan(expected - rule.window, rule.window);
      EXPECT_LE(sayings(block, TokenSpan(output).first(loop->keep)), std::max<std::size_t>(sayings(block, context), 1));
    }
  }
}

}  // namespace
}  // namespace reprise::llama::loops_test
