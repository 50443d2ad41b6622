// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/predicted_output_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "support/combined_world.hpp"
#include "support/fails.hpp"

namespace reprise::testing::predicted_output_drafter_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

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
  EXPECT_THAT(strategy->add_reference(random_text(5000, 1, 5000)), testing::fails(ErrorCode::out_of_memory));
  strategy.begin(Tokens{1});
  EXPECT_THAT(chain_of(strategy), ElementsAre(100, 101, 102, 103)) << "the others are as before";
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

/// Output that follows its references with edits, prompts between, truncations and new references. One number for all
/// drafts and their probabilities.
std::uint64_t digest_of_edits(std::uint64_t seed, std::size_t vocabulary, const PredictedOutputOptions& options) {
  Random random(seed);
  const Tokens reference = random_text(300, seed, vocabulary);
  LentReference strategy = predicting(reference, options);
  strategy.begin(Tokens{1});
  std::uint64_t digest = 0;
  for (std::size_t at = 0, round = 0; round < 250; ++round) {
    const std::size_t edit = random.below(40);
    if (edit < 3) at = random.below(reference.size());
    if (edit == 3) static_cast<void>(strategy->add_reference(random_text(40, round, vocabulary)));
    if (edit == 4) strategy.observe(random_text(6, round, vocabulary), Origin::prompt);
    if (edit == 5) strategy.truncate(1 + random.below(strategy.context().size()));
    if (edit == 6) strategy.rebase(Tokens(reference.begin(), reference.begin() + 9));
    if (edit == 7 && round % 3 == 0) strategy->clear_references();
    if (edit == 8) static_cast<void>(strategy->predict(reference));
    if (edit == 9) strategy.begin(Tokens{2, 3});
    const Nodes nodes = drafted_by(strategy, {.max_nodes = 1 + random.below(20), .max_leaves = 1 + random.below(4)});
    for (const DraftNode& node : nodes)
      digest = mix(digest ^ static_cast<std::uint32_t>(node.token) ^ node.path_probability.raw() ^
                   std::uint64_t{node.match_length} << 32 ^ static_cast<std::uint64_t>(node.parent + 1) << 48);
    digest = mix(digest);
    Tokens said;
    if (edit >= 10 && edit < 14) said = random_text(1 + random.below(4), round, vocabulary);  // inserted
    if (edit >= 14 && edit < 18) at += 1 + random.below(8);                                   // left out
    for (std::size_t more = 1 + random.below(4); more > 0; --more) said.push_back(reference[at++ % reference.size()]);
    strategy.feedback({.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = said[0], .top_k = {}});
    strategy.observe(said, Origin::output);
  }
  return digest;
}
TEST(PredictedOutputDrafter, DraftsWhatItAlwaysDrafted) {
  std::uint64_t digest = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    digest = mix(digest ^ digest_of_edits(seed, seed % 2 == 0 ? 12 : 500, {}));
  EXPECT_EQ(digest, 306378001950160959U);
  EXPECT_EQ(digest_of_edits(7, 30, {.min_path_probability = Probability::ratio(1, 3)}), 4022189593555593937U);
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
