// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/detail/prefetch.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/next_token_line.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 {

struct NextTokenOptions {
  /// Upper bound on the memory of the table, in bytes. make() allocates as many lines of 64 bytes as fit. With
  /// `rankings`, half of the lines are for rankings. Nothing allocates later. make() refuses more than 256 GiB.
  std::size_t max_bytes = std::size_t{4} << 20;
  std::uint64_t key = IndexOptions{}.key;  ///< must be secret and random if untrusted text is counted
  /// Tokens greater than or equal to this value are neither counted nor kept in rankings, and neither are negative
  /// tokens. A snapshot that contains such a token is refused. make() refuses more than 2^31 - 1.
  std::uint32_t vocabulary = detail::NextTokenWord::most_tokens;
  /// Keep the target's rankings too, for an engine that reports top-k tokens (TopKVerifier). Counts need only text.
  bool rankings = false;
  friend bool operator==(const NextTokenOptions&, const NextTokenOptions&) = default;
};

/// Returns the key of the table that belongs to a history with this key. It differs from the history's key, because a
/// reader of the table's snapshot can compute it; the history's key cannot be computed from it directly.
[[nodiscard]] constexpr std::uint64_t next_token_key(std::uint64_t key) noexcept { return detail::spread(~key) ^ key; }

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

/// The tokens that have followed one token and two tokens, in a fixed number of bytes: how often each was counted, and
/// on request the target's latest ranking. The table outlives requests: a new session can use it before its first
/// token.
///
/// **Lines.** A context is one token or two tokens. A keyed hash of the context selects a line of eight words, which is
/// one cache line. With rankings, it selects a pair: one line of counts, and one line with a ranking. The same hash
/// gives the tag by which the contexts of a line are told apart. Two contexts have the same line and the same tag with
/// a probability of 2^-16 / lines(). Their counts are then mixed.
///
/// **Eviction.** A full line of counts evicts its smallest count. The total of its context still includes an evicted
/// count if four other tokens of the context stay in the line. When a count would exceed 2^16 - 1, the counts of its
/// context are halved together. At every 64th eviction of the table, all counts of the line are halved, so that old
/// text makes room. Counts are exact until one is evicted or halved. A new ranking replaces the ranking in its line,
/// whichever context that has.
///
/// **Removal.** The table does not know the sequence that a count or a ranking comes from, so a single sequence cannot
/// be removed. Do not add a sequence that may have to be removed later; clear() removes everything.
///
/// **Threads.** One thread at a time may write while any number of threads read, without locks and without waiting.
/// Non-const members are for the writer only, and so is evictions(). A reader during a write can get a mixture of old
/// and new contents of a line. It never gets a token that was not added to this table. Do not move the object while
/// others use it, because they hold its address.
///
/// **Cost.** Reading counts or a ranking: one cache line. add: one cache line for each row, and for each token one for
/// each of its two contexts, which are prefetched. A line has eight words, so the work is bounded whatever the tokens
/// are. Only make() and copy() allocate.
class NextTokens {
 public:
  /// A token that has followed a context, and how often.
  struct CountedToken {
    Token token = 0;
    std::uint32_t count = 0;
    friend bool operator==(const CountedToken&, const CountedToken&) = default;
  };

  /// The counted tokens of one context, by falling count. Among equal counts, the smaller token is first. During a
  /// write by another thread, the order can differ, and a token can be listed twice.
  class CountedTokens {
   public:
    static constexpr std::size_t most = detail::words_per_line;  ///< maximum number of listed tokens

    constexpr CountedTokens() noexcept = default;  ///< a context that has not been counted

    [[nodiscard]] constexpr std::span<const CountedToken> listed() const noexcept REPRISE_LIFETIMEBOUND {
      return std::span(list_).first(size_);
    }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    /// Returns the number of counted occurrences of the context: the sum of the listed counts, and the occurrences with
    /// other next tokens. A share is CountedToken::count / total().
    [[nodiscard]] constexpr std::uint32_t total() const noexcept { return total_; }

