// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/context_lines.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise::inline v0 {

/// The target's likeliest tokens after a context, the likeliest first. Places without a token hold `none`.
struct Ranking {
  static constexpr std::size_t most = 8;  ///< maximum number of tokens
  static constexpr Token none = -1;

  constexpr Ranking() noexcept { tokens.fill(none); }
  /// Takes the first `most` tokens. Negative ones are left out.
  constexpr explicit Ranking(TokenSpan likeliest) noexcept : Ranking() {
    std::size_t size = 0;
    for (const Token token : likeliest.first(std::min(likeliest.size(), most)))
      if (token >= 0) tokens[size++] = token;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return *this == Ranking(); }
  friend bool operator==(const Ranking&, const Ranking&) = default;

  std::array<Token, most> tokens;
};

/// A ranking, and the context after which the target gave it.
struct RankedRow {
  Token before_last = Ranking::none;  ///< none: the context is `last` alone
  Token last = Ranking::none;         ///< none: there is no row
  Ranking ranking;
};

struct RankedRowsOptions {
  /// Upper bound on the memory of the table, in bytes. make() allocates as many lines of 64 bytes as fit. Nothing
  /// allocates later. Values above 256 GiB have no effect.
  std::size_t max_bytes = std::size_t{4} << 20;
  std::uint64_t key = IndexOptions{}.key;  ///< must be secret and random if untrusted text is decoded
  /// Rows with a token greater than or equal to this value are not kept. A snapshot that contains such a token is
  /// refused. Values above 2^31 have no effect.
  std::uint32_t vocabulary = std::uint32_t{1} << 31;
  friend bool operator==(const RankedRowsOptions&, const RankedRowsOptions&) = default;
};

/// Keeps the target's latest ranking after one token and after two tokens, in a fixed number of bytes. It outlives
/// requests: at the end of a sequence, add() takes over the rows that a drafter was shown (NgramDrafter::rows()), and
/// the drafters of later sequences read them (NgramOptions::ranked_rows). It needs an engine that reports top-k tokens
/// (TopKVerifier); NextTokenCounts needs only text.
///
/// **Lines.** A keyed hash of the context selects one line of eight words and a tag. A line holds one row, and a new
/// row replaces it. Two contexts have the same line and the same tag with a probability of 2^-16 / lines().
///
/// **Removal.** Rows do not know the sequence that they come from, so a single sequence cannot be removed. Do not add
/// the rows of a sequence that may have to be removed later; clear() removes everything.
///
/// **Threads.** One thread at a time may write while any number of threads read, without locks and without waiting.
/// Non-const members are for the writer only. A reader during a write can get a mixture of an old and a new row. It
/// never gets a token that is in neither of them. Do not move the object while others use it, because they hold its
/// address.
///
/// **Cost.** One cache line for each row that is read or written. Only make() and copy() allocate.
class RankedRows {
 public:
  using Words = detail::ContextLines::Words;

  RankedRows() noexcept = default;  ///< a table without lines, which keeps nothing

  /// Allocates the memory and returns an empty table. Errors: out_of_memory; size_out_of_range if max_bytes is too
  /// small for one line (`limit`: the bytes needed).
  static Result<RankedRows> make(const RankedRowsOptions& options = {}) noexcept {
    RankedRows made;
    made.options_ = options;
    const std::size_t lines = detail::ContextLines::lines_in(options.max_bytes);
    if (lines == 0)
      return Error{ErrorCode::size_out_of_range, "RankedRowsOptions::max_bytes is too small for one line: increase it",
                   options.max_bytes, detail::ContextLines::line_bytes};
    if (!made.lines_.allocate(options.key, lines))
      return Error{ErrorCode::out_of_memory, "there is no memory for RankedRowsOptions::max_bytes: decrease it",
                   options.max_bytes, 0};
    return made;
  }
  /// Returns a table with the same options and rows. Call it on the writer's thread, or while nobody writes. Error:
  /// out_of_memory.
  [[nodiscard]] Result<RankedRows> copy() const noexcept {
    if (lines() == 0) return RankedRows();
    auto made = make(options_);
    if (!made) return made.error();
    for (std::size_t line = 0; line < lines(); ++line) made->lines_.store(line, words(line));
    return made;
  }

