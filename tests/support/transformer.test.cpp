// SPDX-License-Identifier: Apache-2.0
#include "support/transformer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "reprise/loop/round.hpp"
#include "support/drafted_text.hpp"
#include "support/transformer_engine.hpp"
#include "support/transformer_server.hpp"

namespace reprise::testing::transformer_test {
namespace {

using ::testing::ElementsAreArray;

/// Compares bit by bit: zeros of different sign differ.
bool same(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return x == y && std::signbit(x) == std::signbit(y); });
}
bool same(const KvCache& a, const KvCache& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const KvRow& x, const KvRow& y) {
    return x.token == y.token && x.position == y.position && same(x.keys, y.keys) && same(x.values, y.values);
  });
}

struct TransformerTest : ::testing::Test {
  const Transformer model{};
  const std::vector<Token> prompt = random_tokens(20, 1);

  [[nodiscard]] TransformerEngine engine(TransformerFault fault = TransformerFault::none,
                                         SamplerOptions sampler = {}) const {
    return TransformerEngine(model, prompt, {.sampler = sampler, .fault = fault});
  }
  [[nodiscard]] std::vector<Token> plain(std::size_t count, SamplerOptions sampler = {}) const {
    TransformerEngine fresh = engine(TransformerFault::none, sampler);
    return plain_text(fresh, prompt, count);
  }
  /// Returns the scores after each token of a text, run one by one from the beginning.
  [[nodiscard]] std::vector<Vector> one_by_one(TokenSpan text) const {
    std::vector<Vector> scores;
    KvCache cache;
    for (const Token token : text) {
      const PassRow row{token, cache.size(), anchor_parent, 0};
      scores.push_back(run_rows(model, {&row, 1}, {&cache, 1})[0]);
    }
    return scores;
  }
};

TEST_F(TransformerTest, TextComesBackToWhatItHasSaidAndIsNoLoop) {
  const std::vector<Token> text = plain(400);
  const std::size_t copied = said_as_before(text);
  EXPECT_GT(copied, 120U);
  EXPECT_LT(copied, 240U);
  EXPECT_GT(distinct_triples(TokenSpan(text).subspan(200)), 50U);
}
TEST_F(TransformerTest, TheNextTokenDependsOnTokensFarBack) {
  std::vector<Token> other = prompt;
  other[0] = (other[0] + 1) % 64;
  EXPECT_FALSE(same(one_by_one(prompt).back(), one_by_one(other).back()));
  std::vector<Token> swapped = prompt;  // the same tokens in another order: positions count
  std::swap(swapped[2], swapped[3]);
  EXPECT_FALSE(same(one_by_one(prompt).back(), one_by_one(swapped).back()));
}
TEST_F(TransformerTest, SeedsAndGainsChangeTheText) {
  const std::vector<Token> text = plain(30);
  for (const TransformerShape& shape : {TransformerShape{.seed = 4}, TransformerShape{.attention_gain = 1},
                                        TransformerShape{.layers = 1}, TransformerShape{.heads = 2, .head_size = 16}}) {
    const Transformer other(shape);
    TransformerEngine engine(other, prompt);
    EXPECT_NE(plain_text(engine, prompt, 30), text);
  }
}

// ------------------------------------------------------------------- a row does not depend on the other rows

