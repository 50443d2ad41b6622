// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <vector>

namespace reprise::replay {

/// The clock that times strategies and controls. The CPU time of the calling thread leaves out the time in which other
/// threads and programs have its core; on systems without such a clock it is wall time.
class ThreadClock {
 public:
#if defined(CLOCK_THREAD_CPUTIME_ID)
  static constexpr bool cpu = true;
  [[nodiscard]] static std::uint64_t now() noexcept {
    std::timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  }
#else
  static constexpr bool cpu = false;
  [[nodiscard]] static std::uint64_t now() noexcept {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }
#endif
  /// Its name in results.
  static constexpr std::string_view name = cpu ? "thread_cpu" : "wall";
  /// Its name in text.
  static constexpr std::string_view text = cpu ? "CPU time" : "wall time";

  /// Returns the time of `call` in nanoseconds, without that of reading the clock.
  template <class Call>
  static std::uint64_t time(Call&& call) {
    const std::uint64_t start = now();
    call();
    const std::uint64_t taken = now() - start;
    return taken - std::min(taken, reading());
  }

 private:
  /// The median time between two readings, measured once. A reading of CPU time asks the kernel, so it takes longer
  /// than many a call to a strategy.
  static std::uint64_t reading() {
    static const std::uint64_t median = [] {
      std::vector<std::uint64_t> taken(1001);
      for (std::uint64_t& one : taken) {
        const std::uint64_t start = now();
        one = now() - start;
      }
      std::nth_element(taken.begin(), taken.begin() + 500, taken.end());
      return taken[500];
    }();
    return median;
  }
};

}  // namespace reprise::replay
