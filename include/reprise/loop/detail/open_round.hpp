// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/core/control.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/detail/pass_rows.hpp"
#include "reprise/loop/detail/sequence.hpp"
#include "reprise/loop/round.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// One round of a session, from the draft to the commit. The session calls, in this order: open, propose, fit, plan,
/// resolve, commit. A call that takes a ticket needs the newest one. Functions that return a Result refuse calls out of
/// order and change nothing. The class uses the sequence, but neither strategy nor control.
///
/// Memory: about 72 bytes per node of the largest draft, twice that if pad rows are allowed, and 12 bytes per pending
/// token. Only reserve(), plan() and report_top_k() allocate. Threads: as for the session.
class OpenRound {
 public:
  [[nodiscard]] static Error bad_ticket() noexcept {
    return {ErrorCode::bad_ticket,
            "not the open ticket: the order is plan, resolve, commit, each once, with the newest ticket"};
  }

  /// Allocates memory for drafts of `nodes` nodes, and as many pad rows if `can` allows them, after `pending` tokens.
  /// Returns false if memory runs out. The caller must close the round in either case.
  [[nodiscard]] bool reserve(std::size_t nodes, const Capabilities& can, std::size_t pending) noexcept {
    if (nodes > unlimited / 4 || pending > unlimited / 4) return false;
    const std::size_t rows = pads(can) ? 2 * nodes : nodes;
    if (!nodes_.reserve(rows) || !sent_.reserve(rows) || !parents_.reserve(rows) || !depths_.reserve(rows) ||
        !path_.reserve(rows) || !committed_.reserve(rows + 1) || !batch_.reserve(pending + rows) ||
        !kept_.reserve(pending + rows) || !auxiliary_.reserve(rows) || !constraints_.reserve(nodes))
      return false;
    most_nodes_ = nodes;
    most_padding_ = rows - nodes;
    return true;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return nodes_.memory_bytes() + sent_.memory_bytes() + parents_.memory_bytes() + depths_.memory_bytes() +
           batch_.memory_bytes() + kept_.memory_bytes() + committed_.memory_bytes() + path_.memory_bytes() +
           auxiliary_.memory_bytes() + constraints_.memory_bytes() + top_k_.memory_bytes();
  }

  /// Opens a round without a draft. `limits` must live until the round is closed. Precondition: the round is closed.
  /// `asked`: the upper bound on the nodes of its draft.
  void open(const Limits& limits, std::size_t asked = unlimited) noexcept {
    phase_ = Phase::open;
    limits_ = &limits;
    asked_ = std::min({asked, limits.draft.max_nodes, most_nodes_});
  }
  void close() noexcept {
    phase_ = Phase::closed;
    draft_ = {};
    selected_depth_.reset();
    malformed_ = false;
    no_draft_ = Cut::no_match;
    constraints_.clear();
  }

  /// Call it before close() if a planned pass may have run and is not committed. Then redraws() returns true, once, if
  /// its draft was sampled: the next round must not use its random numbers (S10).
  void abandon() noexcept { redraws_ |= phase_ >= Phase::planned && draft_.kind() == DraftKind::sampled; }
  [[nodiscard]] bool redraws() noexcept { return std::exchange(redraws_, false); }

  /// Returns an empty draft in this round's memory, for the strategy to write.
  [[nodiscard]] Draft blank(const DraftBudget& budget) noexcept {
    return Draft(std::span(nodes_.data(), most_nodes_), budget);
  }
  /// Stores the draft that the strategy wrote to blank(). `max_leaves`: upper bound on the paths of the pass, pad rows
  /// included. `gated`: true if control asked for no draft.
  void propose(const Draft& draft, std::size_t max_leaves, bool gated) noexcept {
    draft_ = draft.view();
    selected_depth_.reset();
    max_leaves_ = draft_.kind() == DraftKind::sampled ? 1 : max_leaves;
    malformed_ = draft.malformed();
    if (draft.left_out())
      no_draft_ = Cut::unlikely;
    else if (malformed_)
      no_draft_ = Cut::shape;
    else if (gated || draft.held_back())
      no_draft_ = Cut::throttled;
  }
  [[nodiscard]] DraftView draft() const noexcept { return draft_; }
  /// Marks the nodes that `allowed` refuses, until the next draft; see detail::constrain(). Voids the ticket. Skips a
  /// sampled draft: reading its tokens before they are sent would bias rejection sampling, and the target refuses
  /// disallowed tokens anyway.
  template <class Allowed>
  void constrain(Allowed&& allowed) {
    if (phase_ != Phase::closed) phase_ = Phase::open;
    selected_depth_.reset();
    if (draft_.kind() == DraftKind::sampled || draft_.empty()) return;
    static_cast<void>(constraints_.resize(draft_.size(), Constraint::inner));  // the memory is reserved
    // No ticket is open, so the memory of the batch can hold the path.
    detail::constrain(draft_, allowed, {constraints_.data(), draft_.size()}, {batch_.data(), draft_.size()});
  }

