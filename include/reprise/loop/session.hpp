// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/buffer.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/detail/draft_limit.hpp"
#include "reprise/loop/detail/pass_limits.hpp"
#include "reprise/loop/detail/sequence.hpp"
#include "reprise/loop/detail/ticketed_round.hpp"
#include "reprise/loop/pass.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise::inline v0 {

/// One sequence being decoded, without the engine: it says which batch to run next and takes the picks back.
///
///   begin -> { propose -> plan -> (you run the batch) -> resolve -> commit } until finished() -> append -> ...
///
/// Exactly the committed tokens of plain decoding, whatever strategy and control do: neither is trusted. A round
/// changes nothing before commit(): cancel it at any point and run it again. One round is open at a time.
///
/// Memory: 4 bytes per token of context, the strategy's, and that of a round. propose() never allocates; begin(),
/// append() and plan() may, and answer out_of_memory with the session as it was.
/// Throws: nothing of its own. What the strategy's begin/observe/truncate or the predicate throw passes through;
/// the session stays usable, and a strategy that threw is not asked again until begin().
/// Threads: one at a time per session; different sessions are independent.
/// A session that was moved from can be assigned to or destroyed, nothing else.
template <DraftStrategy Strategy, DraftControl Control = SendAll>
class Session {
 public:
  /// `max_draft_nodes`: the most nodes of a draft, in any round. Pad rows come on top, at most as many again.
  explicit Session(Strategy strategy, std::size_t max_draft_nodes = 64) requires std::default_initializable<Control>
      : Session(std::move(strategy), Control(), max_draft_nodes) {}
  Session(Strategy strategy, Control control, std::size_t max_draft_nodes = 64)
      : strategy_(std::move(strategy)), control_(std::move(control)), max_draft_nodes_(max_draft_nodes) {}
  // Not a default argument: clang 14 looks at it also where the strategy has no default constructor.
  Session() requires std::default_initializable<Strategy> && std::default_initializable<Control>
      : Session(Strategy(), Control()) {}
  Session(Session&&) noexcept(
      std::is_nothrow_move_constructible_v<Strategy>&& std::is_nothrow_move_constructible_v<Control>) = default;
  Session& operator=(Session&&) noexcept(
      std::is_nothrow_move_assignable_v<Strategy>&& std::is_nothrow_move_assignable_v<Control>) = default;
  Session(const Session&) = delete;  // fork() can say that memory ran out
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  /// Room for `max_context` tokens, for this and all further sequences: nothing allocates then on the way there, as
  /// long as no more tokens are pending than at begin(), and as the strategy promises. An open round is given up.
  /// Errors: out_of_memory; then the session grows as it goes.
  Result<void> reserve(std::size_t max_context) {
    round_.close();
    if (!sequence_.reserve(max_context)) return Sequence::no_memory();
    if constexpr (ReservableStrategy<Strategy>) strategy_.reserve(max_context);
    return {};
  }

  /// Starts a sequence. The engine has prefilled: its cache holds the first `cached` tokens of `context`, by
  /// default all but the last; the others are pending and ride in the first pass.
  /// Errors: empty_context, context_too_long, cached_out_of_range, too_many_pending, invalid_argument, out_of_memory.
  /// After an error the session is as before; out_of_memory gives an open round up.
  Result<void> begin(TokenSpan context, Capabilities capabilities = {}, std::optional<std::size_t> cached = {}) {
    if (auto checked = Sequence::check_begin(context, capabilities, cached); !checked) return checked;
    const std::size_t pending = context.size() - cached.value_or(context.size() - 1);
    const bool room = round_.reserve(max_draft_nodes_, capabilities, pending);
    round_.close();
    if (!room || !sequence_.begin(context, capabilities, cached)) return Sequence::no_memory();
    strategy_in_step_ = false;
    control_.begin();
    strategy_.begin(this->context());
    strategy_in_step_ = true;
    return {};
  }

  /// Adds tokens that the engine did not generate here: the next user turn, a tool result, or a first token that
  /// the prefill already gave. They count as context, not as output; a new output begins behind them. `cached`, as in
  /// begin(), is about the whole context: the token that was last until now is not in the cache either. `tokens` may be
  /// a part of this session's own context.
  /// Errors as begin(); not_begun. After an error the session is as before.
  Result<void> append(TokenSpan tokens, Origin origin = Origin::prompt, std::optional<std::size_t> cached = {}) {
    if (!sequence_.begun()) return Sequence::not_begun();
    if (auto added = sequence_.append(tokens, cached); !added) return added;
    round_.close();
    in_step([&] { strategy_.observe(context(), tokens.size(), origin); });
    return {};
  }

