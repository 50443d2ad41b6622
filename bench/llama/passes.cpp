// SPDX-License-Identifier: Apache-2.0
#include "passes.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "common/input_error.hpp"
#include "engine_error.hpp"

namespace reprise::llama {

using tools::InputError;

LlamaPasses::LlamaPasses(llama_context* context)
    : context_(context), batch_(llama_batch_init(static_cast<std::int32_t>(llama_n_batch(context)), 0, 1)) {}

LlamaPasses::~LlamaPasses() { llama_batch_free(batch_); }

std::size_t LlamaPasses::most_rows() const { return std::min(llama_n_batch(context_), llama_n_ubatch(context_)); }
std::size_t LlamaPasses::sequence_size() const { return llama_n_ctx_seq(context_); }
std::size_t LlamaPasses::total_size() const { return llama_n_ctx(context_); }
std::size_t LlamaPasses::most_sequences() const { return llama_n_seq_max(context_); }

std::size_t LlamaPasses::vocabulary() const {
  return static_cast<std::size_t>(llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context_))));
}

void LlamaPasses::set(std::size_t row, const PassRow& value, bool logits) {
  batch_.token[row] = value.token;
  batch_.pos[row] = static_cast<llama_pos>(value.position);
  batch_.n_seq_id[row] = 1;
  batch_.seq_id[row][0] = static_cast<llama_seq_id>(value.sequence);
  batch_.logits[row] = logits ? 1 : 0;
}

void LlamaPasses::decode() {
  const std::int32_t status = llama_decode(context_, batch_);
  if (status == 0) return;
  throw EngineError("llama_decode failed with " + std::to_string(status) + " on a pass of " +
                    std::to_string(batch_.n_tokens) + " rows" +
                    (status == 1 ? ": the cache is full; give a larger --context" : ""));
}

std::uint64_t LlamaPasses::run(std::span<const PassRow> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) set(i, rows[i], true);
  batch_.n_tokens = static_cast<std::int32_t>(rows.size());
  const auto start = std::chrono::steady_clock::now();
  decode();
  llama_synchronize(context_);
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start);
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 1));
}

std::span<const float> LlamaPasses::logits(std::size_t row) {
  const float* logits = llama_get_logits_ith(context_, static_cast<std::int32_t>(row));
  if (logits == nullptr) throw EngineError("llama.cpp has no logits for row " + std::to_string(row) + " of a pass");
  return {logits, vocabulary()};
}

void LlamaPasses::fill(TokenSpan tokens, std::size_t position, std::size_t sequence) {
  while (!tokens.empty()) {
    const TokenSpan part = tokens.first(std::min<std::size_t>(tokens.size(), llama_n_batch(context_)));
    for (std::size_t i = 0; i < part.size(); ++i) set(i, {part[i], position++, sequence}, false);
    batch_.n_tokens = static_cast<std::int32_t>(part.size());
    decode();
    tokens = tokens.subspan(part.size());
  }
  llama_synchronize(context_);
}

void LlamaPasses::truncate(std::size_t sequence, std::size_t size) {
  if (!llama_memory_seq_rm(llama_get_memory(context_), static_cast<llama_seq_id>(sequence),
                           static_cast<llama_pos>(size), -1))
    throw InputError(
        "this model's cache cannot be rolled back (llama_memory_seq_rm refuses, as for recurrent models): verify "
        "passes of it cannot be measured one by one");
}

void LlamaPasses::clear() { llama_memory_clear(llama_get_memory(context_), false); }

}  // namespace reprise::llama
