// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/token.hpp"

/// \file One line of a table of next tokens as a plain array of words. A table keeps its counted lines sorted, but the
/// functions below accept any order. They are the rules of a line; next_tokens.hpp has the atomic words, the hash and
/// the table. A ranked line holds one ranking: word i has the token of rank i, and a count of 1.
///
/// A context has one word for each listed next token. It has no word for its total, because the total is the sum of its
/// words. Only a context that has lost listed tokens has an `unlisted` word, which keeps the total right.
namespace reprise { inline namespace v0 { namespace detail {

/// One word of a table of next tokens, in 64 bits: the tag of a context, a count and a token. Instead of a token,
/// it can hold the mark `unlisted`. Its count is then the number of occurrences with next tokens that the table does
/// not list any more. Tokens 0 to 2^31 - 2 can be stored.
class NextTokenWord {
 public:
  static constexpr std::uint32_t most_tokens = 0x7fffffff;  ///< tokens 0 to most_tokens - 1 can be stored
  static constexpr std::uint32_t most_count = 0xffff;

  constexpr NextTokenWord() noexcept = default;  ///< an empty word
  /// Requires 1 <= count <= most_count, and a token that can be stored.
  constexpr NextTokenWord(std::uint16_t tag, Token token, std::uint32_t count) noexcept
      : NextTokenWord(tag, static_cast<std::uint32_t>(token), count) {}
  static constexpr NextTokenWord unlisted(std::uint16_t tag, std::uint32_t count) noexcept {
    return {tag, unlisted_mark, count};
  }
  static constexpr NextTokenWord from_bits(std::uint64_t bits) noexcept {
    NextTokenWord word;
    word.bits_ = bits;
    return word;
  }

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return (bits_ & count_bits) == 0; }
  [[nodiscard]] constexpr std::uint16_t tag() const noexcept { return static_cast<std::uint16_t>(bits_ >> tag_at); }
  [[nodiscard]] constexpr std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> count_at) & most_count;
  }
  [[nodiscard]] constexpr bool is_unlisted() const noexcept { return low() == unlisted_mark; }
  /// Returns the token; any number if the word is empty or `unlisted`.
  [[nodiscard]] constexpr Token token() const noexcept { return static_cast<Token>(low()); }
  /// Returns true if the word is not empty and belongs to a context with this tag.
  [[nodiscard]] constexpr bool has_tag(std::uint16_t tag) const noexcept { return !empty() && this->tag() == tag; }
  /// Returns true if both words count the same: neither is empty, and they have equal tags and equal tokens or marks.
  [[nodiscard]] constexpr bool same_key(NextTokenWord other) const noexcept {
    return ((bits_ ^ other.bits_) & ~count_bits) == 0 && !empty() && !other.empty();
  }
  /// Returns the word with this count, at most most_count; an empty word if the count is 0.
  [[nodiscard]] constexpr NextTokenWord with_count(std::uint32_t count) const noexcept {
    return count == 0 ? NextTokenWord() : NextTokenWord(tag(), low(), std::min(count, most_count));
  }
  /// Returns a number that is larger for a larger count; among equal counts, for a smaller token.
  [[nodiscard]] constexpr std::uint64_t rank() const noexcept { return std::rotl(bits_ ^ token_bits, 64 - tag_at); }
  /// Returns true if a table can have written the word: it has a count, and a token that can be stored or the mark.
  [[nodiscard]] constexpr bool valid() const noexcept {
    return !empty() && (low() < most_tokens || low() == unlisted_mark);
  }
  friend bool operator==(const NextTokenWord&, const NextTokenWord&) = default;

 private:
  static constexpr int count_at = 32;
  static constexpr int tag_at = 48;
  static constexpr std::uint64_t token_bits = 0xffffffff;
  static constexpr std::uint64_t count_bits = std::uint64_t{most_count} << count_at;
  static constexpr std::uint32_t unlisted_mark = 0xffffffff;

  constexpr NextTokenWord(std::uint16_t tag, std::uint32_t low, std::uint32_t count) noexcept
      : bits_(std::uint64_t{tag} << tag_at | std::uint64_t{count} << count_at | low) {}
  [[nodiscard]] constexpr std::uint32_t low() const noexcept { return static_cast<std::uint32_t>(bits_); }

  std::uint64_t bits_ = 0;
};

inline constexpr std::size_t words_per_line = 8;
using NextTokenLine = std::array<NextTokenWord, words_per_line>;

/// A context that loses a listed token gets an `unlisted` word if it still has at least this many listed tokens.
/// Contexts with fewer lose the count instead, because the word would take the place of a next token.
inline constexpr std::size_t least_listed = 4;

[[nodiscard]] constexpr std::size_t listed_tokens(std::span<const NextTokenWord> words, std::uint16_t tag) noexcept {
  return static_cast<std::size_t>(std::count_if(
      words.begin(), words.end(), [tag](NextTokenWord word) { return word.has_tag(tag) && !word.is_unlisted(); }));
}

/// Halves the counts of one context together and rounds down, so that its shares stay about the same. Words whose count
/// becomes 0 become empty.
constexpr void halve_context(std::span<NextTokenWord> words, std::uint16_t tag) noexcept {
  for (NextTokenWord& word : words)
    if (word.has_tag(tag)) word = word.with_count(word.count() / 2);
}

/// Removes `unlisted` words of contexts that have no listed token.
constexpr void remove_unlisted_alone(std::span<NextTokenWord> words) noexcept {
  for (NextTokenWord& word : words)
    if (!word.empty() && word.is_unlisted() && listed_tokens(words, word.tag()) == 0) word = {};
}

