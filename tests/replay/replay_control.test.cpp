// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_control.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <vector>

namespace reprise::replay::replay_control_test {
namespace {

/// Returns the choice for a chain of six nodes.
DraftChoice chosen(ReplayControl control, const PassLimits& room) {
  std::vector<DraftNode> nodes(6);
  std::vector<NodeIndex> sendable(nodes.size());
  std::iota(sendable.begin(), sendable.end(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].parent = static_cast<NodeIndex>(i) - 1;
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

}  // namespace
}  // namespace reprise::replay::replay_control_test
