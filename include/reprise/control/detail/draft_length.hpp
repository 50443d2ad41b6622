// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Computes how many nodes of a draft to send, with pure functions of probabilities and costs.
///
/// A drafted token saves the cost of producing it later. For ordered drafts, two rules weigh that saving against the
/// cost of more rows. Sampled drafts have a rule of their own: see stopping_length().
///
/// **Chains of calibrated strategies**, chain_length(): if a draft is a chain, the next pass can draft the nodes that
/// this pass does not send. So the rule compares whole plans, not single passes. A plan splits the chain into passes. A
/// pass sends some nodes, or none, and its bonus token takes the place of the node after them. The next pass of the
/// plan follows if all of these tokens agree with the chain. The rule chooses the first pass of the plan with the
/// lowest expected cost up to the first token that disagrees. The rule has no constants, and needs no estimate of the
/// throughput: every plan produces the same tokens.
///
/// **Other ordered drafts**, priced_length(): at a long-run throughput of L tokens per plain pass, a token costs 1/L of
/// a plain pass. A draft of k nodes therefore gains (sum of path probabilities) - L x (c(k) - c(0)) tokens. L is thus
/// the price of a plain pass, in tokens. This marginal rule is wrong in two respects, which priced_length() corrects:
///
///  * Text has easy and hard stretches. Easy tokens are easy in the next pass too. So a token that is left out is
///    produced at the throughput of *this* stretch, not at L. The rule therefore has two steps. It first chooses k at
///    the price L and computes the throughput of a pass with that k, R = (1 + sum) / c(k). Then it chooses k again at
///    the price R. R is at least 0.6 L; otherwise one hard token would make long drafts look cheap.
///  * A token that is not drafted now can be drafted later, with better evidence. This option to wait raises the price.
///    The surcharge is 30% (a factor of 333/256) while L is far below the highest throughput that any draft can reach.
///    It falls to zero as L reaches that limit: see value_of_time().
///
/// DraftChoice::cut is none, unlikely, throttled, width, or budget (more drafted rows than LengthInput::costs covers).
///
/// Numbers are fixed point in UnitScale. Cost of chain_length() for n nodes: n x n / 2 steps of about a nanosecond.
/// Cost of priced_length(): two loops over the row counts, a third one with widths, and five divisions. If
/// LengthInput::replayed is true, each step of these loops also loops over the accepted rows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Tokens per plain pass, in UnitScale.
using Rate = std::int64_t;
inline constexpr Rate rate_one = UnitScale::one;
inline constexpr Rate most_rate = UnitScale::from(Rate{16'384});

/// The inputs of draft_length() and stopping_length().
struct LengthInput {
  /// sums[k] is the sum of the first k path probabilities, in UnitScale. sums[0] is 0; the last element is the sum over
  /// all nodes that may be sent.
  std::span<const std::uint32_t> sums;
  std::span<const Cost> costs;  ///< costs[k]: cost of a pass with k drafted rows, for k from 0 to the maximum
  std::size_t plain_rows = 1;   ///< rows of the pass without a draft
  std::span<const std::size_t> widths = {};  ///< row counts of a pass, ascending, pending rows included; empty: any
  bool padded = false;                       ///< pad rows may fill a pass up to a width
  Rate throughput = rate_one;                ///< long-run tokens per plain pass
  Rate max_throughput = rate_one;            ///< see highest_throughput()
  std::int64_t allowance = most_rate;        ///< upper bound on the extra cost of a pass over a plain one
  Cost rollback = 0;                         ///< extra cost of a pass whose draft is not accepted in full
  bool replayed = false;                     ///< a rejection makes accepted tokens run again; see PassLimits::replayed
  /// true: draft_length() uses chain_length(), unless there are widths, a rollback cost or replayed tokens. The draft
  /// must then be a chain with calibrated probabilities.
  bool chain = false;
};

/// Multiplies one factor per node along each path of a draft, to discount the claims of a strategy node by node. Holds
/// the products of at most `Most` sendable nodes (DraftControl, K3). It does not allocate, and it leaves its memory
/// uninitialised.
template <std::size_t Most>
class PathProducts {
 public:
  /// Returns the product of the factors on the path to sendable[n], in UnitScale. `factor` is that node's own factor,
  /// in UnitScale. Call it for n = 0, 1, 2, ... of one draft. In `sendable`, parents must precede their children.
  std::uint32_t extend(DraftView draft, std::span<const NodeIndex> sendable, std::size_t n,
                       std::uint32_t factor) noexcept {
    const NodeIndex parent = draft[static_cast<std::size_t>(sendable[n])].parent;
    std::size_t at = n;  // nearly always the previous node
    while (at > 0 && sendable[at - 1] != parent) --at;
    const std::uint64_t before = at == 0 ? static_cast<std::uint64_t>(UnitScale::one) : products_[at - 1];
    return products_[n] = static_cast<std::uint32_t>(UnitScale::multiply(before, std::uint64_t{factor}));
  }

 private:
  std::array<std::uint32_t, Most> products_;  // NOLINT(*-member-init): filled by extend()
};

/// Sets sums[k] to the sum of the path probabilities of the first k nodes, in UnitScale, as the draft states them.
inline void add_path_probabilities(DraftView draft, std::span<const NodeIndex> nodes,
                                   std::span<std::uint32_t> sums) noexcept {
  sums[0] = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Probability path = draft[static_cast<std::size_t>(nodes[i])].path_probability;
    sums[i + 1] = sums[i] + rescaled<ProbabilityScale, UnitScale>(path.raw());
  }
}

/// Returns the number of leading nodes that form a chain: the first one is a child of the anchor, and each later one of
/// the node before it. Auxiliary nodes form no chain, because none of them is accepted.
inline std::size_t chain_length_of(DraftView draft, std::span<const NodeIndex> nodes) noexcept {
  NodeIndex last = anchor_parent;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const DraftNode& drafted = draft[static_cast<std::size_t>(nodes[i])];
    if (drafted.parent != last || drafted.auxiliary) return i;
    last = nodes[i];
  }
  return nodes.size();
}

