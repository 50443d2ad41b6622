// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/draft_length.hpp"
#include "reprise/control/detail/learned_curve.hpp"
#include "reprise/control/detail/pass_costs.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/limits.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The cost of a pass of several sequences as a function of its drafted rows. It is read from a given curve or from
/// learned curves, one for each power of two of the number of sequences. Costs are cached while the shape of the plain
/// pass stays the same and no pass is learned. Contexts are rounded down to their three leading bits: 1,000 counts as
/// 896.
///
/// If the engine can run certain widths only, the row count of a pass is rounded up to the next width. The engine runs
/// that many rows in any case.
///
/// Learned curves have 64 rows each. In a batch of n sequences, one row of the curve represents n / 8 drafted rows, but
/// at least 1. The quotient is rounded down to a power of two. In batches of 8 or more, the curve thus reaches up to
/// about 8 drafted rows for each sequence. As long as nothing is known of a curve, the costs of the nearest one serve,
/// because a pass takes about as long as another one with as many rows in total. With its first time, a curve starts
/// from them. Memory: 4.3 KB for each power of two up to 4,096 sequences and for borrowed costs, and 12 bytes for each
/// of `most` drafted rows. Only reserve() allocates. Threads: one at a time.
class BatchCost {
 public:
  /// `most`: the largest number of drafted rows whose cost is read.
  BatchCost(std::optional<CostCurve> told, const AllowedWidths& widths, std::size_t most) noexcept
      : told_(std::move(told)), widths_(widths), most_(most) {}

  /// Allocates the tables. Returns false if memory runs out. In that case, the caller must neither read costs nor send
  /// drafts.
  [[nodiscard]] bool reserve() noexcept {
    return costs_.resize(most_ + 1, cost_one) && logs_.resize(most_ + 1, 0) && replays_.resize(most_ + 1, 0);
  }
  [[nodiscard]] bool reserved() const noexcept { return costs_.size() > most_; }

  static constexpr std::size_t most_sequences = 1 << 20;

