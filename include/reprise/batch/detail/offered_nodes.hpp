// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/loop/round.hpp"

/// \file The worth of a drafted token in a batch, in classes; the ratio of adjacent classes is 2^(1/32). The classes
/// are fine enough to order tokens, and few enough to count tokens in a histogram, which the planner reads.
namespace reprise { inline namespace v0 { namespace detail {

/// Tokens are sorted into classes by worth, the most valuable first. Class c is worth 2^(-c / 32). Class 0 is reserved
/// for tokens of sampled drafts, whatever their worth. A token worth less than 2^-11 is ignored.
inline constexpr std::int32_t worth_halvings = 11;
inline constexpr std::size_t worth_classes = std::size_t{worth_halvings} * coarse_steps;
/// The worth of each class, in UnitScale.
inline constexpr std::array<std::uint32_t, worth_classes> worth_of_class = falling_powers<worth_classes>();

/// Returns the class of a token with path probability `path` (in ProbabilityScale). `sum` (in UnitScale) is the sum of
/// the path probabilities before it in its sequence. The worth is ln(1 + sum + path) - ln(1 + sum), which is about path
/// / (1 + sum + path / 2). `least` is a lower bound on the divisor. Returns worth_classes if the token is ignored.
inline std::size_t worth_class(std::uint32_t path, std::uint64_t sum, std::uint64_t least) noexcept {
  if (path == 0) return worth_classes;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t tokens = std::max(cost_one + sum + rescaled<ProbabilityScale, UnitScale>(path / 2), least);
  const std::int32_t below = (ProbabilityScale::bits - UnitScale::bits) * coarse_steps +
                             coarse_log2(static_cast<std::uint32_t>(std::min(tokens, most))) - coarse_log2(path);
  return static_cast<std::size_t>(std::clamp<std::int32_t>(below, 1, worth_classes));
}

/// Returns the first class that is worth less than `value` (in UnitScale), up to rounding. Two classes later, the worth
/// is certainly lower.
inline std::size_t class_below(std::int64_t value) noexcept {
  if (value >= cost_one) return 1;
  if (value <= Fixed<worth_halvings>::floor(cost_one)) return worth_classes;
  const std::int32_t class_of_value = UnitScale::bits * coarse_steps - coarse_log2(static_cast<std::uint32_t>(value));
  return static_cast<std::size_t>(std::clamp<std::int32_t>(class_of_value + 1, 1, worth_classes));
}

/// The nodes of all entries of a plan, by class of worth.
class OfferedNodes {
 public:
  static constexpr std::size_t most_nodes = 256;  // upper bound for one sequence

  /// The terms that decide which nodes are counted, and in which class.
  struct Bounds {
    std::uint64_t least_tokens = 0;  ///< minimum number of tokens that a sequence is assumed to get, in UnitScale
    std::size_t least_class = 0;     ///< first class whose nodes are never worth their cost
    /// Replaces least_class for sampled drafts: the first class whose nodes are worth less than the cost of one more
    /// row at the size of the last pass.
    std::size_t stop_class = 0;
    std::size_t row_limit = 0;  ///< upper bound on drafted rows
  };

  explicit OfferedNodes(std::size_t max_nodes) noexcept : max_nodes_(max_nodes) {}

  [[nodiscard]] bool reserve(std::size_t sequences) noexcept {
    return classes_.reserve(sequences * max_nodes_) && sequences_.reserve(sequences);
  }
  void clear() noexcept { sequences_.clear(); }

  /// Counts the nodes of all offers. `entries`: a BatchEntry for each. Requires an earlier reserve() for this many.
  template <class Entry>
  void count(std::span<const Entry> entries, Bounds bounds) noexcept {
    counts_.fill(0);
    offered_ = 0;
    worthwhile_ = 0;
    any_replayed_ = false;
    std::size_t enough = 2 * bounds.row_limit;  // worthwhile nodes after which unreachable classes are dropped
    for (const Entry& entry : entries) {
      if (worthwhile_ > enough) {
        bounds.least_class = std::min(bounds.least_class, first_left_out(bounds.row_limit));
        enough = worthwhile_ + bounds.row_limit;
      }
      count(entry.offer, bounds);
    }
  }

