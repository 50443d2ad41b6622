// SPDX-License-Identifier: Apache-2.0
// NgramDrafter with rows that the target shows. ngram_digests.test.cpp covers the policy as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/any_strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "support/combined_world.hpp"
#include "support/ngram_world.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::ngram_shown_rows_test {
namespace {

using Nodes = std::vector<DraftNode>;
using testing::draft_of;
using testing::LentNgram;
using testing::Tokens;

constexpr DraftBudget tree = {.max_nodes = 32, .shape = DraftShape::tree};

LentNgram<> drafter_with(const NgramOptions& options, const Tokens& context) {
  LentNgram<> drafter(options);
  drafter.begin(context);
  return drafter;
}
/// Returns the index of the node at the end of this path, or nullopt if it is not drafted.
std::optional<NodeIndex> node_at(const Nodes& nodes, const Tokens& path) {
  NodeIndex at = anchor_parent;
  for (const Token token : path) {
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const DraftNode& n) { return n.parent == at && n.token == token; });
    if (node == nodes.end()) return std::nullopt;
    at = static_cast<NodeIndex>(node - nodes.begin());
  }
  return at;
}
/// Runs a round in which nothing is accepted and `pick` follows. `shown`: the ranking after the anchor.
void run_refused_round(LentNgram<>& drafter, Token pick, const Tokens& shown, const std::vector<NodeIndex>& sent = {}) {
  const Nodes nodes = draft_of(drafter, tree);
  std::vector<Outcome::RankedToken> rows;
  for (const Token token : shown) rows.push_back({anchor_parent, static_cast<std::uint16_t>(rows.size()), token});
  drafter.feedback({DraftView(nodes, DraftKind::ordered), sent, {}, pick, Cut::none, rows});
  drafter.observe(Tokens{pick});
}

// --- Drafts ---

TEST(NgramShownRows, ChangeNothingWhileNoneIsShown) {
  const Tokens text = testing::make_stream(testing::Stream::trace_like, 600, 3, 40);
  LentNgram<> with = drafter_with({}, {text.begin(), text.begin() + 20});
  LentNgram<> without = drafter_with({.top_k = 0}, {text.begin(), text.begin() + 20});
  LentNgram<> ignoring = without;
  for (std::size_t at = 20; at + 2 < text.size(); at += 2) {
    const Nodes nodes = draft_of(with, tree);
    ASSERT_TRUE(testing::same_nodes(nodes, draft_of(without, tree))) << at;
    ASSERT_TRUE(testing::same_nodes(nodes, draft_of(ignoring, tree))) << at;
    const std::vector<Outcome::RankedToken> rows = {{anchor_parent, 0, text[at]}, {anchor_parent, 1, 500}};
    const DraftView draft(nodes, DraftKind::ordered);
    with.feedback({draft, {}, {}, text[at], Cut::none, {}});
    without.feedback({draft, {}, {}, text[at], Cut::none, {}});
    ignoring.feedback({draft, {}, {}, text[at], Cut::none, rows});
    ignoring.learn_row(TokenSpan(text).first(at), Tokens{500});
    for (LentNgram<>* drafter : {&with, &without, &ignoring}) drafter->observe(TokenSpan(text).subspan(at, 2));
  }
  EXPECT_EQ(with.calibration(), without.calibration());
  EXPECT_EQ(with.memory_bytes(), without.memory_bytes());
  EXPECT_EQ(ignoring.calibration(), without.calibration());
  EXPECT_EQ(ignoring.memory_bytes(), without.memory_bytes()) << "rows that nobody asked for";
}

TEST(NgramShownRows, OfEarlierSequencesAreNotReadByADrafterThatWantsNone) {
  NextTokens table = NextTokens::make({.max_bytes = 4096, .rankings = true}).value();
  const NextTokens::RankedRow row{1, 2, Ranking(Tokens{50})};
  table.add(std::span(&row, 1));
  for (const std::size_t top_k : {std::size_t{0}, std::size_t{1}}) {
    LentNgram<> drafter = drafter_with({.next_tokens = &table, .top_k = top_k}, {9, 1, 2});
    EXPECT_EQ(node_at(draft_of(drafter, tree), {50}).has_value(), top_k != 0) << top_k;
  }
}

