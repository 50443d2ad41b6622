// SPDX-License-Identifier: Apache-2.0
// NgramDrafter::rebase(): the old text stays evidence when the context changes. The random worlds of
// ngram_digests.test.cpp and property/ngram_world.test.cpp rebase as well: they cover what is drafted from the
// evidence. ngram_shown_rows.test.cpp checks the contract of rebase().
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "support/ngram_world.hpp"

namespace reprise::ngram_rebase_test {
namespace {

using testing::draft_of;
using testing::LentNgram;
using testing::same_nodes;
using Tokens = std::vector<Token>;

constexpr DraftBudget tree = {.max_nodes = 32};
constexpr DraftBudget chain = {.max_nodes = 8, .shape = DraftShape::chain};

static_assert(RebasableStrategy<NgramDrafter<>>);

/// Tokens from ... from + count - 1, which occur nowhere else.
Tokens numbers(Token from, std::size_t count) {
  Tokens tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = from + static_cast<Token>(i);
  return tokens;
}
Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
template <class Strategy>
Tokens tokens_of(Strategy& strategy) {
  return strategy.propose(chain, 128).tokens();
}
template <class A, class B>
void expect_same_drafts(A& a, B& b) {
  for (const DraftBudget& budget : {tree, chain}) {
    const auto first = draft_of(a, budget);
    const auto second = draft_of(b, budget);
    EXPECT_TRUE(same_nodes(first, second)) << testing::describe(first) << "\ninstead of\n" << testing::describe(second);
  }
}

const Tokens system_prompt = numbers(0, 40);
const Tokens reasoning = numbers(1000, 50);
const Tokens answer = numbers(2000, 40);

struct Rebased : ::testing::Test {
  LentNgram<> drafter;
  Rebased() {
    drafter.begin(system_prompt);
    drafter.observe(reasoning + answer, Origin::output);
  }
  static Tokens without_reasoning() { return system_prompt + answer; }
};

TEST(CommonEnds, DoNotOverlap) {
  const auto ends = [](const Tokens& a, const Tokens& b) {
    const detail::CommonEnds common = detail::common_ends(a, b);
    return std::pair(common.head, common.tail);
  };
  using Ends = std::pair<std::size_t, std::size_t>;
  EXPECT_EQ(ends({1, 2, 3, 4, 5}, {1, 2, 9, 5}), Ends(2, 1));
  EXPECT_EQ(ends({1, 2, 3}, {1, 2, 3}), Ends(3, 0));
  EXPECT_EQ(ends({1, 1, 1}, {1, 1}), Ends(2, 0));
  EXPECT_EQ(ends({1, 2, 1}, {1, 2, 1, 2, 1}), Ends(3, 0));
  EXPECT_EQ(ends({7, 1, 2}, {1, 2}), Ends(0, 2));
  EXPECT_EQ(ends({}, {1}), Ends(0, 0));
}

TEST_F(Rebased, KeepsTheDroppedBlockWithWhatStoodAroundIt) {
  drafter.rebase(without_reasoning());
  EXPECT_EQ(drafter.replaced_tokens(), 32 + reasoning.size() + 32);
  const TokenSpan text = drafter.index().tokens();
  const Tokens whole = numbers(8, 32) + reasoning + numbers(2000, 32) + without_reasoning();
  EXPECT_TRUE(std::equal(text.begin(), text.end(), whole.begin(), whole.end()));
}

TEST(MaxEvidence, BoundsWhatIsKeptHoweverOftenTheContextChanges) {
  for (const std::size_t most : {0U, 10U, 500U}) {
    NgramOptions options;
    options.max_replaced = most;
    LentNgram<> drafter(options);
    drafter.begin(numbers(0, 300));
    for (Token i = 1; i < 40; ++i) {
      drafter.rebase(numbers(i * 1000, 300));
      EXPECT_LE(drafter.replaced_tokens(), most);
      EXPECT_EQ(drafter.index().tokens().size(), drafter.replaced_tokens() + 300);
    }
    EXPECT_EQ(drafter.replaced_tokens(), most);
    // The latest evidence stays.
    drafter.observe(numbers(38'000 + 292, 4), Origin::output);
    const Tokens drafted = tokens_of(drafter);
    const Tokens wanted = numbers(38'296, 4);
    EXPECT_EQ(drafted.size() >= 4 && std::equal(wanted.begin(), wanted.end(), drafted.begin()), most >= 10) << most;
  }
}

TEST(MaxBytes, DropTheEvidenceWhereThereIsNoRoomForBoth) {
  const Tokens text = numbers(0, 4000);
  NgramOptions options;
  options.max_bytes = 140'000;
  LentNgram<> drafter(options);
  drafter.begin(TokenSpan(text).first(3000));
  ASSERT_FALSE(drafter.exhausted());
  drafter.rebase(TokenSpan(text).last(3000));
  EXPECT_FALSE(drafter.exhausted());
  EXPECT_EQ(drafter.replaced_tokens(), 0U);
  LentNgram<> fresh(options);
  fresh.begin(TokenSpan(text).last(3000));
  expect_same_drafts(drafter, fresh);
}
TEST(MaxBytes, DropTheEvidenceWhereTheContextComesToNeedTheRoom) {
  const Tokens text = numbers(0, 8000);
  NgramOptions options;
  options.max_bytes = 140'000;
  LentNgram<> drafter(options);
  drafter.begin(TokenSpan(text).first(1500));
  drafter.rebase(TokenSpan(text).subspan(1500, 500));
  ASSERT_GT(drafter.replaced_tokens(), 1000U);
  std::size_t dropped_at = 0;
  for (std::size_t at = 2000; at < 4300; at += 100) {
    drafter.observe(TokenSpan(text).subspan(at, 100), Origin::output);
    ASSERT_FALSE(drafter.exhausted()) << at;
    if (drafter.replaced_tokens() == 0 && dropped_at == 0) dropped_at = at;
  }
  EXPECT_GT(dropped_at, 2200U);
  EXPECT_LE(drafter.index().memory_bytes(), options.max_bytes);
  const TokenSpan indexed = drafter.index().tokens();
  EXPECT_TRUE(std::equal(indexed.begin(), indexed.end(), text.begin() + 1500, text.begin() + 4300));
}

}  // namespace
}  // namespace reprise::ngram_rebase_test
