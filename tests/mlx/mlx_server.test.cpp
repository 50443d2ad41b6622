// SPDX-License-Identifier: Apache-2.0
// Many sequences in one pass of MLX: the conformance kit for batches, and bad input.
#include "mlx_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <vector>

#include "llama_model.hpp"
#include "reprise_testing/check_batch.hpp"
#include "tiny_model.hpp"

namespace reprise::mlx::mlx_server_test {
namespace {

using testing::BatchCheck;
using ::testing::HasSubstr;
using testing::Verdict;

const std::vector<std::vector<Token>>& prompts() {
  static const std::vector<std::vector<Token>> all = {{3, 1, 4, 1, 5, 9}, {2}, {2, 7, 1, 8, 2, 8, 1, 8}, {5, 5, 5}};
  return all;
}

template <class Model>
MlxServer<Model> server_of(Model& model) {
  MlxServer<Model> server(model);
  for (std::size_t s = 0; s < prompts().size(); ++s)
    EXPECT_TRUE(server.prefill(s, TokenSpan(prompts()[s]).first(prompts()[s].size() - 1)));
  return server;
}
static_assert(testing::BatchServer<MlxServer<const LlamaModel>>);

TEST(MlxServer, PassesTheConformanceKitExactly) {
  const LlamaModel model = tiny_model();
  const auto report = testing::check_batch([&] { return server_of(model); }, prompts(),
                                           BatchCheck{.tokens = 16, .capabilities = {.max_leaves = 4}});
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  std::cout << report.to_string();
}

TEST(MlxServer, PassesTheConformanceKitWithFewRows) {
  const LlamaModel model = tiny_model(101);
  const auto report = testing::check_batch([&] { return server_of(model); }, prompts(),
                                           BatchCheck{.tokens = 12, .mixed_runs = 4, .max_rows = 6});
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}

SequencePass part(std::size_t sequence, TokenSpan batch, std::size_t context) {
  return {.sequence = sequence, .batch = batch, .context = context};
}

TEST(MlxServer, RowsOfASequenceThatLeftAreDropped) {
  const LlamaModel model = tiny_model();
  auto server = server_of(model);
  const std::array<Token, 1> anchor = {9};
  const auto before = server.verify(std::array{part(0, anchor, 6)});
  ASSERT_TRUE(before);
  const Token pick = (*before)[0][0];
  EXPECT_EQ(server.cache().size(), 5U + 0 + 7 + 2 + 1);
  server.leave(2);
  const auto after = server.verify(std::array{part(0, anchor, 6)});
  ASSERT_TRUE(after);
  EXPECT_EQ((*after)[0][0], pick);
  EXPECT_EQ(server.cache().size(), 5U + 0 + 2 + 1);
  EXPECT_EQ(server.top_k(0, 0)[0], pick);
  EXPECT_GT(server.pass_time().count(), 0);
}

/// A sequence usually leaves after its last commit, before the next pass has moved the committed rows.
TEST(MlxServer, ASequenceThatLeavesAfterItsCommitTakesItsRowsAlong) {
  const LlamaModel model = tiny_model();
  auto server = server_of(model);
  const std::array<Token, 1> anchor = {9};
  const auto before = server.verify(std::array{part(0, anchor, 6)});
  ASSERT_TRUE(before);
  const Token pick = (*before)[0][0];
  const std::array<std::size_t, 1> first = {0};
  ASSERT_TRUE(server.commit(0, first));
  server.leave(0);
  ASSERT_TRUE(server.prefill(0, TokenSpan(prompts()[0]).first(5))) << "the id is free again";
  server.leave(2);
  const auto after = server.verify(std::array{part(0, anchor, 6)});
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ((*after)[0][0], pick);
  EXPECT_EQ(server.cache().size(), 5U + 0 + 2 + 1);
}

TEST(MlxServer, ASequenceThatLeavesAfterItsPrefillTakesItsRowsAlong) {
  const LlamaModel model = tiny_model();
  auto server = server_of(model);
  server.leave(3);  // the last one that was filled
  const std::array<Token, 1> anchor = {9};
  ASSERT_TRUE(server.verify(std::array{part(0, anchor, 6)}));
  EXPECT_EQ(server.cache().size(), 5U + 0 + 7 + 1);
}

TEST(MlxServer, RefusesPassesAndRowsThatWouldSpoilTheCache) {
  const LlamaModel model = tiny_model();
  auto server = server_of(model);
  const std::array<std::size_t, 1> first = {0};
  EXPECT_THAT(server.commit(3, first).error().message, HasSubstr("not in the last pass")) << "prefill has kept them";
  EXPECT_THAT(server.verify({}).error().message, HasSubstr("needs at least one part"));
  const std::array<Token, 1> anchor = {9};
  EXPECT_THAT(server.verify(std::array{part(0, anchor, 6), part(0, anchor, 6)}).error().message,
              HasSubstr("only one part of each sequence"));
  for (const std::size_t sequence : {std::size_t{1} << 31, std::numeric_limits<std::size_t>::max()}) {
    EXPECT_THAT(server.prefill(sequence, anchor).error().message, HasSubstr("below 2147483648"));
    EXPECT_FALSE(server.commit(sequence, first));
  }
  const std::array<Token, 3> batch = {9, 1, 2};
  const std::array<NodeIndex, 2> chain = {-1, 0};
  const SequencePass drafted{.sequence = 0, .batch = batch, .drafted = 2, .parents = chain, .context = 6};
  const auto picks = server.verify(std::array{drafted});
  ASSERT_TRUE(picks);
  for (const std::vector<std::size_t>& rows : {std::vector<std::size_t>{0, 0}, {1, 0}, {0, 3}})
    EXPECT_EQ(server.commit(0, rows).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(server.commit(0, first)) << "the pass is still the one to commit";
  EXPECT_EQ(server.cache().size(), 5U + 0 + 7 + 2 + 3) << "rows move when the next pass starts";
}

TEST(MlxServer, RefusesBadInputAndChangesNothing) {
  const LlamaModel model = tiny_model();
  auto server = server_of(model);
  const std::array<Token, 1> anchor = {9}, unknown = {23};
  EXPECT_THAT(server.verify(std::array{part(0, unknown, 6)}).error().message, HasSubstr("model's vocabulary"));
  EXPECT_THAT(server.verify(std::array{part(0, anchor, 8)}).error().message, HasSubstr("does not continue"));
  SequencePass no_parents = part(0, anchor, 6);
  no_parents.drafted = 1;
  EXPECT_THAT(server.verify(std::array{no_parents}).error().message, HasSubstr("at least one pending row"));
  EXPECT_EQ(server.prefill(1, std::vector<Token>(201, 1)).error().code, ErrorCode::context_too_long);
  const auto picks = server.verify(std::array{part(0, anchor, 6)});
  ASSERT_TRUE(picks);
  const std::array<std::size_t, 1> first = {0}, second = {1};
  EXPECT_THAT(server.commit(1, first).error().message, HasSubstr("not in the last pass"));
  EXPECT_THAT(server.commit(0, second).error().message, HasSubstr("does not have so many rows"));
  EXPECT_TRUE(server.commit(0, first));
  EXPECT_FALSE(server.commit(0, first)) << "committed already";
}

TEST(MlxServer, RefusesPassesAfterAFailure) {
  FailingModel model(tiny_model());
  auto server = server_of(model);
  const std::array<Token, 1> anchor = {9};
  model.fail_next = true;
  EXPECT_THROW(static_cast<void>(server.verify(std::array{part(0, anchor, 6)})), std::runtime_error);
  EXPECT_THAT(server.verify(std::array{part(0, anchor, 6)}).error().message, HasSubstr("make a new server"));
}

}  // namespace
}  // namespace reprise::mlx::mlx_server_test
