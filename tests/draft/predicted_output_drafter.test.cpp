// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/predicted_output_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "support/combined_world.hpp"

namespace reprise::testing::predicted_output_drafter_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Not;

/// `size` different tokens from `first` on.
Tokens counting(Token first, std::size_t size) {
  Tokens tokens;
  for (std::size_t i = 0; i < size; ++i) tokens.push_back(first + static_cast<Token>(i));
  return tokens;
}
Tokens random_text(std::size_t size, std::uint64_t seed, std::size_t vocabulary = 40) {
  Random random(mix(seed));
  Tokens tokens;
  while (tokens.size() < size) tokens.push_back(static_cast<Token>(random.below(vocabulary)));
  return tokens;
}
using LentReference = Lent<PredictedOutputDrafter>;
Nodes drafted_by(LentReference& strategy, const DraftBudget& budget = {}) {
  return strategy.propose(budget, 256).nodes;
}
LentReference predicting(const Tokens& output, const PredictedOutputOptions& options = {}) {
  PredictedOutputDrafter strategy(options);
  EXPECT_TRUE(strategy.predict(output));
  return LentReference(std::move(strategy));
}
constexpr DraftBudget chain = {.max_nodes = 8, .shape = DraftShape::chain};
Tokens chain_of(LentReference& strategy, std::size_t nodes = 4) {
  return tokens_of(drafted_by(strategy, {.max_nodes = nodes, .shape = DraftShape::chain}));
}
/// The tokens that may come next, over all paths.
Tokens next_of(LentReference& strategy) {
  Tokens tokens;
  for (const DraftNode& node : drafted_by(strategy, {.max_nodes = 64}))
    if (node.parent == anchor_parent) tokens.push_back(node.token);
  return tokens;
}

/// Decodes `output` after `prompt` and counts passes.
template <class Strategy>
std::size_t passes(Lent<Strategy> strategy, const Tokens& prompt, const Tokens& output, const DraftBudget& budget) {
  strategy.begin(prompt);
  std::size_t count = 0;
  for (std::size_t at = 0; at < output.size(); ++count) {
    const Nodes nodes = strategy.propose(budget, 256).nodes;
    std::vector<NodeIndex> sent;
    std::vector<NodeIndex> accepted;
    NodeIndex last = anchor_parent;
    std::size_t next = at;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      sent.push_back(static_cast<NodeIndex>(i));
      if (nodes[i].parent != last || next == output.size() || nodes[i].token != output[next]) continue;
      accepted.push_back(last = static_cast<NodeIndex>(i));
      ++next;
    }
    Outcome outcome{.draft = {nodes, DraftKind::ordered},
                    .sent = sent,
                    .accepted = accepted,
                    .pick = {},
                    .cut = Cut::none,
                    .top_k = {}};
    if (next < output.size()) outcome.pick = output[next++];
    strategy.feedback(outcome);
    strategy.observe(TokenSpan(output).subspan(at, next - at), Origin::output);
    at = next;
  }
  return count;
}

