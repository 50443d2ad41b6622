// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/control.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/detail/open_round.hpp"
#include "reprise/loop/detail/pass_rows.hpp"
#include "reprise/loop/detail/sequence.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise { inline namespace v0 {

/// The state of one sequence during decoding. A session does not call the engine: it returns the next batch to run and
/// reads the picks.
///
///   begin -> { propose -> plan -> (you run the batch) -> resolve -> commit } until finished() -> append -> ...
///
/// A session commits exactly the tokens of plain decoding, whatever strategy and control do: neither is trusted. Only
/// rejection sampling trusts the distributions that the strategy states; see engine/rejection.hpp. Before commit(), a
/// round does not change the committed tokens, so it can be cancelled and run again. One round is open at a time;
/// propose(), reserve(), begin(), append(), truncate(), rebase(), set_cached(), finish() and destruction end it. A
/// planned pass that was neither committed nor cancelled counts as lost for the loss budget: it may have run.
///
/// Memory: 4 bytes per token of context, plus the memory of the strategy and of a round. propose() never allocates.
/// reserve(), begin(), append(), rebase(), fork(), plan() and report_top_k() may allocate, and so may the strategy in
/// truncate(), commit() and report_prompt_row(). A function that returns out_of_memory leaves the session as it was,
/// except that reserve(), begin(), rebase() and plan() end an open round.
///
/// Throws: no exceptions of its own. Exceptions from the picks, the predicate, the strategy and the callable passed to
/// constrain() pass through, and the session stays usable. After a strategy has thrown, the session neither asks it for
/// drafts nor passes it tokens or outcomes, until begin() or rebase().
///
/// Threads: one at a time per session; different sessions are independent. A moved-from session can only be assigned to
/// or destroyed.
template <DraftStrategy Strategy, DraftControl Control = SendAll>
class Session {
 public:
  /// `max_draft_nodes`: upper bound on the nodes of a draft. A pass may have up to as many pad rows in addition.
  /// If it is unlimited, the bound is Limits::draft.max_nodes, up to most_draft_nodes. If that is unlimited, too, it is
  /// the control's bound, or else usual_draft_nodes.
  explicit Session(Strategy strategy,
                   std::size_t max_draft_nodes = unlimited) requires std::default_initializable<Control>
      : Session(std::move(strategy), Control(), max_draft_nodes) {}
  /// If the strategy is a CalibratedStrategy, calls the control's optional trust_probabilities().
  Session(Strategy strategy, Control control, std::size_t max_draft_nodes = unlimited)
      : strategy_(std::move(strategy)), control_(std::move(control)), max_draft_nodes_(max_draft_nodes) {
    if constexpr (CalibratedStrategy<Strategy> && requires { control_.trust_probabilities(); })
      control_.trust_probabilities();
  }
  // Not a default argument: clang 14 checks it even if the strategy has no default constructor.
  Session() requires std::default_initializable<Strategy> && std::default_initializable<Control>
      : Session(Strategy(), Control()) {}
  Session(Session&&) noexcept(
      std::is_nothrow_move_constructible_v<Strategy>&& std::is_nothrow_move_constructible_v<Control>) = default;
  Session& operator=(Session&&) noexcept(
      std::is_nothrow_move_assignable_v<Strategy>&& std::is_nothrow_move_assignable_v<Control>) = default;
  Session(const Session&) = delete;  // fork() can report out_of_memory
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  /// Allocates memory for `max_context` tokens, in this and all further sequences. While the context and a whole pass
  /// fit into this memory, append(), propose(), plan() and commit() do not allocate. This holds if no more tokens are
  /// pending than at begin(), and if the strategy's reserve() covers its part. Ends an open round. Errors:
  /// out_of_memory; in that case the session grows on demand.
  Result<void> reserve(std::size_t max_context);

  /// Starts a sequence. Precondition: the engine's cache holds the first `cached` tokens of `context`, by default all
  /// except the last. The other tokens are pending, and the first pass runs them.
  /// Errors: empty_context, context_too_long, cached_out_of_range, too_many_pending, out_of_memory; invalid_argument if
  /// Capabilities::rollback is none or max_rows is 0. After an error the session is unchanged, except that
  /// out_of_memory ends an open round.
  Result<void> begin(TokenSpan context, Capabilities capabilities = {}, std::optional<std::size_t> cached = {});

