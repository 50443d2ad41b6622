// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
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

/// The target's likeliest tokens after a context, the likeliest first: `tokens[rank]`. A rank whose token is not known
/// holds `none`, and known tokens can follow it.
struct Ranking {
  static constexpr std::size_t most = 8;  ///< maximum number of tokens
  static constexpr Token none = -1;

  constexpr Ranking() noexcept { tokens.fill(none); }
  /// Takes the first `most` tokens. Negative tokens are left out, and the tokens after them move up.
  constexpr explicit Ranking(TokenSpan likeliest) noexcept : Ranking() {
    std::size_t size = 0;
    for (const Token token : likeliest.first(std::min(likeliest.size(), most)))
      if (token >= 0) tokens[size++] = token;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return *this == Ranking(); }
  friend bool operator==(const Ranking&, const Ranking&) = default;

  std::array<Token, most> tokens;
};

struct RankedRowsOptions {
  /// Upper bound on the memory of the table, in bytes. make() allocates as many lines of 64 bytes as fit. Nothing
  /// allocates later. make() refuses more than 256 GiB.
  std::size_t max_bytes = std::size_t{4} << 20;
  std::uint64_t key = IndexOptions{}.key;  ///< must be secret and random if untrusted text is decoded
  /// Rows with a token greater than or equal to this value are not kept, and neither are rows with a negative token. A
  /// snapshot that contains such a token is refused. make() refuses more than 2^31.
  std::uint32_t vocabulary = std::uint32_t{1} << 31;
  friend bool operator==(const RankedRowsOptions&, const RankedRowsOptions&) = default;
};

/// Returns the key of the table that belongs to a history with this key. It differs from next_token_key(), because
/// `spread` is reversible.
[[nodiscard]] constexpr std::uint64_t ranked_row_key(std::uint64_t key) noexcept {
  return detail::spread(~key - 1) ^ key;
}

