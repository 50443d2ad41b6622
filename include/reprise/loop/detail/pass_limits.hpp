// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The limits of the next pass of a sequence.

#include <algorithm>
#include <cstddef>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/loop/detail/open_round.hpp"
#include "reprise/loop/detail/sequence.hpp"
#include "reprise/loop/round.hpp"

namespace reprise::inline v0 {

/// True if pad rows may fill a pass up to an allowed width.
[[nodiscard]] inline bool pads(const Capabilities& can) noexcept {
  return can.pad_token && !can.allowed_widths.empty();
}
/// True if the next pass must run the accepted tokens again after a rejection.
[[nodiscard]] inline bool replays(const Capabilities& can) noexcept { return can.rollback == Rollback::snapshot; }

/// Returns the maximum number of paths of a draft. It is above 1 only if the caller's limits, the engine and `shape`
/// all allow a tree. `shape` is the argument of Session::propose().
[[nodiscard]] inline std::size_t max_leaves(const Limits& limits, const Capabilities& can, DraftShape shape) noexcept {
  if (shape == DraftShape::chain || limits.draft.shape == DraftShape::chain) return 1;
  return std::max<std::size_t>(1, std::min(limits.draft.max_leaves, can.max_leaves));
}

/// Returns the shape of the next pass without a draft.
[[nodiscard]] inline PassShape plain_shape(const Sequence& sequence) noexcept {
  return {1, sequence.pending().size(), sequence.context().size()};
}
/// Returns the limits that control gets for a pass with at most `rows` drafted rows.
[[nodiscard]] inline PassLimits pass_limits(const Sequence& sequence, std::size_t rows) noexcept {
  const Capabilities& can = sequence.capabilities();
  return {plain_shape(sequence), rows, can.allowed_widths.values(), pads(can), replays(can)};
}

/// Returns the maximum number of rows of a pass, pending rows included.
[[nodiscard]] inline std::size_t most_rows(const Limits& limits, const Capabilities& can) noexcept {
  return std::min(limits.max_rows, can.max_rows);
}

/// Selects the nodes of the round's draft that the next pass can verify, and returns how many of them it may carry.
/// `max_nodes` is the caller's bound on drafted rows; `why` is the Cut to report if that bound applies. Precondition:
/// the pending tokens fit into a pass.
///
/// The rules below are in order of priority: if several allow the same number of nodes, the first one is reported.
inline DraftLimit limit_draft(const Sequence& sequence, const Limits& limits, std::size_t max_nodes, Cut why,
                              OpenRound& round) noexcept {
  const Capabilities& can = sequence.capabilities();
  const std::size_t pending = sequence.pending().size();
  const std::size_t context_left = sequence.context_left(limits);
  const std::size_t tokens_left = sequence.tokens_left(limits);
  const std::size_t deepest = std::min({limits.draft.max_depth, can.max_depth, context_left, tokens_left});
  const SelectedNodes selected = round.select(deepest);
  // A depth limit removes single nodes. `selected` counts the remaining nodes for the smallest depth limit only, so
  // only that limit is a rule.
  const auto by_depth = [&](std::size_t depth) { return depth == deepest ? selected.nodes : unlimited; };
  // The accepted tokens of a replayed pass are pending in the next pass. They fit into the next pass, because they fit
  // into this one. If more than max_replay tokens are pending, a pass without a draft brings them into the cache.
  const bool settles = replays(can) && pending > can.max_replay;

  struct Rule {
    std::size_t nodes;  // upper bound on nodes of this draft
    std::size_t rows;   // upper bound on drafted rows of any draft
    Cut cut;
  };
  const Rule rules[] = {
      {selected.refused && !selected.too_deep ? selected.nodes : unlimited, unlimited, Cut::constraint},
      {by_depth(limits.draft.max_depth), unlimited, Cut::budget},
      {max_nodes, max_nodes, why},
      {by_depth(can.max_depth), unlimited, Cut::depth},
      {can.max_rollback, can.max_rollback, Cut::rollback},
      {settles ? 0 : unlimited, settles ? 0 : unlimited, Cut::rollback},
      {most_rows(limits, can) - pending, most_rows(limits, can) - pending, Cut::rows},
      {context_left, context_left, Cut::context},
      {by_depth(tokens_left), unlimited, Cut::max_tokens},
  };
  DraftLimit limit{.nodes = round.draft().size(), .cut = round.malformed() ? Cut::shape : Cut::none};
  for (const Rule& rule : rules) {
    limit.rows = std::min(limit.rows, rule.rows);
    if (rule.nodes >= limit.nodes) continue;
    limit.nodes = rule.nodes;
    limit.cut = rule.cut;
  }
  // Pad rows extend a chain; in a tree they follow the anchor.
  if (round.chain() || deepest == 0) limit.rows = std::min(limit.rows, deepest);
  return limit;
}

}  // namespace reprise
