// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/lookahead_drafter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <vector>

#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise_testing/random.hpp"
#include "support/fails.hpp"
#include "support/ranked_checks.hpp"
#include "support/ranked_rounds.hpp"
#include "support/transformer_engine.hpp"

namespace reprise::lookahead_drafter_test {
namespace {

using testing::RankedRound;
using testing::RankedText;
using testing::run_round;
using Tokens = std::vector<Token>;

const Tokens prompt = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0};

using Lent = testing::Lent<LookaheadDrafter>;

std::vector<DraftNode> nodes_of(Lent& drafter, const DraftBudget& budget = {}) { return drafter.propose(budget).nodes; }
Lent begun(const LookaheadOptions& options = {}, const Tokens& context = prompt) {
  Lent drafter{LookaheadDrafter::make(options).value()};
  drafter.begin(context);
  return drafter;
}
class LookaheadSettings : public ::testing::TestWithParam<LookaheadOptions> {};
INSTANTIATE_TEST_SUITE_P(All, LookaheadSettings,
                         ::testing::Values(LookaheadOptions{}, LookaheadOptions{.window = 1, .ngram = 2},
                                           LookaheadOptions{.window = 7, .ngram = 5, .candidates = 7},
                                           LookaheadOptions{.window = 16, .ngram = 8, .candidates = 16}));

TEST_P(LookaheadSettings, KeepTheContractOfAStrategy) {
  testing::expect_contract_with_rows([] { return LookaheadDrafter::make(GetParam()).value(); }, {.max_nodes = 64});
}

// --- The lookahead branch ---

TEST(LookaheadDrafter, DraftsWhatItAlwaysDrafted) {
  const auto digest = [](const LookaheadOptions& options, bool all_rows) {
    const auto made = [&] { return Lent{LookaheadDrafter::make(options).value()}; };
    return testing::digest_of_rounds(made, {.max_nodes = 64}, 5, options.window, all_rows);
  };
  EXPECT_EQ(digest({}, true), 12693173700498161070U);
  EXPECT_EQ(digest({}, false), 8493953705278648045U);
  EXPECT_EQ(digest({.window = 1, .ngram = 2}, false), 10667793592776658572U);
  EXPECT_EQ(digest({.window = 7, .ngram = 5, .candidates = 1, .pool_ngrams = 20}, false), 14854827255627183541U);
  EXPECT_EQ(digest({.window = 16, .ngram = 8, .candidates = 16}, true), 11843873623672446465U);
}

// --- The verification branch ---

TEST(LookaheadDrafter, DraftsNgramsThatTheTargetCameUpWith) {
  // The last token determines the next, so every n-gram in the pool is right.
  const RankedText target{.order = 1, .vocabulary = 40};
  Lent drafter = begun();
  std::size_t rounds = 0;
  std::size_t accepted = 0;
  for (; drafter.context().size() < 300; ++rounds) accepted += run_round(drafter, target).accepted.size();
  EXPECT_GT(accepted, 2 * rounds);
}

TEST(LookaheadDrafter, DraftsNothingToCommitWhenTheTargetRevealedNothing) {
  Lent drafter = begun();
  for (int i = 0; i < 30; ++i)
    for (const DraftNode& node : run_round(drafter, RankedText{}, {.reveals = false}).nodes)
      EXPECT_TRUE(node.auxiliary);
}

// --- The value of the branch ---

TEST(LookaheadDrafter, StatesForAnAuxiliaryRowWhatItHasBeenWorth) {
  Lent drafter = begun();
  const Probability before = drafter->worth();
  for (const DraftNode& node : nodes_of(drafter)) EXPECT_EQ(node.path_probability, before);
  std::size_t rows = 0;
  std::size_t accepted = 0;
  for (int i = 0; i < 600; ++i) {
    const RankedRound round = run_round(drafter, RankedText{.order = 2, .vocabulary = 8});
    if (i < 300) continue;
    accepted += round.accepted.size();
    for (const DraftNode& node : round.nodes) rows += node.auxiliary ? 1 : 0;
  }
  const double measured = static_cast<double>(accepted) / static_cast<double>(rows);
  EXPECT_NEAR(drafter->worth().to_double(), measured, 0.25 * measured);

  Lent useless = begun();
  for (int i = 0; i < 200; ++i) run_round(useless, RankedText{.order = 5, .vocabulary = 5000});
  EXPECT_LT(useless->worth(), Probability::ratio(1, 50));
}

TEST(LookaheadDrafter, StopsSendingAuxiliaryRowsToThoseWhoRevealNothing) {
  Lent drafter = begun();
  for (int i = 0; i < 3; ++i) run_round(drafter, RankedText{}, {.most_sent = 0, .reveals = false});
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(run_round(drafter, RankedText{}, {.reveals = false}).nodes.empty());
  EXPECT_TRUE(nodes_of(drafter).empty());
  drafter.begin(prompt);
  EXPECT_FALSE(nodes_of(drafter).empty());
}

// --- Every setting has an effect ---

TEST(LookaheadOptions, PoolNgramsBoundsWhatIsRemembered) {
  const auto accepted = [](std::size_t ngrams) {
    Lent drafter = begun({.pool_ngrams = ngrams});
    const std::size_t bytes = drafter->memory_bytes();
    std::size_t sum = 0;
    for (int i = 0; i < 300; ++i) sum += run_round(drafter, RankedText{.vocabulary = 300}).accepted.size();
    EXPECT_EQ(drafter->memory_bytes(), bytes) << "nothing grows with the context";
    return sum;
  };
  EXPECT_GT(accepted(2048), accepted(5));
}

TEST(LookaheadOptions, MinPathProbabilityLeavesOutWhatIsUnlikely) {
  Lent drafter = begun({.min_path_probability = Probability::ratio(1, 4)});
  EXPECT_TRUE(nodes_of(drafter).empty()) << "a row is worth an eighth at first";
  Lent usual = begun();
  EXPECT_TRUE(nodes_of(usual, {.min_path_probability = Probability::ratio(1, 4)}).empty());
  EXPECT_FALSE(nodes_of(usual).empty());
}

TEST(LookaheadOptions, KeyDecidesOnTheFirstGuesses) {
  Lent one = begun({.window = 16, .key = 1});
  Lent two = begun({.window = 16, .key = 2});
  const auto a = nodes_of(one);
  const auto b = nodes_of(two);
  EXPECT_FALSE(std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](const DraftNode& x, const DraftNode& y) { return x.token == y.token; }));
}

