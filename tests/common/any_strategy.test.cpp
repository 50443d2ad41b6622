// SPDX-License-Identifier: Apache-2.0
#include "common/any_strategy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/strategy.hpp"
#include "support/lent_context.hpp"

namespace reprise::any_strategy_test {
namespace {

using Tokens = std::vector<Token>;
using Log = std::vector<std::string>;
static_assert(ReservableStrategy<AnyStrategy> && MeasurableStrategy<AnyStrategy>);

Tokens drafted_by(AnyStrategy& strategy) { return testing::propose(strategy, {}, {.max_nodes = 5}).tokens(); }

/// Records its calls; copies write to the same log.
struct Recorder {
  std::shared_ptr<Log> log = std::make_shared<Log>();

  void begin(TokenSpan context) { log->push_back("begin " + std::to_string(context.size())); }
  void observe(TokenSpan context, std::size_t fresh, Origin) {
    log->push_back("observe " + std::to_string(fresh) + " of " + std::to_string(context.size()));
  }
  void propose(TokenSpan context, Draft& draft) {
    log->push_back("propose " + std::to_string(draft.budget().max_nodes) + " after " + std::to_string(context.size()));
    draft.extend({.token = 7});
  }
  void feedback(TokenSpan, const Outcome& outcome) {
    log->push_back("feedback " + std::string(to_string(outcome.cut)));
  }
  void truncate(TokenSpan, std::size_t size) { log->push_back("truncate to " + std::to_string(size)); }
};

/// Has all that is optional, too.
struct Able : Recorder {
  void reserve(std::size_t max_context) { log->push_back("reserve " + std::to_string(max_context)); }
  [[nodiscard]] std::size_t memory_bytes() const { return 123; }
  [[nodiscard]] std::size_t top_k_wanted() const { return 5; }
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const {
    return std::span(weights).first(static_cast<std::size_t>(node));
  }
  void learn_row(TokenSpan, TokenSpan likeliest) { log->push_back("row of " + std::to_string(likeliest.size())); }
  void rebase(TokenSpan before, TokenSpan context) {
    log->push_back("rebase " + std::to_string(before.size()) + " to " + std::to_string(context.size()));
  }
  static constexpr std::array<float, 3> weights = {0.25F, 0.5F, 0.25F};
};

/// Makes every call, and returns the tokens of the draft.
Tokens call_all(AnyStrategy strategy) {
  strategy.reserve(99);
  strategy.begin(Tokens{1, 2, 3});
  strategy.observe(Tokens{1, 2, 3, 4}, 1, Origin::output);
  const Tokens drafted = drafted_by(strategy);
  Outcome outcome;
  outcome.cut = Cut::width;
  strategy.feedback({}, outcome);
  strategy.truncate(Tokens{1, 2}, 1);
  strategy.learn_row(Tokens{1}, Tokens{4, 5});
  strategy.rebase(Tokens{1, 2, 3}, Tokens{1, 2});
  return drafted;
}

TEST(AnyStrategy, PassesOnWhatItsStrategyHas) {
  const Able able;
  EXPECT_EQ(call_all(AnyStrategy(able)), Tokens{7});
  EXPECT_EQ(*able.log, (Log{"reserve 99", "begin 3", "observe 1 of 4", "propose 5 after 0", "feedback width",
                            "truncate to 1", "row of 2", "rebase 3 to 2"}));
  EXPECT_EQ(AnyStrategy(able).memory_bytes(), 123U);
  EXPECT_EQ(AnyStrategy(able).top_k_wanted(), 5U);
  EXPECT_EQ(AnyStrategy(able).distribution(2).size(), 2U);

  const Recorder recorder;
  EXPECT_EQ(call_all(AnyStrategy(recorder)), Tokens{7});
  EXPECT_EQ(*recorder.log,
            (Log{"begin 3", "observe 1 of 4", "propose 5 after 0", "feedback width", "truncate to 1", "begin 2"}))
      << "a strategy that cannot rebase begins again";
  EXPECT_EQ(call_all(AnyStrategy()), Tokens()) << "by default it drafts nothing";
  for (const AnyStrategy& other : {AnyStrategy(), AnyStrategy(recorder)}) {
    EXPECT_EQ(other.memory_bytes(), 0U);
    EXPECT_EQ(other.top_k_wanted(), 0U);
    EXPECT_TRUE(other.distribution(2).empty());
  }
}

TEST(AnyStrategy, OwnsItsStrategy) {
  const Recorder recorder;
  {
    AnyStrategy first(recorder);
    AnyStrategy second = first;
    EXPECT_EQ(recorder.log.use_count(), 3) << "a copy of an AnyStrategy wraps it no further";
    AnyStrategy third = std::move(first);
    EXPECT_EQ(drafted_by(first), Tokens());  // NOLINT(bugprone-use-after-move): this is what is tested
    second = third;
    const AnyStrategy& same = second;
    second = same;
    EXPECT_EQ(drafted_by(second), Tokens{7});
    third = NoDrafter();
    EXPECT_EQ(recorder.log.use_count(), 2) << "the recorder and `second`";
    EXPECT_EQ(std::as_const(second).get<Recorder>()->log, recorder.log);
    EXPECT_EQ(second.get<NoDrafter>(), nullptr);
    EXPECT_EQ(AnyStrategy().get<Recorder>(), nullptr);
  }
  EXPECT_EQ(recorder.log.use_count(), 1);
}

}  // namespace
}  // namespace reprise::any_strategy_test
