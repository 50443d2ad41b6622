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

#include "reprise/core/buffer.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/pass.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise {

/// One sequence being decoded, without the engine: it says which batch to run next and takes the picks back.
///
///   begin -> { propose -> plan -> (you run the batch) -> resolve -> commit } until finished() -> append -> ...
///
/// Exactly the committed tokens of plain decoding, whatever the strategy does. A round changes nothing before
/// commit(): cancel it at any point and run it again. One round is open at a time.
///
/// Memory: 4 bytes per token of context, the strategy's, and about 40 bytes per draft node. propose() never
/// allocates; begin(), append() and plan() may, and answer out_of_memory with the session as it was.
/// Throws: nothing of its own. What the strategy's begin/observe/truncate or the predicate throw passes through;
/// the session stays usable, and a strategy that threw is not asked again until begin().
/// Threads: one at a time per session; different sessions are independent.
/// A session that was moved from can be assigned to or destroyed, nothing else.
template <DraftStrategy Strategy>
class Session {
 public:
  /// `max_draft_nodes`: the most nodes of a draft, in any round.
  explicit Session(Strategy strategy, std::size_t max_draft_nodes = 64)
      : strategy_(std::move(strategy)), max_draft_nodes_(max_draft_nodes) {}
  // Not a default argument: clang 14 looks at it also where the strategy has no default constructor.
  Session() requires std::default_initializable<Strategy> : Session(Strategy()) {}
  Session(Session&&) noexcept(std::is_nothrow_move_constructible_v<Strategy>) = default;
  Session& operator=(Session&&) noexcept(std::is_nothrow_move_assignable_v<Strategy>) = default;
  Session(const Session&) = delete;  // fork() can say that memory ran out
  Session& operator=(const Session&) = delete;
  ~Session() = default;

  /// Room for `max_context` tokens, for this and all further sequences: nothing allocates then on the way there. An
  /// open round is given up. Errors: out_of_memory; then the session grows as it goes.
  Result<void> reserve(std::size_t max_context) {
    drop_round();  // its draft lies behind the context, and would not move along
    if (!context_.reserve(max_context)) return no_memory();
    reserved_ = max_context;
    if constexpr (ReservableStrategy<Strategy>) strategy_.reserve(max_context);
    return {};
  }

  /// Starts a sequence. The engine has prefilled: its cache holds the first `cached` tokens of `context`, by
  /// default all but the last; the others are pending and ride in the first pass.
  /// Errors: empty_context, context_too_long, cached_out_of_range, too_many_pending, unsupported, out_of_memory.
  /// After an error the session is as before.
  Result<void> begin(TokenSpan context, Capabilities capabilities = {}, std::optional<std::size_t> cached = {}) {
    if (context.empty())
      return Error{ErrorCode::empty_context, "the context is empty: begin with at least one token (BOS will do)"};
    if (capabilities.rollback != Rollback::trim)
      return Error{ErrorCode::unsupported,
                   "the engine cannot trim its cache: this loop needs Rollback::trim (drop the last rows of a pass)"};
    if (capabilities.max_rows == 0)
      return Error{ErrorCode::unsupported, "Capabilities::max_rows is 0: a pass needs at least the anchor's row"};
    if (context.size() > capabilities.max_context)
      return Error{ErrorCode::context_too_long,
                   "the context is longer than Capabilities::max_context: shorten the prompt", context.size(),
                   capabilities.max_context};
    if (auto checked = check_cached(context.size(), cached.value_or(context.size() - 1), capabilities); !checked)
      return checked;

    const std::size_t room = std::max(context.size() + headroom, reserved_);
    if (!reserve_scratch()) return no_memory();
    if (context_.capacity() < room) {
      Buffer<Token> fresh;
      if (!fresh.reserve(room)) return no_memory();
      static_cast<void>(fresh.append(context));
      context_.swap(fresh);
    } else {
      context_.clear();  // `context` may be a part of it
      static_cast<void>(context_.append(context));
    }
    capabilities_ = capabilities;
    cached_ = cached.value_or(context.size() - 1);
    phase_ = Phase::ready;
    restart_output();
    strategy_in_step_ = false;
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
    const std::size_t size = context_.size() + tokens.size();
    if (size > capabilities_.max_context)
      return Error{ErrorCode::context_too_long, "the context would be longer than Capabilities::max_context", size,
                   capabilities_.max_context};
    if (auto checked = check_cached(size, cached.value_or(size - 1), capabilities_); !checked) return checked;
    if (!context_.reserve_extra(tokens.size())) return no_memory();
    drop_round();
    static_cast<void>(context_.append(tokens));
    cached_ = cached.value_or(size - 1);
    restart_output();
    in_step([&] { strategy_.observe(tokens, origin); });
    return {};
  }

