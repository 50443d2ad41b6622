// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

namespace reprise::testing {

/// Counts what this thread allocates while it lives, and can make one allocation fail, or several. Needs
/// allocation_counter.cpp, which replaces the global operator new, in the program. One at a time per thread.
class AllocationWatch {
 public:
  /// `fail_at`: of the allocations watched by this object, the one that fails, from 1 on; 0: none. `failures`: how many
  /// fail from there on.
  explicit AllocationWatch(std::size_t fail_at = 0, std::size_t failures = 1) noexcept;
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;
  ~AllocationWatch();

  [[nodiscard]] std::size_t allocations() const noexcept;
};

/// Copies `original` again and again, a later allocation failing each time, and calls visit(copy) for each; the last
/// copy got all its memory.
template <class T, class Visit>
void for_each_copy_without_memory(const T& original, Visit visit) {
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    std::optional<T> copy;
    {
      const AllocationWatch watch(fail_at);
      copy.emplace(original);
      failed = watch.allocations() >= fail_at;
    }
    visit(*copy);
  }
}

/// All that this thread has ever allocated.
std::size_t allocations_so_far() noexcept;

}  // namespace reprise::testing
