// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// What a draft head or a draft model is expected to do in the next pass, beside the draft of a lookup: said by
/// HeadedDrafter, and weighed by HeadControl.
struct HeadForecast {
  static constexpr std::size_t most_tokens = usual_draft_nodes;
  /// The accepted tokens that the head adds to those of the lookup, in 1/65,536.
  std::int64_t gain = 0;
  /// rates[k]: the probability that its k-th token is accepted if those before it are.
  std::array<Probability, most_tokens> rates{};
};

}}}  // namespace reprise::detail
