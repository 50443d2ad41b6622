// SPDX-License-Identifier: Apache-2.0
// The cost of next-token counts: time of counting a token, of reading a context, and of merging two tables.
#include "reprise/index/next_tokens.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index_bench.hpp"

namespace reprise::bench {
namespace {

using Clock = std::chrono::steady_clock;

NextTokens table_of(const benchmark::State& state) {
  return NextTokens::make({.max_bytes = static_cast<std::size_t>(state.range(0)) << 20}).value();
}
/// As many tokens as the table has words, so that most lines are full.
std::vector<Token> text_for(const NextTokens& table) {
  return bench_tokens(Stream::trace_like, table.lines() * NextTokens::CountedTokens::most);
}

/// Counts a text in a table that has already counted it.
void add(benchmark::State& state) {
  NextTokens table = table_of(state);
  const std::vector<Token> text = text_for(table);
  table.add(text);
  for (auto step : state) table.add(text);
  report_tokens(state, text.size(), 0);
  state.counters.erase("bytes/token");
  state.counters["evictions/token"] = static_cast<double>(table.evictions()) / static_cast<double>(text.size()) /
                                      static_cast<double>(state.iterations() + 1);
}

/// The same without prefetching: a call for each token.
void add_singly(benchmark::State& state) {
  NextTokens table = table_of(state);
  const std::vector<Token> text = text_for(table);
  table.add(text);
  for (auto step : state)
    for (std::size_t i = 2; i < text.size(); ++i) table.add(std::span(text).subspan(i - 2, 3), 2);
  report_tokens(state, text.size(), 0);
  state.counters.erase("bytes/token");
}

/// The contexts that are read: one token, two tokens, or both.
enum class Reading : std::uint8_t { one_token, two_tokens, both, both_prefetched };

struct Context {
  Token before_last = 0;
  Token last = 0;
};

/// Reads the contexts of places all over a text. `cold`: the caches are flushed before each of 16 reads, and a clock
/// around each adds 20 to 40 ns. Otherwise, one clock is around 4,096 reads.
void read(benchmark::State& state, Reading reading, bool cold) {
  NextTokens table = table_of(state);
  const std::vector<Token> text = text_for(table);
  table.add(text);
  CacheFlush flush;
  testing::SplitMix random(1);
  std::size_t listed = 0;
  std::size_t asked = 0;
  std::vector<Context> contexts(cold ? 16 : 4096);
  const auto read_at = [&](Context context) {
    const NextTokens::Context one = table.after(context.last);
    const NextTokens::Context two = table.after(context.before_last, context.last);
    if (reading == Reading::both_prefetched) {
      one.prefetch();
      two.prefetch();
    }
    if (reading != Reading::two_tokens) listed += one.counts().size();
    if (reading != Reading::one_token) listed += two.counts().size();
  };
  for (auto step : state) {
    for (Context& context : contexts) {
      const std::size_t at = 1 + random.below(text.size() - 1);
      context = {text[at - 1], text[at]};
    }
    std::chrono::duration<double> took{};
    if (cold) {
      for (const Context context : contexts) {
        flush();
        const auto begin = Clock::now();
        read_at(context);
        took += Clock::now() - begin;
      }
    } else {
      const auto begin = Clock::now();
      for (const Context context : contexts) read_at(context);
      took = Clock::now() - begin;
    }
    asked += contexts.size();
    state.SetIterationTime(took.count() / static_cast<double>(contexts.size()));
  }
  state.counters["listed"] = static_cast<double>(listed) / static_cast<double>(asked);
}

void merge(benchmark::State& state) {
  NextTokens table = table_of(state);
  NextTokens other = table_of(state);
  const std::vector<Token> text = text_for(table);
  table.add(std::span(text).first(text.size() / 2));
  other.add(std::span(text).last(text.size() / 2));
  for (auto step : state) static_cast<void>(table.merge(other));
  state.counters["time/line"] = benchmark::Counter(
      static_cast<double>(table.lines()), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

[[maybe_unused]] const bool registered = [] {
  const auto sizes = [](benchmark::internal::Benchmark* bench) { bench->Arg(4)->Arg(64); };
  benchmark::RegisterBenchmark("next_tokens/add", add)->Apply(sizes)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("next_tokens/add_singly", add_singly)->Apply(sizes)->Unit(benchmark::kMillisecond);
  const struct {
    const char* name;
    Reading reading;
  } readings[] = {{"next_tokens/read_1", Reading::one_token},
                  {"next_tokens/read_2", Reading::two_tokens},
                  {"next_tokens/read_1_and_2", Reading::both},
                  {"next_tokens/read_1_and_2/prefetched", Reading::both_prefetched}};
  for (const auto& [name, reading] : readings)
    benchmark::RegisterBenchmark(name, read, reading, false)->UseManualTime()->Apply(sizes)->Iterations(1000);
  benchmark::RegisterBenchmark("next_tokens/read_1_and_2/cold", read, Reading::both, true)
      ->UseManualTime()
      ->Apply(sizes)
      ->Iterations(20);
  benchmark::RegisterBenchmark("next_tokens/merge", merge)->Apply(sizes)->Unit(benchmark::kMillisecond);
  return true;
}();

}  // namespace
}  // namespace reprise::bench

BENCHMARK_MAIN();
