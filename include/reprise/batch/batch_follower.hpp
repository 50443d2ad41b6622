// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/batch/detail/batch_heads.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/head_forecast.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/detail/followed_sequence.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise { inline namespace v0 {

/// One slot of the next pass.
struct FollowedSlot {
  std::size_t slot = 0;          ///< below BatchFollower::slots()
  TokenSpan ids;                 ///< all committed tokens of the slot's request, at least one
  std::size_t most = unlimited;  ///< upper bound on the drafted tokens; 0 for a slot that must not draft
  std::optional<std::uint64_t> conversation = {};  ///< see Follower
  std::size_t after = 0;  ///< the number of tokens that the slot knows, if `ids` are those after them; see Follower
};

/// The sequences of an engine that owns the decoding loop, decodes several of them in each pass, and reports nothing
/// except token ids. Before each pass, the engine passes the ids of every slot that takes part, and gets their drafts:
///
///   auto follower = BatchFollower<NgramDrafter<>>::make(16).value();
///   while (...) {
///     drafts = follower.draft(slots, now);  // slots that decode in the next pass
///     ... the engine verifies the drafts in one pass and appends to the ids of each slot ...
///   }
///
/// Each slot reads its ids by the rules of Follower: ids decide, never counts. So a request that ends, is cancelled, is
/// replaced by another one or goes on in another slot needs no call. One BatchPlanner divides the rows of each pass,
/// with one slot or many. It owns what belongs to the engine: the learned costs and the loss budget.
///
/// Losses: a planned draft whose result the next call does not show counts as lost. If its slot is not in that call,
/// the draft waits, and its tokens count when the slot is in a call again. So slots may take turns, pause for any
/// number of calls, or run in several passes that are under way at once. A slot whose ids have not changed seems not
/// to have run: nothing is learned from its draft, which counts as lost only until the slot shows tokens.
///
/// Pass times: the interval between two calls is the time of the pass between them, if no slot began, appended,
/// removed or replaced tokens. If several calls come before their passes, pass no `now`: the intervals say nothing.
/// Call ran() if a pass can hold other rows, such as those of a prompt. Then an interval counts if the rows that ran
/// are those that were planned, and slots may begin as long as another one goes on. So a busy server learns its costs.
///
/// Nothing of the text of a request is left in its slot after another request has begun there. With an `after`, the
/// caller says that none has begun. A slot drafts from its own text and from what its strategy reads. Other slots
/// change only how many tokens it drafts, and calibration learns from these drafts. Give the strategy a store if slots
/// should share text, and assign() a strategy to each request if they belong to several tenants.
///
/// Groups: slots whose requests began with the same prompt, such as rollouts, hand over their text while they run,
/// every 16 tokens, if the strategy has a Memory. So answers to one prompt draft from each other (docs/rollouts.md).
///
/// Cost of a call: for each slot, one comparison of all tokens in `ids` (two with a Memory), and the costs of its
/// session and of the planner. Memory: with NgramDrafter, at most 42 KB for each slot, 80 bytes for each token of its
/// longest request so far, and 68 KB for the planner. NgramOptions::prior takes 10 KB once, or for each slot that is
/// assigned another one. Rankings take NgramOptions::row_bytes more for each slot, and a conversation also has the
/// tokens that stay as evidence. A slot keeps its text, what it has learned and its pending draft. The scratch memory
/// is on the stack of each thread, for one slot after another: 14 KB with NgramDrafter. Threads: one at a time; draft()
/// can run its loops over the slots on several.
template <DraftStrategy S>
class BatchFollower {
 public:
  /// The largest value of BatchOptions::max_nodes for make(): the largest draft of the strategy and of the planner.
  static constexpr std::size_t most_nodes = [] {
    if constexpr (requires { S::max_nodes; })
      return std::min<std::size_t>(S::max_nodes, BatchPlanner::most_nodes);
    else
      return BatchPlanner::most_nodes;
  }();

