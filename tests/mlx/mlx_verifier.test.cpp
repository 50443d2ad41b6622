// SPDX-License-Identifier: Apache-2.0
// The adapter for MLX over a small random model: the conformance kit, kept paths, failures and bad input.
#include "mlx_verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iostream>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "llama_model.hpp"
#include "reprise/reprise.hpp"
#include "reprise_testing/check_verifier.hpp"
#include "reprise_testing/lossless.hpp"
#include "tiny_model.hpp"

namespace reprise::mlx::mlx_verifier_test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::Verdict;
using testing::VerifierCheck;

template <class Model>
MlxVerifier<Model> verifier_of(Model& model, TokenSpan prompt, const MlxOptions& options = {}) {
  auto made = MlxVerifier<Model>::make(model, options);
  EXPECT_TRUE(made);
  EXPECT_TRUE(made->prefill(prompt.first(prompt.size() - 1)));
  return std::move(*made);
}

TEST(MlxVerifier, PassesTheConformanceKitExactly) {
  for (const std::uint64_t seed : {1U, 101U}) {
    FailingModel model(tiny_model(seed));
    const auto prompt = tiny_prompt();
    const auto report = testing::check_verifier([&](TokenSpan tokens) { return verifier_of(model, tokens); }, prompt,
                                                VerifierCheck{.tokens = 24}, [&](auto&) { model.fail_next = true; });
    EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
    for (const char* const what : {"a failed pass, then the same again", "truncate(), then the same again"})
      EXPECT_EQ(report.find(what)->verdict, Verdict::exact) << report.to_string();
    if (seed == 1) std::cout << report.to_string();
  }
}

TEST(MlxVerifier, PassesTheConformanceKitWithChainsAlone) {
  const LlamaModel model = tiny_model(7);
  const auto prompt = tiny_prompt();
  const auto report = testing::check_verifier(
      [&](TokenSpan tokens) { return verifier_of(model, tokens, {.leaves = 1, .max_rows = 5}); }, prompt,
      VerifierCheck{.tokens = 24});
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}

/// The greatest difference between the first `rows` rows of two arrays [1, heads, capacity, head size].
double distance(const mx::array& a, const mx::array& b, std::size_t rows) {
  const auto first = [&](const mx::array& all) {
    return mx::slice(all, {0, 0, 0, 0}, {1, all.shape(1), to_int(rows), all.shape(3)});
  };
  return static_cast<double>(mx::max(mx::abs(mx::subtract(first(a), first(b)))).item<float>());
}

/// anchor -> 2 -> 7, anchor -> 3 -> 8 -> 9: keeping the second path leaves a gap.
struct Tree {
  std::vector<Token> batch = {6, 2, 3, 7, 8, 9};
  std::vector<NodeIndex> parents = {-1, -1, 0, 1, 3};
  std::vector<std::size_t> second = {0, 2, 4, 5};
};

TEST(MlxVerifier, AKeptPathIsAsInAFreshCache) {
  const LlamaModel model = tiny_model();
  const auto prompt = tiny_prompt();
  const Tree tree;
  auto kept = verifier_of(model, prompt);
  ASSERT_TRUE(kept.verify_tree(tree.batch, 5, tree.parents));
  ASSERT_TRUE(kept.commit_rows(tree.second));
  std::vector<Token> path = prompt;
  path.insert(path.end(), {3, 8, 9});
  EXPECT_THAT(kept.cached(), ElementsAreArray(path));

  path.push_back(4);
  auto fresh = verifier_of(model, path);
  for (std::size_t layer = 0; layer < model.layers(); ++layer) {
    EXPECT_LT(distance(kept.cache().layer(layer).keys, fresh.cache().layer(layer).keys, path.size() - 1), 1e-5);
    EXPECT_LT(distance(kept.cache().layer(layer).values, fresh.cache().layer(layer).values, path.size() - 1), 1e-5);
  }
}

TEST(MlxVerifier, OnlyRowsAfterTheCommonPrefixMove) {
  const LlamaModel model = tiny_model();
  const auto prompt = tiny_prompt();
  const Tree tree;
  auto verifier = verifier_of(model, prompt);
  ASSERT_TRUE(verifier.verify_tree(tree.batch, 5, tree.parents));
  ASSERT_TRUE(verifier.commit_rows(tree.second));
  EXPECT_EQ(verifier.cache().moved_rows(), 3U);
  const std::array<Token, 3> chain = {4, 5, 6};
  ASSERT_TRUE(verifier.verify(chain, 2));
  ASSERT_TRUE(verifier.commit(2));
  EXPECT_EQ(verifier.cache().moved_rows(), 3U) << "a chain is cut, not gathered";
}

