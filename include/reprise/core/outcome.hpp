// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// Why a pass carried no draft, or fewer tokens than the strategy proposed. Nodes that Draft::push() refused because
/// the budget was used up do not count as proposed. If several rules allow equally few tokens, the rule that the
/// session checks first is reported; the session's order differs from the order below.
enum class Cut : std::uint8_t {
  none,            ///< every proposed token was sent
  no_match,        ///< the strategy proposed nothing
  unlikely,        ///< no candidate was likely enough to be proposed, or more nodes were not worth their cost
  throttled,       ///< the loss budget shortened the draft, or control or the strategy skips drafting for now
  budget,          ///< a limit of Limits::draft, of the session or of control, or the number passed to plan()
  shape,           ///< the strategy pushed a malformed node, which the draft refused
  depth,           ///< nodes deeper than Capabilities::max_depth
  rows,            ///< Limits::max_rows or Capabilities::max_rows
  width,           ///< more tokens would be sent if other widths were allowed
  rollback,        ///< more drafted rows than Capabilities::max_rollback, or more pending tokens than max_replay
  context,         ///< Limits::max_context or Capabilities::max_context
  max_tokens,      ///< Limits::max_tokens
  out_of_memory,   ///< an allocation failed: the pass carries no draft
  constraint,      ///< Session::constrain() refused nodes: a grammar, or another rule
  strategy_threw,  ///< the strategy threw: no drafts until begin() or rebase()
};
inline constexpr std::size_t cut_count = 15;

constexpr std::string_view to_string(Cut cut) noexcept {
  constexpr std::string_view names[cut_count] = {
      "none",  "no_match", "unlikely", "throttled",  "budget",        "shape",      "depth",         "rows",
      "width", "rollback", "context",  "max_tokens", "out_of_memory", "constraint", "strategy_threw"};
  return names[static_cast<std::size_t>(cut)];
}

/// The result of a draft, for DraftControl::learn() and DraftStrategy::feedback(). The views are valid only during the
/// call.
struct Outcome {
  /// One of the target's likeliest tokens after a row, as reported by a TopKVerifier.
  struct RankedToken {
    NodeIndex after = anchor_parent;  ///< the node of that row; anchor_parent: the anchor
    std::uint16_t rank = 0;           ///< 0 is the target's first choice
    Token token = 0;
  };

  DraftView draft;                  ///< the nodes as proposed, before any cut; then the pad rows of the pass, if any
  std::span<const NodeIndex> sent;  ///< the nodes in the pass, in row order
  std::span<const NodeIndex> accepted;  ///< the committed path, from the anchor's child on
  /// The target's token after that path, even if a predicate refused it; nullopt if it was not read.
  std::optional<Token> pick;
  Cut cut = Cut::none;                 ///< why fewer nodes were sent than proposed, or none was proposed
  std::span<const RankedToken> top_k;  ///< the target's likeliest tokens, if they were reported (TopKVerifier)
};

/// Returns the i-th token that the pass of this outcome committed: the accepted path, then the pick. A pick that a
/// predicate refused is returned too, although it was not committed. Returns nullopt if there is no such token, for
/// example because the pick was not read.
[[nodiscard]] inline std::optional<Token> committed_token(const Outcome& outcome, std::size_t i) noexcept {
  if (i < outcome.accepted.size()) return outcome.draft[static_cast<std::size_t>(outcome.accepted[i])].token;
  return i == outcome.accepted.size() ? outcome.pick : std::nullopt;
}

/// Calls `visit(index, hit)` for every node that the target tested, in draft order. These are the children of the
/// anchor and of the accepted nodes, whether they were sent or not. `hit` is true if the target picked the node's
/// token.
///
/// The other nodes are skipped: the target picked no token at their position, and learning from them would add a bias.
/// If the pick after the path was not read, the children of the path's last node are skipped too. Auxiliary nodes
/// are skipped, because they are never accepted. Pad rows are skipped, because no strategy proposed them.
template <class Visit>
void for_each_tested(const Outcome& outcome, Visit&& visit) {
  // The indices of accepted nodes ascend, and children come after their parent.
  for (std::size_t i = 0; i < outcome.draft.size(); ++i) {
    const DraftNode& node = outcome.draft[i];
    if (node.auxiliary || node.source == DraftSource::padding) continue;
    std::size_t depth = 0;  // accepted tokens before this node, if its parent is on the path
    if (node.parent != anchor_parent) {
      while (depth < outcome.accepted.size() && outcome.accepted[depth] != node.parent) ++depth;
      if (depth++ == outcome.accepted.size()) continue;
    }
    if (depth < outcome.accepted.size()) {
      visit(i, outcome.draft[static_cast<std::size_t>(outcome.accepted[depth])].token == node.token);
    } else if (outcome.pick) {
      visit(i, *outcome.pick == node.token);
    }
  }
}

}}  // namespace reprise
