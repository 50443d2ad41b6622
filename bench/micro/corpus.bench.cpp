// SPDX-License-Identifier: Apache-2.0
// The cost of a corpus: opening it, finding 12 places, counting next tokens, and reading.
//
// By default, the corpus has a million generated tokens. REPRISE_CORPUS=FILE measures a file that reprise-index wrote.
// Each looked-up suffix is a part of the corpus in which one token is changed, so that the lengths of the longest
// matches differ. REPRISE_QUERIES=FILE takes the suffixes from a file of tokens of 2 bytes instead, such as a text that
// is not in the corpus.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "index_bench.hpp"
#include "reprise_corpus/corpus_store.hpp"
#include "reprise_corpus/corpus_writer.hpp"
#include "reprise_corpus/mapped_corpus.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t queries = 10'000;
constexpr std::size_t places = 12;
constexpr std::size_t context = CorpusStore::most_context;

Bytes generated_corpus() {
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, std::size_t{1} << 20);
  std::vector<CorpusDocument> documents;
  constexpr std::size_t size = 2048;
  for (std::size_t at = 0; at < tokens.size(); at += size)
    documents.push_back({std::span(tokens).subspan(at, std::min(size, tokens.size() - at)), ""});
  return make_corpus(documents, {.vocabulary = 100'000}).value();
}

/// The corpus and the suffixes that are looked up.
class World {
 public:
  World() {
    if (const char* const file = std::getenv("REPRISE_CORPUS")) {
      auto opened = MappedCorpus::open(file);
      if (!opened) fail(file, std::string(opened.error().message));
      mapped_ = *std::move(opened);
      bytes_ = mapped_.bytes();
    } else {
      generated_ = generated_corpus();
      bytes_ = {generated_.data(), generated_.size()};
    }
    store_ = CorpusStore::open(bytes_).value();
    if (const char* const file = std::getenv("REPRISE_QUERIES"))
      take_queries(file);
    else
      change_text();
  }

  [[nodiscard]] const CorpusStore& store() const { return store_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] TokenSpan suffix(std::size_t i) const { return TokenSpan(tokens_).subspan(i * context, context); }

 private:
  [[noreturn]] static void fail(const char* file, const std::string& message) {
    std::fprintf(stderr, "%s: %s\n", file, message.c_str());
    std::exit(1);
  }
  void change_text() {
    testing::Random random(1);
    while (tokens_.size() < queries * context) {
      std::array<Token, context> tokens;
      const std::uint64_t begin = random.next() % store_.bytes() % (store_.tokens() + store_.documents());
      if (store_.read(begin, tokens).size < context) continue;
      tokens[random.below(context)] = static_cast<Token>(random.below(store_.identity().vocabulary));
      tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    }
  }
  void take_queries(const char* name) {
    std::ifstream file(name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (text.size() < 2 * (queries + context)) fail(name, "the file has too few tokens: give at least 10,032");
    testing::Random random(1);
    for (std::size_t i = 0; i < queries; ++i) {
      const std::size_t begin = random.below(text.size() / 2 - context);
      for (std::size_t j = begin; j < begin + context; ++j)
        tokens_.push_back(static_cast<unsigned char>(text[2 * j]) | static_cast<unsigned char>(text[2 * j + 1]) << 8);
    }
  }

  Bytes generated_;
  MappedCorpus mapped_;
  std::span<const std::byte> bytes_;
  CorpusStore store_;
  std::vector<Token> tokens_;
};

const World& world() {
  static const World made;
  return made;
}

/// Times of single calls in nanoseconds, reported as their median and 99th percentile.
class Times {
 public:
  template <class Call>
  void add(Call call) {
    const auto begin = Clock::now();
    call();
    times_.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  void report(benchmark::State& state) {
    std::sort(times_.begin(), times_.end());
    state.counters["median_ns"] = times_[times_.size() / 2];
    state.counters["p99_ns"] = times_[times_.size() * 99 / 100];
  }

 private:
  std::vector<double> times_;
};

void open(benchmark::State& state) {
  const World& w = world();
  for (auto step : state) benchmark::DoNotOptimize(CorpusStore::open(w.bytes()));
  state.counters["tokens"] = static_cast<double>(w.store().tokens());
  state.counters["bytes/token"] = static_cast<double>(w.store().bytes()) / static_cast<double>(w.store().tokens());
}

/// With `flush`, other data fills the caches before each lookup, as a pass of the target does.
void find(benchmark::State& state, bool flush) {
  const World& w = world();
  Times times;
  CacheFlush fill_caches;
  std::array<StoreMatch, places> out;
  std::size_t found = 0;
  std::size_t length = 0;
  const std::size_t count = flush ? queries / 20 : queries;
  // Brings the pages of the corpus into memory.
  for (std::size_t i = 0; i < queries; ++i) benchmark::DoNotOptimize(w.store().find(w.suffix(i), out));
  for (auto step : state) {
    for (std::size_t i = 0; i < count; ++i) {
      if (flush) fill_caches();
      std::size_t matches = 0;
      times.add([&] { matches = w.store().find(w.suffix(i), out); });
      found += matches;
      if (matches != 0) length += static_cast<std::size_t>(std::countr_one(out[0].agreements));
    }
  }
  times.report(state);
  const auto calls = static_cast<double>(count) * static_cast<double>(state.iterations());
  state.counters["places"] = static_cast<double>(found) / calls;
  state.counters["longest"] = static_cast<double>(length) / calls;
}

/// Reads 32 tokens after a match.
void read(benchmark::State& state) {
  const World& w = world();
  Times times;
  for (auto step : state) {
    for (std::size_t i = 0; i < queries; ++i) {
      std::array<StoreMatch, 1> match;
      std::array<Token, 32> tokens;
      // The place of another suffix, whose text is not in the cache.
      if (w.store().find(w.suffix((i * 7919) % queries), match) == 0) continue;
      times.add([&] { benchmark::DoNotOptimize(w.store().read(match[0].next + 2048, tokens)); });
    }
  }
  times.report(state);
}

/// Counts the tokens that follow the last `state.range(0)` tokens.
void continuations(benchmark::State& state) {
  const World& w = world();
  Times times;
  std::array<CorpusStore::NextToken, 10> out;
  double distinct = 0;
  for (auto step : state) {
    for (std::size_t i = 0; i < queries; ++i)
      times.add([&] {
        const TokenSpan suffix = w.suffix(i).last(static_cast<std::size_t>(state.range(0)));
        distinct += static_cast<double>(w.store().continuations(suffix, out).distinct);
      });
  }
  times.report(state);
  state.counters["distinct"] = distinct / static_cast<double>(queries) / static_cast<double>(state.iterations());
}

BENCHMARK(open);
BENCHMARK_CAPTURE(find, warm, false)->Iterations(1);
BENCHMARK_CAPTURE(find, flushed, true)->Iterations(1);
BENCHMARK(read)->Iterations(1);
BENCHMARK(continuations)->Arg(2)->Arg(3)->Arg(5)->Iterations(1);

}  // namespace
}  // namespace reprise::bench

BENCHMARK_MAIN();
