// SPDX-License-Identifier: Apache-2.0
#include "reprise/headed_speculator.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "reprise/control/cost_curve.hpp"
#include "reprise/history/memory.hpp"

namespace reprise::testing::headed_speculator_test {
namespace {

const std::vector<Token> prompt = {1, 2, 3, 4, 5};
const Limits limits;

HeadedSpeculator begun(HeadCost head = {.draft = to_cost(0.1)}) {
  HeadedSpeculator session(NgramOptions(), {.curve = CostCurve::linear(0.01)}, head);
  Capabilities able;
  able.max_leaves = unlimited;
  EXPECT_TRUE(session.begin(prompt, able));
  return session;
}
/// Runs a pass in which the target picks the token 9 after the anchor, and other tokens after it.
void run_pass(HeadedSpeculator& session) {
  const Pass pass = session.plan().value();
  std::vector<Token> picks(pass.drafted + 1, Token{77});
  picks[0] = 9;
  ASSERT_TRUE(session.resolve(pass.ticket, picks));
  ASSERT_TRUE(session.commit(pass.ticket));
}

TEST(HeadedSpeculator, AsksTheHeadWhereTheLookupFindsNothing) {
  HeadedSpeculator session = begun();
  EXPECT_EQ(session.propose_lookup(limits, 1), 1U);
  EXPECT_GT(session.propose_lookup(limits), 1U);
  EXPECT_TRUE(session.add_head(std::vector<Token>{9, 8}, limits));
  const Pass pass = session.plan().value();
  EXPECT_EQ(pass.drafted, 2U);
  EXPECT_EQ(pass.batch[1], 9);
}
TEST(HeadedSpeculator, TakesNoMoreTokensThanItHasAskedFor) {
  HeadedSpeculator session = begun({.draft = to_cost(0.1), .token = to_cost(0.01)});
  const std::size_t tokens = session.propose_lookup(limits, 3);
  ASSERT_GT(tokens, 0U);
  EXPECT_TRUE(session.add_head(std::vector<Token>(80, Token{9}), limits));
  EXPECT_LE(session.plan().value().drafted, tokens);
  EXPECT_TRUE(session.add_head(std::vector<Token>(80, Token{9}), limits)) << "nothing was asked for";
}
TEST(HeadedSpeculator, AsksForNoHeadIfNothingFits) {
  HeadedSpeculator session = begun();
  Limits none;
  none.draft.max_nodes = 0;
  EXPECT_EQ(session.propose_lookup(none), 0U);
  const Limits last{.max_tokens = 1};
  EXPECT_EQ(session.propose_lookup(last), 0U) << "the pass itself gives the last token";
  const Limits three{.max_tokens = 3};
  EXPECT_LE(session.propose_lookup(three), 2U);
  HeadedSpeculator idle;
  EXPECT_EQ(idle.propose_lookup(limits), 0U) << "not begun";
  EXPECT_EQ(session.control().loss_budget().reserved(), std::int64_t{to_cost(0.1)}) << "that of the head alone";
}
// An engine may ask again without having planned a pass: it was busy, or its limits have changed.
TEST(HeadedSpeculator, LosesNothingIfARoundIsAskedForAgain) {
  HeadedSpeculator session(NgramOptions(), {.curve = CostCurve::linear(0.3)}, HeadCost{.draft = to_cost(0.1)});
  const std::vector<Token> text = {1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3};
  EXPECT_TRUE(session.begin(text));
  for (std::size_t i = 0; i < 20; ++i) session.propose_lookup(limits);
  EXPECT_GT(session.plan().value().drafted, 0U) << "there is a draft that could have been lost";
  EXPECT_LE(session.control().loss_budget().debt(), std::int64_t{to_cost(0.1)}) << "at most that of one head";
}
TEST(HeadedSpeculator, ForksWithWhatItHasLearned) {
  HeadedSpeculator session = begun();
  session.propose_lookup(limits);
  run_pass(session);
  HeadedSpeculator second = session.fork().value();
  EXPECT_GT(second.propose_lookup(limits), 0U);
  EXPECT_TRUE(second.add_head(std::vector<Token>{9, 8}, limits));
  run_pass(second);
  EXPECT_EQ(second.context().size(), session.context().size() + 2);
}
TEST(HeadedSpeculator, ChargesAHeadThatDraftsNothing) {
  HeadedSpeculator session = begun();
  EXPECT_GT(session.propose_lookup(limits), 0U);
  EXPECT_TRUE(session.add_head({}, limits));
  EXPECT_EQ(session.control().loss_budget().debt(), std::int64_t{to_cost(0.1)});
  run_pass(session);
  EXPECT_EQ(session.context().back(), 9);
}
// A head that answers nothing saves nothing, so it must not be asked for ever.
TEST(HeadedSpeculator, LearnsFromAHeadThatDraftsNothing) {
  HeadedSpeculator session = begun();
  std::size_t asked = 0;
  for (int i = 0; i < 200; ++i) {
    if (session.propose_lookup(limits) > 0) {
      ++asked;
      EXPECT_TRUE(session.add_head({}, limits));
    }
    const Pass pass = session.plan().value();
    const std::vector<Token> picks(pass.drafted + 1, Token{1000 + i});
    ASSERT_TRUE(session.resolve(pass.ticket, picks));
    ASSERT_TRUE(session.commit(pass.ticket));
  }
  EXPECT_LT(asked, 40U);
}
TEST(HeadedSpeculator, AsksNoHeadThatIsTooDear) {
  HeadedSpeculator session = begun({.draft = to_cost(2)});
  EXPECT_EQ(session.propose_lookup(limits), 0U);
}
TEST(HeadedSpeculator, HandsItsTextToAMemory) {
  Memory memory = Memory::make().value();
  HeadedSpeculator first(memory.options());
  EXPECT_TRUE(first.begin(std::vector<Token>{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  first.keep();
  HeadedSpeculator second(memory.options());
  EXPECT_TRUE(second.begin(std::vector<Token>{5, 11, 12, 13, 14}));
  second.propose_lookup(limits);
  EXPECT_EQ(second.propose(limits)[0].token, 15);
}
TEST(HeadedSpeculator, AsksNothingAfterTheEnd) {
  HeadedSpeculator session = begun();
  const Limits two{.max_tokens = 2};
  EXPECT_EQ(session.propose_lookup(two), 1U) << "the pass gives one more";
  run_pass(session);
  EXPECT_EQ(session.propose_lookup(two), 0U);
  run_pass(session);
  EXPECT_EQ(session.propose_lookup(two), 0U);
  EXPECT_TRUE(session.finished());
}

}  // namespace
}  // namespace reprise::testing::headed_speculator_test
