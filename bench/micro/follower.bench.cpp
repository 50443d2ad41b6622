// SPDX-License-Identifier: Apache-2.0
// The time of one call of Follower::draft() for each pass, and of the same round through a Session, which is told of
// each commit. The target is free.
#include "reprise/loop/follower.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "index_bench.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/speculator.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t decoded_tokens = 4096;

template <class Decode>
void measure(benchmark::State& state, Decode&& decode) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, length + decoded_tokens + 64);
  std::size_t passes = 0;
  std::chrono::duration<double> total{};
  for (auto step : state) {
    const std::chrono::duration<double> took = decode(TokenSpan(tokens), length, passes);
    state.SetIterationTime(took.count());
    total += took;
  }
  state.counters["ns/pass"] = total.count() * 1e9 / static_cast<double>(passes);
}

void follower(benchmark::State& state) {
  measure(state, [](TokenSpan tokens, std::size_t length, std::size_t& passes) {
    Follower<Speculator> follower(Speculator(CostCurve::linear(0.02)));
    static_cast<void>(follower.reserve(tokens.size()));
    auto draft = follower.draft(tokens.first(length), 16);
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t size = length; size < length + decoded_tokens; ++passes) {
      size += committed(*draft, tokens.subspan(size));
      draft = follower.draft(tokens.first(size), 16);
    }
    return std::chrono::steady_clock::now() - begin;
  });
}

void session(benchmark::State& state) {
  measure(state, [](TokenSpan tokens, std::size_t length, std::size_t& passes) {
    Speculator session(CostCurve::linear(0.02));
    static_cast<void>(session.reserve(tokens.size()));
    static_cast<void>(session.begin(tokens.first(length)));
    Limits limits;
    limits.draft.max_nodes = 16;
    const auto begin = std::chrono::steady_clock::now();
    for (; session.context().size() < length + decoded_tokens; ++passes) {
      session.propose(limits, DraftShape::chain);
      const auto pass = session.plan();
      static_cast<void>(session.resolve(pass->ticket, tokens.subspan(session.context().size())));
      static_cast<void>(session.commit(pass->ticket));
    }
    return std::chrono::steady_clock::now() - begin;
  });
}

void register_all() {
  for (const std::int64_t size : {1'024, 8'192, 32'768, 131'072}) {
    benchmark::RegisterBenchmark("follower", follower)->Arg(size)->UseManualTime()->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark("session", session)->Arg(size)->UseManualTime()->Unit(benchmark::kMicrosecond);
  }
}
[[maybe_unused]] const bool registered = (register_all(), true);

}  // namespace
}  // namespace reprise::bench

BENCHMARK_MAIN();
