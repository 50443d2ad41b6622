// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/index/detail/token_counts.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// An earlier place that the context currently seems to repeat.
struct LiveMatch {
  Position next = 0;             ///< position of the token that this match predicts
  std::uint32_t agreements = 0;  ///< bit i: the i-th last token of the context (from 0) agreed with this match
  std::uint16_t length = 0;      ///< length of the unbroken agreement in tokens
  friend bool operator==(const LiveMatch&, const LiveMatch&) = default;
};

/// Equivalent to std::popcount(), which calls a library function if the target may lack the instruction.
constexpr int bit_count(std::uint32_t bits) noexcept {
  bits -= bits >> 1 & 0x55555555U;
  bits = (bits & 0x33333333U) + (bits >> 2 & 0x33333333U);
  return static_cast<int>(((bits + (bits >> 4)) & 0x0f0f0f0fU) * 0x01010101U >> 24);
}

/// Returns agreement bits as in LiveMatch::agreements for the last 32 tokens of `a` and `b`, aligned at their ends.
inline std::uint32_t agreements_of(TokenSpan a, TokenSpan b) noexcept {
  constexpr std::size_t most = 32;
  static constexpr auto bits = [] {  // in the order of the tokens; a shift of each lane would prevent vector code
    std::array<std::uint32_t, most> all{};
    for (std::size_t i = 0; i < most; ++i) all[i] = std::uint32_t{1} << (most - 1 - i);
    return all;
  }();
  std::uint32_t agreements = 0;
  if (a.size() >= most && b.size() >= most) {
    const Token* const there = a.data() + a.size() - most;
    const Token* const here = b.data() + b.size() - most;
    for (std::size_t i = 0; i < most; ++i) agreements |= bits[i] & (0U - std::uint32_t{there[i] == here[i]});
    return agreements;
  }
  for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i)
    agreements |= std::uint32_t{a[a.size() - i] == b[b.size() - i]} << (i - 1);
  return agreements;
}

/// The few earlier places that are followed while the context grows. propose() need not search for these places again,
/// and a copy that was edited resumes after the edit. (The recovering match model of PAQ compressors.)
///
/// A pure function of the tokens since reset() and of the lookup results.
class LiveMatches {
 public:
  static constexpr std::size_t capacity = 8;

  void reset() noexcept { size_ = 0; }
  [[nodiscard]] std::span<const LiveMatch> matches() const noexcept { return std::span(matches_).first(size_); }

  /// True if a match has agreed for so long that a lookup rarely finds a better place (docs/decisions/0005).
  [[nodiscard]] bool copies() const noexcept {
    return std::any_of(matches().begin(), matches().end(),
                       [](const LiveMatch& match) { return match.length >= copied_length; });
  }

  /// Advances every match past the last token of `tokens`, or drops the match. If the token breaks matches of 8 or more
  /// tokens, also follows the places where the longest of them may continue. Call it after each new token.
  void advance(TokenSpan tokens) noexcept {
    const std::size_t last = tokens.size() - 1;
    const Token token = tokens[last];
    Resumed resumed;
    std::size_t kept = 0;
    std::size_t longest = resumed_length - 1;
    for (const LiveMatch& match : matches()) {
      const bool agrees = tokens[match.next] == token;
      if (!agrees && match.length > longest) {
        longest = match.length;
        resumed = resume(match, tokens);
      }
      const std::uint32_t agreements = match.agreements << 1 | std::uint32_t{agrees};
      const int length = agrees ? std::min<int>(match.length + 1, longest_counted) : 0;
      // A mismatch inside a nearly perfect agreement means that one token was replaced: the match is kept.
      if (agrees || bit_count(agreements & 0xffffU) >= enough_agreement)
        matches_[kept++] = {match.next + 1, agreements, static_cast<std::uint16_t>(length)};
    }
    size_ = kept;
    for (std::size_t i = 0; i < resumed.size; ++i) add(resumed.matches[i]);
  }

  /// Starts to follow `place`, unless it is already followed or the list is full of matches that are at least as good.
  void look_at(TokenSpan tokens, Position place) noexcept {
    if (follows(place)) return;
    const std::uint32_t agreements = agreements_of(tokens.first(place), tokens);
    insert({place, agreements, static_cast<std::uint16_t>(std::countr_one(agreements))});
  }

 private:
  static constexpr std::size_t resumed_length = 8;  // a shorter copy is not resumed after an edit
  static constexpr std::size_t omitted_at_most = 8;
  static constexpr int enough_agreement = 12;  // minimum number of agreeing tokens among the last 16
  static constexpr int copied_length = 32;
  static constexpr int longest_counted = 1000;

