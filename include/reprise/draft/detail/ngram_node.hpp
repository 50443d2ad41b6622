// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/core/draft.hpp"
#include "reprise/core/probability.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/candidates.hpp"
#include "reprise/evidence/token_calibrator.hpp"

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

/// The position after `parent`, for which candidates are collected.
struct NgramPlace {
  NodeIndex parent = anchor_parent;
  std::size_t depth = 0;  // tokens of the draft before this position
  Probability path;
  VoterSet voters = 0;
  Token before = 0;
};

}  // namespace reprise::detail
