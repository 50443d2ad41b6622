// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/follower.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/control/cost_curve.hpp"
#include "reprise/speculator.hpp"
#include "reprise/testing/random.hpp"

namespace reprise::testing::loop_follower_test {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Tokens = std::vector<Token>;

Follower<Speculator> told(double per_row = 0.0) { return Follower(Speculator(CostCurve::linear(per_row))); }

Tokens drafted(Follower<Speculator>& follower, const Tokens& ids, std::size_t most = 16,
               std::optional<nanoseconds> now = {}, std::optional<std::uint64_t> conversation = {}) {
  const auto draft = follower.draft(ids, most, now, conversation);
  EXPECT_TRUE(draft) << (draft ? "" : draft.error().message);
  return draft ? Tokens(draft->begin(), draft->end()) : Tokens();
}

Tokens drafted_anew(const Tokens& ids, std::size_t most = 16) {
  auto follower = told();
  return drafted(follower, ids, most);
}

// Text in which the next tokens are clear: 1 2 ... 9 again and again.
Tokens counting(std::size_t size) {
  Tokens tokens(size);
  for (std::size_t i = 0; i < size; ++i) tokens[i] = static_cast<Token>(1 + i % 9);
  return tokens;
}

TEST(Follower, DraftsAfterTheIdsAndCountsAcceptedTokens) {
  auto follower = told();
  Tokens ids = counting(30);
  const Tokens draft = drafted(follower, ids, 5);
  EXPECT_EQ(draft, (Tokens{4, 5, 6, 7, 8}));
  ids.insert(ids.end(), {4, 5, 6, 1});  // three accepted, and the target's own token
  static_cast<void>(drafted(follower, ids, 5));
  const Statistics counts = follower.statistics();
  EXPECT_EQ(counts.passes, 1U);
  EXPECT_EQ(counts.tokens, 4U);
  EXPECT_EQ(counts.accepted, 3U);
  EXPECT_EQ(counts.drafted, 5U);
  EXPECT_TRUE(std::ranges::equal(follower.context(), ids));
}

TEST(Follower, CommitsAPassThatTheEngineCutShort) {
  auto follower = told();
  Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 5));
  ids.insert(ids.end(), {4, 5});  // the engine kept two of the accepted tokens
  EXPECT_EQ(drafted(follower, ids, 3), (Tokens{6, 7, 8}));
  EXPECT_EQ(follower.statistics().tokens, 2U);
}

TEST(Follower, AppendsTheTokensThatAPassCannotHaveCommitted) {
  auto follower = told();
  Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 2));
  ids.insert(ids.end(), {4, 5, 6, 7, 8, 9, 1, 2, 3});
  EXPECT_EQ(drafted(follower, ids, 2), (Tokens{4, 5}));
  EXPECT_EQ(follower.statistics().tokens, 3U) << "two drafted tokens and the bonus token";
  EXPECT_EQ(follower.statistics().passes, 1U) << "the counts of before the appended tokens are kept";
}

TEST(Follower, MostOfZeroIsAPassWithoutADraft) {
  auto follower = told();
  Tokens ids = counting(30);
  EXPECT_EQ(drafted(follower, ids, 0), Tokens());
  ids.push_back(4);
  EXPECT_EQ(drafted(follower, ids, 2), (Tokens{5, 6}));
  EXPECT_EQ(follower.statistics().passes, 1U);
  EXPECT_EQ(follower.statistics().drafted, 0U);
}

TEST(Follower, TheSameIdsAgainMakeTheLastDraftVoid) {
  auto follower = told();
  const Tokens ids = counting(30);
  EXPECT_EQ(drafted(follower, ids, 4), drafted(follower, ids, 4));
  EXPECT_EQ(follower.statistics().passes, 0U);
}

TEST(Follower, AnotherTextIsANewSequence) {
  auto follower = told();
  const Tokens first = counting(40);
  static_cast<void>(drafted(follower, first));
  const Tokens second = {1, 2, 3, 77};  // begins like the first text
  static_cast<void>(drafted(follower, second));
  EXPECT_TRUE(std::ranges::equal(follower.context(), second));
  const Tokens third = {1, 2, 3};
  EXPECT_EQ(drafted(follower, third), drafted_anew(third));
}

TEST(Follower, AShorterTextWithoutAConversationIsANewSequence) {
  auto follower = told();
  const Tokens ids = counting(40);
  static_cast<void>(drafted(follower, ids));
  const Tokens shorter(ids.begin(), ids.begin() + 5);  // 1 2 3 4 5: the rest is another user's now
  EXPECT_EQ(drafted(follower, shorter), drafted_anew(shorter));
}

