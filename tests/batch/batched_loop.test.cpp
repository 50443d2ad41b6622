// SPDX-License-Identifier: Apache-2.0
// Many sequences in one loop, as a scheduler drives them. Each must produce the same tokens as plain decoding alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/any_strategy.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/session.hpp"
#include "reprise_testing/random.hpp"
#include "support/hostile_strategy.hpp"
#include "support/plain_decoding.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::testing::batched_loop_test {
namespace {

AnyStrategy strategy_of(std::size_t kind, std::uint64_t seed) {
  switch (kind % 4) {
    case 0:
      return NgramDrafter<>();
    case 1:
      return PromptLookupDrafter<>();
    case 2:
      return HostileStrategy(seed, 6);
    default:
      return NoDrafter();
  }
}

/// A sequence, its engine, and its output under plain decoding.
struct Member {
  Member(std::uint64_t seed, std::size_t kind, bool failing) : random(seed), session(strategy_of(kind, seed)) {
    options.seed = seed;
    options.order = 1 + random.below(2);
    options.vocabulary = static_cast<Token>(4 + random.below(12));
    options.sampled = random.chance(30);
    options.penalty = random.chance(50) ? 100 : 0;
    options.capabilities.max_leaves = random.chance(50) ? 8 : 1;
    if (random.chance(20)) options.capabilities.max_depth = 3;
    for (std::size_t i = 0; i < 3 + random.below(40); ++i)
      prompt.push_back(static_cast<Token>(random.below(static_cast<std::size_t>(options.vocabulary))));
    limits.max_tokens = 1 + random.below(80);
    if (random.chance(50)) limits.eos = {1};
    if (random.chance(30)) limits.stop_sequences = {{2, 3}};

    ScriptedVerifier plain(options, prompt);
    std::vector<Token> context = prompt;
    expected = decode_plainly(plain, context, prompt.size(), limits, NeverStop());
    if (failing) options.faults = {.verify_every = 5, .as_errors = true};
    engine = ScriptedVerifier(options, prompt);
    EXPECT_TRUE(session.begin(prompt, options.capabilities));
  }
  /// Compares the sequence with plain decoding; for a cancelled sequence, up to its last committed token.
  void check() const {
    EXPECT_THAT(engine.violations(), ::testing::IsEmpty());
    const TokenSpan committed = session.context().subspan(prompt.size());
    ASSERT_LE(committed.size(), expected.committed.size());
    EXPECT_TRUE(std::equal(committed.begin(), committed.end(), expected.committed.begin()));
    if (!session.finished()) return;
    EXPECT_EQ(committed.size(), expected.committed.size());
    EXPECT_THAT(session.output(), ::testing::ElementsAreArray(expected.output()));
    EXPECT_EQ(session.finish_reason(), expected.finish);
  }

  Random random;
  ScriptedOptions options;
  std::vector<Token> prompt;
  Limits limits;
  PlainTurn expected;
  Session<AnyStrategy> session;
  ScriptedVerifier engine;
  Pass pass;
};

class BatchedLoop {
 public:
  explicit BatchedLoop(std::uint64_t seed, bool hostile_events = true)
      : random_(seed), events_(hostile_events), planner_(options(random_)) {}

  /// Serves `sequences` sequences, at most `places` at a time. Returns the number of drafted tokens.
  std::uint64_t run(std::size_t sequences, std::size_t places) {
    std::size_t begun = 0;
    while (begun < sequences || !members_.empty()) {
      while (begun < sequences && members_.size() < places && random_.chance(60)) {
        members_.push_back(std::make_unique<Member>(random_.next(), begun, events_ && begun % 3 == 0));
        ++begun;
      }
      step();
      if (::testing::Test::HasFailure()) break;
    }
    return drafted_;
  }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }
  [[nodiscard]] std::size_t finished() const { return finished_; }

