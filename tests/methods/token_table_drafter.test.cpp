// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/token_table_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/any_strategy.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/random.hpp"
#include "support/lent_context.hpp"
#include "support/streams.hpp"

namespace reprise::token_table_drafter_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Random;
using Tokens = std::vector<Token>;
using Options = TokenTableDrafterOptions;

static_assert(DraftStrategy<TokenTableDrafter> && RebasableStrategy<TokenTableDrafter>);

TokenTable table_of(std::uint32_t ngram, const Tokens& text = {}) {
  TokenTable table = TokenTable::make({.ngram = ngram, .bytes = std::size_t{1} << 18}).value();
  table.learn(text);
  return table;
}

using testing::Drafted;
using Lent = testing::Lent<TokenTableDrafter>;

Drafted drafted_by(Lent& drafter, const DraftBudget& budget = {.max_nodes = 64}) { return drafter.propose(budget); }
Tokens tokens_of(Lent& drafter, const DraftBudget& budget = {.max_nodes = 64}) {
  return drafted_by(drafter, budget).tokens();
}
Lent lent(const TokenTable* table, const Options& options = {}) { return Lent(TokenTableDrafter(table, options)); }
Drafted drafted(const TokenTable& table, const Tokens& context, const Options& options = {},
                const DraftBudget& budget = {.max_nodes = 64}) {
  Lent drafter = lent(&table, options);
  drafter.begin(context);
  return drafted_by(drafter, budget);
}

/// A round that sends the whole draft. Its first `accepted` tokens are right; then the target picks another token.
void round(Lent& drafter, std::size_t accepted) {
  const Drafted draft = drafted_by(drafter);
  std::vector<NodeIndex> path;
  for (std::size_t i = 0; i < draft.nodes.size(); ++i) path.push_back(static_cast<NodeIndex>(i));
  const Cut cut = !draft.nodes.empty() ? Cut::none
                  : draft.left_out     ? Cut::unlikely
                  : draft.held_back    ? Cut::throttled
                                       : Cut::no_match;
  drafter.feedback({{draft.nodes, DraftKind::ordered},
                    path,
                    std::span(path).first(std::min(accepted, path.size())),
                    Token{-5},
                    cut,
                    {}});
}

TEST(TokenTableDrafter, DraftsNothingWithoutATableOrAContextOfItsLength) {
  Lent none = lent(nullptr);
  none.begin(Tokens{1, 2, 3});
  EXPECT_THAT(tokens_of(none), IsEmpty());
  const TokenTable table = table_of(3, {1, 2, 3, 4});
  Lent not_begun = lent(&table);
  EXPECT_THAT(tokens_of(not_begun), IsEmpty());
  EXPECT_THAT(drafted(table, {2, 3}).tokens(), IsEmpty());
  EXPECT_THAT(drafted(table, {1, 2, 3}).tokens(), ElementsAre(4));
}

TEST(TokenTableDrafter, GoesOnForeverInACycleUpToItsLength) {
  const TokenTable table = table_of(1, {1, 2, 1});
  EXPECT_EQ(drafted(table, {1}).nodes.size(), Options{}.max_draft);
  EXPECT_THAT(drafted(table, {1}, {.max_draft = 3}).tokens(), ElementsAre(2, 1, 2));
  EXPECT_THAT(drafted(table, {1}, {}, {.max_nodes = 2}).tokens(), ElementsAre(2, 1));
  EXPECT_THAT(drafted(table, {1}, {}, {.max_nodes = 9, .max_depth = 1}).tokens(), ElementsAre(2));
  EXPECT_THAT(drafted(table, {1}, {}, {.max_nodes = 0}).tokens(), IsEmpty());
  Lent drafter = lent(&table);
  drafter.begin(Tokens{1});
  EXPECT_EQ(drafter.propose({}, 2).nodes.size(), 2U) << "as much as there is room for";
}

TEST(TokenTableDrafter, JudgesChainsByWhatTheTableKnowsAndNotByWhatIsSent) {
  const TokenTable table = table_of(2, {1, 2, 3, 4, 5});
  for (const std::size_t room : {1U, 2U, 3U, 9U}) {
    const std::size_t sent = std::min<std::size_t>(room, 3);
    EXPECT_EQ(drafted(table, {1, 2}, {.min_draft = 3}, {.max_nodes = room}).nodes.size(), sent);
    const Drafted none = drafted(table, {1, 2}, {.min_draft = 4}, {.max_nodes = room});
    EXPECT_THAT(none.nodes, IsEmpty()) << room;
    EXPECT_TRUE(none.left_out) << room;
  }
  EXPECT_THAT(drafted(table, {1, 2}, {.min_draft = 4, .max_draft = 2}).tokens(), ElementsAre(3, 4))
      << "nothing knows more than max_draft";
  DraftBudget unlikely{.max_nodes = 64};
  unlikely.min_path_probability = Probability::ratio(7, 10);
  EXPECT_THAT(drafted(table, {1, 2}, {.min_draft = 3}, unlikely).tokens(), ElementsAre(3, 4)) << "7/8 each";
  EXPECT_THAT(drafted(table, {1, 2}, {.min_draft = 4}, unlikely).tokens(), IsEmpty());
}

