// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file What the next pass of a sequence has room for: every rule that bounds a draft, in one place.

#include <algorithm>
#include <cstddef>

#include "reprise/control/control.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/loop/open_round.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/loop/sequence.hpp"

namespace reprise {

/// Whether pad rows may fill a pass up to an allowed width.
[[nodiscard]] inline bool pads(const Capabilities& can) noexcept {
  return can.pad_token && !can.allowed_widths.empty();
}
/// Whether a pass of which something is rejected has to be run again as far as it was accepted.
[[nodiscard]] inline bool replays(const Capabilities& can) noexcept { return can.rollback == Rollback::snapshot; }

/// Paths that a draft may have: caller, engine and whoever drives the round (`shape`) all agree to a tree.
[[nodiscard]] inline std::size_t max_leaves(const Limits& limits, const Capabilities& can, DraftShape shape) noexcept {
  if (shape == DraftShape::chain || limits.draft.shape == DraftShape::chain) return 1;
  return std::max<std::size_t>(1, std::min(limits.draft.max_leaves, can.max_leaves));
}

/// The next pass without a draft.
[[nodiscard]] inline PassShape plain_shape(const Sequence& sequence) noexcept {
  return {1, sequence.pending().size(), sequence.context().size()};
}
/// What control is told of a pass with at most `rows` drafted rows.
[[nodiscard]] inline PassRoom pass_room(const Sequence& sequence, std::size_t rows) noexcept {
  const Capabilities& can = sequence.capabilities();
  return {plain_shape(sequence), rows, can.allowed_widths.values(), pads(can), replays(can)};
}

/// Rows that a pass may have, pending ones included.
[[nodiscard]] inline std::size_t most_rows(const Limits& limits, const Capabilities& can) noexcept {
  return std::min(limits.max_rows, can.max_rows);
}

/// How much of the round's draft fits, and which rule says so; finds the nodes that can be sent. `nodes`, `why`: at
/// most so many drafted rows, and what is counted when that binds. The pending tokens do fit.
inline Room find_room(const Sequence& sequence, const Limits& limits, std::size_t leaves, std::size_t nodes, Cut why,
                      OpenRound& round) noexcept {
  const Capabilities& can = sequence.capabilities();
  const std::size_t pending = sequence.pending().size();
  const std::size_t context_left = sequence.context_left(limits);
  const std::size_t tokens_left = sequence.tokens_left(limits);
  const std::size_t deepest = std::min({limits.draft.max_depth, can.max_depth, context_left, tokens_left});
  const Sendable found = round.select(leaves, deepest);
  Room room(round.draft().size());
  const auto bound_depth = [&](std::size_t depth, Cut cut) {
    if (depth == deepest) room.bound_draft(found.nodes, cut);
  };
  if (!found.too_deep) room.bound_draft(found.nodes, found.refused ? Cut::constraint : Cut::shape);
  bound_depth(limits.draft.max_depth, Cut::budget);
  room.bound(nodes, why);
  bound_depth(can.max_depth, Cut::depth);
  room.bound(can.max_rollback, Cut::rollback);
  if (replays(can) && pending > can.max_replay) room.bound(0, Cut::rollback);
  // Where a pass is run again, what it has accepted is pending in the next one, and fits there as it fitted here.
  room.bound(most_rows(limits, can) - pending, Cut::rows);
  room.bound(context_left, Cut::context);
  bound_depth(tokens_left, Cut::max_tokens);
  // Pad rows go on with a chain, and follow the anchor of a tree.
  if (round.chain() || deepest == 0) room.bound_rows(deepest);
  return room;
}

}  // namespace reprise
