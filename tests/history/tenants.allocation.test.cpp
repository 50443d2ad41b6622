// SPDX-License-Identifier: Apache-2.0
// The allocations of tenants, which only make() and open() perform, and the results without memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/history/tenants.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::tenants_allocation_test {
namespace {

using testing::AllocationWatch;

TenantOptions small() {
  TenantOptions options;
  options.tenants = 2;
  options.history.max_bytes = 2'000;
  options.next_tokens = NextTokenOptions{.max_bytes = 2'000, .rankings = true};
  return options;
}

TEST(TenantAllocations, NoneToFindToUseAndToClose) {
  auto all = TenantHistories::make(small());
  ASSERT_TRUE(all);
  ASSERT_TRUE(all->open(1, 11));
  const std::vector<Token> tokens(500, 3);
  const std::vector<NextTokens::RankedRow> rows = {{.last = 1, .ranking = Ranking(tokens)}};
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    TenantHistories::Tenant* const tenant = all->find(1);
    tenant->history.begin_sequence(1);
    tenant->history.append(tokens, Origin::output);
    tenant->history.end_sequence();
    tenant->next_tokens.add(tokens);
    tenant->next_tokens.add(rows);
    static_cast<void>(all->memory_bytes());
    all->close(1);
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
}

TEST(TenantAllocations, AnErrorWhereOneFailsAndNobodyElseIsTouched) {
  bool made_once = false;
  for (std::size_t fail_at = 1; !made_once; ++fail_at) {
    const AllocationWatch watch(fail_at);
    const auto made = TenantHistories::make(small());
    made_once = made.has_value();
    if (!made_once) {
      ASSERT_EQ(made.error().code, ErrorCode::out_of_memory);
    }
  }
  auto all = TenantHistories::make(small());
  ASSERT_TRUE(all);
  const TenantHistories::Tenant* const one = *all->open(1, 11);
  std::size_t failed = 0;
  for (bool opened = false; !opened;) {
    const AllocationWatch watch(failed + 1);
    const auto two = all->open(2, 22);
    opened = two.has_value();
    if (opened) break;
    ++failed;
    ASSERT_EQ(two.error().code, ErrorCode::out_of_memory);
    ASSERT_EQ(all->find(2), nullptr);
    ASSERT_EQ(all->find(1), one);
  }
  EXPECT_GE(failed, 4U) << "tokens, what is known of them, an index, and a table";
}

}  // namespace
}  // namespace reprise::tenants_allocation_test