  /// Returns a follower of `slots` slots. Each of them drafts with a copy of `strategy`. Errors: out_of_memory;
  /// size_out_of_range if BatchOptions::max_nodes is above most_nodes.
  static Result<BatchFollower> make(std::size_t slots, const S& strategy = S(), BatchOptions options = {}) {
    if (options.max_nodes > most_nodes && options.max_nodes != unlimited)
      return Error{ErrorCode::size_out_of_range,
                   "BatchOptions::max_nodes is above the largest draft: pass at most BatchFollower::most_nodes",
                   options.max_nodes, most_nodes};
    const std::size_t room =
        options.max_nodes == unlimited ? most_draft_nodes : std::max(options.max_nodes, most_draft_nodes);
    BatchFollower made(std::move(options));
    made.slots_ = detail::new_array<Slot>(slots);
    if (made.slots_ == nullptr || !made.last_.reserve(slots) || !made.committed_.reserve(slots) ||
        !made.entries_.reserve(slots) || !made.drafts_.reserve(slots) || !made.called_slots_.reserve(slots) ||
        !made.reserve_heads(slots))
      return Error{ErrorCode::out_of_memory, "there is no memory for so many slots: make fewer", slots, 0};
    if (auto reserved = made.planner_.reserve(slots); !reserved) return reserved.error();
    made.size_ = slots;
    for (std::size_t i = 0; i < slots; ++i) made.slots_[i].sequence = Followed(Session<S>(S(strategy), room));
    return made;
  }

  /// Returns a draft for each of `slots`, in the same order. They are valid until the next call. `now`: the time of
  /// this call, on any clock that does not go back. Without it, no cost is learned.
  ///
  /// Errors: invalid_argument for a slot number that does not exist or stands there twice and for a wrong `after`, and
  /// empty_context for a slot without ids; they change nothing. A slot whose session fails drafts nothing in this pass.
  Result<std::span<const TokenSpan>> draft(std::span<const FollowedSlot> slots,
                                           std::optional<Duration> now = {}) REPRISE_LIFETIMEBOUND {
    return draft(slots, now, one_by_one);
  }
  /// Does the same on several threads of the engine. `for_each(count, body)` must call body(i) once for each i below
  /// `count`, on any threads and in any order, and return when all calls have returned. It is called twice: to read the
  /// ids of each slot, and to draft for it. The plan between and after them is made on the caller's thread, so drafts
  /// do not depend on the threads; only later evictions of a shared HistoryStore can, because uses of an entry can be
  /// lost. Strategies may share stores and tables that any number of threads may read, and nothing else that changes.
  /// An exception of a strategy leaves body(): forget() the slots of the call then.
  template <class ForEach>
  Result<std::span<const TokenSpan>> draft(std::span<const FollowedSlot> slots, std::optional<Duration> now,
                                           ForEach&& for_each) REPRISE_LIFETIMEBOUND {
    if (auto proposed = propose_all(slots, now, for_each); !proposed) return proposed.error();
    return plan_all();
  }

