// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/fixed_point.hpp"

namespace reprise { inline namespace v0 {

namespace detail {
class LossAccount;
}

/// Limits the loss from drafting, whatever strategies and texts do. With a given cost curve, the passes of one loss
/// budget together lose at most 10 plain passes in any 1,000, measured in that curve and compared with plain decoding.
///
/// The loss of a pass is c(sent) - c(plain) - (committed - 1), in the given curve. This is its extra cost at its exact
/// context, minus one plain pass for each token after the first. Passes of all sequences are ordered by their commits.
/// c(sent) includes CostOptions::rollback if the draft is not accepted in full. If a rejection makes the engine run
/// tokens again, the loss includes the extra cost of that replay.
///
/// The budget is a leaky bucket. Each committed pass sets debt = max(0, debt + loss - leak). Before a draft is sent,
/// its worst loss is reserved: the loss if every drafted token is rejected, with the most expensive replay. The commit
/// replaces the reservation by the actual loss. Proof of the bound:
///
///  1  debt + reserved <= burst. A reservation is refused if it would break this. A commit adds at most the amount that
///     was reserved for its pass, and keeps at most the rest for a replay: LossAccount::worst() covers both, even if
///     the pass itself gains. A pass without a draft loses nothing.
///  2  loss <= debt after - debt before + leak, because max(0, ...) can only raise the debt.
///  3  Summed over n passes: loss <= debt at the end - debt at the beginning + n x leak <= burst + n x leak.
///  4  6 + 1,000 x 261 / 65,536 = 9.983. Against real numbers, each pass reads two costs with a rounding error of at
///     most 2^-17, which adds at most 0.016.
///  5  The window can begin at any pass. The debt at its beginning is at least 0, so earlier gains do not help.
///  6  A replay stays reserved until the pass that runs it is charged. So 3 holds if the replay counts in that pass.
///     It also holds if the replay counts in the pass that caused it: add the reservations at the end to 3, and use 1.
///
/// Steps 1 and 3 count passes, not sessions: a new session does not refill the budget. Limits of the guarantee:
///
///  * Costs are those of the given curve. They do not include the time of the drafter.
///  * For learned costs, 1 does not hold: the charge includes a margin for their error and can exceed the reservation.
///  * Passes whose draft the control did not choose can exceed the burst, because nothing was reserved for them. Passes
///    that are cancelled after they ran are not counted.
///
/// A pass whose result nobody reports counts as lost: its reservation becomes debt. It may not have run, so it adds no
/// leak. If its result becomes known later, its tokens offset what they would have offset at once.
///
/// Use one budget for each engine and tenant: sessions of one budget affect each other's draft lengths. A draft that
/// could lose more than 6 plain passes is never sent. Source: the leaky bucket of packet networks (Turner 1986).
///
/// Threads: many threads may call all functions at once, except assignment. The budget must outlive the controls that
/// use it, and must not move while they do.
class LossBudget {
 public:
  static constexpr std::size_t window = 1000;
  static constexpr std::int64_t most_lost = 10 * std::int64_t{cost_one};
  static constexpr std::int64_t burst = 6 * std::int64_t{cost_one};
  static constexpr std::int64_t leak = 261;

  constexpr LossBudget() noexcept = default;
  /// `allowance`: the loss allowed initially; values above `burst` have no effect. A smaller allowance grows to `burst`
  /// as drafts gain and as debt leaks away.
  explicit constexpr LossBudget(Cost allowance) noexcept
      : state_(packed({burst - std::min<std::int64_t>(allowance, burst), 0})) {}
  /// Copies the debt. Nothing is reserved in the copy.
  LossBudget(const LossBudget& other) noexcept : state_(packed({other.debt(), 0})) {}
  LossBudget& operator=(const LossBudget& other) noexcept {
    state_.store(packed({other.debt(), 0}), std::memory_order_relaxed);
    return *this;
  }
  ~LossBudget() = default;

