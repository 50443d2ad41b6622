// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/history/memory.hpp"
#include "reprise_testing/random.hpp"
#include "support/batch_follower_world.hpp"
#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/property_cases.hpp"
#include "support/random_target.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::testing::property_batch_follower_test {
namespace {

TEST(BatchFollowerProperty, DraftsWhatSessionsAndAPlannerDraftThatAreToldWhatHasHappened) {
  const std::uint64_t cases = property_cases(10);
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(run_batch_follower_world(choices), "") << run_again(seed);
  }
}

TEST(BatchFollowerProperty, EveryHistoryThatBytesDescribeIsAgreedOn) {
  expect_no_fault_of_bytes("batch_follower", [](Choices& choices) { return run_batch_follower_world(choices); });
}

TEST(BatchFollowerProperty, RandomHistoriesMeetEveryEvent) {
  BatchFollowerCoverage all;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Choices choices(seed);
    static_cast<void>(run_batch_follower_world(choices, &all));
  }
  EXPECT_GT(all.drafted, 50'000U);
  EXPECT_GT(all.accepted, 20'000U);
  EXPECT_GT(all.cut, 300U);
  EXPECT_GT(all.appended, 500U);
  EXPECT_GT(all.begun, 1000U);
  EXPECT_GT(all.moved, 100U);
  EXPECT_GT(all.cancelled, 1000U);
  EXPECT_GT(all.shared, 2000U);
  EXPECT_GT(all.timed, 500U);
  EXPECT_GT(all.replaced, 100U);
  EXPECT_GT(all.assigned, 500U);
  EXPECT_GT(all.truncated, 100U);
  EXPECT_GT(all.edited, 100U);
  EXPECT_GT(all.continued, 1'000U);
}

NgramDrafter<> strategy_of(const Memory& memory, Memory::Salt salt) {
  NgramOptions options = memory.options(salt);
  options.top_k = 2;
  return NgramDrafter<>(options);
}

/// Runs requests of a tenant in random slots. Requests of a neighbour run beside them, and before them in the same
/// slots. Returns true if the tokens of each draft are those of a session that knows neither the neighbour nor the
/// slots. The session is told the sizes of the drafts, because the planner may choose them by all slots.
bool drafts_as_if_alone(std::uint64_t seed, bool common_text) {
  Choices choices(seed);
  const RandomTarget target(choices);
  const RandomTarget other_target(choices);
  const MemoryOptions settings{
      .max_bytes = 1 << 14, .next_token_bytes = 1 << 14, .rankings = true, .key = 5, .shared_calibration = false};
  const Memory memory = Memory::make(settings).value();
  const Memory memory_alone = Memory::make(settings).value();
  const Memory::Salt neighbour = common_text ? 1 : 2;
  const BatchOptions free{.curve = CostCurve::linear(0)};
  auto follower = BatchFollower<NgramDrafter<>>::make(4, NgramDrafter<>(), free).value();
  const Limits limits{.draft = BatchPlanner(free).budget({.max_nodes = unlimited}, {})};
  std::vector<std::vector<Token>> ids(follower.slots());
  for (std::size_t request = 0; request < 6; ++request) {
    Session<NgramDrafter<>> alone(strategy_of(memory_alone, 1));
    const std::size_t own = choices.below(ids.size());
    EXPECT_TRUE(follower.assign(own, strategy_of(memory, 1)));
    ids[own] = target.some_tokens(choices, 1, 20);
    EXPECT_TRUE(alone.begin(ids[own]));
    for (std::size_t left = 12; left > 0; --left) {
      std::vector<FollowedSlot> call;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i != own && (ids[i].empty() || choices.chance(20))) {
          EXPECT_TRUE(follower.assign(i, strategy_of(memory, neighbour)));
          ids[i] = choices.chance(50) ? ids[own] : other_target.some_tokens(choices, 1, 20);
        }
        call.push_back({.slot = i, .ids = ids[i]});
      }
      const auto drafts = follower.draft(call).value();
      alone.propose(limits, DraftShape::chain);
      const Pass pass = alone.plan(drafts[own].size()).value();
      if (!std::ranges::equal(drafts[own], pass.batch.last(pass.drafted))) return false;
      const std::vector<Token> likeliest = {target.pick(ids[own]), 1};
      EXPECT_TRUE(follower.report_top_k(own, 0, likeliest));
      EXPECT_TRUE(alone.report_top_k(pass.ticket, 0, likeliest));
      for (std::size_t i = 0; i < ids.size(); ++i) (i == own ? target : other_target).run_pass(ids[i], drafts[i]);
      if (left == 1) break;  // no call shows the result of the last pass
      EXPECT_TRUE(alone.resolve(pass.ticket, TokenSpan(ids[own]).subspan(alone.context().size())));
      EXPECT_TRUE(alone.commit(pass.ticket));
    }
    follower.forget(own);
    alone.keep();
    ids[own].clear();
  }
  return true;
}

