// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/voters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "reprise/core/datastore.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "support/ngram_world.hpp"
#include "support/streams.hpp"

namespace reprise::store_schedule_test {
namespace {

using detail::StoreSchedule;
using testing::draft_of;
using testing::LentNgram;
using testing::SplitMix;

constexpr DraftBudget tree = {.max_nodes = 16, .shape = DraftShape::tree};

/// The number of drafts in a row that are skipped from now on.
int skipped(StoreSchedule& schedule) {
  int drafts = 0;
  for (; !schedule.due(); schedule.learn(false)) ++drafts;
  return drafts;
}

TEST(StoreSchedule, AsksSixteenTimesBeforeTheFirstHelpAndThenLessAndLess) {
  StoreSchedule schedule;
  for (int i = 0; i < 15; ++i) {
    EXPECT_TRUE(schedule.due()) << i;
    schedule.learn(false);
  }
  for (const int expected : {0, 1, 3, 7, 15, 31, 31, 31}) {
    EXPECT_EQ(skipped(schedule), expected);
    schedule.learn(false);
  }
}

TEST(StoreSchedule, AsksForEveryDraftAgainAfterOneHelp) {
  StoreSchedule schedule;
  for (int i = 0; i < 1000; ++i) schedule.learn(false);
  while (!schedule.due()) schedule.learn(false);
  schedule.learn(true);
  for (int i = 0; i < 128; ++i) {
    EXPECT_TRUE(schedule.due()) << i;
    schedule.learn(false);
  }
  EXPECT_EQ(skipped(schedule), 1);
}

TEST(StoreSchedule, AsksAtLeastOnceIn32DraftsAfterAnyResults) {
  SplitMix random(1);
  for (int run = 0; run < 100; ++run) {
    StoreSchedule schedule;
    const std::size_t rarity = random.between(1, 100);
    int in_a_row = 0;
    for (int i = 0; i < 2000; ++i) {
      in_a_row = schedule.due() ? 0 : in_a_row + 1;
      ASSERT_LE(in_a_row, StoreSchedule::most_skipped);
      schedule.learn(random.one_in(rarity));
    }
  }
}

/// A store with one place in front of a token that the test sets, or with none. Counts the calls of find().
struct OneToken {
  [[nodiscard]] std::size_t find(TokenSpan, std::span<StoreMatch> out) const noexcept {
    ++finds;
    out[0] = {1, 1};
    return 1;
  }
  [[nodiscard]] StoreRun read(StorePlace, std::span<Token> out) const noexcept {
    out[0] = next;
    return {1, no_place};
  }
  void touch(StorePlace) const noexcept {}

