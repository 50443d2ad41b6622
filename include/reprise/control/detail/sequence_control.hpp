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
#include "reprise/core/control.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The part of a draft that may be sent.
struct SendableDraft {
  DraftKind kind = DraftKind::ordered;
  std::size_t nodes = 0;                ///< all nodes that may be sent; can exceed those in `sums`
  std::span<const std::uint32_t> sums;  ///< sums[k]: the sum of the first k path probabilities, in UnitScale
  /// The number of leading nodes that form a chain with calibrated probabilities; see LengthInput::chain.
  std::size_t chain = 0;
};

/// Decides how much of the draft of one sequence a pass carries, and accounts for its result: what CostControl does,
/// and BatchPlanner for a pass of one sequence alone. CostControl documents the rules. The pass costs are arguments,
/// because an owner keeps them for more than this sequence. Memory: 420 bytes.
class SequenceControl {
 public:
  explicit SequenceControl(LossAccount account) noexcept : losses(std::move(account)) {}

  Throughput throughput;  ///< recent tokens per plain pass
  LossAccount losses;
  std::optional<std::size_t> instead;  ///< in a trial: the drafted rows that would have been sent otherwise

  /// Gives back the reservation of choose().
  void cancel() noexcept {
    losses.cancel();
    instead.reset();
  }
  /// Forgets the cached costs: those of the owner have changed without a new revision.
  void forget_costs() noexcept { costs_.size = 0; }

  /// Returns the lowest path probability worth proposing for a pass like `plain`. `priced`: every drafted row has its
  /// own cost, and probabilities are calibrated.
  [[nodiscard]] Probability least_probability(const PassCosts& from, const PassShape& plain, std::size_t max_nodes,
                                              bool priced) const noexcept {
    Cost step = 0;  // stays 0 with widths: a row up to the next width is paid for anyway and may carry an unlikely node
    if (priced) {
      CostTable scratch;  // NOLINT(*-member-init)
      step = costs_at(from, plain, max_nodes, scratch).least_step;
      // A trial needs a draft, whatever its cost is believed to be.
      if (from.may_try()) step = std::min(step, cost_one / 4);
    }
    return least_worthwhile(throughput.rate(), step);
  }

  /// Returns how much of `draft` to send, at most `max_nodes` drafted rows, and reserves the worst loss.
  [[nodiscard]] DraftChoice choose(const PassCosts& from, const SendableDraft& draft, const PassLimits& room,
                                   std::size_t max_nodes, Cost rollback) noexcept {
    CostTable scratch;  // NOLINT(*-member-init)
    max_nodes_ = max_nodes;
    const CostTable& known = costs_at(from, room.plain, max_nodes, scratch);
    const std::size_t allowed = std::min(room.nodes, max_nodes);
    const std::size_t most = std::min(allowed, from.explored_rows(room));
    const std::size_t nodes = std::min(draft.sums.size() - 1, most);
    LengthInput input{.sums = draft.sums.first(nodes + 1),
                      .costs = std::span(known.costs).first(most + 1),
                      .plain_rows = room.plain.rows,
                      .widths = room.widths,
                      .padded = room.padded,
                      .throughput = throughput.rate(),
                      .max_throughput = known.max_throughput,
                      .allowance = losses.allowance(),
                      .rollback = rollback,
                      .replayed = room.replayed,
                      .chain = nodes <= draft.chain};
    if (!room.widths.empty() || allowed != max_nodes)
      input.max_throughput = highest_throughput(input.costs, room.widths, room.plain.rows);
    DraftChoice choice = length_of(draft.kind, input);
    if (choice.nodes + choice.padding > 0 &&
        from.should_probe_plain(gain_of(draft.kind, input, choice), losses.budget()))
      return {0, 0, Cut::throttled};
    choice = affordable(from, known, draft.kind, room, input, choice);
    if (const std::optional<DraftChoice> trial = from.trial(draft.kind, input)) {
      instead = choice.nodes + choice.padding;
      choice = *trial;
    }
    if (choice.nodes == nodes && nodes < std::min(draft.nodes, room.nodes)) choice.cut = Cut::budget;
    return choice;
  }

  /// Adds the tokens and the cost of a pass to the throughput, and its loss to the budget. Learns the cost of the pass
  /// in `learned`, or nothing if that is null. `rollback`: the cost of a rejection that this pass has had.
  /// `as_planned`: see BatchPlanner::learn().
  void learn(const PassCosts& from, LearnedCurve* learned, const PassReport& report, Cost rollback,
             bool as_planned = true) noexcept {
    CostTable scratch;  // NOLINT(*-member-init)
    const CostTable& known = costs_at(from, report.plain, max_nodes_, scratch);
    const std::size_t drafted = report.sent.rows - std::min(report.sent.rows, report.plain.rows);
    const Cost sent = drafted < known.size ? known.costs[drafted] : from.cost(report.sent);
    throughput.add(report.committed, saturated_cost(std::int64_t{sent} + rollback));
    settle(from, known, learned, rollback, drafted, report);
    if (learned != nullptr && as_planned)
      learned->learn(report.sent.rows, drafted == 0, report.time, report.plain.context);
    // Reads the costs of the next pass now, because least_probability() must not change anything. The shape of that
    // pass is an estimate; see costs_at().
    PassShape next{1, 1, report.plain.context + report.committed};
    if (report.replayed) next.rows = report.plain.rows + report.committed;
    read_costs(from, next, max_nodes_);
  }
  /// Reads the costs of passes like `plain`, unless they are cached.
  void read_costs(const PassCosts& from, const PassShape& plain, std::size_t max_nodes) noexcept {
    max_nodes_ = max_nodes;
    if (!costs_.holds(from, plain, max_nodes)) costs_.read(from, plain, max_nodes);
  }