/// Calls `visit` with every allowed number of drafted rows from 1 to `most`, in ascending order.
template <class Visit>
void for_each_row_count(std::span<const std::size_t> widths, std::size_t plain_rows, std::size_t most, Visit&& visit) {
  if (widths.empty()) {
    for (std::size_t rows = 1; rows <= most; ++rows) visit(rows);
    return;
  }
  for (const std::size_t width : widths) {
    if (width <= plain_rows) continue;
    if (width - plain_rows > most) return;
    visit(width - plain_rows);
  }
}

/// Returns the cost of a rejection after `accepted` accepted rows. If the engine restores a saved state, the next pass
/// runs the accepted rows and the pending rows again.
inline std::int64_t rejection_cost(const LengthInput& input, std::size_t accepted) noexcept {
  if (!input.replayed) return input.rollback;
  const Cost next = input.costs[std::min(accepted + 1, input.costs.size() - 1)];
  return std::int64_t{input.rollback} + (next - std::min(next, cost_one));
}

/// Returns the highest rejection_cost() that `rows` drafted rows can cause. Every number of accepted rows is checked,
/// because pass times need not rise with the number of rows.
inline std::int64_t highest_rejection_cost(const LengthInput& input, std::size_t rows) noexcept {
  std::int64_t highest = rejection_cost(input, rows - 1);
  if (input.replayed)
    for (std::size_t accepted = 0; accepted + 1 < rows; ++accepted)
      highest = std::max(highest, rejection_cost(input, accepted));
  return highest;
}

/// The number of drafted rows with the highest value offered so far. Among equal values, the first one wins. The number
/// is 0 until a value above 0 is offered. Call offer() with ascending numbers.
struct BestRows {
  std::size_t rows = 0;
  std::int64_t value = 0;

  void offer(std::size_t other, std::int64_t other_value) noexcept {
    const bool better = other_value > value;
    value = better ? other_value : value;
    rows = better ? other : rows;
  }
};

/// Computes the value of a number of drafted rows, at a given price of a plain pass.
class LengthScale {
 public:
  LengthScale(const LengthInput& input, Rate price) noexcept
      : input_(input), price_(price), rejections_cost_(input.rollback != 0 || input.replayed) {}

  [[nodiscard]] std::size_t nodes() const noexcept { return input_.sums.size() - 1; }
  /// Returns the largest number of drafted rows whose cost is known.
  [[nodiscard]] std::size_t row_limit() const noexcept { return input_.costs.size() - 1; }
  /// Returns the largest number of drafted rows to evaluate. It exceeds the number of nodes only if pad rows
  /// can fill the rest.
  [[nodiscard]] std::size_t most_rows() const noexcept {
    const bool padded = input_.padded && !input_.widths.empty();
    return padded ? row_limit() : std::min(row_limit(), nodes());
  }

