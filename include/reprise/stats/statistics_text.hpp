// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/stats/report_words.hpp"
#include "reprise/stats/statistics.hpp"

/// \file Statistics as text. Whoever prints says where the pieces go: `write(std::string_view)`. So nothing is
/// allocated here, and a stream, a string or a log will do:
///
///   std::string line;
///   write_json(session.statistics(), [&](std::string_view piece) { line += piece; });
namespace reprise::inline v0 {

namespace detail {

/// Takes the pieces; numbers in digits of ASCII, whatever the locale.
template <class Write>
class StatisticsWriter {
 public:
  explicit StatisticsWriter(Write& write) noexcept : write_(write) {}

  void text(std::string_view piece) { write_(piece); }
  void number(std::int64_t value) {
    std::array<char, 20> digits;
    text(shown(digits, value));
  }
  void number(std::uint64_t value) {
    std::array<char, 20> digits;
    text(shown(digits, value));
  }
  /// part / whole, rounded down to three digits behind the point; 0 without a whole. In integers, for floating-point
  /// conversions are missing or depend on the locale in some of the standard libraries that we support.
  void ratio(std::uint64_t part, std::uint64_t whole) {
    const std::uint64_t above = whole == 0 ? 0 : part / whole;
    // Of a whole beyond 2^53 the digits behind the point do not matter.
    const std::uint64_t rest = whole == 0 || whole > (std::uint64_t{1} << 53) ? 0 : part % whole * 1000 / whole;
    number(above);
    text(".");
    std::array<char, 3> digits = {'0', '0', '0'};
    std::uint64_t left = rest;
    for (std::size_t i = digits.size(); i-- > 0; left /= 10) digits[i] = static_cast<char>('0' + left % 10);
    text({digits.data(), digits.size()});
  }
  /// Right-aligned in a column of 12.
  void column(std::uint64_t value) {
    std::array<char, 20> digits;
    const std::string_view shown_value = shown(digits, value);
    constexpr std::string_view blanks = "            ";
    text(blanks.substr(std::min(blanks.size(), shown_value.size())));
    text(shown_value);
  }
  /// Left-aligned in a column of 20.
  void label(std::string_view name) {
    constexpr std::string_view blanks = "                    ";
    text(name);
    text(blanks.substr(std::min(blanks.size(), name.size())));
  }

