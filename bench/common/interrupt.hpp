// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reprise::tools {

/// While it lives, the first SIGINT or SIGTERM sets a flag instead of ending the program. A second one ends the
/// program. One object at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  ~InterruptFlag();

  /// True after the first of these signals.
  [[nodiscard]] static bool raised() noexcept;

 private:
  void (*interrupt_before_)(int);
  void (*terminate_before_)(int);
};

}  // namespace reprise::tools