  /// Asks the strategy for a draft. The view holds until the next call that changes the session. When limits have
  /// been reached already there is no draft, and finished() is true. `limits` has to live until the round ends.
  /// `shape`: chain for a round that nobody can check a tree in, whatever limits and capabilities say.
  DraftView propose(const Limits& limits, DraftShape shape = DraftShape::tree) {
    round_.open(limits);
    if (!sequence_.begun()) return {};
    sequence_.apply(limits);
    if (finished() || !strategy_in_step_) return {};

    DraftBudget asked = limits.draft;
    asked.max_nodes = std::min(asked.max_nodes, max_draft_nodes_);
    asked.max_leaves = max_leaves(limits, capabilities(), shape);
    asked.shape = asked.max_leaves > 1 ? DraftShape::tree : DraftShape::chain;
    const DraftBudget budget =
        clamp_to_contract(DraftBudget(control_.budget(asked, pass_limits(sequence_, unlimited))), asked);
    Draft draft = round_.blank(budget);
    if (budget.max_nodes != 0) in_step([&] { strategy_.propose(context(), draft); });
    round_.propose(draft, asked.max_leaves, asked.max_nodes != 0 && budget.max_nodes == 0);
    return round_.draft();
  }
  DraftView propose(const Limits&&, DraftShape = DraftShape::tree) = delete;  // they are read until the round ends

  /// Leaves out of this round's draft what a rule does not allow: `allowed(path)` answers how many tokens of a run that
  /// begins behind the anchor may follow the committed ones, see ConstrainedVerifier. Between propose() and plan() (a
  /// ticket that is open is void then); not applied to sampled drafts, whose tokens may not be looked at. Throws what
  /// `allowed` throws.
  template <std::invocable<TokenSpan> Allowed>
  void constrain(Allowed&& allowed) {
    round_.constrain(allowed);
  }

  /// The part of the proposed draft that fits into a pass, for a planner that shares one pass between sequences: it
  /// chooses how many nodes each may send, and passes that to plan(). A ticket that is open is void then. Requires a
  /// control that is SendAll or derived from it: another one would shorten the plan of the batch again. Errors: those
  /// of plan(); out_of_memory not.
  template <std::same_as<Control> C = Control>  // looked at when it is called, so that a session can be instantiated
  Result<Offer> offer() {
    static_assert(
        std::derived_from<C, SendAll>,
        "Session::offer(): under a planner the session's control has to be SendAll, because the planner alone "
        "decides how much is drafted");
    round_.give_pass_up();
    const auto limit = round_.limit(sequence_, unlimited, Cut::budget);
    if (!limit) return limit.error();
    const auto fitting = round_.sendable();
    return Offer{round_.draft(), fitting.first(std::min(fitting.size(), limit->nodes)), pending().size()};
  }

  /// The pass to run, with as many tokens of the proposed draft as control chooses of those that fit, and at most
  /// `max_nodes` drafted rows; `why` is the Cut to count where that is the binding rule. May be called again in the
  /// same round: the older ticket is void then. Errors: not_begun, not_proposed, finished; too_many_pending and
  /// out_of_memory, which end the round.
  Result<Pass> plan(std::size_t max_nodes = unlimited, Cut why = Cut::budget) {
    if (static_cast<std::size_t>(why) >= cut_count) why = Cut::budget;
    const auto limit = round_.limit(sequence_, max_nodes, why);
    if (!limit) return limit.error();
    const PassLimits room = pass_limits(sequence_, limit->rows);
    const DraftChoice choice = round_.clamp(control_.choose(round_.draft(), round_.sendable(), room), *limit, room);
    if (!round_.plan(sequence_, choice, *limit, strategy_in_step_)) return Sequence::no_memory();
    return round_.pass(sequence_);
  }

