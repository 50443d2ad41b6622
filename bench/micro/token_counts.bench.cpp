// SPDX-License-Identifier: Apache-2.0
// Time of adding a token to TokenCounts, and of removing it.
#include "reprise/index/detail/token_counts.hpp"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "index_bench.hpp"
#include "reprise/draft/ngram_drafter.hpp"

namespace reprise::bench {
namespace {

/// Tokens that all differ. Falling: the last ones rank highest, because equal counts are ordered by token.
std::vector<Token> distinct_tokens(std::size_t length, bool falling) {
  std::vector<Token> tokens(length);
  if (falling)
    std::iota(tokens.rbegin(), tokens.rend(), 0);
  else
    std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<Token> text(const std::string& kind, std::size_t length) {
  return kind == "trace" ? bench_tokens(Stream::trace_like, length) : distinct_tokens(length, kind == "falling");
}

void add(benchmark::State& state, const std::string& kind) {
  const std::vector<Token> tokens = text(kind, static_cast<std::size_t>(state.range(0)));
  detail::TokenCounts counts;
  for (const Token token : tokens) counts.add(token);
  for (auto step : state) {
    state.PauseTiming();
    counts.clear();
    state.ResumeTiming();
    for (const Token token : tokens) counts.add(token);
    benchmark::DoNotOptimize(counts.total());
  }
  report_tokens(state, tokens.size(), counts.memory_bytes());
}

/// Removes the last tokens and adds them again, a fixed number at a time.
void remove(benchmark::State& state, const std::string& kind) {
  const std::vector<Token> tokens = text(kind, static_cast<std::size_t>(state.range(0)));
  const auto last = TokenSpan(tokens).last(static_cast<std::size_t>(state.range(1)));
  detail::TokenCounts counts;
  for (const Token token : tokens) counts.add(token);
  for (auto step : state) {
    counts.remove(last);
    for (const Token token : last) counts.add(token);
    benchmark::DoNotOptimize(counts.total());
  }
}

/// The same for a whole drafter: truncates one token and observes it again.
void truncate_drafter(benchmark::State& state, const std::string& kind) {
  const std::vector<Token> tokens = text(kind, static_cast<std::size_t>(state.range(0)));
  NgramDrafter drafter;
  drafter.begin(tokens);
  for (auto step : state) {
    drafter.truncate(tokens, tokens.size() - 1);
    drafter.observe(tokens, 1, Origin::output);
  }
}

[[maybe_unused]] const bool registered = [] {
  for (const std::string kind : {"trace", "rising", "falling"}) {
    benchmark::RegisterBenchmark(("counts/add/" + kind).c_str(), add, kind)->Arg(1 << 10)->Arg(1 << 17)->Arg(1'000'000);
    benchmark::RegisterBenchmark(("counts/remove/" + kind).c_str(), remove, kind)
        ->Args({1 << 10, 1})
        ->Args({1 << 17, 1})
        ->Args({1'000'000, 1})
        ->Args({1'000'000, 1 << 17});
    benchmark::RegisterBenchmark(("counts/truncate_drafter/" + kind).c_str(), truncate_drafter, kind)
        ->Arg(1 << 17)
        ->Arg(1'000'000);
  }
  return true;
}();

}  // namespace
}  // namespace reprise::bench

BENCHMARK_MAIN();
