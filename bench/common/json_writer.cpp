// SPDX-License-Identifier: Apache-2.0
#include "json_writer.hpp"

#include <algorithm>

#include "utf8.hpp"

namespace reprise::tools {

JsonWriter& JsonWriter::begin(char open, char close) {
  separate();
  out_ << open;
  levels_.push_back({close});
  return *this;
}

JsonWriter& JsonWriter::end() {
  break_line();
  out_ << levels_.back().close;
  levels_.pop_back();
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  out_ << quote_json(name) << ":" << space_;
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::new_line(std::size_t indent) {
  breaks_ = true;
  indent_ = indent;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ << json;
  return *this;
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  const bool first = levels_.empty() || levels_.back().empty;
  if (!levels_.empty()) levels_.back().empty = false;
  if (!first) out_ << "," << (breaks_ ? "" : space_);
  break_line();
}

void JsonWriter::break_line() {
  if (breaks_) out_ << "\n" << std::string(indent_, ' ');
  breaks_ = false;
}

std::string quote_json(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const auto c = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      out += "\\ufffd";  // a path may hold any bytes, JSON only UTF-8
    } else if (c == '"' || c == '\\') {
      out += {'\\', text[i]};
    } else if (c < 0x20) {
      constexpr std::string_view nibbles = "0123456789abcdef";
      out += "\\u00";
      out += {nibbles[c >> 4], nibbles[c & 15]};
    } else {
      out += text.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return out += '"';
}

}  // namespace reprise::tools
