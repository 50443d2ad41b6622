// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random trees and picks, and the library's walk over them, for tests of walk.hpp.

#include <cstddef>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"
#include "reprise_testing/random.hpp"
#include "walk.hpp"

namespace cuda_example {

/// A batch of pending and drafted rows, and the target's pick after the anchor and after each drafted row.
struct RandomWalk {
  std::vector<reprise::Token> batch;
  std::size_t drafted = 0;
  std::vector<reprise::NodeIndex> parents;
  std::vector<reprise::Token> picks;

  [[nodiscard]] const reprise::Token* draft() const { return batch.data() + batch.size() - drafted; }
  [[nodiscard]] std::size_t anchor_row() const { return batch.size() - drafted - 1; }
};

/// Returns a tree with up to `most` drafted rows. There are few different tokens, so long paths and equal siblings are
/// common.
inline RandomWalk random_walk(reprise::testing::Random& random, std::size_t most) {
  RandomWalk made;
  const std::size_t tokens = 1 + random.below(4);
  const auto token = [&] { return static_cast<reprise::Token>(random.below(tokens)); };
  for (std::size_t pending = 1 + random.below(4); pending > 0; --pending) made.batch.push_back(token());
  made.drafted = random.below(most + 1);
  const bool chain = random.chance(20);
  made.picks.push_back(token());
  for (std::size_t row = 0; row < made.drafted; ++row) {
    made.batch.push_back(token());
    made.picks.push_back(token());
    made.parents.push_back(static_cast<reprise::NodeIndex>(chain ? row : random.below(row + 1)) - 1);
  }
  return made;
}

/// Returns the steps of the library's own walk.
inline std::vector<Step> library_walk(const RandomWalk& made) {
  std::vector<reprise::Token> text(made.drafted + 1);
  std::vector<reprise::CommittedToken> committed(made.drafted + 1);
  std::vector<reprise::NodeIndex> path(made.drafted);
  const reprise::Walk::Input in{
      .text = text, .draft = {made.draft(), made.drafted}, .parents = made.parents, .anchor_row = made.anchor_row()};
  const reprise::Walk walked = reprise::walk(in, reprise::Limits{.max_tokens = reprise::unlimited}, made.picks,
                                             reprise::NeverStop{}, reprise::Walk::Output{committed, path});
  std::vector<Step> steps;
  for (std::size_t i = 0; i < walked.committed; ++i)
    steps.push_back({static_cast<std::int32_t>(committed[i].row), committed[i].token});
  return steps;
}

}  // namespace cuda_example