TEST(Follower, InTheSameConversationReplacedTextStaysEvidence) {
  auto follower = told();
  const Tokens ids = counting(40);
  static_cast<void>(drafted(follower, ids, 16, {}, 7));
  const Tokens edited = {50, 51, 1, 2, 3};
  EXPECT_EQ(drafted(follower, edited, 3, {}, 7), (Tokens{4, 5, 6}));
  EXPECT_EQ(drafted(follower, edited, 3, {}, 8), drafted_anew(edited, 3))
      << "another conversation begins without evidence";
}

TEST(Follower, InTheSameConversationAShorterTextIsTruncated) {
  auto follower = told();
  const Tokens ids = counting(40);
  static_cast<void>(drafted(follower, ids, 16, {}, 7));
  const Tokens shorter(ids.begin(), ids.begin() + 20);
  EXPECT_EQ(drafted(follower, shorter, 3, {}, 7), (Tokens{3, 4, 5}));
  EXPECT_TRUE(std::ranges::equal(follower.context(), shorter));
}

TEST(Follower, ForgetBeginsANewSequenceEvenForTheSameText) {
  auto follower = told();
  Tokens ids = counting(40);
  static_cast<void>(drafted(follower, ids, 4, {}, 7));
  follower.forget();
  EXPECT_TRUE(follower.context().empty());
  ids.insert(ids.end(), {5, 6});
  static_cast<void>(drafted(follower, ids, 4, {}, 7));
  EXPECT_EQ(follower.statistics().passes, 0U) << "the pass before forget() belongs to no sequence";
}

TEST(Follower, DraftsChainsEvenIfTheSessionWasBegunWithTrees) {
  Speculator session(CostCurve::linear(0.0));
  const Tokens ids = {1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2, 4, 1, 2};
  ASSERT_TRUE(session.begin(ids, {.max_leaves = 16}));
  Follower follower(std::move(session));
  EXPECT_TRUE(std::ranges::equal(follower.context(), ids)) << "a session that has begun goes on";
  static_cast<void>(drafted(follower, ids, 8));
  static_cast<void>(drafted(follower, {1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2, 4, 1, 2, 3}, 8));
  EXPECT_EQ(follower.statistics().count(Cut::width), 0U);
  EXPECT_EQ(follower.session().capabilities().max_leaves, 16U);
}

TEST(Follower, NoIdsAreRefusedAndChangeNothing) {
  auto follower = told();
  Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 2));
  const auto refused = follower.draft({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::empty_context);
  EXPECT_TRUE(std::ranges::equal(follower.context(), ids));
  EXPECT_FALSE(follower.draft({}, 16, {}, 7));
  ids.insert(ids.end(), {4, 5, 6});
  EXPECT_EQ(drafted(follower, ids, 2), (Tokens{7, 8}));
  EXPECT_EQ(follower.statistics().accepted, 2U) << "the draft before the refused call counts";
}

TEST(Follower, CanBeMovedWhileADraftIsOpen) {
  auto follower = told();
  Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 3));
  Follower<Speculator> moved(std::move(follower));
  ids.insert(ids.end(), {4, 5, 6, 7});
  EXPECT_EQ(drafted(moved, ids, 2), (Tokens{8, 9}));
  EXPECT_EQ(moved.statistics().accepted, 3U);
}

TEST(Follower, ReserveKeepsTheSequenceAndVoidsTheDraft) {
  auto follower = told();
  Tokens ids = counting(30);
  static_cast<void>(drafted(follower, ids, 3));
  ASSERT_TRUE(follower.reserve(1000));
  ids.insert(ids.end(), {4, 5, 6, 7});
  EXPECT_EQ(drafted(follower, ids, 2), (Tokens{8, 9}));
  EXPECT_EQ(follower.statistics().passes, 0U);
  EXPECT_GE(follower.memory_bytes(), 1000 * sizeof(Token));
}

// An engine whose passes take a time, and which runs prompts and pauses between them.
class Clock {
 public:
  nanoseconds after(microseconds time) { return now_ += time; }

 private:
  nanoseconds now_{12345};
};

