// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/draft_length.hpp"
#include "reprise/control/detail/learned_curve.hpp"
#include "reprise/control/detail/pass_costs.hpp"
#include "reprise/control/detail/sequence_control.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/evidence/detail/claim_calibrator.hpp"

namespace reprise { inline namespace v0 {

/// Settings of CostControl. All have working defaults.
struct CostOptions {
  /// The cost of passes. Without a curve, control learns the costs from PassReport::time.
  std::optional<CostCurve> curve = {};
  /// The costs that control assumes before it has learned them; unused with a curve. If the prior assumes nothing, the
  /// default curve applies until the first measured time.
  CostPrior prior = {};
  Cost rollback = 0;  ///< extra cost of a pass whose draft is not accepted in full, in plain passes (see to_cost())
  /// Upper bound on the drafted rows of a pass. Values above CostControl::most_nodes count as most_nodes. By default,
  /// the control has no bound of its own; a round without one has that of usual_draft_nodes.
  std::size_t max_nodes = unlimited;
  /// True: the strategy's probabilities are used as they are, without calibration. A Session sets it for each strategy
  /// that is a CalibratedStrategy.
  bool calibrated = false;
  /// The loss budget of one engine and one tenant, shared by the controls of all their sequences. It must outlive the
  /// control. Null: the control has a budget of its own, for all sequences that it controls one after the other.
  LossBudget* loss_budget = nullptr;
};

/// Sends the part of a draft that is worth its cost (draft_length.hpp), within the loss bound of loss_budget.hpp. It
/// reports these reasons for not sending a whole draft:
///
///  * Cut::throttled: the loss budget set the limit, or a plain pass must be timed.
///  * Cut::unlikely: more nodes would not be worth their cost.
///  * Cut::width: more nodes would be worth their cost if other widths were allowed.
///  * Cut::budget: max_nodes set the limit, or the costs of longer drafts are neither measured nor assumed yet.
///
/// begin() resets everything learned about the sequence: throughput and calibration of claims. It keeps the learned
/// pass costs, because they are a property of the engine. A new CostControl starts from CostOptions::prior. begin()
/// does not refill the loss budget: passes do.
///
/// A loss budget of the control's own starts with an allowance of the whole burst, or of half a plain pass for an
/// uncalibrated strategy. choose() reserves the worst loss of the chosen pass until learn(), cancel() or the next
/// choose(). abandon(), begin(), share_loss_budget() and destruction count a reserved pass as lost.
///
/// With a learned curve:
///
///  * No cost is learned from passes of several sequences.
///  * The limit on draft length covers the assumed row counts, and grows as longer drafts are timed.
///  * Occasionally a draft is skipped to time a plain pass, preferably a draft of little value. At most 256 timed
///    passes run between two timed plain passes, or 16 while drafting seems to lose. This holds while plain passes are
///    timed.
///  * The loss bound is not guaranteed. To cover the error of learned costs, each drafted pass is charged more than its
///    learned cost: LearnedCurve::margin() if the cost of its row count is trusted, and 1/32 otherwise.
///  * Occasionally a length is sent in order to learn its cost: a trial. The loss budget pays only the cost of the pass
///    that would have run otherwise, so it does not limit trials. LearnedCurve limits them: the wait after a trial is
///    in proportion to its loss.
///  * In true costs, 97% of 3,360 simulated hostile runs lost at most 15 plain passes in 1,000, after 1,500 passes. The
///    worst run lost 37. docs/decisions/0011 explains the design.
///
/// Lengths are compared at costs for the context length rounded down to a multiple of 64. The chosen length is checked,
/// and later charged, at the exact cost for the exact context. If its worst loss is not affordable, the best of the
/// shorter lengths is tried, and so on. A sampled draft instead ends before the first length that is not affordable.
///
/// Cost: about 90 ns a pass for a draft of eight nodes with a linear curve, and 700 ns for a chain of 32 nodes. A
/// measured curve adds about one microsecond every 64 tokens of context; an uncalibrated strategy adds about 10 ns a
/// node. Only copies allocate, for the curve.
/// Threads: many threads may call const functions at once; no other function may run at the same time as any call.
/// Distinct controls may be used at the same time, even if they share a budget.
class CostControl {
 public:
  static constexpr std::size_t most_nodes = most_draft_nodes;

  explicit CostControl(CostOptions options = {}) noexcept
      : options_(std::move(options)), one_(detail::LossAccount(first_budget(options_), options_.loss_budget)) {
    bounded_ = options_.max_nodes != unlimited;
    options_.max_nodes = std::min(options_.max_nodes, most_nodes);
    one_.read_costs(pass_costs(), PassShape(), usual_nodes());
  }

