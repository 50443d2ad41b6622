// SPDX-License-Identifier: Apache-2.0
#include "support/allocation_counter.hpp"

#include <cstddef>
#include <cstdint>
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
void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
/// The word before the returned address holds the address of the whole block.
void* allocate(std::size_t size, std::align_val_t alignment) noexcept {
  const auto aligned = static_cast<std::size_t>(alignment);
  void* const whole = allocate(size + aligned + sizeof(void*));
  if (whole == nullptr) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(whole) + sizeof(void*);
  void** const memory = reinterpret_cast<void**>((begin + aligned - 1) / aligned * aligned);
  memory[-1] = whole;
  return memory;
}
void free_aligned(void* memory) noexcept {
  if (memory != nullptr) std::free(static_cast<void**>(memory)[-1]);
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(allocate(size)); }
void* operator new[](std::size_t size) { return or_throw(allocate(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

void* operator new(std::size_t size, std::align_val_t to) { return or_throw(allocate(size, to)); }
void* operator new[](std::size_t size, std::align_val_t to) { return or_throw(allocate(size, to)); }
void* operator new(std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept { return allocate(size, to); }
void* operator new[](std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept {
  return allocate(size, to);
}
void operator delete(void* memory, std::align_val_t) noexcept { free_aligned(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { free_aligned(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { free_aligned(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { free_aligned(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { free_aligned(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { free_aligned(memory); }

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