  /// Selects the nodes of the draft that the next pass can verify, and returns the limits of that pass. Voids the
  /// ticket. `max_nodes`: the caller's bound on drafted rows; `why`: the Cut to report if that bound applies. Errors:
  /// not_begun, not_proposed, finished; too_many_pending, which closes the round.
  ///
  /// The rules below are in order of priority: if several allow the same number of nodes, the first one is reported.
  [[nodiscard]] Result<PassLimits> fit(const Sequence& sequence, std::size_t max_nodes, Cut why) noexcept {
    if (const auto checked = check_fit(sequence); !checked) return checked.error();
    phase_ = Phase::open;
    const Capabilities& can = sequence.capabilities();
    const std::size_t pending = sequence.pending().size();
    const std::size_t rows_left = most_rows(*limits_, can) - pending;
    const std::size_t context_left = sequence.context_left(*limits_);
    const std::size_t tokens_left = sequence.tokens_left(*limits_);
    const std::size_t deepest = std::min({limits_->draft.max_depth, can.max_depth, context_left, tokens_left});
    select(deepest);
    // A depth limit removes single nodes. selected_.nodes counts the remaining nodes for the smallest depth limit only,
    // so only that limit is a rule.
    const auto by_depth = [&](std::size_t depth) { return depth == deepest ? selected_.nodes : unlimited; };
    // The accepted tokens of a replayed pass are pending in the next pass. They fit into the next pass, because they
    // fit into this one. If more than max_replay tokens are pending, a pass without a draft brings them into the cache.
    const std::size_t settled = replays(can) && pending > can.max_replay ? 0 : unlimited;

    std::size_t nodes = draft_.size();
    cut_ = malformed_ ? Cut::shape : Cut::none;
    const auto rule = [&](std::size_t most, Cut cut) {
      if (most < nodes) nodes = most, cut_ = cut;
    };
    rule(selected_.refused && !selected_.too_deep ? selected_.nodes : unlimited, Cut::constraint);
    rule(by_depth(limits_->draft.max_depth), Cut::budget);
    rule(max_nodes, why);
    rule(by_depth(can.max_depth), Cut::depth);
    rule(std::min(can.max_rollback, settled), Cut::rollback);
    rule(rows_left, Cut::rows);
    rule(context_left, Cut::context);
    rule(by_depth(tokens_left), Cut::max_tokens);
    // These rules hold for any draft. Pad rows extend a chain; in a tree they follow the anchor.
    std::size_t rows_of_any = std::min({max_nodes, can.max_rollback, settled, rows_left, context_left});
    if (chain() || deepest == 0) rows_of_any = std::min(rows_of_any, deepest);
    PassLimits room = pass_limits(sequence, rows_of_any, asked_);
    room.depth = deepest;
    return room;
  }
  /// Returns the nodes that fit() selected. Valid until plan().
  [[nodiscard]] std::span<const NodeIndex> sendable() const noexcept { return {sent_.data(), selected_.nodes}; }

