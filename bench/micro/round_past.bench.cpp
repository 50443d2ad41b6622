// SPDX-License-Identifier: Apache-2.0
// Whole rounds with a free target at a context of 128k tokens, s = 0.02: the cost of the target's rankings, and of the
// tables of next tokens that past sequences have left.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "index_bench.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/speculator.hpp"

namespace reprise::bench {
namespace {

constexpr std::size_t context_tokens = std::size_t{1} << 17;
constexpr std::size_t rounds_tokens = 4096;  // decoded after the context, then truncated
constexpr std::size_t text_tokens = context_tokens + rounds_tokens + 64;
constexpr std::size_t sequence_tokens = 2048;

constexpr std::size_t vocabulary = 100000;

/// The likeliest tokens after each token: always the same ones, but the first can be replaced.
class Rankings {
 public:
  Rankings() : all_(vocabulary) {
    for (std::size_t last = 0; last < vocabulary; ++last)
      for (std::size_t i = 0; i < Ranking::most; ++i)
        all_[last].tokens[i] = static_cast<Token>((last * 31 + 7 * i) % vocabulary);
  }
  const Ranking& after(Token last, Token first) {
    Ranking& likeliest = all_[static_cast<std::size_t>(last)];
    likeliest.tokens[0] = first;
    return likeliest;
  }

 private:
  std::vector<Ranking> all_;
};

/// What earlier sequences have left: their text, the counts of their next tokens, and the rankings of half of them.
struct Past {
  Past(std::size_t mebibytes, bool tables, Rankings& rankings) {
    if (mebibytes == 0) {
      tokens = bench_tokens(Stream::trace_like, text_tokens);
      return;
    }
    history = HistoryStore::make({.max_bytes = mebibytes << 20}).value();
    tokens = bench_tokens(Stream::trace_like, history.capacity() + text_tokens);
    const TokenSpan text = TokenSpan(tokens).first(history.capacity());
    for (std::size_t at = 0; at < text.size(); at += sequence_tokens) {
      history.begin_sequence(1 + at);
      history.append(text.subspan(at, std::min(sequence_tokens, text.size() - at)), Origin::output);
    }
    history.end_sequence();
    options.stores = {history};
    if (!tables) return;
    next_tokens = NextTokens::make({.max_bytes = std::size_t{8} << 20, .rankings = true}).value();
    next_tokens.add(text);
    for (std::size_t i = 1; i + 1 < text.size() / 2; ++i) {
      const Ranking& ranking = rankings.after(text[i], text[i + 1]);
      const std::array<NextTokens::RankedRow, 2> shown = {
          {{Ranking::none, text[i], ranking}, {text[i - 1], text[i], ranking}}};
      next_tokens.add(shown);
    }
    options.next_tokens = &next_tokens;
  }

  HistoryStore history;
  NextTokens next_tokens;
  std::vector<Token> tokens;  // the past, then the context, then what is decoded
  NgramOptions options;
};

/// Decodes the tokens after the context, round by round. `shows`: the target shows its rankings.
void rounds(benchmark::State& state, bool shows, bool tables) {
  Rankings rankings;
  Past past(static_cast<std::size_t>(state.range(0)), tables, rankings);
  const TokenSpan text = TokenSpan(past.tokens).last(text_tokens);
  past.options.top_k = shows ? Ranking::most : 0;
  Speculator session(past.options, {.curve = CostCurve::linear(0.02)});
  Capabilities can;
  can.max_leaves = unlimited;
  if (!session.begin(text.first(context_tokens), can)) return state.SkipWithError("begin");
  const Limits limits;
  std::size_t decoded = 0;
  std::size_t passes = 0;
  std::size_t nodes = 0;
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> total{};
  for (auto step : state) {
    const auto begin = Clock::now();
    while (session.context().size() < context_tokens + rounds_tokens) {
      session.propose(limits);
      const auto pass = session.plan();
      const TokenSpan next = text.subspan(session.context().size());
      const auto decision = session.resolve(pass->ticket, testing::StreamPicks{next, pass->depths});
      benchmark::DoNotOptimize(decision->keep);
      if (session.strategy().top_k_wanted() != 0)
        for (std::size_t i = 0; i <= pass->drafted; ++i) {
          const Token last = pass->batch[pass->pending - 1 + i];
          static_cast<void>(session.report_top_k(pass->ticket, i,
                                                 rankings.after(last, next[i == 0 ? 0 : pass->depths[i - 1]]).tokens));
        }
      nodes += pass->drafted;
      ++passes;
      static_cast<void>(session.commit(pass->ticket));
    }
    const std::chrono::duration<double> took = Clock::now() - begin;
    decoded += session.context().size() - context_tokens;
    total += took;
    state.SetIterationTime(took.count());
    static_cast<void>(session.truncate(context_tokens));
  }
  state.counters["ns/token"] = total.count() * 1e9 / static_cast<double>(decoded);
  state.counters["tokens/pass"] = static_cast<double>(decoded) / static_cast<double>(passes);
  state.counters["nodes/pass"] = static_cast<double>(nodes) / static_cast<double>(passes);
}

void add(const std::string& name, bool shows, bool tables, std::vector<std::int64_t> mebibytes) {
  auto* bench = benchmark::RegisterBenchmark(name.c_str(), rounds, shows, tables);
  for (const std::int64_t size : mebibytes) bench->Arg(size);
  bench->UseManualTime()->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  namespace bench = reprise::bench;
  bench::add("cold", false, false, {0});
  bench::add("cold/rankings", true, false, {0});
  bench::add("history_MiB", false, false, {4, 64});
  bench::add("history_MiB/tables", false, true, {4, 64});
  bench::add("history_MiB/tables/rankings", true, true, {4, 64});
  benchmark::RunSpecifiedBenchmarks();
}
