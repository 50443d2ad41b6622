// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/probability.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/candidates.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"

namespace reprise::inline v0::detail {

/// A node of the draft of NgramDrafter, or a candidate for one.
struct NgramNode {
  Probability path;
  Token token = 0;
  NodeIndex parent = anchor_parent;
  std::uint8_t depth = 0;    // 1: directly after the anchor; at most max_nodes
  bool only_ranked = false;  // listed by a ranking, predicted by no voter; requery() may add voters later
  std::uint16_t length = 0;
  VoterSet voters = 0;
  TokenCalibrator::TrainingSample sample;

  [[nodiscard]] DraftNode node() const noexcept {
    const bool own = sample.source == EvidenceSource::context || sample.source == EvidenceSource::both;
    return {.token = token,
            .parent = parent,
            .path_probability = path,
            .match_length = length,
            .source = own ? DraftSource::context : DraftSource::history};
  }
};

/// Returns the voters for the first accepted token. A place that votes for a later one has voted for the first. If
/// nothing was sent, returns the voters for the target's token, so that a place can help while control sends no drafts.
[[nodiscard]] inline VoterSet helpful_voters(std::span<const NgramNode> nodes, const Outcome& outcome) noexcept {
  if (!outcome.accepted.empty()) {
    const auto first = static_cast<std::size_t>(outcome.accepted.front());
    return first < nodes.size() ? nodes[first].voters : 0;
  }
  if (!outcome.sent.empty()) return 0;
  for (const NgramNode& node : nodes)
    if (node.parent == anchor_parent && outcome.pick == node.token) return node.voters;
  return 0;
}

/// The position after `parent`, for which candidates are collected.
struct NgramPlace {
  NodeIndex parent = anchor_parent;
  std::size_t depth = 0;  // tokens of the draft before this position
  Probability path;
  VoterSet voters = 0;
  Token before = 0;
};

}  // namespace reprise::detail
