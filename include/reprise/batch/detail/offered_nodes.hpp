// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/batch/batch_plan.hpp"
#include "reprise/batch/detail/worth.hpp"
#include "reprise/core/buffer.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"

/// \file The nodes offered to a pass, counted by worth: the histogram that the planner reads.
namespace reprise::inline v0::detail {

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

  /// Counts the nodes of all entries. Requires an earlier reserve() for this many entries.
  void count(std::span<const BatchEntry> entries, Bounds bounds) noexcept {
    counts_.fill(0);
    offered_ = 0;
    worthwhile_ = 0;
    any_replayed_ = false;
    std::size_t enough = 2 * bounds.row_limit;  // worthwhile nodes after which unreachable classes are dropped
    for (const BatchEntry& entry : entries) {
      if (worthwhile_ > enough) {
        bounds.least_class = std::min(bounds.least_class, first_left_out(bounds.row_limit));
        enough = worthwhile_ + bounds.row_limit;
      }
      count(entry, bounds);
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

  void count(const BatchEntry& entry, const Bounds& bounds) noexcept {
    const Offer& offer = entry.offer;
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

}  // namespace reprise::detail
