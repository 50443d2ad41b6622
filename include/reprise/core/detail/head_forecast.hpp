// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "reprise/core/draft.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// What a draft head or a draft model is expected to do in the next pass, beside the draft of a lookup: said by
/// HeadedDrafter, and weighed by HeadControl and BatchHeads.
struct HeadForecast {
  static constexpr std::size_t most_tokens = usual_draft_nodes;
  /// The accepted tokens that the head adds to those of the lookup, in 1/65,536.
  std::int64_t gain = 0;
  /// The accepted tokens that the rates promised of the drafts with that gain, in 1/65,536. A longer draft is expected
  /// to add more in proportion. 0: unknown.
  std::int64_t promised = 0;
  /// rates[k]: the probability that its k-th token is accepted if those before it are.
  std::array<Probability, most_tokens> rates{};
};

/// A strategy that drafts together with a head: HeadedDrafter.
template <class S>
concept HeadedStrategy = DraftStrategy<S> && requires(S& s, const S& c, TokenSpan tokens) {
  { c.forecast() } -> std::same_as<HeadForecast>;
  s.set(tokens);
  s.clear();
};

}}}  // namespace reprise::detail
