// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

struct OracleOptions {
  std::size_t right_percent = 100;  ///< how often a drafted token is the target's
  std::size_t length = 4;           ///< tokens of a draft
  Token vocabulary = 8;             ///< range of the wrong tokens
  std::uint64_t seed = 1;
  bool siblings = false;   ///< adds a second child at each node, before or after it
  bool auxiliary = false;  ///< adds auxiliary nodes with the same token, sometimes instead of the node
};

/// Knows the output of plain decoding and drafts it, with a chosen share of mistakes. After the end of that text it
/// guesses, so drafts also run past the end of a generation.
class OracleStrategy : public archetype::Strategy {
 public:
  /// `truth`: the final context of plain decoding. It must outlive the strategy and may change between rounds.
  OracleStrategy(const std::vector<Token>& truth, OracleOptions options) : truth_(&truth), options_(options) {}

  void propose(TokenSpan context, Draft& draft) {
    NodeIndex parent = anchor_parent;
    std::uint32_t probability = Probability::scale;
    for (std::size_t depth = 0; depth < std::min(options_.length, draft.budget().max_depth); ++depth) {
      if (draft.full()) return;
      Random random(options_.seed ^ mix(context.size() + 1000 * depth));
      const std::size_t at = context.size() + depth;
      Token token = static_cast<Token>(random.below(static_cast<std::size_t>(options_.vocabulary)));
      if (at < truth_->size() && random.chance(options_.right_percent))
        token = (*truth_)[at];
      else if (at < truth_->size() && token == (*truth_)[at])
        token = static_cast<Token>((token + 1) % options_.vocabulary);
      DraftNode node;
      node.token = token;
      node.parent = parent;
      node.path_probability = Probability::from_raw(probability -= probability / 8);
      DraftNode sibling = node;
      sibling.token = static_cast<Token>((token + 1) % options_.vocabulary);
      if (options_.auxiliary && !draft.chain() && random.chance(40)) {
        DraftNode extra = node;
        extra.auxiliary = true;
        const bool pushed = draft.push(extra);
        extra.parent = static_cast<NodeIndex>(draft.size()) - 1;
        if (pushed && random.chance(30)) draft.push(extra);
        if (random.chance(20)) return;
      }
      const bool before = options_.siblings && random.chance(50);
      if (before) draft.push(sibling);
      if (!draft.push(node)) return;
      const auto self = static_cast<NodeIndex>(draft.size() - 1);
      if (options_.siblings && !before) draft.push(sibling);
      parent = self;
    }
  }

 private:
  const std::vector<Token>* truth_;
  OracleOptions options_;
};
static_assert(DraftStrategy<OracleStrategy>);

}  // namespace reprise::testing