  /// Returns the loss that can still be reserved, in the unit of Cost. It is never below 0, because a plain pass is
  /// always allowed.
  [[nodiscard]] std::int64_t allowance() const noexcept { return unreserved(load()); }
  /// Returns the losses that neither later gains nor the leak have offset, in the unit of Cost.
  [[nodiscard]] std::int64_t debt() const noexcept { return load().debt; }
  /// Returns the summed worst losses of passes planned but not yet committed and of replays not yet run, in the unit of
  /// Cost.
  [[nodiscard]] std::int64_t reserved() const noexcept { return load().reserved; }
  /// Returns true if drafting seems to lose: more than half of the burst is used up. An initial allowance below half of
  /// the burst has the same effect.
  [[nodiscard]] bool strained() const noexcept { return debt() > burst / 2; }

  /// Reserves `loss`, in the unit of Cost, for a pass. Returns false and reserves nothing if the allowance is smaller.
  /// A loss of 0 or less needs no reservation.
  [[nodiscard]] bool reserve(std::int64_t loss) noexcept {
    if (loss <= 0) return true;
    return update([loss](State& state) {
      if (loss > unreserved(state)) return false;
      state.reserved += loss;
      return true;
    });
  }
  /// Gives back `reserved`, a part of earlier reservations, and adds `loss` to the debt without a leak.
  void release(std::int64_t reserved, std::int64_t loss = 0) noexcept {
    if (reserved != 0 || loss != 0) charge(reserved, loss, 0);
  }
  /// Adds the loss of a committed pass, and gives back `reserved`. Call it once for each pass.
  void add(std::int64_t loss, std::int64_t reserved = 0) noexcept { charge(reserved, loss, leak); }
  /// Adds the loss of a pass for which nothing was reserved. If `committed` is 0, it counts as 1: a stop rule consumed
  /// the token, and plain decoding would have lost it too.
  void add(Cost sent, Cost plain, std::size_t committed) noexcept {
    add(std::int64_t{sent} - std::int64_t{plain} - saved(committed));
  }
  /// Returns the number of plain passes that a pass with `committed` tokens saves, in the unit of Cost.
  [[nodiscard]] static std::int64_t saved(std::size_t committed) noexcept {
    constexpr std::size_t many = 1 << 20;
    return static_cast<std::int64_t>(std::clamp<std::size_t>(committed, 1, many) - 1) * cost_one;
  }

 private:
  friend class detail::LossAccount;

  struct State {
    std::int64_t debt = 0;
    std::int64_t reserved = 0;  // at most `burst`
  };
  using DebtScale = detail::Fixed<40>;  // one word holds the debt in the lower 40 bits, and the reservations above
  static constexpr std::int64_t most_debt = DebtScale::one - 1;

  static constexpr std::uint64_t packed(const State& state) noexcept {
    return DebtScale::from(static_cast<std::uint64_t>(state.reserved)) | static_cast<std::uint64_t>(state.debt);
  }
  static constexpr std::int64_t unreserved(const State& state) noexcept {
    return std::max<std::int64_t>(0, burst - state.debt - state.reserved);
  }
  static constexpr State unpacked(std::uint64_t word) noexcept {
    return {static_cast<std::int64_t>(DebtScale::fraction(word)), static_cast<std::int64_t>(DebtScale::floor(word))};
  }
  [[nodiscard]] State load() const noexcept { return unpacked(state_.load(std::memory_order_relaxed)); }

  void charge(std::int64_t reserved, std::int64_t loss, std::int64_t leaked) noexcept {
    update([=](State& state) {
      state.debt = std::clamp<std::int64_t>(state.debt + loss - leaked, 0, most_debt);
      state.reserved -= std::min(reserved, state.reserved);
      return true;
    });
  }
  /// Replaces the state by the one that `change` computes from it, unless `change` returns false. Returns its result.
  /// The order of relaxed operations on one atomic word suffices, because the budget protects no other memory.
  template <class Change>
  bool update(Change&& change) noexcept {
    std::uint64_t before = state_.load(std::memory_order_relaxed);
    for (;;) {
      State state = unpacked(before);
      if (!change(state)) return false;
      if (state_.compare_exchange_weak(before, packed(state), std::memory_order_relaxed)) return true;
    }
  }

