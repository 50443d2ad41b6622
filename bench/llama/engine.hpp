// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llama.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::llama {

struct EngineOptions {
  std::string model;          ///< a GGUF file
  std::uint32_t context = 0;  ///< tokens; 0: the model's training context
  std::uint32_t batch = 512;  ///< most tokens of one llama_decode
  std::int32_t threads = 2;
  std::uint32_t sequences = 1;
  bool unified = true;                                     ///< one cache for all sequences, as trees require
  bool verbose = false;                                    ///< print llama.cpp's own log to standard error
  std::function<void(llama_context_params&)> adjust = {};  ///< changes other settings of the context, for tests
};

struct Message {
  std::string role;
  std::string content;
};

/// A model and one context of llama.cpp. Unusable inputs are thrown as tools::InputError. Threads: one at a time.
class Engine {
 public:
  /// An engine without a model, to be assigned to.
  Engine() = default;
  /// Throws InputError if there is no such file, llama.cpp cannot load it, or the memory for the context is missing.
  static Engine load(const EngineOptions& options);

  [[nodiscard]] llama_model* model() const { return model_.get(); }
  [[nodiscard]] llama_context* context() const { return context_.get(); }
  [[nodiscard]] const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  [[nodiscard]] const EngineOptions& options() const { return options_; }

  /// Token ids are 0 ... vocabulary() - 1.
  [[nodiscard]] std::size_t vocabulary() const;
  /// The most tokens of one sequence.
  [[nodiscard]] std::size_t context_size() const;
  /// `add_special`: add the tokens that the model expects at the start of a text (BOS). Names of special tokens in
  /// `text` become these tokens.
  [[nodiscard]] std::vector<Token> tokenize(std::string_view text, bool add_special) const;
  /// The bytes of the tokens; special tokens appear by name. The result need not be valid UTF-8, because one character
  /// can span several tokens.
  [[nodiscard]] std::string text(TokenSpan tokens) const;
  /// The conversation in the model's own chat template. Throws InputError if the model has none that llama.cpp knows.
  [[nodiscard]] std::string chat(std::span<const Message> messages, bool answer_follows) const;
  /// True if the token ends a turn (end of sequence, end of turn, ...).
  [[nodiscard]] bool ends(Token token) const;
  /// All tokens that end a turn, in ascending order.
  [[nodiscard]] const std::vector<Token>& end_tokens() const { return end_tokens_; }
  /// Name, size and quantisation.
  [[nodiscard]] std::string description() const;

  /// Empties the cache of all sequences.
  void clear();

 private:
  struct FreeModel {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  struct FreeContext {
    void operator()(llama_context* context) const { llama_free(context); }
  };

  EngineOptions options_;
  std::unique_ptr<llama_model, FreeModel> model_;
  std::unique_ptr<llama_context, FreeContext> context_;  // freed before the model
  std::vector<Token> end_tokens_;
};

}  // namespace reprise::llama
