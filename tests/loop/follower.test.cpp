// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/follower.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/control/cost_curve.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/speculator.hpp"

namespace reprise::testing::loop_follower_test {
namespace {

using std::chrono::nanoseconds;
using Tokens = std::vector<Token>;

Follower<Speculator> told(double per_row = 0.0) { return Follower(Speculator(CostCurve::linear(per_row))); }

Tokens drafted(Follower<Speculator>& follower, const Tokens& ids, std::size_t most = 16,
               std::optional<nanoseconds> now = {}, std::optional<std::uint64_t> conversation = {}) {
  const auto draft = follower.draft(ids, most, now, conversation);
  EXPECT_TRUE(draft) << (draft ? "" : draft.error().message);
  return draft ? Tokens(draft->begin(), draft->end()) : Tokens();
}

// Text in which the next tokens are clear: 1 2 ... 9 again and again.
Tokens counting(std::size_t size) {
  Tokens tokens(size);
  for (std::size_t i = 0; i < size; ++i) tokens[i] = static_cast<Token>(1 + i % 9);
  return tokens;
}

TEST(Follower, DraftsAfterTheIdsAndCountsAcceptedTokens) {
  auto follower = told();
  Tokens ids = counting(30);
  const Tokens draft = drafted(follower, ids, 5);
  EXPECT_EQ(draft, (Tokens{4, 5, 6, 7, 8}));
  ids.insert(ids.end(), {4, 5, 6, 1});  // three accepted, and the target's own token
  static_cast<void>(drafted(follower, ids, 5));
  const Statistics counts = follower.statistics();
  EXPECT_EQ(counts.passes, 1U);
  EXPECT_EQ(counts.tokens, 4U);
  EXPECT_EQ(counts.accepted, 3U);
  EXPECT_EQ(counts.drafted, 5U);
  EXPECT_TRUE(std::ranges::equal(follower.context(), ids));
}

TEST(Follower, IsToldThatTokensHaveRunAlsoIfNoPassWaits) {
  auto follower = told();
  follower.verified(0);
  Tokens ids = counting(30);
  const std::size_t size = drafted(follower, ids, 5).size();
  ids.insert(ids.end(), {4, 5, 1});
  EXPECT_EQ(drafted(follower, ids, 0).size(), 0U);
  follower.verified(3);
  EXPECT_EQ(follower.statistics().drafted, size);
  EXPECT_EQ(follower.statistics().accepted, 2U);
}

TEST(Follower, CountsOnlyTheDraftedTokensThatHaveRun) {
  for (const std::size_t ran : {0U, 1U, 3U, 16U}) {
    auto follower = told(0.02);
    Tokens ids = counting(30);
    std::size_t accepted = 0;
    std::size_t run = 0;
    for (int pass = 0; pass < 40; ++pass) {
      const Tokens draft = drafted(follower, ids);
      follower.verified(ran);
      const std::size_t sent = std::min(ran, draft.size());
      accepted += sent;
      run += sent;
      ids = counting(ids.size() + sent + 1);  // the bonus token equals the next drafted token, which has not run
    }
    static_cast<void>(drafted(follower, ids));
    EXPECT_EQ(follower.statistics().drafted, run) << ran;
    EXPECT_EQ(follower.statistics().accepted, accepted) << ran;
    EXPECT_EQ(follower.statistics().tokens, accepted + 40) << ran;
    EXPECT_EQ(follower.statistics().passes, 40U) << ran;
  }
}

TEST(Follower, ACallBeforeEachPassIsRepeatedAndDraftsAsMuch) {
  std::size_t passes[2] = {0, 0};
  for (const std::size_t repeats : {0U, 1U}) {
    auto follower = told(0.02);
    Tokens ids = counting(30);
    while (ids.size() < 2000) {
      Tokens draft = drafted(follower, ids);
      for (std::size_t i = 0; i < 2 * repeats; ++i) draft = drafted(follower, ids);
      ++passes[repeats];
      ids = counting(ids.size() + draft.size() + 1);
    }
    EXPECT_EQ(follower.statistics().accepted, follower.statistics().drafted);
  }
  EXPECT_EQ(passes[0], passes[1]);
}

TEST(Follower, ACallThatIsRepeatedWithoutEndLosesNoMoreThanTheBudget) {
  auto follower = told(0.02);
  const Tokens ids = counting(30);
  while (!drafted(follower, ids).empty()) {
  }
  EXPECT_GT(follower.session().control().loss_budget().debt(), LossBudget::burst / 2);
  EXPECT_FALSE(drafted(follower, counting(31)).empty()) << "tokens show that those passes did not run";
  EXPECT_LT(follower.session().control().loss_budget().debt(), LossBudget::burst / 10);
}

TEST(Follower, TheNextRequestHasTheStrategyAndTheCalibrationThatWereGivenForIt) {
  auto follower = told();
  Tokens ids = counting(30);
  const Tokens draft = drafted(follower, ids);
  ids.insert(ids.end(), draft.begin(), draft.end());
  static_cast<void>(drafted(follower, ids));
  NgramDrafter<> next;
  next.assume(follower.session().strategy().calibration());
  EXPECT_NE(next.calibration(), follower.session().strategy().calibration()) << "only the next begin() uses it";
  follower.assign(next);
  EXPECT_TRUE(follower.context().empty());
  static_cast<void>(drafted(follower, {1, 2}));
  EXPECT_EQ(follower.session().strategy().calibration(), next.options().prior.state());
  EXPECT_EQ(follower.statistics().passes, 1U) << "the counts go on";
}

TEST(Follower, DraftsChainsEvenIfTheSessionWasBegunWithTrees) {
  Speculator session(CostCurve::linear(0.0));
  const Tokens ids = {1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2, 4, 1, 2};
  ASSERT_TRUE(session.begin(ids, {.max_leaves = 16}));
  Follower follower(std::move(session));
  EXPECT_TRUE(std::ranges::equal(follower.context(), ids)) << "a session that has begun goes on";
  static_cast<void>(drafted(follower, ids, 8));
  static_cast<void>(drafted(follower, {1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2, 4, 1, 2, 3}, 8));
  EXPECT_EQ(follower.statistics().count(Cut::width), 0U);
  EXPECT_EQ(follower.session().capabilities().max_leaves, 16U);
}

TEST(Follower, NoIdsAreRefusedAndChangeNothing) {
  auto follower = told();
  Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 2));
  const auto refused = follower.draft({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::empty_context);
  EXPECT_TRUE(std::ranges::equal(follower.context(), ids));
  EXPECT_FALSE(follower.draft({}, 16, {}, 7));
  ids.insert(ids.end(), {4, 5, 6});
  EXPECT_EQ(drafted(follower, ids, 2), (Tokens{7, 8}));
  EXPECT_EQ(follower.statistics().accepted, 2U) << "the draft before the refused call counts";
}

TEST(Follower, NewTokensAloneFollowTheKnownOnes) {
  auto follower = told();
  const Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 2));
  const Tokens fresh = {4, 5, 6};
  for (const std::size_t wrong : {std::size_t{1}, ids.size() - 1, ids.size() + 1, unlimited}) {
    const auto refused = follower.draft(fresh, 2, {}, {}, wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(refused.error().limit, ids.size());
  }
  EXPECT_FALSE(follower.draft(fresh, 2, {}, 7, ids.size())) << "another conversation begins with all tokens";
  EXPECT_TRUE(std::ranges::equal(follower.context(), ids));
  const auto draft = follower.draft(fresh, 2, {}, {}, ids.size());
  ASSERT_TRUE(draft);
  EXPECT_TRUE(std::ranges::equal(*draft, Tokens{7, 8}));
  EXPECT_EQ(follower.statistics().accepted, 2U) << "the draft before the refused calls counts";
  EXPECT_TRUE(follower.draft({}, 2, {}, {}, ids.size() + 3)) << "no new tokens";
  EXPECT_EQ(follower.context().size(), ids.size() + 3);
  follower.forget();
  EXPECT_FALSE(follower.draft(fresh, 2, {}, {}, ids.size() + 3)) << "a forgotten sequence does not go on";
}

TEST(Follower, ReserveKeepsTheSequenceAndVoidsTheDraft) {
  auto follower = told();
  Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 3));
  ASSERT_TRUE(follower.reserve(1000));
  ids.insert(ids.end(), {4, 5, 6, 7});
  EXPECT_EQ(drafted(follower, ids, 2), (Tokens{8, 9}));
  EXPECT_EQ(follower.statistics().passes, 0U);
  EXPECT_GE(follower.memory_bytes(), 1000 * sizeof(Token));
}

}  // namespace
}  // namespace reprise::testing::loop_follower_test