  [[nodiscard]] std::size_t sequences() const noexcept { return sequences_.size(); }
  /// Returns the number of sendable nodes in all offers.
  [[nodiscard]] std::size_t offered() const noexcept { return offered_; }
  /// Returns the number of worthwhile nodes in all drafts.
  [[nodiscard]] std::size_t worthwhile() const noexcept { return worthwhile_; }
  [[nodiscard]] bool any_sampled() const noexcept { return counts_[0] > 0; }
  /// Returns the number of nodes in class c.
  [[nodiscard]] std::uint32_t in_class(std::size_t c) const noexcept { return counts_[c]; }
  /// Returns true if a rejection in any sequence (any_replayed), or in sequence i (replayed), makes tokens run again.
  [[nodiscard]] bool any_replayed() const noexcept { return any_replayed_; }
  [[nodiscard]] bool replayed(std::size_t i) const noexcept { return sequences_[i].replayed; }
  /// Return the number of worthwhile nodes (nodes_of) and of pending rows (pending_of) of sequence i.
  [[nodiscard]] std::size_t nodes_of(std::size_t i) const noexcept { return sequences_[i].nodes; }
  [[nodiscard]] std::size_t pending_of(std::size_t i) const noexcept { return sequences_[i].pending; }
  /// Returns the classes of the nodes of sequence i, in non-decreasing order.
  [[nodiscard]] const std::uint16_t* classes_of(std::size_t i) const noexcept {
    return classes_.data() + i * max_nodes_;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return classes_.memory_bytes() + sequences_.memory_bytes();
  }

 private:
  /// The node and row counts of one sequence.
  struct Sequence {
    std::uint32_t nodes = 0;
    std::uint32_t pending = 0;
    bool replayed = false;
  };

  void count(const Offer& offer, const Bounds& bounds) noexcept {
    std::uint16_t* const classes = classes_.data() + sequences_.size() * max_nodes_;
    const bool sampled = offer.draft.kind() == DraftKind::sampled;
    const std::size_t first_refused = std::min(sampled ? bounds.stop_class : bounds.least_class, worth_classes);
    const std::size_t size = std::min(offer.sendable.size(), max_nodes_);
    const std::uint64_t least_tokens = bounds.least_tokens;
    std::uint64_t sum = 0;
    std::size_t last = 1;
    std::size_t n = 0;
    for (; n < size; ++n) {
      const std::uint32_t path = offer.draft[static_cast<std::size_t>(offer.sendable[n])].path_probability.raw();
      // Classes never decrease, so that even a draft that is out of order is cut to a prefix.
      last = std::max(last, worth_class(path, sum, least_tokens));
      if (last >= first_refused) break;
      sum += rescaled<ProbabilityScale, UnitScale>(path);
      classes[n] = static_cast<std::uint16_t>(sampled ? 0 : last);
      ++counts_[classes[n]];
    }
    sequences_.push_reserved(
        {static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(offer.pending), offer.replayed});
    any_replayed_ = any_replayed_ || offer.replayed;
    worthwhile_ += n;
    offered_ += offer.sendable.size();
  }
  /// Returns the first class from which no node can be sent, because the classes before it already hold `rows` nodes.
  [[nodiscard]] std::size_t first_left_out(std::size_t rows) const noexcept {
    std::size_t c = 0;
    for (std::size_t nodes = 0; c < worth_classes && nodes < rows; ++c) nodes += counts_[c];
    return std::max<std::size_t>(c, 1);
  }

  std::size_t max_nodes_;
  bool any_replayed_ = false;
  std::size_t offered_ = 0;
  std::size_t worthwhile_ = 0;
  std::array<std::uint32_t, worth_classes> counts_{};
  Buffer<std::uint16_t> classes_;  // the elements of sequence i begin at index i x max_nodes_
  Buffer<Sequence> sequences_;
};

}}}  // namespace reprise::detail
