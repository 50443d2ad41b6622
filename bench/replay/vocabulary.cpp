// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>

#include "common/files.hpp"
#include "common/json.hpp"
#include "common/utf8.hpp"
#include "json_reader.hpp"

namespace reprise::replay {
namespace {

constexpr std::string_view blank_of_bytes = "\xc4\xa0";          // U+0120 stands for the byte 0x20
constexpr std::string_view blank_of_sentences = "\xe2\x96\x81";  // U+2581

/// Returns the byte that a character of a byte-level vocabulary stands for. The printable bytes of Latin-1 stand for
/// themselves; the others, in order, have the characters from U+0100 on.
std::optional<std::uint8_t> byte_of(std::uint32_t point) {
  const auto printable = [](std::uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  };
  if (point < 0x100) return printable(point) ? std::optional(static_cast<std::uint8_t>(point)) : std::nullopt;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 0x100; ++byte)
    if (!printable(byte) && next++ == point) return static_cast<std::uint8_t>(byte);
  return std::nullopt;
}

/// Decodes a text of a byte-level vocabulary. Returns nullopt if it has other characters, as special tokens may.
std::optional<std::string> bytes_of(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const std::size_t length = tools::utf8_length(text);
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
    if (length == 0 || length > 2) return std::nullopt;
    const auto decoded = byte_of(length == 1 ? byte(0) : (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f));
    if (!decoded) return std::nullopt;
    bytes += static_cast<char>(*decoded);
    text.remove_prefix(length);
  }
  return bytes;
}

/// The id in `json`, if it is a token id.
std::optional<Token> id_of(const tools::Json& json) {
  const tools::Json::Number* number = json.number();
  if (number == nullptr || !number->integer || *number->integer < 0 ||
      *number->integer > std::numeric_limits<Token>::max())
    return std::nullopt;
  return static_cast<Token>(*number->integer);
}

}  // namespace

Vocabulary Vocabulary::parse(const std::string& path, std::string_view text) {
  const JsonReader reader(path);
  tools::Json json;
  if (const auto error = tools::parse_json(text, json))
    throw tools::InputError(path + ":" + std::to_string(error->line) + ": column " + std::to_string(error->column) +
                            ": " + error->message);
  Vocabulary words;
  if (const tools::Json::Array* list = json.array()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string* word = (*list)[i].string();
      if (word == nullptr) reader.fail("[" + std::to_string(i) + "]: expected a text");
      words.texts_.emplace(static_cast<Token>(i), *word);
    }
  } else if (json.object() == nullptr) {
    reader.fail("expected an array of texts, or an object of ids by text");
  } else {
    const tools::Json* model = json.find("model");
    const tools::Json* inner = model == nullptr ? nullptr : model->find("vocab");
    const tools::Json& ids = inner == nullptr ? json : *inner;
    if (ids.object() == nullptr) reader.fail("model.vocab: expected an object of ids by text");
    for (std::size_t i = 0; i < ids.object()->keys.size(); ++i) {
      const auto id = id_of(ids.object()->values[i]);
      if (!id) reader.fail(ids.object()->keys[i] + ": expected a token id");
      words.texts_.emplace(*id, ids.object()->keys[i]);
    }
    const tools::Json* added = inner == nullptr ? nullptr : json.find("added_tokens");
    if (added != nullptr && added->array() != nullptr)
      for (const tools::Json& token : *added->array()) {
        const tools::Json* id = token.find("id");
        const tools::Json* content = token.find("content");
        if (id != nullptr && id_of(*id) && content != nullptr && content->string() != nullptr)
          words.texts_.emplace(*id_of(*id), *content->string());
      }
  }
  if (words.empty()) reader.fail("the vocabulary is empty");
  words.decode();
  return words;
}

Vocabulary Vocabulary::read(const std::string& path) {
  std::ostringstream text;
  text << tools::open_input(path, "a vocabulary, as in vocab.json or tokenizer.json").rdbuf();
  return parse(path, text.str());
}

const std::string* Vocabulary::find(Token token) const {
  const auto at = texts_.find(token);
  return at == texts_.end() ? nullptr : &at->second;
}

void Vocabulary::decode() {
  const bool bytes = std::any_of(texts_.begin(), texts_.end(),
                                 [](const auto& entry) { return entry.second.starts_with(blank_of_bytes); });
  for (auto& [id, text] : texts_) {
    if (bytes) {
      if (auto decoded = bytes_of(text)) text = std::move(*decoded);
      continue;
    }
    for (std::size_t at = 0; (at = text.find(blank_of_sentences, at)) != std::string::npos; ++at)
      text.replace(at, blank_of_sentences.size(), " ");
  }
}

}  // namespace reprise::replay
