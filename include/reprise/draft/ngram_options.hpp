// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/datastore.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/detail/shared_calibration.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/next_token_counts.hpp"
#include "reprise/index/ranked_rows.hpp"

namespace reprise { inline namespace v0 {

/// Settings of NgramDrafter. All have working defaults.
struct NgramOptions {
  static constexpr std::size_t max_stores = 4;
  /// A CalibrationState of 10 KB, which state() returns. Copies share its memory, which memory_bytes() leaves out.
  using Prior = detail::SharedCalibration;

  /// The minimum probability of a proposed path. DraftBudget::min_path_probability can only raise it.
  Probability min_path_probability = Probability::ratio(1, 500);
  Prior prior = {};                                      ///< the initial calibration; assign a CalibrationState
  std::uint64_t key = IndexOptions{}.key;                ///< see IndexOptions
  std::size_t max_bytes = unlimited;                     ///< memory limit of the index; see IndexOptions
  std::uint32_t vocabulary = IndexOptions{}.vocabulary;  ///< number of token ids; see IndexOptions
  std::size_t max_evidence = 1 << 16;  ///< maximum number of evidence tokens that rebase() keeps; 0: none
  /// Other texts, such as past sequences. Occurrences of the context's last tokens in these texts also vote for the
  /// next token (see NgramDrafter). The stores must outlive the drafter and its copies. Other threads may write to
  /// stores that allow it. An occurrence in a store does not vote if one in the context has a longer unbroken
  /// agreement, up to 32 tokens. Evidence from one store alone is calibrated separately for each index of this array.
  ///
  /// A store that does not help is asked for fewer drafts. It helps if one of its places votes for an accepted token,
  /// or for the target's token if nothing was sent. A store whose places may not vote does not help. After 128 drafts
  /// in a row without help, 1 draft is skipped before the next one that asks, then 3, 7, 15 and 31. One help ends this.
  /// Before the first help since begin(), 16 drafts count as 128. The count is part of the drafter: copies keep it, and
  /// so do truncate() and rebase().
  std::array<DatastoreRef, max_stores> stores{};
  /// Statistics of the tokens that follow one and two tokens, for example in past sequences of the same tenant. Counted
  /// tokens are candidates, and counts are evidence for all candidates. The statistics must outlive the drafter and its
  /// copies; another thread may write to them. Null: none.
  const NextTokenCounts* next_tokens = nullptr;
  /// Rankings that the target has shown in past sequences of the same tenant (RankedRows::add()). They must outlive the
  /// drafter and its copies; another thread may write to them. Null: none.
  const RankedRows* ranked_rows = nullptr;
  /// Number of likeliest tokens that the drafter wants for each row (top_k_wanted()), at most Ranking::most. 0: none,
  /// and rows that are shown anyway are ignored.
  std::size_t top_k = Ranking::most;
  /// Memory limit of the rows of the current sequence, allocated when the target has shown the first row.
  std::size_t row_bytes = std::size_t{320} << 10;
};

}}  // namespace reprise
