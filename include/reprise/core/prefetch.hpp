// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reprise::inline v0 {

/// Prefetches a cache line that is needed soon. It is a hint: without a compiler builtin it does nothing.
inline void prefetch(const void* address) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#else
  static_cast<void>(address);
#endif
}

}  // namespace reprise