/// Rows of the cache keep their place in memory, so a kept path is written into the array, not into a copy of it.
TEST(MlxVerifier, PassesAndCommitsWriteInPlace) {
  const LlamaModel model = tiny_model();
  const Tree tree;
  auto verifier = verifier_of(model, tiny_prompt());
  const auto place = [&] { return verifier.cache().layer(0).keys.data<float>(); };
  const float* const before = place();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(verifier.verify_tree(tree.batch, 5, tree.parents));
    EXPECT_EQ(place(), before) << "round " << round;
    ASSERT_TRUE(verifier.commit_rows(tree.second));
  }
}

TEST(MlxVerifier, GeneratesThePlainTextInFewerPasses) {
  const LlamaModel model = tiny_model(3);
  std::vector<Token> prompt;
  for (int i = 0; i < 5; ++i) prompt.insert(prompt.end(), {3, 1, 4, 1, 5});
  const auto make = [&] { return verifier_of(model, prompt); };
  auto plain_verifier = make();
  Session<NoDrafter> plain{NoDrafter()};
  const auto expected = generate(plain, plain_verifier, prompt, {.max_tokens = 150});
  ASSERT_TRUE(expected);
  for (const double cost : {0.0, 0.05}) {
    auto verifier = make();
    Speculator session(CostCurve::linear(cost));
    const auto got = generate(session, verifier, prompt, {.max_tokens = 150});
    ASSERT_TRUE(got);
    EXPECT_THAT(got->tokens, ElementsAreArray(expected->tokens));
    EXPECT_LE(got->statistics.passes, expected->statistics.passes);
  }
}

TEST(MlxVerifier, TopKIsThatOfTheLogitsAndChangesNothing) {
  const LlamaModel model = tiny_model();
  const auto prompt = tiny_prompt();
  auto asked = verifier_of(model, prompt, {.top_k = 3});
  auto silent = verifier_of(model, prompt);
  const std::array<Token, 3> batch = {6, 1, 2};
  const auto picks = asked.verify(batch, 2);
  ASSERT_TRUE(picks);
  ASSERT_TRUE(silent.verify(batch, 2));
  for (const std::size_t i : {2U, 0U, 1U}) {
    const TokenSpan best = asked.top_k(i);
    ASSERT_EQ(best.size(), 3U);
    EXPECT_EQ(best[0], (*picks)[i]);
    EXPECT_GT(asked.margin(i), 0);
  }
  ASSERT_TRUE(asked.commit(2));
  ASSERT_TRUE(silent.commit(2));
  const std::array<Token, 1> next = {2};
  EXPECT_EQ((*asked.verify(next, 0))[0], (*silent.verify(next, 0))[0]);
}

TEST(MlxVerifier, PassTimesAreOfTheEvaluation) {
  const LlamaModel model = tiny_model();
  auto verifier = verifier_of(model, tiny_prompt());
  EXPECT_EQ(verifier.pass_time().count(), 0);
  const std::array<Token, 1> batch = {6};
  ASSERT_TRUE(verifier.verify(batch, 0));
  EXPECT_GT(verifier.pass_time().count(), 0);
}

TEST(MlxVerifier, AnExceptionLeavesTheCommittedTokens) {
  FailingModel model(tiny_model());
  auto verifier = verifier_of(model, tiny_prompt());
  auto untouched = verifier_of(model, tiny_prompt());
  const std::array<Token, 3> batch = {6, 1, 2};
  model.fail_next = true;
  EXPECT_THROW(static_cast<void>(verifier.verify(batch, 2)), std::runtime_error);
  EXPECT_EQ(verifier.commit(1).error().code, ErrorCode::verifier_failed);
  model.fail_next = true;  // also while the cache is filled again
  EXPECT_THROW(static_cast<void>(verifier.verify(batch, 2)), std::runtime_error);
  EXPECT_EQ(verifier.cached().size(), 7U);
  const auto again = verifier.verify(batch, 2);
  ASSERT_TRUE(again);
  EXPECT_THAT(*again, ElementsAreArray(*untouched.verify(batch, 2)));
  ASSERT_TRUE(verifier.commit(2));
  EXPECT_EQ(verifier.cached().size(), 9U);
}

