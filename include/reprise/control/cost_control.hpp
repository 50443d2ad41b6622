// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/core/control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/draft_length.hpp"
#include "reprise/control/learned_curve.hpp"
#include "reprise/control/loss_guard.hpp"
#include "reprise/control/throughput.hpp"
#include "reprise/evidence/trust.hpp"

namespace reprise {

/// Settings of CostControl. None needs one.
struct CostOptions {
  std::optional<CostCurve> curve = {};  ///< what passes cost; none: learned from PassReport::time, and until there are
                                        ///< times, the default curve
  Cost rollback = 0;                    ///< what it costs more if not all of a draft is accepted (see to_cost())
  Cost drafting = 0;                    ///< what asking the strategy costs, in plain passes
  std::size_t max_nodes = 32;           ///< drafted rows of a pass, at most CostControl::most_nodes
  bool calibrated = false;              ///< the strategy's probabilities can be taken as they are
};

/// Sends as much of a draft as its probabilities and the cost curve make worthwhile (draft_length.hpp), as long as that
/// does not lose (loss_guard.hpp). Cut::gated: the guard was binding; unlikely: sending more would not have paid;
/// width: it would have with other allowed widths; budget: max_nodes.
///
/// begin() forgets what it knows of the sequence: throughput, debt, trust. What was learned about the cost of passes
/// stays: it is a property of the engine. A control made anew starts without.
///
/// With a learned curve, passes of several sequences teach nothing, drafts grow as longer ones have been timed, and now
/// and then one that is worth little is left out to time a plain pass (at the latest the 256th after another; one in 16
/// while drafting seems to lose). The guard then holds in the costs
/// it has learned, each drafted pass being charged a 32nd more for what may be wrong with them. In true cost it holds
/// after 1,500 passes, as far as the row counts sent were sent before; docs/decisions/0006 has the figures.
///
/// Costs are read for contexts rounded down to a multiple of 64. Cost: about 65 ns a pass for a draft of eight nodes
/// with a linear curve; a measured one adds about one microsecond every 64 tokens of context, an untrusted strategy
/// about 10 ns a node. No allocation but in copies, for the curve. Threads: one at a time (const functions included:
/// costs are kept from call to call); distinct copies are independent.
class CostControl {
 public:
  static constexpr std::size_t most_nodes = 64;

  explicit CostControl(CostOptions options = {}) noexcept : options_(std::move(options)) {
    options_.max_nodes = std::min(options_.max_nodes, most_nodes);
    guard_ = first_guard();
  }

