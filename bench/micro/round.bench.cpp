// SPDX-License-Identifier: Apache-2.0
// Whole rounds through a Session, with a target that costs nothing: what drafting itself costs per output token.
#include "reprise/loop/round.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "index_bench.hpp"
#include "reprise/draft/copy_drafter.hpp"
#include "reprise/draft/none.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/session.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t rounds_tokens = 4096;  // decoded behind the context, then cut off again

/// Decodes what follows the context in the stream, round by round.
template <DraftStrategy Strategy>
void rounds(benchmark::State& state, bool cold) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, length + rounds_tokens + 64);
  Session<Strategy> session;
  // A cold run is too short to spread the cost of growing over its tokens.
  if (cold && !session.reserve(tokens.size())) return state.SkipWithError("reserve");
  if (!session.begin(std::span(tokens).first(length))) return state.SkipWithError("begin");
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
      const auto decision =
          session.resolve(pass->ticket, std::span(tokens).subspan(session.context().size(), pass->drafted + 1));
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

/// begin(): a whole prompt.
template <DraftStrategy Strategy>
void begin(benchmark::State& state) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, length);
  for (auto step : state) {
    Session<Strategy> session;
    if (!session.begin(tokens)) return state.SkipWithError("begin");
    benchmark::DoNotOptimize(session.context().data());
  }
  report_tokens(state, length, 0);
  state.counters.erase("bytes/token");
}

/// propose() alone, at the end of the context.
template <DraftStrategy Strategy>
void propose(benchmark::State& state, Stream stream) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const std::vector<Token> tokens = bench_tokens(stream, length);
  Session<Strategy> session;
  if (!session.begin(tokens)) return state.SkipWithError("begin");
  const Limits limits;
  for (auto step : state) benchmark::DoNotOptimize(session.propose(limits).size());
}

template <DraftStrategy Strategy>
void register_strategy(const std::string& name) {
  for (const std::int64_t size : context_sizes) {
    benchmark::RegisterBenchmark((name + "/begin").c_str(), begin<Strategy>)->Arg(size)->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((name + "/propose/trace_like").c_str(), propose<Strategy>, Stream::trace_like)
        ->Arg(size);
    benchmark::RegisterBenchmark((name + "/round_warm").c_str(), rounds<Strategy>, false)
        ->Arg(size)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((name + "/round_cold").c_str(), rounds<Strategy>, true)
        ->Arg(size)
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RegisterBenchmark((name + "/propose/period_1").c_str(), propose<Strategy>, Stream::period_1)->Arg(1 << 17);
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  reprise::bench::register_strategy<reprise::NoDraft>("none");
  reprise::bench::register_strategy<reprise::CopyDrafter<reprise::RollingHashIndex>>("rolling_hash");
  reprise::bench::register_strategy<reprise::CopyDrafter<reprise::SuffixArrayIndex>>("suffix_array");
  benchmark::RunSpecifiedBenchmarks();
}
