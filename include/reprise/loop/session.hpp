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
#include "reprise/loop/detail/open_round.hpp"
#include "reprise/loop/detail/pass_limits.hpp"
#include "reprise/loop/detail/sequence.hpp"
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
/// Memory: 4 bytes per token of context, the strategy's, and that of OpenRound. propose() never allocates; begin(),
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
    drop_round();
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
    if (!round_.reserve(max_draft_nodes_, pads(capabilities), pending) ||
        !sequence_.begin(context, capabilities, cached)) {
      drop_round();
      return Sequence::no_memory();
    }
    phase_ = Phase::ready;
    drop_round();
    strategy_in_step_ = false;
    control_.begin();
    strategy_.begin(this->context());
    strategy_in_step_ = true;
    return {};
  }

  /// Adds tokens that the engine did not generate here: the next user turn, a tool result, or a first token that
  /// the prefill already gave. They count as context, not as output; a new output begins behind them. `cached`, as in
  /// begin(), is about the whole context: the token that was last until now is not in the cache either. `tokens` may
  /// not lie in this session's own context.
  /// Errors as begin(); not_begun. After an error the session is as before.
  Result<void> append(TokenSpan tokens, Origin origin = Origin::prompt, std::optional<std::size_t> cached = {}) {
    if (phase_ == Phase::empty) return not_begun();
    if (auto added = sequence_.append(tokens, cached); !added) return added;
    drop_round();
    in_step([&] { strategy_.observe(context(), tokens.size(), origin); });
    return {};
  }

  /// Asks the strategy for a draft. The view holds until the next call that changes the session. When limits have
  /// been reached already there is no draft, and finished() is true. `limits` has to live until the round ends.
  /// `shape`: chain for a round that nobody can check a tree in, whatever limits and capabilities say.
  DraftView propose(const Limits& limits, DraftShape shape = DraftShape::tree) {
    drop_round();
    if (phase_ == Phase::empty) return {};
    limits_ = &limits;
    shape_ = shape;
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
    round_.propose(draft, asked.max_leaves);
    gated_ = (asked.max_nodes != 0 && budget.max_nodes == 0) || draft.held_back();
    unlikely_ = draft.left_out();
    return round_.draft();
  }
  DraftView propose(const Limits&&, DraftShape = DraftShape::tree) = delete;  // they are read until the round ends

  /// Leaves out of this round's draft what a rule does not allow: `allowed(path)` answers how many tokens of a run that
  /// begins behind the anchor may follow the committed ones, see ConstrainedVerifier. Between propose() and plan() (a
  /// ticket that is open is void then); not applied to sampled drafts, whose tokens may not be looked at. Throws what
  /// `allowed` throws.
  template <std::invocable<TokenSpan> Allowed>
  void constrain(Allowed&& allowed) {
    give_pass_up();
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
    give_pass_up();
    const auto limit = draft_limit(unlimited, Cut::budget);
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
    const auto limit = draft_limit(max_nodes, why);
    if (!limit) return limit.error();
    const PassLimits room = pass_limits(sequence_, limit->rows);
    DraftChoice choice = round_.clamp(control_.choose(round_.draft(), round_.sendable(), room), *limit, room);
    // Room for everything this pass can commit exists before the engine is asked to run it.
    if (!build(choice) && !build(choice = {0, 0, Cut::out_of_memory})) {
      drop_round();
      return Sequence::no_memory();
    }
    cut_ = why_cut(*limit, choice);
    phase_ = Phase::planned;
    ++ticket_.id;
    return Pass{.batch = round_.batch(),
                .pending = round_.pending(),
                .drafted = round_.drafted(),
                .padding = round_.padding(),
                .parents = round_.parents(),
                .depths = round_.depths(),
                .nodes = round_.nodes(),
                .kind = round_.draft().kind(),
                .shape = {1, round_.batch().size(), context().size()},
                .ticket = ticket_};
  }

  /// Reads the picks of the pass and decides what to commit. Changes nothing that a cancel() would not undo.
  /// `picks`: picks[i] is the target's token after row (anchor + i); with a size(), reading stops there.
  /// Errors: bad_ticket; bad_picks (there was no pick at all).
  template <Picks P, class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, P&& picks, Predicate&& predicate = Predicate()) {
    if (auto checked = check_ticket(ticket, Phase::planned); !checked) return checked.error();
    std::size_t rows = unlimited;
    if constexpr (requires { picks.size(); }) rows = static_cast<std::size_t>(picks.size());
    if (rows == 0)
      return Error{ErrorCode::bad_picks, "no picks: a pass gives at least the token after the anchor's row"};
    return decide(picks, predicate, rows, unlimited);
  }

  /// The same for an engine that has walked the draft itself. Rows and tokens are checked against the draft.
  /// Errors: bad_ticket; bad_picks (they are no path of this draft).
  template <class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, Accepted accepted, Predicate&& predicate = Predicate()) {
    if (auto checked = check_ticket(ticket, Phase::planned); !checked) return checked.error();
    if (!round_.holds(accepted))
      return Error{
          ErrorCode::bad_picks,
          "the accepted rows are no path of this draft: each row after the anchor's must follow the row before "
          "it and hold the token before it"};
    PathPicks picks{accepted.tokens};
    return decide(picks, predicate, unlimited, accepted.tokens.size());
  }

  /// Tells the strategy what the target ranks high after row (anchor + i) of the pass, the likeliest first, also after
  /// rows that were not accepted (TopKVerifier). Between plan() and commit(), each row at most once; may allocate.
  /// Errors: bad_ticket.
  Result<void> report_top_k(Ticket ticket, std::size_t i, TokenSpan tokens) {
    if (ticket != ticket_ || (phase_ != Phase::planned && phase_ != Phase::resolved)) return bad_ticket();
    round_.report_top_k(i, tokens);
    return {};
  }

  /// Makes the decision true: the engine has kept Decision::rows, or has put its state back where
  /// Decision::restore says so. `pass_time`: how long the pass took, rollback
  /// included, for control to learn from. Errors: bad_ticket.
  Result<void> commit(Ticket ticket, std::optional<std::chrono::nanoseconds> pass_time = {}) {
    if (auto checked = check_ticket(ticket, Phase::resolved); !checked) return checked;
    const std::size_t before = context().size();
    const PassShape plain = plain_shape(sequence_);
    PassReport report{plain, plain, walked_.committed, pass_time, replays(capabilities()) && keep_ == 0};
    report.sent.rows += round_.drafted();
    sequence_.commit(round_.walk_output().committed.first(walked_.committed), walked_, keep_);
    const Outcome outcome = round_.outcome(walked_, cut_);
    sequence_.statistics().record(outcome, round_.depths(), round_.padding(), walked_.committed, pass_time);
    drop_round();  // the round is over, whatever control and strategy do now; the memory behind the outcome stays
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
  Result<void> cancel(Ticket ticket) {
    if (ticket != ticket_ || (phase_ != Phase::planned && phase_ != Phase::resolved)) return bad_ticket();
    drop_round();
    return {};
  }

  /// Goes back to the first `size` tokens of the context (an edited turn, a rejected answer); generation can go on
  /// from there, also after it had finished. The engine cuts its cache to at most cached() rows. Errors: not_begun,
  /// size_out_of_range.
  Result<void> truncate(std::size_t size) {
    if (phase_ == Phase::empty) return not_begun();
    const TokenSpan before = context();  // truncation leaves the memory behind it as it is
    if (auto cut = sequence_.truncate(size); !cut) return cut;
    drop_round();
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
    if (phase_ == Phase::empty) return not_begun();
    if (auto checked = Sequence::check_begin(context, capabilities(), cached); !checked) return checked.error();
    const std::size_t pending = context.size() - cached.value_or(context.size() - 1);
    const bool room = round_.reserve(max_draft_nodes_, pads(capabilities()), pending);
    drop_round();
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
    if (phase_ == Phase::empty) return not_begun();
    if (auto changed = sequence_.set_cached(cached); !changed) return changed;
    drop_round();
    return {};
  }

  /// A second session that goes on from the committed state of this one. Errors: not_begun, out_of_memory.
  [[nodiscard]] Result<Session> fork() const {
    if (phase_ == Phase::empty) return not_begun();
    Session other(strategy_, control_, max_draft_nodes_);
    if (!other.round_.reserve(max_draft_nodes_, pads(capabilities()), pending().size()) ||
        !other.sequence_.copy(sequence_))
      return Sequence::no_memory();
    other.strategy_in_step_ = strategy_in_step_;
    other.phase_ = Phase::ready;
    return other;
  }

  /// Ends generation on behalf of the caller, until append(), truncate() or begin(). Without a sequence: no effect.
  void finish() noexcept {
    if (phase_ == Phase::empty) return;
    drop_round();
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
  enum class Phase : std::uint8_t { empty, ready, planned, resolved };

  static Error not_begun() { return {ErrorCode::not_begun, "no sequence: call begin() with the prompt first"}; }
  static Error bad_ticket() {
    return {ErrorCode::bad_ticket,
            "not the open ticket: the order is plan, resolve, commit, each once, with the newest ticket"};
  }
  [[nodiscard]] Result<void> check_ticket(Ticket ticket, Phase phase) const {
    if (ticket != ticket_ || phase_ != phase) return bad_ticket();
    return {};
  }

  /// How many nodes of the round's draft the next pass may carry; see limit_draft().
  [[nodiscard]] Result<DraftLimit> draft_limit(std::size_t max_nodes, Cut why) noexcept {
    if (phase_ == Phase::empty) return not_begun();
    if (limits_ == nullptr)
      return Error{ErrorCode::not_proposed, "plan() belongs to a round: call propose() first, once for each round"};
    if (finished())
      return Error{ErrorCode::finished, "generation has ended: append() a turn, raise the limits or begin() anew"};
    const std::size_t rows = most_rows(*limits_, capabilities());
    if (pending().size() > rows) {
      drop_round();
      return Sequence::too_many_pending(pending().size(), rows);
    }
    return limit_draft(sequence_, *limits_, max_nodes, why, round_);
  }
  /// The rule to count: the one that left no more nodes than were sent.
  [[nodiscard]] Cut why_cut(const DraftLimit& limit, const DraftChoice& choice) const noexcept {
    if (round_.draft().empty()) {
      if (limits_->draft.max_nodes == 0 || max_draft_nodes_ == 0) return Cut::budget;
      if (!strategy_in_step_) return Cut::strategy_threw;
      if (unlikely_) return Cut::unlikely;
      if (round_.malformed()) return Cut::shape;
      return !gated_ ? Cut::no_match : choice.cut != Cut::none ? choice.cut : Cut::throttled;
    }
    if (choice.nodes == limit.nodes) return limit.cut;
    return choice.cut != Cut::none ? choice.cut : Cut::budget;
  }
  /// The batch, and room for everything that its pass can commit before the engine is asked to run it. False: out of
  /// memory.
  [[nodiscard]] bool build(const DraftChoice& choice) noexcept {
    return sequence_.reserve_extra(choice.nodes + choice.padding + 1) &&
           round_.build(pending(), choice, capabilities().pad_token.value_or(0));
  }
  template <class P, class Predicate>
  Decision decide(P&& picks, Predicate&& predicate, std::size_t picked_rows, std::size_t most_picks) {
    const WalkInput in{.text = sequence_.output_and_room(),
                       .output = sequence_.output_size(),
                       .context = context().size(),
                       .max_context = sequence_.max_context(*limits_),
                       .draft = round_.batch().last(round_.drafted()),
                       .parents = round_.parents(),
                       .auxiliary = round_.auxiliary(),
                       .anchor_row = round_.pending() - 1,
                       .picked_rows = picked_rows,
                       .most_picks = most_picks};
    walked_ = walk(in, *limits_, picks, predicate, round_.walk_output());
    phase_ = Phase::resolved;
    Decision decision = round_.decision(walked_);
    decision.restore = replays(capabilities()) && decision.keep < round_.batch().size();
    keep_ = decision.restore ? 0 : decision.keep;
    return decision;
  }

  /// The draft stays, but what was planned of it is not to be run or read any more: its arrays are written anew.
  void give_pass_up() noexcept {
    if (phase_ != Phase::empty) phase_ = Phase::ready;
  }
  void drop_round() noexcept {
    give_pass_up();
    round_.clear();
    limits_ = nullptr;
    gated_ = false;
    unlikely_ = false;
  }
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

  // The open round.
  Phase phase_ = Phase::empty;
  Ticket ticket_;
  const Limits* limits_ = nullptr;
  DraftShape shape_ = DraftShape::tree;
  OpenRound round_;
  bool gated_ = false;     // control asked for no draft, or the strategy has stopped
  bool unlikely_ = false;  // the strategy has left out what was too unlikely
  Cut cut_ = Cut::none;
  Walk walked_;
  std::size_t keep_ = 0;
};

}  // namespace reprise
