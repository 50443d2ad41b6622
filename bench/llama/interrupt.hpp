// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reprise::llama {

/// While it lives, the first SIGINT sets a flag instead of ending the program. A second SIGINT ends the program. One
/// object at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  ~InterruptFlag();

  /// True after the first SIGINT.
  [[nodiscard]] static bool raised() noexcept;

 private:
  void (*before_)(int);
};

}  // namespace reprise::llama