  void begin() noexcept {
    throughput_ = {};
    guard_ = first_guard();
    trust_ = {};
    gain_ = rate_one;
    rest_ = 0;
  }

  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassRoom& room) const noexcept {
    DraftBudget narrowed = asked;
    narrowed.max_nodes = rest_ > 0 ? 0 : std::min(asked.max_nodes, options_.max_nodes);
    // A row up to the next width is paid for anyway, and may as well carry an unlikely node.
    const Cost step = !room.widths.empty() || !options_.calibrated ? 0 : costs_at(room.plain).least_step;
    narrowed.min_path_probability = std::max(asked.min_path_probability, least_worthwhile(throughput_.rate(), step));
    return narrowed;
  }

  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassRoom& room) const noexcept {
    if (rest_ > 0) return {0, 0, Cut::gated};
    if (sendable.empty()) return {};
    const Costs& known = costs_at(room.plain);
    std::size_t most = std::min(room.nodes, options_.max_nodes);
    if (!options_.curve) most = std::min(most, within_reach(room));
    const std::size_t nodes = std::min(sendable.size(), most);
    std::array<Cost, most_nodes + 1> sums;  // NOLINT(*-member-init): filled up to `nodes`
    add_up(draft, sendable.first(nodes), sums);

    LengthQuestion question{.sums = std::span(sums).first(nodes + 1),
                            .costs = std::span(known.costs).first(most + 1),
                            .plain_rows = room.plain.rows,
                            .widths = room.widths,
                            .padded = room.padded,
                            .throughput = throughput_.rate(),
                            .top = known.top,
                            .allowance = guard_.allowance(),
                            .rollback = options_.rollback,
                            .replayed = room.replayed};
    if (!room.widths.empty() || std::min(room.nodes, options_.max_nodes) != options_.max_nodes)
      question.top = highest_throughput(question.costs, room.widths, room.plain.rows);
    LengthAnswer answer = length_of(draft.kind(), question);
    if (!options_.curve && answer.nodes + answer.padding > 0) {
      // Where drafting seems to lose, knowing what a plain pass takes matters more than one draft. Of a sampled draft,
      // only what is stated of its first node may decide whether anything is sent.
      const bool sampled = draft.kind() == DraftKind::sampled;
      const std::size_t weighed = sampled ? 1 : answer.nodes;
      const std::size_t rows = sampled ? 1 : answer.nodes + answer.padding;
      const std::int64_t more = std::int64_t{question.costs[rows]} - question.costs[0];
      const std::int64_t gain = (std::int64_t{sums[weighed]} << 16) / throughput_.rate() - more;
      if (learned_.wants_plain(gain, guard_.debt() > LossGuard::burst / 2)) return {0, 0, Cut::gated};
    }
    if (!options_.curve && learned_.may_try(0)) answer = try_another(draft.kind(), question, answer);
    if (answer.nodes == nodes && nodes < std::min(sendable.size(), room.nodes)) answer.cut = Cut::budget;
    return {answer.nodes, answer.padding, answer.cut};
  }

  void learn(const Outcome& outcome, const PassReport& report) noexcept {
    const Costs& known = costs_at(report.plain);
    const std::size_t drafted = report.sent.rows - std::min(report.sent.rows, report.plain.rows);
    const Cost plain = known.costs[0];
    Cost sent = drafted <= options_.max_nodes ? known.costs[drafted] : cost(report.sent);
    if (outcome.accepted.size() < drafted) sent = saturated(std::uint64_t{sent} + options_.rollback);
    // What is run again is paid for in the next pass, but it is this draft that it is owed to.
    const PassShape next{1, report.plain.rows + report.committed, report.plain.context};
    const std::uint64_t again = report.replayed ? std::max(cost(next), cost_one) - cost_one : 0;
    throughput_.add(report.committed, std::int64_t{sent} + (rest_ > 0 ? 0 : options_.drafting));
    const Cost charged = options_.curve || drafted == 0 ? sent : cautious(sent, report);
    guard_.add(saturated(charged + again), plain, report.committed);
    if (options_.drafting != 0) weigh_drafting(std::int64_t{sent} - plain, report.committed);
    if (!options_.calibrated) trust_.learn(outcome);
    if (!options_.curve && report.sent.sequences == 1) learned_.learn(report.sent.rows, drafted == 0, report.time);
  }

  [[nodiscard]] const CostOptions& options() const noexcept { return options_; }
  [[nodiscard]] Rate throughput() const noexcept { return throughput_.rate(); }
  [[nodiscard]] const LossGuard& guard() const noexcept { return guard_; }
  [[nodiscard]] const LearnedCurve& learned() const noexcept { return learned_; }
  /// What a pass of this shape is taken to cost.
  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept {
    return options_.curve ? options_.curve->cost(shape) : learned_.cost(shape.rows);
  }
  /// Bytes of heap.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return options_.curve ? options_.curve->memory_bytes() : 0;
  }

 private:
  /// A strategy that is not trusted may lose half a plain pass before it has won anything: sessions can be short.
  [[nodiscard]] LossGuard first_guard() const noexcept {
    return options_.calibrated ? LossGuard() : LossGuard(cost_one / 2);
  }

  /// Costs of the pass without a draft and with k = 1 ... max_nodes rows more, and what follows from them alone.
  struct Costs {
    PassShape plain{unlimited, 0, 0};  // no such pass
    std::uint32_t passes = 0;          // of the learned curve
    Rate top = rate_one;
    Cost least_step = 0;
    std::array<Cost, most_nodes + 1> costs{};
  };

  [[nodiscard]] const Costs& costs_at(const PassShape& plain) const noexcept {
    const bool by_context = options_.curve && options_.curve->depends_on_context();
    const std::size_t context = by_context ? plain.context / 64 * 64 : 0;
    if (costs_.plain.sequences == plain.sequences && costs_.plain.rows == plain.rows &&
        costs_.plain.context == context && costs_.passes == learned_.passes())
      return costs_;
    costs_.plain = {plain.sequences, plain.rows, context};
    costs_.passes = learned_.passes();
    const std::span<Cost> costs = std::span(costs_.costs).first(options_.max_nodes + 1);
    if (options_.curve) {
      options_.curve->costs(costs_.plain, costs);
    } else {
      for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = learned_.cost(plain.rows + i);
    }
    costs_.top = highest_throughput(costs);
    costs_.least_step = costs.size() > 1 ? most_step : 0;
    for (std::size_t i = 1; i < costs.size(); ++i)
      costs_.least_step = std::min(costs_.least_step, costs[i] - std::min(costs[i], costs[i - 1]));
    return costs_;
  }

  /// sums[k]: the path probabilities of the first k nodes, 2^16 is one.
  void add_up(DraftView draft, std::span<const NodeIndex> sendable, std::span<Cost> sums) const noexcept {
    sums[0] = 0;
    std::array<Cost, most_nodes> trusted;  // NOLINT(*-member-init): written before it is read
    for (std::size_t i = 0; i < sendable.size(); ++i) {
      const auto index = static_cast<std::size_t>(sendable[i]);
      std::uint32_t path = draft[index].path_probability.raw() >> 14;
      if (!options_.calibrated) {
        std::size_t parent = i;  // nearly always the node before
        while (parent > 0 && sendable[parent - 1] != draft[index].parent) --parent;
        const std::uint64_t before = parent == 0 ? Trust::one : trusted[parent - 1];
        path = static_cast<std::uint32_t>(before * trust_.trusted(Trust::claim(draft, index)) >> 16);
        trusted[i] = path;
      }
      sums[i + 1] = sums[i] + path;
    }
  }

  /// Drafted rows that lie within reach of what was learned; where widths are given, up to the next one.
  [[nodiscard]] std::size_t within_reach(const PassRoom& room) const noexcept {
    std::size_t rows = learned_.reach();
    const auto width = std::lower_bound(room.widths.begin(), room.widths.end(), std::max(rows, room.plain.rows + 1));
    if (width != room.widths.end()) rows = *width;
    return rows - std::min(rows, room.plain.rows);
  }

  static LengthAnswer length_of(DraftKind kind, const LengthQuestion& question) noexcept {
    return kind == DraftKind::sampled ? stopping_length(question) : draft_length(question);
  }

  /// A length whose cost is not known well, if it would be the better one should it be cheap, and a try is due.
  [[nodiscard]] LengthAnswer try_another(DraftKind kind, LengthQuestion question,
                                         const LengthAnswer& usual) const noexcept {
    std::array<Cost, most_nodes + 1> hopeful;  // NOLINT(*-member-init): filled as far as it is read
    for (std::size_t i = 0; i < question.costs.size(); ++i) hopeful[i] = learned_.hopeful(question.plain_rows + i);
    const std::span<const Cost> expected = question.costs;
    question.costs = std::span(hopeful).first(expected.size());
    if (kind == DraftKind::sampled) {
      // Neither the drawn tokens nor their number may decide whether this is a try: the most that it can cost does.
      const std::int64_t most = std::int64_t{expected.back()} - expected[0];
      const bool affordable = learned_.may_try(most) && most + question.rollback <= question.allowance;
      return affordable ? length_of(kind, question) : usual;
    }
    const LengthAnswer other = length_of(kind, question);
    const std::size_t rows = other.nodes + other.padding;
    if (rows == 0 || !learned_.uncertain(question.plain_rows + rows)) return usual;
    const std::int64_t loss = std::int64_t{expected[rows]} - expected[usual.nodes + usual.padding];
    const std::int64_t more =
        std::int64_t{expected[rows]} - expected[0] + detail::highest_rejection_cost(question, rows);
    return learned_.may_try(loss) && more <= question.allowance ? other : usual;
  }

  /// A learned cost as the guard takes it: a 32nd more for what may be wrong with it, and of a row count that is not
  /// known well the mean of that and of what the pass has really taken.
  [[nodiscard]] Cost cautious(Cost sent, const PassReport& report) const noexcept {
    if (report.time && report.sent.sequences == 1 && learned_.uncertain(report.sent.rows))
      sent = std::max(sent, sent / 2 + learned_.measured(report.sent.rows, *report.time) / 2);
    return saturated(std::uint64_t{sent} + sent / 32);
  }

  /// If being asked costs a strategy more than its drafts save, it is asked in one round of 16 only.
  void weigh_drafting(std::int64_t more, std::size_t committed) noexcept {
    if (rest_ > 0) {
      --rest_;
      return;
    }
    gain_ += (LossGuard::saved(committed) - more - options_.drafting - gain_) / 16;
    if (gain_ < 0) rest_ = 15;
  }

  static Cost saturated(std::uint64_t cost) noexcept {
    return static_cast<Cost>(std::min<std::uint64_t>(cost, ~Cost{0}));
  }

  static constexpr Cost most_step = cost_one << 8;

  CostOptions options_;
  Throughput throughput_;
  LossGuard guard_;
  Trust trust_;
  LearnedCurve learned_;
  std::int64_t gain_ = rate_one;  // of rounds in which the strategy was asked, in plain passes each
  std::uint32_t rest_ = 0;        // rounds in which it is not
  mutable Costs costs_;
};
static_assert(DraftControl<CostControl>);

}  // namespace reprise
