// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/tenants.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "support/fails.hpp"

namespace reprise::tenants_test {
namespace {

using Tokens = std::vector<Token>;

TenantHistories make(std::size_t tenants, std::size_t max_bytes = 20'000) {
  TenantOptions options;
  options.tenants = tenants;
  options.history.max_bytes = max_bytes;
  auto made = TenantHistories::make(options);
  EXPECT_TRUE(made);
  return std::move(*made);
}

void remember(TenantHistories::Tenant& tenant, const Tokens& tokens) {
  tenant.history.begin_sequence(1);
  tenant.history.append(tokens, Origin::output);
  tenant.history.end_sequence();
}

std::size_t found(const TenantHistories::Tenant& tenant, const Tokens& end) {
  std::array<HistoryStore::HistoryMatch, HistoryStore::most_matches> matches;
  return tenant.history.find(end, matches);
}

TEST(TenantHistories, GiveEachTenantItsKeyAndTheOptionsOfAll) {
  TenantOptions options;
  options.tenants = 2;
  options.history.max_bytes = 30'000;
  options.history.prompts = false;
  options.history.key = 99;
  auto all = TenantHistories::make(options);
  ASSERT_TRUE(all);
  TenantHistories::Tenant& one = **all->open(1, 11);
  TenantHistories::Tenant& two = **all->open(2, 22);
  EXPECT_EQ(one.history.options().key, 11U);
  EXPECT_EQ(two.history.options().key, 22U);
  for (const TenantHistories::Tenant* tenant : {&one, &two}) {
    EXPECT_FALSE(tenant->history.options().prompts);
    EXPECT_TRUE(tenant->history.options().outputs);
    EXPECT_LE(tenant->history.memory_bytes(), 30'000U);
    EXPECT_GT(tenant->history.memory_bytes(), 29'000U);
  }
}

TEST(TenantHistories, HaveATableOfNextTokensIfTheOptionsSaySo) {
  TenantHistories without = make(1);
  EXPECT_EQ((*without.open(1, 11))->next_tokens.memory_bytes(), 0U);

  for (const bool rankings : {false, true}) {
    const std::size_t bytes = rankings ? 896 : 960;
    TenantOptions options;
    options.tenants = 2;
    options.history.max_bytes = 2'000;
    options.next_tokens = NextTokenOptions{.max_bytes = 1'000, .key = 99, .vocabulary = 50, .rankings = rankings};
    auto all = TenantHistories::make(options);
    ASSERT_TRUE(all);
    const std::size_t places = all->memory_bytes();
    TenantHistories::Tenant& one = **all->open(1, 11);
    TenantHistories::Tenant& two = **all->open(2, 22);
    EXPECT_EQ(one.next_tokens.options().vocabulary, 50U);
    EXPECT_EQ(one.next_tokens.options().rankings, rankings);
    EXPECT_EQ(one.next_tokens.options().key, next_token_key(11));
    EXPECT_EQ(two.next_tokens.options().key, next_token_key(22));
    EXPECT_EQ(one.next_tokens.memory_bytes(), bytes);
    EXPECT_EQ(all->memory_bytes(), places + 2 * (one.history.memory_bytes() + bytes));
    one.next_tokens.add(Tokens{1, 2});
    one.next_tokens.add(std::array{NextTokens::RankedRow{.last = 1, .ranking = Ranking(Tokens{2, 3})}});
    const auto expect_known = [](const TenantHistories::Tenant& tenant, bool counts, bool ranking) {
      EXPECT_EQ(tenant.next_tokens.after(1).counts().total() == 1, counts);
      EXPECT_EQ(tenant.next_tokens.after(1).ranking() == Ranking(Tokens{2, 3}), ranking);
    };
    expect_known(one, true, rankings);
    expect_known(two, false, false);
    all->close(1);
    TenantHistories::Tenant& three = **all->open(3, 11);
    ASSERT_EQ(&three, &one) << "the same place";
    expect_known(three, false, false);
  }
}

TEST(TenantHistories, HaveDifferentKeysForTheirHistoryAndTheirTable) {
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{11}, std::uint64_t{1} << 63})
    EXPECT_NE(next_token_key(key), key);
}

TEST(TenantHistories, RefuseBytesWithoutRoomWhenATenantIsOpened) {
  TenantOptions counts;
  counts.history.max_bytes = 2'000;
  TenantOptions rankings = counts;
  counts.next_tokens = NextTokenOptions{.max_bytes = 63};
  rankings.next_tokens = NextTokenOptions{.max_bytes = 127, .rankings = true};
  TenantOptions history;
  history.history.max_bytes = 100;
  for (const TenantOptions& options : {counts, rankings, history}) {
    auto all = TenantHistories::make(options);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->open(1, 0).error().code, ErrorCode::size_out_of_range);
    EXPECT_EQ(all->find(1), nullptr);
  }
}

TEST(TenantHistories, RefuseANewTenantWhenAllPlacesAreTaken) {
  TenantHistories all = make(2);
  TenantHistories::Tenant& one = **all.open(1, 0);
  ASSERT_TRUE(all.open(2, 0));
  remember(one, {1, 2, 3});
  EXPECT_THAT(all.open(3, 0), testing::fails(ErrorCode::too_many_tenants, 3U, 2U));
  EXPECT_EQ(all.find(3), nullptr);
  EXPECT_EQ(found(one, {1, 2}), 1U) << "nobody gave way";
  all.close(2);
  EXPECT_TRUE(all.open(3, 0));
  EXPECT_EQ(all.find(2), nullptr);
}

TEST(TenantHistories, RefuseATenantThatIsOpen) {
  TenantHistories all = make(2);
  TenantHistories::Tenant& one = **all.open(1, 11);
  remember(one, {1, 2, 3});
  EXPECT_THAT(all.open(1, 12), testing::fails(ErrorCode::tenant_is_open));
  EXPECT_EQ(one.history.options().key, 11U);
  EXPECT_EQ(found(one, {1, 2}), 1U);
}

TEST(TenantHistories, LeaveNothingOfATenantToTheNextInItsPlace) {
  TenantHistories all = make(1);
  TenantHistories::Tenant* const one = *all.open(1, 11);
  remember(*one, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  one->calibration.lessons = 5;
  all.close(1);
  EXPECT_EQ(all.find(1), nullptr);
  for (const TenantHistories::Id next : {TenantHistories::Id{2}, TenantHistories::Id{1}}) {
    TenantHistories::Tenant* const other = *all.open(next, 11);
    ASSERT_EQ(other, one) << "the only place";
    EXPECT_EQ(found(*other, {1, 2}), 0U);
    EXPECT_EQ(other->history.counts(), HistoryStore::Counts());
    EXPECT_EQ(other->calibration, CalibrationState());
    all.close(next);
  }
}

TEST(TenantHistories, CloseOnlyTheTenantThatIsNamed) {
  TenantHistories all = make(3);
  ASSERT_TRUE(all.open(1, 0));
  TenantHistories::Tenant* const two = *all.open(2, 0);
  all.close(9);
  all.close(1);
  EXPECT_EQ(all.find(1), nullptr);
  EXPECT_EQ(all.find(2), two);
}

TEST(TenantHistories, KeepTenantsWhereTheyAre) {
  TenantHistories all = make(50);
  TenantHistories::Tenant* const one = *all.open(1, 0);
  remember(*one, {1, 2, 3});
  for (TenantHistories::Id id = 2; id < 40; ++id) ASSERT_TRUE(all.open(id, 0));
  for (TenantHistories::Id id = 2; id < 40; id += 2) all.close(id);
  const TenantHistories moved = std::move(all);
  EXPECT_EQ(moved.find(1), one);
  EXPECT_EQ(found(*one, {1, 2}), 1U);
}

TEST(TenantHistories, HaveANumberThatIsNobodys) {
  TenantHistories all = make(2);
  EXPECT_EQ(all.find(TenantHistories::nobody), nullptr) << "not a place that is free";
  all.close(TenantHistories::nobody);
  EXPECT_THAT(all.open(TenantHistories::nobody, 0), testing::fails(ErrorCode::invalid_argument));
}

TEST(TenantHistories, TakeBytesForThoseWhoAreOpen) {
  TenantHistories all = make(2, 100'000);
  const std::size_t places = all.memory_bytes();
  EXPECT_LT(places, 2U * 12'288U);
  const TenantHistories::Tenant& one = **all.open(1, 0);
  EXPECT_EQ(all.memory_bytes(), places + one.history.memory_bytes());
  all.close(1);
  EXPECT_EQ(all.memory_bytes(), places);
}

TEST(TenantHistories, WithoutPlacesOpenAndFindNobody) {
  TenantHistories made = make(0);
  TenantHistories plain;
  for (TenantHistories* all : {&made, &plain}) {
    EXPECT_EQ(all->find(1), nullptr);
    EXPECT_EQ(all->open(1, 0).error().code, ErrorCode::too_many_tenants);
    all->close(1);
    EXPECT_EQ(all->memory_bytes(), 0U);
  }
}

TEST(TenantHistories, RefuseMorePlacesThanThereCanBe) {
  TenantOptions options;
  options.tenants = std::numeric_limits<std::size_t>::max();
  EXPECT_THAT(TenantHistories::make(options), testing::fails(ErrorCode::out_of_memory));
}

/// Two readers look up a tenant that stays and use its memory, while other tenants come and go.
TEST(TenantHistories, AreLookedUpWhileOthersAreOpenedAndClosed) {
  TenantHistories all = make(4, 2'000);
  TenantHistories::Tenant* const stays = *all.open(1, 11);
  remember(*stays, {1, 2, 3, 4});
  std::atomic<bool> done = false;
  std::atomic<int> looked = 0;
  const auto look = [&] {
    while (!done.load()) {
      const TenantHistories::Tenant* const tenant = all.find(1);
      ASSERT_EQ(tenant, stays);
      ASSERT_EQ(found(*tenant, {2, 3}), 1U);
      ASSERT_EQ(all.find(2), nullptr) << "was never opened";
      looked.fetch_add(1);
    }
  };
  std::thread one(look);
  std::thread two(look);
  for (TenantHistories::Id id = 10; id < 200 || (looked.load() < 100 && id < 1'000'000); ++id) {
    const auto opened = all.open(id, id);
    ASSERT_TRUE(opened);
    remember(**opened, {1, 2, 3, 5});
    all.close(id);
  }
  done.store(true);
  one.join();
  two.join();
  EXPECT_GE(looked.load(), 100);
}

// Not beside the other tests of NgramOptions::Prior, because ThreadSanitizer runs this program.
TEST(NgramOptionsPrior, HasCopiesOnSeveralThreads) {
  CalibrationState learned;
  learned.lessons = 9;
  std::vector<std::thread> threads;
  {
    const NgramOptions::Prior first = learned;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([copy = first] {
        for (int round = 0; round < 1000; ++round) {
          const NgramOptions::Prior again = copy;
          EXPECT_EQ(again.state().lessons, 9U);
        }
      });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace reprise::tenants_test
