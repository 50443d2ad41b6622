// SPDX-License-Identifier: Apache-2.0
#include "batch_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/input_error.hpp"
#include "engine_error.hpp"

namespace reprise::llama {

using tools::InputError;

BatchEngine::BatchEngine(llama_context* context, std::size_t sequences)
    : context_(context),
      most_rows_(std::min(llama_n_batch(context), llama_n_ubatch(context))),
      vocabulary_(static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context))))),
      batch_(new llama_batch(llama_batch_init(static_cast<std::int32_t>(most_rows_), 0, 1))) {
  const llama_model* const model = llama_get_model(context);
  if (llama_model_is_recurrent(model) || llama_model_is_hybrid(model))
    throw InputError(
        "--sequences: this model is recurrent or hybrid, so its sequences cannot be rolled back by removing positions; "
        "leave out --sequences, or use an attention model");
  if (sequences > llama_n_seq_max(context))
    throw InputError("--sequences " + std::to_string(sequences) + ": the context was made for " +
                     std::to_string(llama_n_seq_max(context)) + " sequences (n_seq_max)");
  if (sequences > most_rows_)
    throw InputError("--sequences " + std::to_string(sequences) + ": a pass has at most " + std::to_string(most_rows_) +
                     " rows, and each sequence needs one; give fewer --sequences");
  llama_memory_clear(llama_get_memory(context), false);
}

bool BatchEngine::run(const PackedBatch& batch, std::size_t outputs) {
  if (batch.rows() > most_rows_)
    throw EngineError("a pass of " + std::to_string(batch.rows()) + " rows is larger than a batch");
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    // A token outside the vocabulary runs as token 0. The model never picks such a token, so it is rejected.
    const bool known = batch.tokens[row] >= 0 && static_cast<std::size_t>(batch.tokens[row]) < vocabulary_;
    batch_->token[row] = known ? batch.tokens[row] : 0;
    batch_->pos[row] = batch.positions[row];
    batch_->n_seq_id[row] = 1;
    batch_->seq_id[row][0] = batch.sequences[row];
    batch_->logits[row] = row < outputs && batch.wants_logits[row] != 0 ? 1 : 0;
  }
  batch_->n_tokens = static_cast<std::int32_t>(batch.rows());
  const auto start = std::chrono::steady_clock::now();
  const std::int32_t status = llama_decode(context_, *batch_);
  llama_synchronize(context_);
  model_time_ += std::chrono::steady_clock::now() - start;
  if (status == 0 || status == 1) return status == 0;
  throw EngineError("llama_decode failed with " + std::to_string(status) + " on a pass of " +
                    std::to_string(batch.rows()) + " rows");
}

std::span<const float> BatchEngine::logits(std::size_t row) const {
  const float* const logits = llama_get_logits_ith(context_, static_cast<std::int32_t>(row));
  if (logits == nullptr) throw EngineError("llama.cpp has no logits for row " + std::to_string(row) + " of a pass");
  return {logits, vocabulary_};
}

void BatchEngine::truncate(BatchSlot slot, std::size_t size) {
  if (!llama_memory_seq_rm(llama_get_memory(context_), slot, static_cast<llama_pos>(size), -1))
    throw EngineError("llama_memory_seq_rm does not remove the tokens of sequence " + std::to_string(slot) +
                      " after the first " + std::to_string(size));
}

}  // namespace reprise::llama
