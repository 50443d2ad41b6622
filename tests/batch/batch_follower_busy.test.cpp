// SPDX-License-Identifier: Apache-2.0
// A busy server: nearly every pass also holds the prompt of a new request, so few passes are timed as planned.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"

namespace reprise::testing {
namespace {

constexpr std::size_t prompt_size = 50;

struct Request {
  std::vector<Token> ids;
  std::size_t wanted = 0;
  std::uint32_t random = 0;

  std::uint32_t draw() { return random = random * 1664525U + 1013904223U; }
  /// Appends the next token: more than half of the time, one that has followed the last token before.
  Token grow() {
    auto next = static_cast<Token>((draw() >> 8) % 60);
    if ((random >> 16) % 100 < 55) {
      const auto before = std::find(ids.rbegin() + 1, ids.rend(), ids.back());
      if (before != ids.rend()) next = *(before - 1);
    }
    ids.push_back(next);
    return next;
  }
};
Request request(std::size_t number, std::size_t output) {
  Request made;
  made.random = static_cast<std::uint32_t>(number) * 7919U + 13U;
  for (std::size_t i = 0; i < prompt_size; ++i) made.ids.push_back(static_cast<Token>((made.draw() >> 8) % 60));
  made.wanted = prompt_size + output / 2 + number * 37 % output;
  return made;
}

/// Returns the time of `requests` requests, in plain passes. A drafted row takes `slope` of a plain pass.
double time_of(std::size_t slots, double slope, std::size_t most, std::optional<CostCurve> curve,
               std::size_t requests) {
  auto follower = BatchFollower<NgramDrafter<>>::make(slots, NgramDrafter<>(), {.curve = std::move(curve)}).value();
  std::vector<std::optional<Request>> running(slots);
  std::size_t begun = 0;
  std::size_t ended = 0;
  double time = 0;
  while (ended < requests) {
    std::size_t prompts = 0;
    std::vector<FollowedSlot> call;
    for (std::size_t i = 0; i < slots; ++i) {
      if (!running[i] && begun < requests) running[i] = request(begun++, 16), prompts += prompt_size - 1;
      if (running[i]) call.push_back({.slot = i, .ids = running[i]->ids, .most = most});
    }
    const auto drafts = follower.draft(call, std::chrono::nanoseconds(1 + std::llround(1e7 * time))).value();
    std::size_t drafted = 0;
    for (std::size_t i = 0; i < call.size(); ++i) {
      const std::vector<Token> draft(drafts[i].begin(), drafts[i].end());
      std::optional<Request>& one = running[call[i].slot];
      drafted += draft.size();
      for (std::size_t k = 0; one->ids.size() < one->wanted;)
        if (const Token token = one->grow(); k >= draft.size() || draft[k++] != token) break;
      if (one->ids.size() < one->wanted) continue;
      one.reset();
      ++ended;
    }
    follower.ran(call.size() + prompts + drafted);
    time += 1 + slope * static_cast<double>(drafted) + 0.002 * static_cast<double>(prompts);
  }
  return time;
}

TEST(BatchFollowerBusy, LosesLittleIfMostPassesHoldAPrompt) {
  struct Server {
    std::size_t slots;
    double slope;
  };
  for (const Server& server : {Server{32, 0.02}, {32, 0.05}, {64, 0.02}}) {
    const auto ratio = [&](std::size_t requests) {  // to the speed with the true costs
      return time_of(server.slots, server.slope, 16, CostCurve::linear(server.slope), requests) /
             time_of(server.slots, server.slope, 16, {}, requests);
    };
    EXPECT_GE(ratio(40 * server.slots), 0.985) << server.slots << " " << server.slope;   // about 600 passes
    EXPECT_GE(ratio(200 * server.slots), 0.995) << server.slots << " " << server.slope;  // about 3,000
  }
}

TEST(BatchFollowerBusy, DraftsWhatPaysIfMostPassesHoldAPrompt) {
  const auto speed = [](std::optional<CostCurve> curve) {
    return time_of(32, 0.002, 0, CostCurve::linear(0.002), 6400) / time_of(32, 0.002, 16, std::move(curve), 6400);
  };
  EXPECT_GE(speed({}), 0.975 * speed(CostCurve::linear(0.002)));
}

/// Two slots. In the last of four calls, some of them have another text. Returns the passes that were timed since.
std::uint64_t timed(bool first_goes_on, bool second_goes_on, std::optional<std::size_t> ran) {
  auto follower = BatchFollower<NgramDrafter<>>::make(2).value();
  std::vector<Token> first = {1, 2, 3};
  std::vector<Token> second = {4, 5, 6};
  std::size_t before = 0;
  for (int call = 0; call < 4; ++call) {
    first.push_back(100 + call);
    second.push_back(200 + call);
    if (call == 3) {
      before = follower.planner().learned(2).passes();
      if (!first_goes_on) first = {7, 8, 9};
      if (!second_goes_on) second = {10, 11, 12};
      if (ran) follower.ran(*ran);
    }
    const std::vector<FollowedSlot> slots = {{.slot = 0, .ids = first}, {.slot = 1, .ids = second}};
    static_cast<void>(follower.draft(slots, std::chrono::milliseconds(10 * (call + 1))).value());
  }
  return follower.planner().learned(2).passes() - before;
}

TEST(BatchFollowerBusy, APassIsTimedIfItsRowsAreReportedAndASlotGoesOn) {
  EXPECT_EQ(timed(true, true, {}), 1U);
  EXPECT_EQ(timed(true, true, 2), 1U);
  EXPECT_EQ(timed(true, false, {}), 0U) << "a prompt may have run";
  EXPECT_EQ(timed(true, false, 2), 1U);
  EXPECT_EQ(timed(false, true, 2), 1U);
  EXPECT_EQ(timed(true, false, 52), 0U) << "a prompt ran";
  EXPECT_EQ(timed(false, false, 2), 0U) << "the engine may have had no work";
}

}  // namespace
}  // namespace reprise::testing
