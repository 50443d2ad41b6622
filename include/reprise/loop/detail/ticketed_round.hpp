// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/detail/draft_limit.hpp"
#include "reprise/loop/detail/open_round.hpp"
#include "reprise/loop/detail/pass_limits.hpp"
#include "reprise/loop/detail/sequence.hpp"
#include "reprise/loop/pass.hpp"
#include "reprise/loop/round.hpp"

namespace reprise::inline v0 {

/// Enforces the order of calls in a session's round: open, propose, plan, resolve, commit. A call that takes a ticket
/// needs the newest one. Functions that return a Result refuse calls out of order and change nothing. The class uses
/// the sequence, but neither strategy nor control.
///
/// Memory: the same as OpenRound. Only reserve(), plan() and report_top_k() allocate. Threads: as for the session.
class TicketedRound {
 public:
  [[nodiscard]] static Error bad_ticket() noexcept {
    return {ErrorCode::bad_ticket,
            "not the open ticket: the order is plan, resolve, commit, each once, with the newest ticket"};
  }

  /// Allocates memory for drafts of `nodes` nodes; see OpenRound::reserve().
  [[nodiscard]] bool reserve(std::size_t nodes, const Capabilities& can, std::size_t pending) noexcept {
    return arrays_.reserve(nodes, pads(can), pending);
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return arrays_.memory_bytes(); }

  /// Closes the previous round and opens one without a draft. `limits` must live until the round is closed.
  void open(const Limits& limits) noexcept {
    close();
    phase_ = Phase::open;
    limits_ = &limits;
  }
  void close() noexcept {
    phase_ = Phase::closed;
    arrays_.clear();
    gated_ = false;
    unlikely_ = false;
  }
  /// Voids the ticket and keeps the draft. The pass must not be run or read any more, because its arrays will be
  /// overwritten.
  void give_pass_up() noexcept {
    if (phase_ != Phase::closed) phase_ = Phase::open;
  }

  /// Returns an empty draft in this round's memory, for the strategy to write.
  [[nodiscard]] Draft blank(const DraftBudget& budget) noexcept { return arrays_.blank(budget); }
  /// Stores the draft that the strategy wrote to blank(). `max_leaves`: upper bound on the paths of the pass. `gated`:
  /// true if control asked for no draft.
  void propose(const Draft& draft, std::size_t max_leaves, bool gated) noexcept {
    arrays_.propose(draft, max_leaves);
    gated_ = gated || draft.held_back();
    unlikely_ = draft.left_out();
  }
  [[nodiscard]] DraftView draft() const noexcept { return arrays_.draft(); }
  /// Refuses the nodes that `allowed` does not allow; see OpenRound::constrain(). Voids the ticket.
  template <class Allowed>
  void constrain(Allowed&& allowed) {
    give_pass_up();
    arrays_.constrain(allowed);
  }

  /// Returns how many nodes of the draft the next pass may carry; see limit_draft(). Errors: not_begun, not_proposed,
  /// finished; too_many_pending, which closes the round.
  [[nodiscard]] Result<DraftLimit> limit(const Sequence& sequence, std::size_t max_nodes, Cut why) noexcept {
    if (!sequence.begun()) return Sequence::not_begun();
    if (phase_ == Phase::closed)
      return Error{ErrorCode::not_proposed, "plan() belongs to a round: call propose() first, once for each round"};
    if (sequence.finish_reason() != FinishReason::none)
      return Error{ErrorCode::finished, "generation has ended: append() a turn, raise the limits or begin() again"};
    const std::size_t pending = sequence.pending().size();
    const std::size_t rows = most_rows(*limits_, sequence.capabilities());
    if (pending > rows) {
      close();
      return Sequence::too_many_pending(pending, rows);
    }
    return limit_draft(sequence, *limits_, max_nodes, why, arrays_);
  }
  /// Returns the nodes that limit() selected for verification. Valid until plan().
  [[nodiscard]] std::span<const NodeIndex> sendable() const noexcept { return arrays_.sendable(); }
  /// Returns the part of control's `choice` that can be planned.
  [[nodiscard]] DraftChoice clamp(const DraftChoice& choice, const DraftLimit& limit,
                                  const PassLimits& room) const noexcept {
    return arrays_.clamp(choice, limit, room);
  }

