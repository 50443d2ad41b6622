// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace reprise::testing {

/// Threads that share the work of a loop: what an engine passes to BatchFollower::draft().
class WorkerThreads {
 public:
  /// `threads` counts the caller's thread, so it is at least 1.
  explicit WorkerThreads(std::size_t threads) {
    for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  ~WorkerThreads() {
    stops_ = true;
    begin_loop();
    for (std::thread& worker : workers_) worker.join();
  }

  /// Calls body(i) for each i below `count`.
  void operator()(std::size_t count, const std::function<void(std::size_t)>& body) {
    body_ = &body;
    count_ = count;
    next_ = 0;
    busy_ = workers_.size();
    begin_loop();
    take_all();
    for (std::size_t busy = busy_; busy > 0; busy = busy_) std::this_thread::yield();
  }

 private:
  void begin_loop() {
    ++loop_;
    loop_.notify_all();
  }
  void work() {
    for (std::size_t seen = 0;;) {
      // Wakes late if it sleeps: an engine calls again within a few microseconds.
      for (int spins = 0; loop_ == seen && spins < 2000; ++spins) std::this_thread::yield();
      loop_.wait(seen);
      ++seen;
      if (stops_) return;
      take_all();
      --busy_;
    }
  }
  void take_all() {
    for (std::size_t i = next_++; i < count_; i = next_++) (*body_)(i);
  }

  const std::function<void(std::size_t)>* body_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> busy_{0};
  std::atomic<std::size_t> loop_{0};
  std::atomic<bool> stops_{false};
  std::vector<std::thread> workers_;
};

}  // namespace reprise::testing