TEST_F(TransformerTest, ScoresOfAChainAreTheSameHoweverItIsCut) {
  const std::vector<Token> text = random_tokens(40, 7);
  const std::vector<Vector> expected = one_by_one(text);
  Random random(3);
  for (int repeat = 0; repeat < 5; ++repeat) {
    TransformerEngine engine(model);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t rows = std::min(text.size() - at, 1 + random.below(repeat == 0 ? 1 : 12));
      static_cast<void>(engine.verify(TokenSpan(text).subspan(at, rows), rows - 1));
      for (std::size_t i = 0; i < rows; ++i) ASSERT_TRUE(same(engine.scores(i), expected[at + i])) << at + i;
      ASSERT_TRUE(engine.commit(rows));
      at += rows;
    }
  }
}
TEST_F(TransformerTest, ScoresOfATreeAreThoseOfEachPathAlone) {
  Random random(5);
  for (int repeat = 0; repeat < 20; ++repeat) {
    DraftedRows draft;
    for (std::size_t row = 0; row < 8; ++row)
      draft.add(static_cast<Token>(random.below(64)), static_cast<NodeIndex>(random.below(row + 1)) - 1);
    TransformerEngine tree = engine();
    std::vector<Token> batch = {prompt.back(), 5};  // two pending
    batch.insert(batch.end(), draft.tokens.begin(), draft.tokens.end());
    static_cast<void>(tree.verify_tree(batch, 8, draft.parents));
    for (std::size_t row = 0; row < 8; ++row) {
      std::vector<Token> path;
      for (auto at = static_cast<NodeIndex>(row); at != anchor_parent; at = draft.parents[static_cast<std::size_t>(at)])
        path.insert(path.begin(), draft.tokens[static_cast<std::size_t>(at)]);
      path.insert(path.begin(), {prompt.back(), 5});
      TransformerEngine alone = engine();
      static_cast<void>(alone.verify(path, 0));
      ASSERT_TRUE(same(tree.scores(row + 1), alone.scores(0))) << "row " << row;
    }
  }
}
TEST_F(TransformerTest, OneMoreTokenInTheCacheChangesEveryScore) {
  TransformerEngine longer = engine();
  longer.prefill(std::vector<Token>{9});
  TransformerEngine shorter = engine();
  static_cast<void>(longer.verify(TokenSpan(prompt).last(1), 0));
  static_cast<void>(shorter.verify(TokenSpan(prompt).last(1), 0));
  EXPECT_FALSE(same(longer.scores(0), shorter.scores(0)));
}
TEST_F(TransformerTest, AnyTokenCanBeRun) {
  TransformerEngine hostile = engine();
  const std::vector<Token> batch = {prompt.back(), -1, std::numeric_limits<Token>::min(), 1000};
  auto picks = hostile.verify(batch, 3);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(picks[i] >= 0 && picks[i] < 64);
}

// ----------------------------------------------------------------------------------------- commits

TEST_F(TransformerTest, RollbackLeavesTheCacheOfPlainDecoding) {
  const std::vector<Token> text = plain(3);
  TransformerEngine plainly = engine();
  static_cast<void>(plain_text(plainly, prompt, 3));
  TransformerEngine drafted = engine();
  const std::vector<Token> batch = {prompt.back(), text[0], text[1], 63, 62, 61};
  static_cast<void>(drafted.verify(batch, 5));
  ASSERT_TRUE(drafted.commit(3));
  EXPECT_TRUE(same(drafted.cache(), plainly.cache()));
}
TEST_F(TransformerTest, APathThatIsKeptIsAsIfItAloneHadBeenRun) {
  const std::vector<Token> text = plain(4);
  TransformerEngine plainly = engine();
  static_cast<void>(plain_text(plainly, prompt, 4));
  TransformerEngine tree = engine();
  const std::vector<Token> batch = {prompt.back(), 60, text[0], 61, 62, text[1], 63, text[2]};
  const std::vector<NodeIndex> parents = {-1, -1, 0, 1, 1, 4, 4};
  auto picks = tree.verify_tree(batch, 7, parents);
  EXPECT_EQ(picks[0], text[0]);
  EXPECT_EQ(picks[2], text[1]);
  EXPECT_EQ(picks[5], text[2]);
  EXPECT_EQ(picks[7], text[3]);
  ASSERT_TRUE(tree.commit_rows(std::vector<std::size_t>{0, 2, 5, 7}));
  EXPECT_TRUE(same(tree.cache(), plainly.cache()));
}
TEST_F(TransformerTest, CommitsThatFitNoPassAreRefused) {
  TransformerEngine fresh = engine();
  EXPECT_FALSE(fresh.commit(1));
  const std::vector<Token> batch = {prompt.back(), 1, 2};
  static_cast<void>(fresh.verify(batch, 1));
  EXPECT_FALSE(fresh.commit(4));
  EXPECT_FALSE(fresh.commit(0));
  EXPECT_FALSE(fresh.commit_rows(std::vector<std::size_t>{1, 0}));
  EXPECT_TRUE(fresh.commit(1));  // the anchor is rolled back: a predicate has refused the first pick
  EXPECT_FALSE(fresh.commit(1));
}
TEST_F(TransformerTest, TruncateGoesBackToAnyRow) {
  TransformerEngine back = engine();
  const std::vector<Token> text = plain_text(back, prompt, 20);
  back.truncate(prompt.size() - 1);
  EXPECT_THAT(plain_text(back, prompt, 20), ElementsAreArray(text));
}

