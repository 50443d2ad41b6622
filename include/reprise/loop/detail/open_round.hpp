// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/buffer.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/detail/constraint.hpp"
#include "reprise/loop/detail/draft_limit.hpp"
#include "reprise/loop/pass.hpp"
#include "reprise/loop/round.hpp"

namespace reprise::inline v0 {

/// The arrays of a session's round: the proposed draft, the batch, and the part of it that was committed. The batch has
/// its own memory, because walking a tree writes the accepted path after the context.
///
/// Memory: about 72 bytes per node of the largest draft, twice that if pad rows are allowed, and 12 bytes per pending
/// token. Only reserve(), build() and report_top_k() allocate. Threads: as for the session.
class OpenRound {
 public:
  /// Allocates memory for drafts of `nodes` nodes, and as many pad rows if `padded`, after `pending` tokens. Returns
  /// false if memory runs out. The caller must discard the open draft and batch in either case.
  [[nodiscard]] bool reserve(std::size_t nodes, bool padded, std::size_t pending) noexcept {
    if (nodes > unlimited / 4 || pending > unlimited / 4) return false;
    const std::size_t rows = padded ? 2 * nodes : nodes;
    if (!nodes_.reserve(rows) || !sent_.reserve(rows) || !parents_.reserve(rows) || !depths_.reserve(rows) ||
        !path_.reserve(rows) || !committed_.reserve(rows + 1) || !batch_.reserve(pending + rows) ||
        !kept_.reserve(pending + rows) || !auxiliary_.reserve(rows) || !constraints_.reserve(nodes))
      return false;
    most_nodes_ = nodes;
    most_padding_ = rows - nodes;
    return true;
  }
  /// Returns the maximum number of nodes in a draft: the number passed to reserve().
  [[nodiscard]] std::size_t most_nodes() const noexcept { return most_nodes_; }
  /// Discards the open draft and batch; keeps the memory.
  void clear() noexcept {
    draft_ = {};
    malformed_ = false;
    drafted_ = 0;
    padding_ = 0;
    constraints_.clear();
    top_k_.clear();
  }

  /// Returns an empty draft in this round's memory, for the strategy to write.
  [[nodiscard]] Draft blank(const DraftBudget& budget) noexcept {
    return Draft(std::span(nodes_.data(), most_nodes_), budget);
  }
  /// Stores the draft that the strategy wrote to blank(). `max_leaves`: upper bound on the paths of the pass, pad rows
  /// included.
  void propose(const Draft& draft, std::size_t max_leaves) noexcept {
    draft_ = draft.view();
    malformed_ = draft.malformed();
    max_leaves_ = draft_.kind() == DraftKind::sampled ? 1 : max_leaves;
  }
  /// True if the strategy pushed a malformed node.
  [[nodiscard]] bool malformed() const noexcept { return malformed_; }
  [[nodiscard]] DraftView draft() const noexcept { return draft_; }

  /// Marks the nodes that `allowed` refuses, until the next draft. Skips a sampled draft: reading its tokens before
  /// they are sent would bias rejection sampling, and the target refuses disallowed tokens anyway.
  template <class Allowed>
  void constrain(Allowed&& allowed) {
    if (draft_.kind() == DraftKind::sampled || draft_.empty()) return;
    static_cast<void>(constraints_.resize(draft_.size(), Constraint::inner));  // the memory is reserved
    // No ticket is open, so the memory of the batch can hold the path.
    reprise::constrain(draft_, allowed, {constraints_.data(), draft_.size()}, {batch_.data(), draft_.size()});
  }
  /// Selects the nodes that the pass can verify; see select_nodes().
  SelectedNodes select(std::size_t max_depth) noexcept {
    const SelectedNodes found = select_nodes(
        draft_, max_depth, {{sent_.data(), most_nodes_}, {parents_.data(), most_nodes_}, {depths_.data(), most_nodes_}},
        {constraints_.data(), constraints_.size()});
    selected_ = found.nodes;
    any_auxiliary_ = found.auxiliary;
    return found;
  }
  /// Returns the nodes that select() wrote. Valid until build().
  [[nodiscard]] std::span<const NodeIndex> sendable() const noexcept { return {sent_.data(), selected_}; }
  [[nodiscard]] bool chain() const noexcept { return max_leaves_ <= 1; }

