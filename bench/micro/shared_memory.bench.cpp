// SPDX-License-Identifier: Apache-2.0
// A memory of past sequences: what it costs to remember, to look up, and to draft with it, alone and while another
// thread writes a million tokens a second.
#include "reprise/memory/shared_memory.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "index_bench.hpp"
#include "reprise/draft/ngram_drafter.hpp"

namespace reprise::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t context_size = std::size_t{1} << 13;
constexpr std::size_t sequence_size = 2048;

SharedMemory memory_of(const benchmark::State& state) {
  return SharedMemory::make({.max_bytes = static_cast<std::size_t>(state.range(0)) << 20}).value();
}
void remember(SharedMemory& memory, std::span<const Token> tokens) {
  for (std::size_t at = 0; at < tokens.size(); at += sequence_size) {
    memory.begin_sequence(at);
    memory.append(tokens.subspan(at, std::min(sequence_size, tokens.size() - at)), Origin::output);
  }
  memory.end_sequence();
}

/// Text until the memory is full, and as much again.
void append(benchmark::State& state) {
  SharedMemory memory = memory_of(state);
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, memory.capacity() * 2);
  for (auto step : state) remember(memory, tokens);
  report_tokens(state, tokens.size(), 0);
  state.counters.erase("bytes/token");
  const MemoryCounts& counts = memory.counts();
  state.counters["bytes/place"] = static_cast<double>(memory.memory_bytes()) / static_cast<double>(memory.capacity());
  state.counters["duplicates"] =
      static_cast<double>(counts.duplicates) / static_cast<double>(counts.duplicates + counts.stored);
}

/// Drafts of `nodes` nodes at many ends of a context that is like what is remembered, with a clock around each (20 to
/// 40 ns of what is shown). `memory`: without, with one, or with one that is written to all the time.
enum class With { nothing, memory, writer };
void propose(benchmark::State& state, With with, std::size_t nodes, bool cold) {
  SharedMemory memory = memory_of(state);
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, memory.capacity() + 2 * context_size);
  remember(memory, std::span(tokens).first(memory.capacity()));
  NgramOptions options;
  if (with != With::nothing) options.memory = &memory;
  NgramDrafter<> drafter(options);
  drafter.reserve(2 * context_size);
  const auto context = std::span(tokens).last(2 * context_size);
  drafter.begin(context.first(context_size));
  std::vector<DraftNode> storage(nodes);
  DraftBudget budget;
  budget.max_nodes = nodes;
  CacheFlush flush;
  std::atomic<bool> done = false;
  std::thread writer;
  if (with == With::writer)
    writer = std::thread([&] {
      // Bursts of a thousand tokens a millisecond, which nobody has said before.
      std::vector<Token> burst(1000);
      for (std::size_t said = 0; !done.load(std::memory_order_relaxed); said += burst.size()) {
        const auto until = Clock::now() + std::chrono::milliseconds(1);
        const std::size_t at = said % (memory.capacity() - burst.size());
        const auto shift = static_cast<Token>((1 + said / memory.capacity()) << 20);
        for (std::size_t i = 0; i < burst.size(); ++i) burst[i] = tokens[at + i] + shift;
        memory.begin_sequence(said);
        memory.append(burst, Origin::output);
        std::this_thread::sleep_until(until);
      }
    });
  std::size_t at = 0;
  std::size_t asked = 0;
  std::chrono::duration<double> total{};
  for (auto step : state) {
    std::chrono::duration<double> took{};
    for (int i = 0; i < (cold ? 16 : 512); ++i, ++at) {
      if (at == context_size) {
        drafter.truncate(context_size);
        at = 0;
      }
      drafter.observe(context.subspan(context_size + at, 1), Origin::output);
      if (cold) flush();
      const auto begin = Clock::now();
      Draft draft(storage);
      drafter.propose(budget, draft);
      took += Clock::now() - begin;
      ++asked;
    }
    total += took;
    state.SetIterationTime(took.count());
  }
  done.store(true);
  if (writer.joinable()) writer.join();
  state.counters["ns/propose"] = total.count() * 1e9 / static_cast<double>(asked);
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  namespace bench = reprise::bench;
  using bench::With;
  for (const std::int64_t mebibytes : {4, 64})
    benchmark::RegisterBenchmark("append", bench::append)->Arg(mebibytes)->Unit(benchmark::kMillisecond);
  for (const std::int64_t mebibytes : {4, 64}) {
    const auto propose = [&](const char* name, With with, std::size_t nodes, bool cold) {
      benchmark::RegisterBenchmark(name, bench::propose, with, nodes, cold)->UseManualTime()->Arg(mebibytes);
    };
    propose("propose/8_nodes", With::nothing, 8, false);
    propose("propose/8_nodes/memory", With::memory, 8, false);
    propose("propose/8_nodes/memory_and_writer", With::writer, 8, false);
    propose("propose/32_nodes", With::nothing, 32, false);
    propose("propose/32_nodes/memory", With::memory, 32, false);
    propose("propose/8_nodes/cold", With::nothing, 8, true);
    propose("propose/8_nodes/cold/memory", With::memory, 8, true);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
