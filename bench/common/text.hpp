// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::tools {

/// A number with `digits` digits after the point, the same in every locale.
std::string decimal(double value, int digits);
/// A number with `digits` significant digits, without zeros at its end: 0.25, 1e-07.
std::string significant(double value, int digits);
/// The shortest spelling that reads back as the same double.
std::string shortest(double value);
/// A relative error in percent with its sign and one digit: +1.5%.
std::string signed_percent(double error);
/// The number with commas, for people: 12,345.
std::string grouped(std::uint64_t value);
/// The text of a duration: "40 s", "12 min", "3.5 h".
std::string duration_text(double seconds);
/// `text` padded with blanks to `width` columns.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

/// The columns of a terminal that help and notes must fit.
inline constexpr std::size_t narrow_terminal = 80;
/// `text` with lines of at most narrow_terminal columns, of which the first `column` are taken. A blank line ends a
/// paragraph, and so does a line with another indentation. Text after two blanks in an indented line, as the meaning in
/// "  key  meaning", begins a column of its own: later lines of the paragraph are indented to it.
std::string wrapped(std::string_view text, std::size_t column = 0);

/// `text` without the byte-order mark at its beginning, if it has one. Some editors write it.
std::string_view without_byte_order_mark(std::string_view text);

/// `text` in a form that is safe to print on a terminal. Control characters and bytes that are not UTF-8 become
/// escapes: \n, \t, \r or \x1b. File names and categories come from others and could otherwise move the cursor or hide
/// lines. A backslash is not escaped, so the result cannot be decoded.
std::string printable(std::string_view text);

}  // namespace reprise::tools