  /// draft() in two parts, for an engine that also has a draft head or a draft model, with HeadedNgramDrafter as
  /// strategy:
  ///
  ///   tokens = follower.propose_lookup(slots, now);       // for each slot
  ///   ...the head drafts for the slots with tokens, and follower.add_head(slot, drafted) takes each draft...
  ///   drafts = follower.draft_proposed(time of the head);
  ///
  /// Returns how many tokens the head should draft for each of `slots`, in the same order; 0: none. It runs for the
  /// slots where it pays most, or for all of them or none if that takes as long as one; see detail::BatchHeads.
  /// Errors: those of draft().
  Result<std::span<const std::size_t>> propose_lookup(std::span<const FollowedSlot> slots,
                                                      std::optional<Duration> now = {})
      REPRISE_LIFETIMEBOUND requires detail::HeadedStrategy<S> {
    if (auto proposed = propose_all(slots, now, one_by_one); !proposed) return proposed.error();
    for (const std::size_t at : called()) {
      Slot& slot = slots_[at];
      const std::size_t known = slot.sequence.context().size();
      // A request that begins or goes on with other text: the head has run on its prompt, as the model has.
      const bool begun = !slot.seen || (slot.seen->committed == 0 && !slot.seen->repeated);
      if (std::exchange(slot.head_ran, false) || begun || slot.head_knows > known) slot.head_knows = known;
      if (!slot.follows) continue;
      const detail::HeadForecast forecast = slot.sequence.session().strategy().forecast();
      heads_.add(planner_, forecast, plain_, at, slot.limits.draft.max_nodes, known - slot.head_knows);
    }
    const std::size_t chosen = heads_.ask(planner_, plain_);
    for (std::size_t i = 0; i < chosen; ++i) slots_[heads_.slot_of(i)].head = heads_.tokens_of(i);
    asked_.clear();
    for (const std::size_t at : called()) asked_.push_reserved(slots_[at].head);
    return std::span<const std::size_t>(asked_.data(), asked_.size());
  }
  /// Adds the head's draft to that of the lookup; tokens beyond those that propose_lookup() has asked for are left out.
  /// Has no effect for a slot without such tokens. Errors: invalid_argument for a slot that does not exist;
  /// out_of_memory, and the slot then has the draft of the lookup.
  Result<void> add_head(std::size_t slot, TokenSpan tokens) requires detail::HeadedStrategy<S> {
    if (slot >= size_) return no_slot(slot);
    Slot& one = slots_[slot];
    const std::size_t asked = std::exchange(one.head, 0);
    if (asked == 0) return {};
    head_ran_ = one.head_ran = true;
    auto set = one.sequence.session().strategy().set(tokens.first(std::min(tokens.size(), asked)));
    static_cast<void>(one.sequence.session().propose(one.limits, DraftShape::chain));
    return set;
  }
  /// Returns the drafts for the slots of propose_lookup(), as draft() does. Call it once. `head_time`: how long the
  /// head took for all of them. Without it, neither its cost nor that of the pass after it is learned.
  std::span<const TokenSpan> draft_proposed(std::optional<Duration> head_time = {})
      REPRISE_LIFETIMEBOUND requires detail::HeadedStrategy<S> {
    for (const std::size_t at : called()) slots_[at].head = 0;
    if (called_ && (head_ran_ || head_time)) called_ = head_time ? later(*called_, *head_time) : std::nullopt;
    if (std::exchange(head_ran_, false))
      heads_.ran(planner_, plain_, head_time);
    else
      heads_.spare(planner_);
    return plan_all();
  }

  /// Reports that the engine has run only the first `drafted` tokens of the last draft of `slot`; see
  /// Follower::verified(). Errors: invalid_argument for a slot that does not exist.
  Result<void> verified(std::size_t slot, std::size_t drafted) noexcept {
    if (slot >= size_) return no_slot(slot);
    const std::size_t left = slots_[slot].sequence.verified(drafted);
    if (left == 0) return {};
    if (auto& late = slots_[slot].late) {  // an earlier pass, which is charged already
      planner_.shorten(*late, left, drafted + left);
      return {};
    }
    planner_.shorten(slots_[slot].entry, drafted);
    rows_ -= left;
    return {};
  }
  /// Sets what ends the generations of `slot`; see Follower::stop_at(). Call it again if the next request has other
  /// ends. Errors: invalid_argument for a slot that does not exist.
  Result<void> stop_at(std::size_t slot, Limits limits) noexcept {
    if (slot >= size_) return no_slot(slot);
    limits.max_tokens = limits.max_context = limits.max_rows = unlimited;
    limits.draft = slots_[slot].limits.draft;  // of a round that has begun
    slots_[slot].limits = std::move(limits);
    return {};
  }
  /// Adds the rows that the engine has run since draft(), of all kinds. Call it once or several times for a pass, or
  /// never.
  void ran(std::size_t rows) noexcept { ran_ = ran_.value_or(0) + rows; }
  /// Reports the likeliest tokens of row `row` of a slot's part of the pass; see Session::report_top_k(). Errors: its
  /// errors, and bad_ticket if the slot has no pass.
  Result<void> report_top_k(std::size_t slot, std::size_t row, TokenSpan likeliest) {
    if (slot >= size_ || !slots_[slot].sequence.pass())
      return Error{ErrorCode::bad_ticket, "the slot has no pass: call draft() with it first", slot, size_};
    return slots_[slot].sequence.session().report_top_k(slots_[slot].sequence.pass()->ticket, row, likeliest);
  }
  /// Forgets the request of a slot, so that the next ids there begin a new one.
  void forget(std::size_t slot) noexcept {
    if (slot < size_) end_round(slot), slots_[slot].sequence.forget();
  }
  /// Forgets the request of a slot, and gives the next one there a predicted output; see NgramDrafter::predict().
  /// Errors: out_of_memory; invalid_argument for a slot that does not exist.
  Result<void> predict(std::size_t slot, TokenSpan text) noexcept {
    if (slot >= size_) return no_slot(slot);
    end_round(slot);
    return slots_[slot].sequence.predict(text);
  }
  /// Forgets the request of a slot, and drafts for the next ones there with this strategy. So a request can have the
  /// stores, the tables and the calibration of its tenant. The slot's last pass counts as lost, as after forget(); its
  /// statistics go on. A request that goes on in another slot needs a call there, too. The memory of the old strategy
  /// is freed. A HeadedDrafter keeps what it knows of the head if it is assigned another lookup. Errors:
  /// invalid_argument for a slot that does not exist.
  template <class Strategy = S>
  Result<void> assign(std::size_t slot, Strategy strategy) {
    if (slot >= size_) return no_slot(slot);
    end_round(slot);
    slots_[slot].sequence.assign(std::move(strategy));
    return {};
  }

