// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "reprise_testing/detail/probe_text.hpp"
#include "reprise_testing/report.hpp"

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
class RowEffect {
 public:
  /// Returns the picks of passes without a draft.
  [[nodiscard]] PickCounts& plain() noexcept { return plain_; }
  /// Returns where a run counts its picks; null if none is counted. Picks that differ then do not end the run.
  [[nodiscard]] PickCounts* counts() const noexcept { return counts_; }
  /// Shows the effect in the last finding of `report`, which has the passes without a draft.
  void show_in_last_of(const Report& report) noexcept { finding_ = report.findings.size() - 1; }

  /// Runs `run()` and counts its picks. Returns a failure other than a pick that differs.
  template <class Run>
  std::optional<Difference> counted(PickCounts& counts, const Run& run) {
    counts_ = &counts;
    auto failure = run();
    counts_ = nullptr;
    return failure;
  }
  /// Returns true, and says so in the report, if the row counts explain a difference: in the run that `again()`
  /// repeats, hardly more picks differ than in passes of as many rows without a draft. measure(rows) runs such passes.
  template <class Again, class Measure>
  [[nodiscard]] bool excuses(Report& report, const Difference& difference, const Again& again, const Measure& measure) {
    PickCounts drafted;
    if (!difference.is_pick || counted(drafted, again)) return false;
    for (const auto& [rows, unused] : drafted.by_rows())
      if (measured_.insert(rows).second) measure(rows);
    if (!explains(drafted)) return false;
    show(report);
    report.excuse(excuse(drafted, report.findings[finding_].what));
    return true;
  }
  /// Shows the effect in its finding, if there is one.
  void show(Report& report) const {
    if (!plain_.first()) return;
    Report::Finding& shown = report.findings[finding_];
    shown.verdict = plain_.first()->near_tie ? Verdict::near_tie : Verdict::wrong;
    shown.near_ties = shown.verdict == Verdict::near_tie ? plain_.sum().differed : 0;
    shown.message = text();
  }

 private:
  /// True if some picks depend on the number of rows. If more than a third differs, the engine reads wrong rows.
  [[nodiscard]] bool found() const {
    const PickCounts::Count all = plain_.sum();
    return all.differed > 0 && 3 * all.differed <= all.compared;
  }
  /// True if picks with drafts hardly differ more often than without: at most three more than twice as often as in
  /// passes without a draft of the worst of their row counts. Other rows change what later passes read from the cache.
  [[nodiscard]] bool explains(const PickCounts& drafted) const {
    const PickCounts::Count all = drafted.sum();
    return found() && std::ranges::any_of(drafted.by_rows(), [&](const auto& of_rows) {
             const auto known = plain_.by_rows().find(of_rows.first);
             if (known == plain_.by_rows().end()) return false;
             const PickCounts::Count& count = known->second;
             return all.differed * count.compared <= 2 * count.differed * all.compared + 3 * count.compared;
           });
  }
  /// Returns the first difference as text, with the row counts that show the effect if there is one.
  [[nodiscard]] std::string text() const {
    if (!found()) return plain_.first()->message;
    std::string rows;
    for (const auto& [count, picks] : plain_.by_rows())
      if (picks.differed > 0) rows += (rows.empty() ? "" : ", ") + std::to_string(count);
    const PickCounts::Count all = plain_.sum();
    return "the picks depend on the number of rows of a pass: without any draft, " + std::to_string(all.differed) +
           " of " + std::to_string(all.compared) + " differ, in passes of this many rows: " + rows +
           ". The engine's kernels cause this, not its rollback: see docs/lossless.md, \"Batch shape in real "
           "kernels\". "
           "The first: " +
           plain_.first()->message;
  }
  /// Returns the reason why a finding with these picks is not blamed. `what`: the finding that shows the effect.
  [[nodiscard]] static std::string excuse(const PickCounts& drafted, const std::string& what) {
    const PickCounts::Count all = drafted.sum();
    return "not blamed: " + std::to_string(all.differed) + " of " + std::to_string(all.compared) +
           " picks differ, hardly more than without drafts (\"" + what + "\"): " + drafted.first()->message;
  }

  PickCounts plain_;
  PickCounts* counts_ = nullptr;
  std::set<std::size_t> measured_;  // row counts that measure() has run
  std::size_t finding_ = 0;         // index in the report
};

}  // namespace reprise::testing::detail