// ------------------------------------------------------------------------------------------ picks

TEST_F(TransformerTest, GreedyAnswersAgreeWithEachOther) {
  TransformerEngine greedy = engine();
  auto picks = greedy.verify(TokenSpan(prompt).last(1), 0);
  const auto scores = greedy.scores(0);
  const Token best = picks[0];
  EXPECT_EQ(best, std::max_element(scores.begin(), scores.end()) - scores.begin());
  const TokenSpan candidates = greedy.top_k(0);
  ASSERT_EQ(candidates.size(), 4U);
  EXPECT_EQ(candidates[0], best);
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_GE(scores[static_cast<std::size_t>(candidates[i - 1])], scores[static_cast<std::size_t>(candidates[i])]);
  EXPECT_EQ(greedy.margin(0), static_cast<double>(scores[static_cast<std::size_t>(best)] -
                                                  scores[static_cast<std::size_t>(candidates[1])]));
  EXPECT_EQ(greedy.probabilities(0)[static_cast<std::size_t>(best)], 1);
}
TEST_F(TransformerTest, OfEqualScoresTheLowestTokenWins) {
  RowAnswers answers;
  answers.clear();
  answers.add({1, 3, 2, 3}, {});
  EXPECT_EQ(answers.pick(0), 1);
  EXPECT_EQ(answers.margin(0), 0);
}
TEST_F(TransformerTest, SampledPicksFollowTheProbabilities) {
  RowAnswers answers({.sampled = true, .temperature = 0.5F});
  std::vector<std::size_t> counts(3);
  for (int i = 0; i < 20000; ++i) {
    answers.clear();
    answers.add({0, 1, -40}, {});
    ++counts[static_cast<std::size_t>(answers.pick(0))];
    answers.settle(1);
  }
  answers.clear();
  answers.add({0, 1, -40}, {});
  const auto shares = answers.probabilities(0);
  EXPECT_NEAR(shares[0], 1 / (1 + std::exp(2.0F)), 1e-6F);
  EXPECT_NEAR(static_cast<float>(counts[0]) / 20000, shares[0], 0.01F);
  EXPECT_EQ(counts[2], 0U);
}
TEST_F(TransformerTest, TemperaturePenaltyAndSeedHaveAnEffect) {
  const std::vector<Token> text = plain(60, {.sampled = true});
  EXPECT_EQ(plain(60, {.sampled = true}), text);
  EXPECT_NE(plain(60), text);
  EXPECT_NE(plain(60, {.sampled = true, .seed = 2}), text);
  EXPECT_NE(plain(60, {.sampled = true, .temperature = 2}), text);
  EXPECT_EQ(plain(60, {.sampled = true, .temperature = 0.001F}), plain(60));
  const std::vector<Token> fresh = plain(60, {.sampled = true, .penalty = 1000});
  for (std::size_t i = 8; i < fresh.size(); ++i)
    EXPECT_EQ(std::count(fresh.begin() + static_cast<std::ptrdiff_t>(i) - 8,
                         fresh.begin() + static_cast<std::ptrdiff_t>(i), fresh[i]),
              0);
}
TEST_F(TransformerTest, AVoidPassDrawsItsNumbersAgain) {
  TransformerEngine sampled = engine(TransformerFault::none, {.sampled = true});
  auto picks = sampled.verify(TokenSpan(prompt).last(1), 0);
  const Token first = picks[0];
  static_cast<void>(sampled.uniform());
  auto again = sampled.verify(TokenSpan(prompt).last(1), 0);
  EXPECT_EQ(again[0], first);
}
TEST_F(TransformerTest, APickThatIsNotCommittedIsDrawnAgain) {
  const std::vector<Token> text = plain(2, {.sampled = true});
  TransformerEngine sampled = engine(TransformerFault::none, {.sampled = true});
  const std::vector<Token> batch = {prompt.back(), text[0]};
  auto picks = sampled.verify(batch, 1);
  EXPECT_EQ(picks[0], text[0]);
  EXPECT_EQ(picks[1], text[1]);
  ASSERT_TRUE(sampled.commit(1));
  auto later = sampled.verify(TokenSpan(text).first(1), 0);
  EXPECT_EQ(later[0], text[1]);
}

