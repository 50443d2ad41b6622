// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// Why a pass carried fewer tokens than were proposed, or none: the first rule that was binding.
enum class Cut : std::uint8_t {
  none,            ///< everything that was proposed was sent
  no_match,        ///< the strategy proposed nothing
  unlikely,        ///< below the least path probability
  throttled,       ///< control, or the strategy, has stopped drafting for now
  budget,          ///< the node budget of the round, or the number passed to plan()
  shape,           ///< the strategy pushed a malformed node, which the draft refused
  depth,           ///< deeper than the engine allows
  rows,            ///< the rows of a pass
  width,           ///< no allowed width fits the whole draft
  rollback,        ///< more tokens than the engine can roll back
  context,         ///< the context limit
  max_tokens,      ///< no more tokens than are still wanted
  out_of_memory,   ///< an allocation failed: the pass goes without a draft
  constraint,      ///< a grammar or filter refused it
  strategy_threw,  ///< the strategy has thrown, and is not asked again until begin()
};
inline constexpr std::size_t cut_count = 15;

constexpr std::string_view to_string(Cut cut) noexcept {
  constexpr std::string_view names[cut_count] = {
      "none",  "no_match", "unlikely", "throttled",  "budget",        "shape",      "depth",         "rows",
      "width", "rollback", "context",  "max_tokens", "out_of_memory", "constraint", "strategy_threw"};
  return names[static_cast<std::size_t>(cut)];
}

/// A token the target ranked high after some row, as far as the verifier reveals it.
struct RankedToken {
  NodeIndex after = anchor_parent;  ///< the node whose row it was ranked at
  std::uint16_t rank = 0;           ///< 0 is the target's first choice
  Token token = 0;
};

/// The result of a draft: the only thing that a strategy learns from. Views are valid during feedback() only.
struct Outcome {
  DraftView draft;                      ///< as proposed, before any cut; behind it the pad rows of the pass, if any
  std::span<const NodeIndex> sent;      ///< the nodes that were in the pass, in row order
  std::span<const NodeIndex> accepted;  ///< the committed path, from the anchor's child on
  std::optional<Token> pick;            ///< the target's token after that path; none when it was never read
  Cut cut = Cut::none;                  ///< why `sent` is shorter than `draft`
  std::span<const RankedToken> top_k;   ///< from verifiers that rank; empty otherwise
};

/// The i-th token that this outcome's pass committed, as far as the outcome tells: the accepted path, then the pick.
[[nodiscard]] inline std::optional<Token> committed_token(const Outcome& outcome, std::size_t i) noexcept {
  if (i < outcome.accepted.size()) return outcome.draft[static_cast<std::size_t>(outcome.accepted[i])].token;
  return i == outcome.accepted.size() ? outcome.pick : std::nullopt;
}

/// Calls `visit(index, hit)` for every node of the draft that this outcome says something about, in draft order: the
/// children of the anchor and of the accepted nodes, sent or not. `hit`: the target picked that token there. Nothing
/// is known of the other nodes, because nothing was picked at their place: learning from them would be a bias. Where
/// the pick after the path was never read, nothing is known of the last node's children either. Pad rows are left out:
/// nobody proposed them.
template <class Visit>
void for_each_tested(const Outcome& outcome, Visit&& visit) {
  // Accepted nodes ascend, and children come after their parent; `depth` accepted nodes lie before i.
  for (std::size_t i = 0; i < outcome.draft.size(); ++i) {
    const DraftNode& node = outcome.draft[i];
    if (node.auxiliary || node.source == DraftSource::padding) continue;
    std::size_t depth = 0;  // of the node on the path that is the parent
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

}  // namespace reprise