TEST(TokenTableDrafter, AgreesWithAMapThatIsAskedAgainAndAgain) {
  Random random(5);
  for (int i = 0; i < 300; ++i) {
    const std::size_t n = 1 + random.below(5);
    const Tokens text = testing::make_stream(testing::Stream::trace_like, 200, random.next(), 3 + random.below(20));
    const TokenTable table = table_of(static_cast<std::uint32_t>(n), text);
    std::map<Tokens, Token> map;
    for (std::size_t k = n; k < text.size(); ++k)
      map[{text.begin() + static_cast<std::ptrdiff_t>(k - n), text.begin() + static_cast<std::ptrdiff_t>(k)}] = text[k];
    const std::size_t at = random.below(text.size());
    Tokens context(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at));
    Tokens expected;
    for (Tokens chain = context; chain.size() >= n && expected.size() < 40;) {
      const auto found = map.find({chain.end() - static_cast<std::ptrdiff_t>(n), chain.end()});
      if (found == map.end()) break;
      expected.push_back(found->second);
      chain.push_back(found->second);
    }
    const Drafted draft = drafted(table, context, {.max_draft = 40});
    ASSERT_EQ(draft.tokens(), expected);
    for (std::size_t k = 0; k < draft.nodes.size(); ++k) {
      ASSERT_EQ(draft.nodes[k].parent, static_cast<NodeIndex>(k) - 1);
      ASSERT_EQ(draft.nodes[k].source, DraftSource::store);
      ASSERT_EQ(draft.nodes[k].match_length, n);
    }
  }
}

TEST(TokenTableDrafter, KeepsTheContractOfStrategies) {
  const TokenTable table = table_of(2, testing::make_stream(testing::Stream::random_small, 400, 1));
  for (const bool without_anchor : {false, true}) {
    const Options options{.min_draft = 2, .without_anchor = without_anchor, .poor_rounds = 2, .rest_rounds = 3};
    const testing::Report report = testing::check_strategy([&] { return TokenTableDrafter(&table, options); });
    EXPECT_EQ(report.verdict(), testing::Verdict::exact) << report.to_string();
  }
  const testing::Report erased = testing::check_strategy([&] { return AnyStrategy(TokenTableDrafter(&table)); });
  EXPECT_EQ(erased.verdict(), testing::Verdict::exact) << erased.to_string();
}

