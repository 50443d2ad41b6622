// SPDX-License-Identifier: Apache-2.0
// Time of planning one pass of many sequences: budget, plan and learn.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/batch/planner.hpp"
#include "reprise_testing/random.hpp"

namespace {

using namespace reprise;

/// Chains whose tokens are accepted with 50 to 98%. One sequence in four has no match.
class Offers {
 public:
  Offers(std::size_t sequences, std::size_t nodes) : drafts_(sequences), indices_(nodes) {
    testing::Random random(1);
    for (std::size_t i = 0; i < nodes; ++i) indices_[i] = static_cast<NodeIndex>(i);
    for (auto& draft : drafts_) {
      const bool match = !random.chance(25);
      const Probability each = Probability::ratio(static_cast<std::uint32_t>(50 + random.below(49)), 100);
      Probability path = Probability::one();
      for (std::size_t i = 0; match && i < nodes; ++i) {
        path = path * each;
        draft.push_back({.token = 1, .parent = static_cast<NodeIndex>(i) - 1, .path_probability = path});
      }
      entries_.push_back({{{draft, DraftKind::ordered}, std::span(indices_).first(draft.size()), 1}, 500});
      committed_.push_back(1 + random.below(3));
    }
  }
  [[nodiscard]] std::span<const BatchEntry> entries() const { return entries_; }
  [[nodiscard]] std::span<const std::size_t> committed() const { return committed_; }

 private:
  std::vector<std::vector<DraftNode>> drafts_;
  std::vector<NodeIndex> indices_;
  std::vector<BatchEntry> entries_;
  std::vector<std::size_t> committed_;
};

/// A dense model: memory-bound up to 4 rows per sequence; beyond that the time grows with the rows.
CostCurve knee(std::size_t sequences) {
  const CostPoint points[] = {{1, 0, 1, 1e7}, {1, 0, 4 * sequences, 1.1e7}, {1, 0, 8 * sequences, 2.2e7}};
  return *CostCurve::from_points(points);
}

void run(benchmark::State& state, BatchOptions options) {
  const auto sequences = static_cast<std::size_t>(state.range(0));
  const Offers offers(sequences, static_cast<std::size_t>(state.range(1)));
  BatchPlanner planner(std::move(options));
  if (!planner.reserve(sequences)) return state.SkipWithError("no memory");
  std::size_t drafted = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(planner.budget({}, {sequences, sequences, 500}));
    const BatchPlan plan = planner.plan(offers.entries());
    benchmark::DoNotOptimize(plan.nodes.data());
    drafted = plan.drafted;
    planner.learn(offers.committed());
  }
  state.counters["drafted"] = static_cast<double>(drafted);
}

void told(benchmark::State& state) { run(state, {.curve = knee(static_cast<std::size_t>(state.range(0)))}); }
void learned(benchmark::State& state) { run(state, {}); }
void row_budget(benchmark::State& state) {
  run(state, {.curve = CostCurve::linear(0), .max_rows = 2 * static_cast<std::size_t>(state.range(0))});
}
BENCHMARK(told)->ArgNames({"sequences", "nodes"})->ArgsProduct({{1, 4, 16, 64, 256}, {8, 32}});
BENCHMARK(learned)->ArgNames({"sequences", "nodes"})->ArgsProduct({{256}, {8, 32}});
BENCHMARK(row_budget)->ArgNames({"sequences", "nodes"})->ArgsProduct({{256}, {8, 32}});

/// The number of sequences changes in every pass, so the planner reads the costs again.
void joining(benchmark::State& state) {
  const auto sequences = static_cast<std::size_t>(state.range(0));
  const Offers offers(sequences, 8);
  BatchPlanner planner({.curve = knee(sequences)});
  if (!planner.reserve(sequences)) return state.SkipWithError("no memory");
  std::size_t less = 0;
  for (auto _ : state) {
    less = 1 - less;
    const BatchPlan plan = planner.plan(offers.entries().first(sequences - less));
    benchmark::DoNotOptimize(plan.nodes.data());
    planner.learn(offers.committed().first(sequences - less));
  }
}
BENCHMARK(joining)->ArgName("sequences")->Arg(256);

}  // namespace

BENCHMARK_MAIN();
