// SPDX-License-Identifier: Apache-2.0
// The properties of Sequence that session.test.cpp cannot see through a session.
#include "reprise/loop/detail/sequence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace reprise::sequence_test {
namespace {

using detail::Sequence;
using ::testing::ElementsAre;

struct SequenceTest : ::testing::Test {
  const std::vector<Token> prompt = {4, 5, 6};
  Sequence sequence;
  Limits limits;

  void SetUp() override { ASSERT_TRUE(sequence.begin(prompt, {.max_context = 20}, {})); }
  void commit(const std::vector<Token>& tokens, FinishReason finish = FinishReason::none, std::size_t trim = 0) {
    std::vector<CommittedToken> committed;
    for (const Token token : tokens) committed.push_back({token, 0, false});
    ASSERT_TRUE(sequence.reserve_extra(committed.size()));
    Walk walked;
    walked.finish = finish;
    walked.trim = trim;
    sequence.commit(committed, walked, sequence.pending().size() + committed.size() - 1);
    sequence.statistics().record({}, {}, 0, committed.size());  // as the session does
  }
};

TEST_F(SequenceTest, LeavesRoomForTheBonusToken) {
  limits.max_tokens = 5;
  limits.max_context = 9;
  EXPECT_EQ(sequence.tokens_left(limits), 4U);
  EXPECT_EQ(sequence.context_left(limits), 5U);
  commit({7, 8});
  EXPECT_EQ(sequence.tokens_left(limits), 2U);
  limits.max_tokens = 1;  // lowered below the current output
  EXPECT_EQ(sequence.tokens_left(limits), 0U);
  limits.max_context = unlimited;
  EXPECT_EQ(sequence.context_left(limits), 14U) << "the engine's";
}
TEST_F(SequenceTest, OffersTheRoomBehindTheOutput) {
  commit({7, 8});
  ASSERT_TRUE(sequence.reserve_extra(3));
  const auto text = sequence.output_and_room();
  ASSERT_GE(text.size(), 5U);
  EXPECT_EQ(text[0], 7);
  text[2] = 9;  // after the committed tokens
  EXPECT_THAT(sequence.output(), ElementsAre(7, 8));
}
TEST_F(SequenceTest, EndsAndGoesOnWithItsLimits) {
  limits.max_tokens = 0;
  sequence.apply(limits);
  EXPECT_EQ(sequence.finish_reason(), FinishReason::max_tokens);
  limits.max_tokens = 3;
  sequence.apply(limits);
  EXPECT_EQ(sequence.finish_reason(), FinishReason::none);
  commit({2}, FinishReason::eos, 1);
  sequence.apply(limits);
  EXPECT_EQ(sequence.finish_reason(), FinishReason::eos) << "no limit";
  EXPECT_TRUE(sequence.output().empty());
}
TEST_F(SequenceTest, EndsForTheCallerUnlessItHasEndedAtAToken) {
  for (const FinishReason limit : {FinishReason::none, FinishReason::max_tokens, FinishReason::context_full}) {
    commit({7}, limit);
    sequence.finish();
    EXPECT_EQ(sequence.finish_reason(), FinishReason::caller) << to_string(limit);
  }
  for (const FinishReason token : {FinishReason::eos, FinishReason::stop_id, FinishReason::predicate}) {
    commit({7}, token);
    sequence.finish();
    EXPECT_EQ(sequence.finish_reason(), token) << to_string(token);
  }
}
TEST_F(SequenceTest, CopiesAllOfItself) {
  commit({7, 8, 9}, FinishReason::eos, 1);
  static_cast<void>(sequence.take_settled(limits));
  Sequence copy;
  ASSERT_TRUE(copy.copy(sequence));
  EXPECT_THAT(copy.output(), ElementsAre(7, 8));
  EXPECT_EQ(copy.cached(), sequence.cached());
  EXPECT_EQ(copy.taken(), 2U);
  EXPECT_EQ(copy.finish_reason(), FinishReason::eos);
  EXPECT_EQ(copy.statistics(), sequence.statistics());
  EXPECT_EQ(copy.capabilities().max_context, 20U);
  ASSERT_TRUE(copy.truncate(1));
  EXPECT_EQ(sequence.context().size(), 6U);
}
TEST_F(SequenceTest, BeginsAgainInTheMemoryThatWasReserved) {
  ASSERT_TRUE(sequence.reserve(200));
  const Token* const memory = sequence.context().data();
  ASSERT_TRUE(sequence.begin(std::vector<Token>{1, 2, 3, 4}, {}, {}));
  EXPECT_THAT(sequence.context(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(sequence.context().data(), memory);
  EXPECT_EQ(sequence.memory_bytes(), 200 * sizeof(Token));
}
TEST_F(SequenceTest, ReservesTheMemoryOfLaterContextsToo) {
  ASSERT_TRUE(sequence.reserve(200));
  detail::Buffer<Token> old;
  ASSERT_TRUE(sequence.rebase(std::vector<Token>{1, 2}, {}, old));
  EXPECT_EQ(sequence.memory_bytes(), 200 * sizeof(Token));
}
TEST_F(SequenceTest, TruncatesToTheWholeContext) {
  commit({7, 8}, FinishReason::eos);
  ASSERT_TRUE(sequence.truncate(5));
  EXPECT_THAT(sequence.context(), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_EQ(sequence.finish_reason(), FinishReason::none);
}

}  // namespace
}  // namespace reprise::sequence_test
