// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "llama.h"
#include "stand_in.hpp"

namespace reprise::llama_stand_in {

/// A model and a context of the stand-in, freed by the destructor. Nothing is logged, and all settings are reset.
class SmallContext {
 public:
  /// A model of a kind with few tokens, and a context of 256 cells for up to 12 sequences.
  explicit SmallContext(const char* kind = "attention") : SmallContext(small(kind), params()) {}
  SmallContext(const ModelText& text, const llama_context_params& params) {
    settings() = {};
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    model_.reset(make_model(text));
    context_.reset(llama_init_from_model(model_.get(), params));
  }

  static ModelText small(const char* kind) {
    ModelText text;
    text.vocabulary = 48;
    text.kind = kind;
    return text;
  }
  static llama_context_params params(std::uint32_t sequences = 12) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 256;
    params.n_seq_max = sequences;
    params.kv_unified = true;
    return params;
  }

  [[nodiscard]] llama_context* get() const { return context_.get(); }
  [[nodiscard]] llama_memory_t memory() const { return llama_get_memory(get()); }

 private:
  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
    void operator()(llama_context* context) const { llama_free(context); }
  };
  std::unique_ptr<llama_model, Free> model_;
  std::unique_ptr<llama_context, Free> context_;
};

}  // namespace reprise::llama_stand_in
