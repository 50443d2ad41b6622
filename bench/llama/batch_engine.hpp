// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include <llama.h>
#include "reprise/batch/packing.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// Runs passes of several sequences in one llama_context, which must outlive the object. Slot s is sequence s of the
/// context. A sequence rolls back by removing positions. Threads: one at a time.
class BatchEngine {
 public:
  /// Empties the cache. Throws InputError for a model that cannot remove positions (recurrent, hybrid), and if the
  /// context was made for fewer than `sequences` sequences.
  BatchEngine(llama_context* context, std::size_t sequences);

  /// The most rows of one pass.
  [[nodiscard]] std::size_t most_rows() const { return most_rows_; }
  /// The most tokens of one sequence.
  [[nodiscard]] std::size_t most_context() const { return llama_n_ctx_seq(context_); }
  /// True if all sequences share the cells of one cache (kv_unified); otherwise each has cells of its own.
  [[nodiscard]] bool shares_cells() const { return llama_n_ctx_seq(context_) == llama_n_ctx(context_); }

  /// Runs all rows in one llama_decode and waits for its end. Rows from `outputs` on get no logits. Returns false and
  /// changes nothing if the cache has too few free cells. Throws EngineError.
  [[nodiscard]] bool run(const PackedBatch& batch, std::size_t outputs = unlimited);
  /// The logits after a row of the last pass. Valid until the next pass.
  [[nodiscard]] std::span<const float> logits(std::size_t row) const;
  /// Draws the token after a row of the last pass.
  [[nodiscard]] Token sample(llama_sampler* sampler, std::size_t row) const {
    return llama_sampler_sample(sampler, context_, static_cast<std::int32_t>(row));
  }
  /// Removes all tokens of the sequence after the first `size`. Throws EngineError.
  void truncate(BatchSlot slot, std::size_t size);
  /// The total time spent in llama_decode.
  [[nodiscard]] std::chrono::nanoseconds model_time() const { return model_time_; }

 private:
  struct Free {
    void operator()(llama_batch* batch) const { llama_batch_free(*batch), delete batch; }
  };

  llama_context* context_;
  std::size_t most_rows_;
  std::size_t vocabulary_;
  std::unique_ptr<llama_batch, Free> batch_;
  std::chrono::nanoseconds model_time_{};
};

}  // namespace reprise::llama
