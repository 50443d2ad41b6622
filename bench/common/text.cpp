// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "utf8.hpp"

namespace reprise::tools {
namespace {

/// True for C0, DEL, and C1 as encoded in UTF-8, because some terminals obey C1 too. Also true for U+2028 and U+2029,
/// which end a line in some programs.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0) || character == "\xe2\x80\xa8" ||
         character == "\xe2\x80\xa9";
}

std::string escape(char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\t') return "\\t";
  if (byte == '\r') return "\\r";
  constexpr std::string_view nibbles = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(byte);
  return {'\\', 'x', nibbles[code >> 4], nibbles[code & 15]};
}

/// The indentation of the lines after `line` in its paragraph.
std::size_t hang(std::string_view line) {
  const std::size_t lead = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = lead == 0 ? line.npos : line.find("  ", lead);
  return std::min(gap == line.npos ? lead : line.find_first_not_of(' ', gap), line.size());
}

/// `paragraph`, one line, as lines of at most `width` columns. `margin` begins each line after the first.
std::string filled(std::string_view paragraph, std::size_t width, const std::string& margin) {
  const std::size_t indent = hang(paragraph);
  std::string all;
  std::string line(paragraph.substr(0, indent));
  for (std::size_t at = indent; at < paragraph.size();) {
    const std::size_t end = std::min(paragraph.find(' ', at), paragraph.size());
    const std::string_view word = paragraph.substr(at, end - at);
    at = end + 1;
    const bool first = line.size() == indent;
    if (!first && utf8_columns(line) + 1 + utf8_columns(word) > width) {
      all += line + "\n" + margin;
      line.assign(indent, ' ');
      line += word;
    } else {
      line.append(first ? "" : " ").append(word);
    }
  }
  return all + line;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t column) {
  const std::size_t width = narrow_terminal > column ? narrow_terminal - column : 1;
  const std::string margin(column, ' ');
  std::string all;
  std::string paragraph;
  bool begun = false;
  const auto end_paragraph = [&](std::string_view next) {
    if (begun) all += filled(paragraph, width, margin) + "\n" + (next.empty() ? "" : margin);
    begun = true;
    paragraph = next;
  };
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find('\n', from), text.size());
    const std::string_view line = text.substr(from, to - from);
    from = to + 1;
    const std::size_t lead = std::min(line.find_first_not_of(' '), line.size());
    if (!line.empty() && !paragraph.empty() && lead == hang(paragraph))
      paragraph.append(" ").append(line.substr(lead));
    else
      end_paragraph(line);
  }
  return all + filled(paragraph, width, margin);
}

std::string decimal(double value, int digits) {
  char buffer[400];  // the longest double has 309 digits before the point
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, digits);
  return {buffer, end};
}

std::string significant(double value, int digits) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::general, digits);
  return {buffer, end};
}

std::string shortest(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, end};
}

std::string signed_percent(double error) {
  const std::string text = decimal(100 * error, 1) + "%";
  return error < 0 ? text : "+" + text;
}

std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

std::string duration_text(double seconds) {
  if (seconds < 100) return decimal(std::ceil(seconds), 0) + " s";
  if (seconds < 100 * 60) return decimal(std::ceil(seconds / 60), 0) + " min";
  return decimal(seconds / 3600, 1) + " h";
}
std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.substr(text.substr(0, mark.size()) == mark ? mark.size() : 0);
}
std::string left(std::string_view text, std::size_t width) {
  const std::size_t columns = utf8_columns(text);
  return std::string(text) + std::string(columns < width ? width - columns : 0, ' ');
}
std::string right(std::string_view text, std::size_t width) {
  const std::size_t columns = utf8_columns(text);
  return std::string(columns < width ? width - columns : 0, ' ') + std::string(text);
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(character)) {
      for (const char byte : character) shown += escape(byte);
    } else {
      shown += character;
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

}  // namespace reprise::tools
