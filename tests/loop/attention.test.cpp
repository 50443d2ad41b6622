// SPDX-License-Identifier: Apache-2.0

/// \file The loop on engines that really compute: attention, recurrent states, hybrids. The text equals plain decoding
/// token for token, for every draft and every way to verify it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/engine/tree.hpp"
#include "reprise/loop/generate.hpp"
#include "support/hostile_strategy.hpp"
#include "support/oracle_strategy.hpp"
#include "support/recurrent.hpp"
#include "support/transformer.hpp"
#include "support/transformer_engine.hpp"

namespace reprise::attention_test {
namespace {

using ::testing::ElementsAreArray;
using testing::HostileStrategy;
using testing::OracleOptions;
using testing::OracleStrategy;
using testing::PerRowRecurrentEngine;
using testing::RecurrentEngine;
using testing::RecurrentModel;
using testing::RecurrentOptions;
using testing::SamplerOptions;
using testing::Transformer;
using testing::TransformerEngine;
using testing::TransformerOptions;
using testing::WalkingTransformerEngine;

/// Returns random tokens of a vocabulary.
std::vector<Token> random_tokens(std::size_t count, std::uint64_t seed, std::size_t vocabulary = 64) {
  testing::Random random(seed);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>(random.below(vocabulary)));
  return tokens;
}

/// Returns the next `count` tokens, one per pass, of an engine that holds all of `prompt` but the last token.
template <class Engine>
std::vector<Token> plain_text(Engine& engine, TokenSpan prompt, std::size_t count) {
  std::vector<Token> text(1, prompt.back());
  while (text.size() <= count) {
    const Token anchor = text.back();
    auto picks = engine.verify(TokenSpan(&anchor, 1), 0);
    text.push_back(picks[0]);
    static_cast<void>(engine.commit(1));
  }
  text.erase(text.begin());
  return text;
}

std::vector<Token> as_vector(TokenSpan tokens) { return {tokens.begin(), tokens.end()}; }

PromptLookupDrafter<> copier() {
  PromptLookupOptions options;
  options.draft_length = 4;
  return PromptLookupDrafter<>::make(options).value();
}

struct Case {
  const char* name;
  SamplerOptions sampler;
  Capabilities capabilities;

  friend std::ostream& operator<<(std::ostream& out, const Case& which) { return out << which.name; }
};

Capabilities leaves(std::size_t most) {
  Capabilities can;
  can.max_leaves = most;
  return can;
}
/// Few rows, few widths, padding, and drafts of limited depth.
Capabilities narrow(std::size_t most_leaves) {
  Capabilities can = leaves(most_leaves);
  can.max_rows = 8;
  can.allowed_widths = {2, 5, 8};
  can.pad_token = 1;
  can.max_depth = 3;
  can.max_replay = 2;
  return can;
}

struct Attention : ::testing::TestWithParam<Case> {
  static constexpr std::size_t count = 48;
  const std::vector<Token> prompt = random_tokens(24, 2);
  Limits limits = [] {
    Limits all;
    all.max_tokens = count;
    all.draft.max_nodes = 8;
    return all;
  }();