  /// Plans the pass that control chose, or as much of it as `room`, the result of fit(), allows. If memory runs out,
  /// the pass carries no draft. `in_step` is false after the strategy has thrown. Returns false if there is not even
  /// memory for a pass without a draft; the caller must then close the round.
  [[nodiscard]] bool plan(Sequence& sequence, DraftChoice choice, const PassLimits& room, bool in_step) noexcept {
    choice = clamp_to_contract(choice, selected_.nodes, room);
    // A narrower pass could cost more than the one that control chose.
    if (choice.padding != 0 && choice.padding > most_padding(choice.nodes)) choice = {0, 0, Cut::width};
    if (!build(sequence, choice) && !build(sequence, choice = {0, 0, Cut::out_of_memory})) return false;
    cut_ = why_cut(choice, std::min(selected_.nodes, room.nodes), in_step);
    phase_ = Phase::planned;
    ++ticket_.id;
    return true;
  }
  /// Returns the planned pass.
  [[nodiscard]] Pass pass(const Sequence& sequence) const noexcept {
    return {.batch = {batch_.data(), batch_.size()},
            .pending = pending_,
            .drafted = drafted_,
            .padding = padding_,
            .parents = {parents_.data(), drafted_},
            .depths = {depths_.data(), drafted_},
            .nodes = {sent_.data(), drafted_},
            .kind = draft_.kind(),
            .shape = {1, batch_.size(), sequence.context().size()},
            .ticket = ticket_};
  }
  /// Reduces the planned pass to its first `drafted` drafted rows, if it has more. The ticket stays valid.
  void shorten(std::size_t drafted) noexcept {
    if (drafted >= drafted_) return;
    const std::size_t draft = drafted_ - padding_;
    if (drafted < draft) cut_ = Cut::budget;
    padding_ = drafted - std::min(drafted, draft);
    drafted_ = drafted;
    batch_.truncate(pending_ + drafted);
  }
  /// True if `ticket` is the newest one, and its pass is neither committed nor cancelled.
  [[nodiscard]] bool is_open(Ticket ticket) const noexcept { return ticket == ticket_ && phase_ >= Phase::planned; }
  /// The same before resolve().
  [[nodiscard]] bool is_planned(Ticket ticket) const noexcept { return ticket == ticket_ && phase_ == Phase::planned; }
  /// Stores the target's likeliest tokens after row (anchor + i). Drops them if memory runs out, because they only
  /// inform drafts. Ignores tokens after the first 1,024, and rows after the last. Errors: bad_ticket.
  Result<void> report_top_k(Ticket ticket, std::size_t i, TokenSpan tokens) noexcept {
    if (!is_open(ticket)) return bad_ticket();
    if (i > drafted_ || !top_k_.reserve_extra(tokens.size())) return {};
    const NodeIndex after = i == 0 ? anchor_parent : sent_[i - 1];
    std::uint16_t rank = 0;
    for (const Token token : tokens.first(std::min<std::size_t>(tokens.size(), 1024)))
      top_k_.push_reserved({after, rank++, token});
    return {};
  }

  /// Returns the decision made from the picks of the pass. Errors: bad_ticket; bad_picks if there are no picks.
  template <Picks P, class Predicate>
  Result<Decision> resolve(Sequence& sequence, Ticket ticket, P&& picks, Predicate&& predicate) {
    if (!is_planned(ticket)) return bad_ticket();
    std::size_t rows = unlimited;
    if constexpr (requires { picks.size(); }) rows = static_cast<std::size_t>(picks.size());
    if (rows == 0) return Error{ErrorCode::bad_picks, "no picks: return at least the token after the anchor's row"};
    return decide(sequence, picks, predicate, rows, unlimited);
  }
  /// Returns the decision for a path that the engine has walked. Errors: bad_ticket; bad_picks if it is not a path of
  /// this draft.
  template <class Predicate>
  Result<Decision> resolve(Sequence& sequence, Ticket ticket, Accepted accepted, Predicate&& predicate) {
    if (!is_planned(ticket)) return bad_ticket();
    if (!is_path(pass(sequence), accepted))
      return Error{
          ErrorCode::bad_picks,
          "the accepted rows are not a path of this draft: each row after the anchor's must follow the row before "
          "it and hold the token before it"};
    PathPicks picks{accepted.tokens};
    return decide(sequence, picks, predicate, unlimited, accepted.tokens.size());
  }

  /// True if the pass of `ticket` is resolved, so that commit() may follow.
  [[nodiscard]] bool resolved(Ticket ticket) const noexcept { return ticket == ticket_ && phase_ == Phase::resolved; }
  /// Returns the report of the pass, for control. Precondition: resolved, and not yet committed.
  [[nodiscard]] PassReport report(const Sequence& sequence, std::optional<Duration> pass_time) const noexcept {
    const std::size_t context = sequence.context().size();
    return {.plain = {1, pending_, context},
            .sent = {1, batch_.size(), context},
            .committed = walked_.committed,
            .time = pass_time,
            .replayed = replays(sequence.capabilities()) && keep_ == 0,
            .last = walked_.finish != FinishReason::none};
  }
  /// Commits the decision to the sequence and its statistics, and closes the round. `report`: that of the pass. Returns
  /// the outcome of the draft, valid until the next draft is written. Precondition: resolved.
  Outcome commit(Sequence& sequence, const PassReport& report) noexcept {
    sequence.commit({committed_.data(), walked_.committed}, walked_, keep_);
    for (std::size_t i = 0; i < walked_.accepted; ++i) path_[i] = sent_[static_cast<std::size_t>(path_[i])];
    const Outcome outcome{DraftView({nodes_.data(), draft_.size() + padding_}, draft_.kind()),
                          {sent_.data(), drafted_},
                          {path_.data(), walked_.accepted},
                          walked_.pick,
                          cut_,
                          {top_k_.data(), top_k_.size()}};
    sequence.statistics().record(outcome, {depths_.data(), drafted_}, padding_, walked_.committed, report.time);
    close();  // the outcome's memory remains valid
    return outcome;
  }