  /// Plans the pass with `choice`, a result of clamp(), or without a draft if memory runs out. A new ticket replaces
  /// the old one. `in_step` is false after the strategy has thrown. Returns false and closes the round if memory runs
  /// out even for the pass without a draft.
  [[nodiscard]] bool plan(Sequence& sequence, DraftChoice choice, const DraftLimit& limit, bool in_step) noexcept {
    if (!build(sequence, choice) && !build(sequence, choice = {0, 0, Cut::out_of_memory})) {
      close();
      return false;
    }
    cut_ = why_cut(limit, choice, in_step);
    phase_ = Phase::planned;
    ++ticket_.id;
    return true;
  }
  /// Returns the last planned pass.
  [[nodiscard]] Pass pass(const Sequence& sequence) const noexcept {
    return {.batch = arrays_.batch(),
            .pending = arrays_.pending(),
            .drafted = arrays_.drafted(),
            .padding = arrays_.padding(),
            .parents = arrays_.parents(),
            .depths = arrays_.depths(),
            .nodes = arrays_.nodes(),
            .kind = draft().kind(),
            .shape = {1, arrays_.batch().size(), sequence.context().size()},
            .ticket = ticket_};
  }

  /// Returns the decision made from the picks of the pass. Errors: bad_ticket; bad_picks if there are no picks.
  template <Picks P, class Predicate>
  Result<Decision> resolve(Sequence& sequence, Ticket ticket, P&& picks, Predicate&& predicate) {
    if (!is_open(ticket, Phase::planned)) return bad_ticket();
    std::size_t rows = unlimited;
    if constexpr (requires { picks.size(); }) rows = static_cast<std::size_t>(picks.size());
    if (rows == 0) return Error{ErrorCode::bad_picks, "no picks: return at least the token after the anchor's row"};
    return decide(sequence, picks, predicate, rows, unlimited);
  }
  /// Returns the decision for a path that the engine has walked. Errors: bad_ticket; bad_picks if it is not a path of
  /// this draft.
  template <class Predicate>
  Result<Decision> resolve(Sequence& sequence, Ticket ticket, Accepted accepted, Predicate&& predicate) {
    if (!is_open(ticket, Phase::planned)) return bad_ticket();
    if (!arrays_.holds(accepted))
      return Error{
          ErrorCode::bad_picks,
          "the accepted rows are not a path of this draft: each row after the anchor's must follow the row before "
          "it and hold the token before it"};
    PathPicks picks{accepted.tokens};
    return decide(sequence, picks, predicate, unlimited, accepted.tokens.size());
  }
  /// Stores the target's likeliest tokens after row (anchor + i) for the outcome. Errors: bad_ticket.
  Result<void> report_top_k(Ticket ticket, std::size_t i, TokenSpan tokens) noexcept {
    if (!is_open(ticket, Phase::planned) && !is_open(ticket, Phase::resolved)) return bad_ticket();
    arrays_.report_top_k(i, tokens);
    return {};
  }