  /// Reads the costs of `plain` with 0 to `most` drafted rows, unless they are cached from the last call. Returns true
  /// if pass_costs() has changed without a new revision.
  bool prepare(PassShape plain) noexcept {
    // Larger numbers mean nothing, and would overflow.
    plain.sequences = std::clamp<std::size_t>(plain.sequences, 1, most_sequences);
    plain.rows = std::min(plain.rows, most_sequences << 10);
    plain.context = told_ && told_->depends_on_context() ? rounded_context(plain.context) : 0;
    const bool borrowed = !told_ && borrow(plain.sequences);
    if (plain == plain_ && (told_ || learned().revision() == revision_)) return borrowed;
    plain_ = plain;
    revision_ = told_ ? 0 : learned().revision();
    read();
    return borrowed;
  }
  /// Returns the costs of passes with as many sequences as the prepared one.
  [[nodiscard]] PassCosts pass_costs() const noexcept { return {told_, learned()}; }
  /// Returns the cost of the prepared pass with k drafted rows, in plain passes.
  [[nodiscard]] Cost cost(std::size_t k) const noexcept { return costs_[k]; }
  /// Returns the extra cost of k drafted rows, in plain passes.
  [[nodiscard]] std::int64_t extra(std::size_t k) const noexcept {
    return std::int64_t{costs_[k]} - std::int64_t{costs_[0]};
  }
  /// Returns the extra cost of k drafted rows for the pass `plain`, at its exact context. Requires prepare(plain).
  [[nodiscard]] std::int64_t exact_extra(const PassShape& plain, std::size_t k) const noexcept {
    if (!told_ || !told_->depends_on_context()) return extra(k);
    const Cost sent = exact_cost(plain.rows + k, plain.context);
    if (sent == std::numeric_limits<Cost>::max()) return sent;  // saturated: the true cost is unknown
    return std::int64_t{sent} - std::int64_t{exact_cost(plain.rows, plain.context)};
  }
  /// Returns the extra cost of the next pass if it has `rows` rows because of replays, at its exact context.
  [[nodiscard]] std::int64_t exact_replay(std::size_t rows, std::size_t context) const noexcept {
    return std::max<std::int64_t>(0, std::int64_t{exact_cost(rows, context)} - exact_cost(plain_.sequences, context));
  }
  /// Returns the highest exact_replay() after a pass with up to k drafted rows, or with the most rows that
  /// prepare_replays() has read.
  [[nodiscard]] std::int64_t highest_replay(std::size_t k) const noexcept {
    return replays_[std::min(k, most_replayed_)];
  }
  /// Reads highest_replay() for up to `limit` drafted rows and contexts from `context` to `last_context`. `pending`:
  /// rows of the pass that belong to sequences. After a replay, the next pass can have any number of these rows up to
  /// `pending` plus the drafted rows.
  void prepare_replays(std::size_t pending, std::size_t limit, std::size_t context, std::size_t last_context) noexcept {
    limit = most_replayed_ = std::min(limit, most_);
    std::fill_n(replays_.begin(), limit + 1, Cost{0});
    if (!told_ || !told_->depends_on_context()) last_context = context;
    std::array<Cost, 64> some;  // NOLINT(*-member-init): filled as far as it is read
    for (; context <= last_context; ++context) {
      const std::int64_t plain = exact_cost(plain_.sequences, context);
      for (std::size_t rows = plain_.sequences; rows <= pending + limit;) {
        const std::span<Cost> costs = std::span(some).first(std::min(some.size(), pending + limit + 1 - rows));
        read_exact_costs(rows, context, costs);
        for (const Cost cost : costs) {
          Cost& highest = replays_[rows - std::min(rows, pending)];
          highest = std::max(highest, saturated_cost(cost - plain));
          ++rows;
        }
      }
    }
    for (std::size_t k = 1; k <= limit; ++k) replays_[k] = std::max(replays_[k], replays_[k - 1]);
  }
  /// Returns the natural logarithm of a ratio, in UnitScale: the pass time with k drafted rows, divided by that without
  /// them.
  [[nodiscard]] std::int64_t log(std::size_t k) const noexcept { return logs_[k]; }
  /// Returns the highest throughput, in tokens per sequence and plain pass, that any draft can reach.
  [[nodiscard]] Rate max_throughput() const noexcept { return max_throughput_; }
  /// Returns the largest number of drafted rows that can be worth their cost if all are accepted; 0 if there is none at
  /// this load.
  [[nodiscard]] std::size_t most_worthwhile() const noexcept { return worthwhile_; }
  /// Returns the smallest increase of log() for one more drafted row, up to most_worthwhile().
  [[nodiscard]] std::int64_t least_step() const noexcept { return least_step_; }
  /// Returns the number of rows that the engine runs for a pass of `rows` rows in total. This is the next allowed
  /// width, or `rows` itself if there is none.
  [[nodiscard]] std::size_t width(std::size_t rows) const noexcept {
    const auto widths = widths_.values();
    const auto at = std::lower_bound(widths.begin(), widths.end(), rows);
    return at == widths.end() ? rows : *at;
  }
  /// Returns the largest number of drafted rows that fit into an allowed width after `rows` plain rows; unlimited if
  /// there are no widths.
  [[nodiscard]] std::size_t width_limit(std::size_t rows) const noexcept {
    if (widths_.empty()) return unlimited;
    return widths_.values().back() - std::min(rows, widths_.values().back());
  }

