// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace reprise::tools {

/// Calls work(i) for every i below `size`, on `threads` threads. Rethrows the first exception after all threads have
/// ended.
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

}  // namespace reprise::tools
