// SPDX-License-Identifier: Apache-2.0
// Predicted outputs: texts that NgramDrafter::predict() makes evidence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/history/memory.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/speculator.hpp"
#include "support/combined_world.hpp"
#include "support/fails.hpp"
#include "support/naive_index.hpp"

namespace reprise::testing::predicted_output_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
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
template <class Drafter = NgramDrafter<>>
Lent<Drafter> predicting(const Tokens& output, const NgramOptions& options = {}) {
  Drafter strategy(options);
  EXPECT_TRUE(strategy.predict(output));
  return Lent<Drafter>(std::move(strategy));
}
template <class Drafter>
Tokens chain_of(Lent<Drafter>& strategy, std::size_t nodes = 4) {
  return tokens_of(strategy.propose({.max_nodes = nodes, .shape = DraftShape::chain}, 256).nodes);
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

TEST(PredictedOutput, IsFollowedFromItsBeginning) {
  for (const std::size_t prompt : {1U, 3U, 300U}) {
    Lent<NgramDrafter<>> strategy = predicting(counting(1000, 50));
    strategy.begin(counting(1, prompt));
    EXPECT_THAT(chain_of(strategy), ElementsAre(1000, 1001, 1002, 1003)) << prompt;
    strategy.observe(Tokens{1000, 1001}, Origin::output);
    EXPECT_THAT(chain_of(strategy, 8), ElementsAreArray(counting(1002, 8))) << prompt;
  }
}
TEST(PredictedOutput, IsQuotedFromAnyPlace) {
  Lent<NgramDrafter<>> strategy = predicting(counting(100, 50));
  strategy.begin(Tokens{1, 2});
  strategy.observe(Tokens{120, 121}, Origin::output);
  EXPECT_THAT(chain_of(strategy), ElementsAre(122, 123, 124, 125));
}
TEST(PredictedOutput, IsOfOneSequence) {
  Lent<NgramDrafter<>> strategy = predicting(counting(100, 50));
  ASSERT_TRUE(strategy->predict(counting(200, 50))) << "a second text";
  const auto quoted = [&] {
    strategy.begin(Tokens{1, 2, 3});
    strategy.observe(Tokens{201, 202}, Origin::output);
    return chain_of(strategy);
  };
  EXPECT_THAT(quoted(), ElementsAre(203, 204, 205, 206));
  EXPECT_THAT(quoted(), Not(Contains(203)));
  ASSERT_TRUE(strategy->predict({}));
  EXPECT_THAT(quoted(), Not(Contains(203)));
}
TEST(PredictedOutput, OfARequestThatIsForgottenIsOfNoOtherOne) {
  const Tokens secret = counting(100, 50);
  const Tokens ids = {1, 2, 3};
  Follower follower{Speculator()};
  ASSERT_TRUE(follower.predict(secret));
  follower.forget();
  EXPECT_THAT(*follower.draft(ids, 8), Not(Contains(100)));
  ASSERT_TRUE(follower.predict(secret));
  EXPECT_THAT(*follower.draft(ids, 8), Contains(100));
  auto batch = BatchFollower<NgramDrafter<>>::make(2).value();
  const std::vector<FollowedSlot> slots = {{.slot = 0, .ids = ids}, {.slot = 1, .ids = ids}};
  ASSERT_TRUE(batch.predict(0, secret));
  ASSERT_TRUE(batch.predict(1, secret));
  batch.forget(0);
  ASSERT_TRUE(batch.assign(1, NgramDrafter<>()));
  const auto drafts = batch.draft(slots);
  for (const TokenSpan draft : *drafts) EXPECT_THAT(draft, Not(Contains(100)));
}
TEST(PredictedOutput, HasABound) {
  NgramDrafter<> drafter;
  const Tokens text(100'000, 3);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(drafter.predict(text));
  EXPECT_LE(drafter.memory_bytes(), (std::size_t{1} << 16) * sizeof(Token) * 2);
  Lent<NgramDrafter<>> strategy = predicting(counting(100, 60), {.max_replaced = 100});
  ASSERT_TRUE(strategy->predict(counting(500, 60)));
  strategy.begin(Tokens{1, 2, 3});
  EXPECT_THAT(chain_of(strategy), ElementsAre(500, 501, 502, 503)) << "both have no room";
}
TEST(PredictedOutput, IsKeptAsReplacedTextIs) {
  for (const std::size_t most : {0U, 20U, 32U, 36U, 60U, 1000U}) {
    Lent<NgramDrafter<>> strategy = predicting(counting(100, 500), {.max_replaced = most});
    strategy.begin(Tokens{1, 2, 3});
    EXPECT_LE(strategy->replaced_tokens(), most);
    strategy.observe(Tokens{597}, Origin::output);
    EXPECT_EQ(chain_of(strategy)[0] == 598, most > 32) << most << ": the latest tokens";
    strategy.rebase(Tokens{1, 2, 3, 597});
    EXPECT_EQ(chain_of(strategy)[0] == 598, most > 32) << most;
    strategy.truncate(2);
    strategy.observe(Tokens{597}, Origin::output);
    EXPECT_EQ(chain_of(strategy)[0] == 598, most > 32) << most;
  }
}
TEST(PredictedOutput, TakesNoMemoryFromTheContext) {
  Tokens text = random_text(20'000, 1, 5000);
  const Tokens prompt = counting(10'000, 100);
  for (std::size_t bytes = 2000; bytes < 2'000'000; bytes += bytes / 3) {
    NgramDrafter<> without({.max_bytes = bytes});
    Lent<NgramDrafter<>> strategy = predicting(text, {.max_bytes = bytes});
    Tokens context = prompt;
    context.insert(context.end(), prompt.begin(), prompt.begin() + 50);
    without.begin(context);
    strategy.begin(context);
    EXPECT_EQ(strategy->exhausted(), without.exhausted()) << bytes;
    if (without.exhausted()) continue;
    EXPECT_THAT(chain_of(strategy), ElementsAreArray(counting(10'050, 4))) << bytes;
  }
}
TEST(PredictedOutput, IsNotLeftToTheMemory) {
  Memory memory = Memory::make({.max_bytes = 1 << 20}).value();
  NgramDrafter<> drafter(memory.options());
  ASSERT_TRUE(drafter.predict(counting(100, 50)));
  drafter.begin(counting(1, 10));
  drafter.keep();
  Lent<NgramDrafter<>> other{NgramDrafter<>(memory.options())};
  other.begin(Tokens{100, 101, 102});
  EXPECT_THAT(chain_of(other), Not(Contains(103)));
  other.begin(Tokens{1, 2, 3});
  EXPECT_THAT(chain_of(other), ElementsAre(4, 5, 6, 7));
}
TEST(PredictedOutput, IsTheSameForEveryIndex) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Tokens text = random_text(400, seed, 30);
    auto one = predicting(text);
    auto other = predicting<NgramDrafter<NaiveIndex>>(text);
    one.begin(Tokens{1, 2});
    other.begin(Tokens{1, 2});
    for (std::size_t at = 0; at + 5 < text.size(); at += 5) {
      ASSERT_EQ(tokens_of(one.propose({.max_nodes = 12}, 256).nodes),
                tokens_of(other.propose({.max_nodes = 12}, 256).nodes))
          << seed;
      const Tokens said = at % 3 == 0
                              ? random_text(3, at, 30)
                              : Tokens(text.begin() + static_cast<int>(at), text.begin() + static_cast<int>(at) + 5);
      one.observe(said, Origin::output);
      other.observe(said, Origin::output);
    }
  }
}

TEST(PredictedOutput, SavesMostPassesOfAnEditedText) {
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
  EXPECT_LT(13 * with, 2 * edited.size()) << "more than 6.5 tokens for each pass";
  EXPECT_LT(4 * with, without);
}

/// A prediction is for one sequence, and the contract for any number of equal ones. The context comes after begin(), so
/// that no part of it leads into the prediction: that part stays if the context is truncated.
struct Predicting : NgramDrafter<> {
  void begin(TokenSpan context) {
    EXPECT_TRUE(predict(random_text(60, 3, 3)));
    NgramDrafter<>::begin({});
    observe(context, context.size(), Origin::prompt);
  }
};
TEST(PredictedOutput, KeepsTheContractOfStrategies) {
  StrategyCheck check;
  check.budget = {.max_nodes = 12, .max_depth = 6, .max_leaves = 3};
  const Report report = check_strategy([] { return Predicting(); }, check);
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}
TEST(PredictedOutput, IsLossless) {
  const auto make = [](TokenSpan) {
    NgramDrafter<> strategy;
    EXPECT_TRUE(strategy.predict(random_text(80, 3, 3)));
    return strategy;
  };
  EXPECT_GT(passes_saved_losslessly(make), 100U);
}

}  // namespace
}  // namespace reprise::testing::predicted_output_test