  /// Returns the largest number of drafted rows that the times learned so far allow; unlimited if a curve was given.
  [[nodiscard]] std::size_t explored_rows() const noexcept {
    return told_ ? unlimited : (learned().explored_rows() - 1) * unit(plain_.sequences);
  }
  /// Returns the cost that the loss budget is charged for a pass with a draft.
  [[nodiscard]] std::int64_t charged(std::int64_t cost) const noexcept {
    return told_ ? cost : PassCosts::cost_in_doubt(cost);
  }
  /// Returns true if a trial is due: a pass that is sent in order to learn its cost.
  [[nodiscard]] bool may_try() const noexcept { return learns() && learned().may_try(); }
  /// Replaces the costs of the prepared pass by the lowest plausible ones, or by the expected ones again.
  void be_optimistic(bool optimistic) noexcept { read(optimistic); }
  /// Returns the number of drafted rows of the trial whose best length at optimistic costs is `best`. Returns 0 if
  /// there is none.
  [[nodiscard]] std::size_t trial(std::size_t best) const noexcept {
    if (best == 0 || !learned().uncertain(row_of(best))) return 0;
    if (learned().prefers(row_of(best))) return best;
    for (std::size_t k = 1; k < best; ++k)
      if (learned().telling(row_of(k), learned().cost(row_of(k)))) return k;
    return best;
  }
  /// Learns from a pass of the prepared shape with `drafted` drafted rows that took `time`. `instead`: for
  /// a trial, the number of drafted rows that would have been sent otherwise. `as_planned`: see BatchPlanner::learn().
  /// Has no effect if a curve was given. Only ends the trial if the plain pass does not have one row per sequence.
  void learn(std::size_t drafted, std::optional<Duration> time, std::optional<std::size_t> instead,
             bool as_planned = true, std::size_t context = 0) noexcept {
    if (told_) return;
    LearnedCurve& curve = learned_[class_of(plain_.sequences)];
    if (!as_planned || !learns()) {
      if (instead) curve.tried(row_of(drafted), costs_[*instead], {});
      return;
    }
    begin_curve(time);
    if (instead) curve.tried(row_of(drafted), costs_[*instead], time, context);
    curve.learn(row_of(drafted), drafted == 0, time, context);
  }
  /// Returns the curve that learns from passes of as many sequences as the prepared one, for a pass that took `time`;
  /// null if a curve was given.
  [[nodiscard]] LearnedCurve* learned_from(std::optional<Duration> time) noexcept {
    if (told_) return nullptr;
    begin_curve(time);
    return &learned_[class_of(plain_.sequences)];
  }
  /// Returns the curve of batches of about `sequences` sequences.
  [[nodiscard]] const LearnedCurve& learned(std::size_t sequences) const noexcept {
    return learned_[class_of(std::max<std::size_t>(sequences, 1))];
  }
  /// Replaces the curve of batches of about `sequences` sequences by one with assumed costs.
  void assume(std::size_t sequences, const CostPrior& prior) noexcept {
    learned_[class_of(std::max<std::size_t>(sequences, 1))] = LearnedCurve(prior);
    lent_ = {};
    plain_.rows = unlimited;  // matches no pass
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return costs_.memory_bytes() + logs_.memory_bytes() + replays_.memory_bytes() + (told_ ? told_->memory_bytes() : 0);
  }

 private:
  static constexpr std::size_t classes = 13;
  struct Loan {
    std::size_t sequences = 0;
    std::size_t own = 0;         // sequences of the lender; 0: there is none
    std::uint32_t revision = 0;  // of the lender
    friend bool operator==(const Loan&, const Loan&) noexcept = default;
  };

