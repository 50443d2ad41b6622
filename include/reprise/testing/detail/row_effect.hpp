// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "reprise/testing/detail/probe_text.hpp"

namespace reprise::testing::detail {

/// Counts of picks, by the number of rows of their pass, in runs that go on after a pick that differs.
class PickCounts {
 public:
  struct Count {
    std::size_t compared = 0;
    std::size_t differed = 0;
  };

  /// Adds the picks that were compared in a pass of `rows` rows, and the first of them that differs, if one does.
  void add(std::size_t rows, std::size_t compared, const std::optional<Difference>& difference) {
    Count& count = by_rows_[rows];
    count.compared += compared;
    if (!difference) return;
    ++count.differed;
    if (!first_ || (first_->near_tie && !difference->near_tie)) first_ = difference;
  }
  /// Returns the first of the worst differences.
  [[nodiscard]] const std::optional<Difference>& first() const noexcept { return first_; }
  [[nodiscard]] const std::map<std::size_t, Count>& by_rows() const noexcept { return by_rows_; }
  [[nodiscard]] Count sum() const {
    Count sum;
    for (const auto& [rows, count] : by_rows_) {
      sum.compared += count.compared;
      sum.differed += count.differed;
    }
    return sum;
  }

 private:
  std::map<std::size_t, Count> by_rows_;
  std::optional<Difference> first_;
};

/// How an engine's picks depend on the number of rows of a pass, as passes without a draft show it. Such a pass has
/// nothing to roll back. So a difference that is as rare there as with drafts is no fault of the rollback.
struct RowEffect {
  PickCounts plain;  ///< of passes without a draft

  /// True if some picks depend on the number of rows. If more than a third differs, the engine reads wrong rows.
  [[nodiscard]] bool found() const {
    const PickCounts::Count all = plain.sum();
    return all.differed > 0 && 3 * all.differed <= all.compared;
  }
  /// True if picks with drafts hardly differ more often than without: at most three more than twice as often as in
  /// passes without a draft of the worst of their row counts. Other rows change what later passes read from the cache.
  [[nodiscard]] bool explains(const PickCounts& drafted) const {
    const PickCounts::Count all = drafted.sum();
    return found() && std::ranges::any_of(drafted.by_rows(), [&](const auto& of_rows) {
             const auto known = plain.by_rows().find(of_rows.first);
             if (known == plain.by_rows().end()) return false;
             const PickCounts::Count& count = known->second;
             return all.differed * count.compared <= 2 * count.differed * all.compared + 3 * count.compared;
           });
  }
  /// Returns the first difference as text, with the row counts that show the effect if there is one.
  [[nodiscard]] std::string text() const {
    if (!found()) return plain.first()->message;
    std::string rows;
    for (const auto& [count, picks] : plain.by_rows())
      if (picks.differed > 0) rows += (rows.empty() ? "" : ", ") + std::to_string(count);
    const PickCounts::Count all = plain.sum();
    return "the picks depend on the number of rows of a pass: without any draft, " + std::to_string(all.differed) +
           " of " + std::to_string(all.compared) + " differ, in passes of this many rows: " + rows +
           ". The engine's kernels cause this, not its rollback: see docs/lossless.md, \"Batch shape in real "
           "kernels\". "
           "The first: " +
           plain.first()->message;
  }
  /// Returns the reason why a finding with these picks is not blamed. `what`: the finding that shows the effect.
  [[nodiscard]] static std::string excuse(const PickCounts& drafted, const std::string& what) {
    const PickCounts::Count all = drafted.sum();
    return "not blamed: " + std::to_string(all.differed) + " of " + std::to_string(all.compared) +
           " picks differ, hardly more than without drafts (\"" + what + "\"): " + drafted.first()->message;
  }
};

}  // namespace reprise::testing::detail
