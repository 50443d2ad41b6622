// SPDX-License-Identifier: Apache-2.0
#include "support/allocation_counter.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t total = 0;
thread_local std::size_t watched = 0;
thread_local std::size_t failing = 0;
thread_local std::size_t failures = 0;  // from the failing one on

void* allocate(std::size_t size) noexcept {
  ++total;
  ++watched;
  if (failing != 0 && watched >= failing && watched - failing < failures) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}
void* allocate_or_throw(std::size_t size) {
  void* memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Over-aligned forms keep their own memory: nothing in the library asks for them.
void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace reprise::testing {

AllocationWatch::AllocationWatch(std::size_t fail_at, std::size_t how_many) noexcept {
  watched = 0;
  failing = fail_at;
  failures = how_many;
}
AllocationWatch::~AllocationWatch() { failing = 0; }
std::size_t AllocationWatch::allocations() const noexcept { return watched; }

std::size_t allocations_so_far() noexcept { return total; }

}  // namespace reprise::testing
