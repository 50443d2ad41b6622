// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// The conditions that end a generation, and the budget of a draft. Every round reads them again, so the caller may
/// change them between rounds. The object must stay alive from propose() until the round is committed or cancelled. The
/// caller owns the vectors: filling or copying them may throw, and the library does neither.
struct Limits {
  std::size_t max_tokens = unlimited;   ///< output tokens, stop tokens included
  std::size_t max_context = unlimited;  ///< committed tokens in total, prompt included
  std::size_t max_rows = unlimited;     ///< rows of one pass, pending tokens included
  std::vector<Token> eos = {};          ///< end-of-sequence tokens
  TokenSpan more_eos = {};              ///< more of them, in memory that the caller keeps
  std::vector<Token> stop_ids = {};     ///< other single tokens that end generation
  std::vector<std::vector<Token>> stop_sequences =
      {};  ///< runs of output tokens that end generation; an empty run never matches
  DraftBudget draft = {.max_nodes = unlimited};  ///< max_nodes: unlimited leaves the bound to the session
};

/// The decision of a stop predicate about the next token. The predicate is called as `predicate(output, next)`, once
/// for each token in order, before the token is committed. `output` is the output before `next`. If a cancelled round
/// is run again, the predicate is called again. Its decision should therefore depend only on its arguments.
enum class StopDecision : std::uint8_t {
  proceed,      ///< commit the token and continue
  stop_after,   ///< commit the token, then end generation
  stop_before,  ///< end generation without committing the token
};

/// The stop predicate that never stops.
struct NeverStop {
  constexpr StopDecision operator()(TokenSpan, Token) const noexcept { return StopDecision::proceed; }
};

/// Why generation ended.
enum class FinishReason : std::uint8_t {
  none,           ///< generation has not ended
  eos,            ///< an end-of-sequence token
  stop_id,        ///< one of Limits::stop_ids
  stop_sequence,  ///< one of Limits::stop_sequences
  predicate,      ///< the stop predicate
  max_tokens,     ///< Limits::max_tokens
  context_full,   ///< Limits::max_context or Capabilities::max_context
  caller,         ///< the streaming callback returned false, or Session::finish() was called
};
inline constexpr std::size_t finish_reason_count = 8;

constexpr std::string_view to_string(FinishReason reason) noexcept {
  constexpr std::string_view names[finish_reason_count] = {"none",      "eos",        "stop_id",      "stop_sequence",
                                                           "predicate", "max_tokens", "context_full", "caller"};
  return names[static_cast<std::size_t>(reason)];
}

namespace detail {

/// The effect of one more output token on the generation.
struct StopCheck {
  FinishReason reason = FinishReason::none;  ///< none, eos, stop_id or stop_sequence
  std::size_t trim = 0;  ///< tokens at the end, the new one included, that the returned output omits
};

/// Returns whether and why `next`, the token after `output`, ends generation. Cost: linear in the total length of the
/// stop lists.
inline StopCheck check_stop(const Limits& limits, TokenSpan output, Token next) noexcept {
  const auto contains = [next](TokenSpan set) { return std::find(set.begin(), set.end(), next) != set.end(); };
  if (contains(limits.eos) || contains(limits.more_eos)) return {FinishReason::eos, 1};
  if (contains(limits.stop_ids)) return {FinishReason::stop_id, 1};
  StopCheck found;
  for (const auto& sequence : limits.stop_sequences) {
    const std::size_t n = sequence.size();
    // The longest match wins, so the returned output contains no part of a stop sequence. An empty sequence, with n =
    // 0, is never longer.
    if (n <= found.trim || sequence.back() != next || output.size() < n - 1) continue;
    if (std::equal(sequence.begin(), sequence.end() - 1, output.end() - static_cast<std::ptrdiff_t>(n - 1)))
      found = {FinishReason::stop_sequence, n};
  }
  return found;
}

/// Returns the largest n <= most for which the last n tokens of `output` equal the first n tokens of `sequence`.
inline std::size_t matched_prefix(const std::vector<Token>& sequence, TokenSpan output, std::size_t most) noexcept {
  for (std::size_t n = std::min(most, output.size()); n > 0; --n)
    if (std::equal(output.end() - static_cast<std::ptrdiff_t>(n), output.end(), sequence.begin())) return n;
  return 0;
}

}  // namespace detail

/// Returns how many tokens at the end of `output` may be the beginning of a stop sequence. A stream holds them back
/// until later tokens complete the sequence or rule it out.
inline std::size_t held_back(const Limits& limits, TokenSpan output) noexcept {
  std::size_t most = 0;
  for (const auto& sequence : limits.stop_sequences)
    if (!sequence.empty()) most = std::max(most, detail::matched_prefix(sequence, output, sequence.size() - 1));
  return most;
}

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
  friend bool operator==(const PassShape&, const PassShape&) = default;
};

}}  // namespace reprise
