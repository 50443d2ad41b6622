// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Checks that every drafter passes that learns from top-k rows.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/lossless.hpp"
#include "reprise_testing/random.hpp"
#include "support/ranked_rounds.hpp"
#include "support/transformer_engine.hpp"

namespace reprise::testing {

/// Checks the contract of strategies under budgets of every kind, without top-k rows and with them.
template <class Make>
void expect_contract_with_rows(Make make, const DraftBudget& whole, Token vocabulary = 6) {
  for (const DraftBudget& budget : {whole, DraftBudget{}, DraftBudget{.max_depth = 3}, DraftBudget{.max_leaves = 3},
                                    DraftBudget{.shape = DraftShape::chain}}) {
    const StrategyCheck check{.runs = 4, .budget = budget};
    const Report plain = check_strategy(make, check);
    EXPECT_TRUE(plain.passed()) << plain.to_string();
    const auto revealing = [&] { return Revealing(make(), RankedText{.order = 2, .vocabulary = vocabulary}); };
    const Report with_rows = check_strategy(revealing, check);
    EXPECT_TRUE(with_rows.passed()) << with_rows.to_string();
  }
}

/// Shows tokens of any value, and rows that do not exist, to a drafter that keeps rankings. `known` is the row that it
/// keeps of {least, greatest, -1}, and `unknown` the row of tokens for which it has no room.
template <class Strategy>
void expect_any_token_is_taken(Lent<Strategy> drafter, const std::vector<Token>& known,
                               const std::vector<Token>& unknown) {
  constexpr Token lowest = std::numeric_limits<Token>::min();
  constexpr Token highest = std::numeric_limits<Token>::max();
  drafter.begin(std::vector<Token>{lowest, highest, -1, 5});
  show_row(drafter, {lowest, highest, -1}, highest);
  EXPECT_EQ(row_of(drafter, 5), known);
  for (const Token token : {lowest, highest, -1}) {
    show_row(drafter, {5}, token);
    show_row(drafter, {5}, token);
    EXPECT_EQ(row_of(drafter, token), unknown);
    EXPECT_FALSE(drafter.propose({.max_nodes = 80}, 80).malformed);
  }
  EXPECT_LE(drafter->memory_bytes(), (std::size_t{32} << 20) + 100);
  const Outcome::RankedToken odd[] = {
      {NodeIndex{1000}, 0, 1}, {NodeIndex{-7}, 0, 1}, {anchor_parent, 40, 1}, {anchor_parent, 3, 1}};
  drafter.feedback({{}, {}, {}, {}, Cut::none, odd});
}

/// Decodes with a transformer, greedily and with samples, in chains and trees. The text must be that of plain decoding.
template <class Strategy>
void expect_lossless_on_transformer(const Strategy& strategy, const DraftBudget& budget = {}) {
  const Transformer model;
  for (const bool sampled : {false, true})
    for (const std::size_t leaves : {std::size_t{1}, std::size_t{4}, unlimited}) {
      TransformerOptions engine;
      engine.sampler.sampled = sampled;
      engine.sampler.temperature = 0.5F;
      engine.sampler.candidates = 8;
      engine.capabilities.max_leaves = leaves;
      const auto make = [&](TokenSpan tokens) { return TransformerEngine(model, tokens, engine); };
      const Limits limits{.max_tokens = 150, .draft = budget};
      const auto report = compare_lossless(make, std::vector<Token>{1, 2, 3, 4, 5}, limits, strategy);
      EXPECT_TRUE(report.identical()) << report.message;
      EXPECT_GT(report.drafted.statistics.accepted, leaves > 4 ? 10U : 0U);
    }
}

/// Returns a number of the tokens and parents of a draft, and of the number `before`.
inline std::uint64_t digest_of(const std::vector<DraftNode>& nodes, std::uint64_t before) {
  for (const DraftNode& node : nodes)
    before = mix(before ^ static_cast<std::uint32_t>(node.token) ^
                 std::uint64_t{static_cast<std::uint16_t>(node.parent)} << 32);
  return mix(before ^ nodes.size());
}

/// Decodes three sequences under every combination of a few targets and budgets. `made()` returns a lent drafter.
/// Returns a digest of all drafts. Rows are sent in part, or hidden, if `all_rows` is false.
template <class Made>
std::uint64_t digest_of_rounds(Made made, const DraftBudget& whole, std::uint64_t target_seed, std::uint64_t seed,
                               bool all_rows = true) {
  std::uint64_t digest = 0;
  for (const std::size_t order : {1U, 3U})
    for (const Token vocabulary : {3, 12, 400})
      for (const DraftBudget& budget :
           {whole, DraftBudget{.max_nodes = 12}, DraftBudget{.max_nodes = 20, .shape = DraftShape::chain}}) {
        const RankedText target{.order = order, .vocabulary = vocabulary, .seed = target_seed};
        auto drafter = made();
        Random random(seed + order);
        for (int sequence = 0; sequence < 3; ++sequence) {
          std::vector<Token> text(1 + random.below(30));
          for (Token& token : text) token = static_cast<Token>(random.below(5));
          drafter.begin(text);
          for (int i = 0; i < 12; ++i) {
            RankedRoundOptions how{.budget = budget};
            if (!all_rows) how.most_sent = random.below(30);
            if (!all_rows) how.reveals = random.chance(70);
            digest = digest_of(run_round(drafter, target, how).nodes, digest);
            if (random.chance(15)) drafter.truncate(1 + random.below(drafter.context().size()));
            if (random.chance(15)) drafter.observe(text, Origin::prompt);
          }
        }
      }
  return digest;
}

}  // namespace reprise::testing
