// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// Releases output in groups of a fixed number of tokens, to hide how many tokens each pass accepted. Those numbers
/// depend on the text. An observer of the sizes of encrypted packets recognised the prompt among fifty in at least 75
/// of 100 cases (Wei et al., "When Speculation Spills Secrets", arXiv 2411.01076). The authors' defence is this one,
/// and padding.
///
/// Send each group as a packet of its own, padded to one size: the texts of tokens have different lengths.
///
/// **Timing still leaks.** A group can leave when its last token is there. The time between two groups shows how many
/// passes they took, which is the mean of the hidden numbers over a group. Several groups of one pass leave together.
/// Larger groups leak less. Only release times that do not depend on the text leak nothing: call next() once at each
/// tick of a clock of yours. The end shows the number of tokens, in groups. The last group shows its remainder if it is
/// not padded.
///
/// The only state is the number of released tokens. Nothing is copied. Threads: one at a time.
class GroupedRelease {
 public:
  /// Returns a release in groups of `group` tokens. Errors: invalid_argument if it is 0.
  static Result<GroupedRelease> make(std::size_t group) noexcept {
    if (group == 0) return Error{ErrorCode::invalid_argument, "a group has no tokens: give it at least 1", group, 1};
    return GroupedRelease(group);
  }

  /// Returns the next group of `output`, or nothing while that group is not complete. Call it until it returns nothing.
  /// `output`: the tokens that may be released so far, from the first one on; it only grows. Where generate() streams,
  /// these are Session::output() up to Session::taken(). `finished`: no more tokens will come, so the last group is the
  /// remainder.
  [[nodiscard]] TokenSpan next(TokenSpan output, bool finished) noexcept {
    if (output.size() <= released_) return {};
    const TokenSpan waiting = output.subspan(released_);
    if (waiting.size() < group_ && !finished) return {};
    const TokenSpan group = waiting.first(std::min(waiting.size(), group_));
    released_ += group.size();
    return group;
  }

  /// The number of released tokens.
  [[nodiscard]] std::size_t released() const noexcept { return released_; }
  /// Starts again, for the next output.
  void reset() noexcept { released_ = 0; }

 private:
  explicit GroupedRelease(std::size_t group) noexcept : group_(group) {}

  std::size_t group_;
  std::size_t released_ = 0;
};

}  // namespace reprise