  [[nodiscard]] std::size_t slots() const noexcept { return size_; }
  /// Returns the tokens that a slot knows.
  [[nodiscard]] TokenSpan context(std::size_t slot) const noexcept REPRISE_LIFETIMEBOUND {
    return slot < size_ ? slots_[slot].sequence.context() : TokenSpan();
  }
  /// Returns the number of tokens that a slot knows if `ids` begin with them, or else 0. So an engine that knows texts
  /// alone finds the slot of each, and passes the ids after them only.
  [[nodiscard]] std::size_t known(std::size_t slot, TokenSpan ids) const noexcept {
    const TokenSpan known = context(slot);
    const bool found = known.size() <= ids.size() && std::equal(known.begin(), known.end(), ids.begin());
    return found ? known.size() : 0;
  }
  /// Returns the strategy of a slot, to hand on the calibration of a request that has ended. `slot` must be below
  /// slots().
  [[nodiscard]] const S& strategy(std::size_t slot) const noexcept REPRISE_LIFETIMEBOUND {
    REPRISE_EXPECTS(slot < size_);
    return slots_[slot].sequence.session().strategy();
  }
  /// Returns the counts of all requests of a slot together.
  [[nodiscard]] Statistics statistics(std::size_t slot) const noexcept {
    return slot < size_ ? slots_[slot].sequence.statistics() : Statistics();
  }
  /// Returns the planner, for its learned costs and its loss budget.
  [[nodiscard]] const BatchPlanner& planner() const noexcept REPRISE_LIFETIMEBOUND { return planner_; }
  /// Returns the planner, for BatchPlanner::assume().
  [[nodiscard]] BatchPlanner& planner() noexcept REPRISE_LIFETIMEBOUND { return planner_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    std::size_t bytes = size_ * sizeof(Slot) + planner_.memory_bytes() + last_.memory_bytes() +
                        committed_.memory_bytes() + entries_.memory_bytes() + drafts_.memory_bytes() +
                        called_slots_.memory_bytes() + asked_.memory_bytes();
    if constexpr (detail::HeadedStrategy<S>) bytes += heads_.memory_bytes();
    for (std::size_t i = 0; i < size_; ++i) bytes += slots_[i].sequence.session().memory_bytes();
    return bytes;
  }

