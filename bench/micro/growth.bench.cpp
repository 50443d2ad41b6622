// SPDX-License-Identifier: Apache-2.0
// The most expensive single append while an index grows token by token, in microseconds.
//
// Each text is appended three times, and the least time of each append counts, because an interruption seldom hits the
// same append twice. With glibc, GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072 makes each freed array return to the
// operating system at once. Otherwise that happens only in a new process, and the second and third time are faster.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "index_bench.hpp"
#include "reprise/index/rolling_hash.hpp"

namespace {

/// Random tokens, of which one in 200 is new.
std::vector<reprise::Token> few_distinct(std::size_t size) {
  reprise::testing::SplitMix random(1);
  std::vector<reprise::Token> tokens(size);
  for (std::size_t i = 0; i < size; ++i)
    tokens[i] = static_cast<reprise::Token>(i % 200 == 0 ? 500 + i / 200 : random.below(500 + i / 200));
  return tokens;
}

template <class MakeTokens>
void worst_append(benchmark::State& state, MakeTokens make_tokens) {
  using Clock = std::chrono::steady_clock;
  const std::vector<reprise::Token> tokens = make_tokens(static_cast<std::size_t>(state.range(0)));
  std::vector<float> least(tokens.size(), 1e9F);  // microseconds
  std::size_t bytes = 0;                          // for each token
  for (auto step : state) {
    reprise::RollingHashIndex index;
    auto last = Clock::now();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      index.append({&tokens[i], 1});
      const auto now = Clock::now();
      least[i] = std::min(least[i], std::chrono::duration<float, std::micro>(now - last).count());
      last = now;
      if (i > 10'000) bytes = std::max(bytes, index.memory_bytes() / i);
    }
  }
  state.counters["worst/us"] = static_cast<double>(*std::max_element(least.begin(), least.end()));
  state.counters["most_bytes/token"] = static_cast<double>(bytes);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const auto add = [](const std::string& name, auto make_tokens) {
    auto* bench = benchmark::RegisterBenchmark(("growth/" + name).c_str(),
                                               [=](benchmark::State& state) { worst_append(state, make_tokens); });
    for (const std::int64_t size : {100'000, 300'000, 1'000'000, 4'000'000}) bench->Arg(size);
    bench->Iterations(3)->Unit(benchmark::kMillisecond);
  };
  for (const reprise::bench::Stream stream : reprise::bench::bench_streams)
    add(std::string(reprise::testing::name(stream)),
        [=](std::size_t size) { return reprise::bench::bench_tokens(stream, size); });
  add("few_distinct", few_distinct);
  benchmark::RunSpecifiedBenchmarks();
}
