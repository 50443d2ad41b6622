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
#include "reprise/testing/check_strategy.hpp"
#include "reprise/testing/lossless.hpp"
#include "reprise/testing/random.hpp"
#include "reprise/testing/scripted_verifier.hpp"

namespace reprise::testing {

using Tokens = std::vector<Token>;
using Nodes = std::vector<DraftNode>;

inline DraftNode node(Token token, NodeIndex parent, std::uint32_t percent, DraftSource source = DraftSource::unknown) {
  return {.token = token, .parent = parent, .path_probability = Probability::ratio(percent, 100), .source = source};
}

template <class Strategy>
Nodes drafted_by(Strategy& strategy, const DraftBudget& budget = {}) {
  std::vector<DraftNode> storage(256);
  Draft draft(storage);
  strategy.propose(budget, draft);
  return {draft.view().begin(), draft.view().end()};
}
inline Tokens tokens_of(const Nodes& nodes) {
  Tokens tokens;
  for (const DraftNode& node : nodes) tokens.push_back(node.token);
  return tokens;
}
/// The tokens from the anchor to a node; empty for one whose parents make no sense.
inline Tokens path_to(DraftView nodes, NodeIndex at) {
  Tokens path;
  for (std::size_t steps = 0; at != anchor_parent; ++steps) {
    if (at < 0 || static_cast<std::size_t>(at) >= nodes.size() || steps > nodes.size()) return {};
    path.insert(path.begin(), nodes[static_cast<std::size_t>(at)].token);
    at = nodes[static_cast<std::size_t>(at)].parent;
  }
  return path;
}

/// An outcome that outlives feedback().
struct KeptOutcome {
  Nodes draft;
  std::vector<NodeIndex> sent;
  std::vector<NodeIndex> accepted;
  std::optional<Token> pick;
  Cut cut = Cut::none;
  std::vector<Candidate> revealed;

  KeptOutcome() = default;
  explicit KeptOutcome(const Outcome& outcome)
      : draft(outcome.draft.begin(), outcome.draft.end()),
        sent(outcome.sent.begin(), outcome.sent.end()),
        accepted(outcome.accepted.begin(), outcome.accepted.end()),
        pick(outcome.pick),
        cut(outcome.cut),
        revealed(outcome.revealed.begin(), outcome.revealed.end()) {}
  [[nodiscard]] DraftView view() const { return {draft, DraftKind::ordered}; }
};

/// What a scripted strategy was told.
struct Told {
  std::vector<std::string> calls;
  std::vector<KeptOutcome> outcomes;
  Nodes proposed;
};

/// Drafts what it is given, whatever the context, and writes down what it is told. Copies write to the same log.
struct Scripted {
  Nodes nodes;
  DraftKind kind = DraftKind::ordered;
  bool left_out = false;
  std::shared_ptr<Told> told = std::make_shared<Told>();

  void begin(TokenSpan tokens) { told->calls.push_back("begin " + std::to_string(tokens.size())); }
  void observe(TokenSpan tokens, Origin) { told->calls.push_back("observe " + std::to_string(tokens.size())); }
  void truncate(std::size_t size) { told->calls.push_back("truncate " + std::to_string(size)); }
  void propose(const DraftBudget&, Draft& draft) {
    told->calls.emplace_back("propose");
    draft.clear(kind);
    for (const DraftNode& node : nodes) draft.push(node);
    if (left_out) draft.leave_out();
    told->proposed = nodes;
  }
  void feedback(const Outcome& outcome) {
    told->calls.emplace_back("feedback");
    told->outcomes.emplace_back(outcome);
  }
};
/// One whose claims are believed as they are.
struct Calibrated : Scripted {
  static constexpr bool calibrated = true;
};
/// One with all that is optional for a context.
struct Keeping : Scripted {
  std::size_t bytes = 0;
  void rebase(TokenSpan tokens) { told->calls.push_back("rebase " + std::to_string(tokens.size())); }
  void reserve(std::size_t max_context) { told->calls.push_back("reserve " + std::to_string(max_context)); }
  [[nodiscard]] std::size_t memory_bytes() const { return bytes; }
};
/// One that learns from candidates.
struct Curious : Scripted {
  std::size_t wanted = 1;
  [[nodiscard]] std::size_t candidates_wanted() const { return wanted; }
};

struct TreeOptions {
  std::size_t nodes = 8;
  Token vocabulary = 3;
  bool duplicates = true;         ///< siblings with the same token
  bool auxiliary = false;         ///< some nodes
  bool malformed = false;         ///< parents anywhere, probabilities that rise
  Token auxiliary_tokens = 1000;  ///< from here on, each its own
};

/// A tree with parents first and probabilities in order, unless it is malformed.
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

/// Output, finish and stream are those of plain decoding, on chains and on trees, greedy and sampled, wherever
/// generation ends. `make(prompt)` gives a fresh strategy. The answer: passes saved, over all of them.
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
