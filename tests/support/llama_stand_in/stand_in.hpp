// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "llama.h"

/// \file The settings and counters of the stand-in for llama.cpp.
///
/// A model is a text file: the line `llama-stand-in 1`, then any of these lines:
/// * vocabulary 300    number of tokens; 260 or more represent every text (4 control tokens, 256 bytes, words)
/// * kind attention    or recurrent (one state for each sequence), encoder (no memory)
/// * context 4096      the trained context, used if llama_context_params::n_ctx is 0
/// * template chatml   or none, or other: one that llama_chat_apply_template() does not know
/// * seed 1            seed of the weights
/// * eos 0             added to the logit of the token that ends a text; less than -50: never ends
namespace reprise::llama_stand_in {

/// The faults of real engines, and behaviour that users call a fault.
enum class Fault : std::uint8_t {
  none,
  state_not_saved,     ///< llama_state_seq_get_data_ext() returns 0
  state_not_restored,  ///< llama_state_seq_set_data_ext() returns 0, with the sequence cleared
  rollback_refused,    ///< llama_memory_seq_rm() refuses all but whole sequences, and changes nothing
  copy_does_nothing,   ///< llama_memory_seq_cp() changes nothing
  no_logits,           ///< llama_get_logits_ith() returns null, as in a context with embeddings
  no_clone,            ///< llama_sampler_clone() returns null
  no_batch,            ///< llama_batch_init() finds no memory for the tokens
};

/// The settings of all contexts. A test that sets them resets them to {}.
struct Settings {
  Fault fault = Fault::none;
  /// The number of the llama_decode() call that fails, in terms of `decodes`; 0: none.
  std::size_t failing_decode = 0;
  std::int32_t failure = -3;  ///< its result; 1 and -1 run nothing, others a part
  /// The largest change of a logit by the number of rows in the batch, like the rounding of kernels of other shapes.
  float row_count_noise = 0;
  std::size_t decodes = 0;          ///< calls of llama_decode(), failed ones included
  std::size_t refused_batches = 0;  ///< of these, the calls that returned -1
  std::size_t rows = 0;             ///< in all calls
  std::size_t samplers = 0;         ///< samplers not yet freed
  std::size_t contexts = 0;
  std::size_t models = 0;
};
Settings& settings();

/// The text of a model file.
struct ModelText {
  std::int32_t vocabulary = 300;
  std::string kind = "attention";
  std::int32_t context = 4096;
  std::string chat_template = "chatml";
  std::uint64_t seed = 1;
  float eos = -100;

  [[nodiscard]] std::string text() const;
};
/// Makes a model without a file; llama_model_free() frees it.
llama_model* make_model(const ModelText& text = {});

}  // namespace reprise::llama_stand_in
