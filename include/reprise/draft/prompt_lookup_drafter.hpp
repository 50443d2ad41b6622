// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/rolling_hash.hpp"

namespace reprise { inline namespace v0 {

/// Settings of PromptLookupDrafter.
struct PromptLookupOptions {
  /// How to choose among several earlier occurrences: the longest agreement wins, and this setting decides ties.
  enum class Occurrence : std::uint8_t { most_recent, earliest, most_frequent };

  /// Conditions that other systems impose on a draft. The defaults have no effect; the presets below set other values.
  struct Conditions {
    std::size_t min_context = 0;     ///< minimum number of context tokens for a draft
    std::size_t min_distance = 1;    ///< minimum distance in tokens from the occurrence's end to the context's end
    bool apart = false;              ///< true: the distance (see min_distance) must exceed the n-gram's length
    std::size_t min_copy = 1;        ///< minimum number of tokens that follow the occurrence
    bool without_anchor = false;     ///< true: the last token of the context is never copied
    bool never_from_start = false;   ///< true: an occurrence at the very beginning of the context is not used
    std::optional<Token> cut_after;  ///< the copy ends after this token
  };

  std::uint32_t min_ngram = 1;   ///< shortest n-gram that is looked up, 1..32
  std::uint32_t max_ngram = 16;  ///< longest agreement that counts, min_ngram..32
  /// true: look up min_ngram + 3 tokens (if max_ngram allows), then min_ngram tokens, and measure how long each
  /// occurrence agrees. false: look up every length (at most 8), longest first, and measure no further.
  bool extend = true;
  Occurrence occurrence = Occurrence::most_recent;
  std::uint32_t candidates = 24;  ///< maximum number of occurrences compared per length, 1..64
  std::size_t draft_length = 10;  ///< upper bound; Limits::draft and Session's max_draft_nodes also apply
  /// true: a copy that reaches the end of the context continues with its own tokens, so a repetition keeps repeating.
  bool copy_past_end = true;
  Conditions conditions = {};
  std::uint64_t key = IndexOptions{}.key;                ///< see IndexOptions
  std::size_t max_bytes = unlimited;                     ///< see IndexOptions
  std::uint32_t vocabulary = IndexOptions{}.vocabulary;  ///< see IndexOptions
};

/// Returns the n-gram lengths that these settings look up, if PromptLookupDrafter::make() accepts the settings. Lengths
/// outside 1..32 are omitted.
inline NgramOrders lookup_orders(const PromptLookupOptions& options) noexcept {
  NgramOrders orders;
  const std::uint32_t longest = std::min(options.max_ngram, NgramOrders::largest);
  // Each length costs a table that every token enters. Agreement beyond a looked-up length is measured on the tokens,
  // so a second length only has to rule out most of the occurrences of the first.
  const std::size_t most = options.extend ? 2 : NgramOrders::capacity;
  for (std::uint32_t n = std::max(options.min_ngram, 1U); n <= longest && orders.size() < most;
       n += options.extend ? 3 : 1)
    orders.add(n);
  return orders;
}

/// Drafts by lookup: finds an earlier occurrence of the end of the context and copies the tokens that followed it.
/// (Prompt lookup decoding, Saxena 2023; LLMA, Yang et al. 2023.)
///
/// Every token is proposed with probability one: this drafter does not estimate probabilities. `draft_length` limits
/// its drafts.
///
/// Cost of propose(): for each looked-up length, at most `candidates` occurrences are compared over at most `max_ngram`
/// tokens, the first of them up to twice. With RollingHashIndex this does not depend on the length of the context;
/// SuffixArrayIndex reads all occurrences, up to twice. Cost of observe(), and memory: those of the index. Threads: one
/// at a time; copies are independent.
template <LookupIndex Index = RollingHashIndex>
class PromptLookupDrafter {
 public:
  PromptLookupDrafter() : PromptLookupDrafter(PromptLookupOptions()) {}

  /// Makes a drafter with these settings. Errors: invalid_argument if min_ngram, max_ngram or candidates is out of
  /// range, or if more than 8 lengths are looked up without `extend`.
  static Result<PromptLookupDrafter> make(const PromptLookupOptions& options = {}) {
    if (const auto checked = check(options); !checked) return checked.error();
    return PromptLookupDrafter(options);
  }

