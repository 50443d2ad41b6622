// SPDX-License-Identifier: Apache-2.0
// The cost of a memory of past sequences: time and bytes of storing, time of drafting, and time of reading while
// another thread writes. The writer adds a million tokens per second.
#include "reprise/history/history_store.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <thread>
#include <vector>

#include "index_bench.hpp"
#include "reprise/draft/ngram_drafter.hpp"

namespace reprise::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t context_size = std::size_t{1} << 13;
constexpr std::size_t long_sequence = 2048;

/// CPU time of this thread in seconds. Without POSIX, wall-clock time.
double thread_seconds() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
#else
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
#endif
}

HistoryStore memory_of(const benchmark::State& state) {
  return HistoryStore::make({.max_bytes = static_cast<std::size_t>(state.range(0)) << 20}).value();
}
void remember(HistoryStore& memory, std::span<const Token> tokens, std::size_t sequence_size) {
  for (std::size_t at = 0; at < tokens.size(); at += sequence_size) {
    memory.begin_sequence(1 + at);
    memory.append(tokens.subspan(at, std::min(sequence_size, tokens.size() - at)), Origin::output);
  }
  memory.end_sequence();
}

/// Appends three times the capacity of the memory, in sequences of `sequence_size` tokens.
void append(benchmark::State& state, std::size_t sequence_size) {
  HistoryStore memory = memory_of(state);
  const std::vector<Token> tokens = bench_tokens(Stream::trace_like, memory.capacity() * 3);
  for (auto step : state) remember(memory, tokens, sequence_size);
  report_tokens(state, tokens.size(), 0);
  state.counters.erase("bytes/token");
  const HistoryStore::Counts& counts = memory.counts();
  state.counters["bytes/held_token"] =
      static_cast<double>(memory.memory_bytes()) / static_cast<double>(counts.stored - counts.evicted);
  state.counters["duplicates"] =
      static_cast<double>(counts.duplicates) / static_cast<double>(counts.duplicates + counts.stored);
}

/// A full memory, and a context similar to the stored text.
struct Past {
  explicit Past(const benchmark::State& state)
      : memory(memory_of(state)),
        tokens(bench_tokens(Stream::trace_like, memory.capacity() + 2 * context_size)),
        context(std::span(tokens).last(2 * context_size)) {
    remember(memory, std::span(tokens).first(memory.capacity()), long_sequence);
  }
  HistoryStore memory;
  std::vector<Token> tokens;
  std::span<const Token> context;
};

/// Drafts at many ends of a context.
class Reader {
 public:
  Reader(const Past& past, bool reads, std::size_t nodes) : context_(past.context), storage_(nodes) {
    NgramOptions options;
    if (reads) options.stores = {past.memory};
    drafter_ = NgramDrafter<>(options);
    drafter_.reserve(2 * context_size);
    drafter_.begin(context_.first(context_size));
    budget_.max_nodes = nodes;
  }
  void observe() {
    if (at_ == context_size) {
      drafter_.truncate(lent(), context_size);
      at_ = 0;
    }
    ++at_;
    drafter_.observe(lent(), 1, Origin::output);
  }
  void propose() {
    Draft draft(storage_, budget_);
    drafter_.propose(lent(), draft);
    drafted += draft.size();
    ++asked;
  }
  std::size_t drafted = 0;
  std::size_t asked = 0;

 private:
  [[nodiscard]] TokenSpan lent() const { return context_.first(context_size + at_); }

  std::span<const Token> context_;
  std::vector<DraftNode> storage_;
  NgramDrafter<> drafter_;
  DraftBudget budget_;
  std::size_t at_ = 0;
};

