// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/token_recycling_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <limits>
#include <vector>

#include "support/fails.hpp"
#include "support/ranked_checks.hpp"
#include "support/ranked_rounds.hpp"
#include "support/transformer_engine.hpp"

namespace reprise::token_recycling_drafter_test {
namespace {

using ::testing::ElementsAre;
using testing::row_of;
using testing::show_row;
using Tokens = std::vector<Token>;

const Tokens prompt = {1, 2, 3, 4, 5};

using Lent = testing::Lent<TokenRecyclingDrafter>;

std::vector<DraftNode> nodes_of(Lent& drafter, const DraftBudget& budget = {}) { return drafter.propose(budget).nodes; }
Lent begun(const TokenRecyclingOptions& options = {}, const Tokens& context = prompt) {
  Lent drafter{TokenRecyclingDrafter::make(options).value()};
  drafter.begin(context);
  return drafter;
}

TEST(TokenRecyclingDrafter, KeepsTheContractOfAStrategy) {
  for (const std::size_t k : {1U, 3U, 16U})
    testing::expect_contract_with_rows([&] { return TokenRecyclingDrafter::make({.candidates = k}).value(); },
                                       {.max_nodes = 64});
}

TEST(TokenRecyclingDrafter, DraftsWhatItAlwaysDrafted) {
  const auto digest = [](const TokenRecyclingOptions& options, bool all_rows) {
    const auto made = [&] { return Lent{TokenRecyclingDrafter::make(options).value()}; };
    return testing::digest_of_rounds(made, {.max_nodes = 64}, 5, options.candidates, all_rows);
  };
  EXPECT_EQ(digest({}, true), 18221038208394282311U);
  EXPECT_EQ(digest({}, false), 6453176694821323685U);
  EXPECT_EQ(digest({.candidates = 2}, false), 3973822661034834427U);
  EXPECT_EQ(digest({.candidates = 16, .vocabulary = 100}, true), 12436094543170836373U);
}

// --- Every setting has an effect ---

TEST(TokenRecyclingOptions, CandidatesIsHowManyAreRememberedAndWanted) {
  for (const std::size_t k : {1U, 2U, 16U}) {
    Lent drafter = begun({.candidates = k});
    EXPECT_EQ(drafter->top_k_wanted(), k);
    Tokens many(20);
    for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<Token>(i);
    show_row(drafter, many, 5);
    EXPECT_EQ(row_of(drafter, 5).size(), k);
  }
}

TEST(TokenRecyclingOptions, ThatCannotWorkAreRefused) {
  for (const std::size_t k : {std::size_t{0}, std::size_t{17}, unlimited}) {
    EXPECT_THAT(TokenRecyclingDrafter::make({.candidates = k}),
                testing::refuses(k, k == 0 ? 1U : 16U, "candidates has to be between 1 and 16"))
        << k;
  }
  for (const std::size_t k : {1U, 16U}) EXPECT_TRUE(TokenRecyclingDrafter::make({.candidates = k})) << k;
}

TEST(TokenRecyclingDrafter, HasADefaultThatMakeGivesToo) {
  const auto made = TokenRecyclingDrafter::make();
  ASSERT_TRUE(made);
  const TokenRecyclingDrafter by_default;
  EXPECT_EQ(made->options().candidates, by_default.options().candidates);
  EXPECT_EQ(made->options().vocabulary, by_default.options().vocabulary);
  EXPECT_EQ(made->options().max_bytes, by_default.options().max_bytes);
  EXPECT_EQ(made->options().min_path_probability, by_default.options().min_path_probability);
}
static_assert(!std::constructible_from<TokenRecyclingDrafter, TokenRecyclingOptions>, "settings can be refused");

TEST(TokenRecyclingOptions, VocabularyIsWhatThereIsRoomForFromTheStart) {
  EXPECT_LT(begun()->rows(), 100U);
  Lent drafter = begun({.candidates = 8, .vocabulary = 32000});
  EXPECT_EQ(drafter->rows(), 32000U);
  EXPECT_NEAR(static_cast<double>(drafter->memory_bytes()), 32000.0 * 33, 200);
}

TEST(TokenRecyclingOptions, MaxBytesIsACeiling) {
  Lent drafter = begun({.candidates = 8, .vocabulary = 32000, .max_bytes = 33 * 100});
  EXPECT_EQ(drafter->rows(), 100U);
  drafter.observe(Tokens{99}, Origin::prompt);
  show_row(drafter, {1}, 100);
  EXPECT_THAT(row_of(drafter, 99), ElementsAre(1));
  show_row(drafter, {1}, 1);
  EXPECT_TRUE(row_of(drafter, 100).empty()) << "there is no room for it";
  EXPECT_LE(drafter->memory_bytes(), 33U * 100 + 400);
}

TEST(TokenRecyclingOptions, MinPathProbabilityLeavesOutWhatIsUnlikely) {
  Lent drafter = begun({.min_path_probability = Probability::ratio(1, 3)});
  show_row(drafter, {5, 6, 7}, 5);
  Lent usual = begun();
  show_row(usual, {5, 6, 7}, 5);
  EXPECT_EQ(nodes_of(drafter).size(), 1U);
  EXPECT_GT(nodes_of(usual).size(), 3U);
  EXPECT_EQ(nodes_of(usual, {.min_path_probability = Probability::ratio(1, 3)}).size(), 1U);
  const testing::Drafted none = usual.propose({.min_path_probability = Probability::one()}, 4);
  EXPECT_TRUE(none.nodes.empty() && none.left_out);
}

TEST(TokenRecyclingDrafter, GrowsWithTheHighestTokenThatItMeets) {
  Lent drafter = begun();
  drafter.observe(Tokens{5000}, Origin::output);
  EXPECT_GE(drafter->rows(), 5001U);
  EXPECT_LE(drafter->memory_bytes(), 6500U * 33);
  // A token that is only in a draft counts too.
  show_row(drafter, {20000}, 5000);
  const auto nodes = nodes_of(drafter);
  ASSERT_EQ(nodes[0].token, 20000);
  const NodeIndex sent = 0;
  const Outcome::RankedToken revealed[] = {{0, 0, 7}};
  drafter.feedback({DraftView(nodes, DraftKind::ordered), {&sent, 1}, {}, 5000, Cut::none, revealed});
  drafter.observe(Tokens{5000}, Origin::output);
  EXPECT_GE(drafter->rows(), 20001U);
}

TEST(TokenRecyclingDrafter, KeepsNoCopyOfTheContext) {
  Lent drafter = begun({.vocabulary = 100});
  const std::size_t bytes = drafter->memory_bytes();
  drafter.observe(Tokens(10'000, 7), Origin::output);
  EXPECT_EQ(drafter->memory_bytes(), bytes);
}

TEST(TokenRecyclingDrafter, TakesTokensOfAnyValue) {
  testing::expect_any_token_is_taken(Lent(), {std::numeric_limits<Token>::min(), std::numeric_limits<Token>::max(), -1},
                                     {});
}

// --- On a transformer ---

TEST(TokenRecyclingDrafter, CostsALosslessRunOfATransformerNoToken) {
  testing::expect_lossless_on_transformer(TokenRecyclingDrafter());
}

}  // namespace
}  // namespace reprise::token_recycling_drafter_test
