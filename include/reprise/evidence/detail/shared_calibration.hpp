// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include "reprise/evidence/calibration_state.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A calibration that does not change. Its copies share one state, so a server whose sessions begin with the same
/// calibration holds its 10 KB once. Without memory for the state, it is the built-in calibration.
///
/// Threads: one at a time for each copy; copies are independent.
class SharedCalibration {
 public:
  /// The built-in calibration, which takes no memory.
  SharedCalibration() noexcept = default;
  SharedCalibration(const CalibrationState& state) noexcept {  // NOLINT(google-explicit-constructor)
    if (state != CalibrationState()) shared_ = new (std::nothrow) Shared{state};
  }
  SharedCalibration(const SharedCalibration& other) noexcept : shared_(other.shared_) {
    if (shared_ != nullptr) shared_->copies.fetch_add(1, std::memory_order_relaxed);
  }
  SharedCalibration& operator=(SharedCalibration other) noexcept {
    std::swap(shared_, other.shared_);
    return *this;
  }
  ~SharedCalibration() {
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): the analyzer does not follow the count
    if (shared_ != nullptr && shared_->copies.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared_;
  }

  /// Returns a copy of the state. A reference to the built-in one would put 10 KB of zeros into each program.
  [[nodiscard]] CalibrationState state() const noexcept {
    return shared_ == nullptr ? CalibrationState() : shared_->state;
  }

 private:
  struct Shared {
    CalibrationState state;
    std::atomic<std::size_t> copies = 1;
  };
  Shared* shared_ = nullptr;
};

}}}  // namespace reprise::detail