/// Halves the counts of all contexts.
constexpr void halve_all(std::span<NextTokenWord> words) noexcept {
  for (NextTokenWord& word : words) word = word.with_count(word.count() / 2);
  remove_unlisted_alone(words);
}

/// Sorts a line by falling count; empty words are last. Cost: little, if few words have changed since the last call.
constexpr void sort_falling(std::span<NextTokenWord> words) noexcept {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const NextTokenWord word = words[i];
    std::size_t at = i;
    for (; at > 0 && words[at - 1].rank() < word.rank(); --at) words[at] = words[at - 1];
    words[at] = word;
  }
}

/// Returns the index of the listed token with the smallest count. Of n equal counts, the one with number `turn` modulo
/// n. Requires that there is a listed token.
[[nodiscard]] constexpr std::size_t smallest(std::span<const NextTokenWord> words, std::size_t turn) noexcept {
  const auto count_of = [](NextTokenWord word) {
    return word.empty() || word.is_unlisted() ? NextTokenWord::most_count + 1 : word.count();
  };
  std::uint32_t least = NextTokenWord::most_count + 1;
  for (const NextTokenWord word : words) least = std::min(least, count_of(word));
  std::size_t equal = 0;
  for (const NextTokenWord word : words) equal += count_of(word) == least ? 1 : 0;
  std::size_t left = turn % equal;
  std::size_t at = 0;
  while (count_of(words[at]) != least || left-- != 0) ++at;
  return at;
}

/// Takes a listed token off its line and adds its count to the `unlisted` word of its context. If there is no such word
/// and the context has enough other tokens, the word itself becomes it; otherwise the count is lost.
constexpr void unlist(std::span<NextTokenWord> words, std::size_t at) noexcept {
  const std::uint16_t tag = words[at].tag();
  for (NextTokenWord& word : words) {
    if (!word.has_tag(tag) || !word.is_unlisted()) continue;
    if (word.count() + words[at].count() > NextTokenWord::most_count) halve_context(words, tag);
    word = NextTokenWord::unlisted(tag, word.count() + words[at].count());  // halving can have emptied the word
    words[at] = {};
    if (listed_tokens(words, tag) == 0) word = {};
    return;
  }
  const bool keeps_total = listed_tokens(words, tag) > least_listed;
  words[at] = keeps_total ? NextTokenWord::unlisted(tag, words[at].count()) : NextTokenWord();
}

/// Counts one more occurrence of a word that the line holds.
constexpr void count_again(std::span<NextTokenWord> words, std::size_t at) noexcept {
  if (words[at].count() == NextTokenWord::most_count) halve_context(words, words[at].tag());
  words[at] = words[at].with_count(words[at].count() + 1);
}

/// Returns true if all words are in use.
[[nodiscard]] constexpr bool full(std::span<const NextTokenWord> words) noexcept {
  return std::none_of(words.begin(), words.end(), [](NextTokenWord word) { return word.empty(); });
}

/// Lists a token that its line does not list, with a count of 1. Requires an empty word.
constexpr void list_new(std::span<NextTokenWord> words, std::uint16_t tag, Token token) noexcept {
  *std::find_if(words.begin(), words.end(), [](NextTokenWord word) { return word.empty(); }) = {tag, token, 1};
}

/// Returns the union of two lines with the sums of their counts. If it needs too many words, the smallest counts are
/// evicted. The order of the arguments and of their words does not matter. The result is sorted.
[[nodiscard]] constexpr NextTokenLine merged(NextTokenLine a, NextTokenLine b) noexcept {
  for (const NextTokenWord word : a)
    for (const NextTokenWord other : b)
      if (word.same_key(other) && word.count() + other.count() > NextTokenWord::most_count) {
        halve_context(a, word.tag());
        halve_context(b, word.tag());
      }
  std::array<NextTokenWord, 2 * words_per_line> all{};
  std::copy(a.begin(), a.end(), all.begin());
  for (const NextTokenWord other : b) {
    if (other.empty()) continue;
    auto at = std::find_if(all.begin(), all.end(), [other](NextTokenWord word) { return word.same_key(other); });
    if (at == all.end()) at = std::find(all.begin(), all.end(), NextTokenWord());
    *at = other.with_count(other.count() + at->count());
  }
  remove_unlisted_alone(all);
  const auto falling = [](NextTokenWord x, NextTokenWord y) { return x.bits() > y.bits(); };
  std::sort(all.begin(), all.end(), falling);  // so that equal inputs in another order give an equal result
  while (!all[words_per_line].empty()) {
    unlist(all, smallest(all, 0));
    std::sort(all.begin(), all.end(), falling);
  }
  NextTokenLine result{};
  std::copy_n(all.begin(), result.size(), result.begin());
  sort_falling(result);
  return result;
}

/// Returns a line without the words of all contexts except the first. A ranked line that is read during a write can
/// have words of two contexts.
[[nodiscard]] constexpr NextTokenLine of_one_context(NextTokenLine words) noexcept {
  const auto first = std::find_if(words.begin(), words.end(), [](NextTokenWord word) { return !word.empty(); });
  const std::uint16_t tag = first == words.end() ? std::uint16_t{0} : first->tag();
  for (NextTokenWord& word : words)
    if (!word.has_tag(tag)) word = {};
  return words;
}

}}}  // namespace reprise::detail
