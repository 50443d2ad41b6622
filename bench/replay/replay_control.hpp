// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "reprise/control/cost_control.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"
#include "thread_clock.hpp"

namespace reprise::replay {

/// Sends the same number of best nodes of every draft: the result of a draft length chosen in hindsight.
struct SendBest {
  std::size_t nodes = 0;

  void begin() noexcept {}
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits&) const noexcept { return asked; }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   PassLimits room) const noexcept {
    const bool cut = nodes < std::min(sendable.size(), room.nodes);
    room.nodes = std::min(room.nodes, nodes);
    DraftChoice choice = SendAll().choose(draft, sendable, room);
    if (cut && choice.cut == Cut::none) choice.cut = Cut::budget;
    return choice;
  }
  void learn(const Outcome&, const PassReport&) noexcept {}
};
static_assert(DraftControl<SendBest>);

/// Sends the shortest prefix of every draft that holds all nodes agreeing with the recording. No other prefix is
/// better, as long as an accepted token costs less than a plain pass.
struct SendHindsight {
  const TokenSpan* coming = nullptr;  ///< the recorded tokens after the anchor; the replay keeps it current

  void begin() noexcept {}
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits&) const noexcept { return asked; }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) const noexcept {
    std::size_t agreed = 0;
    std::size_t nodes = 0;
    NodeIndex last = anchor_parent;
    for (std::size_t i = 0; i < sendable.size() && agreed < coming->size(); ++i) {
      const DraftNode& node = draft[static_cast<std::size_t>(sendable[i])];
      if (node.parent != last || node.token != (*coming)[agreed]) continue;
      last = sendable[i];
      ++agreed;
      nodes = i + 1;
    }
    return SendBest{nodes}.choose(draft, sendable, room);
  }
  void learn(const Outcome&, const PassReport&) noexcept {}
};
static_assert(DraftControl<SendHindsight>);

/// Sends the first tokens of every draft that are likelier than the cost that each adds to the pass: the rule of the
/// engine's author who knows what a row costs. It has no bound on losses, and it ignores that a plain pass yields a
/// token too.
struct SendMarginal {
  reprise::CostCurve curve;

  void begin() noexcept {}
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits&) const noexcept { return asked; }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) const noexcept {
    PassShape pass = room.plain;
    std::size_t nodes = 0;
    for (std::int64_t cost = curve.cost(pass); nodes < std::min(sendable.size(), room.nodes); ++nodes) {
      ++pass.rows;
      const std::int64_t before = std::exchange(cost, curve.cost(pass));
      const std::int64_t likely = draft[static_cast<std::size_t>(sendable[nodes])].path_probability.raw();
      if (likely * std::int64_t{cost_one} <= (cost - before) * std::int64_t{Probability::scale}) break;
    }
    return SendBest{nodes}.choose(draft, sendable, room);
  }
  void learn(const Outcome&, const PassReport&) noexcept {}
};
static_assert(DraftControl<SendMarginal>);

/// One of the controls of a replay, timed by ThreadClock.
class ReplayControl {
 public:
  ReplayControl() = default;
  // The types are named one by one. A requirement that C is a control asks whether C can be copied, and for a
  // ReplayControl that question would depend on itself.
  template <class C>
  requires(std::same_as<C, SendAll> || std::same_as<C, SendBest> || std::same_as<C, SendHindsight> ||
           std::same_as<C, SendMarginal> || std::same_as<C, CostControl>) explicit ReplayControl(C control)
      : control_(std::move(control)) {}

  void begin() {
    timed([&] { std::visit([](auto& control) { control.begin(); }, control_); });
  }
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits& room) const {
    DraftBudget answer;
    timed([&] { answer = std::visit([&](const auto& control) { return control.budget(asked, room); }, control_); });
    return answer;
  }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable, const PassLimits& room) {
    DraftChoice answer;
    timed([&] { answer = std::visit([&](auto& control) { return control.choose(draft, sendable, room); }, control_); });
    return answer;
  }
  void learn(const Outcome& outcome, const PassReport& report) {
    timed([&] { std::visit([&](auto& control) { control.learn(outcome, report); }, control_); });
  }

  /// The time spent in all calls.
  [[nodiscard]] std::uint64_t total_ns() const { return total_ns_; }
  /// The curve that the control learns; null if it learns none.
  [[nodiscard]] const LearnedCurve* learned() const {
    const auto* control = std::get_if<CostControl>(&control_);
    return control == nullptr || control->options().curve ? nullptr : &control->learned();
  }

 private:
  template <class Call>
  void timed(const Call& call) const {
    total_ns_ += ThreadClock::time(call);
  }

  std::variant<SendAll, SendBest, SendHindsight, SendMarginal, CostControl> control_;
  mutable std::uint64_t total_ns_ = 0;  // mutable: timing does not change the control
};
static_assert(DraftControl<ReplayControl>);

}  // namespace reprise::replay
