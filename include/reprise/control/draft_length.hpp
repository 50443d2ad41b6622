// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file How many nodes of a draft to send: pure functions of probabilities and costs.
///
/// A drafted token is worth what it would cost to get it later. In a long run at L tokens per plain pass, a token
/// costs 1/L of a plain pass, so a draft of k nodes gains (summed path probabilities) - L x (c(k) - c(0)) tokens. Two
/// things make this marginal rule wrong, and the rule here corrects them:
///
///  * Text has easy and hard stretches. What is easy to draft now is easy in the next pass too, so a token that is left
///    out comes back at the price of *this* stretch, not of the long run. Therefore two steps: choose k at the price
///    of the long run; read off what such a pass gives, R = (1 + sum) / c(k); choose again at the price R. R is held
///    at 0.6 L at least, or one hard token would make long drafts look cheap.
///  * A token that is not drafted now can still be drafted later, with better evidence: waiting is an option, and an
///    option has a price. It is 30% (333/256) while L is far from the highest throughput that any draft could reach,
///    and fades to nothing at that limit: value_of_time().
///
/// Numbers are fixed point, 2^16 is one. Cost: two passes over the candidates, at most two divisions for each pass.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/probability.hpp"

namespace reprise {

/// Tokens per plain pass, 2^16 is one.
using Rate = std::int64_t;
inline constexpr Rate rate_one = cost_one;
inline constexpr Rate most_rate = Rate{1} << 30;

/// What draft_length() weighs.
struct LengthQuestion {
  std::span<const std::uint32_t> sums;       ///< sums[k]: path probabilities of the first k nodes added up, 2^16 is
                                             ///< one; sums[0] is 0, the last is that of the whole draft
  std::span<const Cost> costs;               ///< costs[k]: a pass with k drafted rows; k = 0 ... the most there may be
  std::size_t plain_rows = 1;                ///< rows of the pass without a draft
  std::span<const std::size_t> widths = {};  ///< rows that a pass may have, ascending; empty: any
  bool padded = false;                       ///< rows without a node may fill a pass up to a width
  Rate throughput = rate_one;                ///< of the long run
  Rate top = rate_one;                       ///< see highest_throughput()
  std::int64_t allowance = most_rate;        ///< a pass may cost at most so much more than a plain one
  Cost rollback = 0;                         ///< what it costs if not all of a pass is accepted
  bool replayed = false;                     ///< and then what was accepted is run again, see PassRoom
};

struct LengthAnswer {
  std::size_t nodes = 0;
  std::size_t padding = 0;
  Cut cut = Cut::none;  ///< why it is not all nodes: unlikely, gated, width or budget (no more costs were given)
};

namespace detail {

/// Calls `visit` with every number of drafted rows, from 1 to `most`, that a pass may have.
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

struct BestLength {
  std::size_t nodes = 0;
  std::size_t padding = 0;
  std::int64_t sum = 0;
  std::int64_t cost = 0;
  bool excluded = false;  // some length was beyond the allowance
};

/// What it costs if `accepted` drafted rows are accepted and others are not. The next pass then carries the accepted
/// rows and the pending ones again, where a state was put back.
inline std::int64_t rejection_cost(const LengthQuestion& question, std::size_t accepted) noexcept {
  if (!question.replayed) return question.rollback;
  const Cost next = question.costs[std::min(accepted + 1, question.costs.size() - 1)];
  return std::int64_t{question.rollback} + (next - std::min(next, cost_one));
}

/// The same, whatever is accepted of `rows` drafted rows: pass times need not rise with the rows.
inline std::int64_t highest_rejection_cost(const LengthQuestion& question, std::size_t rows) noexcept {
  std::int64_t highest = rejection_cost(question, rows - 1);
  if (question.replayed)
    for (std::size_t accepted = 0; accepted + 1 < rows; ++accepted)
      highest = std::max(highest, rejection_cost(question, accepted));
  return highest;
}

/// The length of the highest value at a price per plain pass; the shortest of equals.
inline BestLength best_length(const LengthQuestion& question, Rate price) noexcept {
  const std::size_t nodes = question.sums.size() - 1;
  const std::size_t room = question.costs.size() - 1;
  const std::int64_t plain = question.costs[0];
  const std::int64_t most = question.allowance + plain;
  // All is accepted as often as the last node is, padding never.
  const auto rollback = [&](std::size_t rows) -> std::int64_t {
    if ((question.rollback == 0 && !question.replayed) || rows == 0) return 0;
    const std::uint32_t sum = question.sums[std::min(rows, nodes)];
    const std::uint32_t all = rows > nodes ? 0 : sum - question.sums[rows - 1];
    return rejection_cost(question, sum >> 16) * (std::int64_t{cost_one} - all) >> 16;
  };
  std::size_t best_rows = 0;
  std::int64_t best_value = 0;
  std::int64_t costliest = 0;
  const auto weigh = [&](std::size_t rows) {
    const std::int64_t cost = question.costs[rows];
    const std::int64_t sum = question.sums[std::min(rows, nodes)];
    const std::int64_t value = sum - (price * (cost - plain + rollback(rows)) >> 16);
    const std::int64_t highest = cost + highest_rejection_cost(question, rows);
    const bool better = value > best_value && highest <= most;
    costliest = std::max(costliest, highest);
    best_value = better ? value : best_value;
    best_rows = better ? rows : best_rows;
  };
  const bool padded = question.padded && !question.widths.empty();
  for_each_row_count(question.widths, question.plain_rows, padded ? room : std::min(room, nodes), weigh);
  const std::size_t sent = std::min(best_rows, nodes);
  return {sent, best_rows - sent, question.sums[sent], question.costs[best_rows] + rollback(best_rows),
          costliest > most};
}

/// Why `chosen` is not the whole draft.
inline Cut why_cut(const LengthQuestion& question, Rate price, const BestLength& chosen) noexcept {
  if (chosen.nodes == question.sums.size() - 1) return Cut::none;
  LengthQuestion other = question;
  if (chosen.excluded) {
    other.allowance = most_rate << 2;
    if (best_length(other, price).nodes > chosen.nodes) return Cut::gated;
    other.allowance = question.allowance;
  }
  if (!question.widths.empty()) {
    other.widths = {};
    if (best_length(other, price).nodes > chosen.nodes) return Cut::width;
  }
  return chosen.nodes == question.costs.size() - 1 ? Cut::budget : Cut::unlikely;
}

}  // namespace detail

/// The highest throughput that a draft could reach, were all its nodes accepted; at least that of plain decoding.
inline Rate highest_throughput(std::span<const Cost> costs, std::span<const std::size_t> widths = {},
                               std::size_t plain_rows = 1) noexcept {
  std::uint64_t tokens = 1;
  std::uint64_t cost = cost_one;
  detail::for_each_row_count(widths, plain_rows, costs.size() - 1, [&](std::size_t rows) {
    if ((rows + 1) * cost <= tokens * costs[rows]) return;
    tokens = rows + 1;
    cost = costs[rows];
  });
  return std::min(static_cast<Rate>((tokens << 32) / cost), most_rate);
}

/// What a plain pass of time is worth, in tokens, when decoding at `rate`: top x m x / (1 - x + m x) with x = rate /
/// top and m = 333/256. Close to m x rate far below the top, and the top itself there.
inline Rate value_of_time(Rate rate, Rate top) noexcept {
  const Rate x = std::min((rate << 16) / top, rate_one);
  const Rate mx = x * 333 >> 8;
  return top * mx / (rate_one - x + mx);
}

/// The least path probability worth proposing, when one row more costs `least_step` at least. Rows can be free, and
/// then every node would be worthwhile: not below 0.002.
inline Probability least_worthwhile(Rate throughput, Cost least_step) noexcept {
  const std::int64_t least = ((throughput * least_step) >> 16) << 14;
  return Probability::from_raw(
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(least, std::int64_t{33554} << 6, Probability::scale)));
}