  std::atomic<std::uint64_t> state_{0};
};

namespace detail {

/// The part of one control in a budget: the reservation for its pass, and the replay that its last pass caused. The
/// budget is the control's own, or a shared one.
///
/// A copy is a fork: it copies the own budget or shares the shared one, and has no planned pass. If the original still
/// has a replay to run, so has the copy. The copy reserves the cost of its replay; covers_replay() is false if the
/// budget does not allow that.
///
/// Threads: as for the control. Accounts of one shared budget may be used by different threads at once.
class LossAccount {
 public:
  /// `shared`: the budget to use instead of `own`, or null. It must outlive the account.
  explicit LossAccount(const LossBudget& own = LossBudget(), LossBudget* shared = nullptr) noexcept
      : own_(own), shared_(shared) {}
  LossAccount(const LossAccount& other) noexcept : own_(other.own_), shared_(other.shared_), replay_(other.replay_) {
    if (writable().reserve(other.held_)) held_ = other.held_;
  }
  LossAccount(LossAccount&& other) noexcept { take(other); }
  LossAccount& operator=(const LossAccount& other) noexcept {
    if (this != &other) *this = LossAccount(other);
    return *this;
  }
  LossAccount& operator=(LossAccount&& other) noexcept {
    if (this == &other) return *this;
    close();
    take(other);
    return *this;
  }
  ~LossAccount() { close(); }

  [[nodiscard]] const LossBudget& budget() const noexcept REPRISE_LIFETIMEBOUND {
    return shared_ != nullptr ? *shared_ : own_;
  }
  /// Uses `shared` from now on, or the control's own budget if `shared` is null. Closes the account at the earlier
  /// budget.
  void share(LossBudget* shared) noexcept {
    close();
    shared_ = shared;
  }

  /// Returns the highest loss for which change() returns true, in the unit of Cost.
  [[nodiscard]] std::int64_t allowance() const noexcept { return budget().allowance() + planned_; }
  /// Returns the loss that is reserved for the planned pass.
  [[nodiscard]] std::int64_t planned() const noexcept { return planned_; }
  /// Returns false if nothing is reserved for a replay that the next pass runs.
  [[nodiscard]] bool covers_replay() const noexcept { return replay_ <= 0 || held_ > 0; }
  /// Returns the amount to reserve for a pass that loses at most `loss` by itself, negative for a gain, and causes a
  /// replay of at most `replay`. A gain can offset only the replay that this pass runs. It cannot offset the replay
  /// that the pass causes: debt never falls below 0, so the budget forgets a gain before that replay is charged.
  [[nodiscard]] std::int64_t worst(std::int64_t loss, std::int64_t replay) const noexcept {
    return std::max(loss, -held_) + replay;
  }
  /// Reserves the worst loss of the planned pass, instead of the loss reserved so far. Returns false and changes
  /// nothing if the budget does not cover it. Always returns true if the reservation becomes smaller.
  [[nodiscard]] bool change(std::int64_t loss) noexcept {
    loss = std::max<std::int64_t>(loss, 0);
    if (loss > planned_ && !writable().reserve(loss - planned_)) return false;
    if (loss < planned_) writable().release(planned_ - loss);
    planned_ = loss;
    return true;
  }
  /// Gives back the reservation of the planned pass: the pass will not run.
  void cancel() noexcept { writable().release(std::exchange(planned_, 0)); }
  /// Charges the reservation of the planned pass: the pass may have run, and its result will never be reported. Returns
  /// the loss.
  std::int64_t abandon() noexcept {
    const std::int64_t lost = std::exchange(planned_, 0);
    writable().release(lost, lost);
    return lost;
  }