TEST(TokenTableDrafter, HoldsNoMemoryOfItsOwn) {
  TokenTable table = table_of(2);
  Lent drafter = lent(&table, {.learn_into = &table});
  drafter.begin(Tokens(10'000, 1));
  drafter.observe(Tokens(10'000, 2), Origin::output);
  EXPECT_EQ(drafter->memory_bytes(), 0U);
}

// --- Writing ---

TEST(TokenTableDrafter, OnlyReadsUnlessItIsTold) {
  TokenTable table = table_of(2);
  Lent drafter = lent(&table);
  drafter.begin(Tokens{1, 2, 3, 4, 1, 2});
  drafter.observe(Tokens{3, 4, 1, 2}, Origin::output);
  EXPECT_EQ(table.size(), 0U);
  EXPECT_THAT(tokens_of(drafter), IsEmpty());
  // The caller writes at any time, and the drafter drafts its tokens at once.
  table.learn(Tokens{1, 2, 3, 4});
  EXPECT_THAT(tokens_of(drafter), ElementsAre(3, 4));
}

TEST(TokenTableDrafter, LearnsWhatReplacesTruncatedTokens) {
  TokenTable table = table_of(2);
  Lent writer = lent(&table, {.learn_into = &table});
  writer.begin(Tokens{1, 2, 3, 4, 5});
  writer.truncate(3);
  writer.observe(Tokens{7, 8}, Origin::output);
  EXPECT_THAT(drafted(table, {1, 2}).tokens(), ElementsAre(3, 7, 8));
  EXPECT_THAT(drafted(table, {3, 4}).tokens(), ElementsAre(5)) << "what was learned stays";
  writer.truncate(0);
  writer.observe(Tokens{1, 2, 9}, Origin::prompt);
  EXPECT_THAT(drafted(table, {1, 2}).tokens(), ElementsAre(9));
}

TEST(TokenTableDrafter, LearnsTheTokensThatARebasedContextHasOfItsOwn) {
  TokenTable table = table_of(2);
  Lent writer = lent(&table, {.learn_into = &table});
  writer.begin(Tokens{1, 2, 3, 4, 5});
  writer.rebase(Tokens{1, 2, 3, 4, 5});
  EXPECT_EQ(table.counts(), (TokenTable::Counts{.added = 3})) << "nothing is new";
  writer.rebase(Tokens{1, 2, 3, 7, 8});
  EXPECT_EQ(table.counts(), (TokenTable::Counts{.added = 4, .changed = 1}));
  EXPECT_THAT(drafted(table, {1, 2}).tokens(), ElementsAre(3, 7, 8));
}

// --- Bad streaks ---

/// Rounds of a drafter that rests for four rounds after three poor ones: `p` a poor round, `g` a good one, `h` half a
/// draft accepted, `n` nobody asks, `0` nothing to draft, `b` the next sequence begins.
struct Streak {
  const char* rounds;
  const char* rests;  ///< before each round and after the last: `r` if the drafter rests
  Probability poor_share = Options{}.poor_share;
};
const std::vector<Streak> streaks = {
    {"pppppppp", "...rrrr.r"},  // after a rest one poor round is enough
    {"pppnnnn", "...rrrr."},
    {"ppgppgppgppg", "............."},
    {"000000000", ".........."},
    {"pppbpp", "...r..."},
    {"ggg", "...r", Probability::ratio(1, 2)},  // one of four tokens
    {"hhh", "....", Probability::ratio(1, 2)},
};

TEST(TokenTableDrafter, RestsAfterPoorRounds) {
  const TokenTable table = table_of(2, {1, 2, 3, 4, 5, 6});
  for (const Streak& streak : streaks) {
    Lent drafter = lent(&table, {.poor_rounds = 3, .poor_share = streak.poor_share, .rest_rounds = 4});
    drafter.begin(Tokens{1, 2});
    std::string rests;
    for (const char* next = streak.rounds;; ++next) {
      const Drafted draft = drafted_by(drafter);
      EXPECT_EQ(draft.nodes.size(), draft.held_back ? 0U : 4U) << streak.rounds;
      rests += draft.held_back ? 'r' : '.';
      if (*next == '\0') break;
      if (*next == 'p' || *next == 'g' || *next == 'h') round(drafter, *next == 'p' ? 0 : *next == 'g' ? 1 : 2);
      if (*next == 'n') drafter.feedback({{}, {}, {}, Token{7}, Cut::budget, {}});
      if (*next == '0') drafter.feedback({{}, {}, {}, Token{7}, Cut::no_match, {}});
      if (*next == 'b') drafter.begin(Tokens{1, 2});
    }
    EXPECT_EQ(rests, streak.rests) << streak.rounds;
  }
}

// --- Probabilities ---

TEST(TokenTableDrafterProbabilities, AreLearnedFromWhatTheTargetPicks) {
  const TokenTable table = table_of(2, {1, 2, 3, 4, 5, 6, 7, 8});
  for (const std::size_t right : {0U, 1U, 2U, 6U}) {
    Lent drafter = lent(&table, {.poor_rounds = 0});
    drafter.begin(Tokens{1, 2});
    for (int i = 0; i < 500; ++i) round(drafter, right);
    const Drafted draft = drafted_by(drafter);
    const DraftView view(draft.nodes, DraftKind::ordered);
    for (std::size_t i = 0; i < view.size(); ++i) {
      const double p = conditional_probability(view, i).to_double();
      if (i >= 3) continue;  // all deeper tokens share one rate
      if (i < right) {
        EXPECT_GT(p, 0.95) << right << " " << i;
      } else if (i == right) {
        EXPECT_LT(p, 0.05) << right << " " << i;
      }
    }
  }
}
TEST(TokenTableDrafterProbabilities, EndADraftWhereTheBudgetSays) {
  const TokenTable table = table_of(2, {1, 2, 3, 4, 5, 6});
  DraftBudget budget{.max_nodes = 64};
  budget.min_path_probability = Probability::one();
  EXPECT_THAT(drafted(table, {1, 2}, {}, budget).tokens(), IsEmpty());
  EXPECT_TRUE(drafted(table, {1, 2}, {}, budget).left_out);
}

}  // namespace
}  // namespace reprise::token_table_drafter_test