  /// Sets CostOptions::calibrated. Call it before any pass.
  void trust_probabilities() noexcept {
    if (!options_.calibrated) one_.losses = detail::LossAccount(LossBudget(), options_.loss_budget);
    options_.calibrated = true;
  }
  void begin() noexcept {
    one_.throughput = {};
    one_.losses.close();
    one_.instead.reset();
    claims_ = {};
  }
  /// Gives back the reservation of choose(), because the chosen pass will not run.
  void cancel() noexcept { one_.cancel(); }
  /// Counts the chosen pass as lost: it may have run, and its result will never be learned. Returns the loss, in the
  /// unit of Cost.
  std::int64_t abandon() noexcept {
    one_.instead.reset();
    return one_.losses.abandon();
  }
  /// Takes back a loss that abandon() has charged: the pass did not run.
  void correct(std::int64_t loss) noexcept { one_.losses.correct(loss); }
  /// Reserves the cost of drafting outside of the passes, such as that of a draft head, in the loss budget. Returns
  /// false and reserves nothing if the budget does not cover it.
  [[nodiscard]] bool afford(Cost cost) noexcept { return one_.losses.afford(cost); }
  /// Charges what it has cost, and adds that to the cost of the tokens that come next.
  void spend(Cost cost) noexcept {
    one_.losses.spend(cost);
    one_.throughput.add(0, cost, 0);
  }
  /// Gives back what afford() has reserved: it has not run.
  void spare() noexcept { one_.losses.spare(); }
  /// Returns false if this control is a fork whose next pass runs a replay that a shared loss budget does not allow.
  [[nodiscard]] bool may_fork() const noexcept { return !options_.curve || one_.losses.covers_replay(); }
  /// Uses `budget` from now on, or the control's own loss budget if `budget` is null; see CostOptions::loss_budget.
  /// Call it before begin() if one control serves the sequences of several tenants.
  void share_loss_budget(LossBudget* budget) noexcept {
    options_.loss_budget = budget;
    one_.losses.share(budget);
  }

  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits& room) const noexcept {
    DraftBudget narrowed = asked;
    narrowed.max_nodes = std::min(asked.max_nodes, options_.max_nodes);
    narrowed.min_path_probability =
        std::max(asked.min_path_probability, one_.least_probability(pass_costs(), room.plain, nodes_of(asked.max_nodes),
                                                                    room.widths.empty() && options_.calibrated));
    return narrowed;
  }

  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) noexcept {
    cancel();
    if (sendable.empty()) return {};
    const std::size_t max_nodes = nodes_of(room.asked);
    const std::span<const NodeIndex> nodes = sendable.first(std::min({sendable.size(), room.nodes, max_nodes}));
    std::array<std::uint32_t, most_nodes + 1> sums;  // NOLINT(*-member-init): filled by the next call
    add_up(draft, nodes, sums);
    return one_.choose(pass_costs(),
                       {.kind = draft.kind(),
                        .nodes = sendable.size(),
                        .sums = std::span(sums).first(nodes.size() + 1),
                        .chain = options_.calibrated ? detail::chain_length_of(draft, nodes) : 0},
                       room, max_nodes, options_.rollback);
  }

  void learn(const Outcome& outcome, const PassReport& report) noexcept {
    const bool rejected = outcome.accepted.size() + report.plain.rows < report.sent.rows;
    const bool learns = !options_.curve && report.sent.sequences == 1;
    one_.learn(pass_costs(), learns ? &learned_ : nullptr, report, rejected ? options_.rollback : 0);
    if (!options_.calibrated) claims_.learn(outcome);
  }

  [[nodiscard]] const CostOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  /// Returns CostOptions::max_nodes, or usual_draft_nodes by default; see K11.
  [[nodiscard]] std::size_t usual_nodes() const noexcept { return bounded_ ? options_.max_nodes : usual_draft_nodes; }
  /// Returns the recent throughput: tokens per plain pass, in 1/65,536.
  [[nodiscard]] std::int64_t throughput() const noexcept { return one_.throughput.rate(); }
  /// Returns the budget that limits the losses: the shared one, or the control's own.
  [[nodiscard]] const LossBudget& loss_budget() const noexcept REPRISE_LIFETIMEBOUND { return one_.losses.budget(); }
  [[nodiscard]] const LearnedCurve& learned() const noexcept REPRISE_LIFETIMEBOUND { return learned_; }
  /// Returns the estimated cost of a pass of this shape.
  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept { return pass_costs().cost(shape); }
  /// Returns the heap memory in bytes.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return options_.curve ? options_.curve->memory_bytes() : 0;
  }

 private:
  /// Returns the control's own budget. With an uncalibrated strategy, the initial allowance is half a plain pass,
  /// because sessions can be short.
  static LossBudget first_budget(const CostOptions& options) noexcept {
    return options.calibrated ? LossBudget() : LossBudget(cost_one / 2);
  }

  [[nodiscard]] detail::PassCosts pass_costs() const noexcept { return {options_.curve, learned_}; }

  /// Returns the upper bound on the drafted rows of a pass in a round that asks for up to `asked` nodes. Smaller rounds
  /// have one bound, so that their costs need not be read again.
  [[nodiscard]] std::size_t nodes_of(std::size_t asked) const noexcept {
    return bounded_ ? options_.max_nodes : std::clamp(asked, usual_draft_nodes, most_nodes);
  }

  /// Sets sums[k] to the sum of the first k path probabilities. The claims of an uncalibrated strategy are first
  /// calibrated by past outcomes.
  void add_up(DraftView draft, std::span<const NodeIndex> sendable, std::span<std::uint32_t> sums) const noexcept {
    if (options_.calibrated) return detail::add_path_probabilities(draft, sendable, sums);
    sums[0] = 0;
    detail::PathProducts<most_nodes> paths;
    for (std::size_t i = 0; i < sendable.size(); ++i) {
      const std::uint32_t claim = detail::ClaimCalibrator::claim(draft, static_cast<std::size_t>(sendable[i]));
      sums[i + 1] = sums[i] + paths.extend(draft, sendable, i, claims_.trusted(claim));
    }
  }

  CostOptions options_;
  detail::SequenceControl one_;
  detail::ClaimCalibrator claims_;
  LearnedCurve learned_{options_.prior};
  bool bounded_ = false;  // CostOptions::max_nodes is given
};
static_assert(DraftControl<CostControl>);

}}  // namespace reprise