  /// Appends tokens that this session did not generate: the next user turn, a tool result, or a first token from the
  /// prefill. They count as context, not as output; a new output begins after them. `tokens` may be part of this
  /// session's own context. `origin` is passed to the strategy.
  ///
  /// `cached` counts from the start of the context, as in begin(). The default, all tokens except the last, includes
  /// the token that was last before this call: no pass has put it into the cache, so the engine must prefill it too.
  ///
  /// Errors: not_begun, context_too_long, cached_out_of_range, too_many_pending, out_of_memory. After an error the
  /// session is unchanged.
  Result<void> append(TokenSpan tokens, Origin origin = Origin::prompt, std::optional<std::size_t> cached = {});

  /// Opens a round, which ends an earlier one, and returns the strategy's draft. The view is valid until the next
  /// call that changes the session. The draft is empty before begin(), and after the strategy has thrown. If
  /// generation has ended or a limit has been reached, the draft is empty and finished() is true. `limits` must live
  /// until the round ends. `shape`: DraftShape::chain prevents a tree even if limits and capabilities allow one.
  DraftView propose(const Limits& limits, DraftShape shape = DraftShape::tree) REPRISE_LIFETIMEBOUND;
  DraftView propose(const Limits&&, DraftShape = DraftShape::tree) = delete;  // limits must live until the round ends

  /// Keeps the nodes that a rule does not allow, and their descendants, out of this round's pass. `allowed(path)`
  /// returns how many leading tokens of `path`, which begins after the anchor, may follow the committed tokens; see
  /// ConstrainedVerifier. Call constrain() between propose() and plan(); an open ticket becomes void. Auxiliary nodes
  /// are not checked. Sampled drafts are skipped, because reading their tokens would bias rejection sampling.
  template <std::invocable<TokenSpan> Allowed>
  void constrain(Allowed&& allowed) {
    round_.constrain(allowed);
  }

  /// Returns the part of the proposed draft that fits into a pass, for a planner that shares one pass among sequences.
  /// The planner chooses how many nodes each sequence may send; pass that number to plan(). An open ticket becomes
  /// void. Requires that Control is SendAll or derived from it: any other control would shorten the planned draft
  /// again. Errors: those of plan() except out_of_memory.
  template <std::same_as<Control> C = Control>  // checked when called, so that every session can be instantiated
  Result<Offer> offer() {
    static_assert(
        std::derived_from<C, SendAll>,
        "Session::offer(): under a planner the session's control has to be SendAll, because the planner alone "
        "decides how much is drafted");
    const auto room = round_.fit(sequence_, unlimited, Cut::budget);
    if (!room) return room.error();
    const auto fitting = round_.sendable();
    return Offer{round_.draft(), fitting.first(std::min(fitting.size(), room->nodes)), room->plain.rows,
                 room->replayed};
  }

  /// Returns the pass to run. It carries as many of the fitting draft nodes as control chooses, and at most `max_nodes`
  /// drafted rows. `why` is the Cut to report if `max_nodes` is the binding rule. A second call in the same round voids
  /// the previous ticket. If memory for the draft runs out, the pass carries none (Cut::out_of_memory). Errors:
  /// not_begun, not_proposed, finished; too_many_pending and out_of_memory, which end the round.
  Result<Pass> plan(std::size_t max_nodes = unlimited, Cut why = Cut::budget) REPRISE_LIFETIMEBOUND;

  /// Reduces the planned pass to its first `drafted` drafted rows, for an engine that runs no more of them. The ticket
  /// stays valid, the views of the pass do not. Call it before resolve(). Errors: bad_ticket.
  Result<Pass> shorten(Ticket ticket, std::size_t drafted) noexcept {
    if (!round_.is_planned(ticket)) return detail::OpenRound::bad_ticket();
    round_.shorten(drafted);
    return round_.pass(sequence_);
  }

