// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The expectations of a draft head or draft model in the next pass, beside the draft of a lookup. HeadedDrafter states
/// them; HeadControl and BatchHeads weigh them against costs.
struct HeadForecast {
  static constexpr std::size_t most_tokens = usual_draft_nodes;
  /// The accepted tokens that the head adds to those of the lookup, in 1/65,536.
  std::int64_t gain = 0;
  /// The accepted tokens that the rates promised of the drafts with that gain, in 1/65,536. A longer draft is expected
  /// to add more in proportion. 0: unknown.
  std::int64_t promised = 0;
  /// rates[k]: the probability that its k-th token is accepted if those before it are.
  std::array<Probability, most_tokens> rates{};

  /// Calls visit(tokens, promise) for chains of 1 to `most` tokens. `promise`: the accepted tokens that the rates
  /// promise of such a chain, in UnitScale.
  template <class Visit>
  void for_each_length(std::size_t most, Visit&& visit) const {
    std::int64_t path = UnitScale::one;
    std::int64_t sum = 0;
    for (std::size_t tokens = 1; tokens <= std::min(most, most_tokens); ++tokens) {
      path = ProbabilityScale::multiply(path, std::int64_t{rates[tokens - 1].raw()});
      visit(tokens, sum += path);
    }
  }
  [[nodiscard]] std::int64_t promise(std::size_t tokens) const noexcept {
    std::int64_t all = 0;
    for_each_length(tokens, [&](std::size_t, std::int64_t promise) { all = promise; });
    return all;
  }
};

/// A strategy that drafts together with a head: HeadedDrafter.
template <class S>
concept HeadedStrategy = DraftStrategy<S> && requires(S& s, const S& c, TokenSpan tokens) {
  { c.forecast() } -> std::same_as<HeadForecast>;
  s.set(tokens);
  s.clear();
};

}}}  // namespace reprise::detail
