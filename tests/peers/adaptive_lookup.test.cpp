// SPDX-License-Identifier: Apache-2.0
#include "peers/adaptive_lookup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/random.hpp"
#include "support/lent_context.hpp"
#include "support/preset_rules.hpp"
#include "support/ranked_checks.hpp"

namespace reprise::peers::adaptive_lookup_test {
namespace {

using Lent = testing::Lent<AdaptiveLookup>;
using Tokens = std::vector<Token>;

TEST(AdaptiveLookup, KeepsTheContractOfAStrategy) {
  const testing::Report report = testing::check_strategy([] { return AdaptiveLookup(); });
  EXPECT_TRUE(report.passed()) << report.to_string();
}

TEST(AdaptiveLookup, DraftsAsThePlainRule) {
  testing::Random random(1);
  for (int text = 0; text < 200; ++text) {
    const std::size_t vocabulary = 2 + random.below(20);
    Tokens context;
    for (std::size_t i = 1 + random.below(100); i > 0; --i)
      context.push_back(static_cast<Token>(random.below(vocabulary)));
    testing::AdaptiveRule rule{0};
    Lent drafter;
    drafter.begin(context);
    for (int round = 0; round < 20; ++round) {
      const testing::Drafted draft = drafter.propose();
      ASSERT_EQ(draft.tokens(), rule.draft(context));
      for (std::size_t i = 0; i < draft.nodes.size(); ++i)
        ASSERT_NEAR(draft.nodes[i].path_probability.to_double(), std::pow(rule.rate(), i + 1), 1e-6);
      const std::size_t accepted = random.below(draft.nodes.size() + 1);
      std::vector<NodeIndex> sent(std::min(accepted + random.below(3), draft.nodes.size()));
      for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<NodeIndex>(i);
      const std::span<const NodeIndex> path = std::span(sent).first(std::min(accepted, sent.size()));
      drafter.feedback({draft.view(), sent, path, 0, Cut::none, {}});
      rule.learn(sent.size(), path.size());
      Tokens fresh;
      for (const NodeIndex node : path) fresh.push_back(draft.nodes[static_cast<std::size_t>(node)].token);
      fresh.push_back(static_cast<Token>(random.below(vocabulary)));
      drafter.observe(fresh);
      context.insert(context.end(), fresh.begin(), fresh.end());
      if (!random.chance(20)) continue;
      context.resize(1 + random.below(context.size()));
      drafter.truncate(context.size());
    }
  }
}

TEST(AdaptiveLookup, CostsALosslessRunOfATransformerNoToken) {
  testing::expect_lossless_on_transformer(AdaptiveLookup(), {});
}

}  // namespace
}  // namespace reprise::peers::adaptive_lookup_test