TEST(Follower, LearnsTimesOfPassesAndNotOfPromptsOrPauses) {
  Follower<Speculator> follower;
  Clock clock;
  Tokens ids = counting(30);
  const auto times = [&] { return follower.session().statistics().pass_time.count; };
  const auto pass = [&](microseconds time) {
    ids.push_back(static_cast<Token>(1 + ids.size() % 9));
    static_cast<void>(drafted(follower, ids, 0, clock.after(time)));
  };
  static_cast<void>(drafted(follower, ids, 0, clock.after(microseconds(0))));
  pass(microseconds(90'000));  // the prompt may have run in it
  pass(microseconds(2000));    // the first interval of all
  EXPECT_EQ(times(), 0U);
  for (int i = 0; i < 5; ++i) pass(microseconds(1000));
  EXPECT_EQ(times(), 5U);
  pass(microseconds(20'000));  // a pause
  EXPECT_EQ(times(), 5U);
  pass(microseconds(1000));
  EXPECT_EQ(times(), 6U);

  ids.insert(ids.end(), {70, 71, 72});  // the next turn
  static_cast<void>(drafted(follower, ids, 0, clock.after(microseconds(1000))));
  EXPECT_EQ(times(), 0U) << "append() begins to count anew";
  EXPECT_EQ(follower.statistics().pass_time.count, 6U) << "three tokens at once are more than one pass without a draft";
  pass(microseconds(1000));  // the next turn's prompt may have run in it
  EXPECT_EQ(follower.statistics().pass_time.count, 6U);
  pass(microseconds(1000));
  EXPECT_EQ(follower.statistics().pass_time.count, 7U);
}

TEST(Follower, WithoutATimeNothingIsLearned) {
  Follower<Speculator> follower;
  Clock clock;
  Tokens ids = counting(30);
  for (int i = 0; i < 10; ++i) {
    const bool known = i % 2 == 0;
    const nanoseconds now = clock.after(microseconds(1000));
    static_cast<void>(drafted(follower, ids, 0, known ? std::optional(now) : std::nullopt));
    ids.push_back(static_cast<Token>(1 + ids.size() % 9));
  }
  EXPECT_EQ(follower.statistics().pass_time.count, 0U);
  EXPECT_EQ(follower.statistics().passes, 9U);
}

TEST(Follower, LearnsThatRowsAreDearAndStopsDrafting) {
  // Each row costs a whole pass, and the text has nothing to copy except by chance.
  Follower<Speculator> follower;
  Clock clock;
  Random random(3);
  Tokens ids;
  std::size_t late = 0;
  for (int request = 0; request < 4; ++request) {
    ids.assign(20, 0);
    for (Token& token : ids) token = static_cast<Token>(random.below(6));
    Tokens draft = drafted(follower, ids, 16, clock.after(microseconds(500'000)));
    for (int i = 0; i < 300; ++i) {
      ids.push_back(static_cast<Token>(random.below(6)));
      if (request == 3) late += draft.size();
      draft = drafted(follower, ids, 16, clock.after(microseconds(1000 * (1 + draft.size()))));
    }
  }
  EXPECT_LT(late, 30U) << "at most one drafted token in ten passes";
}

// The text of one request never appears in the drafts of the next one in the same row. The drafts of the second request
// do not depend on the first one; only their lengths may differ.
class RowsChangeOwners {
 public:
  explicit RowsChangeOwners(bool numbered) : numbered_(numbered) {}

  std::vector<Tokens> drafts_of_the_second(std::uint64_t secret) const {
    auto follower = told(0.02);
    Random random(secret);
    Tokens ids = request();
    static_cast<void>(drafted(follower, ids, 16, {}, number()));
    for (int i = 0; i < 60; ++i) {
      ids.push_back(static_cast<Token>(100 + random.below(4)));
      static_cast<void>(drafted(follower, ids, 16, {}, number()));
    }
    std::vector<Tokens> drafts;
    Random other(17);
    ids = request();
    for (int i = 0; i < 60; ++i) {
      ids.push_back(static_cast<Token>(100 + other.below(4)));
      drafts.push_back(drafted(follower, ids, 16, {}, number()));
    }
    return drafts;
  }
  bool leaks() const {
    const auto one = drafts_of_the_second(1);
    for (std::uint64_t secret = 2; secret < 12; ++secret) {
      const auto other = drafts_of_the_second(secret);
      for (std::size_t i = 0; i < one.size(); ++i) {
        const std::size_t shared = std::min(one[i].size(), other[i].size());
        if (!std::equal(one[i].begin(), one[i].begin() + static_cast<std::ptrdiff_t>(shared), other[i].begin()))
          return true;
      }
    }
    return false;
  }

 private:
  static Tokens request() { return {5, 6, 7, 5, 6, 8}; }  // a system prompt that all requests share
  std::optional<std::uint64_t> number() const { return numbered_ ? std::optional<std::uint64_t>(1) : std::nullopt; }
  bool numbered_;
};

TEST(Follower, NothingOfARowsFormerOwnerIsInItsDrafts) { EXPECT_FALSE(RowsChangeOwners(false).leaks()); }

// The planted leak: an engine that gives two users' requests the number of one conversation.
TEST(Follower, TheTestOfOwnersFindsALeak) { EXPECT_TRUE(RowsChangeOwners(true).leaks()); }

}  // namespace
}  // namespace reprise::testing::loop_follower_test
