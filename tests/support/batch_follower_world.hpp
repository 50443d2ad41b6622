// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
#include "support/choices.hpp"
#include "support/random_target.hpp"

namespace reprise::testing {

/// How often each event has happened.
struct BatchFollowerCoverage {
  std::size_t drafted = 0;
  std::size_t accepted = 0;
  std::size_t cut = 0;        ///< passes that committed fewer tokens than the target had picked
  std::size_t appended = 0;   ///< slots that got tokens of no pass
  std::size_t begun = 0;      ///< requests
  std::size_t moved = 0;      ///< requests that went on in another slot
  std::size_t cancelled = 0;  ///< slots whose last pass no call shows
  std::size_t shared = 0;     ///< passes of two slots or more
  std::size_t timed = 0;
  std::size_t replaced = 0;   ///< calls in which a slot has other tokens, but passes alone ran
  std::size_t assigned = 0;   ///< strategies
  std::size_t truncated = 0;  ///< in the same conversation
  std::size_t edited = 0;     ///< in the same conversation
  std::size_t continued = 0;  ///< slots that were given their new tokens only
};

/// The history of a server that hands over token ids only. A BatchFollower is given the ids. A session for each slot
/// and a planner are told of each event by their own calls. Their drafts and debts must be equal.
class BatchFollowerWorld {
 public:
  explicit BatchFollowerWorld(Choices& choices, BatchFollowerCoverage* coverage = nullptr)
      : choices_(choices),
        coverage_(coverage != nullptr ? *coverage : own_coverage_),
        target_(choices),
        numbered_(choices.chance(40)),
        repeats_(choices.chance(50) ? 10 : 0),
        slots_(choices.between(1, 4)),
        planner_(options(choices.below(3))),
        follower_(BatchFollower<NgramDrafter<>>::make(slots_.size(), NgramDrafter<>(), options(kind_)).value()) {
    store_.append(some_tokens(0, 60), Origin::output);
    for (std::size_t i = 0; i < slots_.size() && choices_.chance(70); ++i) assign(i);
  }

  /// Returns a description of the first difference, or nothing.
  std::string run() {
    std::string difference;
    for (std::size_t left = choices_.between(1, 30); left > 0 && difference.empty(); --left) {
      between_calls();
      difference = compare();
    }
    return difference;
  }

 private:
  using Tokens = std::vector<Token>;
  struct Slot {
    Session<NgramDrafter<>> session;
    Limits limits;
    std::optional<Pass> pass;  // of the session, not resolved yet
    Tokens ids;
    std::optional<std::uint64_t> number;  // of the conversation
    std::optional<std::uint64_t> told_number;
    std::optional<std::uint64_t> followed_number;
    Tokens draft;
    bool begun = false;                      // the session has a sequence
    bool present = false;                    // in the next call
    std::size_t committed = 0;               // or did_not_run
    std::optional<BatchPlanner::Late> late;  // of a pass whose result the planner does not have yet
    BatchPlanner::Late doubted;
    bool follows_alone = false;
  };

  BatchOptions options(std::size_t kind) {
    kind_ = kind;
    BatchOptions options;
    if (kind > 0) options.curve = CostCurve::linear(kind == 1 ? 0.0 : 0.05);
    return options;
  }
  Tokens some_tokens(std::size_t least, std::size_t most) { return target_.some_tokens(choices_, least, most); }

