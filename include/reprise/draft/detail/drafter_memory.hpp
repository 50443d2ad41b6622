// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "reprise/core/detail/counted.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/origin_bits.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/index/next_tokens.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A sequence, or the first part of one, that a drafter hands to its memory.
struct EndedSequence {
  TokenSpan text = {};                               ///< all committed tokens
  std::size_t kept = 0;                              ///< leading tokens that were handed over before
  const OriginBits* origins = nullptr;               ///< of each token of `text`
  std::span<const NextTokens::RankedRow> rows = {};  ///< the rankings that the target has shown
  const CalibrationState* calibration = nullptr;     ///< as it is at the end; null: the sequence goes on
};

/// Where a drafter leaves its sequences, and which calibration its sequences begin with. Memory implements it. The
/// functions may be called from any thread.
class DrafterMemory : public Counted {
 public:
  [[nodiscard]] virtual CalibrationState calibration() const noexcept = 0;
  virtual void keep(const EndedSequence& ended) noexcept = 0;
};

/// A counted reference to a DrafterMemory, or to none.
using MemoryRef = Ref<DrafterMemory>;

}}}  // namespace reprise::detail
