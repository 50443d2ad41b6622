// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise::replay {

/// The calibration of a drafter's probabilities, as a reliability diagram (Murphy and Winkler 1977; expected
/// calibration error as in Naeini et al. 2015).
///
/// It tests the conditional probability of a node: the probability that the target picks the node after it has picked
/// the node's parent. This is the node's path probability divided by its parent's. Each node that an outcome tests
/// counts once, in the bin of its claimed probability, unless its parent has probability zero.
///
/// It is for reports: no decision uses it. Counts are integers, so sums do not depend on the order of addition. A bin
/// holds up to 2^33 tests. Memory: half a kilobyte, regardless of the number of tests. Cost of record(): that of
/// for_each_tested(). Threads: a plain value; only one thread at a time may use it.
class Reliability {
 public:
  static constexpr std::size_t bin_count = 20;

  /// The tests of one bin of claimed probabilities. Bin i holds the claims in [i / 20, (i + 1) / 20); the last bin also
  /// includes 1.
  struct Bin {
    std::uint64_t tests = 0;
    std::uint64_t claimed = 0;  ///< sum of the claims, each as Probability::raw()
    std::uint64_t hits = 0;

    /// Returns the mean of the claims; 0 if there are no tests.
    [[nodiscard]] double mean_claim() const noexcept {
      return tests == 0 ? 0.0 : static_cast<double>(claimed) / Probability::scale / static_cast<double>(tests);
    }
    /// Returns the share of the tests that were hits; 0 if there are no tests.
    [[nodiscard]] double observed() const noexcept {
      return tests == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(tests);
    }
    Bin& operator+=(const Bin& other) noexcept {
      tests += other.tests;
      claimed += other.claimed;
      hits += other.hits;
      return *this;
    }
    friend bool operator==(const Bin&, const Bin&) = default;
  };

  /// Records one test: the drafter claimed the probability `claimed` for a token, and the target picked it (`hit`) or
  /// not.
  void record(Probability claimed, bool hit) noexcept {
    const auto bin = static_cast<std::size_t>(std::uint64_t{claimed.raw()} * bin_count / Probability::scale);
    bins_[std::min(bin, bin_count - 1)] += {1, claimed.raw(), hit ? std::uint64_t{1} : std::uint64_t{0}};
  }

  /// Records each node that `outcome` tests, except the children of nodes with probability zero: such children claim
  /// nothing.
  void record(const Outcome& outcome) noexcept {
    for_each_tested(outcome, [&](std::size_t index, bool hit) {
      const NodeIndex parent = outcome.draft[index].parent;
      const bool impossible = parent != anchor_parent &&
                              outcome.draft[static_cast<std::size_t>(parent)].path_probability == Probability::zero();
      if (!impossible) record(conditional_probability(outcome.draft, index), hit);
    });
  }

  [[nodiscard]] const std::array<Bin, bin_count>& bins() const noexcept { return bins_; }
  /// Returns the sum of all bins.
  [[nodiscard]] Bin total() const noexcept {
    Bin sum;
    for (const Bin& bin : bins_) sum += bin;
    return sum;
  }
  /// Returns the mean distance between claimed and observed probability over the bins, weighted by tests; 0 is perfect.
  /// Returns 0 if there are no tests.
  [[nodiscard]] double expected_calibration_error() const noexcept {
    const Bin all = total();
    if (all.tests == 0) return 0.0;
    double sum = 0;
    for (const Bin& bin : bins_) {
      const auto hits = static_cast<double>(bin.hits);
      const double claimed = static_cast<double>(bin.claimed) / Probability::scale;
      sum += hits > claimed ? hits - claimed : claimed - hits;
    }
    return sum / static_cast<double>(all.tests);
  }

  /// Adds the tests of `other`.
  Reliability& operator+=(const Reliability& other) noexcept {
    for (std::size_t i = 0; i < bin_count; ++i) bins_[i] += other.bins_[i];
    return *this;
  }
  friend bool operator==(const Reliability&, const Reliability&) = default;

 private:
  std::array<Bin, bin_count> bins_{};
};

}  // namespace reprise::replay
