// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reprise::inline v0 {

/// Asks for a cache line that is needed soon. A hint: on compilers without such a builtin it does nothing.
inline void prefetch(const void* address) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#else
  static_cast<void>(address);
#endif
}

}  // namespace reprise
