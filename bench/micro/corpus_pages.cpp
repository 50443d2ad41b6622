// SPDX-License-Identifier: Apache-2.0
// Several processes that map one corpus: the time to open it, and the memory of each process (Linux only).
//
// usage: reprise-bench-corpus-pages CORPUS [PROCESSES] [LOOKUPS]
//
// Each process opens the corpus and looks up random parts of its text. Then, while all of them live, each reads its own
// /proc/self/smaps_rollup. Rss counts shared pages fully, Pss divides each by the number of processes that map it, and
// anonymous pages belong to the process alone.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "reprise_corpus/mapped_corpus.hpp"
#include "reprise_testing/random.hpp"

namespace {

using namespace reprise;
using Clock = std::chrono::steady_clock;
constexpr int most_processes = 64;

/// Memory of a process, in units of 1024 bytes.
struct Memory {
  long rss = 0;
  long pss = 0;
  long anonymous = 0;
};

Memory memory_now() {
  Memory memory;
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    if (word == "Rss:") file >> memory.rss;
    if (word == "Pss:") file >> memory.pss;
    if (word == "Anonymous:") file >> memory.anonymous;
  }
  return memory;
}

/// What the processes share.
struct Board {
  std::array<std::atomic<int>, 3> arrived{};

  struct Line {
    double open_us = 0;
    double lookups_s = 0;
    std::size_t places = 0;
    Memory before;
    Memory opened;
    Memory after;
  };
  std::array<Line, most_processes> lines{};

  /// Waits until all processes have come to this step.
  void wait(std::size_t step, int processes) {
    ++arrived[step];
    while (arrived[step] < processes) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Returns false if the corpus cannot be opened.
bool work(const char* path, int number, int processes, long lookups, Board& board) {
  Board::Line& line = board.lines[static_cast<std::size_t>(number)];
  line.before = memory_now();
  board.wait(0, processes);
  const auto begin = Clock::now();
  const auto corpus = MappedCorpus::open(path);
  line.open_us = 1e6 * seconds_since(begin);
  line.opened = memory_now();
  board.wait(1, processes);
  if (!corpus) {
    std::fprintf(stderr, "%s: %s\n", path, std::string(corpus.error().message).c_str());
  } else {
    const CorpusStore& store = corpus->store();
    reprise::testing::Random random(static_cast<std::uint64_t>(number) + 1);
    const auto first = Clock::now();
    for (long i = 0; i < lookups; ++i) {
      std::array<Token, CorpusStore::most_context> tokens{};
      std::array<StoreMatch, 12> matches;
      const StoreRun run = store.read(random.next() % (store.tokens() + store.documents()), tokens);
      line.places += store.find(TokenSpan(tokens).first(run.size), matches);
    }
    line.lookups_s = seconds_since(first);
  }
  board.wait(2, processes);
  line.after = memory_now();
  // No process may end before all have read their memory.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return corpus.has_value();
}

}  // namespace

int main(int argc, char** argv) {
  const int processes = argc > 2 ? std::atoi(argv[2]) : 4;
  const long lookups = argc > 3 ? std::atol(argv[3]) : 100'000;
  if (argc < 2 || argc > 4 || processes < 1 || processes > most_processes || lookups < 0) {
    std::fprintf(stderr, "usage: %s CORPUS [PROCESSES from 1 to %d] [LOOKUPS]\n", argv[0], most_processes);
    return 2;
  }
  void* const shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return std::perror("mmap"), 1;
  Board& board = *new (shared) Board;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(work(argv[1], i, processes, lookups, board) ? 0 : 1);
    if (child < 0) {
      // The others would wait for it forever.
      for (std::atomic<int>& step : board.arrived) step = most_processes;
      std::perror("fork");
      return 1;
    }
    children.push_back(child);
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    good = ::waitpid(child, &status, 0) == child && status == 0 && good;
  }
  std::printf("process  open_us  lookup_us  Rss_before  Rss_opened  Rss_after  Pss_after  anonymous_added (KiB)\n");
  for (int i = 0; i < processes; ++i) {
    const Board::Line& line = board.lines[static_cast<std::size_t>(i)];
    std::printf("%7d %8.1f %10.2f %11ld %11ld %10ld %10ld %16ld\n", i, line.open_us,
                lookups == 0 ? 0 : 1e6 * line.lookups_s / static_cast<double>(lookups), line.before.rss,
                line.opened.rss, line.after.rss, line.after.pss, line.after.anonymous - line.before.anonymous);
  }
  return good ? 0 : 1;
}