TEST(LookaheadOptions, ThatCannotWorkAreRefused) {
  const auto make = [](const LookaheadOptions& options) { return LookaheadDrafter::make(options); };
  const char* const window = "window has to be between 1 and 16";
  EXPECT_THAT(make({.window = 0}), testing::refuses(0, 1, window));
  EXPECT_THAT(make({.window = 17}), testing::refuses(17, 16, window));
  const char* const ngram = "ngram has to be between 2 and 8";
  EXPECT_THAT(make({.ngram = 1}), testing::refuses(1, 2, ngram));
  EXPECT_THAT(make({.ngram = 9}), testing::refuses(9, 8, ngram));
  const char* const candidates = "candidates has to be between 1 and 16";
  EXPECT_THAT(make({.candidates = 0}), testing::refuses(0, 1, candidates));
  EXPECT_THAT(make({.candidates = 17}), testing::refuses(17, 16, candidates));
  EXPECT_THAT(make({.pool_ngrams = 4}), testing::refuses(4, 5, "pool_ngrams has no room"));
  for (const std::size_t ways : {1U, 5U, 16U}) {
    const std::size_t most = ways << 24;
    EXPECT_TRUE(make({.candidates = ways, .pool_ngrams = most}));
    for (const std::size_t above : {most + 1, unlimited})
      EXPECT_THAT(make({.candidates = ways, .pool_ngrams = above}),
                  testing::refuses(above, most, "pool_ngrams is above the limit"));
  }
}

TEST(LookaheadOptions, MayBeAtTheirLimits) {
  for (const LookaheadOptions& options :
       {LookaheadOptions{.window = 1}, LookaheadOptions{.window = 16}, LookaheadOptions{.ngram = 2},
        LookaheadOptions{.ngram = 8}, LookaheadOptions{.candidates = 1}, LookaheadOptions{.candidates = 16},
        LookaheadOptions{.pool_ngrams = 5}, LookaheadOptions{.candidates = 1, .pool_ngrams = 1}}) {
    ASSERT_TRUE(LookaheadDrafter::make(options));
    Lent drafter = begun(options);
    for (int i = 0; i < 50; ++i) run_round(drafter, RankedText{});
  }
}