TEST(PredictedOutputDrafter, FollowsAPredictionFromItsBeginning) {
  LentReference strategy = predicting(counting(100, 50));
  strategy.begin(Tokens{1, 2, 3});
  EXPECT_THAT(chain_of(strategy), ElementsAre(100, 101, 102, 103));
  strategy.observe(Tokens{100, 101}, Origin::output);
  const Nodes nodes = drafted_by(strategy, chain);
  EXPECT_THAT(tokens_of(nodes), ElementsAreArray(counting(102, 8)));
  EXPECT_EQ(nodes[0].source, DraftSource::predicted_output);
  EXPECT_EQ(nodes[0].match_length, 2);
}
TEST(PredictedOutputDrafter, ExpectsAPredictionAgainAfterEachPrompt) {
  LentReference strategy = predicting(counting(100, 50));
  strategy.begin(Tokens{1, 2, 3});
  strategy.observe(counting(100, 20), Origin::output);
  strategy.observe(Tokens{7, 8}, Origin::prompt);
  EXPECT_THAT(chain_of(strategy), ElementsAre(100, 101, 102, 103));
}
TEST(PredictedOutputDrafter, WaitsForADocumentToBeQuoted) {
  LentReference strategy;
  ASSERT_TRUE(strategy->add_reference(counting(100, 50)));
  strategy.begin(Tokens{1, 2, 3});
  EXPECT_THAT(chain_of(strategy), IsEmpty());
  strategy.observe(Tokens{120}, Origin::output);
  EXPECT_THAT(chain_of(strategy), IsEmpty()) << "one token is too little";
  strategy.observe(Tokens{121}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(122, 123, 124, 125));
  strategy.begin(Tokens{1, 110, 111});
  EXPECT_THAT(chain_of(strategy), ElementsAre(112, 113, 114, 115)) << "a prompt that ends in a quotation";
}
TEST(PredictedOutputDrafter, GoesOnBehindATokenThatWasReplaced) {
  LentReference strategy = predicting(counting(100, 50));
  strategy.begin(Tokens{1});
  strategy.observe(counting(100, 10), Origin::output);
  strategy.observe(Tokens{7}, Origin::output);  // replaces 110
  EXPECT_THAT(next_of(strategy), Contains(111));
  strategy.observe(Tokens{111}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(112, 113, 114, 115));
}
TEST(PredictedOutputDrafter, GoesOnWhereSomethingWasInserted) {
  LentReference strategy = predicting(counting(100, 50));
  strategy.begin(Tokens{1});
  strategy.observe(counting(100, 10), Origin::output);
  strategy.observe(Tokens{7}, Origin::output);
  EXPECT_THAT(next_of(strategy), Contains(110));
  strategy.observe(Tokens{8, 9, 10, 11, 12, 110}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(111, 112, 113, 114)) << "also behind many";
}
TEST(PredictedOutputDrafter, GoesOnWhereSomethingWasLeftOut) {
  LentReference strategy = predicting(counting(100, 400));
  strategy.begin(Tokens{1});
  strategy.observe(counting(100, 10), Origin::output);
  strategy.observe(Tokens{115}, Origin::output);
  EXPECT_THAT(next_of(strategy), Contains(116)) << "five tokens";
  strategy.observe(Tokens{116}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(117, 118, 119, 120));
  strategy.observe(counting(117, 10), Origin::output);
  strategy.observe(Tokens{226}, Origin::output);
  EXPECT_THAT(next_of(strategy), Contains(227)) << "a hundred";
  strategy.observe(Tokens{227}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(228, 229, 230, 231));
  strategy.observe(counting(228, 10), Origin::output);
  strategy.observe(Tokens{150}, Origin::output);
  EXPECT_THAT(chain_of(strategy), Not(Contains(151))) << "too far back for one token";
  strategy.observe(Tokens{151}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(152, 153, 154, 155));
}
TEST(PredictedOutputDrafter, PrefersThePlaceNearby) {
  // 5 6 occurs in the middle and at the end of the reference. The output left the reference shortly before the first
  // one.
  Tokens reference = counting(100, 30);
  reference.insert(reference.begin() + 20, {5, 6, 7});
  reference.insert(reference.end(), {5, 6, 8});
  LentReference strategy = predicting(reference);
  strategy.begin(Tokens{1});
  strategy.observe(counting(100, 15), Origin::output);
  strategy.observe(Tokens{900, 901, 902, 5, 6}, Origin::output);
  EXPECT_EQ(chain_of(strategy).at(0), 7);
  EXPECT_THAT(next_of(strategy), ElementsAre(7, 8));
}
TEST(PredictedOutputDrafter, EndsWithItsReference) {
  LentReference strategy = predicting(counting(100, 5));
  ASSERT_TRUE(strategy->add_reference(counting(200, 5)));
  strategy.begin(Tokens{1});
  EXPECT_THAT(chain_of(strategy, 30), ElementsAre(100, 101, 102, 103, 104));
  strategy.observe(counting(100, 5), Origin::output);
  EXPECT_THAT(chain_of(strategy), IsEmpty());
}
TEST(PredictedOutputDrafter, TakesReferencesAndLosesThemBetweenRounds) {
  LentReference strategy;
  strategy.begin(Tokens{1, 2});
  strategy.observe(Tokens{3, 204, 205}, Origin::output);
  EXPECT_THAT(chain_of(strategy), IsEmpty());
  ASSERT_TRUE(strategy->add_reference(counting(200, 20)));
  ASSERT_TRUE(strategy->predict(counting(300, 20)));
  EXPECT_EQ(strategy->reference_size(), 40U);
  EXPECT_THAT(next_of(strategy), ElementsAre(300, 206)) << "output may begin here, or is quoting";
  strategy.observe(Tokens{206}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(207, 208, 209, 210));
  strategy.begin(Tokens{1});
  EXPECT_THAT(chain_of(strategy), ElementsAre(300, 301, 302, 303)) << "references outlive a sequence";
  strategy->clear_references();
  EXPECT_THAT(chain_of(strategy), IsEmpty());
  EXPECT_EQ(strategy->reference_size(), 0U);
  ASSERT_TRUE(strategy->predict(counting(400, 20)));
  EXPECT_THAT(chain_of(strategy), ElementsAre(400, 401, 402, 403));
}
TEST(PredictedOutputDrafter, LooksForThePlaceAgainAfterRebase) {
  LentReference strategy;
  ASSERT_TRUE(strategy->add_reference(counting(100, 50)));
  strategy.begin(Tokens{1, 2, 3});
  strategy.observe(Tokens{110, 111}, Origin::output);
  strategy.rebase(Tokens{1, 110, 111});
  EXPECT_THAT(chain_of(strategy), ElementsAre(112, 113, 114, 115));
  strategy.rebase(Tokens{1, 2});
  EXPECT_THAT(chain_of(strategy), IsEmpty());
}
TEST(PredictedOutputDrafter, KeepsNoCopyOfTheContext) {
  LentReference strategy = predicting(counting(100, 50));
  strategy.begin(Tokens{1});
  strategy.observe(Tokens(100'000, 7), Origin::prompt);
  const std::size_t bytes = strategy->memory_bytes();
  strategy.begin(Tokens{1});
  EXPECT_LE(bytes, strategy->memory_bytes() + 1000) << "but for what truncate() needs, nothing grows";
}
TEST(PredictedOutputDrafter, TakesAnEmptyReference) {
  LentReference strategy = predicting({});
  ASSERT_TRUE(strategy->add_reference({}));
  strategy.begin(Tokens{1, 2, 3});
  EXPECT_THAT(chain_of(strategy), IsEmpty());
  ASSERT_TRUE(strategy->predict(counting(100, 4)));
  EXPECT_THAT(chain_of(strategy), ElementsAre(100, 101, 102, 103));
}
TEST(PredictedOutputDrafter, RefusesWhatItHasNoMemoryFor) {
  LentReference strategy = predicting(counting(100, 20), {.max_bytes = 4000});
  const auto added = strategy->add_reference(random_text(5000, 1, 5000));
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::out_of_memory);
  strategy.begin(Tokens{1});
  EXPECT_THAT(chain_of(strategy), ElementsAre(100, 101, 102, 103)) << "the others are as before";
}
TEST(PredictedOutputDrafter, ProposesNothingLessLikelyThanItsSettingSays) {
  LentReference strategy = predicting(counting(100, 60), {.min_path_probability = Probability::ratio(1, 2)});
  strategy.begin(Tokens{1});
  const Nodes nodes = drafted_by(strategy, {.max_nodes = 64});
  EXPECT_FALSE(nodes.empty());
  EXPECT_LT(nodes.size(), 20U);
  for (const DraftNode& node : nodes) EXPECT_GE(node.path_probability, Probability::ratio(1, 2));
  EXPECT_LT(drafted_by(strategy, {.min_path_probability = Probability::ratio(2, 3)}).size(), nodes.size());
}
TEST(PredictedOutputDrafter, LearnsHowFarTheTargetFollows) {
  const Tokens reference = random_text(600, 5, 2000);
  LentReference strategy = predicting(reference);
  strategy.begin(Tokens{1});
  const double before = drafted_by(strategy, chain).at(3).path_probability.to_double();
  // The target replaces every third token.
  Tokens said;
  for (std::size_t i = 0; i < 300; ++i) {
    const Token token = i % 3 == 2 ? Token{-1} : reference[i];
    const Nodes nodes = drafted_by(strategy, chain);
    strategy.feedback({.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = token, .top_k = {}});
    strategy.observe(Tokens{token}, Origin::output);
  }
  strategy.observe(Tokens{9}, Origin::prompt);
  EXPECT_LT(drafted_by(strategy, chain).at(3).path_probability.to_double(), before);
  strategy.begin(Tokens{1});
  EXPECT_DOUBLE_EQ(drafted_by(strategy, chain).at(3).path_probability.to_double(), before) << "begin() forgets it";
}

TEST(PredictedOutputDrafter, SavesMostPassesOfAnEditedText) {
  Random random(4);
  const Tokens old_text = random_text(2000, 6, 300);
  Tokens edited;
  for (std::size_t i = 0; i < old_text.size(); ++i) {
    if (random.chance(3)) {
      const std::size_t kind = random.below(3);
      if (kind > 0)
        for (std::size_t n = 1 + random.below(4); n > 0; --n) edited.push_back(static_cast<Token>(random.below(300)));
      if (kind < 2) i += random.below(4);
      continue;
    }
    edited.push_back(old_text[i]);
  }
  const Tokens prompt = {1, 2, 3};
  const DraftBudget budget = {.max_nodes = 16};
  const std::size_t with = passes(predicting(old_text), prompt, edited, budget);
  const std::size_t without = passes(Lent(NgramDrafter<>()), prompt, edited, budget);
  EXPECT_LT(7 * with, edited.size()) << "more than 7 tokens for each pass";
  EXPECT_LT(4 * with, without);
  const std::size_t both =
      passes(Lent(UnionDrafter(NgramDrafter<>(), predicting(old_text).strategy())), prompt, edited, budget);
  EXPECT_LT(10 * both, 11 * with) << "beside a drafter that knows nothing here it loses little";
}

TEST(PredictedOutputDrafter, IsAfterTruncateWhatItWasBefore) {
  const Tokens reference = random_text(300, 9, 12);
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    LentReference strategy = predicting(reference);
    ASSERT_TRUE(strategy->add_reference(random_text(100, 10, 12)));
    strategy.reserve(random.below(400));
    Tokens context = random_text(1 + random.below(80), static_cast<std::uint64_t>(round), 12);
    strategy.begin(context);
    std::vector<std::pair<std::size_t, Nodes>> seen;
    while (context.size() < 400) {
      // Mostly the reference, from any position; sometimes a prompt.
      const bool prompt = random.chance(4);
      const std::size_t from = random.below(280);
      const std::size_t count = 1 + random.below(prompt ? 40 : 12);
      const TokenSpan tokens = TokenSpan(reference).subspan(from, std::min(count, reference.size() - from));
      context.insert(context.end(), tokens.begin(), tokens.end());
      strategy.observe(tokens, prompt ? Origin::prompt : Origin::output);
      seen.emplace_back(context.size(), drafted_by(strategy));
    }
    LentReference fork = strategy;
    while (!seen.empty()) {
      const std::size_t back = 1 + random.below(6);
      seen.resize(seen.size() - std::min(seen.size() - 1, back));
      strategy.truncate(seen.back().first);
      const Nodes nodes = drafted_by(strategy);
      ASSERT_EQ(tokens_of(nodes), tokens_of(seen.back().second)) << "at " << seen.back().first;
      for (std::size_t i = 0; i < nodes.size(); ++i)
        ASSERT_EQ(nodes[i].path_probability, seen.back().second[i].path_probability);
      if (seen.size() == 1) break;
    }
    EXPECT_EQ(tokens_of(drafted_by(fork)), tokens_of(drafted_by(fork)));
  }
}