 private:
  enum class Phase : std::uint8_t { closed, open, planned, resolved };

  [[nodiscard]] bool chain() const noexcept { return max_leaves_ <= 1; }

  /// Selects the nodes of the draft that are not deeper than `deepest`, unless the last call did so: plan() follows
  /// offer().
  void select(std::size_t deepest) noexcept {
    if (deepest == std::exchange(selected_depth_, deepest)) return;
    const DraftRows rows{{sent_.data(), most_nodes_}, {parents_.data(), most_nodes_}, {depths_.data(), most_nodes_}};
    selected_ = select_nodes(draft_, deepest, rows, {constraints_.data(), constraints_.size()});
  }
  [[nodiscard]] Result<void> check_fit(const Sequence& sequence) noexcept {
    if (!sequence.begun()) return Sequence::not_begun();
    if (phase_ == Phase::closed)
      return Error{ErrorCode::not_proposed, "plan() belongs to a round: call propose() first, once for each round"};
    if (sequence.finish_reason() != FinishReason::none)
      return Error{ErrorCode::finished, "generation has ended: append() a turn, raise the limits or begin() again"};
    const std::size_t pending = sequence.pending().size();
    const std::size_t rows = most_rows(*limits_, sequence.capabilities());
    if (pending <= rows) return {};
    close();
    return Sequence::too_many_pending(pending, rows);
  }

