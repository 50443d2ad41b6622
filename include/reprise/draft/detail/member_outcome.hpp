// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::inline v0::detail {

/// What the outcome of a combined draft means for one member: an outcome in that member's own terms, as if its draft
/// alone had been proposed.
///
/// Accepted are the member's nodes along the committed path, as far as it had foreseen it; the pick is the token that
/// the target took there, whether it came from another member's node or was the last of the pass. So for_each_tested()
/// tells the member of each of its nodes what it would have learned had all of them been sent.
///
/// `Own`: most nodes of a member; `Rows`: most nodes of the combined draft. `Reveals`: members are told of candidates.
/// Those were ranked at rows of other members too; these rows then stand behind the member's own nodes, marked as
/// padding. Cost: linear. Views are valid until the next translate(). No allocation.
template <std::size_t Own, std::size_t Rows, bool Reveals>
class MemberOutcome {
 public:
  /// `own`: what the member proposed; `places`: for each of its nodes the node of the combined draft that stands for
  /// it, or anchor_parent; no two for the same one, and its parent's stands for the parent. `left_out`: see
  /// Draft::leave_out().
  Outcome translate(DraftView own, std::span<const NodeIndex> places, bool left_out, const Outcome& combined,
                    bool reveal) noexcept {
    rows_.fill({});
    for (std::size_t i = 0; i < own.size(); ++i)
      if (Row* row = row_of(places[i])) row->own = static_cast<NodeIndex>(i);
    for (const NodeIndex node : combined.sent)
      if (Row* row = row_of(node)) row->sent = true;

    Outcome outcome{.draft = own, .sent = {}, .accepted = {}, .pick = {}, .cut = Cut::none, .top_k = {}};
    std::size_t sent = 0;
    bool all_placed = true;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Row* row = row_of(places[i]);
      all_placed = all_placed && row != nullptr;
      if (row != nullptr && row->sent) sent_[sent++] = static_cast<NodeIndex>(i);
    }
    outcome.sent = std::span(sent_).first(sent);

    std::size_t accepted = 0;
    while (accepted < combined.accepted.size()) {
      const Row* row = row_of(combined.accepted[accepted]);
      if (row == nullptr || row->own == anchor_parent) break;
      accepted_[accepted++] = row->own;
    }
    outcome.accepted = std::span(accepted_).first(accepted);
    outcome.pick = accepted == combined.accepted.size()
                       ? combined.pick
                       : combined.draft[static_cast<std::size_t>(combined.accepted[accepted])].token;

    if (own.empty())
      outcome.cut = left_out ? Cut::unlikely : Cut::no_match;
    else if (sent < own.size())
      outcome.cut = all_placed ? combined.cut : Cut::budget;  // others took the room
    if constexpr (Reveals) {
      if (reveal && !combined.top_k.empty()) this->reveal(combined, outcome);
    }
    return outcome;
  }

 private:
  /// A node of the combined draft.
  struct Row {
    NodeIndex own = anchor_parent;  // what the member calls it
    bool sent = false;
  };

  [[nodiscard]] Row* row_of(NodeIndex node) noexcept {
    const bool known = node >= 0 && static_cast<std::size_t>(node) < Rows;
    return known ? &rows_[static_cast<std::size_t>(node)] : nullptr;
  }

  /// Adds the rows of others and the candidates after all rows.
  void reveal(const Outcome& combined, Outcome& outcome) noexcept {
    std::size_t nodes = 0;
    for (const DraftNode& node : outcome.draft) nodes_[nodes++] = node;
    for (const NodeIndex i : combined.sent) {
      Row* row = row_of(i);
      if (row == nullptr || row->own != anchor_parent || static_cast<std::size_t>(i) >= combined.draft.size()) continue;
      DraftNode other = combined.draft[static_cast<std::size_t>(i)];
      const Row* parent = row_of(other.parent);
      if (parent != nullptr) other.parent = parent->own;
      other.source = DraftSource::padding;
      row->own = static_cast<NodeIndex>(nodes);
      nodes_[nodes++] = other;
    }
    outcome.draft = DraftView(std::span(nodes_).first(nodes), outcome.draft.kind());
    std::size_t revealed = 0;
    for (reprise::RankedToken candidate : combined.top_k) {
      if (candidate.after != anchor_parent) {
        const Row* row = row_of(candidate.after);
        if (row == nullptr || row->own == anchor_parent) continue;
        candidate.after = row->own;
      }
      if (revealed == revealed_.size()) break;
      revealed_[revealed++] = candidate;
    }
    outcome.top_k = std::span(revealed_).first(revealed);
  }

  static constexpr std::size_t candidates_per_row = 8;

  std::array<Row, Rows> rows_{};
  std::array<NodeIndex, Own> sent_{};
  std::array<NodeIndex, Rows> accepted_{};
  std::array<DraftNode, Reveals ? Own + Rows : 0> nodes_{};
  std::array<reprise::RankedToken, Reveals ? Rows * candidates_per_row : 0> revealed_{};
};

}  // namespace reprise::detail
