// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace reprise { inline namespace v0 { namespace detail {

/// An object on the heap that lives as long as a Ref refers to it. Like the object of a std::shared_ptr, but a
/// reference to it can be made without an allocation, and so without an exception.
class Counted {
 public:
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  /// Returns the number of references.
  [[nodiscard]] std::size_t references() const noexcept { return references_.load(std::memory_order_acquire); }

 protected:
  Counted() noexcept = default;
  virtual ~Counted() = default;

 private:
  template <class T>
  friend class Ref;
  std::atomic<std::size_t> references_ = 0;
};

/// A reference to a Counted, or to none. Threads: one at a time for each reference.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  explicit Ref(T* counted) noexcept : counted_(counted) {
    if (counted_ != nullptr) base().references_.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(const Ref& other) noexcept : Ref(other.counted_) {}
  Ref(Ref&& other) noexcept : counted_(std::exchange(other.counted_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(counted_, other.counted_);
    return *this;
  }
  ~Ref() {
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): the analyzer does not follow the count; so too in base()
    if (counted_ != nullptr && base().references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &base();
  }

  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.counted_ == b.counted_; }
  [[nodiscard]] bool empty() const noexcept { return counted_ == nullptr; }
  [[nodiscard]] T* operator->() const noexcept { return counted_; }
  [[nodiscard]] T& operator*() const noexcept { return *counted_; }

 private:
  [[nodiscard]] Counted& base() const noexcept { return *counted_; }  // NOLINT(clang-analyzer-cplusplus.NewDelete)
  T* counted_ = nullptr;
};

}}}  // namespace reprise::detail
