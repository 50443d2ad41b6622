// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// How an engine forgets the rows that were not agreed on.
enum class Rollback : std::uint8_t {
  trim,      ///< cuts the end of its cache (attention)
  snapshot,  ///< puts a saved state back, and runs the accepted tokens again in the next pass (recurrent, hybrid)
  per_row,   ///< keeps one state per row of the pass: for the loop the same as trim
  none,      ///< cannot: refused when a sequence begins
};

/// The row counts that a pass may have, ascending; none: any. For engines with one captured graph per width.
class AllowedWidths {
 public:
  static constexpr std::size_t capacity = 96;

  constexpr AllowedWidths() noexcept = default;
  /// Constants: a width of 0, or more than `capacity` of them, does not compile. Others come in by add().
  consteval AllowedWidths(std::initializer_list<std::size_t> widths) noexcept {
    for (const std::size_t width : widths)
      if (!add(width)) a_width_is_0_or_there_are_more_than_96();
  }
  /// False, and nothing added, when `width` is 0 or there is no room left. A width that is there already is fine.
  constexpr bool add(std::size_t width) noexcept {
    const auto at = std::lower_bound(widths_.begin(), widths_.begin() + count_, width);
    const auto end = widths_.begin() + count_;
    if (at != end && *at == width) return true;
    if (width == 0 || static_cast<std::size_t>(count_) == capacity) return false;
    std::copy_backward(at, end, end + 1);
    *at = width;
    ++count_;
    return true;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] constexpr std::span<const std::size_t> values() const noexcept {
    return std::span(widths_).first(static_cast<std::size_t>(count_));
  }

 private:
  // The compiler names it when a constant breaks the rule.
  static void a_width_is_0_or_there_are_more_than_96() noexcept {}

  std::array<std::size_t, capacity> widths_{};
  std::ptrdiff_t count_ = 0;
};

/// Abilities of an engine for one sequence. A value, not a type: one engine type serves trimmable and hybrid
/// models alike, so it is checked when a sequence begins, and what cannot work is refused there.
struct Capabilities {
  std::size_t max_rows = unlimited;     ///< rows in one pass, pending tokens included
  std::size_t max_context = unlimited;  ///< committed tokens of one sequence, prompt included
  AllowedWidths allowed_widths = {};    ///< rows that a pass with a draft may have (CUDA graphs)
  std::optional<Token> pad_token = {};  ///< fills rows up to an allowed width; a token of the vocabulary; without one
                                        ///< a draft is cut to a smaller width
  std::size_t max_depth = unlimited;    ///< drafted tokens on one path
  std::size_t max_leaves = 1;           ///< paths of a draft: 1, chains only; more, drafts may be trees
  Rollback rollback = Rollback::trim;
  std::size_t max_rollback = unlimited;  ///< drafted rows that can be rolled back after a pass (sliding windows);
                                         ///< a predicate that refuses the first pick gives back the anchor's too
  std::size_t max_replay = 16;           ///< with Rollback::snapshot: a pass that has more pending tokens than that
                                         ///< goes without a draft, so that they settle; they would ride along again
  bool deterministic = true;             ///< a row's pick does not depend on the other rows of the batch;
                                         ///< informs tools, the loop does not read it
};

/// Shape of a pass, for the cost curve.
struct PassShape {
  std::size_t sequences = 1;
  std::size_t rows = 1;     ///< in all sequences together, pending tokens included
  std::size_t context = 0;  ///< committed tokens per sequence before the pass
};

}  // namespace reprise
