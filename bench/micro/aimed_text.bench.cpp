// SPDX-License-Identifier: Apache-2.0
// The default drafter on texts that are aimed at its hash key, next to the same texts under another key.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "support/aimed_tokens.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t length = 60'000;
constexpr std::size_t repeated = 300;  // the text ends with three copies of its latest tokens, so that drafts are long

/// Aimed at the linear probing that the tables had, and at all runs of today's probes.
constexpr testing::Aim one_run{.runs = 1, .pair = 3, .four = 3};
constexpr testing::Aim all_runs{.runs = 8, .pair = 60, .four = 70};
constexpr testing::Aim all_tables{.runs = 8, .single = 85, .pair = 70, .four = 80, .counted = 85};

std::vector<Token> text_for(const testing::Aim& aim) {
  std::vector<Token> text = testing::aimed_text(length - 2 * repeated, aim, IndexOptions{}.key);
  for (std::size_t i = 0; i < 2 * repeated; ++i) text.push_back(text[text.size() - repeated]);
  return text;
}

NgramDrafter<> drafter(bool aimed) {
  NgramOptions options;
  if (!aimed) options.key = 0x243f6a8885a308d3;
  return NgramDrafter<>(options);
}

void begin(benchmark::State& state, const std::vector<Token>& text, bool aimed) {
  NgramDrafter<> drafter = bench::drafter(aimed);
  for (auto step : state) drafter.begin(text);
}

/// Observes the text token by token, growth of the tables included. The time is that of one token.
void observe(benchmark::State& state, const std::vector<Token>& text, bool aimed) {
  for (auto step : state) {
    NgramDrafter<> drafter = bench::drafter(aimed);
    for (std::size_t size = 1; size <= text.size(); ++size)
      drafter.observe(TokenSpan(text).first(size), 1, Origin::output);
  }
  state.counters["time/token"] = benchmark::Counter(
      static_cast<double>(text.size()), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void propose(benchmark::State& state, const std::vector<Token>& text, bool aimed) {
  NgramDrafter<> drafter = bench::drafter(aimed);
  drafter.begin(text);
  std::vector<DraftNode> nodes(NgramDrafter<>::max_nodes);
  for (auto step : state) {
    Draft draft(nodes, {.max_nodes = nodes.size()});
    drafter.propose(text, draft);
    benchmark::DoNotOptimize(draft.size());
  }
}

/// Truncates half of the text.
void truncate(benchmark::State& state, const std::vector<Token>& text, bool aimed) {
  NgramDrafter<> drafter = bench::drafter(aimed);
  for (auto step : state) {
    state.PauseTiming();
    drafter.begin(text);
    state.ResumeTiming();
    drafter.truncate(text, text.size() / 2);
  }
}

void register_text(const std::string& name, const testing::Aim& aim) {
  const std::vector<Token> text = text_for(aim);
  for (const bool aimed : {true, false}) {
    const std::string under = name + (aimed ? "/aimed" : "/other_key");
    benchmark::RegisterBenchmark((under + "/begin").c_str(), begin, text, aimed)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((under + "/observe").c_str(), observe, text, aimed)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark((under + "/propose").c_str(), propose, text, aimed)->Unit(benchmark::kMicrosecond);
    benchmark::RegisterBenchmark((under + "/truncate").c_str(), truncate, text, aimed)->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  namespace bench = reprise::bench;
  bench::register_text("one_run", bench::one_run);
  bench::register_text("all_runs", bench::all_runs);
  bench::register_text("all_tables", bench::all_tables);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