/// Keeps the target's latest ranking after one token and after two tokens, in a fixed number of bytes. It outlives
/// requests: at the end of a sequence, add() takes over the rows that a drafter was shown (NgramDrafter::rows()). The
/// drafters of later sequences read them (NgramOptions::ranked_rows). It needs an engine that reports top-k tokens
/// (TopKVerifier); NextTokenCounts needs only text.
///
/// **Lines.** A line holds one row. A keyed hash of the context selects the line, and a new row replaces the row in its
/// line, whichever context that row has. The same hash gives the tag by which after() detects the row of a different
/// context. Two contexts have the same line and the same tag with a probability of 2^-16 / lines().
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
  /// A ranking, and the context after which the target gave it.
  struct Row {
    Token before_last = Ranking::none;  ///< none: the context is `last` alone
    Token last = Ranking::none;         ///< none: there is no row
    Ranking ranking;
    friend bool operator==(const Row&, const Row&) = default;
  };

  /// The contents of one line of a table: a ranking, and the tag of its context. An empty ranking is an empty line.
  struct Line {
    std::uint16_t tag = 0;  ///< 0 in an empty line
    Ranking ranking;
    friend bool operator==(const Line&, const Line&) = default;
  };

  static constexpr std::size_t line_bytes = detail::ContextLines::line_bytes;

  RankedRows() noexcept = default;  ///< a table without lines, which keeps nothing

  /// Allocates the memory and returns an empty table. Errors: out_of_memory; size_out_of_range if max_bytes is too
  /// small for one line (`limit`: the bytes needed), or if max_bytes or vocabulary is above its limit.
  static Result<RankedRows> make(const RankedRowsOptions& options = {}) noexcept {
    constexpr std::uint32_t most_tokens = RankedRowsOptions().vocabulary;
    if (options.vocabulary > most_tokens)
      return Error{ErrorCode::size_out_of_range, "RankedRowsOptions::vocabulary is above the limit: pass at most 2^31",
                   options.vocabulary, most_tokens};
    auto lines = detail::ContextLines::make(options.max_bytes, options.key);
    if (!lines) return lines.error();
    return RankedRows(options, *std::move(lines));
  }
  /// Returns a table with the same options and rows. Call it on the writer's thread, or while nobody writes. Error:
  /// out_of_memory.
  [[nodiscard]] Result<RankedRows> copy() const noexcept {
    auto lines = lines_.copy();
    if (!lines) return lines.error();
    return RankedRows(options_, *std::move(lines));
  }

  // For readers.

  /// Returns the latest ranking after `last`; empty if there is none. It does not depend on the token before `last`.
  [[nodiscard]] Ranking after(Token last) const noexcept { return read(lines_.place_of(last)); }
  /// Returns the latest ranking after `before_last` and `last`; empty if there is none.
  [[nodiscard]] Ranking after(Token before_last, Token last) const noexcept {
    return read(lines_.place_of(before_last, last));
  }
  /// Prefetches the line that after() with the same arguments reads.
  void prefetch(Token last) const noexcept { lines_.prefetch(lines_.place_of(last)); }
  void prefetch(Token before_last, Token last) const noexcept { lines_.prefetch(lines_.place_of(before_last, last)); }

  [[nodiscard]] const RankedRowsOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return lines() * line_bytes; }
  [[nodiscard]] std::size_t lines() const noexcept { return lines_.lines(); }
  /// Returns the contents of a line, for snapshots and tests. Requires line < lines().
  [[nodiscard]] Line line(std::size_t line) const noexcept {
    const Words words = lines_.words(line);
    const auto found = std::find_if(words.begin(), words.end(), [](std::uint64_t word) { return word != 0; });
    if (found == words.end()) return {};
    const auto tag = static_cast<std::uint16_t>(*found >> tag_at);
    return {tag, ranking_of(words, tag)};
  }

  // For the writer.

  /// Keeps these rows, in this order. Rows without a context or a ranking are left out, and so are rows with a token
  /// outside the vocabulary.
  void add(std::span<const Row> rows) noexcept {
    if (lines() == 0) return;
    for (const Row& row : rows)
      if (keeps(row))
        keep(row.before_last == Ranking::none ? lines_.place_of(row.last) : lines_.place_of(row.before_last, row.last),
             row.ranking);
  }
  /// Takes over the rows of a newer table, whose writer may be at work. Each replaces the row in the same line of this
  /// table. Rows with tokens outside the vocabulary of this table are taken over too. Error: invalid_argument if the
  /// tables have different keys or numbers of lines (`value`: lines of `newer`, `limit`: lines of this table).
  Result<void> merge(const RankedRows& newer) noexcept {
    if (const auto same = lines_.check_mergeable(newer.lines_); !same) return same;
    for (std::size_t line = 0; line < lines(); ++line) merge_line(line, newer.line(line));
    return {};
  }
  /// Takes over one line of a table with the same key and size, unless it is empty. Requires line < lines(), and that
  /// the ranking has no negative token except `none`.
  void merge_line(std::size_t line, const Line& newer) noexcept {
    if (!newer.ranking.empty()) lines_.store(line, words_of(newer));
  }
  /// Removes all rows.
  void clear() noexcept {
    for (std::size_t line = 0; line < lines(); ++line) lines_.store(line, {});
  }

 private:
  using Place = detail::ContextLines::Place;
  using Words = detail::ContextLines::Words;

  RankedRows(const RankedRowsOptions& options, detail::ContextLines lines) noexcept
      : options_(options), lines_(std::move(lines)) {}

  // A word holds the token of one rank: the tag, 15 zero bits, a bit that is always set, and 32 bits for the token. A
  // rank without a token has the word 0.
  static constexpr int tag_at = 48;
  static constexpr int mark_at = 32;
  static constexpr std::uint64_t word_of(std::uint16_t tag, Token token) noexcept {
    return std::uint64_t{tag} << tag_at | std::uint64_t{1} << mark_at | static_cast<std::uint32_t>(token);
  }
  static constexpr Words words_of(const Line& line) noexcept {
    Words words{};
    for (std::size_t rank = 0; rank < words.size(); ++rank)
      if (line.ranking.tokens[rank] != Ranking::none) words[rank] = word_of(line.tag, line.ranking.tokens[rank]);
    return words;
  }
  /// Returns the tokens of the words with this tag.
  static constexpr Ranking ranking_of(const Words& words, std::uint16_t tag) noexcept {
    constexpr int token_bits = 32;
    static_assert(std::tuple_size_v<Words> == Ranking::most);
    const std::uint64_t marked_tag = word_of(tag, 0) >> token_bits;
    Ranking ranking;
    for (std::size_t rank = 0; rank < words.size(); ++rank)
      if (words[rank] >> token_bits == marked_tag)
        ranking.tokens[rank] = static_cast<Token>(static_cast<std::uint32_t>(words[rank]));
    return ranking;
  }

  [[nodiscard]] bool keeps(const Row& row) const noexcept {
    const auto known = [&](Token token) {
      return token >= 0 && static_cast<std::uint32_t>(token) < options_.vocabulary;
    };
    const auto known_or_none = [&](Token token) { return token == Ranking::none || known(token); };
    return known(row.last) && known_or_none(row.before_last) && !row.ranking.empty() &&
           std::all_of(row.ranking.tokens.begin(), row.ranking.tokens.end(), known_or_none);
  }
  void keep(Place place, const Ranking& ranking) noexcept {
    lines_.store(place.line(lines()), words_of({place.tag(), ranking}));
  }
  [[nodiscard]] Ranking read(Place place) const noexcept {
    return lines() == 0 ? Ranking() : ranking_of(lines_.words(place.line(lines())), place.tag());
  }

  RankedRowsOptions options_;
  detail::ContextLines lines_;
};

}}  // namespace reprise