  // For readers.

  /// Returns the latest ranking after `last`, with places without a token; empty if there is none.
  [[nodiscard]] Ranking after(Token last) const noexcept { return read(lines_.place_of(last)); }
  /// Returns the latest ranking after `before_last` and `last`.
  [[nodiscard]] Ranking after(Token before_last, Token last) const noexcept {
    return read(lines_.place_of(before_last, last));
  }
  /// Prefetches the line that after() with the same arguments reads.
  void prefetch(Token last) const noexcept { lines_.prefetch(lines_.place_of(last)); }
  void prefetch(Token before_last, Token last) const noexcept { lines_.prefetch(lines_.place_of(before_last, last)); }

  [[nodiscard]] const RankedRowsOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return lines() * detail::ContextLines::line_bytes; }
  [[nodiscard]] std::size_t lines() const noexcept { return lines_.lines(); }
  /// Returns the contents of a line, for snapshots and tests. Requires line < lines().
  [[nodiscard]] Words words(std::size_t line) const noexcept { return lines_.words(line); }

  // For the writer.

  /// Keeps these rows. Those without context or ranking, and those with a token outside the vocabulary, are left out.
  void add(std::span<const RankedRow> rows) noexcept {
    if (lines() == 0) return;
    for (const RankedRow& row : rows)
      if (keeps(row))
        write(row.before_last == Ranking::none ? lines_.place_of(row.last) : lines_.place_of(row.before_last, row.last),
              row.ranking);
  }
  /// Takes over the rows of another table, which replace those of this table with the same line. Error:
  /// invalid_argument if the tables have different keys or numbers of lines (`value`: lines of the other, `limit`:
  /// lines of this table).
  Result<void> merge(const RankedRows& newer) noexcept {
    if (newer.lines() != lines() || newer.options_.key != options_.key)
      return Error{ErrorCode::invalid_argument,
                   "only tables with the same key and the same max_bytes can be merged: make both with equal options",
                   newer.lines(), lines()};
    for (std::size_t line = 0; line < lines(); ++line) merge_line(line, newer.words(line));
    return {};
  }
  /// Takes over one line of a table with the same key and size, unless it is empty. Requires line < lines().
  void merge_line(std::size_t line, const Words& newer) noexcept {
    if (newer != Words{}) lines_.store(line, newer);
  }
  /// Removes all rows.
  void clear() noexcept {
    for (std::size_t line = 0; line < lines(); ++line) lines_.store(line, {});
  }

 private:
  using Place = detail::ContextLines::Place;
  static constexpr int tag_at = 48;
  static constexpr std::uint64_t used = std::uint64_t{1} << 32;  // set in words that hold a token

  [[nodiscard]] bool keeps(const RankedRow& row) const noexcept {
    const auto known = [&](Token token) { return static_cast<std::uint32_t>(token) < options_.vocabulary; };
    return row.last >= 0 && known(row.last) && (row.before_last == Ranking::none || known(row.before_last)) &&
           !row.ranking.empty() && std::all_of(row.ranking.tokens.begin(), row.ranking.tokens.end(), [&](Token token) {
             return token == Ranking::none || (token >= 0 && known(token));
           });
  }
  void write(Place place, const Ranking& ranking) noexcept {
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i)
      if (ranking.tokens[i] != Ranking::none)
        words[i] = std::uint64_t{place.tag()} << tag_at | used | static_cast<std::uint32_t>(ranking.tokens[i]);
    lines_.store(place.line(lines()), words);
  }
  [[nodiscard]] Ranking read(Place place) const noexcept {
    Ranking ranking;
    if (lines() == 0) return ranking;
    const Words words = lines_.words(place.line(lines()));
    const std::uint64_t wanted = std::uint64_t{place.tag()} << 16 | used >> 32;
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] >> 32 == wanted) ranking.tokens[i] = static_cast<Token>(static_cast<std::uint32_t>(words[i]));
    return ranking;
  }

  RankedRowsOptions options_;
  detail::ContextLines lines_;
};

}  // namespace reprise
