// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/session.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "support/allocation_counter.hpp"
#include "support/naive_index.hpp"

// Every allocation of a session fails once. Afterwards the session must be usable, and the output must equal plain
// decoding. unordered_dense tests its containers this way.
namespace reprise::testing::allocation_test {
namespace {

/// A strategy that allocates by throwing, with a std::vector. It repeats the tokens after the last occurrence of the
/// last token.
struct VectorStrategy {
  std::vector<Token> seen;
  void begin(TokenSpan tokens) { seen.assign(tokens.begin(), tokens.end()); }
  void observe(TokenSpan context, std::size_t fresh, Origin) {
    seen.insert(seen.end(), context.end() - static_cast<std::ptrdiff_t>(fresh), context.end());
  }
  void feedback(TokenSpan, const Outcome&) {}
  void truncate(TokenSpan, std::size_t size) { seen.resize(size); }
  void propose(TokenSpan, Draft& draft) const {
    for (std::size_t i = seen.size() - 1; i-- > 0;)
      if (seen[i] == seen.back()) {
        for (std::size_t j = i + 1; j < seen.size() && !draft.full(); ++j) draft.extend({.token = seen[j]});
        return;
      }
  }
};

Token model(Token last) { return (last * 7 + 3) % 23; }

/// Runs two turns of a session and a truncation, with one failing allocation.
template <class Strategy>
class FailingRun {
 public:
  explicit FailingRun(std::size_t fail_at) : fail_at_(fail_at) {
    limits_.max_tokens = 120;
    limits_.draft.max_nodes = 8;
    expected_ = {1};
  }

  /// Returns true if an allocation failed, false if there were fewer.
  bool run() {
    Session<Strategy> session;
    const std::vector<Token> prompt(40, 1);
    const std::vector<Token> turn(90, 5);
    call([&] { return session.begin(prompt); }, [&] { return session.context().empty(); });
    decode(session, 1);
    call([&] { return session.truncate(100); }, [&] { return session.context().size() != 100; });
    const std::size_t size = session.context().size();
    call([&] { return session.append(turn); }, [&] { return session.context().size() == size; });
    decode(session, 5);
    return failed_;
  }
  [[nodiscard]] std::size_t in_propose() const { return in_propose_; }
  [[nodiscard]] std::size_t drafted() const { return drafted_; }

 private:
  /// Counts over all calls, as a single watch would.
  template <class Call>
  auto watched(Call&& call) {
    const std::size_t ahead = fail_at_ > seen_ ? fail_at_ - seen_ : 0;
    struct Tally {
      FailingRun& run;
      AllocationWatch watch;
      ~Tally() {
        run.seen_ += watch.allocations();
        run.failed_ = run.failed_ || (run.fail_at_ != 0 && run.seen_ >= run.fail_at_);
      }
    } tally{*this, AllocationWatch(ahead)};
    return call();
  }
  /// Repeats the call until it succeeds, at most twice, because only one allocation fails.
  template <class Call, class NotYet>
  void call(Call&& call, NotYet&& not_yet) {
    for (int i = 0; i < 2; ++i) {
      try {
        const auto done = watched(call);
        if (done) return;
        ASSERT_EQ(done.error().code, ErrorCode::out_of_memory);
      } catch (const std::bad_alloc&) {
        if (!not_yet()) return;
      }
    }
    FAIL() << "failed again without a failing allocation";
  }
  void decode(Session<Strategy>& session, Token last) {
    std::vector<Token> expected;
    for (std::size_t i = 0; i < limits_.max_tokens; ++i) expected.push_back(last = model(last));
    while (true) {
      const std::size_t before = seen_;
      drafted_ += watched([&] { return session.propose(limits_); }).size();
      in_propose_ += seen_ - before;
      if (session.finished()) break;
      auto pass = watched([&] { return session.plan(); });
      if (!pass) {
        ASSERT_EQ(pass.error().code, ErrorCode::out_of_memory);
        continue;
      }
      std::vector<Token> picks;
      for (const Token token : pass->batch.last(pass->drafted + 1)) picks.push_back(model(token));
      ASSERT_TRUE(watched([&] { return session.resolve(pass->ticket, TokenSpan(picks)); }));
      const std::size_t size = session.context().size();
      try {
        ASSERT_TRUE(watched([&] { return session.commit(pass->ticket); }));
      } catch (const std::bad_alloc&) {
        ASSERT_GT(session.context().size(), size);
      }
    }
    ASSERT_THAT(session.output(), ::testing::ElementsAreArray(expected)) << "allocation " << fail_at_ << " failed";
  }

