// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A reprise::Verifier for models in MLX. reprise/core/verifier.hpp defines the clauses V1 to V11.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "mlx_pass.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/engine/tree.hpp"

namespace reprise::mlx {

/// The settings of an MlxVerifier.
struct MlxOptions {
  std::size_t leaves = 8;      ///< paths of a draft; 1: chains only
  std::size_t top_k = 8;       ///< tokens that top_k(i) returns, if the vocabulary has that many
  std::size_t max_rows = 256;  ///< rows of a pass, and of a chunk of prefill()
};

/// Runs one sequence of a model, greedily. The model must outlive the verifier. Trees are verified with a mask.
///
/// A chain is rolled back by a slice, which moves nothing. A path is kept by a gather of the rows after its common
/// prefix with the pass; the next pass writes them to their place. pass_time() measures from the start of verify() to
/// the moment when the picks are read, and adds the time of the commit.
///
/// Errors: invalid_argument, context_too_long, verifier_failed; they change nothing. MLX's exceptions pass through.
/// After an exception the pass is void, and the next call fills the cache again, at the cost of a prefill. Threads: one
/// at a time; MLX's arrays are not safe to share.
template <MlxModel Model>
class MlxVerifier {
 public:
  using Picks = TokenSpan;

  /// Errors: invalid_argument, with the reason, for settings that cannot work.
  static Result<MlxVerifier> make(Model& model, const MlxOptions& options = {}) {
    if (options.leaves == 0)
      return Error{ErrorCode::invalid_argument, "leaves is 0: set it to 1 for chains, or to more for trees"};
    if (options.max_rows < 2)
      return Error{ErrorCode::invalid_argument, "max_rows has no room for a draft: set it to 2 or more",
                   options.max_rows, 2};
    return MlxVerifier(model, options);
  }