   private:
    friend NextTokens;
    std::array<CountedToken, most> list_{};
    std::size_t size_ = 0;
    std::uint32_t total_ = 0;
  };

  /// A ranking, and the context after which the target gave it.
  struct RankedRow {
    Token before_last = Ranking::none;  ///< none: the context is `last` alone
    Token last = Ranking::none;         ///< none: there is no row
    Ranking ranking;
    friend bool operator==(const RankedRow&, const RankedRow&) = default;
  };

  /// A context in a table, for readers. It refers to the table.
  class Context {
   public:
    constexpr Context() noexcept = default;  ///< without a table: nothing has followed it

    /// Prefetches the lines that counts() and ranking() read.
    void prefetch() const noexcept {
      if (table_ == nullptr) return;
      detail::prefetch(&table_->at(Part::counts, line_));
      if (table_->options_.rankings) detail::prefetch(&table_->at(Part::rankings, line_));
    }
    /// Returns the counted tokens after this context.
    [[nodiscard]] CountedTokens counts() const noexcept {
      CountedTokens found;
      if (table_ == nullptr) return found;
      for (const detail::NextTokenWord word : table_->words(Part::counts, line_)) {
        const bool wanted = word.has_tag(tag_);
        found.list_[found.size_] = {word.token(), word.count()};
        found.size_ += wanted && !word.is_unlisted() ? 1 : 0;
        found.total_ += wanted ? word.count() : 0;
      }
      return found;
    }
    /// Returns the latest ranking after this context; empty if there is none.
    [[nodiscard]] Ranking ranking() const noexcept {
      Ranking found;
      if (table_ == nullptr) return found;
      const Line words = table_->words(Part::rankings, line_);
      for (std::size_t rank = 0; rank < words.size(); ++rank)
        if (words[rank].has_tag(tag_)) found.tokens[rank] = words[rank].token();
      return found;
    }

   private:
    friend NextTokens;
    Context(const NextTokens& table, std::uint64_t hash) noexcept
        : table_(table.lines() == 0 ? nullptr : &table),
          line_(static_cast<std::size_t>((hash >> 32) * std::uint64_t{table.lines()} >> 32)),
          tag_(static_cast<std::uint16_t>(hash)) {}

    const NextTokens* table_ = nullptr;
    std::size_t line_ = 0;
    std::uint16_t tag_ = 0;
  };

  /// The two lines of a context.
  enum class Part : std::uint8_t { counts, rankings };
  static constexpr std::array parts = {Part::counts, Part::rankings};
  /// The contents of a line. Counts: words by falling count, the empty ones last. Rankings: word i has the token of
  /// rank i.
  using Line = detail::NextTokenLine;
  static constexpr std::size_t line_bytes = sizeof(Line);
  /// Number of evictions of the table after which a line is halved.
  static constexpr std::uint64_t evictions_per_halving = 64;

  /// Creates a table without lines, which keeps nothing.
  NextTokens() noexcept = default;

