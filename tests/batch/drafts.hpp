// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <span>
#include <vector>

#include "reprise/batch/planner.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// Offers for a planner, as sessions make them, with the arrays that they refer to.
class Drafts {
 public:
  /// A chain whose nodes have these path probabilities, in percent.
  BatchEntry& chain(std::initializer_list<unsigned> percent, DraftKind kind = DraftKind::ordered) {
    return chain(std::vector<unsigned>(percent), kind);
  }
  BatchEntry& chain(const std::vector<unsigned>& percent, DraftKind kind = DraftKind::ordered) {
    std::vector<DraftNode> nodes;
    for (const unsigned p : percent)
      nodes.push_back({.token = 1,
                       .parent = static_cast<NodeIndex>(nodes.size()) - 1,
                       .path_probability = Probability::ratio(p, 100)});
    return add(std::move(nodes), kind);
  }
  /// A chain of at most `most` nodes with random, decreasing probabilities of at least `least` percent.
  BatchEntry& random(Random& random, std::size_t most, std::size_t least = 1) {
    std::vector<unsigned> percent(random.below(most + 1));
    for (unsigned& p : percent) p = static_cast<unsigned>(least + random.below(101 - least));
    std::sort(percent.rbegin(), percent.rend());
    return chain(percent);
  }
  BatchEntry& add(std::vector<DraftNode> nodes, DraftKind kind) {
    drafts_.push_back(std::move(nodes));
    const std::vector<DraftNode>& draft = drafts_.back();
    std::vector<NodeIndex>& sendable = sendable_.emplace_back();
    for (std::size_t i = 0; i < draft.size(); ++i) sendable.push_back(static_cast<NodeIndex>(i));
    return entries_.emplace_back(BatchEntry{{{draft, kind}, sendable, 1}, 100});
  }
  [[nodiscard]] std::span<const BatchEntry> entries() const { return entries_; }
  [[nodiscard]] double probability(std::size_t i, std::size_t node) const {
    return drafts_[i][node].path_probability.to_double();
  }

 private:
  std::deque<std::vector<DraftNode>> drafts_;
  std::deque<std::vector<NodeIndex>> sendable_;
  std::vector<BatchEntry> entries_;
};

}  // namespace reprise::testing
