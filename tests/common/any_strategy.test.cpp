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
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "support/lent_context.hpp"

namespace reprise::any_strategy_test {
namespace {

using Tokens = std::vector<Token>;

static_assert(ReservableStrategy<AnyStrategy> && MeasurableStrategy<AnyStrategy>);

using AnyLent = testing::Lent<AnyStrategy>;

Tokens drafted_by(AnyLent& strategy, const DraftBudget& budget = {}) { return strategy.propose(budget).tokens(); }
Tokens drafted_by(AnyStrategy& strategy) { return testing::propose(strategy, {}).tokens(); }

/// Records its calls; copies write to the same log.
struct Recorder {
  std::shared_ptr<std::vector<std::string>> log = std::make_shared<std::vector<std::string>>();

  void begin(TokenSpan context) { log->push_back("begin " + std::to_string(context.size())); }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    log->push_back("observe " + std::to_string(fresh) + (origin == Origin::output ? " output" : " prompt") + " of " +
                   std::to_string(context.size()));
  }
  void propose(TokenSpan context, Draft& draft) {
    log->push_back("propose " + std::to_string(draft.budget().max_nodes) + " after " + std::to_string(context.size()));
    draft.extend({.token = 7});
  }
  void feedback(TokenSpan context, const Outcome& outcome) {
    log->push_back("feedback " + std::string(to_string(outcome.cut)) + " after " + std::to_string(context.size()));
  }
  void truncate(TokenSpan context, std::size_t size) {
    log->push_back("truncate " + std::to_string(context.size()) + " to " + std::to_string(size));
  }
};

struct SizedRecorder : Recorder {
  void reserve(std::size_t max_context) { log->push_back("reserve " + std::to_string(max_context)); }
  [[nodiscard]] std::size_t memory_bytes() const { return 123; }
};

struct Sampler : Recorder {
  [[nodiscard]] std::size_t top_k_wanted() const { return 5; }
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const {
    return std::span(weights).first(static_cast<std::size_t>(node));
  }
  void learn_row(TokenSpan context, TokenSpan likeliest) {
    log->push_back("row of " + std::to_string(likeliest.size()) + " after " + std::to_string(context.size()));
  }
  static constexpr std::array<float, 3> weights = {0.25F, 0.5F, 0.25F};
};

TEST(AnyStrategy, GivesTheStrategyInsideToWhoKnowsItsType) {
  Recorder recorder;
  const AnyStrategy strategy = recorder;
  const AnyStrategy copy = strategy;
  ASSERT_NE(strategy.get<Recorder>(), nullptr);
  EXPECT_EQ(strategy.get<Recorder>()->log, recorder.log);
  EXPECT_NE(copy.get<Recorder>(), strategy.get<Recorder>()) << "a copy has its own";
  EXPECT_EQ(strategy.get<SizedRecorder>(), nullptr);
  EXPECT_EQ(strategy.get<NoDrafter>(), nullptr);
  EXPECT_EQ(AnyStrategy().get<Recorder>(), nullptr);

  AnyStrategy changeable = strategy;
  ASSERT_NE(changeable.get<Recorder>(), nullptr);
  changeable.get<Recorder>()->log = nullptr;
  EXPECT_EQ(std::as_const(changeable).get<Recorder>()->log, nullptr);
  EXPECT_NE(strategy.get<Recorder>()->log, nullptr);
  EXPECT_EQ(changeable.get<NoDrafter>(), nullptr);
}

TEST(AnyStrategy, SaysWhatItsStrategySaysOfCandidatesAndDistributions) {
  const AnyStrategy sampler{Sampler()};
  EXPECT_EQ(sampler.top_k_wanted(), 5U);
  EXPECT_EQ(sampler.distribution(2).size(), 2U);
  EXPECT_EQ(sampler.distribution(2)[1], 0.5F);
  AnyStrategy learner = sampler;
  const std::size_t calls = learner.get<Sampler>()->log->size();
  learner.learn_row(Tokens{1, 2, 3}, Tokens{4, 5});
  ASSERT_EQ(learner.get<Sampler>()->log->size(), calls + 1);
  EXPECT_EQ(learner.get<Sampler>()->log->back(), "row of 2 after 3");
  AnyStrategy unable{Recorder()};
  unable.learn_row(Tokens{1}, Tokens{2});
  EXPECT_TRUE(unable.get<Recorder>()->log->empty());
  for (const AnyStrategy& other : {AnyStrategy(), AnyStrategy(Recorder())}) {
    EXPECT_EQ(other.top_k_wanted(), 0U);
    EXPECT_TRUE(other.distribution(2).empty());
  }
}
TEST(AnyStrategy, PassesEveryCallOn) {
  const SizedRecorder recorder;
  AnyLent strategy{AnyStrategy(recorder)};
  const Tokens tokens = {1, 2, 3};
  strategy.begin(tokens);
  strategy.observe(tokens, Origin::output);
  strategy.observe({}, Origin::prompt);
  DraftBudget budget;
  budget.max_nodes = 5;
  EXPECT_EQ(drafted_by(strategy, budget), Tokens{7});
  Outcome outcome;
  outcome.cut = Cut::width;
  strategy.feedback(outcome);
  strategy.truncate(2);
  strategy.reserve(99);
  EXPECT_EQ(strategy->memory_bytes(), 123U);
  const std::vector<std::string> expected = {"begin 3",           "observe 3 output of 6",  "observe 0 prompt of 6",
                                             "propose 5 after 6", "feedback width after 6", "truncate 6 to 2",
                                             "reserve 99"};
  EXPECT_EQ(*recorder.log, expected);
}

struct RebasingRecorder : Recorder {
  void rebase(TokenSpan before, TokenSpan context) {
    log->push_back("rebase " + std::to_string(before.size()) + " to " + std::to_string(context.size()));
  }
};
TEST(AnyStrategy, RebasesAStrategyThatCan) {
  const RebasingRecorder rebasing;
  AnyStrategy(rebasing).rebase(Tokens{1, 2, 3}, Tokens{1, 2});
  EXPECT_EQ(*rebasing.log, std::vector<std::string>{"rebase 3 to 2"});
  const Recorder recorder;
  AnyStrategy(recorder).rebase(Tokens{1, 2, 3}, Tokens{1, 2});
  EXPECT_EQ(*recorder.log, std::vector<std::string>{"begin 2"});
  AnyStrategy().rebase(Tokens{1, 2, 3}, Tokens{1, 2});
}

TEST(AnyStrategy, DoesWithoutWhatIsOptional) {
  const Recorder recorder;
  AnyStrategy strategy(recorder);
  strategy.reserve(99);
  EXPECT_EQ(strategy.memory_bytes(), 0U);
  EXPECT_TRUE(recorder.log->empty());
}

TEST(AnyStrategy, DraftsNothingByDefault) {
  AnyStrategy strategy;
  strategy.begin(Tokens{1, 1});
  strategy.observe(Tokens{1, 1, 1}, 1, Origin::output);
  strategy.feedback({}, {});
  strategy.truncate(Tokens{1, 1, 1}, 1);
  strategy.reserve(10);
  EXPECT_EQ(drafted_by(strategy), Tokens());
  EXPECT_EQ(strategy.memory_bytes(), 0U);
  AnyStrategy copy = strategy;
  EXPECT_EQ(drafted_by(copy), Tokens());
}

TEST(AnyStrategy, CopyAssignmentGoesOnIndependently) {
  AnyLent first{AnyStrategy(PromptLookupDrafter<>())};
  first.begin(Tokens{1, 2, 1});
  AnyLent second{AnyStrategy(NoDrafter())};
  second = first;
  first.truncate(1);
  EXPECT_EQ(drafted_by(second, {.max_nodes = 1}), Tokens{2});
  const AnyLent& same = second;
  second = same;
  EXPECT_EQ(drafted_by(second, {.max_nodes = 1}), Tokens{2});
}

TEST(AnyStrategy, MovingLeavesAStrategyThatDraftsNothing) {
  AnyLent first{AnyStrategy(PromptLookupDrafter<>())};
  first.begin(Tokens{1, 2, 1});
  AnyStrategy second = std::move(first.strategy());
  EXPECT_EQ(testing::propose(second, first.context(), {.max_nodes = 1}).tokens(), Tokens{2});
  EXPECT_EQ(drafted_by(first), Tokens());  // NOLINT(bugprone-use-after-move): this is what is tested
}

TEST(AnyStrategy, OfAnAnyStrategyIsACopyNotAWrapper) {
  const Recorder recorder;
  AnyStrategy first(recorder);
  const long owners = recorder.log.use_count();
  AnyStrategy second(first);
  EXPECT_EQ(recorder.log.use_count(), owners + 1);
  EXPECT_EQ(drafted_by(second), Tokens{7});
}

TEST(AnyStrategy, DestroysEveryCopyOfTheStrategyOnce) {
  const Recorder recorder;
  {
    AnyStrategy first(recorder);
    AnyStrategy second = first;
    AnyStrategy third = std::move(first);
    second = third;
    third = NoDrafter();
    EXPECT_EQ(recorder.log.use_count(), 2) << "the recorder and `second`";
  }
  EXPECT_EQ(recorder.log.use_count(), 1);
}

/// A class that holds any strategy, as programs write them. Its copyability must not depend on itself, which would not
/// compile.
class Around {
 public:
  explicit Around(AnyStrategy strategy) : strategy_(std::move(strategy)) {}
  void begin(TokenSpan context) { strategy_.begin(context); }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) { strategy_.observe(context, fresh, origin); }
  void propose(TokenSpan context, Draft& draft) { strategy_.propose(context, draft); }
  void feedback(TokenSpan context, const Outcome& outcome) { strategy_.feedback(context, outcome); }
  void truncate(TokenSpan context, std::size_t size) { strategy_.truncate(context, size); }

 private:
  AnyStrategy strategy_;
};
static_assert(DraftStrategy<Around>);

TEST(AnyStrategy, CanBeHeldByAStrategyThatIsHeldByAnAnyStrategy) {
  AnyStrategy outer{Around(AnyStrategy(Recorder()))};
  AnyStrategy copy = outer;
  EXPECT_EQ(drafted_by(copy), Tokens{7});
}

}  // namespace
}  // namespace reprise::any_strategy_test
