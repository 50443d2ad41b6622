// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/pass_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace reprise::pass_limits_test {
namespace {

using detail::add_stops;
using detail::clamp_to_contract;
using detail::max_leaves;
using detail::pads;

TEST(Pads, NeedATokenAndWidths) {
  Capabilities can;
  EXPECT_FALSE(pads(can));
  can.pad_token = 0;
  EXPECT_FALSE(pads(can));
  can.allowed_widths = {1, 4};
  EXPECT_TRUE(pads(can));
  can.pad_token.reset();
  EXPECT_FALSE(pads(can));
}
TEST(MaxLeaves, AreThoseThatCallerEngineAndShapeAllow) {
  Limits limits;
  limits.draft.max_leaves = 4;
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::tree), 4U);
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 3}, DraftShape::tree), 3U);
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::chain), 1U);
  limits.draft.shape = DraftShape::chain;
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::tree), 1U);
  limits.draft = {.max_leaves = 0};
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::tree), 1U);
}

constexpr std::array<std::size_t, 3> widths = {2, 4, 8};

PassLimits room(std::size_t nodes, bool padded = true, std::size_t pending = 1) {
  return {PassShape{1, pending, 0}, nodes, widths, padded};
}
void expect_choice(const DraftChoice& got, std::size_t nodes, std::size_t padding, Cut cut) {
  EXPECT_EQ(got.nodes, nodes);
  EXPECT_EQ(got.padding, padding);
  EXPECT_EQ(got.cut, cut);
}

TEST(WithinAChoice, KeepsWhatIsAllowed) {
  expect_choice(clamp_to_contract({3, 0, Cut::unlikely}, 5, room(7)), 3, 0, Cut::unlikely);
  expect_choice(clamp_to_contract({2, 1, Cut::none}, 5, room(7)), 2, 1, Cut::none);
  expect_choice(clamp_to_contract({4, 0, Cut::none}, 5, {PassShape{}, unlimited, {}, false}), 4, 0, Cut::none);
}
TEST(WithinAChoice, SendsNoMoreThanThereIs) {
  expect_choice(clamp_to_contract({unlimited, unlimited, Cut::none}, 3, {PassShape{}, unlimited, {}, false}), 3, 0,
                Cut::none);
  expect_choice(clamp_to_contract({9, 9, Cut::none}, 3, room(3)), 3, 0, Cut::none);
  expect_choice(clamp_to_contract({unlimited, unlimited, Cut::none}, 2, room(7)), 2, 5, Cut::none);
}
TEST(WithinAChoice, FallsBackToTheLargestAllowedWidthBelow) {
  expect_choice(clamp_to_contract({5, 0, Cut::none}, 5, room(7)), 3, 0, Cut::width);
  expect_choice(clamp_to_contract({2, 4, Cut::none}, 5, room(7)), 2, 1, Cut::none);
  expect_choice(clamp_to_contract({2, 0, Cut::unlikely}, 5, room(7)), 1, 0, Cut::width);
}
TEST(WithinAChoice, NeverForbidsAPassWithoutADraft) {
  expect_choice(clamp_to_contract({2, 0, Cut::none}, 2, room(7, true, 9)), 0, 0, Cut::width);
  expect_choice(clamp_to_contract({0, 0, Cut::throttled}, 2, room(7, true, 3)), 0, 0, Cut::throttled);
}
TEST(WithinAChoice, PadsOnlyWhereThereIsAPadToken) {
  expect_choice(clamp_to_contract({2, 1, Cut::none}, 5, room(7, false)), 1, 0, Cut::width);
}
TEST(WithinAChoice, KnowsOnlyReasonsThatThereAre) {
  EXPECT_EQ(clamp_to_contract({1, 0, static_cast<Cut>(200)}, 5, room(7)).cut, Cut::none);
}
TEST(WithinAChoice, HoldsEveryClauseWhateverTheAnswer) {
  for (std::size_t nodes = 0; nodes < 12; ++nodes)
    for (std::size_t padding = 0; padding < 12; ++padding)
      for (std::size_t most = 0; most < 10; ++most)
        for (std::size_t pending = 1; pending < 5; ++pending)
          for (const bool padded : {false, true}) {
            const PassLimits offered = room(most, padded, pending);
            const DraftChoice got = clamp_to_contract({nodes, padding, Cut::none}, 6, offered);
            const std::size_t rows = got.nodes + got.padding;
            ASSERT_LE(got.nodes, std::min<std::size_t>(6, nodes));
            ASSERT_LE(rows, most);
            ASSERT_TRUE(padded || got.padding == 0);
            ASSERT_TRUE(rows == 0 || std::count(widths.begin(), widths.end(), pending + rows) == 1);
          }
}

TEST(WithinABudget, IsNoLargerThanWhatWasAsked) {
  DraftBudget asked;
  asked.max_nodes = 5;
  asked.max_depth = 4;
  asked.max_leaves = 3;
  DraftBudget answered;
  answered.max_nodes = answered.max_depth = answered.max_leaves = unlimited;
  answered.min_path_probability = Probability::one();
  DraftBudget got = clamp_to_contract(answered, asked);
  EXPECT_EQ(got.max_nodes, 5U);
  EXPECT_EQ(got.max_depth, 4U);
  EXPECT_EQ(got.max_leaves, 3U);
  EXPECT_EQ(got.shape, DraftShape::tree);
  EXPECT_EQ(got.min_path_probability, Probability::one());
  asked.shape = DraftShape::chain;
  asked.min_path_probability = Probability::ratio(1, 2);
  EXPECT_EQ(clamp_to_contract(answered, asked).shape, DraftShape::chain);
  EXPECT_EQ(clamp_to_contract(DraftBudget{}, asked).min_path_probability, Probability::ratio(1, 2));
  answered.max_nodes = answered.max_depth = answered.max_leaves = 0;
  got = clamp_to_contract(answered, asked);
  EXPECT_EQ(got.max_nodes, 0U);
  EXPECT_EQ(got.max_depth, 0U);
  EXPECT_EQ(got.max_leaves, 1U) << "a draft has a path";
}

TEST(Stops, AreThoseOfTheLimitsAndOthersOnlyWhereTheLimitsHaveNone) {
  const std::array<Token, 2> output = {8, 9};
  const std::array<Token, 1> more_eos = {2};
  Limits limits;
  limits.eos = {1};
  limits.more_eos = more_eos;
  limits.stop_ids = {3};
  limits.stop_sequences = {{4, 5}};
  DraftBudget::Stops stops;
  add_stops(stops, limits, {});
  add_stops(stops, Limits(), output);
  EXPECT_TRUE(std::ranges::equal(stops.eos, limits.eos));
  EXPECT_TRUE(std::ranges::equal(stops.more_eos, limits.more_eos));
  EXPECT_TRUE(std::ranges::equal(stops.ids, limits.stop_ids));
  EXPECT_TRUE(std::ranges::equal(stops.sequences, limits.stop_sequences));
  EXPECT_TRUE(std::ranges::equal(stops.output, output));
  EXPECT_EQ(stops.eos.size() + stops.more_eos.size() + stops.ids.size() + stops.sequences.size(), 4U);
}

}  // namespace
}  // namespace reprise::pass_limits_test