  void begin(TokenSpan context) {
    index_.clear();
    index_.append(context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) { index_.append(context.last(fresh)); }
  void feedback(TokenSpan, const Outcome&) noexcept {}
  void truncate(TokenSpan, std::size_t size) { index_.truncate(size); }
  void reserve(std::size_t max_context) { static_cast<void>(index_.reserve(max_context)); }

  /// Drafts from the index's own text, not from the span passed in. Drafts nothing if exhausted().
  void propose(TokenSpan, Draft& draft) const {
    if (index_.exhausted() || index_.tokens().size() < options_.conditions.min_context) return;
    std::uint32_t longest = options_.max_ngram;
    for (std::size_t i = orders_.size(); i-- > 0;) {
      const std::uint32_t n = orders_[i];
      const MatchLimits limits{n, options_.extend ? longest : n, options_.candidates,
                               options_.occurrence == PromptLookupOptions::Occurrence::earliest
                                   ? MatchLimits::Order::earliest
                                   : MatchLimits::Order::most_recent};
      std::array<Match, 1> first;
      if (index_.find(limits, first) == 0) {
        longest = n - 1;  // a longer agreement would have been found
        continue;
      }
      const std::optional<Match> match = best_match(limits, first[0]);
      if (match && copy(*match, draft)) return;
    }
  }

  [[nodiscard]] const PromptLookupOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] const Index& index() const noexcept REPRISE_LIFETIMEBOUND { return index_; }
  /// True if indexing has stopped because memory ran out (see PromptLookupOptions::max_bytes). In that case nothing is
  /// drafted until begin(), or until truncate() leaves only indexed tokens.
  [[nodiscard]] bool exhausted() const noexcept { return index_.exhausted(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return index_.memory_bytes(); }

 private:
  static constexpr std::uint32_t max_candidates = 64;

  /// Precondition: the settings are valid.
  explicit PromptLookupDrafter(const PromptLookupOptions& options)
      : options_(options), orders_(lookup_orders(options)), index_(index_options(options, orders_)) {}

  static Result<void> check(const PromptLookupOptions& options) noexcept {
    const auto refuse = [](const char* why, std::uint64_t value, std::uint64_t limit) {
      return Error{ErrorCode::invalid_argument, why, value, limit};
    };
    if (options.min_ngram == 0) return refuse("min_ngram is 0: give it at least 1 token", 0, 1);
    if (options.max_ngram > NgramOrders::largest)
      return refuse("max_ngram is too large: give it at most 32 tokens", options.max_ngram, NgramOrders::largest);
    if (options.min_ngram > options.max_ngram)
      return refuse("min_ngram is larger than max_ngram: lower min_ngram or raise max_ngram", options.min_ngram,
                    options.max_ngram);
    if (!options.extend && options.max_ngram - options.min_ngram >= NgramOrders::capacity)
      return refuse("too many n-gram lengths from min_ngram to max_ngram: give at most 8, or set extend",
                    options.max_ngram - options.min_ngram + 1, NgramOrders::capacity);
    if (options.candidates == 0 || options.candidates > max_candidates)
      return refuse("candidates has to be between 1 and 64", options.candidates,
                    std::clamp<std::uint32_t>(options.candidates, 1, max_candidates));
    return {};
  }
  static IndexOptions index_options(const PromptLookupOptions& options, const NgramOrders& orders) noexcept {
    return {orders, options.occurrence == PromptLookupOptions::Occurrence::earliest, options.key, options.max_bytes,
            options.vocabulary};
  }

  /// Returns the occurrence to copy from. Returns nullopt if none is usable. `first`: the first one in limits.order.
  [[nodiscard]] std::optional<Match> best_match(const MatchLimits& limits, const Match& first) const {
    // Most lookups end here: no agreement is measured further than this one, and the first match wins ties.
    if (first.length == limits.longest && usable(first, limits.shortest) &&
        options_.occurrence != PromptLookupOptions::Occurrence::most_frequent)
      return first;
    std::array<Match, max_candidates> found;
    const std::size_t count = index_.find(limits, found);
    const auto last = std::remove_if(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count),
                                     [&](const Match& match) { return !usable(match, limits.shortest); });
    const std::span<const Match> matches(found.begin(), last);
    if (matches.empty()) return {};
    // max_element returns the first of the longest matches; the order of `found` thus decides ties.
    const auto longest = std::max_element(matches.begin(), matches.end(),
                                          [](const Match& a, const Match& b) { return a.length < b.length; });
    return options_.occurrence == PromptLookupOptions::Occurrence::most_frequent
               ? most_frequent(matches, longest->length)
               : *longest;
  }

  [[nodiscard]] bool usable(const Match& match, std::uint32_t n) const noexcept {
    const PromptLookupOptions::Conditions& conditions = options_.conditions;
    const std::size_t distance = index_.tokens().size() - match.end;
    return distance >= conditions.min_distance && !(conditions.apart && distance <= n) &&
           !(conditions.never_from_start && match.end <= n) && index_.tokens()[match.end] >= 0;  // no placeholder
  }