TEST(LookaheadDrafter, HasADefaultThatMakeGivesToo) {
  const auto made = LookaheadDrafter::make();
  ASSERT_TRUE(made);
  Lent one{LookaheadDrafter()};
  Lent two{*made};
  for (Lent* drafter : {&one, &two}) drafter->begin(prompt);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run_round(one, RankedText{}).accepted, run_round(two, RankedText{}).accepted);
  EXPECT_EQ(one->memory_bytes(), two->memory_bytes());
  EXPECT_EQ(made->options().window, LookaheadOptions().window);
}
static_assert(!std::constructible_from<LookaheadDrafter, LookaheadOptions>, "settings can be refused");

TEST(LookaheadDrafter, TakesTokensOfAnyValue) {
  constexpr Token lowest = 0;  // negative ids are placeholders, which are not drafted
  constexpr Token highest = std::numeric_limits<Token>::max();
  Lent drafter = begun({}, {lowest, highest, 1});
  for (int i = 0; i < 20; ++i) {
    const auto nodes = nodes_of(drafter);
    std::vector<Outcome::RankedToken> revealed;
    std::vector<NodeIndex> sent;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      sent.push_back(static_cast<NodeIndex>(node));
      revealed.push_back({static_cast<NodeIndex>(node), 0, node % 2 == 0 ? lowest : highest});
    }
    revealed.push_back({NodeIndex{1000}, 0, 1});
    revealed.push_back({NodeIndex{-7}, 0, 1});
    drafter.feedback({DraftView(nodes, DraftKind::ordered), sent, {}, highest, Cut::none, revealed});
    drafter.observe(Tokens{highest, lowest}, Origin::output);
  }
  EXPECT_FALSE(nodes_of(drafter).empty());
}

// --- On a transformer ---

TEST(LookaheadDrafter, CostsALosslessRunOfATransformerNoToken) {
  for (const LookaheadOptions& options : {LookaheadOptions{}, LookaheadOptions{.window = 7, .ngram = 3}})
    testing::expect_lossless_on_transformer(LookaheadDrafter::make(options).value());
}

/// Records the outcomes that the session passes to the strategy.
struct Watched : LookaheadDrafter {
  void feedback(TokenSpan context, const Outcome& outcome) noexcept {
    for (const NodeIndex node : outcome.accepted)
      auxiliary_committed += outcome.draft[static_cast<std::size_t>(node)].auxiliary ? 1 : 0;
    for (const NodeIndex node : outcome.sent)
      auxiliary_sent += outcome.draft[static_cast<std::size_t>(node)].auxiliary ? 1 : 0;
    for (const Outcome::RankedToken& candidate : outcome.top_k) {
      // The model's token after that row, computed without the tree.
      const auto text = testing::behind(context, outcome.draft, candidate.after);
      testing::TransformerEngine alone(*model, text);
      wrong += alone.verify(TokenSpan(text).last(1), 0)[0] == candidate.token ? 0 : 1;
    }
    LookaheadDrafter::feedback(context, outcome);
  }
  const testing::Transformer* model = nullptr;
  std::size_t auxiliary_committed = 0;
  std::size_t auxiliary_sent = 0;
  std::size_t wrong = 0;
};

TEST(LookaheadDrafter, HasItsBranchSeenByAttentionAsATreeOfItsOwn) {
  const testing::Transformer model;
  Session<Watched> session{Watched()};
  session.strategy().model = &model;
  testing::TransformerEngine engine(model, prompt);
  ASSERT_TRUE(generate(session, engine, prompt, Limits{.max_tokens = 40}));
  EXPECT_GT(session.strategy().auxiliary_sent, 100U);
  EXPECT_EQ(session.strategy().auxiliary_committed, 0U);
  EXPECT_EQ(session.strategy().wrong, 0U);
}

}  // namespace
}  // namespace reprise::lookahead_drafter_test
