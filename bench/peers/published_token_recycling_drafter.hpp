// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "peers/rank_matrix.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise::peers {

/// Settings of PublishedTokenRecyclingDrafter.
struct PublishedTokenRecyclingOptions {
  /// If true, begin() keeps the matrix, as the authors' code keeps one for all its prompts. If false, begin() clears
  /// it.
  bool keep = true;
  /// The number of tokens for which begin() allocates memory at once. 0: memory grows with the highest token seen.
  std::size_t vocabulary = 0;
  /// Memory limit of the matrix, in bytes. Nothing is learned about tokens whose row does not fit.
  std::size_t max_bytes = std::size_t{32} << 20;
};

/// Token Recycling with the rule of its authors, for comparisons. TokenRecyclingDrafter is this library's variant: it
/// learns probabilities and drafts fewer tokens. Sources: Luo et al. 2024 (arXiv 2408.08696) and the authors'
/// repository, github.com/Luowaterbi/TokenRecycling, commit 1b4c05c. There, evaluation/inference_recycling.py has the
/// rule, and model/recycling/tree_template_.py (version 2.2.2) has the shape of the tree. No code is copied.
///
/// The rule: a matrix holds 8 tokens for each token. A draft is a tree of 80 nodes whose shape never changes; with the
/// anchor, the pass has 81 rows. The node with path of ranks r1 ... rn holds entry rn of the row of its parent's token.
/// After each pass, the target's 8 likeliest tokens of every row, accepted or rejected, replace the matrix row of that
/// row's token. A token without a row has zeros, so token 0 is drafted after it. Rows of the prompt are not used.
///
/// Differences from the authors' code:
///
///  * Siblings with equal tokens are sent once, because a draft refuses repetitions. This happens only in rows of
///    zeros. Nothing else changes: the subtree of the first of them contains the subtrees of the others.
///  * Rows of the last pass of a sequence are learned too. The authors' loop ends before that update.
///  * If several rows of a pass hold the same token, the row reported last wins. On a GPU, the authors' winner is
///    unspecified.
///
/// Nodes come in the published order, level by level. The method knows no probabilities, so each node states
/// Probability::one(). Send its drafts whole (SendAll). All nodes are drafted only if Limits::draft and the session
/// allow 80 nodes, and the engine 40 paths (Capabilities::max_leaves).
///
/// The engine has to report Outcome::top_k (see TopKLearner); otherwise, only token 0 is drafted. truncate() keeps the
/// matrix, because it describes the target, not the text. With `keep`, so does begin(): S1 then does not hold, and
/// drafts depend on earlier sequences. Do not use one drafter for several tenants.
///
/// Cost of propose(): one matrix row per node. Cost of feedback(): a copy of the reported tokens. Memory: 32 bytes for
/// each token up to the highest one seen, or up to a quarter more. Only begin() and observe() allocate. If memory runs
/// out, the drafter learns about fewer tokens. Threads: one at a time; copies are independent.
class PublishedTokenRecyclingDrafter {
 public:
  static constexpr std::size_t max_nodes = 80;                  ///< nodes of the fixed tree
  static constexpr std::size_t candidates = RankMatrix::ranks;  ///< tokens stored per token

  explicit PublishedTokenRecyclingDrafter(const PublishedTokenRecyclingOptions& options = {}) noexcept
      : options_(options), matrix_(options.max_bytes) {}

  void begin(TokenSpan context) noexcept {
    if (!options_.keep) matrix_.clear();
    matrix_.grow(options_.vocabulary, context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) noexcept { matrix_.grow(0, context.last(fresh)); }
  void truncate(TokenSpan, std::size_t) noexcept {}

  void propose(TokenSpan context, Draft& draft) const noexcept {
    if (context.empty()) return;
    std::array<Place, max_nodes + 1> places;
    places[0] = {context.back(), anchor_parent, true};
    std::size_t next = 1;
    for (std::size_t parent = 0; parent <= max_nodes; ++parent) {
      const auto row = matrix_.row(places[parent].token);
      for (std::size_t rank = 0; rank < children[parent]; ++rank)
        places[next++] = push(draft, places[parent], row.first(rank), row[rank]);
    }
  }
  void feedback(TokenSpan context, const Outcome& outcome) noexcept {
    if (!context.empty()) matrix_.learn(context.back(), outcome);
  }

  /// Returns the number of tokens per row that the drafter learns from. See TopKLearner.
  [[nodiscard]] std::size_t top_k_wanted() const noexcept { return candidates; }
  /// Returns the row of `token`, likeliest first; zeros if nothing is known. Valid until the drafter changes.
  [[nodiscard]] TokenSpan top_k(Token token) const noexcept { return matrix_.row(token); }
  [[nodiscard]] const PublishedTokenRecyclingOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return matrix_.memory_bytes(); }

 private:
  /// A node of the fixed tree in the current draft.
  struct Place {
    Token token = 0;
    NodeIndex node = anchor_parent;
    bool sent = false;  // false: the draft refused the node, or an earlier sibling has its token
  };

  /// The published tree: the number of children of the anchor ([0]) and of each node, level by level. The children of a
  /// node have the ranks 0, 1, ...
  static constexpr std::array<std::uint8_t, max_nodes + 1> children = {
      8,                                                                          // the anchor
      8, 4, 3, 2, 1, 1, 1, 1,                                                     // level 1: 8 nodes
      8, 3, 2, 1, 1, 1, 1, 1, 2, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0,              // level 2: 21
      5, 2, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0,  // level 3: 25
      3, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0,                                // level 4: 15
      2, 0, 0, 1, 0, 0, 0, 0};                                                    // level 5: 8; level 6: 3 without any
  static_assert(std::accumulate(children.begin(), children.end(), std::size_t{0}) == max_nodes);

  /// Pushes a child of `parent`. `before` are the tokens of its earlier siblings.
  static Place push(Draft& draft, const Place& parent, TokenSpan before, Token token) noexcept {
    if (!parent.sent || std::find(before.begin(), before.end(), token) != before.end()) return {};
    const bool sent = draft.push({.token = token, .parent = parent.node, .source = DraftSource::target});
    return {token, static_cast<NodeIndex>(draft.size()) - 1, sent};
  }

  PublishedTokenRecyclingOptions options_;
  RankMatrix matrix_;
};

static_assert(TopKLearner<PublishedTokenRecyclingDrafter> && MeasurableStrategy<PublishedTokenRecyclingDrafter>);

}  // namespace reprise::peers