 private:
  using Followed = detail::FollowedSequence<Session<S>>;
  /// A slot that is in none of so many calls has no request any more, or waits for long.
  static constexpr std::size_t absent_calls = 64;
  /// Text of a group is handed over in parts of this size: each part also stores HistoryStore::lead tokens again.
  static constexpr std::size_t group_tokens = 16;
  struct NoHeads {};
  using Heads = std::conditional_t<detail::HeadedStrategy<S>, detail::BatchHeads, NoHeads>;
  static constexpr auto one_by_one = [](std::size_t count, const auto& body) {
    for (std::size_t i = 0; i < count; ++i) body(i);
  };
  struct Slot {
    Followed sequence;
    Limits limits;
    std::size_t committed = 0;                    // by its last pass, or BatchPlanner::did_not_run
    std::optional<BatchPlanner::Late> late;       // set while the result of an earlier pass is unknown
    std::size_t entry = 0;                        // in the last plan
    BatchPlanner::Late doubted;                   // the loss of passes that seem not to have run
    std::optional<typename Followed::Seen> seen;  // in this call
    bool follows = false;                         // in this call
    bool present = false;                         // in this call
    std::size_t absent = 0;                       // calls in a row without this slot
    std::size_t head = 0;                         // tokens that the head is asked for
    std::size_t head_knows = 0;                   // tokens that the head has processed
    bool head_ran = false;                        // in the last pass
  };

  explicit BatchFollower(BatchOptions options) noexcept : heads_(made_for(options)), planner_(std::move(options)) {}
  static Heads made_for(const BatchOptions& options) noexcept {
    if constexpr (detail::HeadedStrategy<S>)
      return Heads(options.head);
    else
      return Heads();
  }

  [[nodiscard]] bool reserve_heads([[maybe_unused]] std::size_t slots) noexcept {
    if constexpr (detail::HeadedStrategy<S>) return heads_.reserve(slots) && asked_.reserve(slots);
    return true;
  }
  /// Leaves a slot out of a round between propose_lookup() and draft_proposed().
  void end_round(std::size_t slot) noexcept {
    slots_[slot].head = 0;
    slots_[slot].follows = false;
  }
  /// Returns a time after another one; nullopt if there is none.
  static std::optional<Duration> later(Duration time, Duration after) noexcept {
    constexpr std::int64_t most = std::int64_t{1} << 62;
    if (after.count() < 0 || time.count() > most || after.count() > most - std::max<std::int64_t>(time.count(), 0))
      return {};
    return Duration(time.count() + after.count());
  }
  [[nodiscard]] Error no_slot(std::size_t slot) const noexcept {
    return {ErrorCode::invalid_argument, "there is no such slot: make more, or pass another number", slot, size_};
  }

