// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

namespace reprise::testing {

/// Counts the allocations of this thread while the object exists, and can make one or several of them fail. The program
/// must link allocation_counter.cpp, which replaces the global operator new. At most one object per thread.
class AllocationWatch {
 public:
  /// `fail_at`: the number of the first failing allocation, counted from 1 in this object; 0: none. `failures`: how
  /// many allocations fail from there on.
  explicit AllocationWatch(std::size_t fail_at = 0, std::size_t failures = 1) noexcept;
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;
  ~AllocationWatch();

  [[nodiscard]] std::size_t allocations() const noexcept;
};

/// Copies `original` repeatedly, each time with a later allocation failing, and calls visit(copy) for each copy. The
/// last copy is made with all its memory.
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

/// Returns the number of all allocations of this thread so far.
std::size_t allocations_so_far() noexcept;

}  // namespace reprise::testing