TEST(BatchFollowerProperty, ANeighbourChangesNoTokenOfATenantsDrafts) {
  const std::uint64_t cases = property_cases(500);
  const std::uint64_t first = property_seed();
  std::uint64_t noticed = 0;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    ASSERT_TRUE(drafts_as_if_alone(seed, false)) << run_again(seed);
    noticed += drafts_as_if_alone(seed, true) ? 0 : 1;
  }
  EXPECT_GE(noticed, cases / 2) << "a common history is not noticed";
}

TEST(BatchFollower, DraftsLongWhereWholeDraftsAreAccepted) {
  std::vector<Token> text;
  for (Token i = 0; i < 6000; ++i) text.push_back(i % 300);
  for (const double row : {0.0, 0.02, 0.05, 0.09})
    for (const bool told : {true, false}) {
      BatchOptions options;
      if (told) options.curve = CostCurve::linear(row);
      auto follower = BatchFollower<NgramDrafter<>>::make(1, NgramDrafter<>(), options).value();
      Random noise(1);
      std::size_t at = 350;
      std::size_t passes = 0;
      for (std::chrono::nanoseconds now{1}; passes < 99; ++passes) {
        const FollowedSlot slot{.slot = 0, .ids = {text.data(), at}};
        const std::size_t drafted = follower.draft({&slot, 1}, now).value()[0].size();
        if (drafted >= 48) break;
        at += drafted + 1;
        now += noisy_time(1 + row * static_cast<double>(drafted), noise);
      }
      EXPECT_LT(passes, told ? 10U : 40U) << row;
    }
}

TEST(BatchFollower, RefusesWhatIsWrongBeforeAnythingChanges) {
  auto follower = BatchFollower<NgramDrafter<>>::make(2).value();
  const std::vector<Token> ids = {1, 2, 3};
  const std::vector<FollowedSlot> one = {{.slot = 1, .ids = ids}};
  ASSERT_TRUE(follower.draft(one));
  const auto refused = [&](const std::vector<FollowedSlot>& slots) {
    const auto drafts = follower.draft(slots);
    return drafts ? ErrorCode{} : drafts.error().code;
  };
  EXPECT_EQ(refused({{.slot = 2, .ids = ids}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({{.slot = 0, .ids = ids}, {.slot = 0, .ids = ids}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({{.slot = 0, .ids = {}}}), ErrorCode::empty_context);
  EXPECT_TRUE(std::ranges::equal(follower.context(1), ids));
  EXPECT_TRUE(follower.context(0).empty());
  EXPECT_FALSE(follower.report_top_k(0, 0, ids)) << "no pass";
  EXPECT_TRUE(follower.report_top_k(1, 0, ids));
  EXPECT_FALSE(follower.assign(2, NgramDrafter<>()));
  follower.forget(1);
  EXPECT_TRUE(follower.context(1).empty());
  EXPECT_TRUE(follower.context(7).empty());
  EXPECT_EQ(follower.statistics(7), Statistics());
}
TEST(BatchFollower, SaysThatThereIsNoMemoryForMoreSlotsThanCanBeCounted) {
  for (const std::size_t slots : {unlimited, unlimited / 1000}) {
    const auto made = BatchFollower<NgramDrafter<>>::make(slots);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(made.error().value, slots);
  }
}

TEST(BatchFollower, KeepsToTheStatedMemoryUnderManyRequests) {
  constexpr std::size_t longest = 1000;
  std::vector<std::vector<Token>> texts(4);
  auto follower = BatchFollower<NgramDrafter<>>::make(texts.size()).value();
  Random random(1);
  std::size_t most = 0;
  for (std::uint64_t left = property_cases(100); left > 0; --left) {
    std::vector<FollowedSlot> call;
    for (std::vector<Token>& ids : texts) {
      ids.resize(1 + random.below(longest));
      for (Token& token : ids) token = static_cast<Token>(random.below(1 << 30));
      call.push_back({.slot = call.size(), .ids = ids});
    }
    ASSERT_TRUE(follower.draft(call));
    most = std::max(most, follower.memory_bytes());
  }
  EXPECT_LE(most, texts.size() * ((42 << 10) + 80 * longest));
  RecordProperty("bytes", std::to_string(most));
}

}  // namespace
}  // namespace reprise::testing::property_batch_follower_test