  /// Asks the strategy for a draft. The view holds until the next call that changes the session. When limits have
  /// been reached already there is no draft, and finished() is true. `limits` has to live until the round ends.
  DraftView propose(const Limits& limits) {
    drop_round();
    if (phase_ == Phase::empty) return {};
    limits_ = &limits;
    if (at_limit()) finish_ = FinishReason::none;
    if (finish_ == FinishReason::none && output_size() >= limits.max_tokens) finish_ = FinishReason::max_tokens;
    if (finish_ == FinishReason::none && context_.size() >= max_context()) finish_ = FinishReason::context_full;
    if (finished() || !strategy_in_step_) return {};
    Draft draft(std::span(nodes_.data(), max_draft_nodes_));
    DraftBudget budget = limits.draft;
    budget.max_nodes = std::min(budget.max_nodes, max_draft_nodes_);
    if (budget.max_nodes != 0) strategy_.propose(budget, draft);
    draft.truncate(budget.max_nodes);
    draft_ = draft.view();
    chain_size_ = best_chain(draft_, std::span(chain_.data(), max_draft_nodes_));
    return draft_;
  }
  DraftView propose(const Limits&&) = delete;  // the session reads the limits until the round ends

  /// The pass to run, with at most `nodes` tokens of the proposed draft; `why` is what is counted when that is the
  /// binding rule. May be called again in the same round: the older ticket is void then.
  /// Errors: not_begun, not_proposed, finished; too_many_pending and out_of_memory, which end the round.
  Result<Pass> plan(std::size_t nodes = unlimited, Cut why = Cut::budget) {
    if (phase_ == Phase::empty) return not_begun();
    if (limits_ == nullptr)
      return Error{ErrorCode::not_proposed, "plan() belongs to a round: call propose() first, once for each round"};
    if (finished())
      return Error{ErrorCode::finished, "generation has ended: append() a turn, raise the limits or begin() anew"};
    const std::size_t pending = context_.size() - cached_;
    const std::size_t rows = std::min(limits_->max_rows, capabilities_.max_rows);
    if (pending > rows) {
      drop_round();
      return too_many_pending(pending, rows);
    }

    Room room(draft_.size());
    room.bound(chain_size_, Cut::shape);
    room.bound(limits_->draft.max_depth, Cut::budget);
    room.bound(nodes, why);
    room.bound(capabilities_.max_depth, Cut::depth);
    room.bound(capabilities_.max_rollback, Cut::rollback);
    room.bound(rows - pending, Cut::rows);
    room.bound(left(max_context(), context_.size()), Cut::context);
    room.bound(left(limits_->max_tokens, output_size()), Cut::max_tokens);
    room.bound_width(capabilities_.allowed_widths.values(), pending);
    // The draft is written behind the context, so that [pending | draft] is one run of memory without a copy, and
    // room for everything this pass can commit exists before the engine is asked to run it.
    if (!context_.reserve_extra(room.nodes() + 1)) {
      room.bound(0, Cut::memory);
      if (!context_.reserve_extra(1)) {
        drop_round();
        return no_memory();
      }
    }
    drafted_ = room.nodes();
    const bool unasked = limits_->draft.max_nodes == 0 || max_draft_nodes_ == 0;
    cut_ = !draft_.empty() ? room.cut() : unasked ? Cut::budget : strategy_in_step_ ? Cut::no_match : Cut::failed;
    for (std::size_t i = 0; i < drafted_; ++i)
      context_.data()[context_.size() + i] = draft_[static_cast<std::size_t>(chain_[i])].token;
    phase_ = Phase::planned;
    ++ticket_.id;
    return Pass{TokenSpan(context_.data() + cached_, pending + drafted_), pending, drafted_,
                PassShape{1, pending + drafted_, context_.size()}, ticket_};
  }

