// SPDX-License-Identifier: Apache-2.0
#include "reprise/stats/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace reprise::statistics_test {
namespace {

using std::chrono::nanoseconds;

static_assert(std::is_trivially_copyable_v<Statistics> && sizeof(Statistics) < 1024, "made to be copied");

/// A round in which all nodes are sent, in order.
struct Round {
  std::vector<DraftNode> nodes;
  std::vector<NodeIndex> sent;
  std::vector<std::uint32_t> depths;
  std::vector<NodeIndex> accepted;
  Cut cut = Cut::none;
  std::size_t pads = 0;

  Round& pad(NodeIndex parent) {
    ++pads;
    return add(DraftSource::padding, parent);
  }
  Round& add(DraftSource source, NodeIndex parent, bool auxiliary = false) {
    sent.push_back(static_cast<NodeIndex>(nodes.size()));
    depths.push_back(parent == anchor_parent ? 1 : depths[static_cast<std::size_t>(parent)] + 1);
    nodes.push_back({.parent = parent, .source = source, .auxiliary = auxiliary});
    return *this;
  }
  Round& accept(std::vector<NodeIndex> path) {
    accepted = std::move(path);
    return *this;
  }
  void count_in(Statistics& statistics, std::optional<nanoseconds> time = {}) const {
    statistics.record({DraftView(nodes, DraftKind::ordered), sent, accepted, {}, cut, {}}, depths, pads,
                      accepted.size() + 1, time);
  }
};

std::uint64_t sum_of(const Statistics& statistics, std::uint64_t Statistics::Sent::*field) {
  std::uint64_t sum = 0;
  for (const Statistics::Sent& tokens : statistics.by_source) sum += tokens.*field;
  return sum;
}

TEST(Statistics, AreZeroBeforeTheFirstPass) {
  const Statistics none;
  EXPECT_EQ(none.mean_accepted_tokens(), 0.0);
  EXPECT_EQ(none.acceptance_rate(), 0.0);
  EXPECT_EQ(none.drafted_per_pass(), 0.0);
  EXPECT_EQ(none.wasted(), 0U);
  EXPECT_EQ(none.passes_saved(), 0);
  EXPECT_EQ(none.pass_time.mean(), 0.0);
  EXPECT_EQ(none.at_depth(1).acceptance_rate(), 0.0);
  for (std::size_t i = 0; i < cut_count; ++i) EXPECT_EQ(none.count(static_cast<Cut>(i)), 0U);
}
TEST(Statistics, CountARoundByDepthAndSource) {
  Statistics counted;
  Round()
      .add(DraftSource::context, anchor_parent)
      .add(DraftSource::model, 0)
      .add(DraftSource::context, 0)
      .add(DraftSource::context, 2)
      .accept({0, 2})
      .count_in(counted);
  EXPECT_EQ(counted.passes, 1U);
  EXPECT_EQ(counted.drafted_passes, 1U);
  EXPECT_EQ(counted.tokens, 3U);
  EXPECT_EQ(counted.drafted, 4U);
  EXPECT_EQ(counted.accepted, 2U);
  EXPECT_EQ(counted.wasted(), 2U);
  EXPECT_EQ(counted.passes_saved(), 2);
  EXPECT_EQ(counted.at_depth(1), (Statistics::Sent{1, 1}));
  EXPECT_EQ(counted.at_depth(2), (Statistics::Sent{2, 1}));
  EXPECT_EQ(counted.at_depth(3), (Statistics::Sent{1, 0}));
  EXPECT_EQ(counted.from(DraftSource::context), (Statistics::Sent{3, 2}));
  EXPECT_EQ(counted.from(DraftSource::model), (Statistics::Sent{1, 0}));
  EXPECT_EQ(counted.from(DraftSource::context).acceptance_rate(), 2.0 / 3.0);
}
TEST(Statistics, CountAPassWithoutADraftByItsReasonAlone) {
  Statistics counted;
  Round round;
  round.cut = Cut::throttled;
  round.count_in(counted);
  EXPECT_EQ(counted.passes, 1U);
  EXPECT_EQ(counted.drafted_passes, 0U);
  EXPECT_EQ(counted.count(Cut::throttled), 1U);
  EXPECT_EQ(counted.count(Cut::none), 0U);
}
TEST(Statistics, PutAllThatLiesDeepIntoTheLastBin) {
  Statistics counted;
  Round round;
  for (NodeIndex i = 0; i < 20; ++i) round.add(DraftSource::context, i - 1);
  std::vector<NodeIndex> path(18);
  for (std::size_t i = 0; i < path.size(); ++i) path[i] = static_cast<NodeIndex>(i);
  round.accept(path).count_in(counted);
  for (std::size_t depth = 1; depth <= 16; ++depth)
    EXPECT_EQ(counted.at_depth(depth), (Statistics::Sent{1, 1})) << depth;
  EXPECT_EQ(counted.at_depth(17), (Statistics::Sent{4, 2}));
  EXPECT_EQ(&counted.at_depth(1000), &counted.at_depth(17));
}
TEST(Statistics, KeepPadRowsOutOfTheDepths) {
  Statistics counted;
  Round()
      .add(DraftSource::context, anchor_parent)
      .pad(0)
      .pad(1)
      .accept({0, 1})  // a pad token that the target picked is committed like any other
      .count_in(counted);
  EXPECT_EQ(counted.padding, 2U);
  EXPECT_EQ(counted.drafted, 3U);
  EXPECT_EQ(counted.accepted, 2U);
  EXPECT_EQ(counted.from(DraftSource::padding), (Statistics::Sent{2, 1}));
  EXPECT_EQ(counted.at_depth(2), Statistics::Sent{});
  EXPECT_EQ(sum_of(counted, &Statistics::Sent::accepted), counted.accepted);
}
TEST(Statistics, KeepAuxiliaryTokensOutOfDepthsAndSources) {
  Statistics counted;
  Round()
      .add(DraftSource::target, anchor_parent)
      .add(DraftSource::target, anchor_parent, true)
      .accept({0})
      .count_in(counted);
  EXPECT_EQ(counted.auxiliary, 1U);
  EXPECT_EQ(counted.drafted, 2U);
  EXPECT_EQ(counted.from(DraftSource::target), (Statistics::Sent{1, 1}));
  EXPECT_EQ(counted.at_depth(1), (Statistics::Sent{1, 1}));
  EXPECT_EQ(sum_of(counted, &Statistics::Sent::sent) + counted.auxiliary, counted.drafted);
}
TEST(Statistics, TakeAnySourceForWhatItIs) {
  Statistics counted;
  Round().add(static_cast<DraftSource>(200), anchor_parent).accept({0}).count_in(counted);
  Round().add(DraftSource::padding, anchor_parent).accept({0}).count_in(counted);  // not a real pad row
  EXPECT_EQ(counted.from(DraftSource::unknown), (Statistics::Sent{2, 2}));
  EXPECT_EQ(counted.padding, 0U);
}
TEST(Statistics, SumTimesWhereThereWereAny) {
  Statistics counted;
  const Round round;
  round.count_in(counted, nanoseconds(30));
  round.count_in(counted);
  round.count_in(counted, nanoseconds(10));
  round.count_in(counted, nanoseconds(-5));
  EXPECT_EQ(counted.pass_time, (Statistics::Time{3, 40}));
  EXPECT_EQ(counted.pass_time.mean(), 40.0 / 3);
}
TEST(Statistics, SayWhatWasSavedAlsoWhereItIsLessThanNothing) {
  Statistics counted;
  counted.tokens = 2;
  counted.passes = 5;
  EXPECT_EQ(counted.passes_saved(), -3);
}
TEST(Statistics, AddUpFieldByField) {
  Statistics one;
  Round()
      .add(DraftSource::context, anchor_parent)
      .add(DraftSource::context, anchor_parent, true)
      .pad(0)
      .accept({0})
      .count_in(one, nanoseconds(7));
  one.drafting_time.add(nanoseconds(3));
  Statistics two = one;
  two += one;
  EXPECT_EQ(two.tokens, 4U);
  EXPECT_EQ(two.passes, 2U);
  EXPECT_EQ(two.drafted_passes, 2U);
  EXPECT_EQ(two.drafted, 6U);
  EXPECT_EQ(two.accepted, 2U);
  EXPECT_EQ(two.padding, 2U);
  EXPECT_EQ(two.auxiliary, 2U);
  EXPECT_EQ(two.count(Cut::none), 2U);
  EXPECT_EQ(two.at_depth(1), (Statistics::Sent{2, 2}));
  EXPECT_EQ(two.from(DraftSource::context), (Statistics::Sent{2, 2}));
  EXPECT_EQ(two.pass_time, (Statistics::Time{2, 14}));
  EXPECT_EQ(two.drafting_time, (Statistics::Time{2, 6}));
  EXPECT_EQ(two.mean_accepted_tokens(), 2.0);
  EXPECT_NE(two, one);
  // A field missing from the sum would show here: every word of the struct was zero or has doubled.
  Statistics all;
  static_assert(sizeof(Statistics) % sizeof(std::uint64_t) == 0);
  std::array<std::uint64_t, sizeof(Statistics) / sizeof(std::uint64_t)> words;
  words.fill(1);
  std::memcpy(static_cast<void*>(&all), words.data(), sizeof(all));
  all += all;
  std::memcpy(words.data(), static_cast<const void*>(&all), sizeof(all));
  EXPECT_THAT(words, ::testing::Each(2U));
}

}  // namespace
}  // namespace reprise::statistics_test
