// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "reprise_methods/lookahead_drafter.hpp"
#include "reprise_methods/token_recycling_drafter.hpp"
#include "support/ranked_memory.hpp"

namespace reprise::testing {
namespace {

struct Lookahead {
  using Drafter = LookaheadDrafter;
  static constexpr Token vocabulary = 20;
};
struct Recycling {
  using Drafter = TokenRecyclingDrafter;
  static constexpr Token vocabulary = 40;
};
using Extras = ::testing::Types<Lookahead, Recycling>;
INSTANTIATE_TYPED_TEST_SUITE_P(Extras, RankedMemory, Extras);

TEST(RecyclingDrafterMemory, IsNotAskedForInObserveWhereItWasReserved) {
  expect_none_where_it_was_reserved(TokenRecyclingDrafter::make({.vocabulary = 1000}).value());
}

TEST(RecyclingDrafterMemory, GrowsByTokensThatAreNewInObserveOnly) {
  Lent<TokenRecyclingDrafter> drafter;
  drafter.begin(std::vector<Token>{1, 2, 3});
  const Outcome::RankedToken revealed[] = {{anchor_parent, 0, 90'000}};
  const std::size_t rows = drafter->rows();
  drafter.feedback({{}, {}, {}, 1, Cut::none, revealed});
  EXPECT_EQ(drafter->rows(), rows);
  drafter.observe(std::vector<Token>{1}, Origin::output);
  EXPECT_GT(drafter->rows(), 90'000U);
}

}  // namespace
}  // namespace reprise::testing
