// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "reprise/core/token.hpp"

namespace reprise::replay {

/// The text of each token, for reports.
class Vocabulary {
 public:
  /// No text is known.
  Vocabulary() = default;

  /// Reads a JSON file: an array of texts by token id; an object of ids by text (vocab.json); or an object that has
  /// such an object as "vocab" in "model" (tokenizer.json), with further texts in "added_tokens". Texts of byte-level
  /// vocabularies are decoded if some text begins with U+0120. U+2581 becomes a blank. Throws InputError.
  static Vocabulary read(const std::string& path);
  /// The same for the text of such a file. `path` is for messages.
  static Vocabulary parse(const std::string& path, std::string_view text);

  /// Sets the text of a token.
  void add(Token token, std::string text) { texts_[token] = std::move(text); }

  [[nodiscard]] bool empty() const { return texts_.empty(); }
  /// The bytes of a token, which need not be whole characters; null if it has no text.
  [[nodiscard]] const std::string* find(Token token) const;

 private:
  void decode();

  std::unordered_map<Token, std::string> texts_;
};

}  // namespace reprise::replay
