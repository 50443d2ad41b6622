// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/draft_length.hpp"
#include "reprise/control/detail/learned_curve.hpp"
#include "reprise/control/detail/pass_costs.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/fixed_point.hpp"
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
  using LengthInput = detail::LengthInput;
  using PassCosts = detail::PassCosts;

 public:
  static constexpr std::size_t most_nodes = most_draft_nodes;

  explicit CostControl(CostOptions options = {}) noexcept
      : options_(std::move(options)), losses_(first_budget(options_), options_.loss_budget) {
    bounded_ = options_.max_nodes != unlimited;
    options_.max_nodes = std::min(options_.max_nodes, most_nodes);
    nodes_ = usual_nodes();
    costs_.read(pass_costs(), PassShape(), nodes_);
  }

  /// Sets CostOptions::calibrated. Call it before any pass.
  void trust_probabilities() noexcept {
    if (!options_.calibrated) losses_ = detail::LossAccount(LossBudget(), options_.loss_budget);
    options_.calibrated = true;
  }
  void begin() noexcept {
    throughput_ = {};
    losses_.close();
    instead_.reset();
    claims_ = {};
  }
  /// Gives back the reservation of choose(), because the chosen pass will not run.
  void cancel() noexcept {
    losses_.cancel();
    instead_.reset();
  }
  /// Counts the chosen pass as lost: it may have run, and its result will never be learned. Returns the loss, in the
  /// unit of Cost.
  std::int64_t abandon() noexcept {
    instead_.reset();
    return losses_.abandon();
  }
  /// Takes back a loss that abandon() has charged: the pass did not run.
  void correct(std::int64_t loss) noexcept { losses_.correct(loss); }
  /// Returns false if this control is a fork whose next pass runs a replay that a shared loss budget does not allow.
  [[nodiscard]] bool may_fork() const noexcept { return !options_.curve || losses_.covers_replay(); }
  /// Uses `budget` from now on, or the control's own loss budget if `budget` is null; see CostOptions::loss_budget.
  /// Call it before begin() if one control serves the sequences of several tenants.
  void share_loss_budget(LossBudget* budget) noexcept {
    options_.loss_budget = budget;
    losses_.share(budget);
  }

  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits& room) const noexcept {
    DraftBudget narrowed = asked;
    narrowed.max_nodes = std::min(asked.max_nodes, options_.max_nodes);
    Cost step = 0;  // stays 0 with widths: a row up to the next width is paid for anyway and may carry an unlikely node
    if (room.widths.empty() && options_.calibrated) {
      detail::CostTable scratch;  // NOLINT(*-member-init)
      step = costs_at(room.plain, nodes_of(asked.max_nodes), scratch).least_step;
      // A trial needs a draft, whatever its cost is believed to be.
      if (pass_costs().may_try()) step = std::min(step, cost_one / 4);
    }
    narrowed.min_path_probability =
        std::max(asked.min_path_probability, detail::least_worthwhile(throughput_.rate(), step));
    return narrowed;
  }

  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) noexcept {
    cancel();
    if (sendable.empty()) return {};
    nodes_ = nodes_of(room.asked);
    const PassCosts from = pass_costs();
    detail::CostTable scratch;  // NOLINT(*-member-init)
    const detail::CostTable& known = costs_at(room.plain, nodes_, scratch);
    const std::size_t allowed = std::min(room.nodes, nodes_);
    const std::size_t most = std::min(allowed, from.explored_rows(room));
    const std::size_t nodes = std::min(sendable.size(), most);
    std::array<std::uint32_t, most_nodes + 1> sums;  // NOLINT(*-member-init): filled up to `nodes`
    add_up(draft, sendable.first(nodes), sums);

    LengthInput input{.sums = std::span(sums).first(nodes + 1),
                      .costs = std::span(known.costs).first(most + 1),
                      .plain_rows = room.plain.rows,
                      .widths = room.widths,
                      .padded = room.padded,
                      .throughput = throughput_.rate(),
                      .max_throughput = known.max_throughput,
                      .allowance = losses_.allowance(),
                      .rollback = options_.rollback,
                      .replayed = room.replayed,
                      .chain = options_.calibrated && detail::forms_chain(draft, sendable.first(nodes))};
    if (!room.widths.empty() || allowed != nodes_)
      input.max_throughput = detail::highest_throughput(input.costs, room.widths, room.plain.rows);
    DraftChoice choice = detail::length_of(draft.kind(), input);
    if (choice.nodes + choice.padding > 0 &&
        from.should_probe_plain(gain_of(draft.kind(), input, choice), losses_.budget()))
      return {0, 0, Cut::throttled};
    choice = affordable(known, draft.kind(), room, input, choice);
    if (const std::optional<DraftChoice> trial = from.trial(draft.kind(), input)) {
      instead_ = choice.nodes + choice.padding;
      choice = *trial;
    }
    if (choice.nodes == nodes && nodes < std::min(sendable.size(), room.nodes)) choice.cut = Cut::budget;
    return choice;
  }

  void learn(const Outcome& outcome, const PassReport& report) noexcept {
    account(outcome, report);
    if (!options_.calibrated) claims_.learn(outcome);
    if (!options_.curve && report.sent.sequences == 1)
      learned_.learn(report.sent.rows, report.sent.rows <= report.plain.rows, report.time, report.plain.context);
    // Reads the costs of the next pass now, because budget() must not change anything. The shape of that pass is an
    // estimate; see costs_at().
    PassShape next{1, 1, report.plain.context + report.committed};
    if (report.replayed) next.rows = report.plain.rows + report.committed;
    if (!costs_.holds(pass_costs(), next, nodes_)) costs_.read(pass_costs(), next, nodes_);
  }

  [[nodiscard]] const CostOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  /// Returns CostOptions::max_nodes, or usual_draft_nodes by default; see K11.
  [[nodiscard]] std::size_t usual_nodes() const noexcept { return bounded_ ? options_.max_nodes : usual_draft_nodes; }
  /// Returns the recent throughput: tokens per plain pass, in 1/65,536.
  [[nodiscard]] std::int64_t throughput() const noexcept { return throughput_.rate(); }
  /// Returns the budget that limits the losses: the shared one, or the control's own.
  [[nodiscard]] const LossBudget& loss_budget() const noexcept REPRISE_LIFETIMEBOUND { return losses_.budget(); }
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

  [[nodiscard]] PassCosts pass_costs() const noexcept { return {options_.curve, learned_}; }

  /// Returns the upper bound on the drafted rows of a pass in a round that asks for up to `asked` nodes. Smaller rounds
  /// have one bound, so that their costs need not be read again.
  [[nodiscard]] std::size_t nodes_of(std::size_t asked) const noexcept {
    return bounded_ ? options_.max_nodes : std::clamp(asked, usual_draft_nodes, most_nodes);
  }
  /// Returns the costs of passes like `plain` with up to `nodes` drafted rows: the stored costs if they are for that
  /// shape, otherwise costs read into `scratch`. The shapes can differ in the first pass, if learn() expected a
  /// different number of pending rows, and if a round asks for longer drafts than the last one.
  [[nodiscard]] const detail::CostTable& costs_at(const PassShape& plain, std::size_t nodes,
                                                  detail::CostTable& scratch) const noexcept {
    if (costs_.holds(pass_costs(), plain, nodes)) return costs_;
    scratch.read(pass_costs(), plain, nodes);
    return scratch;
  }

  /// Reserves the worst loss of `choice`, and returns it. If the budget does not cover that loss, returns the best
  /// shorter draft that the budget covers, or no draft. The worst loss is that of a rejected draft with the most
  /// expensive replay. Every replay is possible, because a stop rule can end the text after any accepted token.
  [[nodiscard]] DraftChoice affordable(const detail::CostTable& known, DraftKind kind, const PassLimits& room,
                                       LengthInput input, DraftChoice choice) noexcept {
    const std::size_t rows = choice.nodes + choice.padding;
    if (rows == 0) return choice;
    std::array<std::int64_t, most_nodes + 1> replays;  // NOLINT(*-member-init): [k]: highest cost after k drafted rows
    if (room.replayed) {
      std::int64_t highest = 0;
      for (std::size_t committed = 0; committed <= rows; ++committed)
        replays[committed] = highest = std::max(highest, known.exact_replay(pass_costs(), room.plain, committed));
    }
    const Cost plain = known.exact(pass_costs(), room.plain, 0, room.plain.context);
    const auto worst_loss = [&](std::size_t drafted) {
      const Cost sent = known.exact(pass_costs(), room.plain, drafted, room.plain.context);
      if (sent == std::numeric_limits<Cost>::max()) return std::int64_t{sent};  // saturated: the true cost is unknown
      return losses_.worst(std::int64_t{sent} - plain + options_.rollback, room.replayed ? replays[drafted] : 0);
    };
    if (kind == DraftKind::sampled) return affordable_prefix(room, choice, worst_loss);
    while (!losses_.change(worst_loss(choice.nodes + choice.padding))) {
      input.costs = input.costs.first(choice.nodes + choice.padding);
      choice = detail::draft_length(input);
      choice.cut = Cut::throttled;
      if (choice.nodes + choice.padding == 0) break;
    }
    return choice;
  }
  /// Like affordable(), for a sampled draft. Later nodes must not decide whether a node is sent. So the budget has to
  /// cover every shorter draft as well.
  template <class WorstLoss>
  [[nodiscard]] DraftChoice affordable_prefix(const PassLimits& room, const DraftChoice& choice,
                                              const WorstLoss& worst_loss) noexcept {
    const std::size_t rows = choice.nodes + choice.padding;
    std::size_t affordable = 0;
    bool stopped = false;
    detail::for_each_row_count(room.widths, room.plain.rows, rows, [&](std::size_t drafted) {
      stopped = stopped || !losses_.change(std::max(losses_.planned(), worst_loss(drafted)));
      if (!stopped) affordable = drafted;
    });
    if (affordable == rows) return choice;
    const std::size_t nodes = std::min(affordable, choice.nodes);
    return {.nodes = nodes, .padding = affordable - nodes, .cut = Cut::throttled};
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

  /// Returns the expected gain of a choice, in plain passes. For a sampled draft, only the stated probability of its
  /// first node may decide whether anything is sent.
  [[nodiscard]] std::int64_t gain_of(DraftKind kind, const LengthInput& input,
                                     const DraftChoice& choice) const noexcept {
    const bool sampled = kind == DraftKind::sampled;
    const std::size_t nodes = sampled ? 1 : choice.nodes;
    const std::size_t rows = sampled ? 1 : choice.nodes + choice.padding;
    const std::int64_t more = std::int64_t{input.costs[rows]} - input.costs[0];
    return detail::UnitScale::divide(std::int64_t{input.sums[nodes]}, throughput_.rate()) - more;
  }

  /// Adds the tokens and the cost of a pass to the throughput, and its loss to the budget.
  void account(const Outcome& outcome, const PassReport& report) noexcept {
    detail::CostTable scratch;  // NOLINT(*-member-init)
    const detail::CostTable& known = costs_at(report.plain, nodes_, scratch);
    const std::size_t drafted = report.sent.rows - std::min(report.sent.rows, report.plain.rows);
    const Cost rollback = outcome.accepted.size() < drafted ? options_.rollback : 0;
    Cost sent = drafted < known.size ? known.costs[drafted] : pass_costs().cost(report.sent);
    sent = saturated_cost(std::int64_t{sent} + rollback);
    throughput_.add(report.committed, sent);
    settle(known, rollback, drafted, report);
  }
  /// Charges the loss of a pass at the exact context. A pass without a draft loses nothing. After a trial, charges only
  /// the cost of the pass that would have run otherwise, and reports the rest to the learned curve.
  void settle(const detail::CostTable& known, Cost rollback, std::size_t drafted, const PassReport& report) noexcept {
    std::int64_t loss = -LossBudget::saved(report.committed);
    std::int64_t replay = 0;
    if (drafted > 0) {
      const PassShape& plain = report.plain;
      const Cost sent =
          saturated_cost(std::int64_t{known.exact(pass_costs(), plain, drafted, plain.context)} + rollback);
      // The next pass runs the replayed rows, but this draft causes the replay.
      if (report.replayed) replay = known.exact_replay(pass_costs(), plain, report.committed);
      loss -= known.exact(pass_costs(), plain, 0, plain.context);
      if (instead_ && report.sent.sequences == 1) {
        const std::int64_t otherwise = known.exact(pass_costs(), plain, *instead_, plain.context);
        learned_.tried(report.sent.rows, otherwise - rollback - std::exchange(replay, 0), report.time,
                       report.plain.context);
        loss += otherwise;
      } else {
        loss += pass_costs().charged(sent, report.sent.rows);
      }
    }
    instead_.reset();
    losses_.settle(loss, replay, report.last);
  }

  CostOptions options_;
  detail::Throughput throughput_;
  detail::LossAccount losses_;
  detail::ClaimCalibrator claims_;
  LearnedCurve learned_{options_.prior};
  std::optional<std::size_t> instead_;  // in a trial: the number of drafted rows that would have been sent otherwise
  bool bounded_ = false;                // CostOptions::max_nodes is given
  std::size_t nodes_ = 0;               // upper bound on the drafted rows of the last choice
  detail::CostTable costs_{};           // costs of the expected next pass
};
static_assert(DraftControl<CostControl>);

}}  // namespace reprise
