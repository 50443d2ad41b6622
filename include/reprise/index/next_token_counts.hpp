// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/detail/lifetime.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/context_lines.hpp"
#include "reprise/index/detail/next_token_line.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 {

struct NextTokenOptions {
  /// Upper bound on the memory of the table, in bytes. make() allocates as many lines of 64 bytes as fit. Nothing
  /// allocates later. make() refuses more than 256 GiB.
  std::size_t max_bytes = std::size_t{4} << 20;
  std::uint64_t key = IndexOptions{}.key;  ///< must be secret and random if untrusted text is counted
  /// Tokens greater than or equal to this value are not counted, and neither are negative tokens. A snapshot that
  /// contains such a token is refused. make() refuses more than 2^31 - 1.
  std::uint32_t vocabulary = detail::NextTokenWord::most_tokens;
  friend bool operator==(const NextTokenOptions&, const NextTokenOptions&) = default;
};

/// Returns the key of the table that belongs to a history with this key. It differs from the history's key, because a
/// reader of the table's snapshot can compute it; the history's key cannot be computed from it directly.
[[nodiscard]] constexpr std::uint64_t next_token_key(std::uint64_t key) noexcept { return detail::spread(~key) ^ key; }

/// Counts which tokens have followed the last token and the last two tokens, in a fixed number of bytes. It needs only
/// committed text, no logits, and it outlives requests: a new session can use it before its first token.
///
/// **Lines.** A context is one token or two tokens. A keyed hash of the context selects one line of eight words in one
/// cache line. The same hash gives the tag by which the contexts of a line are told apart. Two contexts have the same
/// line and the same tag with a probability of 2^-16 / lines(). Their counts are then mixed.
///
/// **Eviction.** A full line evicts its smallest count. The total of its context still includes an evicted count if
/// four other tokens of the context stay in the line. When a count would exceed 2^16 - 1, the counts of its context are
/// halved together. At every 64th eviction of the table, all counts of the line are halved, so that old text makes
/// room. Counts are exact until one is evicted or halved.
///
/// **Removal.** Counts do not know the sequence that they come from, so a single sequence cannot be removed. Do not
/// count a sequence that may have to be removed later; clear() removes everything.
///
/// **Threads.** One thread at a time may write while any number of threads read, without locks and without waiting.
/// Non-const members are for the writer only, and so is evictions(). A reader during a write can get a mixture of old
/// and new counts of a line. It never gets a token that was not counted in this table. Do not move the object while
/// others use it, because they hold its address.
///
/// **Cost.** next: one cache line. add: one cache line for each context, so two for each token; add(TokenSpan)
/// prefetches them. A line has eight words, so the work is bounded whatever the tokens are. Only make() and copy()
/// allocate.
class NextTokenCounts {
 public:
  /// A token that has followed a context, and how often.
  struct NextToken {
    Token token = 0;
    std::uint32_t count = 0;
    friend bool operator==(const NextToken&, const NextToken&) = default;
  };

  /// The counted next tokens of one context, by falling count. Among equal counts, the smaller token is first. During a
  /// write by another thread, the order can differ, and a token can be listed twice.
  class NextTokens {
   public:
    static constexpr std::size_t most = detail::words_per_line;  ///< maximum number of listed tokens

    constexpr NextTokens() noexcept = default;  ///< a context that has not been counted
    /// Lists these tokens, in this order. `unlisted`: the number of occurrences of the context with other next tokens.
    /// Requires tokens.size() <= most.
    constexpr NextTokens(std::span<const NextToken> tokens, std::uint32_t unlisted) noexcept
        : size_(tokens.size()), total_(unlisted) {
      std::copy(tokens.begin(), tokens.end(), list_.begin());
      for (const NextToken& next : tokens) total_ += next.count;
    }

    [[nodiscard]] constexpr std::span<const NextToken> listed() const noexcept REPRISE_LIFETIMEBOUND {
      return std::span(list_).first(size_);
    }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    /// Returns the number of counted occurrences of the context: the sum of the listed counts, and the occurrences with
    /// other next tokens. A share is NextToken::count / total().
    [[nodiscard]] constexpr std::uint32_t total() const noexcept { return total_; }

