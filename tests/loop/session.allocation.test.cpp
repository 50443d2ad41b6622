// SPDX-License-Identifier: Apache-2.0
// Sessions and followers when memory runs out in a call of the loop. See also property/allocation.test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::session_allocation_test {
namespace {

using testing::AllocationWatch;
using ::testing::ElementsAreArray;
using Tokens = std::vector<Token>;

/// Drafts two tokens, and counts the likeliest tokens that it is shown.
struct TwoTokens : archetype::Strategy {
  std::shared_ptr<std::size_t> ranked = std::make_shared<std::size_t>(0);
  void feedback(TokenSpan, const Outcome& outcome) { *ranked += outcome.top_k.size(); }
  void propose(TokenSpan, Draft& draft) {
    draft.extend({.token = 1});
    draft.extend({.token = 2});
  }
};

struct SessionWithoutMemory : ::testing::Test {
  Limits limits;
  Session<TwoTokens> session{TwoTokens(), 2};

  /// Commits the bonus token of an open pass.
  void commit(const Result<Pass>& pass, Token token) {
    ASSERT_TRUE(pass);
    ASSERT_TRUE(session.resolve(pass->ticket, std::array<Token, 1>{token}));
    ASSERT_TRUE(session.commit(pass->ticket));
  }
  /// Begins with 40 tokens. Then 90 more are pending, so that neither the context nor the round has room for a pass.
  void fill() {
    ASSERT_TRUE(session.begin(Tokens(40, 5)));
    ASSERT_TRUE(session.append(Tokens(90, 6), Origin::prompt, 40));
  }
};

TEST_F(SessionWithoutMemory, DropsTheLikeliestTokens) {
  for (const bool memory : {false, true}) {
    session = Session<TwoTokens>(TwoTokens(), 2);
    ASSERT_TRUE(session.begin(Tokens(40, 5)));
    session.propose(limits);
    const auto pass = session.plan();
    ASSERT_TRUE(pass);
    const Tokens likeliest(500, 3);
    {
      std::optional<AllocationWatch> watch;
      if (!memory) watch.emplace(1, 2);
      ASSERT_TRUE(session.report_top_k(pass->ticket, 0, likeliest));
    }
    commit(pass, 9);
    EXPECT_EQ(*session.strategy().ranked, memory ? 500U : 0U);
  }
}

/// Calls draft() of a follower with `ids`, after it has drafted for `before`, and lets each allocation fail once, with
/// the next one. Returns the number of failed calls. Afterwards the same call must succeed.
std::size_t failed_drafts(const Tokens& before, const Tokens& ids, std::optional<std::uint64_t> conversation) {
  std::size_t refusals = 0;
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    Follower follower{Session<TwoTokens>(TwoTokens(), 2)};
    EXPECT_TRUE(follower.draft(before, 16, {}, conversation));
    const bool drafted = [&] {
      const AllocationWatch watch(fail_at, 2);
      const bool done = follower.draft(ids, 16, {}, conversation).has_value();
      failed = watch.allocations() >= fail_at;
      return done;
    }();
    if (!drafted) ++refusals;
    EXPECT_TRUE(follower.draft(ids, 16, {}, conversation));
    EXPECT_THAT(follower.context(), ElementsAreArray(ids));
  }
  return refusals;
}
TEST(FollowerWithoutMemory, SaysSoAndGoesOn) {
  const Tokens before(40, 5);
  Tokens longer = before;
  longer.insert(longer.end(), 90, 6);
  EXPECT_GT(failed_drafts(before, longer, {}), 0U) << "the tokens after a pass";
  EXPECT_GT(failed_drafts(before, Tokens(200, 7), {}), 0U) << "another sequence";
  EXPECT_GT(failed_drafts(before, Tokens(200, 7), 1), 0U) << "replaced text of the same conversation";
}
TEST(FollowerWithoutMemory, SaysThatTheLimitsCouldNotBeKept) {
  const Tokens ids(40, 5);
  Follower follower{Session<TwoTokens>(TwoTokens(), 2)};
  {
    const AllocationWatch watch(1, 2);
    const auto stops = follower.stop_at(Limits());
    ASSERT_FALSE(stops);
    EXPECT_EQ(stops.error().code, ErrorCode::out_of_memory);
    const auto draft = follower.draft(ids);
    ASSERT_FALSE(draft);
    EXPECT_EQ(draft.error().code, ErrorCode::out_of_memory);
  }
  EXPECT_TRUE(follower.stop_at(Limits()));
  EXPECT_TRUE(follower.draft(ids));
  EXPECT_THAT(follower.context(), ElementsAreArray(ids));
}
TEST(FollowerWithoutMemory, SaysThatNoPassCouldBePlanned) {
  // As many tokens as the session has memory for: 64 more than it began with.
  const Tokens full(40 + 64, 5);
  Follower follower{Session<TwoTokens>(TwoTokens(), 2)};
  ASSERT_TRUE(follower.draft(TokenSpan(full).first(40), 0));
  const auto refused = [&] {
    const AllocationWatch watch(1, 4);
    return follower.draft(full);
  }();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
  EXPECT_TRUE(follower.draft(full));
}

}  // namespace
}  // namespace reprise::session_allocation_test
