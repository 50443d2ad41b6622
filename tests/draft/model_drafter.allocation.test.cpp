// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/model_drafter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/testing/check_strategy.hpp"
#include "support/allocation_counter.hpp"
#include "support/lent_context.hpp"
#include "support/toy_model.hpp"

namespace reprise::model_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::ToyModel;
using Tokens = std::vector<Token>;
using Drafter = ModelDrafter<ToyModel>;

constexpr ModelOptions kinds[] = {{},
                                  {.branches = 3, .min_path_probability = Probability::from_raw(1)},
                                  {.kind = DraftKind::sampled, .min_path_probability = Probability::from_raw(1)}};

TEST(ModelDrafterMemory, IsNotAskedForInPropose) {
  for (const ModelOptions& options : kinds) {
    const auto report = testing::check_strategy([&] { return Drafter::make(ToyModel(), options).value(); },
                                                {.runs = 4, .allocations = testing::allocations_so_far});
    EXPECT_TRUE(report.passed()) << report.to_string();
    EXPECT_EQ(report.find("propose() does not allocate")->verdict, testing::Verdict::exact);
  }
}

TEST(ModelDrafterMemory, IsNotAskedForInObserveAndFeedbackAfterReserve) {
  testing::Lent<Drafter> drafter;
  drafter.reserve(200);
  drafter.begin(Tokens{1, 2});
  const Tokens more(100, 3);
  const AllocationWatch watch;
  drafter.feedback({});
  drafter.observe(more, Origin::output);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(ModelDrafterMemory, MayRunOutAndThenNothingIsDraftedUntilTheNextSequence) {
  for (const ModelOptions& options : kinds) {
    const Tokens first(20, 1);
    const Tokens second(400, 2);
    bool failed = true;
    for (std::size_t fail_at = 1; failed; ++fail_at) {
      testing::Lent drafter{Drafter::make(ToyModel(), options).value()};
      drafter.reserve(500);  // so that only the drafter allocates
      {
        const AllocationWatch watch(fail_at, 1000);
        drafter.begin(first);
        drafter.observe(second, Origin::output);
        drafter.observe(first, Origin::output);
        failed = watch.allocations() >= fail_at;
      }
      EXPECT_EQ(drafter.propose({}, 8).nodes.empty(), failed) << fail_at;
      drafter.begin(first);
      EXPECT_FALSE(drafter.propose({}, 8).nodes.empty());
      EXPECT_TRUE(drafter->model().sound);
    }
  }
}

}  // namespace
}  // namespace reprise::model_drafter_allocation_test