   private:
    std::array<NextToken, most> list_{};
    std::size_t size_ = 0;
    std::uint32_t total_ = 0;
  };

  static constexpr std::size_t words_per_line = detail::words_per_line;
  static constexpr std::size_t line_bytes = detail::ContextLines::line_bytes;
  /// Number of evictions of the table after which a line is halved.
  static constexpr std::uint64_t evictions_per_halving = 64;
  /// The contents of a line: words by falling count, the empty ones last.
  using Words = detail::NextTokenLine;

  /// Creates a table without lines, which counts nothing.
  NextTokenCounts() noexcept = default;

  /// Allocates the memory and returns an empty table. Errors: out_of_memory; size_out_of_range if max_bytes is too
  /// small for one line (`limit`: the bytes needed), or if max_bytes or vocabulary is above its limit.
  static Result<NextTokenCounts> make(const NextTokenOptions& options = {}) noexcept {
    if (options.vocabulary > detail::NextTokenWord::most_tokens)
      return Error{ErrorCode::size_out_of_range,
                   "NextTokenOptions::vocabulary is above the limit: pass at most 2^31 - 1", options.vocabulary,
                   detail::NextTokenWord::most_tokens};
    auto lines = detail::ContextLines::make(options.max_bytes, options.key);
    if (!lines) return lines.error();
    return NextTokenCounts(options, *std::move(lines), 0);
  }

  /// Returns a table with the same options and counts. Call it on the writer's thread, or while nobody writes. Error:
  /// out_of_memory.
  [[nodiscard]] Result<NextTokenCounts> copy() const noexcept {
    auto lines = lines_.copy();
    if (!lines) return lines.error();
    return NextTokenCounts(options_, *std::move(lines), evictions_);
  }

  // For readers.

  /// Returns the tokens that have followed `last`.
  [[nodiscard]] NextTokens next(Token last) const noexcept { return read(lines_.place_of(last)); }
  /// Returns the tokens that have followed `before_last` and `last`.
  [[nodiscard]] NextTokens next(Token before_last, Token last) const noexcept {
    return read(lines_.place_of(before_last, last));
  }
  /// Prefetches the line that next() with the same arguments reads.
  void prefetch(Token last) const noexcept { lines_.prefetch(lines_.place_of(last)); }
  void prefetch(Token before_last, Token last) const noexcept { lines_.prefetch(lines_.place_of(before_last, last)); }