  struct Resumed {
    std::array<LiveMatch, 2> matches;
    std::size_t size = 0;
  };

  /// Returns the places where a copy may continue after a mismatch at the last token.
  static Resumed resume(const LiveMatch& match, TokenSpan tokens) noexcept {
    const std::size_t last = tokens.size() - 1;
    Resumed resumed;
    resumed.matches[resumed.size++] = {match.next, match.agreements << 1, 0};
    for (std::size_t skipped = 1; skipped <= omitted_at_most && match.next + skipped < last; ++skipped) {
      if (tokens[match.next + skipped] != tokens[last]) continue;
      resumed.matches[resumed.size++] = {static_cast<Position>(match.next + skipped + 1), match.agreements << 1 | 1, 1};
      break;
    }
    return resumed;
  }

  [[nodiscard]] bool follows(Position place) const noexcept {
    bool followed = false;  // a branch for each match would rarely be predicted
    for (const LiveMatch& match : matches()) followed |= match.next == place;
    return followed;
  }
  void add(const LiveMatch& match) noexcept {
    if (!follows(match.next)) insert(match);
  }
  void insert(const LiveMatch& match) noexcept {
    if (size_ < capacity) {
      matches_[size_++] = match;
      return;
    }
    const auto worst = std::min_element(matches_.begin(), matches_.end(),
                                        [](const LiveMatch& a, const LiveMatch& b) { return value(a) < value(b); });
    if (value(*worst) < value(match)) *worst = match;
  }
  /// Returns the rank of a match; higher is better. Each token of unbroken agreement counts 4, for up to 16 tokens.
  /// Each agreeing token before the mismatch counts 1. Of equal matches, the later place is better.
  static std::uint64_t value(const LiveMatch& match) noexcept {
    const int unbroken = std::min<int>(match.length, 16);
    const int before = bit_count(match.agreements >> std::min<int>(match.length, 31));
    return static_cast<std::uint64_t>(4 * unbroken + before) << 32 | match.next;
  }

  std::array<LiveMatch, capacity> matches_{};
  std::size_t size_ = 0;
};

/// The lengths of the common beginning (head) and the common end (tail) of two texts, in tokens. Head and tail do not
/// overlap.
struct CommonEnds {
  std::size_t head = 0;
  std::size_t tail = 0;
};
inline CommonEnds common_ends(TokenSpan a, TokenSpan b) noexcept {
  const std::size_t most = std::min(a.size(), b.size());
  CommonEnds common;
  while (common.head < most && a[common.head] == b[common.head]) ++common.head;
  while (common.head + common.tail < most && a[a.size() - 1 - common.tail] == b[b.size() - 1 - common.tail])
    ++common.tail;
  return common;
}

/// A growing context with the lookup state of NgramDrafter: an n-gram index, the followed matches and token counts.
///
/// The indexed text is [replaced | context]. Tokens that rebase() removes from the context stay as evidence. They
/// come first, so the context is always one piece at the end of the text and can be truncated as usual. All
/// positions refer to this text.
///
/// The matches depend on how the context has grown: a lookup does not find a match that has survived an edit. The
/// matches are therefore saved every 256 tokens. truncate() restores the matches saved last before the cut and follows
/// the tokens after that point again. Its cost is that of the removed tokens plus at most 320 others. If one call adds
/// more than 64 tokens, only the last 64 are followed.
///
/// A copy that runs out of memory may find less to draft. The original may also find less, if there is no memory for
/// saved matches. Without memory for the index, nothing is followed until clear() or rebase(), or until truncate()
/// leaves only indexed tokens.
template <LookupIndex Index>
class FollowedContext {
 public:
  FollowedContext(std::uint64_t key, std::size_t max_bytes, std::uint32_t vocabulary)
      : index_(IndexOptions{.orders = orders, .key = key, .max_bytes = max_bytes, .vocabulary = vocabulary}),
        counts_(key) {}

  /// Forgets the text. The next one has this evidence before it, like replaced tokens, if there is memory for it.
  void clear(TokenSpan evidence = {}) {
    index_.clear();
    counts_.clear();
    checkpoints_.clear();
    matches_.reset();
    size_ = replaced_ = evidence.size();
    if (evidence.empty()) return;
    if (reserved_ != 0) reserve(reserved_);
    grow(evidence);
    if (index_.exhausted()) clear();
  }

  /// Adds the last `fresh` tokens of `context`, which are new.
  void observe(TokenSpan context, std::size_t fresh) {
    if (fresh == 0) return;
    const bool whole = !index_.exhausted();
    size_ += fresh;
    grow(context.last(fresh));
    if (whole && index_.exhausted() && replaced_ != 0) drop_replaced(context);
  }

