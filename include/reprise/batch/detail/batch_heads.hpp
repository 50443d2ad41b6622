// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/batch/planner.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/head_costs.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/detail/head_forecast.hpp"
#include "reprise/core/limits.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Decides in each shared pass for which sequences a draft head runs, and how far, as HeadControl does for one
/// sequence.
///
/// In the time of a plain pass, each of n sequences gets the recent tokens per sequence and plain pass; so a run that
/// takes that long costs n times as many tokens. The head runs for the sequences that are expected to gain the most
/// from it, as many as make the sum of the gains, less the cost of the run, the largest. If a run for many costs as
/// much as one for a single sequence, that is all of them or none. The costs of a run are learned for each range of
/// numbers of sequences, so neither kind of head needs an option.
///
/// The planner's loss budget reserves the cost of a run before it starts. Cost: sorts the sequences.
class BatchHeads {
 public:
  explicit BatchHeads(std::optional<HeadCost> told = {}) noexcept : costs_(told) {}

  [[nodiscard]] bool reserve(std::size_t sequences) noexcept { return wishes_.reserve(sequences); }

  /// Begins a pass, and ends the one before.
  void begin(BatchPlanner& planner) noexcept {
    spare(planner);
    wishes_.clear();
    costs_.idle();
  }
  /// Adds a sequence of the pass. `most`: how many tokens fit. `late`: see HeadRun. `plain`: the pass without drafts.
  /// Requires reserve().
  void add(const BatchPlanner& planner, const HeadForecast& forecast, const PassShape& plain, std::size_t slot,
           std::size_t most, std::size_t late) noexcept {
    const std::size_t all = plain.sequences;
    most = std::min(most, (planner.room(plain) + all - 1) / all);
    const std::int64_t first = cost(planner, plain, {1, all, all, 0});
    // The others are taken to draft as much, so each sequence has its share of what all of them cost.
    const HeadDraft draft = best_head_draft(forecast, price(planner), most, [&](std::size_t count) {
      const std::int64_t run = cost(planner, plain, {count, all, count * all, 0});
      return planner.extra(count * all) + std::max<std::int64_t>(run - first, 0);
    });
    if (draft.tokens > 0) wishes_.push_reserved({slot, draft.tokens, late, draft.gain});
  }
  /// Decides, and reserves the cost in the loss budget. Returns for how many sequences the head runs: chosen(0),
  /// chosen(1), ...
  std::size_t ask(BatchPlanner& planner, const PassShape& plain) noexcept {
    std::sort(wishes_.data(), wishes_.data() + wishes_.size(),
              [](const Wish& a, const Wish& b) { return a.gain != b.gain ? a.gain > b.gain : a.slot < b.slot; });
    const auto sequences = static_cast<std::int64_t>(plain.sequences);
    std::int64_t gain = 0;
    std::int64_t best = 0;
    std::size_t chosen = 0;
    HeadRun run{0, 0, 0, 0};
    HeadRun best_run;
    const std::size_t room = planner.room(plain);
    for (std::size_t i = 0; i < wishes_.size() && run.all < room; ++i) {
      Wish& wish = wishes_[i];
      wish.tokens = std::min(wish.tokens, room - run.all);
      gain += wish.gain;
      run = {std::max(run.tokens, wish.tokens), i + 1, run.all + wish.tokens, run.late + wish.late};
      const std::int64_t cost = this->cost(planner, plain, run);
      const std::int64_t value = gain - UnitScale::multiply(price(planner), cost) * sequences;
      if (value > best && cost + planner.extra(run.all) <= planner.loss_budget().allowance())
        best = value, chosen = i + 1, best_run = run;
    }
    if (chosen == 0) return 0;
    if (!planner.afford(static_cast<Cost>(this->cost(planner, plain, best_run)))) return 0;
    run_ = best_run;
    return chosen;
  }
  /// Returns the slot and the tokens of the i-th chosen sequence.
  [[nodiscard]] std::size_t slot_of(std::size_t i) const noexcept { return wishes_[i].slot; }
  [[nodiscard]] std::size_t tokens_of(std::size_t i) const noexcept { return wishes_[i].tokens; }
  /// Reports that the head has run as asked. `time`: for all sequences together.
  void ran(BatchPlanner& planner, const PassShape& plain, std::optional<Duration> time) noexcept {
    const HeadRun run = std::exchange(run_, {});
    if (run.tokens == 0) return;
    const std::int64_t cost = costs_.ran(run, time, planner.plain_time(plain.sequences));
    planner.spend(static_cast<Cost>(cost), plain.sequences);
  }
  /// Reports that it has not run.
  void spare(BatchPlanner& planner) noexcept {
    planner.spare();
    run_ = {};
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return wishes_.memory_bytes(); }

 private:
  struct Wish {
    std::size_t slot = 0;
    std::size_t tokens = 0;
    std::size_t late = 0;
    std::int64_t gain = 0;
  };

  [[nodiscard]] std::int64_t cost(const BatchPlanner& planner, const PassShape& plain,
                                  const HeadRun& run) const noexcept {
    return costs_.cost(run, planner.plain_time(plain.sequences));
  }
  /// Returns the value of a plain pass to a sequence, in tokens.
  static std::int64_t price(const BatchPlanner& planner) noexcept { return std::min(planner.throughput(), most_rate); }

  HeadCosts costs_;
  Buffer<Wish> wishes_;
  HeadRun run_;  // that was asked for and is not reported yet
};

}}}  // namespace reprise::detail