TEST(PredictedOutputDrafter, KeepsTheContractOfStrategies) {
  for (const bool predicted : {false, true}) {
    StrategyCheck check;
    check.budget = {.max_nodes = 12, .max_depth = 6, .max_leaves = predicted ? unlimited : 3};
    const auto make = [&] {
      PredictedOutputDrafter strategy;
      const Tokens reference = random_text(60, 3, 3);
      EXPECT_TRUE(predicted ? strategy.predict(reference) : strategy.add_reference(reference));
      return strategy;
    };
    const Report report = check_strategy(make, check);
    EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
    const Report both = check_strategy([&] { return UnionDrafter(NgramDrafter<>(), make()); }, check);
    EXPECT_EQ(both.verdict(), Verdict::exact) << both.to_string();
  }
}
TEST(PredictedOutputDrafter, IsLossless) {
  const auto make = [](TokenSpan) {
    PredictedOutputDrafter strategy;
    EXPECT_TRUE(strategy.predict(random_text(80, 3, 3)));
    return strategy;
  };
  EXPECT_GT(passes_saved_losslessly(make), 20U);
  EXPECT_GT(passes_saved_losslessly([&](TokenSpan prompt) { return UnionDrafter(NgramDrafter<>(), make(prompt)); }),
            100U);
}

}  // namespace
}  // namespace reprise::testing::predicted_output_drafter_test
