// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The algorithm. One round of speculative decoding (Leviathan et al. 2023, Stern et al. 2018; trees: Miao et al.
/// 2023, "SpecInfer") with picks instead of probabilities, in three steps:
///
///   select_nodes()  the nodes of a draft that this pass can verify
///   DraftLimit      how many of them the pass may carry, and which rule says so
///   walk()          follow the draft while it agrees with the target's picks, then take one token more
///
/// Only walk() decides what is committed, and it commits picks, never drafted tokens: a draft can be wrong in any
/// way without changing the output.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/detail/constraint.hpp"

namespace reprise::inline v0 {

/// The rows that a draft takes in a pass, in order: three arrays of one size, to write.
struct DraftRows {
  std::span<NodeIndex> nodes;       ///< the row's node: its index in the draft
  std::span<NodeIndex> parents;     ///< the row that it follows, or anchor_parent
  std::span<std::uint32_t> depths;  ///< 1: follows the anchor
};

/// What select_nodes() found.
struct SelectedNodes {
  std::size_t nodes = 0;   ///< rows written; every prefix of them is a draft of its own
  bool too_deep = false;   ///< a node was left out because of its depth
  bool refused = false;    ///< a node was left out because a constraint refused it
  bool auxiliary = false;  ///< a node that was written is auxiliary
};

/// Writes the nodes of `draft` that the pass can verify, in their order: no deeper than `max_depth`, not refused by
/// `constraints` (empty: none is), and after a parent that was written too. Form and budget hold already: the draft
/// enforces them (Draft::push). Cost: linear, unless a tree has nodes left out.
inline SelectedNodes select_nodes(DraftView draft, std::size_t max_depth, const DraftRows& rows,
                                  std::span<const Constraint> constraints = {}) noexcept {
  SelectedNodes found;
  for (std::size_t i = 0; i < draft.size() && found.nodes < rows.nodes.size(); ++i) {
    const DraftNode& node = draft[i];
    // The parent's row is its index less the nodes before it that were left out.
    auto parent = std::min(node.parent, static_cast<NodeIndex>(found.nodes) - 1);
    while (parent != anchor_parent && rows.nodes[static_cast<std::size_t>(parent)] > node.parent) --parent;
    if (node.parent != (parent == anchor_parent ? anchor_parent : rows.nodes[static_cast<std::size_t>(parent)]))
      continue;
    if (!constraints.empty() && constraints[i] == Constraint::refused) {
      found.refused = true;
      continue;
    }
    const std::uint32_t depth = parent == anchor_parent ? 1 : rows.depths[static_cast<std::size_t>(parent)] + 1;
    if (depth > max_depth) {
      found.too_deep = true;
      continue;
    }
    found.auxiliary = found.auxiliary || node.auxiliary;
    rows.nodes[found.nodes] = static_cast<NodeIndex>(i);
    rows.parents[found.nodes] = parent;
    rows.depths[found.nodes] = depth;
    ++found.nodes;
  }
  return found;
}

/// A token that a pass has committed.
struct CommittedToken {
  Token token = 0;
  std::size_t row = 0;   ///< the row of the batch that it was picked after: where its logits are
  bool drafted = false;  ///< it was in the draft
};

/// What a walk found.
struct Walk {
  std::size_t committed = 0;  ///< tokens written
  std::size_t accepted = 0;   ///< how many of them the draft had foreseen
  FinishReason finish = FinishReason::none;
  std::size_t trim = 0;       ///< tokens at the end that the returned output leaves out
  std::optional<Token> pick;  ///< the pick after the accepted path, if it was read
};

/// The session as walk() sees it. walk() reads all of it, and writes in one place: the agreed tokens go after the
/// output in `text`, so that predicate and stop rules see one contiguous output. Nothing else reads them there before
/// commit.
struct WalkInput {
  std::span<Token> text;    ///< the output so far, then room for all that the pass can commit
  std::size_t output = 0;   ///< tokens of output so far
  std::size_t context = 0;  ///< committed tokens in all
  std::size_t max_context = unlimited;
  TokenSpan draft;                       ///< the drafted rows
  std::span<const NodeIndex> parents;    ///< of each, the drafted row that it follows, or anchor_parent
  std::span<const bool> auxiliary = {};  ///< of each: it is never accepted; empty: all may be
  std::size_t anchor_row = 0;            ///< row of the anchor in the batch
  std::size_t picked_rows = unlimited;   ///< rows with a pick, from the anchor's on; reading stops there
  std::size_t most_picks = unlimited;    ///< picks to read at most
};

/// Where a walk goes. Room for the draft and, of `committed`, for one token more.
struct WalkOutput {
  std::span<CommittedToken> committed;
  std::span<NodeIndex> path;  ///< the accepted ones among the drafted rows
};

/// The place of a drafted row's pick among the picks: the anchor's comes first.
inline std::size_t pick_after(NodeIndex row) noexcept {
  return row == anchor_parent ? 0 : static_cast<std::size_t>(row) + 1;
}

/// The first drafted row that follows `parent` with `token` and may be accepted; anchor_parent when there is none.
inline NodeIndex find_child(const WalkInput& in, NodeIndex parent, Token token) noexcept {
  for (std::size_t row = pick_after(parent); row < in.draft.size(); ++row)
    if (in.parents[row] == parent && in.draft[row] == token && (in.auxiliary.empty() || !in.auxiliary[row]))
      return static_cast<NodeIndex>(row);
  return anchor_parent;
}

/// The picks along a path that the engine has walked itself, whatever the rows they followed.
struct PathPicks {
  TokenSpan tokens;
  std::size_t read = 0;
  Token operator[](std::size_t) noexcept { return tokens[read++]; }
};

/// Follows the draft along the picks. Writes `out`, and the agreed tokens after the output in `in.text`: scratch that a
/// cancelled round leaves behind unread. Each pick is read at most once, in order, none after the first that no child
/// agrees with nor after the token that ends generation.
template <Picks P, class Predicate>
Walk walk(const WalkInput& in, const Limits& limits, P&& picks, Predicate&& predicate, const WalkOutput& out) {
  Walk walked;
  NodeIndex last = anchor_parent;  // the row whose pick comes next
  for (std::size_t i = 0; i < in.most_picks; ++i) {
    const std::size_t pick = pick_after(last);
    if (pick >= in.picked_rows) break;
    const auto next = static_cast<Token>(picks[pick]);
    const TokenSpan output = in.text.first(in.output + i);  // agreed drafts are output already
    const NodeIndex child = find_child(in, last, next);
    const bool agrees = child != anchor_parent;
    const StopDecision decision = predicate(output, next);
    if (!agrees || decision == StopDecision::stop_before) walked.pick = next;
    if (decision == StopDecision::stop_before) {
      walked.finish = FinishReason::predicate;
      break;
    }
    out.committed[i] = {next, in.anchor_row + pick, agrees};
    walked.committed = i + 1;
    if (agrees) out.path[walked.accepted++] = child;

    const StopCheck stop = check_stop(limits, output, next);
    walked.finish = stop.reason;
    walked.trim = stop.trim;
    if (walked.finish == FinishReason::none && decision == StopDecision::stop_after)
      walked.finish = FinishReason::predicate;
    if (walked.finish == FinishReason::none && in.output + i + 1 >= limits.max_tokens)
      walked.finish = FinishReason::max_tokens;
    if (walked.finish == FinishReason::none && in.context + i + 1 >= in.max_context)
      walked.finish = FinishReason::context_full;
    if (walked.finish != FinishReason::none || !agrees) break;
    in.text[in.output + i] = next;
    last = child;
  }
  return walked;
}

}  // namespace reprise
