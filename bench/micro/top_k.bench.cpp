// SPDX-License-Identifier: Apache-2.0
// The time of top_k() and argmax() for one row of logits, as a ratio to a plain argmax loop on the same rows.
#include "reprise/engine/top_k.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace reprise::bench {
namespace {

using Row = std::vector<float>;

/// Several rows, so that the branch predictor cannot learn one of them.
constexpr std::size_t rows = 16;

Row normal_row(std::size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 2.5F);
  Row row(size);
  for (float& score : row) score = normal(random);
  return row;
}
/// The worst case: each score is the highest so far.
Row ascending_row(std::size_t size, std::mt19937& random) {
  Row row = normal_row(size, random);
  std::sort(row.begin(), row.end());
  return row;
}
/// Like the logits of a model: 24 tokens far above the rest, most of them with low ids, as frequent tokens have.
Row peaked_row(std::size_t size, std::mt19937& random) {
  Row row = normal_row(size, random);
  std::uniform_real_distribution<double> place(0, 1);
  for (int peak = 0; peak < 24; ++peak) {
    const double at = place(random);
    row[static_cast<std::size_t>(at * at * static_cast<double>(size))] = 25 - 0.5F * static_cast<float>(peak);
  }
  return row;
}

/// The plain loop: argmax() without blocks. NaN loses to every number here, too.
Token plain_argmax(std::span<const float> scores) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i)
    if (scores[i] > scores[best] || (!(scores[best] >= scores[best]) && scores[i] >= scores[i])) best = i;
  return static_cast<Token>(best);
}

template <class Call>
double microseconds(Call call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}
double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

using MakeRow = Row (*)(std::size_t, std::mt19937&);

/// Times `call` and the plain loop in turns, on different rows, so that neither finds its row in a warmer cache.
template <class Call>
void compare(benchmark::State& state, MakeRow make_row, Call call) {
  std::mt19937 random(1);
  std::vector<Row> made;
  for (std::size_t i = 0; i < rows; ++i) made.push_back(make_row(static_cast<std::size_t>(state.range(0)), random));
  std::vector<double> times;
  std::vector<double> plain;
  std::size_t at = 0;
  for (auto step : state) {
    times.push_back(microseconds([&] { call(made[at % rows]); }));
    plain.push_back(microseconds([&] { benchmark::DoNotOptimize(plain_argmax(made[(at + rows / 2) % rows])); }));
    state.SetIterationTime(times.back() / 1e6);
    ++at;
  }
  state.counters["us"] = median(times);
  state.counters["plain us"] = median(plain);
  state.counters["ratio"] = state.counters["us"] / state.counters["plain us"];
}

void time_top_k(benchmark::State& state, MakeRow make_row, std::size_t k) {
  std::array<Token, 64> out{};
  compare(state, make_row, [&](const Row& row) {
    benchmark::DoNotOptimize(top_k(row, std::span(out).first(k)).data());
    benchmark::ClobberMemory();
  });
}
void time_argmax(benchmark::State& state, MakeRow make_row) {
  compare(state, make_row, [](const Row& row) { benchmark::DoNotOptimize(argmax(row)); });
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(49152)->Arg(152064)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  namespace bench = reprise::bench;
  struct Kind {
    const char* name;
    bench::MakeRow make;
  };
  for (const Kind kind : {Kind{"normal", bench::normal_row}, Kind{"peaked", bench::peaked_row},
                          Kind{"ascending", bench::ascending_row}}) {
    const std::string name = kind.name;
    benchmark::RegisterBenchmark(("argmax/" + name).c_str(), bench::time_argmax, kind.make)->Apply(bench::sizes);
    for (const std::size_t k : {1U, 8U, 16U, 64U})
      benchmark::RegisterBenchmark(("top_" + std::to_string(k) + "/" + name).c_str(), bench::time_top_k, kind.make, k)
          ->Apply(bench::sizes);
  }
  benchmark::RunSpecifiedBenchmarks();
}
