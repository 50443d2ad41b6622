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
namespace reprise { inline namespace v0 {

namespace detail {

/// A number as ASCII digits, regardless of the locale.
class Digits {
 public:
  explicit Digits(std::uint64_t value) noexcept { put(value, 1); }
  explicit Digits(std::int64_t value) noexcept {
    put(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value), 1);
    if (value < 0) chars_[--first_] = '-';
  }
  /// Makes part / whole, rounded down to three decimal places; 0.000 if `whole` is 0. Computes with integers, because
  /// some of the supported standard libraries lack floating-point conversion or make it depend on the locale.
  Digits(std::uint64_t part, std::uint64_t whole) noexcept {
    // For a whole above 2^53 the decimals do not matter, and the multiplication below could overflow.
    put(whole == 0 || whole > (std::uint64_t{1} << 53) ? 0 : part % whole * 1000 / whole, 3);
    chars_[--first_] = '.';
    put(whole == 0 ? 0 : part / whole, 1);
  }
  [[nodiscard]] std::string_view text() const noexcept { return {chars_.data() + first_, chars_.size() - first_}; }

 private:
  /// Puts a number, with at least `least` digits, before the text so far.
  void put(std::uint64_t value, std::size_t least) noexcept {
    for (std::size_t i = 0; i < least || value != 0; ++i, value /= 10)
      chars_[--first_] = static_cast<char>('0' + value % 10);
  }

  std::array<char, 24> chars_;
  std::size_t first_ = chars_.size();
};

/// Writes the members of JSON objects and the elements of arrays, with commas between them.
template <class Write>
class JsonFields {
 public:
  explicit JsonFields(const Write& write) noexcept : write_(write) {}

  /// Writes a count, or a ratio if `value` is a part and its whole.
  void number(std::string_view name, auto... value) {
    begin(name);
    write_(Digits(value...).text());
    before_ = ", ";
  }
  void open(std::string_view name, std::string_view bracket) {
    begin(name);
    before_ = bracket;
  }
  void close(std::string_view bracket) {
    write_(bracket);
    before_ = ", ";
  }
  void sent(std::string_view name, const Statistics::Sent& tokens) {
    open(name, "{");
    number("sent", tokens.sent);
    number("accepted", tokens.accepted);
    close("}");
  }

 private:
  /// Begins a member, or an element of an array if `name` is empty.
  void begin(std::string_view name) {
    write_(before_);
    if (name.empty()) return;
    write_("\"");
    write_(name);
    write_("\": ");
  }

  const Write& write_;
  std::string_view before_ = "{";
};

/// Writes the lines of the human-readable table.
template <class Write>
class TableLines {
 public:
  explicit TableLines(const Write& write) noexcept : write_(write) {}

  void count(std::string_view name, std::uint64_t value) {
    label(name);
    column(value);
    write_("\n");
  }
  void ratio(std::string_view name, std::uint64_t part, std::uint64_t whole) {
    label(name);
    end(part, whole);
  }
  void sent(std::string_view name, const Statistics::Sent& tokens) {
    label(name);
    column(tokens.sent);
    column(tokens.accepted);
    end(tokens.accepted, tokens.sent);
  }

 private:
  /// Writes blanks up to `width` characters, of which `used` are taken.
  void fill(std::size_t width, std::size_t used) {
    write_(std::string_view("                    ").substr(0, width - std::min(width, used)));
  }
  void label(std::string_view name) {
    write_(name);
    fill(20, name.size());
  }
  void column(std::uint64_t value) {
    const Digits digits(value);
    fill(12, digits.text().size());
    write_(digits.text());
  }
  void end(std::uint64_t part, std::uint64_t whole) {
    write_("  ");
    write_(Digits(part, whole).text());
    write_("\n");
  }

  const Write& write_;
};

}  // namespace detail

/// Writes one JSON object (RFC 8259) on one line, without a line feed. All fields are always present; docs/formats.md
/// defines their names and meaning. Cost: several hundred calls of `write`. Exceptions from `write` pass through.
template <std::invocable<std::string_view> Write>
void write_json(const Statistics& statistics, Write&& write) {
  const auto text = [&](std::string_view piece) { write(piece); };
  detail::JsonFields out(text);
  out.number("tokens", statistics.tokens);
  out.number("passes", statistics.passes);
  out.number("passes_saved", statistics.passes_saved());
  out.number("drafted_passes", statistics.drafted_passes);
  out.number("drafted", statistics.drafted);
  out.number("accepted", statistics.accepted);
  out.number("wasted", statistics.wasted());
  out.number("padding", statistics.padding);
  out.number("auxiliary", statistics.auxiliary);
  out.number("mat", statistics.tokens, statistics.passes);
  out.number("acceptance_rate", statistics.accepted, statistics.drafted);
  out.number("drafted_per_pass", statistics.drafted, statistics.passes);
  out.open("cuts", "{");
  for (std::size_t i = 0; i < cut_count; ++i) out.number(to_string(static_cast<Cut>(i)), statistics.cuts[i]);
  out.close("}");
  out.open("by_source", "{");
  for (std::size_t i = 0; i < draft_source_count; ++i)
    out.sent(to_string(static_cast<DraftSource>(i)), statistics.by_source[i]);
  out.close("}");
  out.open("by_depth", "[");
  for (const Statistics::Sent& tokens : statistics.by_depth) out.sent("", tokens);
  out.close("]");
  out.number("timed_passes", statistics.pass_time.count);
  out.number("pass_ns", statistics.pass_time.nanoseconds);
  out.number("timed_drafts", statistics.drafting_time.count);
  out.number("drafting_ns", statistics.drafting_time.nanoseconds);
  out.close("}");
}

/// Writes a human-readable table: first the totals, then the cuts, sources and depths that occurred. Each line ends
/// with a line feed.
template <std::invocable<std::string_view> Write>
void write_table(const Statistics& statistics, Write&& write) {
  const auto text = [&](std::string_view piece) { write(piece); };
  detail::TableLines out(text);
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

  if (statistics.passes != 0) text("\ncut                       passes\n");
  for (std::size_t i = 0; i < cut_count; ++i)
    if (statistics.cuts[i] != 0) out.count(to_string(static_cast<Cut>(i)), statistics.cuts[i]);
  if (statistics.drafted != statistics.auxiliary) text("\nsource                      sent    accepted  rate\n");
  for (std::size_t i = 0; i < draft_source_count; ++i)
    if (statistics.by_source[i].sent != 0) out.sent(to_string(static_cast<DraftSource>(i)), statistics.by_source[i]);
  if (statistics.by_depth[0].sent != 0) text("\ndepth                       sent    accepted  rate\n");
  constexpr std::array<std::string_view, Statistics::depth_count> labels = {
      "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "deeper"};
  for (std::size_t i = 0; i < statistics.by_depth.size(); ++i)
    if (statistics.by_depth[i].sent != 0) out.sent(labels[i], statistics.by_depth[i]);
}

}}  // namespace reprise