  /// Runs `tokens` after those in the cache, in chunks. Pass all tokens of a prompt but the last. If a chunk fails,
  /// none of the tokens is added.
  Result<void> prefill(TokenSpan tokens) {
    if (auto ready = check(tokens, 0); !ready) return ready;
    recover();
    const std::size_t before = tokens_.size();
    try {
      fill(tokens);
    } catch (...) {
      tokens_.resize(before);
      throw;
    }
    return {};
  }
  Result<Picks> verify(TokenSpan batch, std::size_t drafted) {
    const std::size_t links = std::min(drafted, batch.size());
    for (std::size_t i = chain_.size(); i < links; ++i) chain_.push_back(static_cast<NodeIndex>(i) - 1);
    return verify_tree(batch, drafted, std::span(chain_).first(links));
  }
  Result<void> commit(std::size_t keep) {
    if (keep > batch_.size()) return not_of_the_pass(keep);
    kept_.resize(keep);
    std::iota(kept_.begin(), kept_.end(), std::size_t{0});
    return commit_rows(kept_);
  }
  Result<Picks> verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    const auto start = Clock::now();
    if (batch.size() > options_.max_rows || drafted >= batch.size())
      return Error{ErrorCode::verifier_failed, "a pass has at least one pending row, and at most max_rows rows",
                   batch.size(), options_.max_rows};
    if (parents.size() != drafted || !is_tree(parents))
      return Error{ErrorCode::invalid_argument, "each drafted row has a parent: an earlier drafted row, or the anchor"};
    const std::size_t pending = batch.size() - drafted;
    if (auto ready = check(batch.first(pending), drafted); !ready) return ready.error();
    recover();  // V5
    lost_ = true;
    batch_.assign(batch.begin(), batch.end());
    // No pick agrees with a token outside of the vocabulary, so any other token may run in its place.
    for (Token& token : batch_) token = pass_.knows(token) ? token : 0;
    const TokenSpan picks = pass_.run(describe(pending, parents));
    lost_ = false;
    pass_time_ = Clock::now() - start;  // V9
    return picks;
  }
  /// V4, V8. Errors: invalid_argument for rows that the pass does not have, or that are not in ascending order.
  Result<void> commit_rows(std::span<const std::size_t> rows) {
    if (lost_)
      return Error{ErrorCode::verifier_failed, "the last pass failed, so nothing can be committed: run it again"};
    if (!rows.empty() && rows.back() >= batch_.size()) return not_of_the_pass(rows.back());
    if (std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) != rows.end())
      return Error{ErrorCode::invalid_argument, "the rows to keep must be in ascending order"};
    const auto start = Clock::now();
    lost_ = true;
    pass_.cache().keep(tokens_.size(), rows);
    for (const std::size_t row : rows) tokens_.push_back(batch_[row]);
    batch_.clear();
    lost_ = false;
    pass_time_ += Clock::now() - start;
    return {};
  }
  /// Keeps the first `size` tokens of the cache. Errors: size_out_of_range beyond its end.
  Result<void> truncate(std::size_t size) {
    if (size > tokens_.size())
      return Error{ErrorCode::size_out_of_range, "truncate() cannot add tokens: give at most the size of the cache",
                   size, tokens_.size()};
    tokens_.resize(size);
    batch_.clear();
    pass_.cache().trim(size);
    return {};
  }

  /// V11. Reads the logits of that row when it is called, and never otherwise.
  [[nodiscard]] TokenSpan top_k(std::size_t i) { return pass_.top_k(i); }
  /// The best logit after row (anchor + i) of the last pass, minus the second best.
  [[nodiscard]] double margin(std::size_t i) const { return pass_.margin(i); }
  [[nodiscard]] Capabilities capabilities() const {
    // Kernels may add in another order for another number of rows.
    return {.max_rows = options_.max_rows,
            .max_context = pass_.model().max_context(),
            .max_leaves = options_.leaves,
            .deterministic = false};
  }
  /// V9: from the start of the last verify to its picks, and the commit. The write that a commit leaves to the next
  /// pass is part of that pass.
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept { return pass_time_; }
  /// The committed tokens in the cache.
  [[nodiscard]] TokenSpan cached() const noexcept { return tokens_; }
  [[nodiscard]] const MlxCache& cache() const noexcept { return pass_.cache(); }

 private:
  using Clock = std::chrono::steady_clock;

  MlxVerifier(Model& model, const MlxOptions& options) : pass_(model, options.top_k), options_(options) {}

  static Error not_of_the_pass(std::size_t row) {
    return {ErrorCode::invalid_argument, "the pass to commit does not have so many rows", row};
  }
  /// Refuses tokens that the model does not have, and positions beyond its context.
  [[nodiscard]] Result<void> check(TokenSpan tokens, std::size_t drafted) const {
    const auto wrong = std::find_if(tokens.begin(), tokens.end(), [&](Token token) { return !pass_.knows(token); });
    if (wrong != tokens.end())
      return Error{ErrorCode::invalid_argument, "a token is not in the model's vocabulary: use the model's tokenizer",
                   static_cast<std::uint64_t>(*wrong), pass_.model().vocabulary()};
    const std::size_t rows = tokens_.size() + tokens.size() + drafted;
    if (rows > pass_.model().max_context())
      return Error{ErrorCode::context_too_long,
                   "the context is longer than the model's: shorten the prompt or the output", rows,
                   pass_.model().max_context()};
    return {};
  }
  /// Discards a pass that was never committed. If a pass has failed, runs the committed tokens again.
  void recover() {
    batch_.clear();
    if (!lost_) return pass_.cache().trim(tokens_.size());
    pass_.cache().clear();
    const std::vector<Token> tokens = tokens_;
    try {
      tokens_.clear();
      fill(tokens);
    } catch (...) {
      tokens_ = tokens;
      throw;
    }
    lost_ = false;
  }
  void fill(TokenSpan tokens) {
    while (!tokens.empty()) {
      const TokenSpan chunk = tokens.first(std::min(tokens.size(), options_.max_rows));
      const bool before = std::exchange(lost_, true);
      batch_.assign(chunk.begin(), chunk.end());
      pass_.fill(describe(chunk.size(), {}));
      batch_.clear();
      lost_ = before;
      tokens_.insert(tokens_.end(), chunk.begin(), chunk.end());
      tokens = tokens.subspan(chunk.size());
    }
  }
  /// The rows of batch_: positions and mask (V6), and the rows whose logits are wanted.
  [[nodiscard]] HostRows describe(std::size_t pending, std::span<const NodeIndex> parents) {
    const std::size_t cached = tokens_.size(), rows = pending + parents.size();
    positions_.resize(rows);
    std::iota(positions_.begin(), positions_.end(), static_cast<std::int32_t>(cached));
    const std::span<std::int32_t> drafted = std::span(positions_).subspan(pending);
    tree_depths(parents, drafted);
    for (std::int32_t& position : drafted) position += static_cast<std::int32_t>(cached + pending - 1);
    mask_.resize(rows > 1 ? rows * (cached + rows) : 0);  // one row alone sees everything
    if (rows > 1) attention_mask(parents, pending, cached, cached + rows, std::span(mask_));
    outputs_.resize(parents.size() + 1);
    std::iota(outputs_.begin(), outputs_.end(), static_cast<std::uint32_t>(pending - 1));
    return {batch_, positions_, mask_, outputs_};
  }

  MlxPass<Model> pass_;
  MlxOptions options_;
  std::vector<Token> tokens_;  // committed tokens in the cache
  std::vector<Token> batch_;   // the rows of the pass that awaits its commit
  bool lost_ = false;          // a pass has failed, so the cache differs from tokens_
  std::chrono::nanoseconds pass_time_{};
  std::vector<NodeIndex> chain_;
  std::vector<std::size_t> kept_;
  std::vector<std::int32_t> positions_;
  std::vector<float> mask_;
  std::vector<std::uint32_t> outputs_;
};

}  // namespace reprise::mlx
