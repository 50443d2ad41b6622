// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/evidence/detail/shared_calibration.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::detail::shared_calibration_allocation_test {
namespace {

using reprise::testing::AllocationWatch;

CalibrationState learned() {
  CalibrationState state;
  state.all = 1 << 18;
  state.lessons = 9;
  return state;
}

// Volatile: see any_strategy.allocation.test.cpp.
SharedCalibration (*volatile make)(const CalibrationState&) = [](const CalibrationState& state) {
  return SharedCalibration(state);
};

TEST(SharedCalibration, TakesNoMemoryForTheBuiltInCalibration) {
  const AllocationWatch watch;
  const SharedCalibration none;
  const SharedCalibration built_in = make(CalibrationState());
  EXPECT_EQ(watch.allocations(), 0U);
  EXPECT_EQ(none.state(), CalibrationState());
  EXPECT_EQ(built_in.state(), CalibrationState());
}

TEST(SharedCalibration, IsHeldOnceByAllItsCopies) {
  const AllocationWatch watch;
  std::vector<NgramDrafter<>> drafters;
  drafters.reserve(8);
  {
    const SharedCalibration first = make(learned());
    for (int i = 0; i < 8; ++i) drafters.emplace_back(NgramOptions{.prior = first});
  }
  EXPECT_EQ(watch.allocations(), 2U) << "the array and the state";
  for (NgramDrafter<>& drafter : drafters) {
    EXPECT_EQ(drafter.options().prior.state(), learned());
    drafter.begin({});
    EXPECT_EQ(drafter.calibration(), learned());
  }
}

TEST(SharedCalibration, IsReplacedForOneDrafterAlone) {
  const SharedCalibration first = learned();
  NgramDrafter<> one(NgramOptions{.prior = first});
  NgramDrafter<> other = one;
  one.assume({});
  EXPECT_EQ(one.calibration(), learned()) << "only the next begin() uses it";
  one.begin({});
  other.begin({});
  EXPECT_EQ(one.calibration(), CalibrationState());
  EXPECT_EQ(other.calibration(), learned());
  other.assume(other.options().prior);
  other.begin({});
  EXPECT_EQ(other.calibration(), learned());
}

TEST(SharedCalibration, IsTheBuiltInOneWithoutMemory) {
  SharedCalibration prior;
  {
    const AllocationWatch watch(1);
    prior = make(learned());
  }
  EXPECT_EQ(prior.state(), CalibrationState());
  prior = make(learned());
  EXPECT_EQ(prior.state(), learned()) << "with memory it works";
}

}  // namespace
}  // namespace reprise::detail::shared_calibration_allocation_test