  /// Replaces the context `before` with `fresh`. The old tokens between the common beginning and the common end become
  /// evidence, with up to 32 tokens before and after them. At most the latest `max_replaced` such tokens are
  /// kept. If memory runs out, the replaced tokens are dropped. Preconditions: `before` is
  /// the current context; neither span points into this index. Returns what both have in common.
  REPRISE_COLD CommonEnds rebase(TokenSpan before, TokenSpan fresh, std::size_t max_replaced) {
    REPRISE_EXPECTS(before.size() == size_ - replaced_);
    const CommonEnds common = common_ends(before, fresh);
    if (!index_.exhausted() && common.head == before.size()) {
      observe(fresh, fresh.size() - common.head);
      return common;
    }
    Buffer<Token> text;
    if (index_.exhausted() || !text.reserve(size_ + fresh.size())) {
      clear();
      observe(fresh, fresh.size());
      return common;
    }

    // The old text: [replaced before | common head | replaced now | common tail].
    const TextRange replaced{replaced_ + common.head, size_ - common.tail};
    const auto keep = [&](TextRange range) {
      static_cast<void>(text.append(tokens().subspan(range.begin, range.end - range.begin)));
    };
    // The new text: [replaced before | replaced now, and its surroundings | context], without the oldest tokens.
    TextRange dropped{replaced.begin, replaced.begin};
    if (replaced.begin != replaced.end)
      dropped = {replaced.begin - std::min(common.head, seam), replaced.end + std::min(common.tail, seam)};
    const std::size_t kept = std::min(replaced_ + (dropped.end - dropped.begin), max_replaced);
    const std::size_t from_dropped = std::min(kept, dropped.end - dropped.begin);
    keep({replaced_ - (kept - from_dropped), replaced_});
    keep({dropped.end - from_dropped, dropped.end});

    static_cast<void>(text.append(fresh));
    restart({text.data(), text.size()}, kept);
    if (index_.exhausted() && replaced_ != 0) drop_replaced(fresh);
    return common;
  }

  void truncate(std::size_t size) {
    if (size >= size_ - replaced_) return;
    size += replaced_;
    size_ = size;
    if (size > index_.tokens().size()) return index_.truncate(size);  // memory ran out before `size`
    if (size == 0) counts_.clear();
    counts_.remove(index_.tokens().subspan(size));
    rebuild(size);
  }