// ------------------------------------------------------------------------------------------ faults

/// Decodes by hand with trees around the truth. Every third pass runs twice.
std::vector<Token> drafted_text(TransformerEngine& engine, TokenSpan prompt, TokenSpan truth, std::uint64_t seed) {
  Random random(seed);
  std::vector<Token> text(1, prompt.back());
  while (text.size() <= truth.size()) {
    const DraftedRows draft = tree_around(truth.subspan(text.size() - 1), random);
    std::vector<Token> batch(1, text.back());
    batch.insert(batch.end(), draft.tokens.begin(), draft.tokens.end());
    if (random.chance(30)) {
      auto unused = engine.verify_tree(batch, draft.tokens.size(), draft.parents);
      static_cast<void>(unused[0]);
    }
    auto picks = engine.verify_tree(batch, draft.tokens.size(), draft.parents);
    const WalkedPath path = walk_picks(draft, picks);
    static_cast<void>(engine.commit_rows(path.rows));
    text.insert(text.end(), path.tokens.begin(), path.tokens.end());
  }
  text.erase(text.begin());
  text.resize(truth.size());
  return text;
}

struct TransformerFaults : TransformerTest, ::testing::WithParamInterface<TransformerFault> {};

TEST_P(TransformerFaults, ShowInTheTextOfSomeRun) {
  const SamplerOptions sampler{.sampled = GetParam() == TransformerFault::void_picks_stay};
  const std::vector<Token> truth = plain(48, sampler);
  std::size_t different = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    TransformerEngine faulty = engine(GetParam(), sampler);
    different += drafted_text(faulty, prompt, truth, seed) != truth ? 1 : 0;
  }
  EXPECT_GT(different, 0U);
}
INSTANTIATE_TEST_SUITE_P(All, TransformerFaults,
                         ::testing::Values(TransformerFault::rollback_one_short, TransformerFault::rollback_one_long,
                                           TransformerFault::positions_by_row, TransformerFault::positions_one_off,
                                           TransformerFault::siblings_visible, TransformerFault::stale_row,
                                           TransformerFault::anchor_position, TransformerFault::void_rows_stay,
                                           TransformerFault::void_picks_stay));

