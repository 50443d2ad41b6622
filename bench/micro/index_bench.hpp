// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reprise/index/lookup_index.hpp"
#include "support/streams.hpp"

/// The benchmarks of every index; rolling_hash.bench.cpp and suffix_array.bench.cpp supply the type.
namespace reprise::bench {

using testing::Stream;

/// A stream with a large vocabulary. Of its zipf tokens, few are frequent and most never occur.
inline std::vector<Token> bench_tokens(Stream stream, std::size_t length) {
  return testing::make_stream(stream, length, 1, 100000);
}

/// Returns the number of tokens that a pass commits: those of the draft that agree with the text, and one more.
inline std::size_t committed(TokenSpan draft, TokenSpan text) {
  std::size_t agreed = 0;
  while (agreed < draft.size() && draft[agreed] == text[agreed]) ++agreed;
  return agreed + 1;
}

/// Reads more memory than the caches hold, like a real pass of the target between two lookups.
class CacheFlush {
 public:
  void operator()() {
    for (std::size_t i = 0; i < lines_.size(); i += 8) sum_ += lines_[i]++;
    benchmark::DoNotOptimize(sum_);
  }

 private:
  std::vector<std::uint64_t> lines_ = std::vector<std::uint64_t>(std::size_t{96} << 17);  // 96 MiB
  std::uint64_t sum_ = 0;
};

inline void report_tokens(benchmark::State& state, std::size_t tokens_each, std::size_t bytes) {
  const auto each = static_cast<double>(tokens_each);
  state.counters["time/token"] =
      benchmark::Counter(each, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes/token"] = static_cast<double>(bytes) / each;
}

/// Appends a whole prompt to a new index: the cost of begin(), allocation included.
template <LookupIndex I>
void bulk_append(benchmark::State& state, Stream stream, const IndexOptions& options) {
  const std::vector<Token> tokens = bench_tokens(stream, static_cast<std::size_t>(state.range(0)));
  std::size_t bytes = 0;
  for (auto step : state) {
    I index(options);
    index.append(tokens);
    bytes = index.memory_bytes();
    benchmark::DoNotOptimize(index.tokens().data());
  }
  report_tokens(state, tokens.size(), bytes);
}

/// Appends token by token to an empty index up to this context, growth included.
template <LookupIndex I>
void stream_append(benchmark::State& state, Stream stream, const IndexOptions& options) {
  const std::vector<Token> tokens = bench_tokens(stream, static_cast<std::size_t>(state.range(0)));
  std::size_t bytes = 0;
  for (auto step : state) {
    I index(options);
    for (const Token token : tokens) index.append({&token, 1});
    bytes = index.memory_bytes();
    benchmark::DoNotOptimize(index.tokens().data());
  }
  report_tokens(state, tokens.size(), bytes);
}

/// Appends tokens one by one at this context and removes them again, like rejected drafts that had been appended.
template <LookupIndex I>
void append_and_truncate(benchmark::State& state, Stream stream, const IndexOptions& options) {
  const auto length = static_cast<std::size_t>(state.range(0));
  constexpr std::size_t more = 4096;
  const std::vector<Token> tokens = bench_tokens(stream, length + more);
  I index(options);
  static_cast<void>(index.reserve(length + more));
  index.append(std::span(tokens).first(length));
  for (auto step : state) {
    for (std::size_t i = length; i < tokens.size(); ++i) index.append({&tokens[i], 1});
    for (std::size_t i = tokens.size(); i > length; --i) index.truncate(i - 1);
  }
  report_tokens(state, more, index.memory_bytes());
  state.counters.erase("bytes/token");
}

/// Times one lookup at each of many places of the context, because a repeated lookup at one place would find all its
/// data in the L1 cache. A clock around each call adds 20 to 40 ns. The index is truncated from place to place, and
/// with `cold` the caches are flushed before each lookup; neither is timed.
template <LookupIndex I>
void find(benchmark::State& state, Stream stream, const IndexOptions& options, MatchLimits limits, bool cold) {
  const auto length = static_cast<std::size_t>(state.range(0));
  limits.shortest = static_cast<std::uint32_t>(state.range(1));
  const std::size_t places = length / 2;
  const std::vector<Token> tokens = bench_tokens(stream, length + places);
  I index(options);
  index.append(tokens);
  std::vector<Match> out(limits.candidates);
  CacheFlush flush;
  std::size_t found = 0;
  using Clock = std::chrono::steady_clock;
  for (auto step : state) {
    if (index.tokens().size() <= length) index.append(std::span(tokens).subspan(index.tokens().size()));
    index.truncate(index.tokens().size() - 1);
    if (cold) flush();
    const auto begin = Clock::now();
    found += index.find(limits, out);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  state.counters["matches"] = static_cast<double>(found) / static_cast<double>(state.iterations());
}

inline constexpr std::int64_t context_sizes[] = {1 << 10, 1 << 14, 1 << 17, 1 << 20};
inline constexpr Stream bench_streams[] = {Stream::trace_like, Stream::zipf, Stream::all_distinct};

/// Registers all benchmarks above for one index, named `index`.
template <LookupIndex I>
void register_index(const std::string& index) {
  using Run = void (*)(benchmark::State&, Stream, const IndexOptions&);
  const IndexOptions options;
  const struct {
    const char* name;
    Run run;
  } appends[] = {{"bulk_append", bulk_append<I>},
                 {"stream_append", stream_append<I>},
                 {"append_and_truncate", append_and_truncate<I>}};
  for (const auto& [name, run] : appends) {
    for (const Stream stream : bench_streams) {
      const std::string title = index + "/" + name + "/" + std::string(testing::name(stream));
      for (const std::int64_t size : context_sizes) {
        benchmark::RegisterBenchmark(title.c_str(), run, stream, options)->Arg(size)->Unit(benchmark::kMicrosecond);
      }
    }
  }
  for (const bool cold : {false, true}) {
    const std::string title = index + (cold ? "/find_cold/" : "/find_warm/") + "trace_like";
    for (const std::int64_t size : context_sizes) {
      for (const std::uint32_t shortest : options.orders) {
        auto* bench =
            benchmark::RegisterBenchmark(title.c_str(), find<I>, Stream::trace_like, options, MatchLimits{}, cold);
        bench->Args({size, shortest})->UseManualTime()->Unit(benchmark::kNanosecond);
        bench->Iterations(cold ? 64 : 20000);
      }
    }
  }
  const std::string title = index + "/find_warm/period_1";
  benchmark::RegisterBenchmark(title.c_str(), find<I>, Stream::period_1, options, MatchLimits{}, false)
      ->Args({1 << 17, 1})
      ->UseManualTime()
      ->Iterations(20000);
}

}  // namespace reprise::bench