 private:
  template <class Integer>
  static std::string_view shown(std::array<char, 20>& digits, Integer value) noexcept {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    return {digits.data(), static_cast<std::size_t>(end - digits.data())};
  }
  Write& write_;
};

}  // namespace detail

/// One JSON object (RFC 8259) on one line, without a line feed. Names and meaning of the fields: docs/formats.md. All
/// of them are always there. Cost: some hundred short pieces. Throws what `write` throws.
template <std::invocable<std::string_view> Write>
void write_json(const Statistics& statistics, Write&& write) {
  detail::StatisticsWriter<Write> out(write);
  std::string_view before = "{";
  const auto key = [&](std::string_view name) {
    out.text(before);
    out.text("\"");
    out.text(name);
    out.text("\": ");
    before = ", ";
  };
  const auto count = [&](std::string_view name, auto value) {
    key(name);
    out.number(value);
  };
  const auto ratio = [&](std::string_view name, std::uint64_t part, std::uint64_t whole) {
    key(name);
    out.ratio(part, whole);
  };
  const auto open = [&](std::string_view name, std::string_view bracket) {
    key(name);
    before = bracket;
  };
  const auto close = [&](std::string_view bracket) {
    out.text(bracket);
    before = ", ";
  };
  const auto sent = [&](const SentTokens& tokens) {
    before = "{";
    count("sent", tokens.sent);
    count("accepted", tokens.accepted);
    close("}");
  };

  count("tokens", statistics.tokens);
  count("passes", statistics.passes);
  count("passes_saved", statistics.passes_saved());
  count("drafted_passes", statistics.drafted_passes);
  count("drafted", statistics.drafted);
  count("accepted", statistics.accepted);
  count("wasted", statistics.wasted());
  count("padding", statistics.padding);
  count("auxiliary", statistics.auxiliary);
  ratio("mat", statistics.tokens, statistics.passes);
  ratio("acceptance_rate", statistics.accepted, statistics.drafted);
  ratio("drafted_per_pass", statistics.drafted, statistics.passes);
  open("cuts", "{");
  for (std::size_t i = 0; i < cut_count; ++i) count(report_word(static_cast<Cut>(i)), statistics.cuts[i]);
  close("}");
  open("by_source", "{");
  for (std::size_t i = 0; i < draft_source_count; ++i) {
    key(report_word(static_cast<DraftSource>(i)));
    sent(statistics.by_source[i]);
  }
  close("}");
  open("by_depth", "[");
  for (const SentTokens& tokens : statistics.by_depth) {
    out.text(before);
    sent(tokens);
  }
  close("]");
  count("timed_passes", statistics.pass_time.count);
  count("pass_ns", statistics.pass_time.nanoseconds);
  count("timed_drafts", statistics.drafting_time.count);
  count("drafting_ns", statistics.drafting_time.nanoseconds);
  out.text("}");
}

/// A table for people: totals, then the reasons, sources and depths that occurred. Each line ends with a line feed.
template <std::invocable<std::string_view> Write>
void write_table(const Statistics& statistics, Write&& write) {
  detail::StatisticsWriter<Write> out(write);
  const auto count = [&](std::string_view label, std::uint64_t value) {
    out.label(label);
    out.column(value);
    out.text("\n");
  };
  const auto ratio = [&](std::string_view label, std::uint64_t part, std::uint64_t whole) {
    out.label(label);
    out.text("  ");
    out.ratio(part, whole);
    out.text("\n");
  };
  const auto sent = [&](const SentTokens& tokens) {
    out.column(tokens.sent);
    out.column(tokens.accepted);
    out.text("  ");
    out.ratio(tokens.accepted, tokens.sent);
    out.text("\n");
  };

  count("tokens", statistics.tokens);
  count("passes", statistics.passes);
  count("  with a draft", statistics.drafted_passes);
  count("drafted", statistics.drafted);
  count("accepted", statistics.accepted);
  count("wasted", statistics.wasted());
  ratio("tokens per pass", statistics.tokens, statistics.passes);
  ratio("acceptance rate", statistics.accepted, statistics.drafted);
  if (statistics.padding != 0) count("pad rows", statistics.padding);
  if (statistics.auxiliary != 0) count("auxiliary", statistics.auxiliary);
  if (statistics.pass_time.count != 0)
    ratio("ns per pass", statistics.pass_time.nanoseconds, statistics.pass_time.count);
  if (statistics.drafting_time.count != 0)
    ratio("ns per draft", statistics.drafting_time.nanoseconds, statistics.drafting_time.count);
  if (statistics.passes != 0) out.text("\ncut                       passes\n");
  for (std::size_t i = 0; i < cut_count; ++i)
    if (statistics.cuts[i] != 0) count(report_word(static_cast<Cut>(i)), statistics.cuts[i]);
  if (statistics.drafted != statistics.auxiliary) out.text("\nsource                      sent    accepted  rate\n");
  for (std::size_t i = 0; i < draft_source_count; ++i) {
    if (statistics.by_source[i].sent == 0) continue;
    out.label(report_word(static_cast<DraftSource>(i)));
    sent(statistics.by_source[i]);
  }
  if (statistics.by_depth[0].sent != 0) out.text("\ndepth                       sent    accepted  rate\n");
  for (std::size_t i = 0; i < statistics.by_depth.size(); ++i) {
    if (statistics.by_depth[i].sent == 0) continue;
    constexpr std::array<std::string_view, Statistics::depth_count> labels = {
        "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "deeper"};
    out.label(labels[i]);
    sent(statistics.by_depth[i]);
  }
}

}  // namespace reprise::inline v0