  /// Reads the picks of the pass and decides what to commit. Changes nothing that a cancel() would not undo.
  /// `picks`: picks[i] is the target's token after row (anchor + i); with a size(), reading stops there.
  /// Errors: bad_ticket; bad_picks (there was no pick at all).
  template <Picks P, class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, P&& picks, Predicate&& predicate = Predicate()) {
    return round_.resolve(sequence_, ticket, picks, predicate);
  }

  /// The same for an engine that has walked the draft itself. Rows and tokens are checked against the draft.
  /// Errors: bad_ticket; bad_picks (they are no path of this draft).
  template <class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, Accepted accepted, Predicate&& predicate = Predicate()) {
    return round_.resolve(sequence_, ticket, accepted, predicate);
  }

  /// Tells the strategy what the target ranks high after row (anchor + i) of the pass, the likeliest first, also after
  /// rows that were not accepted (TopKVerifier). Between plan() and commit(), each row at most once; may allocate.
  /// Errors: bad_ticket.
  Result<void> report_top_k(Ticket ticket, std::size_t i, TokenSpan tokens) {
    return round_.report_top_k(ticket, i, tokens);
  }

  /// Makes the decision true: the engine has kept Decision::rows, or has put its state back where
  /// Decision::restore says so. `pass_time`: how long the pass took, rollback
  /// included, for control to learn from. Errors: bad_ticket.
  Result<void> commit(Ticket ticket, std::optional<std::chrono::nanoseconds> pass_time = {}) {
    if (!round_.resolved(ticket)) return TicketedRound::bad_ticket();
    const std::size_t before = context().size();
    const PassReport report = round_.report(sequence_, pass_time);
    const Outcome outcome = round_.commit(sequence_, pass_time);  // final, whatever control and strategy do now
    const bool in_step = std::exchange(strategy_in_step_, false);
    control_.learn(outcome, report);
    strategy_in_step_ = in_step;
    this->in_step([&] {
      strategy_.feedback(context().first(before), outcome);
      strategy_.observe(context(), context().size() - before, Origin::output);
    });
    return {};
  }

  /// Gives the round up: the session is as before it. Errors: bad_ticket.
  Result<void> cancel(Ticket ticket) { return round_.cancel(ticket); }

  /// Goes back to the first `size` tokens of the context (an edited turn, a rejected answer); generation can go on
  /// from there, also after it had finished. The engine cuts its cache to at most cached() rows. Errors: not_begun,
  /// size_out_of_range.
  Result<void> truncate(std::size_t size) {
    if (!sequence_.begun()) return Sequence::not_begun();
    const TokenSpan before = context();  // truncation leaves the memory behind it as it is
    if (auto cut = sequence_.truncate(size); !cut) return cut;
    round_.close();
    in_step([&] { strategy_.truncate(before, size); });
    return {};
  }

  /// The context is `context` from now on: it was compacted, or lost a block in the middle. As begin() with the same
  /// capabilities, but control and statistics go on, and a strategy that can (RebasableStrategy) keeps what it has seen
  /// as evidence. A new output begins behind it. `context` may be a part of this session's own.
  ///
  /// `cached`: the first tokens of `context` whose rows the engine's cache holds, by default all but the last. Of the
  /// old rows only those of the common beginning are worth keeping: a row behind it was computed at another position,
  /// and with the dropped tokens in its past. So cut the cache there, and prefill the rest again or leave it pending.
  /// Rows that were moved to their new positions instead (a context shift) give another output than prefill would; what
  /// is drafted does not add to that.
  /// Returns how many leading tokens the old and the new context share: of the rows in the engine's cache, so many at
  /// most are worth keeping. An engine that learns it only here cuts its cache there and calls set_cached() with it, or
  /// with one less than the context where that is smaller: the last token is never in the cache.
  /// Errors: not_begun, and those of begin(). After an error the session is as before; out_of_memory gives an open
  /// round up.
  Result<std::size_t> rebase(TokenSpan context, std::optional<std::size_t> cached = {}) {
    if (!sequence_.begun()) return Sequence::not_begun();
    if (auto checked = Sequence::check_begin(context, capabilities(), cached); !checked) return checked.error();
    const std::size_t pending = context.size() - cached.value_or(context.size() - 1);
    const bool room = round_.reserve(max_draft_nodes_, capabilities(), pending);
    round_.close();
    Buffer<Token> replaced;
    if (!room || !sequence_.rebase(context, cached, replaced)) return Sequence::no_memory();
    const TokenSpan before(replaced.data(), replaced.size());
    const TokenSpan now = this->context();
    [[maybe_unused]] const bool in_step = std::exchange(strategy_in_step_, false);
    if constexpr (RebasableStrategy<Strategy>) {
      if (in_step)
        strategy_.rebase(before, now);
      else  // it has thrown, and may have lost track of what it has seen
        strategy_.begin(now);
    } else {
      strategy_.begin(now);
    }
    strategy_in_step_ = true;
    return static_cast<std::size_t>(std::mismatch(before.begin(), before.end(), now.begin(), now.end()).first -
                                    before.begin());
  }

  /// The engine's cache holds the first `cached` tokens of the context now: fewer after preemption or eviction, and
  /// the tokens behind are pending again; or more, when it has prefilled pending ones. Errors: not_begun,
  /// cached_out_of_range, too_many_pending (prefill more of them first).
  Result<void> set_cached(std::size_t cached) {
    if (!sequence_.begun()) return Sequence::not_begun();
    if (auto changed = sequence_.set_cached(cached); !changed) return changed;
    round_.close();
    return {};
  }

  /// A second session that goes on from the committed state of this one. Errors: not_begun, out_of_memory.
  [[nodiscard]] Result<Session> fork() const {
    if (!sequence_.begun()) return Sequence::not_begun();
    Session other(strategy_, control_, max_draft_nodes_);
    if (!other.round_.reserve(max_draft_nodes_, capabilities(), pending().size()) || !other.sequence_.copy(sequence_))
      return Sequence::no_memory();
    other.strategy_in_step_ = strategy_in_step_;
    return other;
  }

  /// Ends generation on behalf of the caller, until append(), truncate() or begin(). Without a sequence: no effect.
  void finish() noexcept {
    if (!sequence_.begun()) return;
    round_.close();
    sequence_.finish();
  }

  [[nodiscard]] bool finished() const noexcept { return finish_reason() != FinishReason::none; }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return sequence_.finish_reason(); }
  /// All committed tokens. Valid until the session changes.
  [[nodiscard]] TokenSpan context() const noexcept { return sequence_.context(); }
  /// The output since begin() or the last append(), without the stop tokens that ended it.
  [[nodiscard]] TokenSpan output() const noexcept { return sequence_.output(); }
  /// The first part of output() that no stop sequence can take back any more: safe to stream. When generation has
  /// ended, all of it; so one that goes on after a limit was raised may complete a stop sequence that began there.
  [[nodiscard]] TokenSpan settled_output(const Limits& limits) const noexcept {
    return sequence_.settled_output(limits);
  }
  /// The part of settled_output() that no earlier call has handed out: for streaming. Valid until the session changes.
  [[nodiscard]] TokenSpan take_settled(const Limits& limits) noexcept { return sequence_.take_settled(limits); }
  /// Output tokens that take_settled() has handed out.
  [[nodiscard]] std::size_t taken() const noexcept { return sequence_.taken(); }
  /// Tokens of the context whose rows are in the engine's cache.
  [[nodiscard]] std::size_t cached() const noexcept { return sequence_.cached(); }
  [[nodiscard]] TokenSpan pending() const noexcept { return sequence_.pending(); }
  [[nodiscard]] const Capabilities& capabilities() const noexcept { return sequence_.capabilities(); }
  /// Counts since begin() or the last append(); rebase() does not end them.
  [[nodiscard]] const Statistics& statistics() const noexcept { return sequence_.statistics(); }
  /// Counts time that the caller has spent on drafting (in propose() and plan(), say): this library reads no clock.
  /// Once for each round, if the mean is to be that of a round. Nothing decides on it; see CostOptions::drafting for
  /// that.
  void add_drafting_time(std::chrono::nanoseconds time) noexcept { sequence_.statistics().drafting_time.add(time); }
  [[nodiscard]] Strategy& strategy() noexcept { return strategy_; }
  [[nodiscard]] const Strategy& strategy() const noexcept { return strategy_; }
  [[nodiscard]] Control& control() noexcept { return control_; }
  [[nodiscard]] const Control& control() const noexcept { return control_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    std::size_t bytes = sequence_.memory_bytes() + round_.memory_bytes();
    if constexpr (MeasurableStrategy<Strategy>) bytes += strategy_.memory_bytes();
    return bytes;
  }

 private:
  /// Calls into the strategy; should it throw, it has lost step with the context and is not asked again.
  template <class Call>
  void in_step(Call&& call) {
    if (!strategy_in_step_) return;
    strategy_in_step_ = false;
    call();
    strategy_in_step_ = true;
  }

  Strategy strategy_;
  Control control_;
  std::size_t max_draft_nodes_;
  Sequence sequence_;
  bool strategy_in_step_ = false;
  TicketedRound round_;
};

}  // namespace reprise
