// SPDX-License-Identifier: Apache-2.0
// The rolling-hash token table: time of learning, lookups and whole drafts, by the size of the table.
#include "reprise_methods/token_table.hpp"

#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index_bench.hpp"
#include "reprise_methods/repetition_gate.hpp"
#include "reprise_methods/token_table_drafter.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t text_size = std::size_t{1} << 18;

TokenTable table_of(const benchmark::State& state) {
  return TokenTable::make({.bytes = static_cast<std::size_t>(state.range(0)) << 20}).value();
}
void report(benchmark::State& state, const TokenTable& table) {
  state.counters["bytes/entry"] = static_cast<double>(table.memory_bytes()) / static_cast<double>(table.size());
  state.counters["full"] = static_cast<double>(table.size()) / static_cast<double>(table.capacity());
}

/// Learns a whole text in one call, as a caller does outside the decoding loop.
void learn(benchmark::State& state) {
  TokenTable table = table_of(state);
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, text_size);
  for (auto step : state) table.learn(tokens);
  report_tokens(state, tokens.size(), 0);
  state.counters.erase("bytes/token");
  report(state, table);
}

/// Learns token by token, as a drafter does that writes to its table.
void observe(benchmark::State& state) {
  TokenTable table = table_of(state);
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, text_size);
  TokenTableDrafter drafter(&table, {.learn_into = &table});
  for (auto step : state) {
    drafter.begin({});
    for (std::size_t at = 1; at <= tokens.size(); ++at) drafter.observe(TokenSpan(tokens).first(at), 1, Origin::output);
  }
  report_tokens(state, tokens.size(), drafter.memory_bytes());
}

/// Drafts chains of up to 32 tokens from many places of a text that the table has learned. A clock around each call
/// adds 20 to 40 ns. `cold`: the caches are flushed before each call.
void propose(benchmark::State& state, bool cold) {
  TokenTable table = table_of(state);
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, text_size);
  table.learn(tokens);
  TokenTableDrafter drafter(&table);
  drafter.begin(tokens);
  std::vector<DraftNode> storage(64);
  CacheFlush flush;
  TokenSpan lent = tokens;
  std::size_t at = text_size;
  std::size_t drafted = 0;
  std::chrono::duration<double> total{};
  using Clock = std::chrono::steady_clock;
  for (auto step : state) {
    at = at > 1000 ? at - 997 : text_size;
    if (at == text_size) drafter.begin(lent = tokens);
    drafter.truncate(lent, at);
    lent = TokenSpan(tokens).first(at);
    if (cold) flush();
    const auto begin = Clock::now();
    Draft draft(storage, {});
    drafter.propose(lent, draft);
    benchmark::DoNotOptimize(storage.data());
    const std::chrono::duration<double> took = Clock::now() - begin;
    state.SetIterationTime(took.count());
    total += took;
    drafted += draft.size();
  }
  state.counters["drafted"] = static_cast<double>(drafted) / static_cast<double>(state.iterations());
  state.counters["ns/drafted"] = total.count() * 1e9 / static_cast<double>(drafted);
}

/// Time that the gate adds to begin(), per prompt token.
void gate_begin(benchmark::State& state) {
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, static_cast<std::size_t>(state.range(0)));
  const TokenTable table = TokenTable::make({.bytes = 4096}).value();
  std::size_t bytes = 0;
  for (auto step : state) {
    RepetitionGate gate{TokenTableDrafter(&table)};
    gate.begin(tokens);
    bytes = gate.memory_bytes() - gate.strategy().memory_bytes();
    benchmark::DoNotOptimize(gate.open());
  }
  report_tokens(state, tokens.size(), bytes);
}

constexpr std::array<std::int64_t, 3> mebibytes = {1, 16, 256};

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  namespace bench = reprise::bench;
  for (const std::int64_t size : bench::mebibytes) {
    benchmark::RegisterBenchmark("token_table/learn", bench::learn)->Arg(size)->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark("token_table/observe", bench::observe)->Arg(size)->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark("token_table/propose_warm", bench::propose, false)
        ->Arg(size)
        ->UseManualTime()
        ->Iterations(20000);
    benchmark::RegisterBenchmark("token_table/propose_cold", bench::propose, true)
        ->Arg(size)
        ->UseManualTime()
        ->Iterations(64);
  }
  benchmark::RegisterBenchmark("repetition_gate/begin", bench::gate_begin)
      ->Arg(1 << 10)
      ->Arg(1 << 17)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
}
