// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/token.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise::inline v0::detail {

/// The reason why the text is expected to continue at a place of a reference.
enum class CursorKind : std::uint8_t {
  followed,   ///< the text has followed the reference for a while, or from the start of the reference
  near,       ///< near the last mismatch, the only place with the longest agreement
  ambiguous,  ///< near the last mismatch, one of several places with the longest agreement
  replaced,   ///< after the mismatched token, which was replaced
  inserted,   ///< at the mismatched token, before which something was inserted
  anywhere    ///< after the latest occurrence of the last tokens of the text in all references
};
inline constexpr std::size_t cursor_kinds = 6;

/// A place in a reference that the text seems to have reached.
struct Cursor {
  Position next = 0;   ///< position of the next token in the references
  Position begin = 0;  ///< first position of the reference
  Position end = 0;
  std::uint16_t run = 0;  ///< number of agreeing tokens, including those before the place was found
  CursorKind kind = CursorKind::followed;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// The few places that are followed through references while a text grows, and the search for new ones after a
/// mismatch. A pure function of the references and of the calls since reset().
class PredictedOutputCursors {
 public:
  static constexpr std::size_t capacity = 6;
  static constexpr std::uint16_t longest_run = 1000;
  static constexpr std::uint16_t settled = 8;  ///< from this run on, the kind of the cursor no longer matters
  static constexpr std::uint32_t compared = 32;

  void reset() noexcept {
    size_ = 0;
    left_ = {};
  }
  [[nodiscard]] std::span<const Cursor> cursors() const noexcept { return std::span(cursors_).first(size_); }
  /// True if one cursor has such a long run that no other place needs to be searched for.
  [[nodiscard]] bool sure() const noexcept {
    return std::any_of(cursors_.begin(), cursors_.begin() + static_cast<std::ptrdiff_t>(size_),
                       [](const Cursor& cursor) { return cursor.run >= settled; });
  }

  /// Follows the reference [begin, end) from its beginning. Until the next start(), or until advance() breaks a run of
  /// 3 or more tokens, look_near() searches near this beginning.
  void start(Position begin, Position end) noexcept {
    if (begin == end) return;
    add({begin, begin, end, 0, CursorKind::followed});
    left_ = {begin, begin, end};
  }
  /// Advances the cursors by `token`, the new last token of the text, and drops those that disagree or reach the end of
  /// their reference. If runs of 3 or more tokens break, also follows the two places where the longest of them may
  /// continue. `references`: all references, concatenated.
  void advance(TokenSpan references, Token token) noexcept {
    std::size_t kept = 0;
    Cursor broken;
    for (std::size_t i = 0; i < size_; ++i) {
      Cursor cursor = cursors_[i];
      if (references[cursor.next] != token) {
        if (cursor.run >= worth_resuming && cursor.run > broken.run) broken = cursor;
        continue;
      }
      ++cursor.next;
      cursor.run = std::min<std::uint16_t>(static_cast<std::uint16_t>(cursor.run + 1), longest_run);
      if (cursor.run >= settled) cursor.kind = CursorKind::followed;
      if (cursor.next < cursor.end) cursors_[kept++] = cursor;
    }
    size_ = kept;
    if (broken.run == 0) return;
    left_ = {broken.next, broken.begin, broken.end};
    add({broken.next + 1, broken.begin, broken.end, 0, CursorKind::replaced});
    add({broken.next, broken.begin, broken.end, 0, CursorKind::inserted});
  }
  /// Searches near the last mismatch for occurrences of the text's last tokens. Follows the place after the longest
  /// occurrence. Of equally long ones, follows the first place at or after the mismatch, otherwise the nearest before
  /// it. Cost: comparisons at up to 320 places.
  void look_near(TokenSpan references, TokenSpan text) noexcept {
    if (left_.begin == left_.end || text.empty()) return;
    const Position from = left_.place - std::min(left_.place - left_.begin, near_before);
    const Position until = left_.place + std::min(left_.end - left_.place, near_after);
    std::uint32_t longest = 0;
    std::size_t equal = 0;
    Position best = 0;
    for (Position at = from; at + 1 < until; ++at) {
      if (references[at] != text.back()) continue;
      const std::uint32_t length = agreement_of(references, at + 1, text);
      if (length > longest || (length == longest && best < left_.place)) best = at + 1;
      equal = length > longest ? 1 : equal + (length == longest ? 1 : 0);
      longest = std::max(longest, length);
    }
    if (longest > 0)
      add({best, left_.begin, left_.end, run_of(longest), equal == 1 ? CursorKind::near : CursorKind::ambiguous});
  }
  /// Follows a place in the reference [begin, end) that was found by lookup.
  void look_at(TokenSpan references, Position place, Position begin, Position end, TokenSpan text) noexcept {
    if (place < end) add({place, begin, end, run_of(agreement_of(references, place, text)), CursorKind::anywhere});
  }

  friend bool operator==(const PredictedOutputCursors& a, const PredictedOutputCursors& b) noexcept {
    return std::equal(a.cursors().begin(), a.cursors().end(), b.cursors().begin(), b.cursors().end()) &&
           a.left_ == b.left_;
  }

 private:
  static constexpr std::uint16_t worth_resuming = 3;  // a shorter run is not resumed after a mismatch
  static constexpr Position near_before = 64;
  static constexpr Position near_after = 256;

  struct Left {
    Position place = 0;
    Position begin = 0;
    Position end = 0;
    friend bool operator==(const Left&, const Left&) = default;
  };

  [[nodiscard]] static std::uint16_t run_of(std::uint32_t length) noexcept {
    return static_cast<std::uint16_t>(length);
  }
  /// Returns the number of tokens before `place` that agree with the end of the text, at most `compared`.
  [[nodiscard]] static std::uint32_t agreement_of(TokenSpan references, Position place, TokenSpan text) noexcept {
    const auto most = static_cast<std::uint32_t>(std::min<std::size_t>({place, text.size(), compared}));
    std::uint32_t n = 0;
    while (n < most && references[place - 1 - n] == text[text.size() - 1 - n]) ++n;
    return n;
  }
  void add(const Cursor& cursor) noexcept {
    if (cursor.next >= cursor.end) return;
    for (Cursor& other : std::span(cursors_).first(size_)) {
      if (other.next != cursor.next) continue;
      if (cursor.run > other.run) other = cursor;
      return;
    }
    if (size_ < capacity) {
      cursors_[size_++] = cursor;
      return;
    }
    const auto shortest = std::min_element(cursors_.begin(), cursors_.end(),
                                           [](const Cursor& a, const Cursor& b) { return a.run < b.run; });
    if (shortest->run < cursor.run) *shortest = cursor;
  }

  std::array<Cursor, capacity> cursors_{};
  std::size_t size_ = 0;
  Left left_;  // the place of the last mismatch, or the start of a prediction
};

}  // namespace reprise::detail
