// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

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

/// Rows for llama_decode().
class Rows {
 public:
  Rows& add(llama_token token, llama_pos pos, std::vector<llama_seq_id> sequences = {0}, bool logits = true) {
    tokens_.push_back(token);
    positions_.push_back(pos);
    counts_.push_back(static_cast<std::int32_t>(sequences.size()));
    sequences_.push_back(std::move(sequences));
    logits_.push_back(logits ? 1 : 0);
    return *this;
  }
  std::int32_t decode(const SmallContext& context) {
    ids_.clear();
    for (auto& sequences : sequences_) ids_.push_back(sequences.data());
    return llama_decode(context.get(), {static_cast<std::int32_t>(tokens_.size()), tokens_.data(), nullptr,
                                        positions_.data(), counts_.data(), ids_.data(), logits_.data()});
  }

 private:
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<std::int32_t> counts_;
  std::vector<std::vector<llama_seq_id>> sequences_;
  std::vector<llama_seq_id*> ids_;
  std::vector<std::int8_t> logits_;
};

}  // namespace reprise::llama_stand_in
