// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/stats/statistics.hpp"

/// \file Statistics as text. The caller passes `write(std::string_view)`, which receives the text piece by piece. The
/// functions allocate nothing, and `write` can append to a stream, a string or a log:
///
///   std::string line;
///   write_json(session.statistics(), [&](std::string_view piece) { line += piece; });
namespace reprise::inline v0 {

namespace detail {

/// Writes text and numbers piece by piece. Numbers are ASCII digits, regardless of the locale.
template <class Write>
class StatisticsWriter {
 public:
  explicit StatisticsWriter(Write& write) noexcept : write_(write) {}

  void text(std::string_view piece) { write_(piece); }
  void number(std::int64_t value) {
    if (value < 0) text("-");
    number(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
  }
  void number(std::uint64_t value) {
    std::array<char, 20> digits;
    text(shown(digits, value));
  }
  /// Writes part / whole, rounded down to three decimal places; 0.000 if `whole` is 0. Computes with integers, because
  /// some of the supported standard libraries lack floating-point conversion or make it depend on the locale.
  void ratio(std::uint64_t part, std::uint64_t whole) {
    const std::uint64_t above = whole == 0 ? 0 : part / whole;
    // For a whole above 2^53 the decimals do not matter, and the multiplication below could overflow.
    const std::uint64_t rest = whole == 0 || whole > (std::uint64_t{1} << 53) ? 0 : part % whole * 1000 / whole;
    number(above);
    text(".");
    std::array<char, 3> digits = {'0', '0', '0'};
    std::uint64_t left = rest;
    for (std::size_t i = digits.size(); i-- > 0; left /= 10) digits[i] = static_cast<char>('0' + left % 10);
    text({digits.data(), digits.size()});
  }
  /// Writes a number right-aligned in a column of 12 characters.
  void column(std::uint64_t value) {
    std::array<char, 20> digits;
    const std::string_view shown_value = shown(digits, value);
    constexpr std::string_view blanks = "            ";
    text(blanks.substr(std::min(blanks.size(), shown_value.size())));
    text(shown_value);
  }
  /// Writes a name left-aligned in a column of 20 characters.
  void label(std::string_view name) {
    constexpr std::string_view blanks = "                    ";
    text(name);
    text(blanks.substr(std::min(blanks.size(), name.size())));
  }

 private:
  static std::string_view shown(std::array<char, 20>& digits, std::uint64_t value) noexcept {
    std::size_t first = digits.size();
    do digits[--first] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    return {digits.data() + first, digits.size() - first};
  }
  Write& write_;
};

/// Writes the members of JSON objects, with commas between them.
template <class Write>
class JsonFields {
 public:
  explicit JsonFields(Write& write) noexcept : out_(write) {}

  void count(std::string_view name, auto value) {
    key(name);
    out_.number(value);
  }
  void ratio(std::string_view name, std::uint64_t part, std::uint64_t whole) {
    key(name);
    out_.ratio(part, whole);
  }
  void open(std::string_view name, std::string_view bracket) {
    key(name);
    before_ = bracket;
  }
  void close(std::string_view bracket) {
    out_.text(bracket);
    before_ = ", ";
  }
  /// Writes an object without a name, as an element of an array or after key().
  void sent(const Statistics::Sent& tokens) {
    before_ = "{";
    count("sent", tokens.sent);
    count("accepted", tokens.accepted);
    close("}");
  }
  void element(const Statistics::Sent& tokens) {
    out_.text(before_);
    sent(tokens);
  }
  void key(std::string_view name) {
    out_.text(before_);
    out_.text("\"");
    out_.text(name);
    out_.text("\": ");
    before_ = ", ";
  }

 private:
  StatisticsWriter<Write> out_;
  std::string_view before_ = "{";
};

/// Writes the lines of the human-readable table.
template <class Write>
class TableLines {
 public:
  explicit TableLines(Write& write) noexcept : out_(write) {}

  void heading(std::string_view line) { out_.text(line); }
  void count(std::string_view label, std::uint64_t value) {
    out_.label(label);
    out_.column(value);
    out_.text("\n");
  }
  void ratio(std::string_view label, std::uint64_t part, std::uint64_t whole) {
    out_.label(label);
    out_.text("  ");
    out_.ratio(part, whole);
    out_.text("\n");
  }
  void sent(std::string_view label, const Statistics::Sent& tokens) {
    out_.label(label);
    out_.column(tokens.sent);
    out_.column(tokens.accepted);
    out_.text("  ");
    out_.ratio(tokens.accepted, tokens.sent);
    out_.text("\n");
  }

