// SPDX-License-Identifier: Apache-2.0
// Time of choosing a draft length, and of learning the costs of passes.
// one_pass: budget + choose + learn, as in a session.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t passes = 1024;

/// Chains with falling path probability, and the number of their tokens that the target accepts.
struct Drafts {
  explicit Drafts(std::size_t size) {
    testing::Random random(7);
    for (std::size_t pass = 0; pass < passes; ++pass) {
      std::vector<DraftNode> nodes;
      std::uint32_t path = Probability::scale;
      bool going = true;
      right.push_back(0);
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t percent = 60 + random.below(40);
        path = static_cast<std::uint32_t>(std::uint64_t{path} * percent / 100);
        going = going && random.chance(percent);
        if (going) ++right.back();
        nodes.push_back({static_cast<Token>(i), static_cast<NodeIndex>(i) - 1, Probability::from_raw(path)});
      }
      drafts.push_back(nodes);
    }
    for (std::size_t i = 0; i < size; ++i) sendable.push_back(static_cast<NodeIndex>(i));
  }
  std::vector<std::vector<DraftNode>> drafts;
  std::vector<std::size_t> right;
  std::vector<NodeIndex> sendable;
};

void one_pass(benchmark::State& state, CostControl control, bool timed) {
  const Drafts drafts(static_cast<std::size_t>(state.range(0)));
  PassLimits room;
  std::size_t pass = 0;
  std::size_t sent = 0;
  for (auto step : state) {
    const DraftBudget budget = control.budget({}, room);
    benchmark::DoNotOptimize(budget);
    const DraftView draft(drafts.drafts[pass], DraftKind::ordered);
    const DraftChoice choice = control.choose(draft, drafts.sendable, room);
    const std::size_t accepted = std::min(choice.nodes, drafts.right[pass]);
    const auto nodes = std::span(drafts.sendable).first(choice.nodes);
    PassReport report{room.plain, room.plain, accepted + 1};
    report.sent.rows += choice.nodes;
    if (timed) report.time = std::chrono::nanoseconds(10'000'000 + 500'000 * static_cast<std::int64_t>(choice.nodes));
    control.learn({draft, nodes, nodes.first(accepted), Token{-1}, choice.cut, {}}, report);
    room.plain.context += accepted + 1;
    sent += choice.nodes;
    pass = (pass + 1) % passes;
  }
  state.counters["nodes/pass"] = benchmark::Counter(static_cast<double>(sent), benchmark::Counter::kAvgIterations);
}

/// LearnedCurve::learn() alone, after the first 512 times. Passes of 1 to 33 rows, in random order.
void learn(benchmark::State& state) {
  LearnedCurve curve;
  testing::Random random(5);
  std::array<std::size_t, passes> rows{};
  std::array<std::chrono::nanoseconds, passes> times{};
  for (std::size_t i = 0; i < passes; ++i) {
    rows[i] = random.chance(30) ? 1 : 1 + random.below(33);
    times[i] = std::chrono::nanoseconds(9'500'000 + 500'000 * rows[i] + random.below(1'000'000));
    curve.learn(rows[i], rows[i] == 1, times[i]);
  }
  std::size_t i = 0;
  for (auto step : state) {
    curve.learn(rows[i], rows[i] == 1, times[i]);
    i = (i + 1) % passes;
  }
  benchmark::DoNotOptimize(curve);
}

/// LearnedCurve::costs() of 33 row counts.
void read_costs(benchmark::State& state) {
  LearnedCurve curve;
  for (std::size_t i = 0; i < passes; ++i)
    curve.learn(1 + i % 33, i % 33 == 0,
                std::chrono::nanoseconds(10'000'000 + 500'000 * static_cast<std::int64_t>(i % 33)));
  std::array<Cost, 33> costs{};
  for (auto step : state) {
    curve.costs(1, costs);
    benchmark::DoNotOptimize(costs);
  }
}

CostCurve measured() {
  std::vector<CostPoint> points;
  for (const std::size_t context : {0U, 1000U, 10'000U, 100'000U})
    for (const std::size_t rows : {1U, 2U, 4U, 8U, 16U, 32U, 64U})
      points.push_back({1, context, rows, 1e7 + 5e5 * static_cast<double>(rows) + 10 * static_cast<double>(context)});
  return CostCurve::from_points(points).value();
}

BENCHMARK_CAPTURE(one_pass, linear, CostControl({.curve = CostCurve::linear(0.05), .calibrated = true}), false)
    ->Arg(0)
    ->Arg(8)
    ->Arg(32);
BENCHMARK_CAPTURE(one_pass, untrusted, CostControl({.curve = CostCurve::linear(0.05)}), false)->Arg(8)->Arg(32);
BENCHMARK_CAPTURE(one_pass, measured, CostControl({.curve = measured(), .calibrated = true}), false)->Arg(8);
BENCHMARK_CAPTURE(one_pass, learned, CostControl({.calibrated = true}), true)->Arg(8);

BENCHMARK(learn);
BENCHMARK(read_costs);

}  // namespace
}  // namespace reprise::bench

BENCHMARK_MAIN();
