// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "llama.h"

/// \file What tests can set and ask of the stand-in for llama.cpp.
///
/// A model is a text file: the line `llama-stand-in 1`, then any of these lines
///   vocabulary 300   tokens; of 260 and more each text can be told (4 control tokens, 256 bytes, words)
///   kind attention   or recurrent, hybrid, window (layers of a sliding window and full ones), encoder (no memory)
///   window 16        tokens that a row of a sliding window sees, itself included
///   context 4096     that it was trained for: llama_context_params::n_ctx = 0
///   template chatml  or none, or other: one that llama_chat_apply_template() does not know
///   seed 1           of its weights
///   rollback 1       a recurrent one that keeps states for llama_context_params::n_rs_seq
///   eos 0            how likely it ends (added to the logit of the token that ends); less than -50: never
namespace reprise::llama_stand_in {

/// What real engines get wrong, or do that users call wrong.
enum class Fault : std::uint8_t {
  none,
  rollback_keeps_one,  ///< llama_memory_seq_rm() leaves the first position of the range where it is
  copy_forgets_last,   ///< llama_memory_seq_cp() leaves the last position out
  siblings_visible,    ///< rows see all rows before them, those of other sequences, too
  state_is_stale,      ///< llama_state_seq_set_data_ext() answers that all is well, and does nothing
  clone_forgets,       ///< llama_sampler_clone() gives a sampler that has accepted nothing
  state_not_saved,     ///< llama_state_seq_get_data_ext() answers 0
  state_not_restored,  ///< llama_state_seq_set_data_ext() answers 0, and has cleared the sequence
  rollback_refused,    ///< llama_memory_seq_rm() answers false for all but whole sequences, and changes nothing
};

/// For all contexts; a test sets it and puts it back to {}.
struct Settings {
  Fault fault = Fault::none;
  /// The llama_decode() that fails, counted from 1 as `decodes` counts; 0: none does.
  std::size_t failing_decode = 0;
  std::int32_t failure = -3;  ///< what it answers; 1 and -1 before anything is run, others after it was run in part
  /// Greatest change of a logit by the number of rows in the batch, as kernels of another shape round differently.
  float row_count_noise = 0;
  std::size_t decodes = 0;          ///< calls of llama_decode(), also those that fail
  std::size_t refused_batches = 0;  ///< of these, those that answered -1
  std::size_t rows = 0;             ///< in all of them
  std::size_t samplers = 0;         ///< that live: what was not freed
  std::size_t contexts = 0;
  std::size_t models = 0;
};
Settings& settings();

/// The text of a model file.
struct ModelText {
  std::int32_t vocabulary = 300;
  std::string kind = "attention";
  std::int32_t window = 16;
  std::int32_t context = 4096;
  std::string chat_template = "chatml";
  std::uint64_t seed = 1;
  bool rollback = false;
  float eos = -100;

  [[nodiscard]] std::string text() const;
};
/// Without a file; llama_model_free() frees it.
llama_model* make_model(const ModelText& text = {});

/// Cells of the cache that are in use.
std::size_t used_cells(const llama_context* context);

}  // namespace reprise::llama_stand_in
