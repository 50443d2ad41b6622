// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "peers/ngram_trie.hpp"
#include "peers/racer_tree.hpp"
#include "peers/rank_matrix.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise::peers {

/// Settings of RacerDrafter. The defaults are those of the authors.
struct RacerOptions {
  std::size_t nodes = 63;           ///< most nodes of a draft, 1..63; the authors count the anchor too: 64
  std::size_t ngram = 10;           ///< length of the n-grams in the trie, 2..32
  std::size_t trie_nodes = 10'000;  ///< nodes of the trie, ngram + 2..2^24
  /// If true, a tree that is too small after paths were merged is filled up from the matrix, as in SGLang. If false, it
  /// stays small, as in the authors' repository.
  bool refill = true;
  /// If true, begin() keeps the matrix and the trie, as the authors' code keeps them for all its prompts. If false,
  /// begin() clears both.
  bool keep = true;
  /// The number of tokens for which begin() allocates memory at once. 0: memory grows with the highest token seen.
  std::size_t vocabulary = 0;
  /// Memory limit of the matrix, in bytes. Nothing is learned about tokens whose row does not fit.
  std::size_t max_bytes = std::size_t{32} << 20;
};

/// RACER with the rules of its authors, for comparisons. Sources: the paper (Zhang et al., Findings of ACL 2026, arXiv
/// 2604.14885), the authors' repository, and the first author's port to SGLang (pull request 39211). The repository is
/// github.com/hkr04/RACER, commit fc494a3; the rule is in racer/automaton/src/automaton.cpp and in
/// evaluation/inference_racer.py. No code is copied.
///
/// The rule of a draft, where the budget of 64 nodes contains the anchor (repository, unless another source is named):
///
///  * Retrieval tree: a trie has all 10-grams of the text before the anchor. Each suffix of the text of 2 to 10 tokens
///    that is a path of the trie is a border. All nodes from the borders on are candidates. The nodes with the highest
///    counts are chosen, as many as the budget allows. A border counts as a node, although it is the anchor. Equal
///    counts: smaller depth in the trie first. If they are equal too, order of SGLang's port: longer suffixes first,
///    then older nodes.
///  * Logits tree: the nodes that retrieval left of the budget, again with the anchor. It grows breadth first from a
///    matrix, which has the 8 likeliest tokens of the latest row of each token. The anchor has up to 8 children. The
///    number halves from rank to rank and from level to level (see LogitsTree).
///  * Both trees are merged: paths with equal tokens are one path. Merging makes the tree smaller than its budget.
///    RacerOptions::refill adds the paths of a logits tree of the whole budget until the tree is full (SGLang's port).
///  * A chain (DraftShape::chain) follows the most frequent children from the longest border on, then first ranks.
///
/// The matrix: each row of a pass, accepted or rejected, replaces the matrix row of its token. A token without a
/// row has zeros. Report the rows of a prompt too (Session::report_prompt_row()), because the authors use them.
///
/// Differences from the repository:
///
///  * Borders are found for all suffixes, as the paper's automaton and SGLang's port define them. In the repository,
///    failure links are built once per prompt and reset as nodes are used, so later text has fewer borders.
///  * If no node is free, the least recently used leaf is evicted (paper). The repository can evict an inner node,
///    which disconnects its subtree. A border is used when a round is committed; states of accepted tokens are not.
///  * Later prompts of a sequence add their new n-grams. The repository adds those of the whole text again.
///  * The draft follows the anchor, which the repository takes from the prefill before its first pass.
///
/// The method knows no probabilities, so each node states Probability::one(). Send its drafts whole (SendAll).
///
/// The engine has to report Outcome::top_k (see TopKLearner); otherwise, the logits tree has only token 0. Without
/// `keep`, truncate() builds the trie again from the remaining text. With `keep`, S1 does not hold for knowledge of
/// earlier sequences, nor S6 for n-grams of the removed text. Do not use one drafter for several tenants.
///
/// Cost of propose(): up to 54 hash lookups for the borders, one matrix row per node, and the children of up to 64
/// nodes of the trie. Cost of observe(): 10 hash lookups per token. Without `keep`, truncate() costs as much as
/// observe() for all remaining tokens. Memory: 56 bytes per node of the trie. The matrix takes 32 bytes for each token
/// up to the highest one seen, or up to a quarter more. Only begin(), observe() and learn_row() allocate. If memory
/// runs out, the drafter learns less. Threads: one at a time; copies are independent.
class RacerDrafter {
 public:
  static constexpr std::size_t max_nodes = MergedPaths::most;   ///< maximum number of nodes in a draft
  static constexpr std::size_t candidates = RankMatrix::ranks;  ///< tokens stored per token

  RacerDrafter() noexcept : RacerDrafter(RacerOptions()) {}

