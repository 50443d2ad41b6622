// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "reprise/core/strategy.hpp"

namespace reprise {

/// Drafts nothing: plain decoding, the baseline that everything is compared with.
struct NoDraft {
  void begin(TokenSpan) noexcept {}
  void observe(TokenSpan, Origin) noexcept {}
  void propose(const DraftBudget&, Draft&) const noexcept {}
  void feedback(const Outcome&) noexcept {}
  void truncate(std::size_t) noexcept {}
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return 0; }
};
static_assert(DraftStrategy<NoDraft>);

}  // namespace reprise
