// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "reprise/core/detail/lifetime.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// How an engine discards the rejected rows of a pass.
enum class Rollback : std::uint8_t {
  trim,      ///< the engine cuts the end of its cache (attention)
  snapshot,  ///< the engine restores a saved state; the next pass runs the accepted tokens again (recurrent, hybrid)
  per_row,   ///< the engine keeps one state per row of the pass; the loop treats it like trim
  none,      ///< the engine cannot roll back; Session::begin() refuses it
};

/// The row counts that a pass with a draft may have, in ascending order. An empty list allows any count. Engines that
/// capture one graph per width need such a list.
class AllowedWidths {
 public:
  static constexpr std::size_t capacity = 96;

  constexpr AllowedWidths() noexcept = default;
  /// Creates a list from constants. Does not compile if a width is 0, or if there are more than `capacity` different
  /// widths. Use add() for run-time values.
  consteval AllowedWidths(std::initializer_list<std::size_t> widths) noexcept {
    for (const std::size_t width : widths)
      if (!add(width)) a_width_is_0_or_there_are_more_than_96();
  }
  /// Adds a width. Returns true if the list contains it afterwards, even if it did before. Returns false and changes
  /// nothing if `width` is 0, or if it is new and the list is full.
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
  [[nodiscard]] constexpr std::span<const std::size_t> values() const noexcept REPRISE_LIFETIMEBOUND {
    return std::span(widths_).first(static_cast<std::size_t>(count_));
  }

 private:
  // Compilers print this name when a constant breaks the rule.
  static void a_width_is_0_or_there_are_more_than_96() noexcept {}

  std::array<std::size_t, capacity> widths_{};
  std::ptrdiff_t count_ = 0;
};

/// The abilities of an engine for one sequence. They are a value, not a type, because one engine type can serve both
/// trimmable and hybrid models. Session::begin() checks them and refuses a sequence that cannot work.
struct Capabilities {
  std::size_t max_rows = unlimited;     ///< rows in one pass, pending tokens included
  std::size_t max_context = unlimited;  ///< committed tokens of one sequence, prompt included
  AllowedWidths allowed_widths = {};    ///< row counts that a pass with a draft may have (CUDA graphs)
  /// A token of the vocabulary that fills spare rows up to an allowed width. Without a pad token, the draft is cut to a
  /// smaller width.
  std::optional<Token> pad_token = {};
  std::size_t max_depth = unlimited;  ///< drafted tokens on one path
  std::size_t max_leaves = 1;         ///< paths of a draft; each pad row of a tree counts as one; 1: chains only
  Rollback rollback = Rollback::trim;
  /// Maximum number of drafted rows that the engine can roll back after a pass (sliding windows). If a predicate
  /// refuses the first pick, the anchor's row is rolled back as well.
  std::size_t max_rollback = unlimited;
  /// Rollback::snapshot only: a pass with more pending tokens than this carries no draft, so its tokens stay in the
  /// cache. With a draft, a single rejection would make all of them pending again.
  std::size_t max_replay = 16;
  /// True if a row's pick does not depend on the other rows of the batch. This flag is for your own code; the library
  /// does not read it.
  bool deterministic = true;
};

/// The shape of a pass, for the cost curve.
struct PassShape {
  std::size_t sequences = 1;
  std::size_t rows = 1;     ///< rows of all sequences together, pending tokens included
  std::size_t context = 0;  ///< committed tokens before the pass; of several sequences, the mean
};

}  // namespace reprise
