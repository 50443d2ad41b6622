// SPDX-License-Identifier: Apache-2.0
// Slots that answer the same prompt draft from each other while they run.
#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/memory.hpp"

namespace reprise::testing::batch_follower_groups_test {
namespace {

using Tokens = std::vector<Token>;

/// `count` tokens of which none repeats.
Tokens text_from(Token first, std::size_t count) {
  Tokens text(count);
  std::iota(text.begin(), text.end(), first);
  return text;
}

/// An engine with one slot for each answer. Answers are decoded without their drafts.
class Engine {
 public:
  explicit Engine(std::size_t slots) : ids_(slots), drafts_(slots), drafted_(slots) {
    BatchOptions options;
    options.curve = CostCurve::linear(0);
    follower_ = BatchFollower<NgramDrafter<>>::make(slots, NgramDrafter<>(memory_.options()), std::move(options));
  }
  void salt(std::size_t slot, Memory::Salt salt) {
    ASSERT_TRUE(follower_->assign(slot, NgramDrafter<>(memory_.options(salt))));
  }
  /// The prompt, and the first token of the answer, which the prefill gives.
  void begin(std::size_t slot, const Tokens& prompt, Token first) {
    ids_[slot] = prompt;
    ids_[slot].push_back(first);
  }
  /// Runs a pass for each token of `answer` in `slot`. The other slots are in the batch, and commit filler.
  void decode(std::size_t slot, std::span<const Token> answer) {
    for (const Token token : answer) {
      std::vector<FollowedSlot> slots;
      for (std::size_t i = 0; i < ids_.size(); ++i)
        if (!ids_[i].empty()) slots.push_back({i, ids_[i]});
      const auto drafts = follower_->draft(slots).value();
      for (std::size_t i = 0; i < slots.size(); ++i) {
        drafts_[slots[i].slot].assign(drafts[i].begin(), drafts[i].end());
        drafted_[slots[i].slot] += drafts[i].size();
        ids_[slots[i].slot].push_back(slots[i].slot == slot ? token : filler_++);
      }
    }
  }
  [[nodiscard]] const Tokens& draft(std::size_t slot) const { return drafts_[slot]; }
  [[nodiscard]] std::size_t drafted(std::size_t slot) const { return drafted_[slot]; }

 private:
  Memory memory_ = Memory::make({.max_bytes = 1 << 16, .next_token_bytes = 1 << 12}).value();
  Result<BatchFollower<NgramDrafter<>>> follower_ = Error{};
  std::vector<Tokens> ids_;
  std::vector<Tokens> drafts_;
  std::vector<std::size_t> drafted_;
  Token filler_ = 1'000'000;
};

const Tokens prompt = text_from(100, 20);
const Tokens answer = text_from(1'000, 60);

/// True if slot 1 drafts what slot 0 has written, while both run.
bool shares(Engine& engine) {
  engine.decode(0, answer);
  engine.decode(1, std::span(answer).subspan(10, 7));
  return !engine.draft(1).empty() && engine.draft(1).front() == answer[16];
}

TEST(BatchFollowerGroups, AnswersToOnePromptDraftFromEachOtherWhileTheyRun) {
  Engine engine(2);
  engine.begin(0, prompt, 1);
  engine.begin(1, prompt, 2);
  EXPECT_TRUE(shares(engine));
}

TEST(BatchFollowerGroups, AnswersMayBeginWithTheSameToken) {
  Engine engine(2);
  engine.begin(0, prompt, 1);
  engine.begin(1, prompt, 1);
  EXPECT_TRUE(shares(engine));
}

TEST(BatchFollowerGroups, AnswersToDifferentPromptsShareNothingWhileTheyRun) {
  Engine engine(2);
  engine.begin(0, prompt, 1);
  engine.begin(1, text_from(99, 20), 2);
  EXPECT_FALSE(shares(engine));
}

TEST(BatchFollowerGroups, NoTextCrossesSalts) {
  Engine engine(3);
  engine.salt(1, 7);
  for (std::size_t slot = 0; slot < 3; ++slot) engine.begin(slot, prompt, static_cast<Token>(slot));
  EXPECT_FALSE(shares(engine));
  engine.decode(2, std::span(answer).subspan(10, 7));
  EXPECT_EQ(engine.draft(2).front(), answer[16]) << "slot 2 has the salt of slot 0";
}

// The store has the slot's own text too, up to some tokens before its end. Nothing of it follows the end.
TEST(BatchFollowerGroups, NoSlotDraftsFromItsOwnCopyOfTextWithoutRepetition) {
  Engine group(2);
  Engine strangers(2);
  for (Engine* engine : {&group, &strangers}) {
    engine->begin(0, prompt, 1);
    engine->begin(1, engine == &group ? prompt : text_from(99, 20), 2);
    engine->decode(0, text_from(1'000, 300));
  }
  EXPECT_EQ(group.drafted(0), strangers.drafted(0));
  EXPECT_EQ(group.drafted(1), strangers.drafted(1));
}

}  // namespace
}  // namespace reprise::testing::batch_follower_groups_test