  /// Returns the maximum number of pad rows after the first `nodes` sendable nodes: as many as the round has memory
  /// for. In a tree, each pad row also needs a path of its own, in addition to the paths of these nodes. In a chain,
  /// pad rows extend the only path; limit_draft() has already bounded them by the depth limit.
  [[nodiscard]] std::size_t most_padding(std::size_t nodes) const noexcept {
    if (chain()) return most_padding_;
    std::size_t inner = 0;  // rows that have a child
    for (std::size_t row = 0; row < nodes; ++row) {
      const auto* const end = parents_.data() + nodes;
      inner += std::find(parents_.data() + row, end, static_cast<NodeIndex>(row)) != end ? 1 : 0;
    }
    return std::min(most_padding_, max_leaves_ - (nodes - inner));
  }

  /// Clamps control's `choice` to the limits of the pass. Returns an empty choice if its pad rows do not fit.
  [[nodiscard]] DraftChoice clamp(DraftChoice choice, const DraftLimit& limit, const PassLimits& room) const noexcept {
    choice = clamp_to_contract(choice, limit.nodes, room);
    if (choice.padding == 0 || choice.padding <= most_padding(choice.nodes)) return choice;
    return {0, 0, Cut::width};  // a narrower pass could cost more than the one that control chose
  }

  /// Writes the batch: `pending`, the first sendable nodes and the pad rows of `choice`. Returns false if memory runs
  /// out.
  [[nodiscard]] bool build(TokenSpan pending, const DraftChoice& choice, Token pad) noexcept {
    const std::size_t rows = pending.size() + choice.nodes + choice.padding;
    batch_.clear();
    kept_.clear();
    top_k_.clear();
    if (!batch_.reserve_extra(rows) || !kept_.reserve_extra(rows)) return false;
    static_cast<void>(batch_.append(pending));
    pending_ = pending.size();
    padding_ = choice.padding;
    drafted_ = choice.nodes + choice.padding;
    add_padding(pad);
    for (std::size_t row = 0; row < drafted_; ++row) batch_.push_reserved(node_of(row).token);
    for (std::size_t row = 0; any_auxiliary_ && row < drafted_; ++row) auxiliary_[row] = node_of(row).auxiliary;
    return true;
  }
  [[nodiscard]] TokenSpan batch() const noexcept { return {batch_.data(), batch_.size()}; }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  [[nodiscard]] std::size_t drafted() const noexcept { return drafted_; }
  [[nodiscard]] std::size_t padding() const noexcept { return padding_; }
  [[nodiscard]] std::span<const NodeIndex> parents() const noexcept { return {parents_.data(), drafted_}; }
  [[nodiscard]] std::span<const NodeIndex> nodes() const noexcept { return {sent_.data(), drafted_}; }
  [[nodiscard]] std::span<const std::uint32_t> depths() const noexcept { return {depths_.data(), drafted_}; }
  /// Returns a flag for each drafted row: true if the row is never accepted. Returns an empty span if no sendable node
  /// is auxiliary.
  [[nodiscard]] std::span<const bool> auxiliary() const noexcept {
    return {auxiliary_.data(), any_auxiliary_ ? drafted_ : 0};
  }

  /// Stores the target's likeliest tokens after row (anchor + i). Drops them if memory runs out, because they only
  /// inform drafts. Ignores tokens after the first 1,024, and rows after the last.
  void report_top_k(std::size_t i, TokenSpan tokens) noexcept {
    if (i > drafted_ || !top_k_.reserve_extra(tokens.size())) return;
    const NodeIndex after = i == 0 ? anchor_parent : sent_[i - 1];
    std::uint16_t rank = 0;
    for (const Token token : tokens.first(std::min<std::size_t>(tokens.size(), 1024)))
      top_k_.push_reserved({after, rank++, token});
  }