TEST(NgramShownRows, OfAPromptHaveNoEffectIfTheyAreEmpty) {
  LentNgram<> drafter = drafter_with({}, {90, 80, 1, 2});
  const std::size_t bytes = drafter.memory_bytes();
  drafter.learn_row({}, Tokens{50});
  drafter.learn_row(Tokens{2}, {});
  drafter.learn_row(Tokens{2}, Tokens{-1, -5});
  EXPECT_EQ(drafter.memory_bytes(), bytes);
  drafter.learn_row(Tokens{2}, Tokens{-1, 50, 50, 2'000'000'000, 4, 5, 6, 7, 8, 9, 10});
  EXPECT_TRUE(node_at(draft_of(drafter, tree), {50})) << "after one token";
  EXPECT_FALSE(node_at(draft_of(drafter, tree), {9})) << "at most eight are read";
}

TEST(NgramShownRows, AreCountedAsMemory) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{39}, std::size_t{4000}}) {
    LentNgram<> drafter = drafter_with({.row_bytes = bytes}, {90, 80, 1, 2});
    const std::size_t before = drafter.memory_bytes();
    run_refused_round(drafter, 3, {50});
    EXPECT_EQ(drafter.memory_bytes() - before, bytes / sizeof(NextTokens::RankedRow) * sizeof(NextTokens::RankedRow));
    drafter.learn_row(Tokens{1, 3}, Tokens{60});
    EXPECT_EQ(drafter.memory_bytes() - before, bytes / sizeof(NextTokens::RankedRow) * sizeof(NextTokens::RankedRow));
    EXPECT_EQ(drafter.strategy().rows().size(), bytes / sizeof(NextTokens::RankedRow));
  }
  LentNgram<> drafter = drafter_with({}, {90, 80, 1, 2});
  const std::size_t before = drafter.memory_bytes();
  drafter.learn_row(Tokens{1, 2}, Tokens{50});
  EXPECT_NEAR(static_cast<double>(drafter.memory_bytes() - before), 320.0 * 1024, 100);
}

/// Revealing with rebase().
class RebasedRevealing : public testing::Revealing<NgramDrafter<>> {
 public:
  using Revealing::Revealing;
  void rebase(TokenSpan before, TokenSpan context) { strategy().rebase(before, context); }
};
static_assert(RebasableStrategy<RebasedRevealing>);

TEST(NgramShownRows, KeepTheContractOfAStrategy) {
  for (const std::size_t bytes : {std::size_t{400}, std::size_t{320} << 10})
    for (const DraftShape shape : {DraftShape::tree, DraftShape::chain}) {
      const auto report = testing::check_strategy(
          [&] {
            return RebasedRevealing(NgramDrafter<>({.row_bytes = bytes}),
                                    testing::RankedText{.order = 2, .vocabulary = 6});
          },
          {.runs = 6, .budget = {.shape = shape}});
      EXPECT_TRUE(report.passed()) << report.to_string();
    }
}

TEST(NgramShownRows, SavePassesOfALosslessRun) {
  const auto saved = [](std::size_t top_k) {
    return testing::passes_saved_losslessly([&](TokenSpan) { return NgramDrafter<>({.top_k = top_k}); });
  };
  EXPECT_GT(saved(8), saved(0));
}

// --- top_k_wanted() ---

TEST(NgramShownRows, AreWantedAsLongAsNoneIsShown) {
  LentNgram<> drafter = drafter_with({}, {1, 2, 3});
  for (int i = 0; i < 600; ++i) run_refused_round(drafter, i % 7, {});
  EXPECT_EQ(drafter.strategy().top_k_wanted(), 8U);
}