  Limits limits_;
  std::size_t fail_at_;
  std::size_t seen_ = 0;
  bool failed_ = false;
  std::size_t in_propose_ = 0;
  std::size_t drafted_ = 0;
  std::vector<Token> expected_;
};

template <class Strategy>
struct EveryAllocation : ::testing::Test {};
using Strategies = ::testing::Types<archetype::Strategy, VectorStrategy, PromptLookupDrafter<NaiveIndex>,
                                    PromptLookupDrafter<RollingHashIndex>, PromptLookupDrafter<SuffixArrayIndex>,
                                    NgramDrafter<RollingHashIndex>, NgramDrafter<SuffixArrayIndex>>;
TYPED_TEST_SUITE(EveryAllocation, Strategies);

TYPED_TEST(EveryAllocation, MayFailOnceWithoutChangingTheOutput) {
  std::size_t fail_at = 1;
  while (FailingRun<TypeParam>(fail_at).run() && !::testing::Test::HasFatalFailure()) ++fail_at;
  EXPECT_GT(fail_at, 2U);
  this->RecordProperty("allocations", static_cast<int>(fail_at - 1));
}
TYPED_TEST(EveryAllocation, IsOutsideOfPropose) {
  FailingRun<TypeParam> run(0);
  run.run();
  EXPECT_EQ(run.in_propose(), 0U);
  constexpr bool drafts = !std::is_same_v<TypeParam, archetype::Strategy>;
  EXPECT_EQ(run.drafted() > 0, drafts);
}

TEST(EveryAllocationOfAFork, MayFailOnceWithoutTouchingTheFirstSession) {
  Session<PromptLookupDrafter<>> session;
  ASSERT_TRUE(session.begin(std::vector<Token>(40, 1)));
  bool forked = false;
  for (std::size_t fail_at = 1; !forked; ++fail_at) {
    const AllocationWatch watch(fail_at);
    const auto other = session.fork();
    forked = watch.allocations() < fail_at;
    if (other) {
      EXPECT_EQ(other->context().size(), 40U);
    } else {
      EXPECT_EQ(other.error().code, ErrorCode::out_of_memory);
    }
    ASSERT_EQ(session.context().size(), 40U);
  }
}

TEST(EveryAllocationOfARebase, MayFailOnceWithoutChangingTheContext) {
  // The strategy allocates nothing, so every failure is one of the session.
  Session<NoDrafter> session;
  const std::vector<Token> first(40, 1);
  const std::vector<Token> second(300, 2);
  ASSERT_TRUE(session.begin(first));
  bool enough = false;
  std::size_t fail_at = 1;
  for (; !enough; ++fail_at) {
    const auto rebase = [&] {
      const AllocationWatch watch(fail_at);
      auto result = session.rebase(second, 0);  // all tokens are pending, so the round needs memory too
      enough = watch.allocations() < fail_at;
      return result;
    };
    const auto shared = rebase();
    ASSERT_EQ(shared.has_value(), enough) << "allocation " << fail_at;
    if (!enough) {
      ASSERT_EQ(shared.error().code, ErrorCode::out_of_memory);
    }
    ASSERT_THAT(session.context(), ::testing::ElementsAreArray(enough ? second : first));
  }
  EXPECT_GT(fail_at, 3U) << "the round and the sequence allocate";
}

/// A session with a draft of four tokens and 140 pending tokens, for whose pass no memory is reserved.
void open_large_round(Session<VectorStrategy>& session, const Limits& limits) {
  std::vector<Token> tokens;
  for (Token i = 0; i < 140; ++i) tokens.push_back(i % 5);
  ASSERT_TRUE(session.begin(TokenSpan(tokens).first(40)));
  ASSERT_TRUE(session.append(TokenSpan(tokens).subspan(40), Origin::prompt, 0));
  ASSERT_EQ(session.propose(limits).size(), 4U);
}
TEST(EveryAllocationOfAPlan, MayFailWithAllThatFollow) {
  const Limits limits{.max_tokens = 100, .draft = {.max_nodes = 4}};
  std::size_t plain = 0;    // passes without a draft, because there was no memory for it
  std::size_t refused = 0;  // plans without memory even for such a pass
  for (std::size_t fail_at = 1; fail_at <= 8; ++fail_at)
    for (std::size_t failures = 1; failures <= 8; ++failures) {
      SCOPED_TRACE(::testing::Message() << failures << " allocations fail, from number " << fail_at);
      Session<VectorStrategy> session;
      open_large_round(session, limits);
      const std::vector<Token> before(session.context().begin(), session.context().end());
      const auto plan = [&] {
        const AllocationWatch watch(fail_at, failures);
        return session.plan();
      };
      auto pass = plan();
      if (!pass) {
        ++refused;
        ASSERT_EQ(pass.error().code, ErrorCode::out_of_memory);
        ASSERT_THAT(session.context(), ::testing::ElementsAreArray(before));
        ASSERT_EQ(session.plan().error().code, ErrorCode::not_proposed) << "the round is closed";
        ASSERT_EQ(session.propose(limits).size(), 4U);
        pass = session.plan();
        ASSERT_TRUE(pass);
        ASSERT_EQ(pass->drafted, 4U);
      }
      const bool drafts = pass->drafted != 0;
      plain += drafts ? 0 : 1;
      ASSERT_EQ(pass->pending, 140U);
      ASSERT_EQ(pass->batch.size(), drafts ? 144U : 140U);
      ASSERT_THAT(pass->batch.first(140), ::testing::ElementsAreArray(before));
      ASSERT_TRUE(session.resolve(pass->ticket, TokenSpan(std::vector<Token>{77})));
      ASSERT_TRUE(session.commit(pass->ticket));
      ASSERT_THAT(session.output(), ::testing::ElementsAre(77));
      ASSERT_EQ(session.statistics().count(Cut::out_of_memory), drafts ? 0U : 1U);
    }
  EXPECT_GT(plain, 0U);
  EXPECT_GT(refused, 0U);
}

TEST(CheckStrategyWithACounter, SeesAStrategyThatAllocatesInPropose) {
  struct Allocating : VectorStrategy {
    void propose(TokenSpan context, Draft& draft) {
      std::vector<Token> copy = seen;
      std::swap(copy, seen);
      VectorStrategy::propose(context, draft);
    }
  };
  StrategyCheck check;
  check.allocations = allocations_so_far;
  const Report report = check_strategy([] { return Allocating(); }, check);
  EXPECT_EQ(report.find("propose() does not allocate")->verdict, Verdict::wrong) << report.to_string();
}

}  // namespace
}  // namespace reprise::testing::allocation_test
