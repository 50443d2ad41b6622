// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "support/row_answers.hpp"
#include "support/transformer.hpp"

namespace reprise::testing {

/// The settings of a TransformerEngine.
struct TransformerOptions {
  SamplerOptions sampler = {};
  /// By default trees of any form.
  Capabilities capabilities = [] {
    Capabilities trees;
    trees.max_leaves = unlimited;
    return trees;
  }();
};

/// A small but real engine: one sequence, a cache of keys and values, a sampler. It models every refinement of Verifier
/// that attention allows. Commits that fit no pass return an error. A copy is an independent engine; the model must
/// outlive it. Threads: one at a time.
class TransformerEngine : public RowAnswers {
 public:
  /// Prefilled with all but the last token of `prompt`.
  explicit TransformerEngine(const Transformer& model, TokenSpan prompt = {}, const TransformerOptions& options = {})
      : RowAnswers(options.sampler), model_(&model), options_(options) {
    if (!prompt.empty()) prefill(prompt.first(prompt.size() - 1));
  }

  /// Appends tokens that this engine did not pick: a prompt, a user turn.
  void prefill(TokenSpan tokens) {
    discard_void_pass();
    static_cast<void>(run(tokens, 0, {}));
  }

  LazyPicks verify(TokenSpan batch, std::size_t drafted) {
    std::vector<NodeIndex> parents(drafted);
    for (std::size_t row = 0; row < drafted; ++row) parents[row] = static_cast<NodeIndex>(row) - 1;
    return verify_tree(batch, drafted, parents);
  }
  LazyPicks verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    discard_void_pass();
    base_ = cache_.size();
    pending_ = batch.size() - drafted;
    const std::vector<Vector> scores = run(batch, drafted, parents);
    clear();
    for (std::size_t row = pending_ - 1; row < batch.size(); ++row) add(scores[row], text_to(row));
    return LazyPicks(*this);
  }
  Result<void> commit(std::size_t keep) {
    std::vector<std::size_t> rows(std::min(keep, cache_.size() + 1));  // a number that is too large stays too large
    for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = row;
    return commit_rows(rows);
  }
  Result<void> commit_rows(std::span<const std::size_t> rows) {
    bool legal = open() && rows.size() + 1 >= pending_;
    for (std::size_t i = 0; legal && i < rows.size(); ++i)
      legal = rows[i] < rows_.size() && (i == 0 || rows[i - 1] < rows[i]);
    if (!legal) return Error{ErrorCode::verifier_failed, "a commit that fits no pass"};
    keep_rows(cache_, base_, rows);
    settle(rows.size() + 1 - pending_);
    return {};
  }
  /// Keeps the first `size` rows of the cache. Leaves the sampler unchanged.
  void truncate(std::size_t size) {
    discard_void_pass();
    cache_.resize(std::min(size, cache_.size()));
  }

  [[nodiscard]] Capabilities capabilities() const { return options_.capabilities; }
  [[nodiscard]] const KvCache& cache() const noexcept { return cache_; }

 private:
  void discard_void_pass() {
    if (!open()) return;
    cache_.resize(base_);
    void_pass();
  }
  std::vector<Vector> run(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    const std::size_t base = cache_.size();
    const std::size_t pending = batch.size() - drafted;
    rows_.clear();
    for (std::size_t row = 0; row < batch.size(); ++row) {
      NodeIndex parent = static_cast<NodeIndex>(row) - 1;
      if (row >= pending) parent = parents[row - pending] + static_cast<NodeIndex>(pending);
      const std::size_t position =
          parent == anchor_parent ? base : rows_[static_cast<std::size_t>(parent)].position + 1;
      rows_.push_back({batch[row], position, parent, 0});
    }
    return run_rows(*model_, rows_, std::span(&cache_, 1));
  }
  /// Returns the end of the text up to a row of the pass.
  [[nodiscard]] std::vector<Token> text_to(std::size_t row) const {
    std::vector<Token> text;
    auto at = static_cast<NodeIndex>(row);
    for (; at != anchor_parent; at = rows_[static_cast<std::size_t>(at)].parent)
      text.push_back(rows_[static_cast<std::size_t>(at)].token);
    for (std::size_t i = base_; i > 0 && text.size() < penalized; --i) text.push_back(cache_[i - 1].token);
    std::reverse(text.begin(), text.end());
    return text;
  }

  const Transformer* model_;
  TransformerOptions options_;
  KvCache cache_;
  std::vector<PassRow> rows_;  // of the last pass
  std::size_t base_ = 0;       // rows in the cache before it
  std::size_t pending_ = 0;
};
static_assert(VerifierWithCapabilities<TransformerEngine> && TruncatableVerifier<TransformerEngine> &&
              MarginVerifier<TransformerEngine> && TreeVerifier<TransformerEngine> && TopKVerifier<TransformerEngine> &&
              DistributionVerifier<TransformerEngine>);

/// The same engine, walking drafts itself, as on a device.
class WalkingTransformerEngine : public TransformerEngine {
 public:
  using TransformerEngine::TransformerEngine;

  /// The result is valid until the next pass.
  Accepted verify_and_walk(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    const LazyPicks picks = verify_tree(batch, drafted, parents);
    walked_rows_.assign(1, batch.size() - drafted - 1);
    walked_tokens_.assign(1, picks[0]);
    NodeIndex last = anchor_parent;
    for (std::size_t row = 0; row < drafted; ++row) {
      const Token token = batch[batch.size() - drafted + row];
      if (parents[row] != last || token != walked_tokens_.back()) continue;
      last = static_cast<NodeIndex>(row);
      walked_tokens_.back() = token;
      walked_tokens_.push_back(picks[row + 1]);
      walked_rows_.push_back(batch.size() - drafted + row);
    }
    return {walked_rows_, walked_tokens_};
  }

 private:
  std::vector<std::size_t> walked_rows_;
  std::vector<Token> walked_tokens_;
};
static_assert(SelfWalkingVerifier<WalkingTransformerEngine>);

}  // namespace reprise::testing
