// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A reprise::Verifier for llama.cpp's C API, in one header to copy. reprise/core/verifier.hpp defines V1 to V11.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "llama.h"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/engine/top_k.hpp"
#include "reprise/engine/tree.hpp"

namespace reprise::llama {

/// The settings of a LlamaVerifier.
struct LlamaOptions {
  llama_sampler* sampler = nullptr;  ///< a chain that draws tokens, freed by the verifier; null: the likeliest token
  llama_seq_id sequence = 0;         ///< its sequence id in the context; the verifier clears that sequence
  std::size_t leaves = 1;            ///< paths of a draft, at most 64: sequences from `sequence` on; needs kv_unified
  std::size_t top_k = 8;             ///< tokens that top_k(i) returns, if the vocabulary has that many
};

/// Runs one sequence of a llama_context, which must outlive the verifier. Rolls back by removing positions; for
/// recurrent and hybrid models, by saving the state before a pass and restoring it. Errors: verifier_failed, with
/// llama_decode's code; the next call restores the state before the failed pass. All verifiers of a context must be
/// used from one thread at a time.
class LlamaVerifier {
 public:
  /// Errors: invalid_argument, with the reason, for settings that cannot work; out_of_memory. They free the sampler
  /// too.
  static Result<LlamaVerifier> make(llama_context* context, const LlamaOptions& options) {
    LlamaVerifier verifier(context, options);
    const auto refuse = [](const char* why) { return Error{ErrorCode::invalid_argument, why}; };
    if (verifier.memory_ == nullptr)
      return refuse("this llama_context has no KV cache: use a decoder model, not an encoder or embedding model");
    const llama_batch& batch = *verifier.batch_;
    if (!batch.token || !batch.pos || !batch.n_seq_id || !batch.seq_id || !batch.logits)
      return Error{ErrorCode::out_of_memory, "llama_batch_init has no memory: set a smaller n_batch"};
    const auto last = static_cast<std::size_t>(options.sequence) + options.leaves;
    if (options.sequence < 0 || options.leaves == 0 || options.leaves > 64 || last > llama_n_seq_max(context))
      return refuse("sequence + leaves (1 to 64) must be within n_seq_max: make the llama_context with more sequences");
    if (options.leaves > 1 && verifier.recurrent_)
      return refuse("recurrent and hybrid models have one state per sequence, not one per path: set leaves to 1");
    if (options.leaves > 1 && llama_n_ctx_seq(context) != llama_n_ctx(context))
      return refuse("draft trees need one KV cache for all sequences: set kv_unified in llama_context_params");
    if (verifier.recurrent_ && llama_state_seq_get_size_ext(context, options.sequence, state_part) == 0)
      return refuse("the model cannot roll back (its memory neither removes positions nor saves state): use another");
    for (std::size_t i = 0; i < options.leaves; ++i)
      if (!llama_memory_seq_rm(verifier.memory_, verifier.leaf(i), -1, -1))
        return refuse("llama_memory_seq_rm does not clear the sequences: make a new llama_context");
    return verifier;
  }