  template <class Engine, class Model>
  [[nodiscard]] Engine engine(const Model& model) const {
    using Options =
        std::conditional_t<std::is_base_of_v<TransformerEngine, Engine>, TransformerOptions, RecurrentOptions>;
    Options options;
    options.sampler = GetParam().sampler;
    options.capabilities = GetParam().capabilities;
    return Engine(model, prompt, options);
  }
  template <class Engine, class Model>
  [[nodiscard]] std::vector<Token> truth(const Model& model) const {
    auto plain = engine<Engine>(model);
    return plain_text(plain, prompt, count);
  }
  /// Expects the text of plain decoding, and returns the statistics.
  template <class Engine, class Model, class Strategy>
  [[nodiscard]] Statistics compare(const Model& model, const std::vector<Token>& plain, Strategy strategy) const {
    auto drafted = engine<Engine>(model);
    Session<Strategy> session(std::move(strategy));
    const auto generation = generate(session, drafted, prompt, limits);
    EXPECT_TRUE(generation);
    if (!generation) return {};
    EXPECT_EQ(as_vector(generation->tokens), plain);
    return generation->statistics;
  }
  template <class Engine, class Model>
  void compare_all(const Model& model) const {
    const std::vector<Token> plain = truth<Engine>(model);
    const Statistics copied = compare<Engine>(model, plain, copier());
    EXPECT_GT(copied.accepted, 0U);
    EXPECT_LT(copied.accepted, copied.drafted);
    EXPECT_GT(compare<Engine>(model, plain, NgramDrafter<>()).accepted, 0U);
    EXPECT_GT(compare<Engine>(model, plain, HostileStrategy(1, 64)).drafted, 0U);
    std::vector<Token> known = prompt;
    known.insert(known.end(), plain.begin(), plain.end());
    const OracleOptions mostly_right{.right_percent = 80, .length = 4, .vocabulary = 64, .seed = 1, .siblings = true};
    EXPECT_GT(compare<Engine>(model, plain, OracleStrategy(known, mostly_right)).accepted, count / 4);
  }
  /// A predicate refuses a token, which ends generation. Generation then continues without the predicate.
  template <class Engine, class Model>
  void refuse_and_go_on(const Model& model) const {
    const std::vector<Token> plain = truth<Engine>(model);
    for (std::size_t at = 3; at < count; at += 15) {
      auto drafted = engine<Engine>(model);
      Session session(copier());
      const auto refuse = [&](TokenSpan output, Token) {
        return output.size() == at ? StopDecision::stop_before : StopDecision::proceed;
      };
      const auto first = generate(session, drafted, prompt, limits, IgnoreTokens(), refuse);
      ASSERT_TRUE(first);
      ASSERT_EQ(first->finish, FinishReason::predicate);
      ASSERT_EQ(as_vector(first->tokens), as_vector(TokenSpan(plain).first(at)));
      ASSERT_TRUE(session.append({}, Origin::prompt, session.cached()));  // the restored tokens are pending
      Limits rest = limits;
      rest.max_tokens = count - at;
      const auto second = generate(session, drafted, rest);
      ASSERT_TRUE(second);
      ASSERT_EQ(as_vector(second->tokens), as_vector(TokenSpan(plain).subspan(at)));
    }
  }
};

TEST_P(Attention, TransformerGivesThePlainText) {
  const Transformer model;
  compare_all<TransformerEngine>(model);
  refuse_and_go_on<TransformerEngine>(model);
}
TEST_P(Attention, TransformerThatWalksDraftsGivesThePlainText) {
  const Transformer model;
  compare_all<WalkingTransformerEngine>(model);
}
struct Recurrence : Attention {};

TEST_P(Recurrence, RecurrentModelWithSnapshotsGivesThePlainText) {
  const RecurrentModel model;
  compare_all<RecurrentEngine>(model);
  refuse_and_go_on<RecurrentEngine>(model);
}
TEST_P(Recurrence, HybridModelWithSnapshotsGivesThePlainText) {
  const RecurrentModel model({.attention_layers = 1});
  compare_all<RecurrentEngine>(model);
  refuse_and_go_on<RecurrentEngine>(model);
}
TEST_P(Recurrence, RecurrentModelWithAStateForEachRowGivesThePlainText) {
  const RecurrentModel model;
  compare_all<PerRowRecurrentEngine>(model);
  refuse_and_go_on<PerRowRecurrentEngine>(model);
}

constexpr auto name_of = [](const auto& test) { return std::string(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Verifying, Attention,
                         ::testing::Values(Case{"GreedyChains", {}, {}}, Case{"GreedyTrees", {}, leaves(unlimited)},
                                           Case{"GreedyNarrowTrees", {}, narrow(2)},
                                           Case{"SampledChains", {.sampled = true, .penalty = 0.5F}, {}},
                                           Case{"SampledTrees", {.sampled = true, .penalty = 0.5F}, leaves(unlimited)},
                                           Case{"SampledNarrowTrees", {.sampled = true}, narrow(3)}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Verifying, Recurrence,
                         ::testing::Values(Case{"Greedy", {}, {}}, Case{"GreedyNarrow", {}, narrow(1)},
                                           Case{"Sampled", {.sampled = true, .penalty = 0.5F}, {}},
                                           Case{"SampledNarrow", {.sampled = true}, narrow(1)}),
                         name_of);

TEST(AttentionMasks, AreTheOnesOfTheLibrary) {
  const Transformer model;
  const std::vector<Token> prompt = random_tokens(10, 3);
  testing::Random random(4);
  for (int repeat = 0; repeat < 10; ++repeat) {
    constexpr std::size_t drafted = 9;
    const std::size_t pending = 1 + random.below(3);
    const std::size_t rows = pending + drafted;
    std::vector<NodeIndex> parents;
    for (std::size_t row = 0; row < drafted; ++row)
      parents.push_back(static_cast<NodeIndex>(random.below(row + 1)) - 1);
    const std::vector<Token> batch = random_tokens(rows, random.next());
    TransformerEngine engine(model, prompt);
    static_cast<void>(engine.verify_tree(batch, drafted, parents));

    // The same pass with positions and mask from engine/, without the parents.
    std::vector<std::uint8_t> mask(rows * rows);
    std::vector<std::size_t> depths(drafted);
    attention_mask<std::uint8_t>(parents, pending, 0, rows, mask);
    tree_depths(parents, std::span(depths));
    testing::KvCache cache = TransformerEngine(model, prompt).cache();
    const std::size_t base = cache.size();
    std::vector<testing::PassRow> flat;
    for (std::size_t row = 0; row < rows; ++row)
      flat.push_back({batch[row], row < pending ? base + row : base + pending - 1 + depths[row - pending]});
    const auto scores = run_rows(model, flat, {&cache, 1}, [&](std::size_t row, std::vector<std::size_t>& seen) {
      seen.pop_back();
      for (std::size_t j = 0; j < rows; ++j)
        if (mask[row * rows + j] != 0) seen.push_back(base + j);
    });
    for (std::size_t i = 0; i <= drafted; ++i)
      ASSERT_THAT(engine.scores(i), ElementsAreArray(scores[pending - 1 + i])) << "row " << i;
  }
}

}  // namespace
}  // namespace reprise::attention_test
