// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "reprise/core/strategy.hpp"

namespace reprise::inline v0 {

/// Drafts nothing. The result is plain decoding, the baseline of every comparison.
struct NoDrafter {
  void begin(TokenSpan) noexcept {}
  void observe(TokenSpan, std::size_t, Origin) noexcept {}
  void propose(TokenSpan, Draft&) const noexcept {}
  void feedback(TokenSpan, const Outcome&) noexcept {}
  void truncate(TokenSpan, std::size_t) noexcept {}
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return 0; }
};
static_assert(DraftStrategy<NoDrafter>);

}  // namespace reprise