/// Time of propose(). A clock around each call adds 20 to 40 ns.
void propose(benchmark::State& state, bool reads, std::size_t nodes, bool cold) {
  const Past past(state);
  Reader reader(past, reads, nodes);
  CacheFlush flush;
  std::chrono::duration<double> total{};
  for (auto step : state) {
    std::chrono::duration<double> took{};
    for (int i = 0; i < (cold ? 16 : 512); ++i) {
      reader.observe();
      if (cold) flush();
      const auto begin = Clock::now();
      reader.propose();
      took += Clock::now() - begin;
    }
    total += took;
    state.SetIterationTime(took.count());
  }
  state.counters["nodes"] = static_cast<double>(reader.drafted) / static_cast<double>(reader.asked);
  state.counters["ns/propose"] = total.count() * 1e9 / static_cast<double>(reader.asked);
}

/// Writes 1000 new tokens per millisecond until `done`. Returns the number of tokens written.
std::size_t write(Past& past, const std::atomic<bool>& done) {
  std::vector<Token> burst(1000);
  std::size_t said = 0;
  for (auto next = Clock::now(); !done.load(std::memory_order_relaxed); said += burst.size()) {
    const std::size_t at = said % (past.memory.capacity() - burst.size());
    const auto shift = static_cast<Token>((1 + said / past.memory.capacity()) << 20);
    for (std::size_t i = 0; i < burst.size(); ++i) burst[i] = past.tokens[at + i] + shift;
    past.memory.begin_sequence(1 + said);
    past.memory.append(burst, Origin::output);
    next += std::chrono::milliseconds(1);
    std::this_thread::sleep_until(next);
  }
  return said;
}

/// CPU time of one token and one draft of 8 nodes, for each of several readers, with or without a writer.
void read(benchmark::State& state, std::size_t readers, bool writes) {
  Past past(state);
  std::atomic<bool> done = false;
  std::atomic<double> shared_seconds = 0;
  std::atomic<std::size_t> asked = 0;
  const auto run = [&](Reader& reader) {
    const double begin = thread_seconds();
    for (int i = 0; i < 512; ++i) {
      reader.observe();
      reader.propose();
    }
    asked += 512;
    for (double now = shared_seconds; !shared_seconds.compare_exchange_weak(now, now + thread_seconds() - begin);) {
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < readers; ++i)
    others.emplace_back([&] {
      Reader reader(past, true, 8);
      while (!done.load()) run(reader);
    });
  std::size_t said = 0;
  const auto begin = Clock::now();
  if (writes) others.emplace_back([&] { said = write(past, done); });
  Reader reader(past, true, 8);
  for (auto step : state) run(reader);
  done.store(true);
  for (std::thread& other : others) other.join();
  state.counters["ns/round"] = shared_seconds * 1e9 / static_cast<double>(asked);
  if (writes)
    state.counters["written/s"] =
        static_cast<double>(said) / std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  namespace bench = reprise::bench;
  for (const std::int64_t mebibytes : {4, 64})
    for (const std::size_t size : {std::size_t{200}, bench::long_sequence})
      benchmark::RegisterBenchmark(size == 200 ? "append/sequences_of_200" : "append/sequences_of_2048", bench::append,
                                   size)
          ->Arg(mebibytes)
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1);
  for (const std::int64_t mebibytes : {4, 64}) {
    const auto propose = [&](const char* name, bool reads, std::size_t nodes, bool cold) {
      benchmark::RegisterBenchmark(name, bench::propose, reads, nodes, cold)
          ->UseManualTime()
          ->Arg(mebibytes)
          ->Iterations(200);
    };
    propose("propose/2_nodes", false, 2, false);
    propose("propose/2_nodes/memory", true, 2, false);
    propose("propose/8_nodes", false, 8, false);
    propose("propose/8_nodes/memory", true, 8, false);
    propose("propose/32_nodes", false, 32, false);
    propose("propose/32_nodes/memory", true, 32, false);
    propose("propose/8_nodes/cold", false, 8, true);
    propose("propose/8_nodes/cold/memory", true, 8, true);
  }
  const auto read = [](const char* name, std::size_t readers, bool writes) {
    benchmark::RegisterBenchmark(name, bench::read, readers, writes)->Arg(64)->UseRealTime()->Iterations(1000);
  };
  read("read/1", 1, false);
  read("read/1/writer", 1, true);
  read("read/2", 2, false);
  read("read/2/writer", 2, true);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
