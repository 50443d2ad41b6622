// SPDX-License-Identifier: Apache-2.0
#include "replay/reliability.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::replay::reliability_test {
namespace {

Probability percent(std::uint32_t of_hundred) { return Probability::ratio(of_hundred, 100); }

DraftNode node(Token token, NodeIndex parent, Probability path) {
  return {.token = token, .parent = parent, .path_probability = path};
}

Outcome outcome(const std::vector<DraftNode>& nodes, const std::vector<NodeIndex>& accepted,
                std::optional<Token> pick) {
  return {.draft = {nodes, DraftKind::ordered},
          .sent = accepted,
          .accepted = accepted,
          .pick = pick,
          .cut = Cut::none,
          .top_k = {}};
}

/// Returns the bins with tests, as {index, tests, hits}.
std::vector<std::array<std::uint64_t, 3>> used(const Reliability& reliability) {
  std::vector<std::array<std::uint64_t, 3>> all;
  for (std::size_t i = 0; i < Reliability::bin_count; ++i)
    if (const Reliability::Bin& bin = reliability.bins()[i]; bin.tests != 0) all.push_back({i, bin.tests, bin.hits});
  return all;
}
using Used = std::vector<std::array<std::uint64_t, 3>>;

TEST(Reliability, PutsEachClaimIntoItsTwentieth) {
  Reliability r;
  r.record(Probability::zero(), false);
  r.record(Probability::from_raw(Probability::scale / 20 - 1), false);
  r.record(Probability::from_raw(Probability::scale / 20 + 1), true);
  r.record(percent(50), true);
  r.record(percent(99), true);
  r.record(Probability::one(), false);
  EXPECT_EQ(used(r), (Used{{0, 2, 0}, {1, 1, 1}, {10, 1, 1}, {19, 2, 1}}));
}

TEST(Reliability, HoldsTheConditionalProbabilityToAccount) {
  // Path probabilities: a 0.8, a b 0.4 (b given a: 0.5), a c 0.2 (0.25), d 0.1, a b e 0.38 (0.95). Picks: a, b, then x.
  const std::vector<DraftNode> nodes = {node(1, anchor_parent, percent(80)), node(2, 0, percent(40)),
                                        node(5, 1, percent(38)), node(3, 0, percent(20)),
                                        node(4, anchor_parent, percent(10))};
  Reliability r;
  r.record(outcome(nodes, {0, 1}, 9));
  EXPECT_EQ(used(r).size(), 5U);
  EXPECT_EQ(r.total().tests, 5U);
  EXPECT_EQ(r.total().hits, 2U);
  // 0.5 and 0.25 are rounded down when they are made, so they may lie one unit below their bin.
  EXPECT_NEAR(r.total().mean_claim(), (0.8 + 0.5 + 0.95 + 0.25 + 0.1) / 5, 1e-6);
}

TEST(Reliability, LeavesOutWhatWasNotTested) {
  const std::vector<DraftNode> nodes = {node(1, anchor_parent, percent(80)), node(2, 0, percent(40)),
                                        node(3, 1, percent(40))};
  Reliability r;
  // Nothing was sent, and the target picked the first node: only that node is tested.
  r.record(outcome(nodes, {}, 1));
  EXPECT_EQ(r.total().tests, 1U);
  EXPECT_EQ(r.total().hits, 1U);
  // Generation ended before the first pick.
  r.record(outcome(nodes, {}, {}));
  EXPECT_EQ(r.total().tests, 1U);
}

TEST(Reliability, TakesMalformedClaims) {
  // The second node claims more than its parent. The parent of the fourth claims zero.
  const std::vector<DraftNode> nodes = {node(1, anchor_parent, percent(10)), node(2, 0, percent(90)),
                                        node(3, anchor_parent, Probability::zero()), node(4, 2, percent(5))};
  Reliability r;
  r.record(outcome(nodes, {0}, 2));
  EXPECT_EQ(r.bins()[Reliability::bin_count - 1], (Reliability::Bin{1, Probability::scale, 1}));
  EXPECT_EQ(r.total().tests, 3U);
  Reliability other;
  other.record(outcome(nodes, {2}, 4));
  EXPECT_EQ(used(other), (Used{{0, 1, 1}, {1, 1, 0}})) << "the child of the impossible claims nothing";
}

TEST(Reliability, FindsNoErrorInASourceThatIsAsItIsClaimed) {
  testing::Random random(11);
  Reliability r;
  for (int i = 0; i < 200'000; ++i) {
    const auto claim = static_cast<std::uint32_t>(random.below(Probability::scale + 1));
    r.record(Probability::from_raw(claim), random.below(Probability::scale) < claim);
  }
  EXPECT_EQ(r.total().tests, 200'000U);
  EXPECT_LT(r.expected_calibration_error(), 0.01);
  for (const Reliability::Bin& bin : r.bins()) EXPECT_NEAR(bin.mean_claim(), bin.observed(), 0.03);
}

}  // namespace
}  // namespace reprise::replay::reliability_test