  /// Returns the maximum number of pad rows after the first `nodes` sendable nodes: as many as the round has memory
  /// for. In a tree, each pad row also needs a path of its own, in addition to the paths of these nodes. In a chain,
  /// pad rows extend the only path; fit() has already bounded them by the depth limit.
  [[nodiscard]] std::size_t most_padding(std::size_t nodes) const noexcept {
    if (chain()) return most_padding_;
    std::size_t inner = 0;  // rows that have a child
    for (std::size_t row = 0; row < nodes; ++row) {
      const auto* const end = parents_.data() + nodes;
      inner += std::find(parents_.data(), end, static_cast<NodeIndex>(row)) != end ? 1 : 0;
    }
    return std::min(most_padding_, max_leaves_ - (nodes - inner));
  }
  /// Writes the batch: the pending tokens, the first sendable nodes and the pad rows of `choice`. Before the engine
  /// runs the pass, also reserves memory in the sequence for every token that the pass can commit. Returns false if
  /// memory runs out.
  [[nodiscard]] bool build(Sequence& sequence, const DraftChoice& choice) noexcept {
    pending_ = sequence.pending().size();
    padding_ = choice.padding;
    drafted_ = choice.nodes + choice.padding;
    const std::size_t rows = pending_ + drafted_;
    batch_.clear();
    kept_.clear();
    top_k_.clear();
    if (!sequence.reserve_extra(drafted_ + 1) || !batch_.reserve_extra(rows) || !kept_.reserve_extra(rows))
      return false;
    static_cast<void>(batch_.append(sequence.pending()));
    add_padding(choice, sequence.capabilities().pad_token.value_or(0));
    for (std::size_t row = 0; row < drafted_; ++row) batch_.push_reserved(node_of(row).token);
    for (std::size_t row = 0; selected_.auxiliary && row < drafted_; ++row) auxiliary_[row] = node_of(row).auxiliary;
    return true;
  }
  [[nodiscard]] const DraftNode& node_of(std::size_t row) const noexcept {
    return nodes_[static_cast<std::size_t>(sent_[row])];
  }
  /// Writes the pad rows: their nodes after the nodes of the draft, and their rows after its rows.
  void add_padding(const DraftChoice& choice, Token pad) noexcept {
    if (choice.padding > 0) selected_depth_.reset();  // overwrites later nodes
    const std::size_t first = choice.nodes;
    const bool follows = chain() && first > 0;
    // Kept in variables, because g++ 12 at -O3 miscompiles a loop that reads them back from the arrays (loop
    // distribution).
    NodeIndex parent = follows ? sent_[first - 1] : anchor_parent;
    std::uint32_t depth = follows ? depths_[first - 1] + 1 : 1;
    for (std::size_t i = 0; i < choice.padding; ++i) {
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
  /// Returns the binding rule: the one that allowed no more nodes than were sent. `most`: the number of nodes that
  /// fit() allowed. If the draft is empty, returns why it is empty.
  [[nodiscard]] Cut why_cut(const DraftChoice& choice, std::size_t most, bool in_step) const noexcept {
    if (draft_.empty()) {
      if (asked_ == 0) return Cut::budget;
      if (!in_step) return Cut::strategy_threw;
      return no_draft_ == Cut::throttled && choice.cut != Cut::none ? choice.cut : no_draft_;
    }
    if (choice.nodes == most) return cut_;
    return choice.cut != Cut::none ? choice.cut : Cut::budget;
  }

  template <class P, class Predicate>
  Decision decide(Sequence& sequence, P&& picks, Predicate&& predicate, std::size_t picked_rows,
                  std::size_t most_picks) {
    const Walk::Input in{.text = sequence.output_and_room(),
                         .output = sequence.output_size(),
                         .context = sequence.context().size(),
                         .max_context = sequence.max_context(*limits_),
                         .draft = {batch_.data() + pending_, drafted_},
                         .parents = {parents_.data(), drafted_},
                         .auxiliary = {auxiliary_.data(), selected_.auxiliary ? drafted_ : 0},
                         .anchor_row = pending_ - 1,
                         .picked_rows = picked_rows,
                         .most_picks = most_picks};
    walked_ = walk(in, *limits_, picks, predicate, {{committed_.data(), drafted_ + 1}, {path_.data(), drafted_}});
    phase_ = Phase::resolved;
    const std::span<const CommittedToken> tokens(committed_.data(), walked_.committed);
    kept_.clear();
    for (std::size_t row = 0; row + 1 < pending_; ++row) kept_.push_reserved(row);
    // Each row after which a committed token was picked is kept: the anchor's, then those of all but the last token.
    for (const CommittedToken& token : tokens) kept_.push_reserved(token.row);
    const bool restore = replays(sequence.capabilities()) && kept_.size() < batch_.size();
    keep_ = restore ? 0 : kept_.size();
    return {.tokens = tokens,
            .rows = {kept_.data(), kept_.size()},
            .keep = kept_.size(),
            .restore = restore,
            .accepted = walked_.accepted,
            .finish = walked_.finish};
  }

  Phase phase_ = Phase::closed;
  const Limits* limits_ = nullptr;  // the limits of the open round
  std::size_t most_nodes_ = 0;
  std::size_t asked_ = 0;
  std::size_t most_padding_ = 0;
  DraftView draft_;
  std::size_t max_leaves_ = 1;
  bool malformed_ = false;
  bool redraws_ = false;
  Cut no_draft_ = Cut::no_match;  // why the draft is empty, if it is
  SelectedNodes selected_;
  std::optional<std::size_t> selected_depth_;  // for which `selected_` holds
  Cut cut_ = Cut::none;  // after fit(): the rule that limits the pass; after plan(): the binding rule
  Ticket ticket_;
  std::size_t pending_ = 0;
  std::size_t drafted_ = 0;
  std::size_t padding_ = 0;
  Walk walked_;
  std::size_t keep_ = 0;

  // The batch has its own memory, because walking a tree writes the accepted path after the context.
  Buffer<DraftNode> nodes_;  // the draft, then the pad rows
  Buffer<NodeIndex> sent_;   // by row: see DraftRows
  Buffer<NodeIndex> parents_;
  Buffer<std::uint32_t> depths_;
  Buffer<Token> batch_;
  Buffer<std::size_t> kept_;
  Buffer<CommittedToken> committed_;
  Buffer<NodeIndex> path_;
  Buffer<bool> auxiliary_;          // by row
  Buffer<Constraint> constraints_;  // by node; empty: none is refused
  Buffer<Outcome::RankedToken> top_k_;
};

}}}  // namespace reprise::detail