  /// Allocates the memory and returns an empty table. Errors: out_of_memory; size_out_of_range if max_bytes is too
  /// small for one context (`limit`: the bytes needed), or if max_bytes or vocabulary is above its limit.
  static Result<NextTokens> make(const NextTokenOptions& options = {}) noexcept {
    constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 32) * line_bytes;  // 32 bits of a hash select a line
    if (options.vocabulary > detail::NextTokenWord::most_tokens)
      return Error{ErrorCode::size_out_of_range,
                   "NextTokenOptions::vocabulary is above the limit: pass at most 2^31 - 1", options.vocabulary,
                   detail::NextTokenWord::most_tokens};
    if (std::uint64_t{options.max_bytes} > most_bytes)
      return Error{ErrorCode::size_out_of_range, "max_bytes of the table is above the limit: pass at most 256 GiB",
                   options.max_bytes, most_bytes};
    const std::size_t least = options.rankings ? 2 * line_bytes : line_bytes;
    NextTokens made;
    made.options_ = options;
    made.lines_ = options.max_bytes / least;
    if (made.lines_ == 0)
      return Error{ErrorCode::size_out_of_range, "max_bytes of the table is too small for one context: increase it",
                   options.max_bytes, least};
    made.table_ = detail::new_array<AtomicLine>(made.lines_ * (least / line_bytes));
    if (made.table_ == nullptr)
      return Error{ErrorCode::out_of_memory, "there is no memory for max_bytes of the table: decrease it",
                   options.max_bytes, 0};
    return made;
  }

  /// Returns a table with the same options and contents. Call it on the writer's thread, or while nobody writes. Error:
  /// out_of_memory.
  [[nodiscard]] Result<NextTokens> copy() const noexcept {
    if (lines() == 0) {
      NextTokens none;
      none.options_ = options_;
      return none;
    }
    auto made = make(options_);
    if (!made) return made;
    made->evictions_ = evictions_;
    for (const Part part : parts)
      for (std::size_t i = 0; i < lines(); ++i) made->store(part, i, words(part, i));
    return made;
  }

  // For readers.

  /// Returns the context of `last` alone.
  [[nodiscard]] Context after(Token last) const noexcept REPRISE_LIFETIMEBOUND {
    return {*this, detail::token_hash(options_.key, last)};
  }
  /// Returns the context of `before_last` and `last`.
  [[nodiscard]] Context after(Token before_last, Token last) const noexcept REPRISE_LIFETIMEBOUND {
    // The complement of the first hash is the key of the second token. Without the complement, token 0 would have no
    // effect under the key 0, because its hash is 0.
    return {*this, detail::token_hash(~detail::token_hash(options_.key, before_last), last)};
  }

  [[nodiscard]] const NextTokenOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return lines() * line_bytes * (options_.rankings ? 2 : 1); }
  /// Returns the number of lines of each part.
  [[nodiscard]] std::size_t lines() const noexcept { return table_ == nullptr ? 0 : lines_; }
  /// Returns the contents of a line, for snapshots and tests; an empty line of rankings if the table keeps none.
  /// Requires line < lines().
  [[nodiscard]] Line words(Part part, std::size_t line) const noexcept {
    Line words{};
    if (!has(part)) return words;
    const AtomicLine& from = at(part, line);
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = detail::NextTokenWord::from_bits(from.words[i].load(std::memory_order_relaxed));
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
        const Token last = text[i + ahead - 1];
        for (const Context& context : {after(last), after(text[i + ahead - 2], last)})
          detail::prefetch(&at(Part::counts, context.line_));
      }
      if (!knows(text[i]) || !knows(text[i - 1])) continue;
      count(after(text[i - 1]), text[i]);
      if (i >= 2 && knows(text[i - 2])) count(after(text[i - 2], text[i - 1]), text[i]);
    }
  }
  /// Keeps the rows that a drafter was shown (NgramDrafter::rows()), in this order. Rows without a context or a ranking
  /// are left out, and so are rows with a token outside the vocabulary. Does nothing without
  /// NextTokenOptions::rankings.
  void add(std::span<const RankedRow> rows) noexcept {
    if (lines() == 0) return;
    for (const RankedRow& row : rows) {
      if (!keeps(row)) continue;
      const Context context = row.before_last == Ranking::none ? after(row.last) : after(row.before_last, row.last);
      Line words{};
      for (std::size_t rank = 0; rank < words.size(); ++rank)
        if (row.ranking.tokens[rank] != Ranking::none) words[rank] = {context.tag_, row.ranking.tokens[rank], 1};
      store(Part::rankings, context.line_, words);
    }
  }

  /// Adds the counts of a newer table, and takes over its rankings, if both tables keep rankings. The writer of `newer`
  /// may be at work. Tokens outside the vocabulary of this table are taken over too. Counts are the same in both
  /// directions, except for evictions(). Error: invalid_argument if the tables have different keys or numbers of lines
  /// (`value`: lines of `newer`, `limit`: lines of this table).
  Result<void> merge(const NextTokens& newer) noexcept {
    if (newer.lines() != lines() || newer.options_.key != options_.key)
      return Error{ErrorCode::invalid_argument,
                   "only tables with the same key and the same number of lines can be merged: make both with equal "
                   "options",
                   newer.lines(), lines()};
    for (const Part part : parts)
      for (std::size_t i = 0; i < lines(); ++i) merge_line(part, i, newer.words(part, i));
    return {};
  }
  /// Merges a line of a table with the same key and size. Requires line < lines(), and words that are empty or valid();
  /// in a ranking, words with a token and a count of 1.
  void merge_line(Part part, std::size_t line, const Line& newer) noexcept {
    if (part == Part::counts) return store(part, line, detail::merged(words(part, line), newer));
    if (newer != Line{}) store(part, line, detail::of_one_context(newer));
  }

  /// Removes all counts and rankings.
  void clear() noexcept {
    for (const Part part : parts)
      for (std::size_t i = 0; i < lines(); ++i) store(part, i, {});
    evictions_ = 0;
  }
  /// Returns how often add() has evicted counts since make() or clear(). Evictions by merge() are not included.
  [[nodiscard]] std::uint64_t evictions() const noexcept { return evictions_; }

 private:
  static_assert(Ranking::most == detail::words_per_line);
  struct alignas(line_bytes) AtomicLine {
    std::array<std::atomic<std::uint64_t>, detail::words_per_line> words;
  };

  [[nodiscard]] bool has(Part part) const noexcept { return part == Part::counts || options_.rankings; }
  /// The lines of a context are next to each other. Requires has(part).
  [[nodiscard]] AtomicLine& at(Part part, std::size_t line) const noexcept {
    return table_[options_.rankings ? 2 * line + static_cast<std::size_t>(part) : line];
  }
  [[nodiscard]] bool knows(Token token) const noexcept {
    return static_cast<std::uint32_t>(token) < options_.vocabulary;
  }
  [[nodiscard]] bool keeps(const RankedRow& row) const noexcept {
    const auto known_or_none = [this](Token token) { return token == Ranking::none || knows(token); };
    return knows(row.last) && known_or_none(row.before_last) && !row.ranking.empty() &&
           std::all_of(row.ranking.tokens.begin(), row.ranking.tokens.end(), known_or_none);
  }
  /// Stores the words that have changed, each in one step. Does nothing without has(part).
  void store(Part part, std::size_t line, const Line& changed) noexcept {
    if (!has(part)) return;
    AtomicLine& to = at(part, line);
    for (std::size_t i = 0; i < changed.size(); ++i)
      if (to.words[i].load(std::memory_order_relaxed) != changed[i].bits())
        to.words[i].store(changed[i].bits(), std::memory_order_relaxed);
  }
  void count(const Context& context, Token next) noexcept {
    Line now = words(Part::counts, context.line_);
    const detail::NextTokenWord wanted(context.tag_, next, 1);
    const auto same =
        std::find_if(now.begin(), now.end(), [wanted](detail::NextTokenWord word) { return word.same_key(wanted); });
    if (same != now.end()) {
      detail::count_again(now, static_cast<std::size_t>(same - now.begin()));
    } else {
      if (detail::full(now)) evict(now);
      detail::list_new(now, wanted.tag(), next);
    }
    detail::sort_falling(now);
    store(Part::counts, context.line_, now);
  }
  /// Makes room for a new word. Counts of evictions choose among equal counts, so that it is not always the same place.
  void evict(Line& now) noexcept {
    ++evictions_;
    if (evictions_ % evictions_per_halving == 0) detail::halve_all(now);
    while (detail::full(now)) detail::unlist(now, detail::smallest(now, evictions_ % detail::words_per_line));
  }

  NextTokenOptions options_;
  std::size_t lines_ = 0;
  detail::OwnedArray<AtomicLine> table_;
  std::uint64_t evictions_ = 0;
};

}}  // namespace reprise