  /// What the engine does between two calls: one pass of the slots that have drafts, and changes of requests.
  void between_calls() {
    std::size_t rows = 0;
    for (Slot& slot : slots_) {
      slot.committed = 0;
      const bool ran = std::exchange(slot.present, choices_.chance(85)) && !choices_.chance(repeats_);
      if (ran && !slot.ids.empty()) rows += 1 + slot.draft.size(), run_pass(slot);
      if (slot.ids.empty() || choices_.chance(8)) request(slot);
      if (numbered_ && choices_.chance(5)) slot.ids.resize(choices_.between(1, slot.ids.size()));
      if (choices_.chance(4)) move(slot);
      if (choices_.chance(4)) assign(static_cast<std::size_t>(&slot - slots_.data()));
    }
    if (std::ranges::none_of(slots_, &Slot::present)) slots_.front().present = true;
    elapse(rows);
  }
  /// Appends what the pass commits to the ids. The session is told when the slot is present.
  void run_pass(Slot& slot) {
    Tokens text = slot.ids;
    if (choices_.chance(40)) report(slot);
    const std::size_t picked = target_.run_pass(text, slot.draft);
    const std::size_t kept = choices_.chance(15) ? choices_.between(1, picked) : picked;
    coverage_.cut += kept < picked ? 1 : 0;
    coverage_.accepted += kept - 1;
    text.resize(slot.ids.size() + kept);
    if (kept == picked && choices_.chance(10)) {
      const Tokens rest = some_tokens(1, 9);
      text.insert(text.end(), rest.begin(), rest.end());
      ++coverage_.appended;
    }
    slot.ids = std::move(text);
  }
  void request(Slot& slot) {
    const Tokens old = slot.ids;
    slot.ids = some_tokens(1, 40);
    if (!old.empty() && slot.ids.size() >= old.size()) slot.ids[0] = old[0] == 0 ? 1 : 0;
    if (numbered_ && (!slot.number || choices_.chance(50))) slot.number = ++numbers_;
    ++coverage_.begun;
  }
  /// The next requests of the slot have another strategy.
  void assign(std::size_t i) {
    NgramOptions options;
    if (choices_.chance(50)) options.stores = {store_};
    options.top_k = choices_.below(3);
    if (choices_.chance(50)) options.prior = follower_.strategy(i).calibration();
    slots_[i].session = Session<NgramDrafter<>>(NgramDrafter<>(options));
    slots_[i].pass.reset();
    slots_[i].begun = false;
    static_cast<void>(follower_.assign(i, NgramDrafter<>(options)));
    ++coverage_.assigned;
  }
  /// Reports the likeliest tokens after the first row.
  void report(Slot& slot) {
    if (!slot.pass) return;
    const Token pick = target_.pick(slot.ids);
    const Tokens likeliest = {pick, pick == 0 ? 1 : 0};
    const auto i = static_cast<std::size_t>(&slot - slots_.data());
    static_cast<void>(slot.session.report_top_k(slot.pass->ticket, 0, likeliest));
    static_cast<void>(follower_.report_top_k(i, 0, likeliest));
  }
  /// The request goes on in another slot.
  void move(Slot& slot) {
    Slot& other = slots_[choices_.below(slots_.size())];
    if (&other == &slot || other.ids.empty()) return;
    std::swap(slot.ids, other.ids);
    std::swap(slot.number, other.number);
    ++coverage_.moved;
  }
  /// Moves the clock on.
  void elapse(std::size_t rows) {
    before_ = now_;
    now_ += 1000 + 50 * rows + choices_.below(100);
    if (choices_.chance(5)) now_ += 1'000'000;
    other_rows_ = choices_.chance(10) ? choices_.between(1, 20) : 0;
    reports_ = other_rows_ > 0 || choices_.chance(30);
  }

  /// Tells the session of a slot what has happened: the same rules, written down once more.
  void tell(Slot& slot) {
    slot.follows_alone = false;
    const std::optional<Pass> pass = std::exchange(slot.pass, std::nullopt);
    const TokenSpan known = slot.session.context();
    const auto late = std::exchange(slot.late, std::nullopt);
    const bool goes_on = slot.ids.size() >= known.size() && std::equal(known.begin(), known.end(), slot.ids.begin());
    const bool renamed = std::exchange(slot.told_number, slot.number) != slot.number;
    if (!std::exchange(slot.begun, true) || renamed || (!goes_on && !slot.number)) {
      slot.doubted = {};
      static_cast<void>(slot.session.begin(slot.ids));
      return;
    }
    if (!goes_on) {
      slot.doubted = {};
      const bool cut = slot.ids.size() < known.size() && std::equal(slot.ids.begin(), slot.ids.end(), known.begin());
      ++(cut ? coverage_.truncated : coverage_.edited);
      if (cut) return static_cast<void>(slot.session.truncate(slot.ids.size()));
      return static_cast<void>(slot.session.rebase(slot.ids).value());
    }
    TokenSpan fresh = TokenSpan(slot.ids).subspan(known.size());
    if (pass && !fresh.empty()) {
      const auto decision = slot.session.resolve(pass->ticket, fresh.first(std::min(fresh.size(), pass->drafted + 1)));
      slot.committed = decision->tokens.size();
      static_cast<void>(slot.session.commit(pass->ticket));
      fresh = fresh.subspan(slot.committed);
      if (late) planner_.learn_late(*late, slot.committed);
      planner_.correct(std::exchange(slot.doubted, {}));
    } else if (fresh.empty()) {
      slot.committed = BatchPlanner::did_not_run;
      if (pass) static_cast<void>(slot.session.cancel(pass->ticket));
      if (late) planner_.doubt(slot.doubted, *late);
    }
    slot.follows_alone = fresh.empty();
    if (fresh.empty()) return;
    if (!pass) slot.doubted = {};
    static_cast<void>(slot.session.append(fresh));
  }

