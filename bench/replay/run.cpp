// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "input_error.hpp"

namespace reprise::replay {
namespace {

/// Calls work(i) for every i below `size`, on `threads` threads. The first exception is thrown on.
template <class Work>
void in_parallel(std::size_t size, std::size_t threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto loop = [&] {
    try {
      for (std::size_t i = next++; i < size; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = size;
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < std::min(threads, size); ++i) others.emplace_back(loop);
  loop();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

void check_categories(const Trace& trace) {
  for (const TraceSession& session : trace.sessions)
    if (session.category == all_categories)
      throw InputError(trace.path + ": session " + session.id +
                       ": category: \"all\" names the sum of all categories; with --by-category call it otherwise");
}

}  // namespace

std::vector<Row> replay_all(std::span<const Trace> traces, std::span<const StrategyRun> runs,
                            std::span<const CostCurve> curves, bool by_category, std::size_t threads,
                            Progress& progress) {
  if (by_category)
    for (const Trace& trace : traces) check_categories(trace);
  std::vector<Row> rows;
  for (const Trace& trace : traces) {
    for (const StrategyRun& run : runs) {
      progress.start(trace.path + "  " + run.spec, trace.sessions.size());
      std::vector<Counts> counts(trace.sessions.size());
      in_parallel(trace.sessions.size(), threads, [&](std::size_t i) {
        counts[i] = replay_session(trace.sessions[i], run.strategy, curves);
        progress.step();
      });
      const std::size_t first = rows.size();
      rows.push_back({trace.path, all_categories, run.spec, {}});
      for (std::size_t i = 0; i < counts.size(); ++i) {
        rows[first].counts += counts[i];
        if (!by_category) continue;
        const std::string& category = trace.sessions[i].category;
        auto row = std::find_if(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
                                [&](const Row& other) { return other.category == category; });
        if (row == rows.end()) row = rows.insert(rows.end(), {trace.path, category, run.spec, {}});
        row->counts += counts[i];
      }
    }
  }
  progress.clear();
  return rows;
}

}  // namespace reprise::replay