  /// True if `accepted` is a path of the batch. The path must begin at the anchor's row. Each further row must follow
  /// the previous row and hold the token that was picked after the previous row.
  ///
  /// The path may pass through an auxiliary row, because the engine does not know which rows are auxiliary. In that
  /// case, walk() ends before that row, or takes a sibling row with the same token.
  [[nodiscard]] bool holds(const Accepted& accepted) const noexcept {
    if (accepted.rows.empty() || accepted.rows.size() != accepted.tokens.size()) return false;
    if (accepted.rows[0] != pending_ - 1) return false;
    for (std::size_t i = 1; i < accepted.rows.size(); ++i) {
      const std::size_t row = accepted.rows[i];
      if (row < pending_ || row >= batch_.size() || batch_[row] != accepted.tokens[i - 1]) return false;
      // Drafted rows are counted from the first one after the anchor.
      if (parents_[row - pending_] != static_cast<NodeIndex>(accepted.rows[i - 1]) - static_cast<NodeIndex>(pending_))
        return false;
    }
    return true;
  }
  /// The memory that walk() writes to. Valid until reserve().
  [[nodiscard]] WalkOutput walk_output() noexcept {
    return {{committed_.data(), drafted_ + 1}, {path_.data(), drafted_}};
  }
  /// Returns the decision of a walk for the engine. Valid until build() or reserve().
  [[nodiscard]] Decision decision(const Walk& walked) noexcept {
    const std::span<const CommittedToken> tokens(committed_.data(), walked.committed);
    kept_.clear();
    for (std::size_t row = 0; row + 1 < pending_; ++row) kept_.push_reserved(row);
    // Each row after which a committed token was picked is kept: the anchor's, then those of all but the last token.
    for (const CommittedToken& token : tokens) kept_.push_reserved(token.row);
    return {.tokens = tokens,
            .rows = {kept_.data(), kept_.size()},
            .keep = kept_.size(),
            .accepted = walked.accepted,
            .finish = walked.finish};
  }
  /// Returns the outcome of a walk for strategy and control. Call it only once for each walk, because it converts the
  /// path in place. The views of the outcome are valid until the next draft is written.
  [[nodiscard]] Outcome outcome(const Walk& walked, Cut cut) noexcept {
    for (std::size_t i = 0; i < walked.accepted; ++i) path_[i] = sent_[static_cast<std::size_t>(path_[i])];
    return {DraftView({nodes_.data(), draft_.size() + padding_}, draft_.kind()),
            {sent_.data(), drafted_},
            {path_.data(), walked.accepted},
            walked.pick,
            cut,
            {top_k_.data(), top_k_.size()}};
  }

  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return nodes_.memory_bytes() + sent_.memory_bytes() + parents_.memory_bytes() + depths_.memory_bytes() +
           batch_.memory_bytes() + kept_.memory_bytes() + committed_.memory_bytes() + path_.memory_bytes() +
           auxiliary_.memory_bytes() + constraints_.memory_bytes() + top_k_.memory_bytes();
  }

 private:
  [[nodiscard]] const DraftNode& node_of(std::size_t row) const noexcept {
    return nodes_[static_cast<std::size_t>(sent_[row])];
  }
  /// Writes the pad rows: their nodes after the nodes of the draft, and their rows after its rows.
  void add_padding(Token pad) noexcept {
    const std::size_t first = drafted_ - padding_;
    const bool follows = chain() && first > 0;
    // Kept in variables, because g++ 12 at -O3 miscompiles a loop that reads them back from the arrays (loop
    // distribution).
    NodeIndex parent = follows ? sent_[first - 1] : anchor_parent;
    std::uint32_t depth = follows ? depths_[first - 1] + 1 : 1;
    for (std::size_t i = 0; i < padding_; ++i) {
      const auto node = static_cast<NodeIndex>(draft_.size() + i);
      nodes_[draft_.size() + i] = {
          .token = pad, .parent = parent, .path_probability = Probability::zero(), .source = DraftSource::padding};
      sent_[first + i] = node;
      parents_[first + i] = chain() ? static_cast<NodeIndex>(first + i) - 1 : anchor_parent;
      depths_[first + i] = depth;
      if (!chain()) continue;
      parent = node;
      ++depth;
    }
  }

  std::size_t most_nodes_ = 0;
  std::size_t most_padding_ = 0;
  DraftView draft_;
  bool malformed_ = false;
  std::size_t max_leaves_ = 1;
  std::size_t selected_ = 0;
  std::size_t pending_ = 0;
  std::size_t drafted_ = 0;
  std::size_t padding_ = 0;
  Buffer<DraftNode> nodes_;  // the draft, then the pad rows
  Buffer<NodeIndex> sent_;   // by row: see DraftRows
  Buffer<NodeIndex> parents_;
  Buffer<std::uint32_t> depths_;
  Buffer<Token> batch_;
  Buffer<std::size_t> kept_;
  Buffer<CommittedToken> committed_;
  Buffer<NodeIndex> path_;
  Buffer<bool> auxiliary_;  // by row
  bool any_auxiliary_ = false;
  Buffer<Constraint> constraints_;  // by node; empty: none is refused
  Buffer<RankedToken> top_k_;
};

}  // namespace reprise
