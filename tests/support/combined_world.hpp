// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/lossless.hpp"
#include "reprise_testing/random.hpp"
#include "support/lent_context.hpp"
#include "support/scripted_verifier.hpp"
#include "support/strategies.hpp"

namespace reprise::testing {

/// Returns the nodes that a strategy drafts for an empty context.
template <class Strategy>
Nodes drafted_by(Strategy& strategy, const DraftBudget& budget = {}) {
  return propose(strategy, {}, budget, 256).nodes;
}
/// Returns the tokens from the anchor to a node, or none if the parents are malformed.
inline Tokens path_to(DraftView nodes, NodeIndex at) {
  Tokens path;
  for (std::size_t steps = 0; at != anchor_parent; ++steps) {
    if (at < 0 || static_cast<std::size_t>(at) >= nodes.size() || steps > nodes.size()) return {};
    path.insert(path.begin(), nodes[static_cast<std::size_t>(at)].token);
    at = nodes[static_cast<std::size_t>(at)].parent;
  }
  return path;
}

struct TreeOptions {
  std::size_t nodes = 8;
  Token vocabulary = 3;
  bool duplicates = true;         ///< siblings with the same token
  bool auxiliary = false;         ///< some nodes are auxiliary
  bool malformed = false;         ///< arbitrary parents, increasing probabilities
  Token auxiliary_tokens = 1000;  ///< the tokens of auxiliary nodes, all different, from here on
};

/// Returns a tree with parents first and decreasing probabilities, unless it is malformed.
inline Nodes random_tree(Random& random, const TreeOptions& options) {
  Nodes nodes;
  std::uint32_t left = Probability::scale;
  for (std::size_t i = random.below(options.nodes + 1); i > 0; --i) {
    left -= static_cast<std::uint32_t>(random.below(left / 3 + 1));
    DraftNode made{.token = static_cast<Token>(random.below(static_cast<std::size_t>(options.vocabulary))),
                   .parent = static_cast<NodeIndex>(random.below(nodes.size() + 1)) - 1,
                   .path_probability = Probability::from_raw(left),
                   .match_length = static_cast<std::uint16_t>(random.below(9)),
                   .source = static_cast<DraftSource>(random.below(6))};
    if (options.malformed && random.chance(30)) {
      made.parent = static_cast<NodeIndex>(random.below(20)) - 10;
      made.path_probability = Probability::from_raw(static_cast<std::uint32_t>(random.next()));
    }
    if (options.auxiliary && random.chance(30)) {
      made.auxiliary = true;
      made.token = options.auxiliary_tokens + static_cast<Token>(nodes.size());
    }
    const bool behind_auxiliary = made.parent >= 0 && static_cast<std::size_t>(made.parent) < nodes.size() &&
                                  nodes[static_cast<std::size_t>(made.parent)].auxiliary;
    if (!options.malformed && behind_auxiliary && !made.auxiliary) continue;
    const bool repeats = std::any_of(nodes.begin(), nodes.end(), [&](const DraftNode& other) {
      return other.parent == made.parent && other.token == made.token;
    });
    if (options.duplicates || !repeats) nodes.push_back(made);
  }
  return nodes;
}

/// Expects the output, finish reason and stream of plain decoding: on chains and trees, greedy and sampled, wherever
/// generation ends. make(prompt) returns a fresh strategy. Returns the passes saved in total.
template <class Make>
std::size_t passes_saved_losslessly(Make make) {
  std::size_t saved = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    ScriptedOptions options;
    options.seed = seed;
    options.vocabulary = static_cast<Token>(2 + seed % 5);
    options.sampled = seed % 3 == 0;
    options.capabilities.max_leaves = seed % 2 == 0 ? 1 : unlimited;
    options.capabilities.max_rows = seed % 4 == 1 ? 6 : unlimited;
    Limits limits;
    limits.max_tokens = 30 + seed;
    if (seed % 5 == 0) limits.eos = {static_cast<Token>(seed % 2)};
    const Tokens prompt = {1, 0, 1, 1, 0, static_cast<Token>(seed % 2)};
    const LosslessReport report = compare_lossless([&](TokenSpan tokens) { return ScriptedVerifier(options, tokens); },
                                                   prompt, limits, make(TokenSpan(prompt)));
    EXPECT_TRUE(report.identical()) << "seed " << seed << ": " << report.message;
    EXPECT_EQ(report.drafted.error, "");
    saved +=
        report.plain.statistics.passes - std::min(report.plain.statistics.passes, report.drafted.statistics.passes);
  }
  return saved;
}

}  // namespace reprise::testing
