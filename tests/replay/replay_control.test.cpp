// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_control.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace reprise::replay::replay_control_test {
namespace {

/// Returns the choice for a chain of six nodes.
DraftChoice chosen(ReplayControl control, const PassLimits& room) {
  std::vector<DraftNode> nodes(6);
  std::vector<NodeIndex> sendable(nodes.size());
  std::iota(sendable.begin(), sendable.end(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].parent = static_cast<NodeIndex>(i) - 1;
    nodes[i].path_probability = Probability::from_raw(Probability::scale >> (i + 1));
  }
  return control.choose({nodes, DraftKind::ordered}, sendable, room);
}

TEST(SendBest, KeepsToTheRoomOfThePass) {
  PassLimits room;
  room.nodes = 2;
  EXPECT_EQ(chosen(ReplayControl(SendBest{3}), room).nodes, 2U);
  EXPECT_EQ(chosen(ReplayControl(SendBest{3}), room).cut, Cut::none) << "not the control's doing";
  const std::vector<std::size_t> widths = {1, 3, 9};
  room.nodes = 10;
  room.widths = widths;
  EXPECT_EQ(chosen(ReplayControl(SendBest{3}), room).nodes, 2U) << "three rows with the anchor's";
}

TEST(SendMarginal, SendsTokensThatAreLikelierThanTheirOwnCost) {
  const auto nodes = [](reprise::CostCurve curve, const PassLimits& room = {}) {
    return chosen(ReplayControl(SendMarginal{std::move(curve)}), room).nodes;  // probabilities 1/2, 1/4, ... 1/64
  };
  EXPECT_EQ(nodes(reprise::CostCurve::linear(0)), 6U);
  EXPECT_EQ(nodes(reprise::CostCurve::linear(0.1)), 3U) << "1/8, but not 1/16";
  EXPECT_EQ(nodes(reprise::CostCurve::linear(0.25)), 1U) << "as likely as its cost is too unlikely";
  EXPECT_EQ(nodes(reprise::CostCurve::linear(1)), 0U);
  const CostPoint steps[] = {{1, 0, 1, 100}, {1, 0, 3, 100}, {1, 0, 4, 140}, {1, 0, 9, 140}};
  EXPECT_EQ(nodes(reprise::CostCurve::from_points(steps).value()), 2U) << "the third row costs 40%";
  PassLimits room;
  room.nodes = 2;
  EXPECT_EQ(nodes(reprise::CostCurve::linear(0), room), 2U);
}

}  // namespace
}  // namespace reprise::replay::replay_control_test
