// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/streams.hpp"

namespace reprise::limits_test {
namespace {

using Tokens = std::vector<Token>;

reprise::detail::StopCheck check(const Limits& limits, const Tokens& output, Token next) {
  return reprise::detail::check_stop(limits, output, next);
}

TEST(FinishReason, IsNamedLikeTheEnumerator) {
  EXPECT_EQ(to_string(FinishReason::none), "none");
  EXPECT_EQ(to_string(FinishReason::eos), "eos");
  EXPECT_EQ(to_string(FinishReason::stop_id), "stop_id");
  EXPECT_EQ(to_string(FinishReason::stop_sequence), "stop_sequence");
  EXPECT_EQ(to_string(FinishReason::predicate), "predicate");
  EXPECT_EQ(to_string(FinishReason::max_tokens), "max_tokens");
  EXPECT_EQ(to_string(FinishReason::context_full), "context_full");
  EXPECT_EQ(to_string(FinishReason::caller), "caller");
}

TEST(Limits, LimitNothingByDefault) {
  const Limits limits;
  EXPECT_EQ(limits.max_tokens, unlimited);
  EXPECT_EQ(limits.max_context, unlimited);
  EXPECT_EQ(limits.max_rows, unlimited);
  for (const Token token : {-1, 0, 1, 2}) EXPECT_EQ(check(limits, {0, 1, 2}, token).reason, FinishReason::none);
}

TEST(NeverStop, Proceeds) { EXPECT_EQ(NeverStop()({}, 0), StopDecision::proceed); }

TEST(CheckStop, StopsAtAnyEndOfSequenceToken) {
  Limits limits;
  limits.eos = {2, -7};
  for (const Token eos : limits.eos) {
    const reprise::detail::StopCheck stop = check(limits, {1}, eos);
    EXPECT_EQ(stop.reason, FinishReason::eos);
    EXPECT_EQ(stop.trim, 1U);
  }
  EXPECT_EQ(check(limits, {2}, 1).reason, FinishReason::none) << "an earlier one has no effect";
}

TEST(CheckStop, StopsAtAStopId) {
  Limits limits;
  limits.stop_ids = {5, 6};
  EXPECT_EQ(check(limits, {}, 6).reason, FinishReason::stop_id);
  EXPECT_EQ(check(limits, {}, 6).trim, 1U);
  EXPECT_EQ(check(limits, {}, 7).reason, FinishReason::none);
}

TEST(CheckStop, EndOfSequenceGoesBeforeStopIdBeforeStopSequence) {
  Limits limits;
  limits.eos = {1};
  limits.stop_ids = {1, 2};
  limits.stop_sequences = {{9, 1}, {9, 2}};
  EXPECT_EQ(check(limits, {9}, 1).reason, FinishReason::eos);
  EXPECT_EQ(check(limits, {9}, 1).trim, 1U);
  EXPECT_EQ(check(limits, {9}, 2).reason, FinishReason::stop_id);
}

TEST(HeldBack, SingleTokensHoldNothingBack) {
  Limits limits;
  limits.eos = {1};
  limits.stop_ids = {2};
  limits.stop_sequences = {{3}};
  EXPECT_EQ(held_back(limits, Tokens{1, 2, 3}), 0U);
}

/// True if `whole` ends with `part`.
bool ends_with(const Tokens& whole, const Tokens& part) {
  return part.size() <= whole.size() && std::equal(part.rbegin(), part.rend(), whole.rbegin());
}

// A stream that withholds the last held_back() tokens never shows a token that a stop sequence removes. It withholds no
// more than necessary.
TEST(HeldBack, IsExactlyWhatALaterStopCouldTakeBack) {
  testing::SplitMix random(1);
  for (int round = 0; round < 20000; ++round) {
    Limits limits;
    for (std::size_t i = random.below(3); i-- > 0;) {
      Tokens sequence(random.below(5));
      for (Token& token : sequence) token = static_cast<Token>(random.below(2));
      limits.stop_sequences.push_back(sequence);
    }
    Tokens output(random.below(8));
    for (Token& token : output) token = static_cast<Token>(random.below(2));

    std::size_t expected = 0;
    for (const Tokens& sequence : limits.stop_sequences)
      for (std::size_t n = 0; n < sequence.size(); ++n)
        if (ends_with(output, Tokens(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(n))))
          expected = std::max(expected, n);
    ASSERT_EQ(held_back(limits, output), expected);

    for (const Token next : {0, 1}) {
      Tokens longer = output;
      longer.push_back(next);
      std::size_t trim = 0;
      for (const Tokens& sequence : limits.stop_sequences)
        if (!sequence.empty() && ends_with(longer, sequence)) trim = std::max(trim, sequence.size());
      const reprise::detail::StopCheck stop = reprise::detail::check_stop(limits, output, next);
      ASSERT_EQ(stop.trim, trim);
      ASSERT_EQ(stop.reason, trim == 0 ? FinishReason::none : FinishReason::stop_sequence);
      ASSERT_LE(trim, expected + 1) << "a token that was streamed is taken back";
    }
  }
}

}  // namespace
}  // namespace reprise::limits_test