/// How many nodes of an ordered draft to send.
inline LengthAnswer draft_length(const LengthQuestion& question) noexcept {
  const Rate top = question.top;
  const Rate long_run = std::min(question.throughput, top);
  detail::BestLength best = detail::best_length(question, value_of_time(long_run, top));
  const Rate now = std::max(((rate_one + best.sum) << 16) / best.cost, long_run * 6 / 10);
  const Rate price = value_of_time(std::min(now, top), top);
  best = detail::best_length(question, price);
  return {best.nodes, best.padding, detail::why_cut(question, price, best)};
}

/// The same for a draft that was sampled: whether a node is sent may depend only on what was stated before its token
/// was drawn, or rejection sampling would be biased. So it looks at one node at a time and never ahead: it goes on as
/// long as the next stated probability pays for the rows that it would add.
inline LengthAnswer stopping_length(const LengthQuestion& question) noexcept {
  const Rate price = value_of_time(std::min(question.throughput, question.top), question.top);
  const std::size_t nodes = question.sums.size() - 1;
  LengthAnswer answer;
  bool stopped = false;
  detail::for_each_row_count(question.widths, question.plain_rows, question.costs.size() - 1, [&](std::size_t rows) {
    const std::size_t sent = answer.nodes + answer.padding;
    if (stopped || sent >= nodes || (rows > nodes && !question.padded)) return;
    const std::int64_t step = std::int64_t{question.costs[rows]} - question.costs[sent];
    const std::int64_t more =
        std::int64_t{question.costs[rows]} - question.costs[0] + detail::highest_rejection_cost(question, rows);
    const std::int64_t gain = static_cast<std::int64_t>(question.sums[sent + 1] - question.sums[sent]) *
                              static_cast<std::int64_t>(rows - sent);
    stopped = more > question.allowance || gain <= price * step >> 16;
    if (stopped) {
      answer.cut = more > question.allowance ? Cut::gated : Cut::unlikely;
    } else {
      answer = {std::min(rows, nodes), rows - std::min(rows, nodes), Cut::none};
    }
  });
  if (answer.nodes < nodes && answer.cut == Cut::none) answer.cut = question.widths.empty() ? Cut::budget : Cut::width;
  return answer;
}

}  // namespace reprise