  /// Returns the match of this length with the most frequent next token. Of equally frequent ones, returns the most
  /// recent.
  [[nodiscard]] Match most_frequent(std::span<const Match> matches, std::uint32_t length) const noexcept {
    const TokenSpan tokens = index_.tokens();
    Match best;
    std::size_t best_votes = 0;
    for (const Match& match : matches) {
      if (match.length != length) continue;
      const auto votes =
          static_cast<std::size_t>(std::count_if(matches.begin(), matches.end(), [&](const Match& other) {
            return other.length == length && tokens[other.end] == tokens[match.end];
          }));
      if (votes > best_votes) {
        best = match;
        best_votes = votes;
      }
    }
    return best;
  }

  /// Drafts the tokens that followed the match. Returns false if the conditions forbid the copy.
  bool copy(const Match& match, Draft& draft) const noexcept {
    const TokenSpan tokens = index_.tokens();
    const PromptLookupOptions::Conditions& conditions = options_.conditions;
    const std::size_t end = tokens.size() - (conditions.without_anchor ? 1 : 0);
    const std::size_t following = end > match.end ? end - match.end : 0;
    if (following < std::max<std::size_t>(conditions.min_copy, 1)) return false;
    const std::size_t length =
        options_.copy_past_end ? options_.draft_length : std::min(options_.draft_length, following);
    for (std::size_t i = 0; i < length; ++i) {
      const Token token = i < following ? tokens[match.end + i] : draft[i - following].token;
      if (!draft.extend({.token = token,
                         .match_length = static_cast<std::uint16_t>(match.length),
                         .source = DraftSource::context}))
        break;
      if (conditions.cut_after == token) break;
    }
    return true;
  }

  PromptLookupOptions options_;
  NgramOrders orders_;
  Index index_;
};

}}  // namespace reprise

namespace reprise { inline namespace v0 { namespace presets {

// Settings with which PromptLookupDrafter drafts exactly the tokens that other systems draft. They serve as baselines
// for comparisons, and as a first step in a migration. L is the length of the context, anchor included.

/// Returns the common settings: look up every n-gram length from `min_ngram` to `max_ngram`, and copy after the
/// earliest occurrence. A copy stops at the end of the context. PromptLookupDrafter::make() accepts at most 8 lengths.
inline PromptLookupOptions lookup(std::uint32_t min_ngram, std::uint32_t max_ngram, std::size_t draft_length) noexcept {
  PromptLookupOptions options;
  options.min_ngram = min_ngram;
  options.max_ngram = max_ngram;
  options.extend = false;
  options.occurrence = PromptLookupOptions::Occurrence::earliest;
  options.candidates = 1;
  options.draft_length = draft_length;
  options.copy_past_end = false;
  return options;
}

/// Prompt lookup decoding as first published (Saxena 2023): tries lengths from n down to 1. Uses the earliest
/// occurrence that ends more than its own length before L and is followed by `draft_length` tokens. Copies exactly that
/// many tokens.
inline PromptLookupOptions prompt_lookup(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  PromptLookupOptions options = lookup(1, n, draft_length);
  options.conditions.apart = true;
  options.conditions.min_copy = draft_length;
  return options;
}

/// Hugging Face transformers, prompt_lookup_num_tokens: like prompt_lookup() without its two conditions, so a copy that
/// reaches L may be shorter.
inline PromptLookupOptions hugging_face(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  return lookup(1, n, draft_length);
}

/// vLLM's ngram proposer (prompt_lookup_min, prompt_lookup_max, num_speculative_tokens): uses the longest n-gram that
/// occurs earlier, at its earliest occurrence.
inline PromptLookupOptions vllm(std::uint32_t min_ngram = 2, std::uint32_t max_ngram = 5,
                                std::size_t draft_length = 5) noexcept {
  return lookup(min_ngram, max_ngram, draft_length);
}

/// llama.cpp's ngram-simple: uses the most recent occurrence of the last n tokens, unless it is at the very beginning.
/// The occurrence and the copy lie in the context without its anchor. Drafts nothing if fewer than n tokens follow the
/// occurrence, if `draft_length` is below n, or if L is below n + draft_length + 3.
inline PromptLookupOptions llama_cpp_simple(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  PromptLookupOptions options = lookup(n, n, draft_length < n ? 0 : draft_length);
  options.occurrence = PromptLookupOptions::Occurrence::most_recent;
  options.candidates = 2;  // the most recent one may be too close
  options.conditions.min_context = n + draft_length + 3;
  options.conditions.min_distance = 2;
  options.conditions.min_copy = n;
  options.conditions.without_anchor = true;
  options.conditions.never_from_start = true;
  return options;
}

/// ds4: uses the most recent occurrence of the last n tokens; the copy ends after `eos`, if it is given.
inline PromptLookupOptions ds4(std::uint32_t n = 4, std::size_t draft_length = 7,
                               std::optional<Token> eos = {}) noexcept {
  PromptLookupOptions options = lookup(n, n, draft_length);
  options.occurrence = PromptLookupOptions::Occurrence::most_recent;
  options.conditions.cut_after = eos;
  return options;
}

}}}  // namespace reprise::presets
