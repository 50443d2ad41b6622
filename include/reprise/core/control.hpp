// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// The limits of a pass. Control uses them to decide how much of a draft to send.
struct PassLimits {
  PassShape plain = {};                      ///< the pass without a draft: its rows are the pending tokens
  std::size_t nodes = unlimited;             ///< upper bound on drafted rows, pad rows included
  std::span<const std::size_t> widths = {};  ///< row counts that a pass with a draft may have, ascending; empty: any
  bool padded = false;                       ///< true: the pad token may fill rows up to an allowed width
  /// True if the rejection of any drafted token makes the next pass run the accepted tokens again (Rollback::snapshot).
  bool replayed = false;
  std::size_t asked = usual_draft_nodes;  ///< the round's upper bound on drafted nodes: that of budget(asked)
  std::size_t depth = unlimited;          ///< upper bound on the depth of drafted nodes, from 1
};

/// How much of a draft to send: the first `nodes` sendable nodes, then `padding` rows of the pad token.
struct DraftChoice {
  std::size_t nodes = 0;
  std::size_t padding = 0;
  Cut cut = Cut::none;  ///< why nodes that fit are not sent; none: all of them are sent
};

/// The result of a committed pass, for control to learn from.
struct PassReport {
  PassShape plain;                    ///< the shape that the pass would have had without a draft
  PassShape sent;                     ///< the actual shape of the pass
  std::size_t committed = 0;          ///< number of tokens that the pass committed
  std::optional<Duration> time = {};  ///< the duration of the pass, if the engine measures it
  /// True if the engine has restored its state (Rollback::snapshot), so that no row of the pass stays in the cache. In
  /// that case, the committed tokens become pending, after the tokens that were already pending.
  bool replayed = false;
  bool last = false;  ///< true if the pass ended the generation
};

/// Decides how much to draft. A strategy states how likely each token is, and the engine states its abilities. Control
/// combines both with the cost of a pass. The compiler cannot check these clauses:
///
///  K1  begin() starts a new sequence. Only settings and measurements of the engine remain from previous sequences.
///  K2  budget(asked, room) returns the budget for the strategy. No limit of this budget is looser than in `asked`. The
///      budget should exclude only nodes that are not worth sending. It is a hint: choose() decides. room.nodes is not
///      known at this point, and is `unlimited`.
///  K3  choose(draft, sendable, room) returns how many of the `sendable` nodes to send. They are indices into `draft`,
///      parents first, and every prefix of them is a valid draft. choice.nodes <= min(sendable.size(), room.nodes).
///      choice.nodes + choice.padding <= room.nodes, and padding is 0 unless room.padded. If room.widths is not empty,
///      room.plain.rows + nodes + padding is one of its widths, or nothing is drafted. A round may be planned
///      again: another call replaces the previous choice, and the same call returns the same choice. choose() may
///      reserve a part of a shared budget for the chosen pass, but it learns nothing.
///  K4  learn(outcome, report) is called once for each committed pass, before the strategy's feedback.
///  K5  Choices are a pure function of the calls above, the settings and, if there is one, the state of a shared
///      budget. Control reads no clock: times are arguments. None of these functions allocates or throws.
///  K6  A copy is a fork: the original and the copy continue independently, except that they share a shared budget.
///  K7  cancel() is optional. It is called if the chosen pass will not run, and gives back the reservation of choose().
///      It is also called when no pass is chosen, and then has no effect.
///  K8  abandon() is optional, beside cancel(). It is called if the chosen pass may have run, but will never be
///      learned. The reservation of choose() then counts as lost. Without a chosen pass, it has no effect.
///  K9  may_fork() is optional. It is called on a copy, and returns false if the copy must not be used as a fork.
///  K10 trust_probabilities() is optional. A session calls it first if its strategy is a CalibratedStrategy.
///  K11 usual_nodes() is optional. It returns the upper bound on drafted nodes for a round that has none of its own.
///
/// Threads: only one thread at a time may use a control; distinct copies may be used at the same time.
template <class C>
concept DraftControl = std::copyable<C> &&
    requires(C& control, const C& fixed, const DraftBudget& asked, DraftView draft, std::span<const NodeIndex> sendable,
             const PassLimits& room, const Outcome& outcome, const PassReport& report) {
  control.begin();
  { fixed.budget(asked, room) } -> std::convertible_to<DraftBudget>;
  { control.choose(draft, sendable, room) } -> std::convertible_to<DraftChoice>;
  control.learn(outcome, report);
};

namespace detail {

/// Control that wants to know if a chosen pass will not run; see K7.
template <class C>
concept CancellableControl = DraftControl<C> && requires(C& control) {
  control.cancel();
};

/// Control that counts a chosen pass as lost if nobody reports its result; see K8.
template <class C>
concept AbandonableControl = CancellableControl<C> && requires(C& control) {
  control.abandon();
};

/// Control that can refuse to be the control of a fork; see K9.
template <class C>
concept ForkCheckedControl = DraftControl<C> && requires(const C& control) {
  { control.may_fork() } -> std::convertible_to<bool>;
};

}  // namespace detail

/// Returns the largest number of drafted rows, at most `most`, that gives the pass an allowed width. Returns 0 if there
/// is none: a pass without a draft is always allowed.
[[nodiscard]] inline std::size_t widest(const PassLimits& room, std::size_t most) noexcept {
  if (room.widths.empty()) return most;
  std::size_t fitting = 0;
  for (const std::size_t width : room.widths)
    if (width >= room.plain.rows && width - room.plain.rows <= most) fitting = width - room.plain.rows;
  return fitting;
}

/// Sends every node that fits, and no pad rows: with fixed widths, the draft is cut to an allowed width. Use it for
/// drafts whose length the caller has set.
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

}}  // namespace reprise
