// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Adversaries for the loss bound: targets and strategies that see everything and try to lose as much as they
/// can, under random cost curves.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::testing {

/// A cost curve and the contexts at which it changes most.
struct NamedCurve {
  std::string name;
  CostCurve curve;
  std::vector<std::size_t> contexts;  ///< at which sessions begin
};

/// Returns a curve with these costs of a pass by its context and rows, measured at these contexts. The plain pass takes
/// longer at longer contexts.
inline NamedCurve measured_curve(std::string name, const std::vector<std::size_t>& contexts, std::size_t sequences,
                                 const std::function<double(std::size_t, std::size_t)>& cost,
                                 std::vector<std::size_t> starts) {
  std::vector<CostPoint> points;
  for (const std::size_t context : contexts) {
    const double plain = 1e7 * (1 + static_cast<double>(context) / 20'000);
    for (std::size_t rows = sequences; rows <= sequences + 48; ++rows)
      points.push_back({sequences, context, rows, plain * (rows == sequences ? 1 : cost(context, rows - sequences))});
  }
  return {std::move(name), CostCurve::from_points(points).value(), std::move(starts)};
}

/// Curves that tempt a control that reads costs at rounded contexts, and others. `sequences`: of a batch.
inline std::vector<NamedCurve> tempting_curves(std::uint64_t seed, std::size_t sequences = 1) {
  const auto per_row = [sequences](double slope, std::size_t drafted) {
    return 1 + slope * static_cast<double>(drafted) / static_cast<double>(sequences);
  };
  const auto rising = [=](double low, double high, std::size_t from, std::size_t to, std::vector<std::size_t> starts) {
    return measured_curve(
        std::to_string(low) + " at " + std::to_string(from) + ", " + std::to_string(high) + " at " + std::to_string(to),
        {from, to}, sequences,
        [=](std::size_t context, std::size_t drafted) { return per_row(context == from ? low : high, drafted); },
        std::move(starts));
  };
  std::vector<NamedCurve> curves;
  for (const double slope : {0.0, 0.005, 0.02, 0.1, 0.3, 1.0, 2.5})
    curves.push_back(
        {"linear " + std::to_string(slope), CostCurve::linear(slope / static_cast<double>(sequences)), {1, 500, 5000}});
  curves.push_back(rising(0.02, 0.3, 16, 8192, {16, 60, 200, 900, 4000, 8000}));
  curves.push_back(rising(0.02, 0.3, 16, 1024, {16, 60, 200, 900}));
  curves.push_back(rising(0.01, 0.5, 1, 64, {1, 30, 60}));
  curves.push_back(rising(0.05, 2.05, 0, 10'240, {1, 60, 1000, 4000}));
  curves.push_back(rising(0.005, 0.2, 0, 4000, {1, 60, 896, 1000, 1700, 2500, 3000}));
  curves.push_back(rising(0.3, 0.005, 0, 2000, {1, 60, 896, 1000}));
  for (const double high : {1.0, 5.9, 30.0}) {
    curves.push_back(rising(0.01, high, 1024, 1025, {1000, 1015, 1023, 1024, 1025}));
    curves.push_back(rising(high, 0.01, 1024, 1025, {1000, 1015, 1023, 1024, 1025}));
  }
  Random random(mix(seed));
  for (const std::size_t most : {300U, 1500U, 6000U}) {  // thousandths of a plain pass
    const auto hash = random.next();
    curves.push_back(
        measured_curve("random to " + std::to_string(most), {0, 20, 40, 70, 500, 1024, 1025, 4000}, sequences,
                       [=](std::size_t context, std::size_t drafted) {
                         return 0.9 + static_cast<double>(mix(hash ^ context << 8 ^ drafted) % most) / 1000;
                       },
                       {1, 10, 30, 60, 400, 1000, 1020, 3000}));
  }
  // A pass with a draft is cheaper than the pass of the pending rows alone, and their replay is expensive.
  for (const double wide : {0.01, 0.6, 1.0})
    curves.push_back(measured_curve("odd row counts cost " + std::to_string(wide), {0}, sequences,
                                    [=](std::size_t, std::size_t drafted) {
                                      const double more = (0.999 - wide) * static_cast<double>(drafted) / 2;
                                      return drafted % 2 == 0 ? wide : 6.35 - wide / 2 + more;
                                    },
                                    {10, 999}));
  curves.push_back(measured_curve("step at 8", {0}, sequences,
                                  [](std::size_t, std::size_t drafted) { return drafted < 8 ? 1.0 : 2.1; }, {1, 999}));
  return curves;
}

/// Losses in UnitScale, in the order of the commits. The replay of a rejection counts in the pass that runs it, or in
/// the pass that caused it: the bound must hold either way.
struct Losses {
  std::vector<std::int64_t> when_run;
  std::vector<std::int64_t> when_caused;

  /// The largest loss of 1,000 consecutive passes.
  [[nodiscard]] std::int64_t worst() const {
    return std::max(testing::worst_window(when_run), testing::worst_window(when_caused));
  }
  [[nodiscard]] std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t loss : when_run) sum += loss;
    return sum;
  }
};

/// A strategy whose drafts the adversary dictates: a chain of `length` tokens, each claimed to have this probability.
/// Token number i of a draft is i + 1.
struct ToldStrategy {
  std::size_t length = 0;
  std::uint32_t claim = Probability::scale;
  DraftKind kind = DraftKind::ordered;

  void begin(TokenSpan) noexcept {}
  void observe(TokenSpan, std::size_t, Origin) noexcept {}
  void feedback(TokenSpan, const Outcome&) noexcept {}
  void truncate(TokenSpan, std::size_t) noexcept {}
  void propose(TokenSpan, Draft& draft) const noexcept {
    draft.clear(kind);
    Probability path = Probability::one();
    for (std::size_t i = 0; i < length; ++i) {
      path = path * Probability::from_raw(claim);
      if (!draft.extend({.token = static_cast<Token>(i + 1), .path_probability = path})) return;
    }
  }
};

/// The behaviour of an adversary.
enum class Attack : std::uint8_t {
  reject,    ///< rejects every token
  at_price,  ///< rejects expensive drafts and accepts one token of others
  build_up,  ///< accepts everything for a time, then rejects
  refill,    ///< accepts just enough to be allowed further drafts
  replay,    ///< rejects after the number of tokens whose replay costs most
  random,
  count
};

/// Returns how many tokens of a draft of `drafted` tokens the target accepts. `extra`: the extra cost of the pass.
/// `replay(m)`: the cost of running m committed tokens again.
template <class Replay>
std::size_t accepted_by(Attack attack, Random& random, std::size_t pass, std::size_t drafted, std::int64_t extra,
                        const LossBudget& budget, Replay&& replay) {
  switch (attack) {
    case Attack::at_price:
      return extra < cost_one / 8 ? std::min<std::size_t>(1, drafted) : 0;
    case Attack::build_up:
      return pass % 1500 < 300 ? drafted : 0;
    case Attack::refill:
      return budget.debt() > LossBudget::burst / 2 ? drafted : 0;
    case Attack::replay: {
      std::size_t best = 0;
      std::int64_t most = 0;
      for (std::size_t accepted = 0; accepted < drafted; ++accepted) {
        const std::int64_t loss = replay(accepted + 1) - static_cast<std::int64_t>(accepted) * cost_one;
        if (loss <= most) continue;
        most = loss;
        best = accepted;
      }
      return random.chance(10) ? drafted : best;
    }
    case Attack::random:
      return random.chance(70) ? 0 : random.below(drafted + 1);
    default:
      return 0;
  }
}

}  // namespace reprise::testing
