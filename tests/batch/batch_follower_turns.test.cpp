// SPDX-License-Identifier: Apache-2.0
// Slots that are not in every call: turns of groups, random absence, long pauses, calls that are repeated before their
// pass, and requests that go on in two slots. Their drafts must be as long as with every slot in each call.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {
namespace {

constexpr std::size_t slots = 8;

/// Token `at` of the text of a slot. It has a period of 400 with a few other tokens, so most drafts are long and right.
Token token_of(std::size_t slot, std::size_t at) {
  const std::size_t place = at % 400;
  auto hash = static_cast<std::uint32_t>(place * 2654435761U + slot * 97U);
  if (at >= 400 && at % 61 == 0) hash += static_cast<std::uint32_t>(at / 61) * 7919U;
  return static_cast<Token>((hash >> 8) % 5000);
}

/// What happens in a call.
struct Schedule {
  std::string name;
  std::function<bool(std::size_t slot, std::size_t call, Random&)> takes_part;
  std::function<bool(Random&)> repeats = [](Random&) { return false; };  // the engine asks again, without a pass
};

/// An engine with a clock. A slot takes part until it has `wanted` tokens.
struct Engine {
  BatchFollower<NgramDrafter<>> follower;
  bool timed = false;
  std::vector<std::vector<Token>> ids{slots};
  std::vector<std::size_t> texts{std::vector<std::size_t>(slots)};  // the number of the text of each slot
  std::chrono::nanoseconds now{1'000'000};
  std::size_t rows = 0;  // slots, summed over passes
  std::size_t tokens = 0;