TEST(NgramShownRows, AreNoLongerWantedAfter256RoundsWithoutUse) {
  LentNgram<> drafter = drafter_with({}, {1, 2, 3});
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(drafter.strategy().top_k_wanted(), 8U) << i;
    run_refused_round(drafter, 4 + i % 7, {500 + i % 5, 600});
  }
  EXPECT_EQ(drafter.strategy().top_k_wanted(), 0U);
  run_refused_round(drafter, 3, {});
  EXPECT_EQ(drafter.strategy().top_k_wanted(), 0U);
  LentNgram<> copy = drafter;
  copy.begin(Tokens{1, 2});
  EXPECT_EQ(copy.strategy().top_k_wanted(), 8U) << "a new sequence asks again";

  // A token that only a ranking predicts is sent.
  drafter.learn_row(drafter.context(), Tokens{700});
  const auto ranked = node_at(draft_of(drafter, tree), {700});
  ASSERT_TRUE(ranked);
  run_refused_round(drafter, 5, {}, {*ranked});
  EXPECT_EQ(drafter.strategy().top_k_wanted(), 8U);
}

TEST(NgramShownRows, AreUsedOnlyByTokensThatNoTextPredicts) {
  // 3 is predicted by the text and by the row; 60 by the row alone, although the text continues it.
  const Tokens context = {1, 2, 3, 60, 61, 62, 30, 31, 1, 2};
  for (const Token sent : {3, 60}) {
    LentNgram<> drafter = drafter_with({}, context);
    for (int i = 0; i < 256; ++i) run_refused_round(drafter, 2, {2});  // right, but nothing is sent
    ASSERT_EQ(drafter.strategy().top_k_wanted(), 0U);
    drafter.rebase(context);
    drafter.learn_row(Tokens{1, 2}, Tokens{60, 3});
    const Nodes nodes = draft_of(drafter, tree);
    const auto node = node_at(nodes, {sent});
    ASSERT_TRUE(node) << sent;
    run_refused_round(drafter, 40, {}, {*node});
    EXPECT_EQ(drafter.strategy().top_k_wanted(), sent == 60 ? 8U : 0U) << sent;
  }
}

// --- Combinators ---

template <class Strategy>
void expect_learns_rows(Strategy strategy, const NgramDrafter<>& (*inner)(const Strategy&)) {
  testing::Lent<Strategy> lent(std::move(strategy));
  const auto kept = [&] {
    const auto rows = inner(lent.strategy()).rows();
    return std::count_if(rows.begin(), rows.end(), [](const NextTokens::RankedRow& row) { return row.last == 2; });
  };
  lent.begin(Tokens{90, 1, 2});
  EXPECT_EQ(lent->top_k_wanted(), 8U);
  EXPECT_EQ(kept(), 0);
  lent->learn_row(lent.context(), Tokens{50});
  EXPECT_EQ(kept(), 2) << "after 2, and after 1 and 2";
  const testing::Drafted draft = lent.propose(tree);
  EXPECT_TRUE(node_at(draft.nodes, {50}));
  const std::vector<Outcome::RankedToken> rows = {{anchor_parent, 0, 51}};
  lent.feedback({draft.view(), {}, {}, 7, Cut::none, rows});
  lent.observe(Tokens{7, 1, 2});
  EXPECT_TRUE(node_at(lent.propose(tree).nodes, {51}));
}

TEST(NgramShownRows, PassThroughCombinators) {
  using Union = UnionDrafter<NgramDrafter<>, PromptLookupDrafter<>>;
  expect_learns_rows<Union>(Union(NgramDrafter<>(), PromptLookupDrafter<>()),
                            [](const Union& s) -> const NgramDrafter<>& { return s.member<0>(); });
  expect_learns_rows<AnyStrategy>(AnyStrategy(NgramDrafter<>()), [](const AnyStrategy& s) -> const NgramDrafter<>& {
    return *s.get<NgramDrafter<>>();
  });
  static_assert(RowLearner<Union>);
}

}  // namespace
}  // namespace reprise::ngram_shown_rows_test
