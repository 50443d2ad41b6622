// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>

#include "reprise/core/detail/counted.hpp"
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
    if (state != CalibrationState()) shared_ = Ref(new (std::nothrow) Shared(state));
  }

  /// Returns a copy of the state. A reference to the built-in one would put 10 KB of zeros into each program.
  [[nodiscard]] CalibrationState state() const noexcept {
    return shared_.empty() ? CalibrationState() : shared_->state;
  }

 private:
  struct Shared : Counted {
    explicit Shared(const CalibrationState& shared) noexcept : state(shared) {}
    const CalibrationState state;
  };
  Ref<Shared> shared_;
};

}}}  // namespace reprise::detail