  /// Reads the picks of the pass and returns the tokens and rows to commit. cancel() undoes all changes that resolve()
  /// makes to the session. `picks[i]` is the target's token after row (anchor + i); if `picks` has a size(), reading
  /// stops after that many picks. `predicate`: see StopDecision. Errors: bad_ticket; bad_picks if there are no picks.
  template <Picks P, class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, P&& picks, Predicate&& predicate = Predicate()) REPRISE_LIFETIMEBOUND {
    return round_.resolve(sequence_, ticket, picks, predicate);
  }

  /// Returns the decision for a path that the engine has walked itself. Checks the rows and tokens of the path against
  /// the draft. Errors: bad_ticket; bad_picks if they are not a path of this draft.
  template <class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, Accepted accepted,
                           Predicate&& predicate = Predicate()) REPRISE_LIFETIMEBOUND {
    return round_.resolve(sequence_, ticket, accepted, predicate);
  }

  /// Passes the target's likeliest tokens after row (anchor + i) of the pass to the strategy, the likeliest first. Rows
  /// that were not accepted may be reported too (TopKVerifier). Call it between plan() and commit(), at most once for
  /// each row. May allocate; if memory runs out, the tokens are dropped. Tokens after the first 1,024 are ignored.
  /// Errors: bad_ticket.
  Result<void> report_top_k(Ticket ticket, std::size_t i, TokenSpan tokens) {
    return round_.report_top_k(ticket, i, tokens);
  }

  /// Passes the target's likeliest tokens after the committed token context()[position] to the strategy, the likeliest
  /// first. For rows that no round reports, such as those of the prompt, at any time and in any order. Has no effect if
  /// the strategy is not a RowLearner. Errors: not_begun; size_out_of_range if there is no such token.
  Result<void> report_prompt_row(std::size_t position, TokenSpan likeliest);

  /// Commits the decision. Precondition: the engine has kept Decision::rows, or has restored its state if
  /// Decision::restore is true. `pass_time`: the duration of the pass, rollback included, for control to learn from.
  /// Errors: bad_ticket.
  Result<void> commit(Ticket ticket, std::optional<Duration> pass_time = {});

  /// Cancels the round and leaves the session as it was before. Precondition: the pass will not run. Errors:
  /// bad_ticket.
  Result<void> cancel(Ticket ticket);
  /// Like cancel(), for a pass that may have run: it counts as lost. Errors: bad_ticket.
  Result<void> abandon(Ticket ticket);

  /// Removes all but the first `size` tokens of the context, for example after an edited turn or a rejected answer.
  /// Generation can continue afterwards, even if it had finished. The engine must then cut its cache to cached() rows.
  /// Errors: not_begun; size_out_of_range if `size` is 0 or above context().size().
  Result<void> truncate(std::size_t size);

  /// Replaces the context, for example after it was compacted or a block was removed from its middle. Like begin() with
  /// the same capabilities, except that control and statistics keep their state. A RebasableStrategy keeps the tokens
  /// it has seen as evidence. A new output begins after `context`, which may be part of this session's own context.
  ///
  /// `cached`: the number of leading tokens of `context` whose rows the engine's cache holds, by default all except the
  /// last. Of the old rows, keep only those of the shared prefix. Every later row attended to replaced tokens, and
  /// usually was computed at a different position. Cut the cache after the shared prefix, and prefill the remaining
  /// tokens again or leave them pending. Moving old rows to their new positions (a context shift) gives a different
  /// output than prefill would. Drafting does not add to that difference.
  ///
  /// Returns the number of leading tokens that the old and the new context share. If the engine needs it to cut its
  /// cache, cut the cache after this call, and pass the number of kept rows to set_cached(): at most
  /// context.size() - 1, because the last token is never in the cache.
  ///
  /// Errors: not_begun, and those of begin(). After an error the session is unchanged, except that out_of_memory ends
  /// an open round.
  Result<std::size_t> rebase(TokenSpan context, std::optional<std::size_t> cached = {});

  /// Sets how many leading tokens of the context are in the engine's cache. Set a lower number after preemption or
  /// eviction: the tokens that left the cache are pending again. Set a higher number after the engine has prefilled
  /// pending tokens. Errors: not_begun, cached_out_of_range, too_many_pending (prefill more tokens first).
  Result<void> set_cached(std::size_t cached);

  /// Returns a second session that continues from the committed state of this one. Errors: not_begun, out_of_memory;
  /// too_many_pending if a shared loss budget does not allow the fork to run tokens again (Rollback::snapshot).
  [[nodiscard]] Result<Session> fork() const;

  /// Ends generation on behalf of the caller, until append(), truncate(), rebase() or begin(). If a stop rule has
  /// already ended generation, the finish reason stays. Has no effect before begin().
  void finish() noexcept;

  /// Hands the sequence to the memory of the strategy (Memory), without what was handed over before.
  /// begin() does so too: call keep() if the request has ended and the next one may run in another session. The
  /// sequence can go on, but its text then counts twice.
  void keep() noexcept {
    if constexpr (detail::RememberingStrategy<Strategy>) in_step([&]() noexcept { strategy_.keep(); });
  }
  /// Hands over the text so far, of a request that goes on, for the requests that run beside it. What was learned stays
  /// for keep().
  void keep_running() noexcept {
    if constexpr (detail::RememberingStrategy<Strategy>) in_step([&]() noexcept { strategy_.keep_running(); });
  }

  [[nodiscard]] bool finished() const noexcept { return finish_reason() != FinishReason::none; }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return sequence_.finish_reason(); }
  /// Returns all committed tokens. The view is valid until the session changes.
  [[nodiscard]] TokenSpan context() const noexcept REPRISE_LIFETIMEBOUND { return sequence_.context(); }
  /// Returns the output since begin(), append() or rebase(), without the stop tokens that ended it.
  [[nodiscard]] TokenSpan output() const noexcept REPRISE_LIFETIMEBOUND { return sequence_.output(); }
  /// Returns the leading part of output() that is safe to stream, because no stop sequence can remove it any more; the
  /// whole output after generation has ended. If a raised limit lets it continue, a stop sequence may still complete.
  [[nodiscard]] TokenSpan settled_output(const Limits& limits) const noexcept REPRISE_LIFETIMEBOUND {
    return sequence_.settled_output(limits);
  }
  /// Returns the part of settled_output() that no earlier call has returned; valid until the session changes.
  [[nodiscard]] TokenSpan take_settled(const Limits& limits) noexcept REPRISE_LIFETIMEBOUND {
    return sequence_.take_settled(limits);
  }
  /// Returns the number of output tokens that take_settled() has returned.
  [[nodiscard]] std::size_t taken() const noexcept { return sequence_.taken(); }
  /// Returns the number of context tokens whose rows are in the engine's cache.
  [[nodiscard]] std::size_t cached() const noexcept { return sequence_.cached(); }
  [[nodiscard]] TokenSpan pending() const noexcept REPRISE_LIFETIMEBOUND { return sequence_.pending(); }
  [[nodiscard]] const Capabilities& capabilities() const noexcept REPRISE_LIFETIMEBOUND {
    return sequence_.capabilities();
  }
  /// Returns the counts since begin() or the last append(); rebase() does not reset them.
  [[nodiscard]] const Statistics& statistics() const noexcept REPRISE_LIFETIMEBOUND { return sequence_.statistics(); }
  /// Adds time that the caller has spent on drafting, for statistics only; to get the mean per round, call it once in
  /// each round.
  void add_drafting_time(Duration time) noexcept { sequence_.statistics().drafting_time.add(time); }
  [[nodiscard]] Strategy& strategy() noexcept REPRISE_LIFETIMEBOUND { return strategy_; }
  [[nodiscard]] const Strategy& strategy() const noexcept REPRISE_LIFETIMEBOUND { return strategy_; }
  [[nodiscard]] Control& control() noexcept REPRISE_LIFETIMEBOUND { return control_; }
  [[nodiscard]] const Control& control() const noexcept REPRISE_LIFETIMEBOUND { return control_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

 private:
  /// Returns the number of nodes for which a round has memory.
  [[nodiscard]] std::size_t most_nodes() const noexcept {
    return max_draft_nodes_ == unlimited ? most_draft_nodes : max_draft_nodes_;
  }
  /// Returns the bound on the nodes of a round that has none.
  [[nodiscard]] std::size_t usual_nodes() const noexcept;
  /// Closes a round whose pass will not run.
  void cancel_round();
  /// Closes the round. Its pass may have run, so it counts as lost.
  void close_round();
  /// Calls the strategy, unless it has thrown since begin() or rebase() and may no longer match the context.
  template <class Call>
  void in_step(Call&& call) {
    if (!strategy_in_step_) return;
    strategy_in_step_ = false;
    call();
    strategy_in_step_ = true;
  }

  Strategy strategy_;
  Control control_;
  std::size_t max_draft_nodes_;  // unlimited: not given
  detail::Sequence sequence_;
  bool strategy_in_step_ = false;
  detail::OpenRound round_;
};