TEST_F(TransformerTest, WithoutAFaultTreesGiveThePlainText) {
  for (const SamplerOptions& sampler :
       {SamplerOptions{}, SamplerOptions{.sampled = true, .penalty = 1}, SamplerOptions{.sampled = true, .seed = 5}}) {
    const std::vector<Token> truth = plain(48, sampler);
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      TransformerEngine sound = engine(TransformerFault::none, sampler);
      EXPECT_EQ(drafted_text(sound, prompt, truth, seed), truth);
    }
  }
}
TEST_F(TransformerTest, CandidatesOfTheRowBeforeShow) {
  TransformerEngine sound = engine();
  TransformerEngine faulty = engine(TransformerFault::candidates_one_row_off);
  const std::vector<Token> batch = {prompt.back(), 1, 2};
  static_cast<void>(sound.verify(batch, 2));
  static_cast<void>(faulty.verify(batch, 2));
  EXPECT_THAT(faulty.top_k(2), ElementsAreArray(sound.top_k(1)));
  EXPECT_NE(faulty.top_k(2)[0], sound.top_k(2)[0]);
}
TEST_F(TransformerTest, SumsInAnotherOrderShowInTheScoresAlone) {
  TransformerEngine sound = engine();
  TransformerEngine fast = engine(TransformerFault::sums_depend_on_the_pass);
  const std::vector<Token> batch = {prompt.back(), 1, 2};
  static_cast<void>(sound.verify(batch, 2));
  static_cast<void>(fast.verify(batch, 2));
  EXPECT_FALSE(same(fast.scores(0), sound.scores(0)));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(fast.scores(0)[i], sound.scores(0)[i], 1e-3F);
}
TEST_F(TransformerTest, AWalkOnTheDeviceEndsWhereThePicksDisagree) {
  const std::vector<Token> text = plain(3);
  const std::vector<Token> batch = {prompt.back(), 60, text[0], text[1], 61};
  const std::vector<NodeIndex> parents = {-1, -1, 1, 2};
  WalkingTransformerEngine walking(model, prompt);
  const Accepted accepted = walking.verify_and_walk(batch, 4, parents);
  EXPECT_THAT(accepted.tokens, ElementsAreArray(text));
  EXPECT_THAT(accepted.rows, ::testing::ElementsAre(0, 2, 3));

  WalkingTransformerEngine hasty(model, prompt, {.fault = TransformerFault::walks_first_child});
  EXPECT_EQ(hasty.verify_and_walk(batch, 4, parents).tokens[0], 60);
  WalkingTransformerEngine lost(model, prompt, {.fault = TransformerFault::walk_rows_from_draft});
  EXPECT_THAT(lost.verify_and_walk(batch, 4, parents).rows, ::testing::ElementsAre(0, 1, 2));
}

// ------------------------------------------------------------------------------------------ a server

/// Decodes several prompts at once, with trees around the truth of each. Some sequences pause at times.
std::vector<std::vector<Token>> served_texts(TransformerServer& server, const std::vector<std::vector<Token>>& prompts,
                                             const std::vector<std::vector<Token>>& truths, std::uint64_t seed,
                                             std::size_t position_fault = 0) {
  Random random(seed);
  std::vector<std::vector<Token>> texts;
  std::vector<std::size_t> slots;
  for (const auto& prompt : prompts) {
    slots.push_back(server.join(prompt));
    texts.emplace_back(1, prompt.back());
  }
  for (bool going = true; going;) {
    going = false;
    std::vector<Token> tokens;
    std::vector<std::size_t> positions, sequences, offsets = {0}, running;
    std::vector<NodeIndex> parents;
    std::vector<DraftedRows> drafts;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      if (texts[i].size() > truths[i].size()) continue;
      going = true;
      if (random.chance(20)) continue;
      running.push_back(i);
      const DraftedRows draft = tree_around(TokenSpan(truths[i]).subspan(texts[i].size() - 1), random);
      tokens.push_back(texts[i].back());
      positions.push_back(prompts[i].size() + texts[i].size() - 2);
      parents.push_back(anchor_parent);
      for (std::size_t row = 0; row < draft.tokens.size(); ++row) {
        const std::size_t parent = pick_after(draft.parents[row]);  // 0: the anchor
        tokens.push_back(draft.tokens[row]);
        positions.push_back(positions[offsets.back() + parent] + 1 + position_fault);
        parents.push_back(static_cast<NodeIndex>(parent));
      }
      drafts.push_back(draft);
      sequences.resize(tokens.size(), slots[i]);
      offsets.push_back(tokens.size());
    }
    const PackedRows pass{tokens, positions, sequences, offsets, parents};
    if (random.chance(20)) static_cast<void>(server.forward(pass));  // void
    const TokenSpan picks = server.forward(pass);
    for (std::size_t k = 0; k < running.size(); ++k) {
      const std::size_t i = running[k];
      if (random.chance(10)) continue;  // the round of this sequence is cancelled
      const TokenSpan own = picks.subspan(offsets[k], offsets[k + 1] - offsets[k]);
      const WalkedPath path = walk_picks(drafts[k], own);
      server.commit(slots[i], path.rows);
      texts[i].insert(texts[i].end(), path.tokens.begin(), path.tokens.end());
    }
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i].erase(texts[i].begin());
    texts[i].resize(truths[i].size());
    server.leave(slots[i]);
  }
  return texts;
}