 private:
  StatisticsWriter<Write> out_;
};

}  // namespace detail

/// Writes one JSON object (RFC 8259) on one line, without a line feed. All fields are always present; docs/formats.md
/// defines their names and meaning. Cost: several hundred calls of `write`. Exceptions from `write` pass through.
template <std::invocable<std::string_view> Write>
void write_json(const Statistics& statistics, Write&& write) {
  detail::JsonFields<Write> out(write);
  out.count("tokens", statistics.tokens);
  out.count("passes", statistics.passes);
  out.count("passes_saved", statistics.passes_saved());
  out.count("drafted_passes", statistics.drafted_passes);
  out.count("drafted", statistics.drafted);
  out.count("accepted", statistics.accepted);
  out.count("wasted", statistics.wasted());
  out.count("padding", statistics.padding);
  out.count("auxiliary", statistics.auxiliary);
  out.ratio("mat", statistics.tokens, statistics.passes);
  out.ratio("acceptance_rate", statistics.accepted, statistics.drafted);
  out.ratio("drafted_per_pass", statistics.drafted, statistics.passes);
  out.open("cuts", "{");
  for (std::size_t i = 0; i < cut_count; ++i) out.count(to_string(static_cast<Cut>(i)), statistics.cuts[i]);
  out.close("}");
  out.open("by_source", "{");
  for (std::size_t i = 0; i < draft_source_count; ++i) {
    out.key(to_string(static_cast<DraftSource>(i)));
    out.sent(statistics.by_source[i]);
  }
  out.close("}");
  out.open("by_depth", "[");
  for (const Statistics::Sent& tokens : statistics.by_depth) out.element(tokens);
  out.close("]");
  out.count("timed_passes", statistics.pass_time.count);
  out.count("pass_ns", statistics.pass_time.nanoseconds);
  out.count("timed_drafts", statistics.drafting_time.count);
  out.count("drafting_ns", statistics.drafting_time.nanoseconds);
  out.close("}");
}

/// Writes a human-readable table: first the totals, then the cuts, sources and depths that occurred. Each line ends
/// with a line feed.
template <std::invocable<std::string_view> Write>
void write_table(const Statistics& statistics, Write&& write) {
  detail::TableLines<Write> out(write);
  out.count("tokens", statistics.tokens);
  out.count("passes", statistics.passes);
  out.count("  with a draft", statistics.drafted_passes);
  out.count("drafted", statistics.drafted);
  out.count("accepted", statistics.accepted);
  out.count("wasted", statistics.wasted());
  out.ratio("tokens per pass", statistics.tokens, statistics.passes);
  out.ratio("acceptance rate", statistics.accepted, statistics.drafted);
  if (statistics.padding != 0) out.count("pad rows", statistics.padding);
  if (statistics.auxiliary != 0) out.count("auxiliary", statistics.auxiliary);
  if (statistics.pass_time.count != 0)
    out.ratio("ns per pass", statistics.pass_time.nanoseconds, statistics.pass_time.count);
  if (statistics.drafting_time.count != 0)
    out.ratio("ns per draft", statistics.drafting_time.nanoseconds, statistics.drafting_time.count);

  if (statistics.passes != 0) out.heading("\ncut                       passes\n");
  for (std::size_t i = 0; i < cut_count; ++i)
    if (statistics.cuts[i] != 0) out.count(to_string(static_cast<Cut>(i)), statistics.cuts[i]);
  if (statistics.drafted != statistics.auxiliary) out.heading("\nsource                      sent    accepted  rate\n");
  for (std::size_t i = 0; i < draft_source_count; ++i)
    if (statistics.by_source[i].sent != 0) out.sent(to_string(static_cast<DraftSource>(i)), statistics.by_source[i]);
  if (statistics.by_depth[0].sent != 0) out.heading("\ndepth                       sent    accepted  rate\n");
  constexpr std::array<std::string_view, Statistics::depth_count> labels = {
      "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "deeper"};
  for (std::size_t i = 0; i < statistics.by_depth.size(); ++i)
    if (statistics.by_depth[i].sent != 0) out.sent(labels[i], statistics.by_depth[i]);
}

}  // namespace reprise