  /// Returns a drafter with these settings. Errors: invalid_argument if a number is out of range.
  static Result<RacerDrafter> make(const RacerOptions& options = {}) noexcept {
    if (options.nodes == 0 || options.nodes > max_nodes)
      return Error{ErrorCode::invalid_argument, "nodes has to be between 1 and 63", options.nodes,
                   std::clamp<std::size_t>(options.nodes, 1, max_nodes)};
    if (options.ngram < 2 || options.ngram > most_ngram)
      return Error{ErrorCode::invalid_argument, "ngram has to be between 2 and 32", options.ngram,
                   std::clamp<std::size_t>(options.ngram, 2, most_ngram)};
    if (options.trie_nodes < options.ngram + 2 || options.trie_nodes > most_trie_nodes)
      return Error{ErrorCode::invalid_argument, "trie_nodes has to be between ngram + 2 and 2^24", options.trie_nodes,
                   std::clamp<std::size_t>(options.trie_nodes, options.ngram + 2, most_trie_nodes)};
    return RacerDrafter(options);
  }

  void begin(TokenSpan context) noexcept {
    if (!options_.keep) {
      matrix_.clear();
      trie_.clear();
    }
    trie_.prepare();
    matrix_.grow(options_.vocabulary, context);
    learned_ = 0;
    learn(context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) noexcept {
    matrix_.grow(0, context.last(fresh));
    learn(context);
  }
  void truncate(TokenSpan context, std::size_t size) noexcept {
    const TokenSpan left = context.first(std::min(size, context.size()));
    if (options_.keep) {
      learned_ = std::min(learned_, left.size());
      return;
    }
    trie_.clear();
    learned_ = 0;
    learn(left);
  }

  void propose(TokenSpan context, Draft& draft) const noexcept {
    if (context.empty()) return;
    const std::size_t nodes = std::min(options_.nodes, draft.budget().max_nodes);
    if (nodes == 0) return;
    const std::size_t budget = nodes + 1;  // with the anchor
    const bool chain = draft.chain();
    const Token anchor = context.back();
    MergedPaths paths(nodes);
    const RetrievedNodes retrieved(trie_, context, options_.ngram, budget, chain);
    const NodeIndex last = retrieved.add_to(paths);
    const Token root = chain ? retrieved.last_token(anchor) : anchor;
    LogitsTree(matrix_, root, budget - retrieved.size(), chain).add_to(paths, chain ? last : anchor_parent);
    if (options_.refill && !chain && !paths.is_full())
      LogitsTree(matrix_, anchor, budget, false).add_to(paths, anchor_parent);
    paths.write(draft);
  }
  void feedback(TokenSpan context, const Outcome& outcome) noexcept {
    if (context.empty()) return;
    matrix_.learn(context.back(), outcome);
    RetrievedNodes::for_each_border(trie_, context, options_.ngram,
                                    [&](NgramTrie::Index node) noexcept { trie_.use(node); });
  }

  /// Replaces the row of the last token of `context` by the target's likeliest tokens after it, likeliest first. See
  /// RowLearner. Call it for the rows of the prompt in order. Ranks beyond the eighth are ignored; missing ones become
  /// zero, but an empty list changes nothing.
  void learn_row(TokenSpan context, TokenSpan likeliest) noexcept {
    if (context.empty()) return;
    const Token token = context.back();
    matrix_.want(token);
    matrix_.grow(0, likeliest);
    matrix_.learn(token, likeliest);
  }
  /// Returns the number of tokens per row that the drafter learns from. See TopKLearner.
  [[nodiscard]] std::size_t top_k_wanted() const noexcept { return candidates; }
  /// Returns the row of `token`, likeliest first; zeros if nothing is known. Valid until the drafter changes.
  [[nodiscard]] TokenSpan top_k(Token token) const noexcept { return matrix_.row(token); }
  [[nodiscard]] const RacerOptions& options() const noexcept { return options_; }
  /// Returns the number of nodes of the trie in use, with the root.
  [[nodiscard]] std::size_t trie_size() const noexcept { return trie_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return matrix_.memory_bytes() + trie_.memory_bytes(); }

 private:
  static constexpr std::size_t most_ngram = 32;
  static constexpr std::size_t most_trie_nodes = std::size_t{1} << 24;

  /// Requires valid settings.
  explicit RacerDrafter(const RacerOptions& options) noexcept
      : options_(options), matrix_(options.max_bytes), trie_(options.trie_nodes) {}

  /// Adds the n-grams before the anchor that were not added yet.
  void learn(TokenSpan context) noexcept {
    if (context.empty()) return;
    const std::size_t end = context.size() - 1;
    for (std::size_t last = std::max(learned_ + 1, options_.ngram); last <= end; ++last)
      trie_.add(context.subspan(last - options_.ngram, options_.ngram));
    learned_ = std::max(learned_, end);
  }

  RacerOptions options_;
  RankMatrix matrix_;
  NgramTrie trie_;
  std::size_t learned_ = 0;  // number of leading tokens of the context whose n-grams are in the trie
};

static_assert(TopKLearner<RacerDrafter> && RowLearner<RacerDrafter> && MeasurableStrategy<RacerDrafter>);

}  // namespace reprise::peers