  /// Reads the picks of the pass and decides what to commit. Changes nothing that a cancel() would not undo.
  /// `picks`: picks[i] is the target's token after row (anchor + i); with a size(), reading stops there.
  /// Errors: bad_ticket; bad_picks (there was no pick at all).
  template <Picks P, class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, P&& picks, Predicate&& predicate = Predicate()) {
    if (auto checked = check_ticket(ticket, Phase::planned); !checked) return checked.error();
    WalkInput in{TokenSpan(context_.data() + output_begin_, output_size() + drafted_),
                 output_size(),
                 context_.size(),
                 max_context(),
                 context_.size() - cached_ - 1,
                 unlimited};
    if constexpr (requires { picks.size(); }) in.picks_size = static_cast<std::size_t>(picks.size());
    if (in.picks_size == 0)
      return Error{ErrorCode::bad_picks, "no picks: a pass gives at least the token after the anchor's row"};
    walked_ = walk(in, *limits_, picks, predicate, std::span(committed_.data(), max_draft_nodes_ + 1));
    phase_ = Phase::resolved;
    return Decision{std::span(committed_.data(), walked_.committed), keep(), walked_.accepted, walked_.finish};
  }

  /// The same for an engine that has walked the draft itself. Rows and tokens are checked against the draft.
  /// Errors: bad_ticket; bad_picks (they are no path of this draft).
  template <class Predicate = NeverStop>
  Result<Decision> resolve(Ticket ticket, Accepted accepted, Predicate&& predicate = Predicate()) {
    if (auto checked = check_ticket(ticket, Phase::planned); !checked) return checked.error();
    const std::size_t anchor_row = context_.size() - cached_ - 1;
    bool path = accepted.rows.size() == accepted.tokens.size() && accepted.tokens.size() <= drafted_ + 1;
    for (std::size_t i = 0; path && i < accepted.rows.size(); ++i)
      path =
          accepted.rows[i] == anchor_row + i && (i == 0 || accepted.tokens[i - 1] == context_[context_.size() + i - 1]);
    if (!path)
      return Error{
          ErrorCode::bad_picks,
          "the accepted rows are no path of this draft: each row after the anchor's must hold the token before it"};
    return resolve(ticket, accepted.tokens, std::forward<Predicate>(predicate));
  }

  /// Makes the decision true: the engine has kept Decision::keep rows. Errors: bad_ticket.
  Result<void> commit(Ticket ticket) {
    if (auto checked = check_ticket(ticket, Phase::resolved); !checked) return checked;
    const std::size_t before = context_.size();
    cached_ += keep();
    for (std::size_t i = 0; i < walked_.committed; ++i)
      context_.push_reserved(committed_[i].token);  // plan() made room
    finish_ = walked_.finish;
    trim_ = walked_.trim;
    ++statistics_.passes;
    statistics_.tokens += walked_.committed;
    statistics_.drafted += drafted_;
    statistics_.accepted += walked_.accepted;
    ++statistics_.cuts[static_cast<std::size_t>(cut_)];

    const Outcome outcome{
        draft_, std::span(chain_.data(), drafted_), std::span(chain_.data(), walked_.accepted), walked_.pick, cut_, {}};
    drop_round();  // the round is over, whatever the strategy does now; the memory behind the outcome stays
    in_step([&] {
      strategy_.feedback(outcome);
      strategy_.observe(context().subspan(before), Origin::output);
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
    if (size == 0 || size > context_.size())
      return Error{ErrorCode::size_out_of_range, "truncate() keeps between 1 token and the whole context", size,
                   context_.size()};
    drop_round();
    finish_ = FinishReason::none;
    trim_ = 0;
    const std::size_t kept_output = size > output_begin_ ? size - output_begin_ : 0;
    statistics_.tokens -= std::min<std::uint64_t>(statistics_.tokens, output_size() - kept_output);
    output_begin_ = std::min(output_begin_, size);
    taken_ = std::min(taken_, kept_output);
    context_.truncate(size);
    cached_ = std::min(cached_, size - 1);
    in_step([&] { strategy_.truncate(size); });
    return {};
  }

  /// The engine's cache holds the first `cached` tokens of the context now: fewer after preemption or eviction, and
  /// the tokens behind are pending again; or more, when it has prefilled pending ones. Errors: not_begun,
  /// cached_out_of_range, too_many_pending (prefill more of them first).
  Result<void> set_cached(std::size_t cached) {
    if (phase_ == Phase::empty) return not_begun();
    if (auto checked = check_cached(context_.size(), cached, capabilities_); !checked) return checked;
    drop_round();
    cached_ = cached;
    return {};
  }

  /// A second session that goes on from the committed state of this one. Errors: not_begun, out_of_memory.
  [[nodiscard]] Result<Session> fork() const {
    if (phase_ == Phase::empty) return not_begun();
    Session other(strategy_, max_draft_nodes_);
    if (!other.context_.reserve(std::max(context_.size() + headroom, reserved_)) || !other.reserve_scratch())
      return no_memory();
    static_cast<void>(other.context_.append(context_));
    other.reserved_ = reserved_;
    other.capabilities_ = capabilities_;
    other.statistics_ = statistics_;
    other.cached_ = cached_;
    other.output_begin_ = output_begin_;
    other.taken_ = taken_;
    other.trim_ = trim_;
    other.finish_ = finish_;
    other.strategy_in_step_ = strategy_in_step_;
    other.phase_ = Phase::ready;
    return other;
  }

  /// Ends generation on behalf of the caller, until append(), truncate() or begin().
  void finish() noexcept {
    drop_round();
    if (finish_ == FinishReason::none || at_limit()) finish_ = FinishReason::caller;
  }

  [[nodiscard]] bool finished() const noexcept { return finish_ != FinishReason::none; }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return finish_; }
  /// All committed tokens. Valid until the session changes.
  [[nodiscard]] TokenSpan context() const noexcept { return {context_.data(), context_.size()}; }
  /// The output since begin() or the last append(), without the stop tokens that ended it.
  [[nodiscard]] TokenSpan output() const noexcept { return context().subspan(output_begin_, output_size() - trim_); }
  /// The first part of output() that no stop sequence can take back any more: safe to stream. When generation has
  /// ended, all of it; so one that goes on after a limit was raised may complete a stop sequence that began there.
  [[nodiscard]] TokenSpan settled_output(const Limits& limits) const noexcept {
    const TokenSpan all = output();
    return finished() ? all : all.first(all.size() - held_back(limits, all));
  }
  /// The part of settled_output() that no earlier call has handed out: for streaming. Valid until the session changes.
  [[nodiscard]] TokenSpan take_settled(const Limits& limits) noexcept {
    const TokenSpan settled = settled_output(limits);
    const TokenSpan fresh = settled.subspan(std::min(taken_, settled.size()));
    taken_ = std::max(taken_, settled.size());
    return fresh;
  }
  /// Output tokens that take_settled() has handed out.
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  /// Tokens of the context whose rows are in the engine's cache.
  [[nodiscard]] std::size_t cached() const noexcept { return cached_; }
  [[nodiscard]] TokenSpan pending() const noexcept { return context().subspan(cached_); }
  [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }
  /// Counts since begin() or the last append().
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] Strategy& strategy() noexcept { return strategy_; }
  [[nodiscard]] const Strategy& strategy() const noexcept { return strategy_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    std::size_t bytes =
        context_.memory_bytes() + nodes_.memory_bytes() + chain_.memory_bytes() + committed_.memory_bytes();
    if constexpr (MeasurableStrategy<Strategy>) bytes += strategy_.memory_bytes();
    return bytes;
  }

 private:
  enum class Phase : std::uint8_t { empty, ready, planned, resolved };
  static constexpr std::size_t headroom = 64;  // a first pass should not have to grow the context

  static Error not_begun() { return {ErrorCode::not_begun, "no sequence: call begin() with the prompt first"}; }
  static Error no_memory() { return {ErrorCode::out_of_memory, "out of memory; nothing was changed"}; }
  static Error bad_ticket() {
    return {ErrorCode::bad_ticket,
            "not the open ticket: the order is plan, resolve, commit, each once, with the newest ticket"};
  }
  static Error too_many_pending(std::size_t pending, std::size_t rows) {
    return {ErrorCode::too_many_pending, "more pending tokens than a pass has rows: prefill all but the last few",
            pending, rows};
  }

  static Result<void> check_cached(std::size_t size, std::size_t cached, const Capabilities& capabilities) {
    if (cached >= size)
      return Error{ErrorCode::cached_out_of_range,
                   "at most all tokens but the last can be in the cache: the last is the anchor of the next pass",
                   cached, size};
    if (size - cached > capabilities.max_rows) return too_many_pending(size - cached, capabilities.max_rows);
    return {};
  }
  [[nodiscard]] Result<void> check_ticket(Ticket ticket, Phase phase) const {
    if (ticket != ticket_ || phase_ != phase) return bad_ticket();
    return {};
  }

  [[nodiscard]] bool reserve_scratch() noexcept {
    return nodes_.reserve(max_draft_nodes_) && chain_.reserve(max_draft_nodes_) &&
           committed_.reserve(max_draft_nodes_ + 1);
  }
  [[nodiscard]] std::size_t max_context() const noexcept {
    return std::min(limits_->max_context, capabilities_.max_context);
  }
  /// Draft tokens that leave room for the bonus token; none where a limit was lowered within the round.
  static std::size_t left(std::size_t limit, std::size_t used) noexcept { return limit > used ? limit - used - 1 : 0; }
  /// Ended by a limit, which may be raised.
  [[nodiscard]] bool at_limit() const noexcept {
    return finish_ == FinishReason::max_tokens || finish_ == FinishReason::context_full;
  }
  [[nodiscard]] std::size_t output_size() const noexcept { return context_.size() - output_begin_; }
  [[nodiscard]] std::size_t keep() const noexcept { return context_.size() - cached_ + walked_.committed - 1; }

  void restart_output() noexcept {
    drop_round();
    output_begin_ = context_.size();
    taken_ = 0;
    trim_ = 0;
    finish_ = FinishReason::none;
    statistics_ = {};
  }
  void drop_round() noexcept {
    if (phase_ != Phase::empty) phase_ = Phase::ready;
    draft_ = {};
    chain_size_ = 0;
    drafted_ = 0;
    limits_ = nullptr;
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
  std::size_t max_draft_nodes_;
  Capabilities capabilities_;
  Statistics statistics_;

  Buffer<Token> context_;
  std::size_t reserved_ = 0;
  std::size_t cached_ = 0;
  std::size_t output_begin_ = 0;
  std::size_t taken_ = 0;  // output tokens that were handed out by take_settled()
  std::size_t trim_ = 0;
  FinishReason finish_ = FinishReason::none;
  bool strategy_in_step_ = false;

  // The open round.
  Phase phase_ = Phase::empty;
  Ticket ticket_;
  const Limits* limits_ = nullptr;
  DraftView draft_;
  std::size_t chain_size_ = 0;
  std::size_t drafted_ = 0;
  Cut cut_ = Cut::none;
  Walk walked_;
  Buffer<DraftNode> nodes_;
  Buffer<NodeIndex> chain_;  // the best chain of the draft
  Buffer<CommittedToken> committed_;
};

}  // namespace reprise
