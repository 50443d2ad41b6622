// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise::peers {

/// The lookup that the author of an engine would write in an hour, as a rival: no system ships it.
///
///  * It copies what follows the longest earlier match of the last tokens, of at most 16 tokens. Of several such
///    matches, the latest counts.
///  * It learns an acceptance rate for each of six ranges of match lengths: 1, 2, 3, 4 to 5, 6 to 8, and more.
///    A rate moves by 3% towards the result of each tested token.
///  * The k-th token has the probability rate^k. SendMarginal sends the tokens that are likelier than their own cost.
///
/// Cost of propose(): it compares at most 16 tokens at each earlier occurrence of the last token. Cost of observe() and
/// truncate(): one hash lookup per token. Memory: 4 bytes per token of context, and a node per distinct token. Threads:
/// one at a time; copies are independent.
class AdaptiveLookup {
 public:
  static constexpr std::size_t longest_match = 16;
  static constexpr std::size_t longest_draft = 31;

  void begin(TokenSpan context) {
    *this = AdaptiveLookup();
    add(context, context.size());
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) { add(context, fresh); }
  void truncate(TokenSpan context, std::size_t size) {
    while (before_.size() > size) {
      latest_[context[before_.size() - 1]] = before_.back();
      before_.pop_back();
    }
  }

  void propose(TokenSpan context, Draft& draft) {
    const Match match = longest(context);
    if (match.length == 0) return;
    range_ = range_of(match.length);
    const Probability rate = Probability::from_raw(static_cast<std::uint32_t>(rates_[range_]));
    Probability path = rate;
    const std::size_t end = std::min(context.size(), match.end + longest_draft);
    for (std::size_t at = match.end; at < end; ++at, path = path * rate)
      if (!draft.extend({.token = context[at],
                         .path_probability = path,
                         .match_length = static_cast<std::uint16_t>(match.length),
                         .source = DraftSource::context}))
        return;
  }
  void feedback(TokenSpan, const Outcome& outcome) {
    const std::size_t tested = std::min(outcome.accepted.size() + 1, outcome.sent.size());
    for (std::size_t i = 0; i < tested; ++i) {
      std::int64_t& rate = rates_[range_];
      rate += ((i < outcome.accepted.size() ? one : 0) - rate) * 3 / 100;
      rate = std::clamp(rate, one * 2 / 100, one * 985 / 1000);
    }
  }

 private:
  static constexpr std::int64_t one = Probability::scale;
  static constexpr std::uint32_t none = 0xffff'ffff;

  /// The match ends before the token at `end`.
  struct Match {
    std::size_t length = 0;
    std::size_t end = 0;
  };

  static std::size_t range_of(std::size_t length) {
    constexpr std::size_t most[] = {1, 2, 3, 5, 8};
    return static_cast<std::size_t>(std::lower_bound(std::begin(most), std::end(most), length) - std::begin(most));
  }

  void add(TokenSpan context, std::size_t fresh) {
    for (std::size_t at = context.size() - fresh; at < context.size(); ++at) {
      auto [last, first] = latest_.try_emplace(context[at], none);
      before_.push_back(last->second);
      last->second = static_cast<std::uint32_t>(at);
    }
  }
  [[nodiscard]] Match longest(TokenSpan context) const {
    Match best;
    if (context.empty()) return best;
    const std::size_t last = context.size() - 1;
    for (std::uint32_t at = before_[last]; at != none && best.length < longest_match; at = before_[at]) {
      std::size_t length = 1;
      while (length < longest_match && length <= at && context[at - length] == context[last - length]) ++length;
      if (length > best.length) best = {length, std::size_t{at} + 1};
    }
    return best;
  }

  std::array<std::int64_t, 6> rates_ = {one * 3 / 10, one * 4 / 10, one * 5 / 10,
                                        one * 6 / 10, one * 7 / 10, one * 8 / 10};  // in units of 2^-30
  std::size_t range_ = 0;                                                           // of the last draft
  std::unordered_map<Token, std::uint32_t> latest_;  // the last place of each token; none: it was removed
  std::vector<std::uint32_t> before_;                // for each place, the place before it with the same token
};
static_assert(DraftStrategy<AdaptiveLookup>);

}  // namespace reprise::peers
