// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// The limits of a pass, for control to decide how much of a draft to send.
struct PassLimits {
  PassShape plain = {};                      ///< the pass without a draft: its rows are the pending tokens
  std::size_t nodes = unlimited;             ///< at most so many drafted tokens
  std::span<const std::size_t> widths = {};  ///< the rows that a pass may have, ascending; empty: any
  bool padded = false;                       ///< rows may be filled with the caller's pad token to reach a width
  bool replayed = false;  ///< unless all of a draft is accepted, the pass is run again as far as it was: in the next
                          ///< one (Rollback::snapshot)
};

/// How much of a draft to send: its first `nodes` sendable nodes, and `padding` rows of the pad token behind them.
struct DraftChoice {
  std::size_t nodes = 0;
  std::size_t padding = 0;
  Cut cut = Cut::none;  ///< why it is not the whole draft; none when it is
};

/// The result of a committed pass, for control to learn from.
struct PassReport {
  PassShape plain;                                    ///< the pass as it would have been without a draft
  PassShape sent;                                     ///< the pass as it was
  std::size_t committed = 0;                          ///< tokens it gave
  std::optional<std::chrono::nanoseconds> time = {};  ///< how long it took, if the engine measures that
  bool replayed = false;  ///< nothing of it stays in the cache: what it gave is pending, with what was before
};

/// Decides how much is drafted: the only part that knows what a pass costs. A strategy says how likely each token
/// is; the engine says what it can do; control weighs the two. What a compiler cannot check:
///
///  K1  begin() starts a new sequence: nothing of the previous one is left but settings, and what was learned of the
///      engine.
///  K2  budget(asked, room) narrows what the strategy is asked for: never more nodes than `asked` allows. What it
///      leaves out should not be worth sending, but this is a hint: choose() decides.
///  K3  choose(draft, sendable, room) answers how many of the `sendable` nodes (indices into `draft`, parents first,
///      every prefix a valid draft) to send: choice.nodes <= min(sendable.size(), room.nodes); nodes + padding is at
///      most room.nodes, and padding is 0 unless room.padded. With widths, room.plain.rows + nodes + padding is one of
///      them, or nothing is drafted. It changes nothing: a round may be planned again.
///  K4  learn(outcome, report) is called once for each committed pass, before the strategy's feedback.
///  K5  Choices are a pure function of the calls above and the settings: no clock; times come in as arguments. None
///      of these functions allocates or throws.
///  K6  A copy is a fork.
///
/// Threads: one at a time; distinct copies are independent.
template <class C>
concept DraftControl = std::copyable<C> &&
    requires(C& control, const C& fixed, const DraftBudget& asked, DraftView draft, std::span<const NodeIndex> sendable,
             const PassLimits& room, const Outcome& outcome, const PassReport& report) {
  control.begin();
  { fixed.budget(asked, room) } -> std::convertible_to<DraftBudget>;
  { fixed.choose(draft, sendable, room) } -> std::convertible_to<DraftChoice>;
  control.learn(outcome, report);
};

/// The largest number of drafted rows, at most `most`, with which a pass has an allowed width; 0 if there is none: a
/// pass without a draft is never forbidden.
[[nodiscard]] inline std::size_t widest(const PassLimits& room, std::size_t most) noexcept {
  if (room.widths.empty()) return most;
  std::size_t fitting = 0;
  for (const std::size_t width : room.widths)
    if (width >= room.plain.rows && width - room.plain.rows <= most) fitting = width - room.plain.rows;
  return fitting;
}

/// Sends all that fits: for drafts whose length was fixed by hand.
struct SendAll {
  void begin() noexcept {}
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits&) const noexcept { return asked; }
  [[nodiscard]] DraftChoice choose(DraftView, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) const noexcept {
    const std::size_t most = std::min(sendable.size(), room.nodes);
    const std::size_t nodes = widest(room, most);
    return {nodes, 0, nodes < most ? Cut::width : Cut::none};
  }
  void learn(const Outcome&, const PassReport&) noexcept {}
};
static_assert(DraftControl<SendAll>);

namespace archetype {

/// The least that models DraftControl: never drafts.
struct Control {
  void begin() {}
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits&) const { return asked; }
  [[nodiscard]] DraftChoice choose(DraftView, std::span<const NodeIndex>, const PassLimits&) const { return {}; }
  void learn(const Outcome&, const PassReport&) {}
};
static_assert(DraftControl<Control>);

}  // namespace archetype
}  // namespace reprise