  /// Reserves memory, so that observe() does not allocate while the context has at most `max_context` tokens. This
  /// holds for at most 32,768 distinct tokens.
  void reserve(std::size_t max_context) {
    reserved_ = max_context;
    const std::size_t text = replaced_ + max_context;
    static_cast<void>(index_.reserve(text));
    static_cast<void>(counts_.reserve(std::min<std::size_t>(text, 32'768)));
    static_cast<void>(checkpoints_.reserve(text / (followed + 1) + 2));  // worst case: only long runs
  }

  [[nodiscard]] const Index& index() const noexcept { return index_; }
  /// Returns the indexed part of the text.
  [[nodiscard]] TokenSpan tokens() const noexcept { return index_.tokens(); }
  /// Returns the indexed part of the context.
  [[nodiscard]] TokenSpan context() const noexcept { return tokens().subspan(std::min(replaced_, tokens().size())); }
  /// Returns the number of replaced tokens before the context.
  [[nodiscard]] std::size_t replaced_tokens() const noexcept { return replaced_; }
  [[nodiscard]] std::span<const LiveMatch> matches() const noexcept { return matches_.matches(); }
  [[nodiscard]] const TokenCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return index_.memory_bytes() + counts_.memory_bytes() + checkpoints_.memory_bytes();
  }

 private:
  static constexpr NgramOrders orders = {1, 2, 4};
  static constexpr std::array<std::uint32_t, 3> occurrences = {4, 4, 2};  // maximum number of lookup results per order
  static constexpr std::size_t followed = 64;  // only the last 64 tokens of a long run advance the matches
  static constexpr std::size_t checkpoint_distance = 256;
  static constexpr std::size_t seam = 32;  // tokens kept around replaced ones, so that matches can enter and leave it

  struct TextRange {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  /// The saved matches at one position, for truncate().
  struct Checkpoint {
    enum class Next : std::uint8_t { few, many };  // number of tokens in the next call
    Position position = 0;
    Next next = Next::few;
    LiveMatches matches;
  };

  /// Adds `tokens` to the text. `size_` already includes them.
  void grow(TokenSpan tokens) {
    if (tokens.size() > followed) {
      // Only the end of a long run determines the matches.
      mark(Checkpoint::Next::many);
      add(tokens.first(tokens.size() - followed));
      matches_.reset();
      for (const Token token : tokens.last(followed)) follow(token);
      mark(Checkpoint::Next::few);
      return;
    }
    for (const Token token : tokens) {
      if (index_.tokens().size() % checkpoint_distance == 0) mark(Checkpoint::Next::few);
      follow(token);
    }
  }
  /// Replaces everything with a text whose first `replaced` tokens are such tokens.
  void restart(TokenSpan text, std::size_t replaced) {
    clear();
    replaced_ = replaced;
    size_ = text.size();
    if (reserved_ != 0) reserve(reserved_);
    grow(text);
  }
  /// Drops the replaced tokens when the index runs out of memory, because they must not take memory from the context.
  REPRISE_COLD void drop_replaced(TokenSpan context) { restart(context, 0); }

  /// Indexes the tokens and counts those for which the index had memory.
  void add(TokenSpan tokens) {
    const std::size_t before = index_.tokens().size();
    index_.append(tokens);
    const TokenSpan indexed = index_.tokens();  // empty if the index dropped its tokens
    for (const Token token : indexed.subspan(std::min(before, indexed.size())))
      if (token >= 0) counts_.add(token);
  }
  void follow(Token token) {
    add(TokenSpan(&token, 1));
    move_matches();
  }
  /// Updates the matches after the index has grown by one token. During a long copy, only every 16th token is looked
  /// up.
  void move_matches() {
    // A match is not resumed after a placeholder, which is negative here.
    if (index_.exhausted() || index_.tokens().back() < 0) return matches_.reset();
    matches_.advance(index_.tokens());
    if (index_.tokens().size() % 16 != 0 && matches_.copies()) return;
    std::array<Match, 4> found;
    for (std::size_t i = orders.size(); i-- > 0;) {
      const MatchLimits limits{orders[i], orders[i], occurrences[i], MatchLimits::Order::most_recent};
      const std::size_t count = index_.find(limits, found);
      for (const Match& match : std::span(found).first(count)) matches_.look_at(index_.tokens(), match.end);
    }
  }

  REPRISE_COLD void mark(typename Checkpoint::Next next) {
    if (index_.exhausted()) return;
    const Checkpoint here{static_cast<Position>(index_.tokens().size()), next, matches_};
    if (!checkpoints_.empty() && checkpoints_[checkpoints_.size() - 1].position == here.position)
      checkpoints_.truncate(checkpoints_.size() - 1);
    if (checkpoints_.reserve_extra(1)) checkpoints_.push_reserved(here);  // if this fails, truncate() is less exact
  }

  /// Cuts the index to `size` tokens. Follows the matches again from the last checkpoint, or over the last 64 tokens if
  /// the checkpoint is missing or too far back.
  REPRISE_COLD void rebuild(std::size_t size) {
    while (!checkpoints_.empty() && checkpoints_[checkpoints_.size() - 1].position > size)
      checkpoints_.truncate(checkpoints_.size() - 1);
    std::size_t from = size - std::min(size, followed);
    matches_.reset();
    if (!checkpoints_.empty()) {
      const Checkpoint& last = checkpoints_[checkpoints_.size() - 1];
      const std::size_t again = size - last.position;
      if (again <= (last.next == Checkpoint::Next::many ? followed : checkpoint_distance)) {
        from = last.position;
        matches_ = last.matches;
      }
    }
    std::array<Token, checkpoint_distance> tokens;
    const std::size_t count = size - from;
    std::copy_n(index_.tokens().begin() + static_cast<std::ptrdiff_t>(from), count, tokens.begin());
    index_.truncate(from);
    for (const Token token : std::span(tokens).first(count)) {
      index_.append(TokenSpan(&token, 1));
      move_matches();
    }
    // Without a new checkpoint, later tokens would seem to belong to the long run after the last checkpoint.
    if (checkpoints_.empty() || checkpoints_[checkpoints_.size() - 1].next == Checkpoint::Next::many)
      mark(Checkpoint::Next::few);
  }

  Index index_;
  TokenCounts counts_;
  LiveMatches matches_;
  Buffer<Checkpoint> checkpoints_;
  std::size_t size_ = 0;      // tokens in the text, including those that did not fit in the index
  std::size_t replaced_ = 0;  // tokens that rebase() has kept, before the context
  std::size_t reserved_ = 0;
};

}}}  // namespace reprise::detail