  /// Returns the slots of the last call.
  [[nodiscard]] std::span<const std::size_t> called() const noexcept {
    return {called_slots_.data(), called_slots_.size()};
  }
  /// Checks the slots of a call, and marks those that are present.
  Result<void> check(std::span<const FollowedSlot> slots) {
    for (std::size_t i = 0; i < size_; ++i) slots_[i].present = false;
    for (const FollowedSlot& slot : slots) {
      if (slot.slot >= size_ || std::exchange(slots_[slot.slot].present, true))
        return Error{ErrorCode::invalid_argument, "a slot is unknown or stands there twice: pass each slot once",
                     slot.slot, size_};
      if (auto checked = slots_[slot.slot].sequence.check(slot.ids, slot.after, slot.conversation); !checked)
        return checked;
    }
    return {};
  }
  /// Hands over the sequences that have ended, in the order of the slots, before any thread reads: those whose slot has
  /// other ids now, and those whose slot was in none of the last calls.
  void keep_ended(std::span<const FollowedSlot> slots) noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      Slot& slot = slots_[i];
      slot.absent = slot.present ? 0 : slot.absent + 1;
      if (slot.absent == absent_calls) slot.sequence.session().keep();
    }
    for (const FollowedSlot& one : slots) {
      Followed& sequence = slots_[one.slot].sequence;
      if (sequence.session().strategy().unkept() != 0 && sequence.ends_with(one.ids, one.after != 0, one.conversation))
        sequence.session().keep();
    }
  }
  /// Hands over the new text of slots that answer the same prompt and have the same memory, so that they draft from
  /// each other. Requests with other memories must not change what a slot drafts.
  void keep_groups(std::span<const FollowedSlot> slots) noexcept {
    for (const FollowedSlot& one : slots) {
      Followed& sequence = slots_[one.slot].sequence;
      if (sequence.session().strategy().unkept() < group_tokens) continue;
      const bool grouped = std::any_of(slots.begin(), slots.end(), [&](const FollowedSlot& other) {
        const Followed& its = slots_[other.slot].sequence;
        return other.slot != one.slot && sequence.began_as(its) &&
               sequence.session().strategy().shares_memory(its.session().strategy());
      });
      if (grouped) sequence.session().keep_running();
    }
  }
  /// Lets a slot read its ids.
  void follow(const FollowedSlot& one) {
    Slot& slot = slots_[one.slot];
    slot.seen.reset(), slot.follows = false;
    const auto no_time = [](std::size_t) { return std::optional<Duration>(); };
    if (const auto seen = slot.sequence.follow(one.ids, one.after != 0, one.conversation, no_time)) slot.seen = *seen;
    slot.follows = slot.seen && !slot.sequence.session().finished();
  }
  /// Settles the earlier passes of each slot. Returns true if passes alone can have run since the last call, in every
  /// slot. If the engine reports the rows that ran, one slot with tokens of the last pass is enough: the engine had
  /// work.
  bool settle(std::span<const FollowedSlot> slots) {
    for (std::size_t i = 0; i < size_; ++i) slots_[i].committed = 0;
    bool all = true;
    bool any = false;
    for (const FollowedSlot& one : slots) {
      Slot& slot = slots_[one.slot];
      const auto& seen = slot.seen;
      const bool passes_alone = seen && seen->alone;
      all = all && passes_alone;
      any = any || (passes_alone && seen->committed > 0);
      const auto late = std::exchange(slot.late, std::nullopt);
      if (seen && seen->repeated) {
        slot.committed = BatchPlanner::did_not_run;
        if (late) planner_.doubt(slot.doubted, *late);
        continue;
      }
      const BatchPlanner::Late doubted = std::exchange(slot.doubted, {});
      if (!seen || seen->committed == 0) continue;  // another text: what was charged is lost
      slot.committed = seen->committed;
      if (late) planner_.learn_late(*late, slot.committed);
      planner_.correct(doubted);
    }
    return all || (ran_ && any);
  }
  /// Tells the planner what the last pass committed.
  void learn(std::optional<Duration> now, bool alone) {
    const auto before = std::exchange(called_, std::nullopt);
    const std::optional<std::size_t> ran = std::exchange(ran_, std::nullopt);
    if (last_.empty()) return;
    committed_.clear();
    for (const std::size_t slot : last_)
      committed_.push_reserved(slots_[slot].present ? slots_[slot].committed : BatchPlanner::not_known);
    const auto committed = std::span<const std::size_t>(committed_.data(), committed_.size());
    const bool whole = std::ranges::find(committed, BatchPlanner::did_not_run) == committed.end();
    std::optional<Duration> time;
    if (alone && whole && before && now && ran.value_or(rows_) == rows_)
      time = intervals_.take(PassIntervals::between(*before, *now), rows_);
    // With a clock, a missing time says nothing about the engine: a prompt ran too, a request began, or there was a
    // pause.
    planner_.learn(committed, time, time || !now);
    for (std::size_t i = 0; i < last_.size(); ++i) {
      Slot& slot = slots_[last_[i]];
      if (!slot.present) slot.late = planner_.late(i, true);
      if (slot.committed == BatchPlanner::did_not_run) planner_.doubt(slot.doubted, planner_.late(i, false));
    }
    for (std::size_t i = 0; i < size_; ++i) {
      planner_.note(slots_[i].doubted);
      if (slots_[i].late) planner_.note(*slots_[i].late);
    }
    last_.clear();
  }
  void propose(const FollowedSlot& one, const DraftBudget& budget) {
    Slot& slot = slots_[one.slot];
    if (!slot.follows) return;
    if constexpr (detail::HeadedStrategy<S>) slot.sequence.session().strategy().clear();
    slot.limits.draft = budget;
    const std::size_t most = one.most == unlimited ? planner_.usual_nodes() : one.most;
    slot.limits.draft.max_nodes = std::min(budget.max_nodes, most);
    static_cast<void>(slot.sequence.session().propose(slot.limits, DraftShape::chain));
  }
  /// Enters the slots that draft into the next plan.
  void enter() {
    for (const std::size_t at : called()) {
      Slot& slot = slots_[at];
      if (!slot.follows) continue;
      slot.entry = entries_.size();
      const auto offer = slot.sequence.session().offer();
      entries_.push_reserved({offer ? *offer : Offer(), slot.sequence.context().size()});
      last_.push_reserved(at);
    }
  }

  /// Reads the ids of the slots, and lets their strategies draft.
  template <class ForEach>
  Result<void> propose_all(std::span<const FollowedSlot> slots, std::optional<Duration> now, ForEach&& for_each) {
    if (auto checked = check(slots); !checked) return checked;
    if constexpr (detail::HeadedStrategy<S>) {
      if (std::exchange(head_ran_, false)) heads_.ran(planner_, plain_, {}), called_.reset();  // a step was given up
      heads_.begin(planner_);
      for (const std::size_t at : called()) slots_[at].head = 0;
    }
    if constexpr (detail::RememberingStrategy<S>) {
      keep_ended(slots);
      keep_groups(slots);
    }
    for_each(slots.size(), [&](std::size_t i) { follow(slots[i]); });
    const bool alone = settle(slots);
    learn(now, alone);
    plain_ = {0, 0, 0};
    called_slots_.clear();
    for (const FollowedSlot& slot : slots) {
      called_slots_.push_reserved(slot.slot);
      if (!slots_[slot.slot].follows) continue;
      plain_.context += slots_[slot.slot].sequence.context().size();
      ++plain_.sequences;
    }
    plain_.rows = plain_.sequences;
    plain_.context /= std::max<std::size_t>(plain_.sequences, 1);
    const DraftBudget budget = planner_.budget({.max_nodes = most_nodes}, plain_);
    for_each(slots.size(), [&](std::size_t i) { propose(slots[i], budget); });
    if (alone) called_ = now;
    return {};
  }
  /// Plans the pass of the slots that have drafted.
  std::span<const TokenSpan> plan_all() {
    last_.clear();
    entries_.clear();
    drafts_.clear();
    enter();
    const BatchPlan plan = planner_.plan({entries_.data(), entries_.size()});
    std::size_t entry = 0;
    for (const std::size_t at : called()) {
      Slot& slot = slots_[at];
      TokenSpan tokens;
      if (slot.follows) {
        const auto drafted = slot.sequence.expect(slot.sequence.session().plan(plan.nodes_of(entry++), plan.cut));
        if (drafted) tokens = *drafted;
      }
      drafts_.push_reserved(tokens);
    }
    rows_ = plan.rows;
    return {drafts_.data(), drafts_.size()};
  }

  [[no_unique_address]] Heads heads_;
  BatchPlanner planner_;
  detail::OwnedArray<Slot> slots_;
  std::size_t size_ = 0;
  detail::Buffer<std::size_t> last_;       // slots of the planned pass
  detail::Buffer<std::size_t> committed_;  // scratch memory, as the next two
  detail::Buffer<BatchEntry> entries_;
  detail::Buffer<TokenSpan> drafts_;
  detail::Buffer<std::size_t> called_slots_;  // of the last call
  detail::Buffer<std::size_t> asked_;         // of the head
  bool head_ran_ = false;                     // since propose_lookup()
  PassShape plain_{0, 0, 0};                  // the pass of the last call, without drafts
  std::size_t rows_ = 0;                      // of the planned pass
  std::optional<std::size_t> ran_;
  std::optional<Duration> called_;  // set if the next interval can be the time of a pass
  PassIntervals intervals_;
};

}}  // namespace reprise