struct TransformerServerTest : TransformerTest {
  std::vector<std::vector<Token>> prompts, truths;
  TransformerServerTest() {
    for (std::size_t i = 0; i < 5; ++i) {
      prompts.push_back(random_tokens(3 + 7 * i, 100 + i));
      TransformerEngine alone(model, prompts.back());
      truths.push_back(plain_text(alone, prompts.back(), 24));
    }
  }
};

TEST_F(TransformerServerTest, EachSequenceGetsWhatItWouldGetAlone) {
  TransformerServer server(model);
  for (std::uint64_t seed = 1; seed <= 3; ++seed)  // slots are reused
    EXPECT_EQ(served_texts(server, prompts, truths, seed), truths);
}
TEST_F(TransformerServerTest, CachesAreThoseOfSequencesAlone) {
  TransformerServer server(model);
  TransformerEngine alone(model, prompts[1]);
  const std::size_t neighbour = server.join(prompts[0]);
  const std::size_t slot = server.join(prompts[1]);
  // Other integer types, and a pad row after all others.
  struct {
    std::vector<Token> tokens;
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> sequences;
    std::vector<std::uint32_t> offsets;
    std::vector<NodeIndex> parents;
  } const pass{
      {prompts[0].back(), 7, prompts[1].back(), 0},
      {static_cast<std::int32_t>(prompts[0].size()) - 1, static_cast<std::int32_t>(prompts[0].size()),
       static_cast<std::int32_t>(prompts[1].size()) - 1, 0},
      {static_cast<std::int32_t>(neighbour), static_cast<std::int32_t>(neighbour), static_cast<std::int32_t>(slot), -1},
      {0, 2, 3},
      {-1, 0, -1, -1}};
  const TokenSpan picks = server.forward(pass);
  ASSERT_EQ(picks.size(), 4U);
  auto expected = alone.verify(TokenSpan(prompts[1]).last(1), 0);
  EXPECT_EQ(picks[2], expected[0]);
  server.commit(slot, std::vector<std::size_t>{0});
  ASSERT_TRUE(alone.commit(1));
  EXPECT_TRUE(same(server.cache(slot), alone.cache()));
}
TEST_F(TransformerServerTest, FaultsAndWrongPositionsShow) {
  for (const TransformerFault fault :
       {TransformerFault::rollback_one_short, TransformerFault::siblings_visible, TransformerFault::neighbours_cut}) {
    TransformerServer server(model, fault);
    EXPECT_NE(served_texts(server, prompts, truths, 1), truths) << static_cast<int>(fault);
  }
  TransformerServer server(model);
  EXPECT_NE(served_texts(server, prompts, truths, 1, 1), truths);
}

}  // namespace
}  // namespace reprise::testing::transformer_test