  /// True if the pass of `ticket` is resolved, so that commit() may follow.
  [[nodiscard]] bool resolved(Ticket ticket) const noexcept { return is_open(ticket, Phase::resolved); }
  /// Returns the report of the pass, for control. Precondition: resolved, and not yet committed.
  [[nodiscard]] PassReport report(const Sequence& sequence,
                                  std::optional<std::chrono::nanoseconds> pass_time) const noexcept {
    const PassShape plain = plain_shape(sequence);
    PassReport report{plain,
                      plain,
                      walked_.committed,
                      pass_time,
                      replays(sequence.capabilities()) && keep_ == 0,
                      walked_.finish != FinishReason::none};
    report.sent.rows += arrays_.drafted();
    return report;
  }
  /// Commits the decision to the sequence and its statistics, and closes the round. Returns the outcome of the draft,
  /// valid until the next draft is written. Precondition: resolved.
  Outcome commit(Sequence& sequence, std::optional<std::chrono::nanoseconds> pass_time) noexcept {
    sequence.commit(arrays_.walk_output().committed.first(walked_.committed), walked_, keep_);
    const Outcome outcome = arrays_.outcome(walked_, cut_);
    sequence.statistics().record(outcome, arrays_.depths(), arrays_.padding(), walked_.committed, pass_time);
    close();  // the outcome's memory remains valid
    return outcome;
  }
  /// Closes the round without a commit. Errors: bad_ticket.
  Result<void> cancel(Ticket ticket) noexcept {
    if (!is_open(ticket, Phase::planned) && !is_open(ticket, Phase::resolved)) return bad_ticket();
    close();
    return {};
  }

 private:
  enum class Phase : std::uint8_t { closed, open, planned, resolved };

  [[nodiscard]] bool is_open(Ticket ticket, Phase phase) const noexcept { return ticket == ticket_ && phase == phase_; }

  /// Before the engine runs the pass, writes the batch and reserves memory in the sequence for every token that the
  /// pass can commit. Returns false if memory runs out.
  [[nodiscard]] bool build(Sequence& sequence, const DraftChoice& choice) noexcept {
    return sequence.reserve_extra(choice.nodes + choice.padding + 1) &&
           arrays_.build(sequence.pending(), choice, sequence.capabilities().pad_token.value_or(0));
  }
  /// Returns the binding rule: the one that allowed no more nodes than were sent. If the draft is empty, returns why it
  /// is empty.
  [[nodiscard]] Cut why_cut(const DraftLimit& limit, const DraftChoice& choice, bool in_step) const noexcept {
    if (draft().empty()) {
      if (limits_->draft.max_nodes == 0 || arrays_.most_nodes() == 0) return Cut::budget;
      if (!in_step) return Cut::strategy_threw;
      if (unlikely_) return Cut::unlikely;
      if (arrays_.malformed()) return Cut::shape;
      return !gated_ ? Cut::no_match : choice.cut != Cut::none ? choice.cut : Cut::throttled;
    }
    if (choice.nodes == limit.nodes) return limit.cut;
    return choice.cut != Cut::none ? choice.cut : Cut::budget;
  }
  template <class P, class Predicate>
  Decision decide(Sequence& sequence, P&& picks, Predicate&& predicate, std::size_t picked_rows,
                  std::size_t most_picks) {
    const WalkInput in{.text = sequence.output_and_room(),
                       .output = sequence.output_size(),
                       .context = sequence.context().size(),
                       .max_context = sequence.max_context(*limits_),
                       .draft = arrays_.batch().last(arrays_.drafted()),
                       .parents = arrays_.parents(),
                       .auxiliary = arrays_.auxiliary(),
                       .anchor_row = arrays_.pending() - 1,
                       .picked_rows = picked_rows,
                       .most_picks = most_picks};
    walked_ = walk(in, *limits_, picks, predicate, arrays_.walk_output());
    phase_ = Phase::resolved;
    Decision decision = arrays_.decision(walked_);
    decision.restore = replays(sequence.capabilities()) && decision.keep < arrays_.batch().size();
    keep_ = decision.restore ? 0 : decision.keep;
    return decision;
  }

  Phase phase_ = Phase::closed;
  Ticket ticket_;
  const Limits* limits_ = nullptr;  // the limits of the open round
  OpenRound arrays_;
  bool gated_ = false;     // control asked for no draft, or the strategy has stopped
  bool unlikely_ = false;  // the strategy left out nodes below the minimum probability
  Cut cut_ = Cut::none;
  Walk walked_;
  std::size_t keep_ = 0;
};

}  // namespace reprise
