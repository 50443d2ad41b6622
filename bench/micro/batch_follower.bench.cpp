// SPDX-License-Identifier: Apache-2.0
// The time of BatchFollower::draft() for many slots, on one thread and on several. The target is free.
#include "reprise/batch/batch_follower.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "index_bench.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "support/worker_threads.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t passes = 200;

/// Arguments: slots, tokens of each slot before the first pass, threads, and 1 if the slots pass their new tokens only.
void batch_follower(benchmark::State& state) {
  const auto slots = static_cast<std::size_t>(state.range(0));
  const auto length = static_cast<std::size_t>(state.range(1));
  const bool after = state.range(3) != 0;
  testing::WorkerThreads threads(static_cast<std::size_t>(state.range(2)));
  const std::size_t room = length + passes * (most_draft_nodes + 1);
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, room + slots * 1024);
  std::chrono::duration<double> total{};
  for (auto step : state) {
    auto follower =
        BatchFollower<NgramDrafter<>>::make(slots, NgramDrafter<>(), {.curve = CostCurve::linear(0.002)}).value();
    std::vector<std::size_t> sizes(slots, length);
    std::vector<FollowedSlot> calls(slots);
    std::chrono::duration<double> took{};
    for (std::size_t pass = 0; pass <= passes; ++pass) {
      for (std::size_t i = 0; i < slots; ++i) {
        const std::size_t known = after ? follower.context(i).size() : 0;
        calls[i] = {.slot = i, .ids = TokenSpan(tokens).subspan(i * 1024 + known, sizes[i] - known), .after = known};
      }
      const auto begin = std::chrono::steady_clock::now();
      const auto drafts = follower.draft(calls, {}, threads);
      if (pass > 0) took += std::chrono::steady_clock::now() - begin;  // the first call reads the prompts
      for (std::size_t i = 0; i < slots; ++i)
        sizes[i] += committed((*drafts)[i], TokenSpan(tokens).subspan(i * 1024 + sizes[i]));
    }
    state.SetIterationTime(took.count());
    total += took;
  }
  state.counters["us/pass"] = total.count() * 1e6 / static_cast<double>(passes * state.iterations());
}
BENCHMARK(batch_follower)
    ->ArgNames({"slots", "tokens", "threads", "after"})
    ->ArgsProduct({{1, 8, 64, 256}, {8'000}, {1, 2}, {0, 1}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace reprise::bench

BENCHMARK_MAIN();
