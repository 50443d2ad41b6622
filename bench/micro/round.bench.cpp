// SPDX-License-Identifier: Apache-2.0
// Whole rounds through a Session with a free target: the cost of drafting itself per output token.
#include "reprise/loop/round.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "index_bench.hpp"
#include "reprise/draft/no_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t rounds_tokens = 4096;  // decoded after the context, then truncated

/// The sessions of the benchmarks.
struct Copying {
  static Session<PromptLookupDrafter<RollingHashIndex>> make() { return {}; }
};
struct CopyingSuffixArray {
  static Session<PromptLookupDrafter<SuffixArrayIndex>> make() { return {}; }
};
struct Plain {
  static Session<NoDrafter> make() { return {}; }
};
template <int Thousandths>
struct Speculating {
  static Speculator make() { return Speculator(CostCurve::linear(Thousandths / 1000.0)); }
};

Capabilities trees() {
  Capabilities can;
  can.max_leaves = unlimited;
  return can;
}

/// Decodes the tokens after the context in the stream, round by round.
template <class Kind>
void rounds(benchmark::State& state, bool cold) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, length + rounds_tokens + 64);
  auto session = Kind::make();
  // A cold run is too short to amortise growth over its tokens.
  if (cold && !session.reserve(tokens.size())) return state.SkipWithError("reserve");
  if (!session.begin(std::span(tokens).first(length), trees())) return state.SkipWithError("begin");
  const Limits limits;
  CacheFlush flush;
  std::size_t decoded = 0;
  std::size_t passes = 0;
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> total{};
  for (auto step : state) {
    std::chrono::duration<double> took{};
    const std::size_t most = cold ? 128 : rounds_tokens;
    auto begin = Clock::now();
    while (session.context().size() < length + most) {
      if (cold) {
        flush();
        begin = Clock::now();
      }
      session.propose(limits);
      const auto pass = session.plan();
      const auto decision = session.resolve(
          pass->ticket, testing::StreamPicks{TokenSpan(tokens).subspan(session.context().size()), pass->depths});
      benchmark::DoNotOptimize(decision->keep);
      static_cast<void>(session.commit(pass->ticket));
      ++passes;
      if (cold) took += Clock::now() - begin;
    }
    if (!cold) took = Clock::now() - begin;
    decoded += session.context().size() - length;
    total += took;
    state.SetIterationTime(took.count());
    static_cast<void>(session.truncate(length));
  }
  state.counters["ns/token"] = total.count() * 1e9 / static_cast<double>(decoded);
  state.counters["tokens/pass"] = static_cast<double>(decoded) / static_cast<double>(passes);
  state.counters["bytes/token"] = static_cast<double>(session.memory_bytes()) / static_cast<double>(length);
}

/// Time of begin() with a whole prompt.
template <class Kind>
void begin(benchmark::State& state) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, length);
  for (auto step : state) {
    auto session = Kind::make();
    if (!session.begin(tokens, trees())) return state.SkipWithError("begin");
    benchmark::DoNotOptimize(session.context().data());
  }
  report_tokens(state, length, 0);
  state.counters.erase("bytes/token");
}

/// Time of propose() alone, at the end of the context.
template <class Kind>
void propose(benchmark::State& state, Stream stream) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const std::vector<Token> tokens = bench_tokens(stream, length);
  auto session = Kind::make();
  if (!session.begin(tokens, trees())) return state.SkipWithError("begin");
  const Limits limits;
  for (auto step : state) benchmark::DoNotOptimize(session.propose(limits).size());
}

template <class Kind>
void register_kind(const std::string& name) {
  for (const std::int64_t size : context_sizes) {
    benchmark::RegisterBenchmark((name + "/begin").c_str(), begin<Kind>)->Arg(size)->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((name + "/propose/trace_like").c_str(), propose<Kind>, Stream::trace_like)->Arg(size);
    benchmark::RegisterBenchmark((name + "/round_warm").c_str(), rounds<Kind>, false)
        ->Arg(size)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((name + "/round_cold").c_str(), rounds<Kind>, true)
        ->Arg(size)
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RegisterBenchmark((name + "/propose/period_1").c_str(), propose<Kind>, Stream::period_1)->Arg(1 << 17);
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  namespace bench = reprise::bench;
  bench::register_kind<bench::Plain>("none");
  bench::register_kind<bench::Speculating<0>>("speculator_0");
  bench::register_kind<bench::Speculating<20>>("speculator_0.02");
  bench::register_kind<bench::Speculating<50>>("speculator_0.05");
  bench::register_kind<bench::Speculating<300>>("speculator_0.3");
  bench::register_kind<bench::Copying>("copy");
  bench::register_kind<bench::CopyingSuffixArray>("copy_suffix_array");
  benchmark::RunSpecifiedBenchmarks();
}