  static std::size_t class_of(std::size_t sequences) noexcept {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(sequences)) - 1, classes - 1);
  }
  /// Returns the number of drafted rows of a batch that one drafted row of a learned curve represents.
  static std::size_t unit(std::size_t sequences) noexcept {
    return std::max<std::size_t>(1, std::bit_floor(sequences) / 8);
  }
  /// Returns true if the prepared pass can be learned from.
  [[nodiscard]] bool learns() const noexcept { return !told_ && plain_.rows == plain_.sequences; }
  /// Returns the row count of the learned curve that represents a pass with `drafted` drafted rows.
  [[nodiscard]] std::size_t row_of(std::size_t drafted) const noexcept {
    const std::size_t run = drafted == 0 ? 0 : width(plain_.rows + drafted) - plain_.rows;
    const std::size_t rows = unit(plain_.sequences);
    return 1 + (run + rows - 1) / rows;
  }
  [[nodiscard]] const LearnedCurve& learned() const noexcept {
    const std::size_t at = class_of(plain_.sequences);
    return lacks_costs(at) && lent_.sequences == plain_.sequences ? borrowed_ : learned_[at];
  }
  /// Begins the curve of the prepared pass with the costs that it has borrowed, at its first time.
  void begin_curve(std::optional<Duration> time) noexcept {
    if (!time || time->count() <= 0) return;
    const std::size_t at = class_of(plain_.sequences);
    if (lacks_costs(at) && lent_.sequences == plain_.sequences) learned_[at] = borrowed_;
    timed_at_[at] = plain_.sequences;
  }
  /// Returns true if nothing is known of this curve.
  [[nodiscard]] bool lacks_costs(std::size_t at) const noexcept {
    return learned_[at].passes() == 0 && learned_[at].widest() == 1;
  }
  /// Returns the loan of the curve of `sequences` sequences: from the nearest curve with times, or else with given
  /// costs.
  [[nodiscard]] Loan loan_of(std::size_t sequences) const noexcept {
    const std::size_t at = class_of(sequences);
    for (const bool timed : {true, false}) {
      for (std::size_t far = 1; far < classes; ++far) {
        for (const std::size_t lender : {at - far, at + far}) {  // below 0, the number is large
          if (lender >= classes || learned_[lender].widest() == 1 || (learned_[lender].passes() > 0) != timed) continue;
          const std::size_t own = timed ? timed_at_[lender] : std::size_t{1} << lender;
          return {sequences, own, learned_[lender].revision()};
        }
      }
    }
    return {};
  }
  /// Reads the costs that the curve of `sequences` sequences borrows, as long as nothing is known of it. Returns true
  /// if it has read them.
  bool borrow(std::size_t sequences) noexcept {
    if (!lacks_costs(class_of(sequences))) return false;
    const Loan loan = loan_of(sequences);
    if (loan.own == 0 || loan == lent_) return false;
    lent_ = loan;
    borrowed_ = LearnedCurve(prior_of(loan));
    plain_.rows = unlimited;  // matches no pass
    return true;
  }
  /// Returns the known costs of the lender, for passes of as many rows in total.
  [[nodiscard]] CostPrior prior_of(const Loan& loan) const noexcept {
    const LearnedCurve& curve = learned_[class_of(loan.own)];
    const auto time = [&](std::size_t rows) -> std::int64_t {  // in plain passes of the lender
      const auto unit = static_cast<std::int64_t>(this->unit(loan.own));
      if (rows >= loan.own) {
        const auto drafted = static_cast<std::int64_t>(rows - loan.own);
        const std::int64_t low = curve.cost(1 + static_cast<std::size_t>(drafted / unit));
        const std::int64_t more = curve.cost(2 + static_cast<std::size_t>(drafted / unit)) - low;
        return low + more * (drafted % unit) / unit;
      }
      const auto all = static_cast<std::int64_t>(curve.widest() - 1) * unit;
      const auto fewer = static_cast<std::int64_t>(loan.own - rows);
      return cost_one - std::min((curve.cost(curve.widest()) - cost_one) * fewer / all,
                                 cost_one * fewer / static_cast<std::int64_t>(loan.own));
    };
    CostPrior prior;
    for (std::size_t row = CostPrior::least_rows; row <= CostPrior::most_rows; ++row) {
      const std::size_t rows = loan.sequences + (row - 1) * unit(loan.sequences);
      if (rows > loan.own + (curve.widest() - 1) * unit(loan.own)) break;
      prior.assume(row, saturated_cost(UnitScale::divide(time(rows), time(loan.sequences))));
    }
    return prior;
  }
  /// Returns `context` with all bits cleared except the three leading ones.
  static std::size_t rounded_context(std::size_t context) noexcept {
    const std::size_t third_bit = std::max<std::size_t>(1, std::bit_floor(context) / 4);
    return context - context % third_bit;
  }

  void read(bool optimistic = false) noexcept {
    if (!reserved()) return;
    read_costs(optimistic);
    const std::uint64_t sequences = plain_.sequences;
    const std::int64_t first = fixed_ln(time(0));
    std::uint64_t tokens = sequences;  // tokens of the pass with the highest throughput
    std::uint64_t cost = cost_one;
    worthwhile_ = 0;
    for (std::size_t k = 0; k <= most_; ++k) {
      logs_[k] = static_cast<std::int32_t>(fixed_ln(time(k)) - first);
      const std::uint64_t relative = time(k);
      if ((sequences + k) * cost > tokens * relative) tokens = sequences + k, cost = relative;
      // The gain if all k drafted rows are accepted and spread evenly over the sequences, which is the best case. They
      // are worthwhile only if 31/32 of that gain exceeds their cost.
      const std::int64_t gain = fixed_ln(UnitScale::divide(sequences + k, sequences));
      if (gain * 31 / 32 > logs_[k]) worthwhile_ = k;
    }
    max_throughput_ =
        std::min(static_cast<Rate>(UnitScale::divide(UnitScale::from(tokens), cost * sequences)), most_rate);
    least_step_ = most_step;
    for (std::size_t k = 1; k <= worthwhile_; ++k)
      least_step_ = std::min<std::int64_t>(least_step_, std::max(0, logs_[k] - logs_[k - 1]));
  }
  void read_costs(bool optimistic) noexcept {
    const std::span<Cost> costs(costs_.data(), most_ + 1);
    if (told_) {
      told_->costs(plain_, costs);
    } else {
      read_learned(costs, optimistic);
    }
    if (widths_.empty()) return;
    for (std::size_t k = 0; k <= most_; ++k) {
      const std::size_t run = width(plain_.rows + k) - plain_.rows;
      // run >= k, so costs[run] is not yet overwritten.
      costs[k] = run <= most_ ? costs[run]
                 : told_      ? told_->cost({plain_.sequences, plain_.rows + run, plain_.context})
                              : costs[most_];
    }
  }
  /// Reads learned costs, interpolated linearly between the row counts of the curve.
  void read_learned(std::span<Cost> costs, bool optimistic) const noexcept {
    std::array<Cost, LearnedCurve::most_rows + 1> rows;  // NOLINT(*-member-init): filled by the next call
    if (optimistic)
      learned().optimistic_costs(1, rows);
    else
      learned().costs(1, rows);
    const auto at = [&](std::size_t i) -> std::int64_t { return i < rows.size() ? rows[i] : learned().cost(1 + i); };
    const std::size_t unit = this->unit(plain_.sequences);
    for (std::size_t k = 0; k < costs.size(); ++k) {
      const std::int64_t low = at(k / unit);
      const std::int64_t more = k % unit == 0 ? 0 : at(k / unit + 1) - low;
      costs[k] = static_cast<Cost>(low + more * static_cast<std::int64_t>(k % unit) / static_cast<std::int64_t>(unit));
    }
  }
  /// Returns the cost of a pass of the prepared number of sequences with `rows` rows in total, at this exact context.
  [[nodiscard]] Cost exact_cost(std::size_t rows, std::size_t context) const noexcept {
    if (told_) return told_->cost({plain_.sequences, width(rows), context});
    return costs_[std::min(rows - std::min(rows, plain_.sequences), most_)];
  }
  /// Sets out[i] to exact_cost(rows + i, context).
  void read_exact_costs(std::size_t rows, std::size_t context, std::span<Cost> out) const noexcept {
    if (told_ && widths_.empty()) return told_->costs({plain_.sequences, rows, context}, out);
    for (Cost& cost : out) cost = exact_cost(rows++, context);
  }
  /// Returns the time of a pass with k drafted rows, in UnitScale. The pass without drafted rows takes 1, even if it
  /// carries other rows.
  [[nodiscard]] std::uint64_t time(std::size_t k) const noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(1, extra(k) + cost_one));
  }

  static constexpr std::int64_t most_step = UnitScale::from(std::int64_t{16});

  std::optional<CostCurve> told_;
  AllowedWidths widths_;
  std::size_t most_;
  std::array<LearnedCurve, classes> learned_{};
  std::array<std::size_t, classes> timed_at_{};  // sequences of the last timed pass
  LearnedCurve borrowed_;
  Loan lent_;                         // what borrowed_ has
  PassShape plain_{1, unlimited, 0};  // matches no pass
  std::uint32_t revision_ = 0;        // revision of the learned curve at the last read
  Buffer<Cost> costs_;
  Buffer<std::int32_t> logs_;
  Buffer<Cost> replays_;  // see highest_replay()
  std::size_t most_replayed_ = 0;
  Rate max_throughput_ = rate_one;
  std::size_t worthwhile_ = 0;
  std::int64_t least_step_ = 0;
};

}}}  // namespace reprise::detail
