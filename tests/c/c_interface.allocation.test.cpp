// SPDX-License-Identifier: Apache-2.0
// Every function of the C interface that allocates, without memory from each of its allocations on.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_c/reprise.h"
#include "support/allocation_counter.hpp"

namespace reprise::c_interface_allocation_test {
namespace {

using testing::AllocationWatch;

/// Calls call() repeatedly, each time with fewer allocations that succeed. Each call must succeed or say that memory
/// ran out. Returns the number of calls that failed.
template <class Call>
std::size_t failures_of(Call call) {
  std::size_t failed = 0;
  for (std::size_t fail_at = 1;; ++fail_at) {
    reprise_status status = REPRISE_OK;
    bool all = false;
    {
      const AllocationWatch watch(fail_at, unlimited);  // a buffer asks for less after a failure
      status = call();
      all = watch.allocations() < fail_at;
    }
    EXPECT_TRUE(status == REPRISE_OK || status == REPRISE_OUT_OF_MEMORY) << status;
    failed += status == REPRISE_OK ? 0 : 1;
    if (all) return failed;
  }
}

TEST(CInterfaceAllocations, CreateFunctionsReportThatMemoryRanOut) {
  const std::vector<reprise_cost_point> points = {{1, 0, 1, 100}, {1, 0, 2, 110}};
  reprise_curve* curve = nullptr;
  EXPECT_EQ(failures_of([&] {
              reprise_curve_destroy(curve);
              return reprise_curve_create(points.data(), points.size(), &curve, nullptr);
            }),
            3U)
      << "the points, their copies, and the handle";
  reprise_memory_options small{};
  small.size = sizeof small;
  small.max_bytes = 5'000;
  small.next_token_bytes = 5'000;
  reprise_memory* memory = nullptr;
  EXPECT_GE(failures_of([&] {
              reprise_memory_destroy(memory);
              reprise_error error{};
              const auto status = reprise_memory_create(&small, &memory, &error);
              EXPECT_EQ(status, error.status);
              EXPECT_EQ(status == REPRISE_OK, memory != nullptr);
              return status;
            }),
            4U);
  reprise_options options{};
  options.size = sizeof options;
  options.curve = curve;
  options.memory = memory;
  reprise_session* session = nullptr;
  EXPECT_GE(failures_of([&] {
              reprise_session_destroy(session);
              return reprise_session_create(&options, &session, nullptr);
            }),
            2U)
      << "the curve and the handle";
  reprise_follower* follower = nullptr;
  EXPECT_GE(failures_of([&] {
              reprise_follower_destroy(follower);
              return reprise_follower_create(&options, &follower, nullptr);
            }),
            2U);
  reprise_batch* batch = nullptr;
  EXPECT_GE(failures_of([&] {
              reprise_batch_destroy(batch);
              const auto status = reprise_batch_create(&options, 3, &batch, nullptr);
              EXPECT_EQ(status == REPRISE_OK, batch != nullptr);
              return status;
            }),
            4U)
      << "the curve, the slots, the planner's tables, and the handle";
  reprise_batch_destroy(batch);
  reprise_follower_destroy(follower);
  reprise_session_destroy(session);
  reprise_memory_destroy(memory);
  reprise_curve_destroy(curve);
}

TEST(CInterfaceAllocations, ASessionStaysUsableAfterMemoryRanOut) {
  reprise_session* session = nullptr;
  ASSERT_EQ(reprise_session_create(nullptr, &session, nullptr), REPRISE_OK);
  std::vector<reprise_token> text(300);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<reprise_token>(i % 7);
  EXPECT_GT(
      failures_of([&] { return reprise_session_begin(session, text.data(), text.size(), REPRISE_UNLIMITED, nullptr); }),
      0U);
  reprise_limits limits{};
  limits.size = sizeof limits;
  limits.eos = text.data();
  limits.eos_count = text.size();
  reprise_pass pass{};
  pass.size = sizeof pass;
  EXPECT_GT(failures_of([&] { return reprise_session_plan(session, &limits, 9, &pass); }), 0U);
  reprise_session* fork = nullptr;
  EXPECT_GT(failures_of([&] {
              reprise_session_destroy(fork);
              return reprise_session_fork(session, &fork);
            }),
            0U);
  static_cast<void>(
      failures_of([&] { return reprise_session_append(session, text.data(), text.size(), REPRISE_UNLIMITED); }));
  std::size_t shared = 0;
  EXPECT_GT(failures_of(
                [&] { return reprise_session_rebase(session, text.data(), text.size(), REPRISE_UNLIMITED, &shared); }),
            0U);
  reprise_state state{};
  state.size = sizeof state;
  ASSERT_EQ(reprise_session_state(session, &state), REPRISE_OK);
  EXPECT_EQ(std::vector<reprise_token>(state.context, state.context + state.context_count), text);
  reprise_session_destroy(fork);
  reprise_session_destroy(session);
}

TEST(CInterfaceAllocations, AFollowerStaysUsableAfterMemoryRanOut) {
  reprise_follower* follower = nullptr;
  ASSERT_EQ(reprise_follower_create(nullptr, &follower, nullptr), REPRISE_OK);
  const std::vector<reprise_token> text(3'000, 4);
  const reprise_token* draft = nullptr;
  std::size_t drafted = 0;
  std::size_t size = 20;
  EXPECT_GT(failures_of([&] {
              static_cast<void>(reprise_follower_forget(follower));
              return reprise_follower_draft(follower, text.data(), size += 50, 5, 0, 0, &draft, &drafted);
            }),
            0U);
  EXPECT_EQ(reprise_follower_draft(follower, text.data(), text.size(), 5, 0, 0, &draft, &drafted), REPRISE_OK);
  reprise_follower_destroy(follower);
}

TEST(CInterfaceAllocations, ASlotWithoutMemoryDraftsNothingUntilThereIsSome) {
  reprise_batch* batch = nullptr;
  ASSERT_EQ(reprise_batch_create(nullptr, 2, &batch, nullptr), REPRISE_OK);
  const std::vector<reprise_token> text(3'000, 4);
  std::size_t empty = 0;
  std::size_t size = 20;
  const auto draft = [&] {
    size += 50;
    std::array<reprise_slot, 2> slots = {
        {{0, text.data(), size, 5, 0, nullptr, 0, 0}, {1, text.data(), 9, 5, 0, nullptr, 0, 0}}};
    const auto status = reprise_batch_draft(batch, slots.data(), slots.size(), 0);
    empty += slots[0].drafted == 0 ? 1 : 0;
    return status;
  };
  EXPECT_EQ(failures_of([&] {
              static_cast<void>(reprise_batch_forget(batch, 0));
              return draft();
            }),
            0U);
  EXPECT_GT(empty, 0U);
  EXPECT_EQ(failures_of([&] { return reprise_batch_assign(batch, 0, nullptr); }), 0U);
  empty = 0;
  EXPECT_EQ(draft(), REPRISE_OK);
  EXPECT_EQ(empty, 0U);
  reprise_batch_destroy(batch);
}

}  // namespace
}  // namespace reprise::c_interface_allocation_test