 private:
  /// Returns the costs of passes like `plain` with up to `nodes` drafted rows: the stored costs if they are for that
  /// shape, otherwise costs read into `scratch`. The shapes can differ in the first pass, if learn() expected a
  /// different number of pending rows, and if a round asks for longer drafts than the last one.
  [[nodiscard]] const CostTable& costs_at(const PassCosts& from, const PassShape& plain, std::size_t nodes,
                                          CostTable& scratch) const noexcept {
    if (costs_.holds(from, plain, nodes)) return costs_;
    scratch.read(from, plain, nodes);
    return scratch;
  }

  /// Reserves the worst loss of `choice`, and returns it. If the budget does not cover that loss, returns the best
  /// shorter draft that the budget covers, or no draft. The worst loss is that of a rejected draft with the most
  /// expensive replay. Every replay is possible, because a stop rule can end the text after any accepted token.
  [[nodiscard]] DraftChoice affordable(const PassCosts& from, const CostTable& known, DraftKind kind,
                                       const PassLimits& room, LengthInput input, DraftChoice choice) noexcept {
    const std::size_t rows = choice.nodes + choice.padding;
    if (rows == 0) return choice;
    std::array<std::int64_t, most_draft_nodes + 1> replays;  // NOLINT(*-member-init): highest cost after k drafted rows
    if (room.replayed) {
      std::int64_t highest = 0;
      for (std::size_t committed = 0; committed <= rows; ++committed)
        replays[committed] = highest = std::max(highest, known.exact_replay(from, room.plain, committed));
    }
    const Cost plain = known.exact(from, room.plain, 0, room.plain.context);
    const auto worst_loss = [&](std::size_t drafted) {
      const Cost sent = known.exact(from, room.plain, drafted, room.plain.context);
      if (sent == std::numeric_limits<Cost>::max()) return std::int64_t{sent};  // saturated: the true cost is unknown
      return losses.worst(std::int64_t{sent} - plain + input.rollback, room.replayed ? replays[drafted] : 0);
    };
    if (kind == DraftKind::sampled) return affordable_prefix(room, choice, worst_loss);
    while (!losses.change(worst_loss(choice.nodes + choice.padding))) {
      input.costs = input.costs.first(choice.nodes + choice.padding);
      choice = draft_length(input);
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
    for_each_row_count(room.widths, room.plain.rows, rows, [&](std::size_t drafted) {
      stopped = stopped || !losses.change(std::max(losses.planned(), worst_loss(drafted)));
      if (!stopped) affordable = drafted;
    });
    if (affordable == rows) return choice;
    const std::size_t nodes = std::min(affordable, choice.nodes);
    return {.nodes = nodes, .padding = affordable - nodes, .cut = Cut::throttled};
  }

  /// Returns the expected gain of a choice, in plain passes. For a sampled draft, only the stated probability of its
  /// first node may decide whether anything is sent.
  [[nodiscard]] std::int64_t gain_of(DraftKind kind, const LengthInput& input,
                                     const DraftChoice& choice) const noexcept {
    const bool sampled = kind == DraftKind::sampled;
    const std::size_t nodes = sampled ? 1 : choice.nodes;
    const std::size_t rows = sampled ? 1 : choice.nodes + choice.padding;
    const std::int64_t more = std::int64_t{input.costs[rows]} - input.costs[0];
    return UnitScale::divide(std::int64_t{input.sums[nodes]}, throughput.rate()) - more;
  }

  /// Charges the loss of a pass at the exact context. A pass without a draft loses nothing. After a trial, charges only
  /// the cost of the pass that would have run otherwise, and reports the rest to the learned curve.
  void settle(const PassCosts& from, const CostTable& known, LearnedCurve* learned, Cost rollback, std::size_t drafted,
              const PassReport& report) noexcept {
    std::int64_t loss = -LossBudget::saved(report.committed);
    std::int64_t replay = 0;
    if (drafted > 0) {
      const PassShape& plain = report.plain;
      const Cost sent = saturated_cost(std::int64_t{known.exact(from, plain, drafted, plain.context)} + rollback);
      // The next pass runs the replayed rows, but this draft causes the replay.
      if (report.replayed) replay = known.exact_replay(from, plain, report.committed);
      loss -= known.exact(from, plain, 0, plain.context);
      if (instead && learned != nullptr) {
        const std::int64_t otherwise = known.exact(from, plain, *instead, plain.context);
        learned->tried(report.sent.rows, otherwise - rollback - std::exchange(replay, 0), report.time, plain.context);
        loss += otherwise;
      } else {
        loss += from.charged(sent, report.sent.rows);
      }
    }
    instead.reset();
    losses.settle(loss, replay, report.last);
  }

  std::size_t max_nodes_ = 0;  // upper bound on the drafted rows of the last choice
  CostTable costs_{};          // costs of the expected next pass
};

}}}  // namespace reprise::detail
