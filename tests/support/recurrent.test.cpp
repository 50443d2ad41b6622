// SPDX-License-Identifier: Apache-2.0
#include "support/recurrent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/drafted_text.hpp"

namespace reprise::testing::recurrent_test {
namespace {

using ::testing::ElementsAreArray;

/// Returns a chain around a possible continuation: some right tokens, then some wrong ones.
std::vector<Token> chain_around(TokenSpan text, Random& random) {
  const std::size_t right = random.below(std::min<std::size_t>(text.size(), 4) + 1);
  std::vector<Token> chain(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(right));
  for (std::size_t wrong = random.below(3); wrong > 0; --wrong) chain.push_back(static_cast<Token>(random.below(64)));
  return chain;
}

/// Decodes by hand with drafts around the truth. A pass that is not kept whole is restored, and its committed tokens
/// run again in the next pass. Some passes run twice, and half have no draft.
template <class Engine>
std::vector<Token> drafted_text(Engine& engine, TokenSpan prompt, TokenSpan truth, std::uint64_t seed) {
  Random random(seed);
  std::vector<Token> text(1, prompt.back());
  std::size_t cached = 0;
  while (text.size() <= truth.size()) {
    const std::size_t pending = text.size() - cached;
    std::vector<Token> batch(text.begin() + static_cast<std::ptrdiff_t>(cached), text.end());
    std::vector<Token> draft;
    if (random.chance(60)) draft = chain_around(truth.subspan(text.size() - 1), random);
    batch.insert(batch.end(), draft.begin(), draft.end());
    if constexpr (requires { engine.snapshot(); })
      if (!draft.empty()) engine.snapshot();
    if (random.chance(30)) {
      auto unused = engine.verify(batch, draft.size());
      static_cast<void>(unused[0]);
      if constexpr (requires { engine.snapshot(); })
        if (!draft.empty()) engine.snapshot();
    }
    auto picks = engine.verify(batch, draft.size());
    std::vector<Token> committed(1, picks[0]);
    while (committed.size() <= draft.size() && committed.back() == draft[committed.size() - 1])
      committed.push_back(picks[committed.size()]);
    const std::size_t keep = pending + committed.size() - 1;
    if constexpr (requires { engine.snapshot(); }) {
      if (keep < batch.size()) {
        EXPECT_TRUE(engine.restore(committed.size()));
      } else {
        EXPECT_TRUE(engine.commit(keep));
        cached += keep;
      }
    } else {
      EXPECT_TRUE(engine.commit(keep));
      cached += keep;
    }
    text.insert(text.end(), committed.begin(), committed.end());
  }
  text.erase(text.begin());
  text.resize(truth.size());
  return text;
}

struct RecurrentTest : ::testing::Test {
  const RecurrentModel recurrent{};
  const RecurrentModel hybrid{RecurrentShape{.attention_layers = 1}};
  const std::vector<Token> prompt = random_tokens(20, 1);