  /// Asks both for drafts, and compares.
  std::string compare() {
    std::vector<FollowedSlot> call;
    bool all = true;
    bool any = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (!slot.present) continue;
      tell(slot);
      all = all && slot.follows_alone;
      any = any || (slot.follows_alone && slot.committed > 0 && slot.committed != BatchPlanner::did_not_run);
      const std::size_t known = follower_.known(i, slot.ids);
      const bool same = known > 0 && slot.number == slot.followed_number;
      const std::size_t after = same && choices_.chance(50) ? known : 0;
      coverage_.continued += after > 0 ? 1 : 0;
      slot.followed_number = slot.number;
      const std::size_t most = choices_.chance(20) ? choices_.below(4) : 16;
      call.push_back({i, TokenSpan(slot.ids).subspan(after), most, slot.number, after});
    }
    coverage_.shared += call.size() > 1 ? 1 : 0;
    const bool alone = all || (reports_ && any);
    coverage_.replaced += alone && !all ? 1 : 0;
    learn(alone);
    if (reports_) follower_.ran(rows_ + other_rows_);
    const auto drafts = follower_.draft(call, std::chrono::nanoseconds(now_));
    if (!drafts) return "the follower failed: " + std::string(drafts.error().message);

    PassShape plain{call.size(), call.size(), 0};
    for (const FollowedSlot& one : call) plain.context += slots_[one.slot].ids.size();
    plain.context /= call.size();
    const DraftBudget budget = planner_.budget({.max_nodes = BatchPlanner::most_nodes}, plain);
    std::vector<BatchEntry> entries;
    last_.clear();
    for (const FollowedSlot& one : call) {
      Slot& slot = slots_[one.slot];
      slot.limits.draft = budget;
      slot.limits.draft.max_nodes =
          std::min(budget.max_nodes, one.most == unlimited ? planner_.usual_nodes() : one.most);
      static_cast<void>(slot.session.propose(slot.limits, DraftShape::chain));
      entries.push_back({slot.session.offer().value(), slot.ids.size()});
      last_.push_back(one.slot);
    }
    const BatchPlan plan = planner_.plan(entries);
    rows_ = plan.rows;
    known_ = alone;
    for (std::size_t i = 0; i < call.size(); ++i) {
      Slot& slot = slots_[call[i].slot];
      slot.pass = slot.session.plan(plan.nodes_of(i), plan.cut).value();
      const TokenSpan expected = slot.pass->batch.last(slot.pass->drafted);
      slot.draft.assign(expected.begin(), expected.end());
      coverage_.drafted += expected.size();
      if (!std::ranges::equal((*drafts)[i], expected)) return "the drafts differ";
      if (!std::ranges::equal(follower_.context(call[i].slot), slot.ids)) return "the follower has another context";
    }
    if (follower_.planner().loss_budget().debt() != planner_.loss_budget().debt()) return "the debts differ";
    if (follower_.planner().learned(call.size()).passes() != planner_.learned(call.size()).passes())
      return "the follower has learned from other times";
    return {};
  }
  void learn(bool alone) {
    if (last_.empty()) return;
    std::vector<std::size_t> committed;
    for (const std::size_t i : last_) {
      committed.push_back(slots_[i].present ? slots_[i].committed : BatchPlanner::not_known);
      coverage_.cancelled += committed.back() == 0 || !slots_[i].present ? 1 : 0;
    }
    std::optional<std::chrono::nanoseconds> time;
    const bool whole = std::ranges::find(committed, BatchPlanner::did_not_run) == committed.end();
    if (alone && whole && known_ && other_rows_ == 0)
      time = intervals_.take(PassIntervals::between(std::chrono::nanoseconds(before_), std::chrono::nanoseconds(now_)),
                             rows_);
    coverage_.timed += time ? 1 : 0;
    planner_.learn(committed, time, time.has_value());  // the follower has a clock
    for (std::size_t i = 0; i < last_.size(); ++i) {
      Slot& slot = slots_[last_[i]];
      if (!slot.present) slot.late = planner_.late(i, true);
      if (slot.committed == BatchPlanner::did_not_run) planner_.doubt(slot.doubted, planner_.late(i, false));
    }
    for (Slot& slot : slots_) {
      planner_.note(slot.doubted);
      if (slot.late) planner_.note(*slot.late);
    }
  }

  Choices& choices_;
  BatchFollowerCoverage own_coverage_;
  BatchFollowerCoverage& coverage_;
  RandomTarget target_;
  std::size_t kind_ = 0;
  bool numbered_;        // true: the engine passes numbers of conversations
  std::size_t repeats_;  // percent of the slots that are planned but do not run
  std::uint64_t numbers_ = 0;
  HistoryStore store_ = HistoryStore::make({.max_bytes = 1 << 14}).value();
  std::vector<Slot> slots_;
  BatchPlanner planner_;
  BatchFollower<NgramDrafter<>> follower_;
  PassIntervals intervals_;
  std::vector<std::size_t> last_;
  std::size_t rows_ = 0;
  std::size_t other_rows_ = 0;
  bool reports_ = false;  // the rows that ran
  std::size_t before_ = 0;
  std::size_t now_ = 1'000'000;
  bool known_ = false;  // the last call may begin an interval
};

inline std::string run_batch_follower_world(Choices& choices, BatchFollowerCoverage* coverage = nullptr) {
  return BatchFollowerWorld(choices, coverage).run();
}

}  // namespace reprise::testing