TEST(MlxVerifier, APrefillThatFailsInItsSecondChunkAddsNothing) {
  FailingModel model(tiny_model());
  auto verifier = verifier_of(model, tiny_prompt(), {.max_rows = 4});
  auto untouched = verifier_of(model, tiny_prompt(), {.max_rows = 4});
  const std::vector<Token> more = {6, 1, 2, 3, 4, 5, 7};
  model.fail_after = 1;
  EXPECT_THROW(static_cast<void>(verifier.prefill(more)), std::runtime_error);
  EXPECT_EQ(verifier.cached().size(), 7U) << "the first chunk is not kept either";
  ASSERT_TRUE(verifier.prefill(more));
  ASSERT_TRUE(untouched.prefill(more));
  EXPECT_THAT(verifier.cached(), ElementsAreArray(untouched.cached()));
  const std::array<Token, 1> anchor = {8};
  EXPECT_EQ((*verifier.verify(anchor, 0))[0], (*untouched.verify(anchor, 0))[0]);
}

TEST(MlxVerifier, RefusesSettingsThatCannotWork) {
  const LlamaModel model = tiny_model();
  using Verifier = MlxVerifier<const LlamaModel>;
  EXPECT_THAT(Verifier::make(model, {.leaves = 0}).error().message, HasSubstr("leaves is 0: set it to 1"));
  EXPECT_THAT(Verifier::make(model, {.max_rows = 1}).error().message, HasSubstr("set it to 2 or more"));
}

TEST(MlxVerifier, RefusesBadInputAndChangesNothing) {
  const LlamaModel model = tiny_model();
  auto verifier = verifier_of(model, tiny_prompt(), {.max_rows = 8});
  const std::array<Token, 1> anchor = {6};
  const Token expected = (*verifier.verify(anchor, 0))[0];

  for (const Token token : {-1, 23, std::numeric_limits<Token>::max(), std::numeric_limits<Token>::min()}) {
    const auto refused = verifier.prefill(std::array{token});
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(refused.error().message, HasSubstr("not in the model's vocabulary"));
    EXPECT_FALSE(verifier.verify(std::array{token}, 0));
  }
  const auto long_context = verifier.prefill(std::vector<Token>(194, 1));
  EXPECT_EQ(long_context.error().code, ErrorCode::context_too_long);
  EXPECT_EQ(long_context.error().value, 201U);
  EXPECT_EQ(long_context.error().limit, 200U);
  EXPECT_FALSE(verifier.verify(std::vector<Token>(9, 1), 2)) << "more rows than max_rows";
  EXPECT_FALSE(verifier.verify(anchor, 1)) << "no pending row";
  const std::array<Token, 3> three = {6, 1, 2};
  for (const std::vector<NodeIndex>& parents : {std::vector<NodeIndex>{-1}, {-1, 1}, {-2, 0}, {-1, 0, 1}})
    EXPECT_THAT(verifier.verify_tree(three, 2, parents).error().message, HasSubstr("each drafted row has a parent"));
  EXPECT_EQ(verifier.truncate(8).error().code, ErrorCode::size_out_of_range);

  // The pass from before is still the one to commit, and gives the same again.
  EXPECT_FALSE(verifier.commit(2));
  const std::array<std::size_t, 2> twice = {0, 0};
  EXPECT_FALSE(verifier.commit_rows(twice));
  EXPECT_EQ(verifier.cached().size(), 7U);
  EXPECT_EQ((*verifier.verify(anchor, 0))[0], expected);
  EXPECT_TRUE(verifier.commit(1));
}

TEST(MlxVerifier, ADraftedTokenOutsideOfTheVocabularyAgreesWithNoPick) {
  const LlamaModel model = tiny_model();
  auto verifier = verifier_of(model, tiny_prompt());
  auto plain = verifier_of(model, tiny_prompt());
  const std::array<Token, 3> batch = {6, 1000, -5};
  const auto picks = verifier.verify(batch, 2);
  ASSERT_TRUE(picks);
  EXPECT_EQ((*picks)[0], (*plain.verify(std::array<Token, 1>{6}, 0))[0]);
}

}  // namespace
}  // namespace reprise::mlx::mlx_verifier_test
