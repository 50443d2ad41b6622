// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "support/choices.hpp"

namespace reprise::testing {

/// Returns a ranking of up to 12 tokens. Most of them are in `said`. Some are negative, huge or repeated.
inline std::vector<Token> random_ranking(Choices& choices, TokenSpan said) {
  constexpr std::array<Token, 5> strange = {-1, -7, std::numeric_limits<Token>::min(),
                                            std::numeric_limits<Token>::max(), 1'000'000};
  std::vector<Token> tokens(choices.chance(20) ? choices.below(13) : 8);
  for (Token& token : tokens) {
    const std::size_t kind = choices.below(100);
    token = kind < 60 && !said.empty() ? said[choices.below(said.size())]
            : kind < 95                ? static_cast<Token>(choices.below(40))
                                       : strange[choices.below(strange.size())];
  }
  return tokens;
}

/// Returns the rows of one pass: of the anchor, and of accepted and rejected nodes. Some rows are missing. Some are
/// lies: of nodes that do not exist, with ranks in a wrong order or beyond all bounds.
inline std::vector<Outcome::RankedToken> random_rows(Choices& choices, std::span<const DraftNode> nodes,
                                                     TokenSpan said) {
  constexpr std::array<NodeIndex, 6> no_nodes = {-2,  std::numeric_limits<NodeIndex>::min(), 63, 64,
                                                 200, std::numeric_limits<NodeIndex>::max()};
  std::vector<Outcome::RankedToken> rows;
  const auto show = [&](NodeIndex node) {
    const std::vector<Token> ranking = random_ranking(choices, said);
    const bool ordered = choices.chance(90);
    for (std::size_t i = 0; i < ranking.size(); ++i) {
      const std::size_t rank = ordered ? i : choices.chance(80) ? choices.below(10) : choices.below(65536);
      rows.push_back({node, static_cast<std::uint16_t>(rank), ranking[i]});
    }
  };
  if (choices.chance(90)) show(anchor_parent);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (choices.chance(i < 4 ? 90 : 30)) show(static_cast<NodeIndex>(i));
  if (choices.chance(10)) show(no_nodes[choices.below(no_nodes.size())]);
  return rows;
}

}  // namespace reprise::testing
