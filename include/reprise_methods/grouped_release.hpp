// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// Releases output in groups of a fixed number of tokens, to hide how many tokens each pass accepted. Those numbers
/// depend on the text. An observer of the sizes of encrypted packets recognised the prompt among fifty in at least 75
/// of 100 cases (Wei et al., "When Speculation Spills Secrets", arXiv 2411.01076). The authors propose this defence and
/// padding.
///
/// Send each group as its own packet, padded to a fixed size, because the texts of tokens differ in length.
///
/// **Timing still leaks.** A group can be sent once its last token is committed. So the time between two groups shows
/// how many passes a group took, and thus the mean number of accepted tokens per pass. Groups that the same pass
/// completes are sent at the same time. Larger groups leak less. Only release times that are independent of the text
/// leak nothing: call next() once per tick of your own clock. The end of the output shows its length, rounded up to
/// whole groups. If the last group is not padded, its own size shows too.
///
/// The only state is the number of released tokens. Nothing is copied. Threads: one at a time.
class GroupedRelease {
 public:
  /// Returns an object that releases groups of `group` tokens. Errors: invalid_argument if `group` is 0.
  static Result<GroupedRelease> make(std::size_t group) noexcept {
    if (group == 0) return Error{ErrorCode::invalid_argument, "a group has no tokens: give it at least 1", group, 1};
    return GroupedRelease(group);
  }

  /// Returns the next group, as a part of `output`, or an empty span while that group is incomplete. Call it until the
  /// span is empty. `output`: all tokens that may be released so far, starting with the first; it only grows. With the
  /// streaming callback of generate(), pass Session::output() up to Session::taken(). `finished`: true if no more
  /// tokens will follow, so that the remainder is released as the last group.
  [[nodiscard]] TokenSpan next(TokenSpan output, bool finished) noexcept {
    if (output.size() <= released_) return {};
    const TokenSpan waiting = output.subspan(released_);
    if (waiting.size() < group_ && !finished) return {};
    const TokenSpan group = waiting.first(std::min(waiting.size(), group_));
    released_ += group.size();
    return group;
  }

  /// Returns the number of tokens released so far.
  [[nodiscard]] std::size_t released() const noexcept { return released_; }
  /// Resets the number of released tokens to 0, for the next output.
  void reset() noexcept { released_ = 0; }

 private:
  explicit GroupedRelease(std::size_t group) noexcept : group_(group) {}

  std::size_t group_;
  std::size_t released_ = 0;
};

}}  // namespace reprise