 private:
  static BatchOptions options(Random& random) {
    BatchOptions options;
    if (random.chance(50)) options.curve = CostCurve::linear(0.01);
    if (random.chance(30)) options.curve = CostCurve::linear(0);
    if (random.chance(30)) options.max_rows = 2 + random.below(20);
    options.max_nodes = 1 + random.below(16);
    if (random.chance(30)) options.widths = {1, 2, 4, 9, 16, 40};
    return options;
  }
  void leave(std::size_t i) {
    members_[i]->check();
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  void step() {
    PassShape plain{members_.size(), 0, 0};
    for (const auto& member : members_) plain.rows += member->session.pending().size();
    DraftBudget asked;
    asked.max_leaves = 4;
    const DraftBudget budget = planner_.budget(asked, plain);
    for (std::size_t i = 0; i < members_.size();) {
      Member& member = *members_[i];
      member.limits.draft = budget;
      member.session.propose(member.limits);
      if (member.session.finished()) {
        ++finished_;
        leave(i);
      } else if (events_ && random_.chance(1)) {
        leave(i);  // its client has disconnected
      } else {
        ++i;
      }
    }
    entries_.clear();
    for (const auto& member : members_) {
      const auto offer = member->session.offer();
      ASSERT_TRUE(offer);
      entries_.push_back({*offer, member->session.context().size()});
    }
    BatchPlan plan = planner_.plan(entries_);
    if (random_.chance(20)) plan = planner_.shrink(members_.size() + random_.below(4));
    pack(plan);
    run_pass();
  }
  void pack(const BatchPlan& plan) {
    packer_.clear();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = *members_[i];
      const auto pass = member.session.plan(plan.nodes[i], plan.cut);
      ASSERT_TRUE(pass);
      ASSERT_LE(pass->drafted, plan.nodes[i]);
      member.pass = *pass;
      ASSERT_TRUE(packer_.add(static_cast<BatchSlot>(i), *pass, member.session.context().size()));
    }
    ASSERT_TRUE(packer_.pad_to(plan.width));
    ASSERT_EQ(packer_.batch().rows(), plan.width);
    digest_ = batch_digest(packer_.batch(), digest_);
  }
  /// Runs the rows of each sequence on its own engine, as the packed batch lists them.
  void run_pass() {
    committed_.clear();
    const PackedBatch batch = packer_.batch();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = *members_[i];
      const Pass& pass = member.pass;
      drafted_ += pass.drafted;
      committed_.push_back(0);
      const TokenSpan rows = batch.tokens.subspan(batch.offsets[i], pass.batch.size());
      std::vector<NodeIndex> parents;
      for (std::size_t row = pass.pending; row < rows.size(); ++row) {
        const NodeIndex parent = batch.parents[packer_.flat_row(i, row)];
        parents.push_back(parent - static_cast<NodeIndex>(pass.pending));
        ASSERT_EQ(batch.positions[packer_.flat_row(i, row)],
                  1 + batch.positions[packer_.flat_row(i, static_cast<std::size_t>(parent))]);
      }
      ASSERT_EQ(static_cast<std::size_t>(batch.positions[batch.offsets[i]]), member.session.cached());
      auto picks = member.engine.verify_tree(rows, parents.size(), parents);
      if (!picks || (events_ && random_.chance(3))) {  // failed, or preempted
        ASSERT_TRUE(member.session.cancel(pass.ticket));
        continue;
      }
      const auto decision = member.session.resolve(pass.ticket, *picks);
      ASSERT_TRUE(decision);
      ASSERT_TRUE(member.engine.commit_rows(decision->rows));
      committed_.back() = decision->tokens.size();
      ASSERT_TRUE(member.session.commit(pass.ticket));
    }
    planner_.learn(committed_, std::chrono::microseconds(1000 + 10 * batch.rows()));
  }

  Random random_;
  bool events_;
  BatchPlanner planner_;
  BatchPacker packer_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<BatchEntry> entries_;
  std::vector<std::size_t> committed_;
  std::uint64_t digest_ = 0;
  std::uint64_t drafted_ = 0;
  std::size_t finished_ = 0;
};

TEST(BatchedLoop, EachSequenceComesOutAsPlainDecodingAloneGivesIt) {
  std::uint64_t drafted = 0;
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    BatchedLoop loop(seed, false);
    drafted += loop.run(20, 1 + seed % 9);
    EXPECT_EQ(loop.finished(), 20U);
  }
  EXPECT_GT(drafted, 10000U) << "or nothing was tested";
}

TEST(BatchedLoop, OneThatFailsLeavesOrIsPreemptedTouchesNoOther) {
  std::size_t finished = 0;
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    BatchedLoop loop(seed);
    loop.run(20, 1 + seed % 9);
    finished += loop.finished();
  }
  EXPECT_GT(finished, 600U);
  EXPECT_LT(finished, 1200U) << "some have left";
}

TEST(BatchedLoop, RanksThatSeeTheSameDoTheSame) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    BatchedLoop one(seed);
    BatchedLoop other(seed);
    one.run(10, 6);
    other.run(10, 6);
    EXPECT_EQ(one.digest(), other.digest());
  }
}

}  // namespace
}  // namespace reprise::testing::batched_loop_test
