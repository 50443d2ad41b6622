// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llama.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::llama {

struct EngineOptions {
  std::string model;          ///< a GGUF file
  std::uint32_t context = 0;  ///< tokens; 0: what the model was trained with
  std::uint32_t batch = 512;  ///< tokens of one llama_decode
  std::int32_t threads = 2;
  std::uint32_t sequences = 1;
  bool unified = true;   ///< one cache for all sequences: what trees need
  bool verbose = false;  ///< llama.cpp's own log goes to standard error
};

struct Message {
  std::string role;
  std::string content;
};

/// A model and one context of llama.cpp. What was handed in and cannot be used is thrown as tools::InputError, in a
/// sentence. Threads: one at a time.
class Engine {
 public:
  /// None; only to be assigned to.
  Engine() = default;
  /// Throws InputError: no such file, not a model that this library can load, no memory for the context.
  static Engine load(const EngineOptions& options);

  [[nodiscard]] llama_model* model() const { return model_.get(); }
  [[nodiscard]] llama_context* context() const { return context_.get(); }
  [[nodiscard]] const llama_vocab* vocab() const { return llama_model_get_vocab(model_.get()); }
  [[nodiscard]] const EngineOptions& options() const { return options_; }

  /// Token ids are 0 ... vocabulary() - 1.
  [[nodiscard]] std::size_t vocabulary() const;
  /// Tokens that one sequence can have.
  [[nodiscard]] std::size_t context_size() const;
  /// `add_special`: with what this model wants in front of a text (BOS). Names of special tokens become these tokens.
  [[nodiscard]] std::vector<Token> tokenize(std::string_view text, bool add_special) const;
  /// The bytes of the tokens, special ones by their names. They need not be valid UTF-8: a character can be spread
  /// over several tokens.
  [[nodiscard]] std::string text(TokenSpan tokens) const;
  /// The conversation as the model's own template writes it. Throws InputError when it has none that llama.cpp knows.
  [[nodiscard]] std::string chat(std::span<const Message> messages, bool answer_follows) const;
  /// Ends a turn (end of sequence, end of turn, ...).
  [[nodiscard]] bool ends(Token token) const;
  /// All tokens that do, ascending.
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