  /// Replaces the reservation of a committed pass by its loss. `replay`: extra cost of running tokens again in the next
  /// pass. It is charged when that pass is settled, or now if this pass was the `last` one.
  void settle(std::int64_t loss, std::int64_t replay = 0, bool last = false) noexcept {
    loss += replay_;
    if (last) loss += std::exchange(replay, 0);
    const std::int64_t before = planned_ + held_;
    held_ = std::min(replay, before);
    replay_ = replay;
    planned_ = 0;
    writable().add(loss, before - held_);
  }
  /// Reserves a loss outside of a pass, instead of the one reserved before. Returns false and reserves nothing if the
  /// budget does not cover it.
  [[nodiscard]] bool afford(std::int64_t loss) noexcept {
    spare();
    if (!writable().reserve(loss)) return false;
    outside_ = std::max<std::int64_t>(loss, 0);
    return true;
  }
  /// Charges a loss outside of a pass, instead of the one that is reserved for it.
  void spend(std::int64_t loss) noexcept { writable().release(std::exchange(outside_, 0), loss); }
  /// Gives back what is reserved for a loss outside of a pass.
  void spare() noexcept { writable().release(std::exchange(outside_, 0)); }
  /// Returns the debt that there would be without correct().
  [[nodiscard]] std::int64_t uncorrected() const noexcept { return budget().debt() + corrected_; }
  /// Returns how much of `loss` correct() takes back.
  [[nodiscard]] std::int64_t open(std::int64_t loss, std::int64_t lowest) const noexcept {
    return std::clamp<std::int64_t>(lowest - corrected_, 0, std::max<std::int64_t>(loss, 0));
  }
  /// Takes back `loss` of an earlier pass, because more of its result is known now. `lowest`: the lowest uncorrected()
  /// since that pass. The debt becomes no lower than if the result had been known at once: what had leaked away by
  /// then, or was offset, would not be there to take back. So the bound holds in the order in which passes run.
  void correct(std::int64_t loss, std::int64_t lowest) noexcept {
    const std::int64_t back = open(loss, lowest);
    corrected_ += back;
    writable().release(0, -back);
  }
  /// Takes back a loss since which no other pass of the budget was committed.
  void correct(std::int64_t loss) noexcept { writable().release(0, -loss); }
  /// Ends the sequence: charges the reservations of what was not reported: a pass, a loss outside of it, and a replay.
  void close() noexcept {
    const std::int64_t lost = planned_ + held_ + outside_;
    writable().release(lost, lost);
    planned_ = held_ = replay_ = outside_ = 0;
  }

 private:
  [[nodiscard]] LossBudget& writable() noexcept REPRISE_LIFETIMEBOUND { return shared_ != nullptr ? *shared_ : own_; }
  void take(LossAccount& other) noexcept {
    // Moves the reservations of the own budget as well; a copy would drop them.
    own_.state_.store(other.own_.state_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    other.own_.release(other.own_.reserved());
    shared_ = other.shared_;
    planned_ = std::exchange(other.planned_, 0);
    held_ = std::exchange(other.held_, 0);
    replay_ = std::exchange(other.replay_, 0);
    outside_ = std::exchange(other.outside_, 0);
    corrected_ = other.corrected_;
  }

  LossBudget own_;
  LossBudget* shared_ = nullptr;
  std::int64_t planned_ = 0;    // reserved for the planned pass
  std::int64_t held_ = 0;       // reserved for the replay
  std::int64_t replay_ = 0;     // cost of the replay, not charged yet
  std::int64_t outside_ = 0;    // reserved for a loss outside of a pass
  std::int64_t corrected_ = 0;  // sum of all corrections
};

}  // namespace detail

}}  // namespace reprise
