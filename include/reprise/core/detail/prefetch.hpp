// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reprise/core/detail/contract.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Prefetches the cache line at `address`. Does nothing if the compiler has no builtin for it.
inline void prefetch(const void* address) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#else
  static_cast<void>(address);
#endif
}

}}}  // namespace reprise::detail
