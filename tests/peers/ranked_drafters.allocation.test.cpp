// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "peers/published_token_recycling_drafter.hpp"
#include "peers/racer_drafter.hpp"
#include "support/ranked_memory.hpp"

namespace reprise::testing {
namespace {

struct Published {
  using Drafter = peers::PublishedTokenRecyclingDrafter;
  static constexpr Token vocabulary = 40;
};
struct Racer {
  using Drafter = peers::RacerDrafter;
  static constexpr Token vocabulary = 40;
};
using Peers = ::testing::Types<Published, Racer>;
INSTANTIATE_TYPED_TEST_SUITE_P(Peers, RankedMemory, Peers);

TEST(PeerMemory, IsNotAskedForInObserveWhereItWasReserved) {
  expect_none_where_it_was_reserved(Published::Drafter({.vocabulary = 1000}));
  expect_none_where_it_was_reserved(
      Racer::Drafter::make({.trie_nodes = 100, .keep = false, .vocabulary = 1000}).value());
}

}  // namespace
}  // namespace reprise::testing