  [[nodiscard]] std::vector<Token> plain(const RecurrentModel& model, const SamplerOptions& sampler,
                                         std::size_t count = 48) const {
    RecurrentEngine engine(model, prompt, {.sampler = sampler});
    return plain_text(engine, prompt, count);
  }
  template <class Engine>
  [[nodiscard]] std::size_t differing_runs(const RecurrentModel& model, const RecurrentOptions& options) const {
    const std::vector<Token> truth = plain(model, options.sampler);
    std::size_t different = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      Engine engine(model, prompt, options);
      different += drafted_text(engine, prompt, truth, seed) != truth ? 1 : 0;
    }
    return different;
  }
};

TEST_F(RecurrentTest, TextComesBackToWhatItHasSaidAndIsNoLoop) {
  for (const RecurrentModel* model : {&recurrent, &hybrid}) {
    const std::vector<Token> text = plain(*model, {}, 400);
    const std::size_t copied = said_as_before(text);
    EXPECT_GT(copied, 60U);
    EXPECT_LT(copied, 240U);
    EXPECT_GT(distinct_triples(TokenSpan(text).subspan(200)), 50U);
  }
}
TEST_F(RecurrentTest, EveryTokenBeforeCounts) {
  for (const RecurrentModel* model : {&recurrent, &hybrid}) {
    RecurrentState first;
    RecurrentState second;
    static_cast<void>(model->advance(first, 1));
    static_cast<void>(model->advance(second, 2));
    for (Token token = 3; token < 9; ++token) EXPECT_NE(model->advance(first, token), model->advance(second, token));
  }
  EXPECT_NE(plain(recurrent, {}), plain(hybrid, {}));
}
TEST_F(RecurrentTest, ScoresAreTheSameHoweverATextIsCut) {
  const std::vector<Token> text = random_tokens(12, 7);
  RecurrentEngine whole(recurrent);
  static_cast<void>(whole.verify(text, 11));
  RecurrentState state;
  for (std::size_t i = 0; i < text.size(); ++i)
    EXPECT_THAT(whole.scores(i), ElementsAreArray(recurrent.advance(state, text[i])));
  ASSERT_TRUE(whole.commit(12));
  EXPECT_EQ(whole.state().hidden, state.hidden);
}
TEST_F(RecurrentTest, DraftedTextIsPlainText) {
  for (const RecurrentModel* model : {&recurrent, &hybrid})
    for (const SamplerOptions& sampler : {SamplerOptions{}, SamplerOptions{.sampled = true, .penalty = 1}}) {
      EXPECT_EQ(differing_runs<RecurrentEngine>(*model, {.sampler = sampler}), 0U);
      EXPECT_EQ(differing_runs<PerRowRecurrentEngine>(*model, {.sampler = sampler}), 0U);
    }
}
TEST_F(RecurrentTest, CommitsOfHalfAPassAreRefused) {
  RecurrentEngine engine(recurrent, prompt);
  const std::vector<Token> batch = {prompt.back(), 1, 2};
  EXPECT_FALSE(engine.commit(0));
  EXPECT_FALSE(engine.restore(1));
  static_cast<void>(engine.verify(batch, 2));
  EXPECT_FALSE(engine.restore(1));  // nothing was saved
  EXPECT_FALSE(engine.commit(2));
  engine.snapshot();  // the pass is void
  EXPECT_FALSE(engine.commit(3));
  static_cast<void>(engine.verify(batch, 2));
  EXPECT_TRUE(engine.restore(1));
  EXPECT_FALSE(engine.restore(1));

  PerRowRecurrentEngine rows(recurrent, prompt);
  EXPECT_FALSE(rows.commit(0));
  static_cast<void>(rows.verify(batch, 1));
  EXPECT_FALSE(rows.commit(4));
  EXPECT_FALSE(rows.commit(0));
  EXPECT_TRUE(rows.commit(1));
}
TEST_F(RecurrentTest, EnginesSayHowTheyRollBack) {
  RecurrentOptions options;
  options.capabilities.max_rows = 7;
  EXPECT_EQ(RecurrentEngine(recurrent, prompt, options).capabilities().rollback, Rollback::snapshot);
  EXPECT_EQ(PerRowRecurrentEngine(recurrent, prompt, options).capabilities().rollback, Rollback::per_row);
  EXPECT_EQ(RecurrentEngine(recurrent, prompt, options).capabilities().max_rows, 7U);
}
TEST_F(RecurrentTest, FaultsShowInTheTextOfSomeRun) {
  const SamplerOptions sampled{.sampled = true};
  for (const RecurrentModel* model : {&recurrent, &hybrid}) {
    for (const RecurrentFault fault :
         {RecurrentFault::restore_forgotten, RecurrentFault::restore_before_drafts, RecurrentFault::snapshot_too_late,
          RecurrentFault::recurrence_not_restored, RecurrentFault::void_rows_stay})
      EXPECT_GT(differing_runs<RecurrentEngine>(*model, {.fault = fault}), 0U) << static_cast<int>(fault);
    EXPECT_GT(differing_runs<PerRowRecurrentEngine>(*model, {.fault = RecurrentFault::row_one_off}), 0U);
    EXPECT_GT(
        differing_runs<RecurrentEngine>(*model, {.sampler = sampled, .fault = RecurrentFault::restore_rewinds_sampler}),
        0U);
  }
  EXPECT_GT(differing_runs<RecurrentEngine>(hybrid, {.fault = RecurrentFault::attention_not_restored}), 0U);
}

}  // namespace
}  // namespace reprise::testing::recurrent_test