// The functions that are not as short as their declarations. They are not inline, so that a declaration of an explicit
// instantiation spares a file their compilation; see speculator.hpp.

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::reserve(std::size_t max_context) {
  close_round();
  if (!sequence_.reserve(max_context)) return detail::Sequence::no_memory();
  if constexpr (ReservableStrategy<Strategy>) strategy_.reserve(max_context);
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::begin(TokenSpan context, Capabilities capabilities,
                                               std::optional<std::size_t> cached) {
  if (auto checked = detail::Sequence::check_begin(context, capabilities, cached); !checked) return checked;
  const std::size_t pending = context.size() - cached.value_or(context.size() - 1);
  const bool room = round_.reserve(most_nodes(), capabilities, pending);
  close_round();
  if (!room || !sequence_.begin(context, capabilities, cached)) return detail::Sequence::no_memory();
  strategy_in_step_ = false;
  control_.begin();
  strategy_.begin(this->context());
  strategy_in_step_ = true;
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::append(TokenSpan tokens, Origin origin, std::optional<std::size_t> cached) {
  if (!sequence_.begun()) return detail::Sequence::not_begun();
  if (auto added = sequence_.append(tokens, cached); !added) return added;
  close_round();
  in_step([&] { strategy_.observe(context(), tokens.size(), origin); });
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
DraftView Session<Strategy, Control>::propose(const Limits& limits, DraftShape shape) {
  close_round();
  DraftBudget asked = limits.draft;
  asked.max_nodes = asked.max_nodes == unlimited ? usual_nodes() : std::min(asked.max_nodes, most_nodes());
  round_.open(limits, asked.max_nodes);
  if (!sequence_.begun()) return {};
  sequence_.apply(limits);
  if (finished() || !strategy_in_step_) return {};
  if (round_.redraws()) in_step([&] { strategy_.truncate(context(), context().size()); });  // ends the round (S10)

  asked.max_leaves = detail::max_leaves(limits, capabilities(), shape);
  asked.shape = asked.max_leaves > 1 ? DraftShape::tree : DraftShape::chain;
  detail::add_stops(asked.stops, limits, sequence_.output());
  const DraftBudget budget = detail::clamp_to_contract(
      DraftBudget(control_.budget(asked, detail::pass_limits(sequence_, unlimited, asked.max_nodes))), asked);
  Draft draft = round_.blank(budget);
  if (budget.max_nodes != 0) in_step([&] { strategy_.propose(context(), draft); });
  round_.propose(draft, asked.max_leaves, asked.max_nodes != 0 && budget.max_nodes == 0);
  return round_.draft();
}

template <DraftStrategy Strategy, DraftControl Control>
Result<Pass> Session<Strategy, Control>::plan(std::size_t max_nodes, Cut why) {
  if (static_cast<std::size_t>(why) >= cut_count) why = Cut::budget;
  const auto room = round_.fit(sequence_, max_nodes, why);
  if (!room) return room.error();
  const DraftChoice choice = control_.choose(round_.draft(), round_.sendable(), *room);
  if (!round_.plan(sequence_, choice, *room, strategy_in_step_)) {
    cancel_round();
    return detail::Sequence::no_memory();
  }
  return round_.pass(sequence_);
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::report_prompt_row(std::size_t position, TokenSpan likeliest) {
  if (!sequence_.begun()) return detail::Sequence::not_begun();
  if (position >= context().size())
    return Error{ErrorCode::size_out_of_range, "a row of a token that is not committed: report the rows of context()",
                 position, context().size() - 1};
  if constexpr (RowLearner<Strategy>) in_step([&] { strategy_.learn_row(context().first(position + 1), likeliest); });
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::commit(Ticket ticket, std::optional<Duration> pass_time) {
  if (!round_.resolved(ticket)) return detail::OpenRound::bad_ticket();
  const std::size_t before = context().size();
  const PassReport report = round_.report(sequence_, pass_time);
  const Outcome outcome = round_.commit(sequence_, report);  // final, even if control or strategy throws
  const bool in_step = std::exchange(strategy_in_step_, false);
  control_.learn(outcome, report);
  strategy_in_step_ = in_step;
  this->in_step([&] {
    strategy_.feedback(context().first(before), outcome);
    strategy_.observe(context(), context().size() - before, Origin::output);
  });
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::cancel(Ticket ticket) {
  if (!round_.is_open(ticket)) return detail::OpenRound::bad_ticket();
  cancel_round();
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::abandon(Ticket ticket) {
  if (!round_.is_open(ticket)) return detail::OpenRound::bad_ticket();
  close_round();
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::truncate(std::size_t size) {
  if (!sequence_.begun()) return detail::Sequence::not_begun();
  const TokenSpan before = context();  // stays readable: truncation does not overwrite the memory
  if (auto cut = sequence_.truncate(size); !cut) return cut;
  close_round();
  in_step([&] { strategy_.truncate(before, size); });
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<std::size_t> Session<Strategy, Control>::rebase(TokenSpan context, std::optional<std::size_t> cached) {
  if (!sequence_.begun()) return detail::Sequence::not_begun();
  if (auto checked = detail::Sequence::check_begin(context, capabilities(), cached); !checked) return checked.error();
  const std::size_t pending = context.size() - cached.value_or(context.size() - 1);
  const bool room = round_.reserve(most_nodes(), capabilities(), pending);
  close_round();
  detail::Buffer<Token> replaced;
  if (!room || !sequence_.rebase(context, cached, replaced)) return detail::Sequence::no_memory();
  const TokenSpan before(replaced.data(), replaced.size());
  const TokenSpan now = this->context();
  [[maybe_unused]] const bool in_step = std::exchange(strategy_in_step_, false);
  if constexpr (RebasableStrategy<Strategy>) {
    if (in_step)
      strategy_.rebase(before, now);
    else  // the strategy threw, and may have lost track of the tokens
      strategy_.begin(now);
  } else {
    strategy_.begin(now);
  }
  strategy_in_step_ = true;
  return static_cast<std::size_t>(std::mismatch(before.begin(), before.end(), now.begin(), now.end()).first -
                                  before.begin());
}

template <DraftStrategy Strategy, DraftControl Control>
Result<void> Session<Strategy, Control>::set_cached(std::size_t cached) {
  if (!sequence_.begun()) return detail::Sequence::not_begun();
  if (auto changed = sequence_.set_cached(cached); !changed) return changed;
  close_round();
  return {};
}

template <DraftStrategy Strategy, DraftControl Control>
Result<Session<Strategy, Control>> Session<Strategy, Control>::fork() const {
  if (!sequence_.begun()) return detail::Sequence::not_begun();
  Session other(strategy_, control_, max_draft_nodes_);
  if constexpr (detail::ForkCheckedControl<Control>)
    if (!other.control_.may_fork()) return detail::Sequence::replay_not_allowed(pending().size());
  if (!other.round_.reserve(most_nodes(), capabilities(), pending().size()) || !other.sequence_.copy(sequence_))
    return detail::Sequence::no_memory();
  other.strategy_in_step_ = strategy_in_step_;
  if constexpr (detail::RememberingStrategy<Strategy>) other.strategy_.skip_kept();
  return other;
}

template <DraftStrategy Strategy, DraftControl Control>
void Session<Strategy, Control>::finish() noexcept {
  if (!sequence_.begun()) return;
  close_round();
  sequence_.finish();
}

template <DraftStrategy Strategy, DraftControl Control>
std::size_t Session<Strategy, Control>::memory_bytes() const noexcept {
  std::size_t bytes = sequence_.memory_bytes() + round_.memory_bytes();
  if constexpr (MeasurableStrategy<Strategy>) bytes += strategy_.memory_bytes();
  return bytes;
}

template <DraftStrategy Strategy, DraftControl Control>
std::size_t Session<Strategy, Control>::usual_nodes() const noexcept {
  if (max_draft_nodes_ != unlimited) return max_draft_nodes_;
  if constexpr (requires { control_.usual_nodes(); }) return std::min(control_.usual_nodes(), most_draft_nodes);
  return usual_draft_nodes;
}

template <DraftStrategy Strategy, DraftControl Control>
void Session<Strategy, Control>::close_round() {
  round_.abandon();
  if constexpr (detail::AbandonableControl<Control>) control_.abandon();
  cancel_round();
}

template <DraftStrategy Strategy, DraftControl Control>
void Session<Strategy, Control>::cancel_round() {
  round_.close();
  if constexpr (detail::CancellableControl<Control>) control_.cancel();
}

}}  // namespace reprise
