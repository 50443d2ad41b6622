// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "reprise/core/detail/language.hpp"

namespace reprise::inline v0::detail {

/// Decides for which drafts a datastore is asked. A store that has helped is asked for every draft, until 128 drafts
/// in a row have passed without help. Then 1 draft is skipped before the next one that asks, then 3, 7, 15 and at most
/// 31. One help ends this. A store that has not helped yet is asked for 16 drafts before the first one is skipped,
/// because many sequences are short.
///
/// So a store that never helps is asked for 16 + 4 drafts, and then for 1 in 32. A store that begins to help is asked
/// after at most 31 skipped drafts. The schedule changes only with learn(), so a draft that is proposed again asks the
/// same stores.
///
/// Cost: a few instructions. Memory: 2 bytes. Threads: one at a time; copies are independent.
class StoreSchedule {
 public:
  static constexpr int patience = 128;       ///< drafts without help before the first one is skipped, after a help
  static constexpr int first_patience = 16;  ///< the same, before the first help
  static constexpr int most_skipped = 31;    ///< maximum number of drafts in a row that are skipped

  /// True if the next draft asks the store.
  [[nodiscard]] constexpr bool due() const noexcept { return left_ == 0; }
  /// Learns the result of a draft. `helped`: see helpful_voters(); false if the draft did not ask the store.
  constexpr void learn(bool helped) noexcept {
    if (!due()) {
      --left_;
    } else if (helped) {
      unhelped_ = 0;
    } else {
      unhelped_ = static_cast<std::uint8_t>(std::min(unhelped_ + 1, patience + most_doublings));
      if (unhelped_ >= patience) left_ = static_cast<std::uint8_t>((2 << (unhelped_ - patience)) - 1);
    }
  }

  friend bool operator==(const StoreSchedule&, const StoreSchedule&) = default;

 private:
  static constexpr int most_doublings = 4;
  static_assert((2 << most_doublings) - 1 == most_skipped);

  std::uint8_t unhelped_ = patience - first_patience;  // drafts in a row that asked without help
  std::uint8_t left_ = 0;                              // drafts that are still skipped
};

}  // namespace reprise::inline v0::detail