  explicit Engine(const BatchOptions& options, bool with_clock)
      : follower(BatchFollower<NgramDrafter<>>::make(slots, NgramDrafter<>(), options).value()), timed(with_clock) {
    std::iota(texts.begin(), texts.end(), std::size_t{0});
    for (std::size_t slot = 0; slot < slots; ++slot)
      for (std::size_t i = 0; i < 400; ++i) ids[slot].push_back(token_of(slot, i));
  }
  /// The longer request of two slots goes on in both, also if the last passes of the slots have not been shown. A
  /// follower has no call for it: the other slot begins the text anew.
  void fork(std::size_t one, std::size_t other) {
    if (ids[one].size() < ids[other].size()) std::swap(one, other);
    ids[other] = ids[one];
    texts[other] = texts[one];
  }
  std::span<const TokenSpan> ask(const std::vector<FollowedSlot>& call) {
    return follower.draft(call, timed ? std::optional(now) : std::nullopt).value();
  }
  void pass(const std::vector<FollowedSlot>& call, std::span<const TokenSpan> drafts) {
    std::size_t drafted = 0;
    for (std::size_t i = 0; i < call.size(); ++i) {
      std::vector<Token>& text = ids[call[i].slot];
      const std::vector<Token> draft(drafts[i].begin(), drafts[i].end());
      drafted += draft.size();
      for (std::size_t k = 0;; ++k) {
        text.push_back(token_of(texts[call[i].slot], text.size()));
        ++tokens;
        if (k == draft.size() || draft[k] != text.back()) break;
      }
      ++rows;
    }
    // A drafted row costs 2% of a pass.
    now += std::chrono::microseconds(10'000 + 200 * drafted);
  }
};

/// `passes_a_fork`: after this number of passes of one slot, a request goes on in two slots; 0: never.
double tokens_a_pass(const Schedule& schedule, const BatchOptions& options, bool timed, std::size_t passes_a_fork) {
  constexpr std::size_t wanted = 2400;
  Engine engine(options, timed);
  Random random(1);
  Random forks(2);
  std::size_t forked = 0;
  for (std::size_t turn = 0; turn < 100'000; ++turn) {
    std::vector<FollowedSlot> call;
    bool left = false;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      if (engine.ids[slot].size() >= wanted) continue;
      left = true;
      if (schedule.takes_part(slot, turn, random)) call.push_back({.slot = slot, .ids = engine.ids[slot], .most = 16});
    }
    if (!left) break;
    if (call.empty()) continue;
    auto drafts = engine.ask(call);
    while (schedule.repeats(random)) drafts = engine.ask(call);
    engine.pass(call, drafts);
    if (passes_a_fork == 0 || engine.rows / passes_a_fork == forked) continue;
    forked = engine.rows / passes_a_fork;
    engine.fork(forks.below(slots), forks.below(slots));
  }
  return static_cast<double>(engine.tokens) / static_cast<double>(engine.rows);
}

std::vector<Schedule> schedules() {
  const auto all = [](std::size_t, std::size_t, Random&) { return true; };
  const auto groups = [](std::size_t count) {
    return [count](std::size_t slot, std::size_t call, Random&) { return slot % count == call % count; };
  };
  return {{"turns of 2", groups(2)},
          {"turns of 3", groups(3)},
          {"turns of 4", groups(4)},
          {"turns of 8", groups(8)},
          {"half of them absent", [](std::size_t, std::size_t, Random& random) { return random.below(2) == 0; }},
          {"a pause of 1,000 calls",
           [](std::size_t slot, std::size_t call, Random&) { return slot != 3 || call < 20 || call >= 1020; }},
          {"repeated calls", all, [](Random& random) { return random.below(3) == 0; }},
          {"turns of 2, repeated calls", groups(2), [](Random& random) { return random.below(3) == 0; }}};
}

// A draft that was asked for twice counts as lost until its slot shows tokens, or for good if the slot then has another
// text. So repeated calls draft less, and forks cost them more.
TEST(BatchFollowerTurns, DraftAsMuchAsAllSlotsInEachCall) {
  for (const std::size_t passes_a_fork : {0U, 20U, 70U})
    for (const bool timed : {false, true}) {
      BatchOptions options;
      if (!timed) options.curve = CostCurve::linear(0.02);
      const double all = tokens_a_pass({"all", [](auto...) { return true; }}, options, timed, passes_a_fork);
      EXPECT_GT(all, passes_a_fork == 0 ? 8.0 : 7.0);
      for (const Schedule& schedule : schedules()) {
        const bool repeats = schedule.name.ends_with("repeated calls");
        const bool costly = timed || (passes_a_fork > 0 && repeats);
        const double least = costly ? 0.9 : schedule.name == "repeated calls" ? 0.93 : 0.95;
        EXPECT_GE(tokens_a_pass(schedule, options, timed, passes_a_fork), least * all)
            << schedule.name << ", a fork after " << passes_a_fork << " passes" << (timed ? ", timed" : "");
      }
    }
}

TEST(BatchFollowerTurns, OnlyTheDraftedTokensThatHaveRunCount) {
  for (const std::size_t ran : {0U, 2U}) {
    BatchOptions options;
    options.curve = CostCurve::linear(0.02);
    Engine engine(options, false);
    std::size_t run = 0;
    for (int pass = 0; pass < 50; ++pass) {
      std::vector<FollowedSlot> call;
      for (std::size_t slot = 0; slot < slots; ++slot)
        if (slot % 2 == static_cast<std::size_t>(pass) % 2) call.push_back({.slot = slot, .ids = engine.ids[slot]});
      std::vector<TokenSpan> drafts;
      for (const TokenSpan draft : engine.ask(call)) drafts.push_back(draft.first(std::min(ran, draft.size())));
      for (std::size_t i = 0; i < call.size(); ++i) {
        EXPECT_TRUE(engine.follower.verified(call[i].slot, ran));
        run += drafts[i].size();
      }
      engine.pass(call, drafts);
    }
    std::vector<FollowedSlot> all;
    for (std::size_t slot = 0; slot < slots; ++slot) all.push_back({.slot = slot, .ids = engine.ids[slot]});
    static_cast<void>(engine.ask(all));
    Statistics counts;
    for (std::size_t slot = 0; slot < slots; ++slot) counts += engine.follower.statistics(slot);
    EXPECT_EQ(counts.drafted, run) << ran;
    EXPECT_EQ(counts.accepted, engine.tokens - engine.rows) << ran;
    EXPECT_LE(engine.follower.planner().loss_budget().debt(), LossBudget::burst / 2) << ran;
  }
  EXPECT_EQ(BatchFollower<NgramDrafter<>>::make(1).value().verified(1, 0).error().code, ErrorCode::invalid_argument);
}

TEST(BatchFollowerTurns, ADraftMayBeShortenedAfterTheCallOfOtherSlots) {
  BatchOptions options;
  options.curve = CostCurve::linear(0.02);
  Engine engine(options, false);
  for (std::size_t i = 0; i < 40; ++i) engine.ids[0].push_back(token_of(0, i));
  const std::vector<FollowedSlot> first = {{.slot = 0, .ids = engine.ids[0], .most = 16}};
  const std::vector<FollowedSlot> second = {{.slot = 1, .ids = engine.ids[1], .most = 16}};
  const TokenSpan drafted = engine.ask(first)[0];
  const std::vector<Token> draft(drafted.begin(), drafted.end());
  ASSERT_EQ(draft.size(), 16U);
  static_cast<void>(engine.ask(second));
  const LossBudget& budget = engine.follower.planner().loss_budget();
  const std::int64_t all = budget.debt();
  ASSERT_TRUE(engine.follower.verified(0, 4));
  EXPECT_LT(budget.debt(), all) << "the loss of the others is taken back";
  for (std::size_t i = 0; i < 4; ++i) engine.ids[0].push_back(draft[i]);
  engine.ids[0].push_back(-7);
  const std::vector<FollowedSlot> again = {{.slot = 0, .ids = engine.ids[0], .most = 0}};
  static_cast<void>(engine.ask(again));
  EXPECT_EQ(engine.follower.statistics(0).drafted, 4U);
  EXPECT_EQ(engine.follower.statistics(0).accepted, 4U);
}

}  // namespace
}  // namespace reprise::testing