  /// Returns the expected number of tokens from `rows` drafted rows, minus the price of the time that these rows add.
  [[nodiscard]] std::int64_t value(std::size_t rows) const noexcept {
    // A cost is below 2^32, or below 2^34 if it includes a rejection. No draft is worth 2^33 (131,072 plain passes).
    // The price is at most 2^30, so the product fits in 64 bits.
    constexpr std::int64_t most = UnitScale::from(std::int64_t{131'072}) - 1;
    std::int64_t more = std::int64_t{input_.costs[rows]} - input_.costs[0];
    if (rejections_cost_) more = std::min(more + rejection(rows), most);
    return std::int64_t{input_.sums[std::min(rows, nodes())]} - UnitScale::multiply(price_, more);
  }
  /// Returns true if the pass stays within the allowance even if every drafted token is rejected.
  [[nodiscard]] bool affordable(std::size_t rows) const noexcept {
    return std::int64_t{input_.costs[rows]} + highest_rejection_cost(input_, rows) <=
           input_.allowance + input_.costs[0];
  }
  /// Returns the expected cost of a rejection. The whole draft is assumed to be accepted with the path probability of
  /// its last node; padding is never accepted.
  [[nodiscard]] std::int64_t rejection(std::size_t rows) const noexcept {
    if (!rejections_cost_ || rows == 0) return 0;
    const std::uint32_t sum = input_.sums[std::min(rows, nodes())];
    const std::uint32_t all = rows > nodes() ? 0 : sum - input_.sums[rows - 1];
    return UnitScale::multiply(rejection_cost(input_, UnitScale::floor(sum)), std::int64_t{cost_one} - all);
  }

 private:
  const LengthInput& input_;
  Rate price_;
  bool rejections_cost_;
};

struct BestLength {
  std::size_t nodes = 0;
  std::size_t padding = 0;
  std::int64_t sum = 0;   // sum of the path probabilities of the nodes
  std::int64_t cost = 0;  // includes the expected cost of a rejection
};

/// Returns the affordable length with the highest value at a given price of a plain pass. Among equal values, returns
/// the shortest length. Returns 0 nodes if no value is above 0.
inline BestLength best_length(const LengthInput& input, Rate price) noexcept {
  const LengthScale scale(input, price);
  BestRows best;
  for_each_row_count(input.widths, input.plain_rows, scale.most_rows(), [&](std::size_t rows) {
    if (scale.affordable(rows)) best.offer(rows, scale.value(rows));
  });
  const std::size_t nodes = std::min(best.rows, scale.nodes());
  return {.nodes = nodes,
          .padding = best.rows - nodes,
          .sum = input.sums[nodes],
          .cost = input.costs[best.rows] + scale.rejection(best.rows)};
}

/// Like best_length(), but instead of sum and cost it returns the reason for not sending the whole draft. To find the
/// reason, it also tracks the best length that the allowance forbids, and the best length regardless of widths.
inline DraftChoice best_choice(const LengthInput& input, Rate price) noexcept {
  const LengthScale scale(input, price);
  const std::size_t nodes = scale.nodes();
  BestRows best;
  BestRows unaffordable;
  for_each_row_count(input.widths, input.plain_rows, scale.most_rows(), [&](std::size_t rows) {
    (scale.affordable(rows) ? best : unaffordable).offer(rows, scale.value(rows));
  });
  BestRows any_width;
  if (!input.widths.empty())
    for (std::size_t rows = 1; rows <= std::min(scale.row_limit(), nodes); ++rows)
      if (scale.affordable(rows)) any_width.offer(rows, scale.value(rows));

  const std::size_t sent = std::min(best.rows, nodes);
  DraftChoice choice{.nodes = sent, .padding = best.rows - sent, .cut = Cut::unlikely};
  if (sent == nodes) {
    choice.cut = Cut::none;
  } else if (unaffordable.value > best.value && std::min(unaffordable.rows, nodes) > sent) {
    choice.cut = Cut::throttled;
  } else if (any_width.rows > sent) {
    choice.cut = Cut::width;
  } else if (sent == scale.row_limit()) {
    choice.cut = Cut::budget;
  }
  return choice;
}

/// Returns the highest throughput that a draft can reach if all its nodes are accepted. It is at least the throughput
/// of plain decoding.
inline Rate highest_throughput(std::span<const Cost> costs, std::span<const std::size_t> widths = {},
                               std::size_t plain_rows = 1) noexcept {
  std::uint64_t tokens = 1;
  std::uint64_t cost = cost_one;
  for_each_row_count(widths, plain_rows, costs.size() - 1, [&](std::size_t rows) {
    if ((rows + 1) * cost <= tokens * costs[rows]) return;
    tokens = rows + 1;
    cost = costs[rows];
  });
  // There are two factors of UnitScale: one scales the rate, and the other cancels the scale of the cost.
  return std::min(static_cast<Rate>(UnitScale::divide(UnitScale::from(tokens), cost)), most_rate);
}

/// Returns the value of the time of a plain pass, in tokens, while decoding at `rate`. The formula is (top * m * x) /
/// (1 - x + m * x), with top = `max_throughput`, x = rate / top and m = 333/256. If the rate is far below top, the
/// value is close to m * rate. If the rate equals top, the value is top.
inline Rate value_of_time(Rate rate, Rate max_throughput) noexcept {
  constexpr Rate price_of_waiting = 333;  // m in Fixed<8>: 1.3
  const Rate x = std::min(UnitScale::divide(rate, max_throughput), rate_one);
  const Rate mx = Fixed<8>::multiply(x, price_of_waiting);
  return max_throughput * mx / (rate_one - x + mx);
}

/// Returns the lowest path probability worth proposing if one more drafted row costs at least `least_step`. It is never
/// below 0.002; otherwise every node would be worthwhile whenever drafted rows are free.
inline Probability least_worthwhile(Rate throughput, Cost least_step) noexcept {
  constexpr std::int64_t least_proposed = rescaled<Fixed<24>, ProbabilityScale>(std::int64_t{33554});  // 0.002
  const std::int64_t least = rescaled<UnitScale, ProbabilityScale>(UnitScale::multiply(throughput, least_step));
  return Probability::from_raw(
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(least, least_proposed, Probability::scale)));
}

/// Returns the number of nodes of an ordered draft to send, computed from the price of a plain pass (see the top of
/// this file).
inline DraftChoice priced_length(const LengthInput& input) noexcept {
  const Rate top = input.max_throughput;
  const Rate long_run = std::min(input.throughput, top);
  const BestLength first = best_length(input, value_of_time(long_run, top));
  const Rate least = long_run * 6 / 10;
  const Rate now = std::max(UnitScale::divide(rate_one + first.sum, first.cost), least);
  return best_choice(input, value_of_time(std::min(now, top), top));
}

/// Returns the number of nodes of a chain to send: those of the first pass of the cheapest plan. Among equally cheap
/// plans, the one with the shortest first pass wins. Widths, rollback and replayed tokens are ignored. The allowance
/// limits every pass of a plan; otherwise a plan could wait for a pass that is never allowed. Nodes after the 64th are
/// not sent.
inline DraftChoice chain_length(const LengthInput& input) noexcept {
  const std::size_t nodes = input.sums.size() - 1;
  const std::size_t chain = std::min(nodes, most_draft_nodes);
  const std::size_t row_limit = input.costs.size() - 1;
  const std::int64_t most_cost = input.allowance + input.costs[0];
  // rest[i] is the expected cost of the passes after the first i tokens of the chain, times the probability of these
  // tokens. After the last token and its bonus token, no cost is left. Factors: at most 65 passes, a probability of at
  // most 2^16 and a cost below 2^32.
  std::array<std::int64_t, most_draft_nodes + 2> rest;  // NOLINT(*-member-init): filled from the end
  rest[chain + 1] = 0;
  std::int64_t unaffordable = std::numeric_limits<std::int64_t>::max();
  std::size_t sent = 0;
  for (std::size_t i = chain + 1; i-- > 0;) {
    const std::int64_t reached = i == 0 ? cost_one : std::min(input.sums[i] - input.sums[i - 1], cost_one);
    std::int64_t least = reached * input.costs[0] + rest[i + 1];
    sent = 0;
    for (std::size_t k = 1; k <= std::min(row_limit, chain - i); ++k) {
      const std::int64_t cost = reached * input.costs[k] + rest[i + k + 1];
      if (input.costs[k] > most_cost) {
        if (i == 0) unaffordable = std::min(unaffordable, cost);
        continue;
      }
      // Two selections instead of a branch, which no processor would predict.
      const bool cheaper = cost < least;
      least = cheaper ? cost : least;
      sent = cheaper ? k : sent;
    }
    rest[i] = least;
  }
  DraftChoice choice{.nodes = sent, .cut = Cut::unlikely};
  if (sent == nodes) {
    choice.cut = Cut::none;
  } else if (unaffordable < rest[0]) {
    choice.cut = Cut::throttled;
  } else if (sent == std::min(row_limit, chain)) {
    choice.cut = Cut::budget;
  }
  return choice;
}

/// Returns the number of nodes of an ordered draft to send: chain_length() if LengthInput::chain asks for it, and
/// otherwise priced_length().
inline DraftChoice draft_length(const LengthInput& input) noexcept {
  const bool plan = input.chain && input.widths.empty() && input.rollback == 0 && !input.replayed;
  return plan ? chain_length(input) : priced_length(input);
}

/// Returns the number of nodes of a sampled draft to send. Whether a node is sent may depend only on probabilities
/// stated before its token was drawn; otherwise rejection sampling is biased. The rule therefore considers one allowed
/// number of drafted rows at a time and never looks ahead. It continues within the allowance, while the stated
/// probability of the next node is worth the cost of a drafted row. With widths, that probability counts for every
/// drafted row up to the next width.
inline DraftChoice stopping_length(const LengthInput& input) noexcept {
  const Rate price = value_of_time(std::min(input.throughput, input.max_throughput), input.max_throughput);
  const std::size_t nodes = input.sums.size() - 1;
  DraftChoice choice;
  bool stopped = false;
  for_each_row_count(input.widths, input.plain_rows, input.costs.size() - 1, [&](std::size_t rows) {
    const std::size_t sent = choice.nodes + choice.padding;
    if (stopped || sent >= nodes || (rows > nodes && !input.padded)) return;
    const std::int64_t step = std::int64_t{input.costs[rows]} - input.costs[sent];
    const std::int64_t more = std::int64_t{input.costs[rows]} - input.costs[0] + highest_rejection_cost(input, rows);
    const std::int64_t gain =
        static_cast<std::int64_t>(input.sums[sent + 1] - input.sums[sent]) * static_cast<std::int64_t>(rows - sent);
    stopped = more > input.allowance || gain <= UnitScale::multiply(price, step);
    if (stopped) {
      choice.cut = more > input.allowance ? Cut::throttled : Cut::unlikely;
    } else {
      choice = {.nodes = std::min(rows, nodes), .padding = rows - std::min(rows, nodes)};
    }
  });
  if (choice.nodes < nodes && choice.cut == Cut::none) choice.cut = input.widths.empty() ? Cut::budget : Cut::width;
  return choice;
}

/// Tokens per plain pass over about the last 50 passes. Tokens and costs are averaged separately, because the mean of
/// their ratios is a different number. The rate starts at 1.3, as if 13 tokens had taken the time of ten plain passes.
/// It is never below 1, the rate of plain decoding.
class Throughput {
 public:
  [[nodiscard]] Rate rate() const noexcept { return rate_; }

  /// Adds a pass, or the sequences of a pass whose results are known: `part` of `all`.
  void add(std::size_t tokens, std::int64_t cost, std::int64_t part = 1, std::int64_t all = 1) noexcept {
    constexpr std::int64_t memory = 50;  // passes
    constexpr std::size_t many = 1 << 20;
    tokens_ += static_cast<std::int64_t>(std::min(tokens, many)) * rate_one - tokens_ * part / (memory * all);
    cost_ += cost - cost_ * part / (memory * all);
    rate_ = std::max(rate_one, UnitScale::divide(tokens_, std::max<std::int64_t>(cost_, 1)));
  }

 private:
  std::int64_t tokens_ = 13 * rate_one;
  std::int64_t cost_ = 10 * std::int64_t{cost_one};
  Rate rate_ = 13 * rate_one / 10;
};

/// Returns how much of a draft to send, by the rule for its kind.
inline DraftChoice length_of(DraftKind kind, const LengthInput& input) noexcept {
  return kind == DraftKind::sampled ? stopping_length(input) : draft_length(input);
}

}}}  // namespace reprise::detail
