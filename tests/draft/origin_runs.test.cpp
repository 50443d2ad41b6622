// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/origin_runs.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/streams.hpp"

namespace reprise::detail::origin_runs_test {
namespace {

TEST(OriginRuns, SayPromptBeforeAnythingIsKnown) {
  const OriginRuns runs;
  EXPECT_EQ(runs.of(0), Origin::prompt);
  EXPECT_EQ(runs.of(1000), Origin::prompt);
  EXPECT_EQ(runs.memory_bytes(), 0U);
}

TEST(OriginRuns, TakeAPartOfOthers) {
  OriginRuns others;
  others.append(0, Origin::prompt);
  others.append(10, Origin::output);
  others.append(15, Origin::prompt);
  OriginRuns runs;
  runs.append(0, Origin::output);
  runs.append(3, others, 12, 17);  // three tokens of output and two of the prompt
  runs.append(8, others, 9, 9);    // no tokens
  runs.append(8, others, 9, 11);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(runs.of(i), i < 6 || i == 9 ? Origin::output : Origin::prompt) << i;
}

TEST(OriginRuns, CostNothingWhileTheOriginStaysTheSame) {
  OriginRuns runs;
  runs.append(0, Origin::output);
  const std::size_t bytes = runs.memory_bytes();
  for (std::size_t i = 1; i < 10'000; ++i) runs.append(i, Origin::output);
  EXPECT_EQ(runs.memory_bytes(), bytes);
}

TEST(OriginRuns, AreThoseOfAVectorWhateverIsAppendedAndTruncated) {
  testing::SplitMix random(1);
  for (int round = 0; round < 300; ++round) {
    OriginRuns runs;
    std::vector<Origin> model;
    for (int step = 0; step < 40; ++step) {
      if (random.one_in(4)) {
        const std::size_t size = random.one_in(8) ? 0 : random.below(model.size() + 1);
        runs.truncate(size);
        model.resize(size);
      } else if (random.one_in(40)) {
        runs.clear();
        model.clear();
      } else {
        const Origin origin = random.one_in(2) ? Origin::prompt : Origin::output;
        runs.append(model.size(), origin);
        model.resize(model.size() + random.between(1, 6), origin);
      }
      for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(runs.of(i), model[i]) << "at " << i;
    }
  }
}

}  // namespace
}  // namespace reprise::detail::origin_runs_test
