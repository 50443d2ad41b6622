// SPDX-License-Identifier: Apache-2.0
// The DraftControl concept from both sides, and SendAll. A near miss must also fail with a readable message; see
// tests/compile_fail.
#include "reprise/core/control.hpp"
#include "support/archetypes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace reprise::control_test {
namespace {

static_assert(DraftControl<archetype::Control> && DraftControl<SendAll>);

enum class Call : std::uint8_t { none, begin, budget, choose, learn };
/// A control without one of its functions.
template <Call missing>
struct Without {
  void begin() requires(missing != Call::begin) {}
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits&) const
      requires(missing != Call::budget) {
    return asked;
  }
  [[nodiscard]] DraftChoice choose(DraftView, std::span<const NodeIndex>, const PassLimits&) const
      requires(missing != Call::choose) {
    return {};
  }
  void learn(const Outcome&, const PassReport&) requires(missing != Call::learn) {}
};
static_assert(DraftControl<Without<Call::none>>);
static_assert(!DraftControl<Without<Call::begin>> && !DraftControl<Without<Call::budget>> &&
              !DraftControl<Without<Call::choose>> && !DraftControl<Without<Call::learn>>);

struct ChoosesWords : archetype::Control {
  [[nodiscard]] std::string choose(DraftView, std::span<const NodeIndex>, const PassLimits&) const { return "some"; }
};
static_assert(!DraftControl<ChoosesWords>);

struct ChoosesANumber : archetype::Control {
  [[nodiscard]] std::size_t choose(DraftView, std::span<const NodeIndex>, const PassLimits&) const { return 0; }
};
static_assert(!DraftControl<ChoosesANumber>, "a number alone does not say why");

struct ChoosesWhenMutable : archetype::Control {
  DraftChoice choose(DraftView, std::span<const NodeIndex>, const PassLimits&) { return {}; }
};
static_assert(DraftControl<ChoosesWhenMutable>, "choosing may reserve a part of a budget");
static_assert(!detail::CancellableControl<ChoosesWhenMutable>);

struct Cancels : archetype::Control {
  void cancel() {}
};
static_assert(detail::CancellableControl<Cancels> && !detail::AbandonableControl<Cancels> &&
              !detail::ForkCheckedControl<Cancels>);

struct Abandons : Cancels {
  void abandon() {}
  [[nodiscard]] bool may_fork() const { return true; }
};
static_assert(detail::AbandonableControl<Abandons> && detail::ForkCheckedControl<Abandons>);

struct AbandonsWithoutCancel : archetype::Control {
  void abandon() {}
};
static_assert(!detail::AbandonableControl<AbandonsWithoutCancel>);

struct BudgetsWhenMutable : archetype::Control {
  DraftBudget budget(const DraftBudget& asked, const PassLimits&) { return asked; }
};
static_assert(!DraftControl<BudgetsWhenMutable>);

struct LearnsWithoutReport : archetype::Control {
  void learn(const Outcome&) {}
};
static_assert(!DraftControl<LearnsWithoutReport>);

struct Unforkable : archetype::Control {
  std::unique_ptr<int> state;
};
static_assert(!DraftControl<Unforkable>, "a control that cannot be copied cannot be forked");

TEST(Control, HoldsForItsArchetypeAndRefusesNearMisses) { SUCCEED(); }

TEST(Widest, IsAllWhereAnyWidthIsAllowed) {
  EXPECT_EQ(widest({}, 7), 7U);
  EXPECT_EQ(widest({}, 0), 0U);
}

TEST(Widest, LeavesTheLargestWidthThatIsNotExceeded) {
  constexpr std::array<std::size_t, 4> widths = {1, 2, 4, 8};
  PassLimits room{.plain = {}, .widths = widths};
  EXPECT_EQ(widest(room, 100), 7U);
  EXPECT_EQ(widest(room, 7), 7U);
  EXPECT_EQ(widest(room, 6), 3U);
  EXPECT_EQ(widest(room, 0), 0U);
  room.plain.rows = 3;
  EXPECT_EQ(widest(room, 6), 5U);
  EXPECT_EQ(widest(room, 4), 1U);
  EXPECT_EQ(widest(room, 0), 0U) << "a pass without a draft is never forbidden";
  room.plain.rows = 9;
  EXPECT_EQ(widest(room, 6), 0U);
}

DraftChoice send_all(std::size_t sendable, const PassLimits& room) {
  const std::vector<NodeIndex> indices(sendable);
  return SendAll().choose({}, indices, room);
}

TEST(SendAll, SendsEverything) {
  const DraftChoice choice = send_all(5, {});
  EXPECT_EQ(choice.nodes, 5U);
  EXPECT_EQ(choice.padding, 0U);
  EXPECT_EQ(choice.cut, Cut::none);
}

TEST(SendAll, StaysWithinTheRoom) {
  const DraftChoice choice = send_all(5, {.plain = {}, .nodes = 3});
  EXPECT_EQ(choice.nodes, 3U);
  EXPECT_EQ(choice.cut, Cut::none) << "what limited the room says why";
}

TEST(SendAll, IsCutToAnAllowedWidthAndNeverPads) {
  constexpr std::array<std::size_t, 2> widths = {4, 8};
  const DraftChoice choice = send_all(5, {.plain = {}, .widths = widths, .padded = true});
  EXPECT_EQ(choice.nodes, 3U);
  EXPECT_EQ(choice.padding, 0U);
  EXPECT_EQ(choice.cut, Cut::width);
}

TEST(SendAll, AsksForWhatItIsAskedFor) {
  const DraftBudget asked{.max_nodes = 7, .max_depth = 3};
  EXPECT_EQ(SendAll().budget(asked, {}).max_nodes, 7U);
  EXPECT_EQ(SendAll().budget(asked, {}).max_depth, 3U);
}

}  // namespace
}  // namespace reprise::control_test