  mutable std::size_t finds = 0;
  Token next = 0;
};
static_assert(Datastore<OneToken>);

NgramOptions reading(const OneToken& store) {
  NgramOptions options;
  options.stores = {store};
  return options;
}
/// One round with a target that continues with `token`. Returns true if the store was asked.
bool round(LentNgram<>& drafter, const OneToken& store, Token token) {
  const std::size_t before = store.finds;
  const std::vector<DraftNode> nodes = draft_of(drafter, tree);
  std::vector<NodeIndex> sent(nodes.size());
  std::iota(sent.begin(), sent.end(), NodeIndex{0});
  std::vector<NodeIndex> accepted;
  for (std::size_t i = 0; i < nodes.size() && accepted.empty(); ++i)
    if (nodes[i].parent == anchor_parent && nodes[i].token == token) accepted.push_back(static_cast<NodeIndex>(i));
  const std::vector<Token> committed = accepted.empty() ? std::vector{token} : std::vector{token, Token{-7}};
  drafter.feedback({DraftView(nodes, DraftKind::ordered), sent, accepted, committed.back(), Cut::none, {}});
  drafter.observe(committed, Origin::output);
  return store.finds != before;
}

TEST(NgramStoreSchedule, AsksAStoreThatNeverHelpsInFewDrafts) {
  const OneToken store{.next = 1};
  LentNgram<> drafter(reading(store));
  drafter.begin({});
  drafter.observe(std::vector<Token>{100}, Origin::prompt);
  for (Token i = 0; i < 10'000; ++i) round(drafter, store, 100 + i % 1000);
  EXPECT_GE(store.finds, 10'000U / 32);
  EXPECT_LE(store.finds, 10'000U / 32 + 20);
}

TEST(NgramStoreSchedule, FindsAStoreThatBeginsToHelpWithin32Drafts) {
  for (std::size_t rounds = 2000; rounds < 2040; ++rounds) {
    OneToken store{.next = 1};
    LentNgram<> drafter(reading(store));
    drafter.begin(std::vector<Token>{100});
    for (std::size_t i = 0; i < rounds; ++i) round(drafter, store, 100 + static_cast<Token>(i));
    std::size_t missed = 0;
    for (Token token = 5000;; ++token, ++missed) {
      store.next = token;
      if (round(drafter, store, token)) break;
    }
    ASSERT_LE(missed, 31U) << rounds;
    for (Token token = 6000; token < 6100; ++token) {
      store.next = token;
      ASSERT_TRUE(round(drafter, store, token)) << token;
    }
  }
}

TEST(NgramStoreSchedule, BeginsAgainWithEachSequenceAndOnlyThere) {
  OneToken store{.next = 1};
  LentNgram<> drafter(reading(store));
  drafter.begin(std::vector<Token>{100});
  for (Token i = 0; i < 500; ++i) round(drafter, store, 100 + i);
  while (round(drafter, store, 3)) {
  }
  drafter.truncate(50);
  EXPECT_FALSE(round(drafter, store, 3)) << "knowledge of the store, not of the tokens";
  drafter.begin(std::vector<Token>{100});
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(round(drafter, store, 3)) << i;
}

TEST(NgramStoreSchedule, DoesNotCountDraftsWithoutOutcome) {
  const OneToken store{.next = 1};
  LentNgram<> drafter(reading(store));
  drafter.begin(std::vector<Token>{100});
  for (int i = 0; i < 100; ++i) static_cast<void>(draft_of(drafter, tree));
  EXPECT_EQ(store.finds, 100U) << "a draft that is proposed again";
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(draft_of(drafter, tree));
    drafter.observe(std::vector<Token>{Token{100 + i}}, Origin::output);
    drafter.feedback({});
  }
  EXPECT_EQ(store.finds, 200U) << "an outcome of an older draft";
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(draft_of(drafter, {.max_nodes = 0}));
    drafter.feedback({});
  }
  EXPECT_TRUE(round(drafter, store, 4)) << "rounds without a draft";
}

TEST(NgramStoreSchedule, JudgesADraftThatIsNotSentByTheToken) {
  OneToken store{.next = 1};
  LentNgram<> drafter(reading(store));
  drafter.begin(std::vector<Token>{100});
  for (Token token = 200; token < 300; ++token) {
    store.next = token;
    const std::vector<DraftNode> nodes = draft_of(drafter, tree);
    drafter.feedback({DraftView(nodes, DraftKind::ordered), {}, {}, token, Cut::throttled, {}});
    drafter.observe(std::vector<Token>{token}, Origin::output);
  }
  EXPECT_EQ(store.finds, 100U);
}

TEST(NgramStoreSchedule, IsNotAskedForADraftWithoutDepth) {
  const OneToken store{.next = 1};
  LentNgram<> drafter(reading(store));
  drafter.begin(std::vector<Token>{100});
  for (int i = 0; i < 40; ++i) {
    static_cast<void>(draft_of(drafter, {.max_nodes = 16, .max_depth = 0}));
    drafter.feedback({});
  }
  EXPECT_EQ(store.finds, 0U);
}

TEST(NgramStoreSchedule, ADraftThatSkipsAStoreIsADraftWithoutIt) {
  OneToken store{.next = 1};
  LentNgram<> drafter(reading(store));
  drafter.begin(std::vector<Token>{100});
  std::size_t compared = 0;
  for (Token i = 0; i < 300; ++i) {
    const std::size_t before = store.finds;
    const std::vector<DraftNode> nodes = draft_of(drafter, tree);
    if (store.finds == before) {
      NgramOptions options;
      options.prior = drafter.calibration();
      LentNgram<> without(options);
      without.begin(drafter.context().first(1));
      for (const Token token : drafter.context().subspan(1)) without.observe(std::vector{token}, Origin::output);
      ASSERT_TRUE(testing::same_nodes(nodes, draft_of(without, tree))) << i;
      ++compared;
    }
    round(drafter, store, 100 + i % 7);
  }
  EXPECT_GT(compared, 100U);
}

}  // namespace
}  // namespace reprise::store_schedule_test
