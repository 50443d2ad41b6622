// SPDX-License-Identifier: Apache-2.0
// The cost of a Memory: the time to keep a request that has ended, and the bytes of many requests.
#include "reprise/history/memory.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "index_bench.hpp"
#include "reprise/draft/ngram_drafter.hpp"

namespace reprise::bench {
namespace {

/// Keeps requests of 2,000 tokens in a memory that is full, one after the other. `share`: the percentage of each
/// request that is a prompt which all of them have.
void keep(benchmark::State& state) {
  Memory memory = Memory::make({.max_bytes = std::size_t{16} << 20}).value();
  constexpr std::size_t size = 2000;
  const std::size_t common = size * static_cast<std::size_t>(state.range(0)) / 100;
  const std::vector<Token> text = bench_tokens(Stream::trace_like, 4'000'000);
  memory.add(std::span(text).first(2'000'000));
  std::vector<Token> request(text.begin(), text.begin() + size);
  std::size_t at = 0;
  for (auto step : state) {
    state.PauseTiming();
    at = (at + size) % (text.size() - size);
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(at), size - common,
                request.begin() + static_cast<std::ptrdiff_t>(common));
    NgramDrafter<> drafter(memory.options());
    drafter.begin(request);
    state.ResumeTiming();
    drafter.keep();
  }
}

/// Keeps 10,000 requests of 500 tokens, and reports the memory that they need.
void bytes(benchmark::State& state) {
  const std::vector<Token> text = bench_tokens(Stream::all_distinct, 5'000'000);
  for (auto step : state) {
    Memory memory = Memory::make({.max_bytes = HistoryStore::bytes_for(10'000 * 512)}).value();
    for (std::size_t at = 0; at < text.size(); at += 500) memory.add(std::span(text).subspan(at, 500));
    state.counters["MiB"] = static_cast<double>(memory.memory_bytes()) / (1 << 20);
  }
}

BENCHMARK(keep)->Name("keep/prompt_in_common")->Arg(0)->Arg(50)->Arg(90)->Unit(benchmark::kMicrosecond);
BENCHMARK(bytes)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace reprise::bench

BENCHMARK_MAIN();