  /// Runs `tokens` after those in the cache, in chunks as large as the context allows. Pass all tokens of a prompt but
  /// the last.
  Result<void> prefill(TokenSpan tokens) {
    if (auto done = discard_open_pass(); !done) return done;
    const std::size_t before = tokens_.size();
    while (!tokens.empty()) {
      const TokenSpan chunk = tokens.first(std::min(tokens.size(), batch_size_));
      for (std::size_t i = 0; i < chunk.size(); ++i) add(chunk[i], position(i), 1, false);
      if (auto done = decode(); !done) return tokens_.resize(before), lost_ = true, done;
      tokens_.insert(tokens_.end(), chunk.begin(), chunk.end());
      tokens = tokens.subspan(chunk.size());
    }
    return {};
  }
  /// V3: each pick is drawn when it is read, so the sampler advances once per committed token.
  struct Picks {
    LlamaVerifier* verifier;
    Token operator[](std::size_t i) const { return verifier->pick(i); }
    [[nodiscard]] std::size_t size() const { return verifier->drafted_ + 1; }
  };
  /// The path for chains: it allocates nothing itself, and examines no tree.
  Result<Picks> verify(TokenSpan batch, std::size_t drafted) {
    const auto start = Clock::now();
    if (auto done = begin_pass(batch.size(), drafted, 1); !done) return done.error();
    for (std::size_t i = 0; i < batch.size(); ++i)  // V1: positions continue after the cached tokens
      add(i < pending_ ? batch[i] : known(batch[i]), position(i), 1, i + 1 >= pending_);
    return run_pass(start);
  }
  Result<void> commit(std::size_t keep) { return commit_path(keep, keep - 1); }
  Result<Picks> verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    const auto start = Clock::now();
    leaves_of_.resize(drafted);
    const std::size_t leaves = std::max<std::size_t>(1, tree_leaves(parents, std::span(leaves_of_)));
    if (auto done = begin_pass(batch.size(), drafted, leaves); !done) return done.error();
    for (std::size_t i = 0; i < pending_; ++i)
      add(batch[i], position(i), ~std::uint64_t{0} >> (64 - leaves_), i + 1 == pending_);
    for (std::size_t i = 0; i < drafted; ++i) {  // V6: a row has the sequence id of each leaf below it
      const std::size_t parent = pending_ - 1 + static_cast<std::size_t>(parents[i] + 1);
      add(known(batch[pending_ + i]), batch_->pos[parent] + 1, leaves_of_[i], true);
    }
    for (std::size_t i = 1; i < leaves_; ++i) {  // shares cells; returns nothing, so its result is looked at
      llama_memory_seq_cp(memory_, leaf(0), leaf(i), -1, -1);
      if (last_position(i) != last_position(0)) return batch_->n_tokens = 0, lost_ = true, failed(not_copied);
    }
    return run_pass(start);
  }
  /// V4, V8. Fails if the memory cannot remove the rejected rows: the pass is then void and commits nothing.
  Result<void> commit_rows(std::span<const std::size_t> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) batch_->token[i] = batch_->token[rows[i]];  // rows rise
    return commit_path(rows.size(), rows.empty() ? 0 : rows.back());
  }
  /// V10. Of a hybrid model it saves the recurrent part only: attention rolls back by removing positions.
  Result<void> snapshot() {
    const auto start = Clock::now();
    if (auto done = discard_open_pass(); !done) return done;
    state_.resize(llama_state_seq_get_size_ext(context_, leaf(0), state_part));
    saved_at_ = tokens_.size();
    const auto saved = llama_state_seq_get_data_ext(context_, state_.data(), state_.size(), leaf(0), state_part);
    saving_ = Clock::now() - start;
    if (saved == state_.size()) return {};
    return state_.clear(), failed("llama_state_seq_get_data_ext did not save the state");
  }
  Result<void> restore(std::size_t) {  // restores all but the sampler: its draws are committed
    const auto start = Clock::now();
    auto done = put_back();
    open_ = !done, pass_time_ += Clock::now() - start;  // if it failed, the pass and its draws are void
    return done;
  }
  /// Keeps the first `size` tokens. If the memory cannot be cut there (a recurrent state, or a window that has moved
  /// on), clears it and runs the tokens again, at the cost of a prefill. Leaves the sampler unchanged.
  Result<void> truncate(std::size_t size) {
    if (lost_ && size < tokens_.size()) tokens_.resize(size), state_.clear();  // a later re-run covers only these
    if (auto done = discard_open_pass(); !done || size >= tokens_.size()) return done;
    tokens_.resize(size), state_.clear();  // the next tokens may differ from the saved ones
    const bool whole = !recurrent_ && llama_memory_seq_pos_min(memory_, leaf(0)) <= 0;
    return whole && llama_memory_seq_rm(memory_, leaf(0), position(0), -1) ? Result<void>() : run_again();
  }
  /// logits(i) returns the logits after row (anchor + i) of the last pass. margin(i) returns the best of them minus the
  /// second best; with a sampler it is infinite, because a draw does not depend on that distance.
  [[nodiscard]] std::span<const float> logits(std::size_t i) const {
    const float* row = llama_get_logits_ith(context_, static_cast<std::int32_t>(pending_ - 1 + i));
    return {row, row == nullptr ? 0 : static_cast<std::size_t>(vocabulary_)};
  }
  [[nodiscard]] double margin(std::size_t i) const {
    if (sampler_) return std::numeric_limits<double>::infinity();
    float best = -std::numeric_limits<float>::infinity(), second = best;
    for (const float logit : logits(i)) second = std::max(second, std::min(best, logit)), best = std::max(best, logit);
    return static_cast<double>(best) - static_cast<double>(second);
  }
  /// V11, from the logits before any sampler or grammar. Sorts that row only, and only when it is called. The returned
  /// tokens are valid until the next call.
  [[nodiscard]] TokenSpan top_k(std::size_t i) noexcept { return reprise::top_k(logits(i), best_); }
  [[nodiscard]] Capabilities capabilities() const {
    Capabilities can{.max_rows = most_rows_, .max_context = llama_n_ctx_seq(context_), .max_leaves = options_.leaves};
    if (recurrent_) can.rollback = Rollback::snapshot;
    can.deterministic = false;  // kernels add in another order for another number of rows
    return can;
  }
  /// V9: the time of the last pass, including the snapshot before it and the rollback.
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept { return pass_time_; }
  /// The total time spent in llama_decode.
  [[nodiscard]] std::chrono::nanoseconds model_time() const noexcept { return model_time_; }
  /// The committed tokens in the cache.
  [[nodiscard]] TokenSpan cached() const noexcept { return tokens_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr const char* not_copied = "llama_memory_seq_cp did not copy the rows of a path: set leaves to 1";
  static constexpr llama_state_seq_flags state_part = LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY;
  struct Free {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
    void operator()(llama_batch* batch) const { llama_batch_free(*batch), delete batch; }
  };

  LlamaVerifier(llama_context* context, const LlamaOptions& options) : context_(context), options_(options) {
    tokens_.reserve(llama_n_ctx_seq(context)), leaves_of_.reserve(most_rows_);
  }
  static Error failed(const char* why, std::int32_t code = 0) {
    return {ErrorCode::verifier_failed, why, static_cast<std::uint64_t>(code)};
  }
  [[nodiscard]] llama_seq_id leaf(std::size_t i) const { return options_.sequence + static_cast<llama_seq_id>(i); }
  [[nodiscard]] llama_pos position(std::size_t row) const { return static_cast<llama_pos>(tokens_.size() + row); }
  static std::size_t first_leaf(std::uint64_t leaves) { return static_cast<std::size_t>(std::countr_zero(leaves)); }
  [[nodiscard]] llama_pos last_position(std::size_t i) const { return llama_memory_seq_pos_max(memory_, leaf(i)); }
  /// A drafted token outside the vocabulary runs as token 0, and no pick agrees with it.
  [[nodiscard]] Token known(Token token) const { return token >= 0 && token < vocabulary_ ? token : 0; }
  Token pick(std::size_t i) {
    const auto row = static_cast<std::int32_t>(pending_ - 1 + i);
    return sampler_ ? llama_sampler_sample(sampler_.get(), context_, row) : argmax(logits(i));
  }
  void add(Token token, llama_pos at, std::uint64_t leaves, bool output) {
    const std::int32_t row = batch_->n_tokens++;
    batch_->token[row] = token, batch_->pos[row] = at;
    batch_->logits[row] = output ? 1 : 0, batch_->n_seq_id[row] = 0;
    for (; leaves != 0; leaves &= leaves - 1) batch_->seq_id[row][batch_->n_seq_id[row]++] = leaf(first_leaf(leaves));
  }
  Result<void> begin_pass(std::size_t rows, std::size_t drafted, std::size_t leaves) {
    if (auto done = discard_open_pass(); !done) return done;  // V5
    if (rows > most_rows_ || leaves > options_.leaves) return failed("more rows or paths than capabilities()");
    if (sampler_) sampler_before_.reset(llama_sampler_clone(sampler_.get()));
    if (sampler_ && !sampler_before_) return failed("llama_sampler_clone made no copy: use samplers that have one");
    pending_ = rows - drafted, drafted_ = drafted, leaves_ = leaves;
    open_ = true;
    return {};
  }
  Result<Picks> run_pass(Clock::time_point start) {
    if (auto done = decode(); !done) return done.error();
    for (std::size_t i = 0; i <= drafted_; ++i)
      if (logits(i).empty())
        return failed("llama_get_logits_ith has no logits of a row: make the llama_context without embeddings");
    pass_time_ = Clock::now() - start + std::exchange(saving_, {});
    return Picks{this};
  }
  /// Commits the first `keep` tokens of the batch, on the path to row `last`, and removes the other rows.
  Result<void> commit_path(std::size_t keep, std::size_t last) {
    const auto start = Clock::now();
    const llama_pos end = position(keep);
    const bool tree = leaves_ > 1 && keep > pending_;
    if (const std::size_t chosen = tree ? first_leaf(leaves_of_[last - pending_]) : 0; chosen != 0) {
      remove(0, position(pending_));  // the accepted path replaces that of leaf 0
      llama_memory_seq_cp(memory_, leaf(chosen), leaf(0), position(pending_), end);
      if (last_position(0) != end - 1) return lost_ = true, failed(not_copied);
    }
    remove_other_leaves();
    if (keep < pending_ + drafted_) remove(0, end);
    if (lost_)
      return failed("llama_memory_seq_rm does not remove rejected rows: decode without drafts, or use another model");
    tokens_.insert(tokens_.end(), batch_->token, batch_->token + keep);
    open_ = false;
    pass_time_ += Clock::now() - start;
    return {};
  }
  Result<void> decode() {  // runs the added rows
    const auto start = Clock::now();
    const std::int32_t code = llama_decode(context_, *batch_);
    batch_->n_tokens = 0;
    llama_synchronize(context_);
    model_time_ += Clock::now() - start;
    if (code == 0) return {};
    if (code == 1)
      return failed("no room in the KV cache: raise n_ctx, free sequences; for trees over a window, set swa_full", 1);
    return failed("llama_decode failed; its code: 2 aborted, -1 an invalid batch, below -1 fatal", code);
  }
  /// V5: discards a pass that was never committed, with its draws.
  Result<void> discard_open_pass() {
    if (!open_) return lost_ ? run_again() : Result<void>();
    remove_other_leaves();
    if (sampler_) sampler_ = std::move(sampler_before_);
    open_ = false;
    return lost_ ? run_again() : put_back();
  }
  Result<void> put_back() {
    if (recurrent_ && (saved_at_ != tokens_.size() || state_.empty())) return run_again();
    lost_ = recurrent_ && !llama_state_seq_set_data_ext(context_, state_.data(), state_.size(), leaf(0), state_part);
    if (lost_) return failed("llama_state_seq_set_data_ext did not take the saved state back");
    lost_ = !llama_memory_seq_rm(memory_, leaf(0), position(0), -1);
    return lost_ ? failed("llama_memory_seq_rm cannot remove the rows of a pass") : Result<void>();
  }
  Result<void> run_again() {
    const std::vector<Token> tokens = std::exchange(tokens_, {});
    open_ = lost_ = false;
    remove(0, -1);
    auto done =
        lost_ ? failed("llama_memory_seq_rm does not clear a sequence: make a new llama_context") : prefill(tokens);
    if (!done) tokens_ = tokens, lost_ = true;
    return done;
  }
  /// Removes the positions of a leaf from `from` on. If that fails, the next call clears the cache and runs it again.
  void remove(std::size_t at, llama_pos from) { lost_ = !llama_memory_seq_rm(memory_, leaf(at), from, -1) || lost_; }
  void remove_other_leaves() {
    for (; leaves_ > 1; --leaves_) remove(leaves_ - 1, -1);
  }

  llama_context* context_;
  LlamaOptions options_;
  const llama_model* model_ = llama_get_model(context_);
  llama_memory_t memory_ = llama_get_memory(context_);
  Token vocabulary_ = llama_vocab_n_tokens(llama_model_get_vocab(model_));
  bool recurrent_ = llama_model_is_recurrent(model_) || llama_model_is_hybrid(model_);
  std::size_t batch_size_ = llama_n_batch(context_);
  std::size_t most_rows_ = llama_n_ubatch(context_);  // above it, a pass may overwrite rows that a rollback needs
  std::unique_ptr<llama_batch, Free> batch_{new llama_batch(llama_batch_init(int(batch_size_), 0, 64))};
  std::unique_ptr<llama_sampler, Free> sampler_{options_.sampler}, sampler_before_;
  std::vector<Token> tokens_;        // committed tokens in the cache
  std::vector<std::uint8_t> state_;  // the last snapshot, taken at saved_at_ tokens; empty: none
  std::size_t saved_at_ = 0;
  bool open_ = false, lost_ = false;  // a pass awaits its commit; the cache differs from tokens_
  std::size_t pending_ = 0, drafted_ = 0, leaves_ = 1;
  std::vector<Token> best_ = std::vector<Token>(options_.top_k);    // the last row that top_k() returned
  std::vector<std::uint64_t> leaves_of_;                            // bit l: the drafted row leads to leaf(l)
  std::chrono::nanoseconds pass_time_{}, saving_{}, model_time_{};  // saving_: belongs to the next pass
};

}  // namespace reprise::llama
