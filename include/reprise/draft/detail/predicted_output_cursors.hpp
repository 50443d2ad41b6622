// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Estimates how likely the output is to continue like another text at a given place. The table is indexed by the kind
/// of the place, the number of tokens that agreed so far, and whether a likelier place competes. It learns from the
/// tokens that the target picks. Used by PredictedOutputDrafter.
///
/// Every entry is the running mean of its examples: 1 if the output agreed, otherwise 0. It starts at a built-in value.
/// An example moves it by 1 / `prior` of the error at first, and by 1 / (`prior` + `memory`) in the long run. The
/// arithmetic uses integers only. Size: 1 KB; no allocation. Threads: one at a time.
class AgreementCalibrator {
 public:
  static constexpr std::size_t kinds = 6;  ///< number of cursor kinds, see CursorKind

  /// Returns the index of the entry for a CursorKind and a run length. `alone`: no likelier place competes for the
  /// token.
  [[nodiscard]] static constexpr std::size_t evidence(std::size_t kind, std::size_t run, bool alone) noexcept {
    return (kind * runs + class_of(run)) * 2 + (alone ? 0 : 1);
  }
  [[nodiscard]] constexpr Probability probability(std::size_t evidence) const noexcept {
    return Probability::from_raw(rescaled<UnitScale, ProbabilityScale>(entries_[evidence].value));
  }
  /// Learns from one pick. `picked`: true if the pick is the predicted token.
  constexpr void learn(std::size_t evidence, bool picked) noexcept {
    Entry& entry = entries_[evidence];
    const std::int32_t error = (picked ? one : 0) - static_cast<std::int32_t>(entry.value);
    const std::int32_t moved = static_cast<std::int32_t>(entry.value) + error / (prior + entry.examples);
    entry.value = static_cast<std::uint32_t>(std::clamp(moved, least, most));
    entry.examples = std::min(entry.examples + 1, memory);
  }

 private:
  static constexpr std::int32_t one = UnitScale::one;
  static constexpr std::int32_t least = one / 1000;
  static constexpr std::int32_t most = one - one / 1000;  // no number of examples leads to certainty
  static constexpr std::int32_t prior = 4;
  static constexpr std::int32_t memory = 124;
  static constexpr std::size_t runs = 9;

  struct Entry {
    std::uint32_t value = 0;  // in UnitScale
    std::int32_t examples = 0;
  };

  /// Returns the class of a run length. The classes are 0, 1, 2, 3, 4-5, 6-7, 8-15, 16-31, 32 and more.
  static constexpr std::size_t class_of(std::size_t run) noexcept {
    constexpr std::array<std::uint8_t, 8> few = {0, 1, 2, 3, 4, 4, 5, 5};
    if (run < few.size()) return few[run];
    return run < 16 ? 6 : run < 32 ? 7 : 8;
  }
  /// Initial values in thousandths, measured on edited texts. Rows: CursorKind; columns: class_of() of the run length.
  /// Contested entries start at a quarter of these values.
  static constexpr std::array<std::array<std::uint16_t, runs>, kinds> beginnings = {{
      {{700, 900, 910, 920, 930, 940, 950, 975, 995}},
      {{200, 270, 600, 700, 800, 860, 950, 975, 995}},
      {{150, 250, 640, 680, 820, 890, 950, 975, 995}},
      {{330, 720, 860, 880, 890, 930, 950, 975, 995}},
      {{100, 800, 850, 880, 910, 940, 950, 975, 995}},
      {{100, 200, 390, 530, 640, 760, 950, 975, 995}},
  }};
  static constexpr std::array<Entry, kinds * runs * 2> entries() noexcept {
    std::array<Entry, kinds * runs * 2> made{};
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      for (std::size_t run = 0; run < runs; ++run) {
        const std::uint32_t value = std::uint32_t{beginnings[kind][run]} * one / 1000;
        made[(kind * runs + run) * 2].value = value;
        made[(kind * runs + run) * 2 + 1].value = value / 4;
      }
    }
    return made;
  }

  std::array<Entry, kinds* runs* 2> entries_ = entries();
};

/// The reason why the text is expected to continue at a place of a reference.
enum class CursorKind : std::uint8_t {
  followed,   ///< the text has followed the reference for a while, or from the start of the reference
  near,       ///< near the last mismatch, the only place with the longest agreement
  ambiguous,  ///< near the last mismatch, one of several places with the longest agreement
  replaced,   ///< after the mismatched token, which was replaced
  inserted,   ///< at the mismatched token, before which something was inserted
  anywhere    ///< after the latest occurrence of the last tokens of the text in all references
};

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
    std::uint16_t longest = 0;
    std::size_t equal = 0;
    Position best = 0;
    for (Position at = from; at + 1 < until; ++at) {
      if (references[at] != text.back()) continue;
      const std::uint16_t length = agreement_of(references, at + 1, text);
      if (length > longest || (length == longest && best < left_.place)) best = at + 1;
      equal = length > longest ? 1 : equal + (length == longest ? 1 : 0);
      longest = std::max(longest, length);
    }
    if (longest > 0)
      add({best, left_.begin, left_.end, longest, equal == 1 ? CursorKind::near : CursorKind::ambiguous});
  }
  /// Follows a place in the reference [begin, end) that was found by lookup.
  void look_at(TokenSpan references, Position place, Position begin, Position end, TokenSpan text) noexcept {
    if (place < end) add({place, begin, end, agreement_of(references, place, text), CursorKind::anywhere});
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

  /// Returns the number of tokens before `place` that agree with the end of the text, at most `compared`.
  [[nodiscard]] static std::uint16_t agreement_of(TokenSpan references, Position place, TokenSpan text) noexcept {
    const auto most = std::min<std::size_t>({place, text.size(), compared});
    std::size_t n = 0;
    while (n < most && references[place - 1 - n] == text[text.size() - 1 - n]) ++n;
    return static_cast<std::uint16_t>(n);
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

}}}  // namespace reprise::detail
