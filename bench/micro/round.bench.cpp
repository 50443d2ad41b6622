// SPDX-License-Identifier: Apache-2.0
// Whole rounds through a Session with a free target: the cost of drafting itself per output token. Recordings given as
// arguments are decoded too.
#include "reprise/loop/round.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index_bench.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"
#include "trace.hpp"

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

/// The lowest time of each round over all runs, because other programs may delay a round.
class LowestTimes {
 public:
  void begin_run() { at_ = 0; }
  void add(double seconds) {
    if (at_ == lowest_.size()) lowest_.push_back(seconds);
    lowest_[at_] = std::min(lowest_[at_], seconds);
    ++at_;
  }
  [[nodiscard]] double sum() const { return std::accumulate(lowest_.begin(), lowest_.end(), 0.0); }
  /// The time that one round in a hundred exceeds.
  [[nodiscard]] double slowest_hundredth() const {
    std::vector<double> sorted = lowest_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() * 99 / 100];
  }

 private:
  std::vector<double> lowest_;
  std::size_t at_ = 0;
};

/// Decodes recorded sessions and times each round. Prompts are not timed. A cold run flushes the caches before every
/// 16th round, and times only these rounds. The clock adds 20 to 40 ns to a round.
template <class Kind>
void recorded(benchmark::State& state, const std::vector<replay::TraceSession>& sessions, bool cold,
              const Capabilities& can) {
  const Limits limits;
  CacheFlush flush;
  LowestTimes times;
  std::size_t passes = 0;
  std::size_t timed = 0;
  std::size_t decoded = 0;  // in the rounds that are timed
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (auto step : state) {
    times.begin_run();
    passes = timed = decoded = 0;
    for (const replay::TraceSession& recording : sessions) {
      auto session = Kind::make();
      bool begun = false;
      for (const replay::Turn& turn : recording.turns) {
        if (turn.prompt.empty() || turn.output.empty()) break;
        const auto fed = begun ? session.append(turn.prompt) : session.begin(turn.prompt, can);
        if (!fed || !session.append(TokenSpan(turn.output).first(1), Origin::output))
          return state.SkipWithError("a session cannot be decoded");
        begun = true;
        std::vector<Token> coming = turn.output;
        coming.resize(coming.size() + 64);  // a draft may reach beyond the end
        const std::size_t before = session.context().size() - 1;
        const std::size_t end = before + turn.output.size();
        while (session.context().size() < end) {
          const std::size_t at = session.context().size();
          const bool measured = !cold || passes % 16 == 0;
          if (cold && measured) flush();
          const auto begin = Clock::now();
          session.propose(limits);
          const auto pass = session.plan();
          const auto decision =
              session.resolve(pass->ticket, testing::StreamPicks{TokenSpan(coming).subspan(at - before), pass->depths});
          benchmark::DoNotOptimize(decision->keep);
          static_cast<void>(session.commit(pass->ticket));
          if (measured) {
            times.add(since(begin));
            ++timed;
            decoded += session.context().size() - at;
          }
          ++passes;
        }
        static_cast<void>(session.truncate(end));
      }
    }
    state.SetIterationTime(times.sum());
  }
  state.counters["ns/token"] = times.sum() * 1e9 / static_cast<double>(decoded);
  state.counters["ns/pass"] = times.sum() * 1e9 / static_cast<double>(timed);
  state.counters["p99_ns/pass"] = times.slowest_hundredth() * 1e9;
  state.counters["tokens/pass"] = static_cast<double>(decoded) / static_cast<double>(timed);
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

/// The sessions of all files. Throws InputError.
std::vector<replay::TraceSession> read_sessions(std::span<char*> files) {
  std::vector<replay::TraceSession> sessions;
  for (const char* file : files)
    for (replay::TraceSession& session : replay::read_trace(file).sessions) sessions.push_back(std::move(session));
  return sessions;
}

template <class Kind>
void register_recorded(const std::string& name, const std::vector<replay::TraceSession>& sessions) {
  for (const bool cold : {false, true})
    for (const bool tree : {false, true}) {
      const std::string title =
          "recorded/" + name + (tree ? "/trees" : "/chains") + (cold ? "/round_cold" : "/round_warm");
      benchmark::RegisterBenchmark(title.c_str(),
                                   [&sessions, cold, tree](benchmark::State& state) {
                                     recorded<Kind>(state, sessions, cold, tree ? trees() : Capabilities());
                                   })
          ->UseManualTime()
          ->Iterations(cold ? 3 : 20)
          ->Unit(benchmark::kMillisecond);
    }
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  namespace bench = reprise::bench;
  benchmark::Initialize(&argc, argv);
  std::vector<reprise::replay::TraceSession> sessions;
  try {
    sessions = bench::read_sessions(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  if (!sessions.empty()) {
    bench::register_recorded<bench::Speculating<0>>("speculator_0", sessions);
    bench::register_recorded<bench::Speculating<20>>("speculator_0.02", sessions);
    bench::register_recorded<bench::Speculating<300>>("speculator_0.3", sessions);
  }
  bench::register_kind<bench::Plain>("none");
  bench::register_kind<bench::Speculating<0>>("speculator_0");
  bench::register_kind<bench::Speculating<20>>("speculator_0.02");
  bench::register_kind<bench::Speculating<50>>("speculator_0.05");
  bench::register_kind<bench::Speculating<300>>("speculator_0.3");
  bench::register_kind<bench::Copying>("copy");
  bench::register_kind<bench::CopyingSuffixArray>("copy_suffix_array");
  benchmark::RunSpecifiedBenchmarks();
}