  [[nodiscard]] const NextTokenOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return lines() * line_bytes; }
  [[nodiscard]] std::size_t lines() const noexcept { return lines_.lines(); }
  /// Returns the contents of a line, for snapshots and tests. Requires line < lines().
  [[nodiscard]] Words words(std::size_t line) const noexcept {
    const detail::ContextLines::Words bits = lines_.words(line);
    Words words;
    std::transform(bits.begin(), bits.end(), words.begin(), detail::NextTokenWord::from_bits);
    return words;
  }

  // For the writer.

  /// Counts `text[begin]` and all later tokens as next tokens, each after the one and the two tokens before it. To go
  /// on when the text has grown, pass its earlier size as `begin`. A token outside the vocabulary is not counted, and
  /// neither are the next tokens whose context contains it.
  void add(TokenSpan text, std::size_t begin = 0) noexcept {
    if (lines() == 0) return;
    constexpr std::size_t ahead = 8;  // tokens between the prefetch of a line and its use
    for (std::size_t i = std::max<std::size_t>(begin, 1); i < text.size(); ++i) {
      if (i + ahead < text.size()) {
        prefetch(text[i + ahead - 1]);
        prefetch(text[i + ahead - 2], text[i + ahead - 1]);
      }
      add(text[i - 1], text[i]);
      if (i >= 2) add(text[i - 2], text[i - 1], text[i]);
    }
  }
  /// Counts `next` after `last`. Counts nothing if one of them is outside the vocabulary.
  void add(Token last, Token next) noexcept {
    if (knows(last) && knows(next)) add_to(lines_.place_of(last), next);
  }
  /// Counts `next` after `before_last` and `last`. Counts nothing if one of them is outside the vocabulary.
  void add(Token before_last, Token last, Token next) noexcept {
    if (knows(before_last) && knows(last) && knows(next)) add_to(lines_.place_of(before_last, last), next);
  }

  /// Adds the counts of another table, whose writer may be at work. Counts of tokens outside the vocabulary of this
  /// table are added too. The result is the same in both directions, except for evictions(). Error: invalid_argument if
  /// the tables have different keys or numbers of lines (`value`: lines of the other, `limit`: lines of this table).
  Result<void> merge(const NextTokenCounts& other) noexcept {
    if (const auto same = lines_.check_mergeable(other.lines_); !same) return same;
    for (std::size_t line = 0; line < lines(); ++line) merge_line(line, other.words(line));
    return {};
  }
  /// Adds the words of the same line of a table with the same key and size. Requires line < lines(), and words that are
  /// empty or valid().
  void merge_line(std::size_t line, const Words& other) noexcept { store(line, detail::merged(words(line), other)); }

  /// Removes all counts.
  void clear() noexcept {
    for (std::size_t line = 0; line < lines(); ++line) store(line, {});
    evictions_ = 0;
  }
  /// Returns how often add() has evicted counts since make() or clear(). Evictions by merge() are not included.
  [[nodiscard]] std::uint64_t evictions() const noexcept { return evictions_; }

 private:
  using Place = detail::ContextLines::Place;

  NextTokenCounts(const NextTokenOptions& options, detail::ContextLines lines, std::uint64_t evictions) noexcept
      : options_(options), lines_(std::move(lines)), evictions_(evictions) {}

  [[nodiscard]] bool knows(Token token) const noexcept {
    return lines() != 0 && static_cast<std::uint32_t>(token) < options_.vocabulary;
  }
  [[nodiscard]] NextTokens read(Place place) const noexcept {
    if (lines() == 0) return {};
    std::array<NextToken, words_per_line> listed;
    std::size_t size = 0;
    std::uint32_t unlisted = 0;
    for (const std::uint64_t bits : lines_.words(place.line(lines()))) {
      const detail::NextTokenWord word = detail::NextTokenWord::from_bits(bits);
      const bool wanted = word.has_tag(place.tag());
      const bool is_token = !word.is_unlisted();
      listed[size] = {word.token(), word.count()};
      size += wanted && is_token ? 1 : 0;
      unlisted += wanted && !is_token ? word.count() : 0;
    }
    return {std::span(listed).first(size), unlisted};
  }
  void store(std::size_t line, const Words& changed) noexcept {
    detail::ContextLines::Words bits;
    std::transform(changed.begin(), changed.end(), bits.begin(),
                   [](detail::NextTokenWord word) { return word.bits(); });
    lines_.store(line, bits);
  }
  void add_to(Place place, Token next) noexcept {
    const std::size_t line = place.line(lines());
    Words now = words(line);
    const detail::NextTokenWord wanted(place.tag(), next, 1);
    const auto same =
        std::find_if(now.begin(), now.end(), [wanted](detail::NextTokenWord word) { return word.same_key(wanted); });
    if (same != now.end()) {
      detail::count_again(now, static_cast<std::size_t>(same - now.begin()));
    } else {
      if (detail::full(now)) evict(now);
      detail::list_new(now, wanted.tag(), next);
    }
    detail::sort_falling(now);
    store(line, now);
  }
  /// Makes room for a new word. Counts of evictions choose among equal counts, so that it is not always the same place.
  void evict(Words& now) noexcept {
    ++evictions_;
    if (evictions_ % evictions_per_halving == 0) detail::halve_all(now);
    while (detail::full(now)) detail::unlist(now, detail::smallest(now, evictions_ % words_per_line));
  }

  NextTokenOptions options_;
  detail::ContextLines lines_;
  std::uint64_t evictions_ = 0;
};

}}  // namespace reprise
