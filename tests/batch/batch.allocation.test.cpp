// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include "batch/drafts.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise_testing/random.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::batch_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::Drafts;
using testing::Random;

/// Plans passes of up to 40 sequences that join and leave. Returns the number of allocations after reserve().
std::size_t allocations_of(BatchOptions options) {
  Random random(1);
  std::vector<Drafts> rounds(20);
  for (Drafts& drafts : rounds)
    for (std::size_t i = 0; i < 1 + random.below(40); ++i) drafts.random(random, 8);
  const std::vector<std::size_t> committed(40, 1);
  const std::vector<Token> batch(9, 1);
  const std::vector<NodeIndex> parents = {-1, 0, 1, 2, 3, 4, 5, 6};
  const std::vector<std::uint32_t> depths = {1, 2, 3, 4, 5, 6, 7, 8};
  BatchPlanner planner(std::move(options));
  BatchPacker packer;
  EXPECT_TRUE(planner.reserve(40));
  EXPECT_TRUE(packer.reserve(40, 400));

  const AllocationWatch watch;
  std::size_t drafted = 0;
  for (const Drafts& drafts : rounds) {
    const std::size_t sequences = drafts.entries().size();
    static_cast<void>(planner.budget({}, {sequences, sequences, 100}));
    static_cast<void>(planner.plan(drafts.entries()));
    const BatchPlan plan = planner.shrink(200);
    packer.clear();
    for (std::size_t i = 0; i < sequences; ++i) {
      Pass pass;
      pass.drafted = plan.nodes[i];
      pass.pending = 1;
      pass.batch = TokenSpan(batch).first(1 + pass.drafted);
      pass.parents = std::span(parents).first(pass.drafted);
      pass.depths = std::span(depths).first(pass.drafted);
      EXPECT_TRUE(packer.add(1, pass, 10));
    }
    drafted += plan.drafted;
    planner.learn(std::span(committed).first(sequences), std::chrono::milliseconds(10));
  }
  EXPECT_GT(drafted, 0U);
  return watch.allocations();
}

TEST(BatchMemory, IsNotAskedForAfterReserve) {
  EXPECT_EQ(allocations_of({.curve = CostCurve::linear(0.001)}), 0U);
  EXPECT_EQ(allocations_of({}), 0U);
}

TEST(BatchMemory, APlannerWithoutAnyDraftsNothingAndRecovers) {
  Drafts drafts;
  drafts.chain({90, 80});
  for (std::size_t fail_at = 1;; ++fail_at) {
    BatchPlanner planner;
    BatchPlan plan;
    std::size_t asked = 0;
    {
      const AllocationWatch watch(fail_at, 100);
      plan = planner.plan(drafts.entries());
      asked = watch.allocations();
    }
    if (asked < fail_at) {
      EXPECT_EQ(plan.drafted, 2U);
      EXPECT_GT(fail_at, 4U);
      return;
    }
    EXPECT_EQ(plan.cut, Cut::out_of_memory);
    EXPECT_EQ(plan.nodes_of(0), 0U);
    EXPECT_EQ(plan.drafted, 0U);
    EXPECT_EQ(plan.rows, 1U);
    planner.learn(std::vector<std::size_t>(1, 1));
    EXPECT_EQ(planner.shrink(5).drafted, 0U);
    EXPECT_EQ(planner.plan(drafts.entries()).drafted, 2U) << "with memory it works";
  }
}

TEST(BatchMemory, ABudgetWithoutAnyAsksForNothing) {
  BatchPlanner planner;
  const AllocationWatch watch(1, 100);
  EXPECT_EQ(planner.budget({}, {4, 4, 0}).max_nodes, 0U);
}

TEST(BatchMemory, APackerAsksForNoneAfterReserve) {
  const std::vector<Token> batch = {5};
  Pass pass;
  pass.batch = batch;
  pass.pending = 1;
  for (std::size_t sequences = 1; sequences <= 40; ++sequences) {
    BatchPacker packer;
    ASSERT_TRUE(packer.reserve(sequences, sequences));
    const AllocationWatch watch;
    for (int step = 0; step < 2; ++step) {
      packer.clear();
      for (std::size_t s = 0; s < sequences; ++s) ASSERT_TRUE(packer.add(static_cast<BatchSlot>(s), pass, 3));
    }
    EXPECT_EQ(watch.allocations(), 0U) << sequences << " sequences";
  }
}

TEST(BatchMemory, APackerWithoutAnyIsAsBefore) {
  const std::vector<Token> batch = {5};
  Pass pass;
  pass.batch = batch;
  pass.pending = 1;
  for (std::size_t fail_at = 1;; ++fail_at) {
    BatchPacker packer;
    bool added = false;
    std::size_t asked = 0;
    {
      const AllocationWatch watch(fail_at, 100);
      added = packer.add(1, pass, 3);
      asked = watch.allocations();
    }
    if (asked < fail_at) {
      EXPECT_TRUE(added);
      return;
    }
    EXPECT_FALSE(added);
    EXPECT_EQ(packer.size(), 0U);
    EXPECT_EQ(packer.batch().rows(), 0U);
    EXPECT_TRUE(packer.add(1, pass, 3));
    EXPECT_EQ(packer.batch().rows(), 1U);
  }
}

}  // namespace
}  // namespace reprise::batch_allocation_test
