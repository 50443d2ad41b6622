// SPDX-License-Identifier: Apache-2.0
// A draft head beside the lookup, through the C interface. The rules themselves are tested in C++.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise_c/reprise.h"

namespace reprise::c_heads_test {
namespace {

using Tokens = std::vector<reprise_token>;

/// The text goes on with the square of each position, so no lookup finds it.
reprise_token next(std::size_t at) { return static_cast<reprise_token>(at * at % 10'007); }

struct Heads : ::testing::Test {
  void SetUp() override {
    ASSERT_EQ(reprise_curve_create_linear(0.01, &curve, nullptr), REPRISE_OK);
    options.size = sizeof options;
    options.curve = curve;
    options.head_draft = 0.1;
    for (std::size_t i = 0; i < 10; ++i) text.push_back(next(i));
  }
  void TearDown() override {
    reprise_batch_destroy(batch);
    reprise_session_destroy(session);
    reprise_curve_destroy(curve);
  }
  void make_session() {
    ASSERT_EQ(reprise_session_create(&options, &session, nullptr), REPRISE_OK);
    ASSERT_EQ(reprise_session_begin(session, text.data(), text.size(), REPRISE_UNLIMITED, nullptr), REPRISE_OK);
  }
  std::string refused() {
    reprise_error error{};
    EXPECT_EQ(reprise_session_create(&options, &session, &error), REPRISE_INVALID_ARGUMENT);
    return error.message;
  }

  reprise_options options{};
  reprise_curve* curve = nullptr;
  reprise_session* session = nullptr;
  reprise_batch* batch = nullptr;
  Tokens text;
};

TEST_F(Heads, SaveAPassOfASessionForEachTokenThatIsRight) {
  make_session();
  std::size_t passes = 0;
  for (; text.size() < 500; ++passes) {
    std::size_t wanted = 0;
    ASSERT_EQ(reprise_session_propose_lookup(session, nullptr, 16, &wanted), REPRISE_OK);
    Tokens drafted;
    for (std::size_t i = 0; i < wanted + 3; ++i) drafted.push_back(next(text.size() + i));
    if (wanted > 0) {
      ASSERT_EQ(reprise_session_add_head(session, drafted.data(), drafted.size(), 1000), REPRISE_OK);
    }
    reprise_pass pass{};
    pass.size = sizeof pass;
    ASSERT_EQ(reprise_session_plan(session, nullptr, 0, &pass), REPRISE_OK) << "the limits are those of the proposal";
    ASSERT_LE(pass.drafted, wanted) << "more than it was asked for";
    Tokens picks;
    for (std::size_t i = 0; i <= pass.drafted; ++i) picks.push_back(next(text.size() + i));
    reprise_commit done{};
    done.size = sizeof done;
    ASSERT_EQ(reprise_session_commit(session, picks.data(), picks.size(), 1000, &done), REPRISE_OK);
    text.insert(text.end(), done.tokens, done.tokens + done.count);
  }
  for (std::size_t i = 0; i < text.size(); ++i) ASSERT_EQ(text[i], next(i));
  EXPECT_LT(passes, 150U);
}
TEST_F(Heads, BelongToTheRoundOfASession) {
  make_session();
  EXPECT_EQ(reprise_session_add_head(session, text.data(), 1, 0), REPRISE_NOT_PLANNED);
  std::size_t wanted = 0;
  ASSERT_EQ(reprise_session_propose_lookup(session, nullptr, 16, &wanted), REPRISE_OK);
  EXPECT_GT(wanted, 0U);
  EXPECT_EQ(reprise_session_add_head(session, nullptr, 1, 0), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_session_add_head(session, text.data(), 1, -1), REPRISE_INVALID_ARGUMENT);
  ASSERT_EQ(reprise_session_truncate(session, 5), REPRISE_OK);
  EXPECT_EQ(reprise_session_add_head(session, text.data(), 1, 0), REPRISE_NOT_PLANNED) << "the round was given up";
  EXPECT_EQ(reprise_session_propose_lookup(session, nullptr, 0, &wanted), REPRISE_OK);
  EXPECT_EQ(wanted, 0U) << "nothing may be drafted";
  EXPECT_EQ(reprise_session_propose_lookup(session, nullptr, 16, nullptr), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_session_propose_lookup(nullptr, nullptr, 16, &wanted), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_session_add_head(nullptr, text.data(), 1, 0), REPRISE_INVALID_ARGUMENT);
}
TEST_F(Heads, OfAFirstRoundDraftNothingInTheNext) {
  make_session();
  std::size_t wanted = 0;
  ASSERT_EQ(reprise_session_propose_lookup(session, nullptr, 16, &wanted), REPRISE_OK);
  ASSERT_EQ(reprise_session_add_head(session, text.data(), 2, 0), REPRISE_OK);
  reprise_pass pass{};
  pass.size = sizeof pass;
  ASSERT_EQ(reprise_session_plan(session, nullptr, 16, &pass), REPRISE_OK);
  EXPECT_GT(pass.drafted, 0U);
  ASSERT_EQ(reprise_session_plan(session, nullptr, 16, &pass), REPRISE_OK);
  EXPECT_EQ(pass.drafted, 0U) << "a plan without a proposal has the lookup alone";
}
TEST_F(Heads, AreToldWhatTheyCost) {
  for (const double wrong : {-0.1, 2000.0}) {
    options.head_row = wrong;
    EXPECT_NE(refused().find("not between 0 and 1024"), std::string::npos);
  }
  options.head_row = 0;
  options.curve = nullptr;
  EXPECT_NE(refused().find("no curve"), std::string::npos);
}
TEST_F(Heads, SaveAPassOfABatchForEachTokenThatIsRight) {
  ASSERT_EQ(reprise_batch_create(&options, 3, &batch, nullptr), REPRISE_OK);
  std::array<Tokens, 2> texts = {text, Tokens(text.begin(), text.begin() + 5)};
  std::size_t passes = 0;
  for (; texts[1].size() < 300; ++passes) {
    std::array<reprise_slot, 2> slots{};
    for (std::size_t i = 0; i < 2; ++i) slots[i] = {i + 1, texts[i].data(), texts[i].size(), 16, 0, nullptr, 0, 0};
    ASSERT_EQ(reprise_batch_propose_lookup(batch, slots.data(), 2, 0), REPRISE_OK);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(slots[i].draft, nullptr);
      Tokens drafted;
      for (std::size_t k = 0; k < slots[i].drafted; ++k) drafted.push_back(next(texts[i].size() + k));
      ASSERT_EQ(reprise_batch_add_head(batch, slots[i].slot, drafted.data(), drafted.size()), REPRISE_OK);
    }
    ASSERT_EQ(reprise_batch_draft_proposed(batch, slots.data(), 2, 1000), REPRISE_OK);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t k = 0, more = slots[i].drafted + 1; k < more; ++k) {
        const reprise_token right = next(texts[i].size());
        texts[i].push_back(right);
        if (k + 1 < more) {
          ASSERT_EQ(slots[i].draft[k], right);
        }
      }
  }
  EXPECT_LT(passes, 120U);
}
TEST_F(Heads, BelongToTheStepOfABatch) {
  ASSERT_EQ(reprise_batch_create(&options, 2, &batch, nullptr), REPRISE_OK);
  reprise_slot slot{0, text.data(), text.size(), 16, 0, nullptr, 0, 0};
  EXPECT_EQ(reprise_batch_draft_proposed(batch, &slot, 1, 0), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_propose_lookup(batch, &slot, 1, -1), REPRISE_INVALID_ARGUMENT);
  ASSERT_EQ(reprise_batch_propose_lookup(batch, &slot, 1, 0), REPRISE_OK);
  EXPECT_GT(slot.drafted, 0U);
  EXPECT_EQ(reprise_batch_add_head(batch, 2, text.data(), 1), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_add_head(batch, 0, nullptr, 1), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_draft_proposed(batch, &slot, 1, -1), REPRISE_INVALID_ARGUMENT);
  ASSERT_EQ(reprise_batch_draft(batch, &slot, 1, 0), REPRISE_OK);
  EXPECT_EQ(reprise_batch_draft_proposed(batch, &slot, 1, 0), REPRISE_INVALID_ARGUMENT) << "another call came between";
  EXPECT_EQ(reprise_batch_add_head(nullptr, 0, text.data(), 1), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_propose_lookup(nullptr, &slot, 1, 0), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_draft_proposed(nullptr, &slot, 1, 0), REPRISE_INVALID_ARGUMENT);
}
TEST_F(Heads, WriteNoDraftsIntoSlotsThatWereNotProposed) {
  ASSERT_EQ(reprise_batch_create(&options, 2, &batch, nullptr), REPRISE_OK);
  std::array<reprise_slot, 2> slots{};
  for (std::size_t i = 0; i < 2; ++i) slots[i] = {i, text.data(), text.size(), 16, 0, nullptr, 0, 0};
  EXPECT_EQ(reprise_batch_draft(batch, slots.data(), 2, 0), REPRISE_OK);
  EXPECT_EQ(reprise_batch_draft_proposed(batch, nullptr, 0, 0), REPRISE_INVALID_ARGUMENT);
  ASSERT_EQ(reprise_batch_propose_lookup(batch, slots.data(), 1, 0), REPRISE_OK);
  reprise_step step{};
  step.size = sizeof step;
  step.batch = batch;
  reprise_batch_step(&step);
  EXPECT_EQ(step.status, REPRISE_OK);
  EXPECT_EQ(reprise_batch_draft_proposed(batch, slots.data(), 1, 0), REPRISE_INVALID_ARGUMENT) << "after a step";
}
TEST_F(Heads, KeepTheirStepIfACallIsRefused) {
  ASSERT_EQ(reprise_batch_create(&options, 2, &batch, nullptr), REPRISE_OK);
  reprise_slot slot{0, text.data(), text.size(), 16, 0, nullptr, 0, 0};
  reprise_slot unknown{7, text.data(), text.size(), 16, 0, nullptr, 0, 0};
  ASSERT_EQ(reprise_batch_propose_lookup(batch, &slot, 1, 0), REPRISE_OK);
  const std::size_t wanted = slot.drafted;
  EXPECT_EQ(reprise_batch_propose_lookup(batch, &unknown, 1, 0), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_draft(batch, &unknown, 1, 0), REPRISE_INVALID_ARGUMENT);
  const Tokens drafted(wanted, 70);
  EXPECT_EQ(reprise_batch_add_head(batch, 0, drafted.data(), drafted.size()), REPRISE_OK);
  EXPECT_EQ(reprise_batch_draft_proposed(batch, &slot, 1, 0), REPRISE_OK);
  EXPECT_GT(slot.drafted, 0U);
}
// A request that is assigned to a slot takes nothing from what is known of the head.
TEST_F(Heads, AreKnownToTheNextRequestOfASlot) {
  options.head_draft = 0.4;
  ASSERT_EQ(reprise_batch_create(&options, 1, &batch, nullptr), REPRISE_OK);
  std::size_t asked = 0;
  for (std::size_t request = 0; request < 40; ++request) {
    ASSERT_EQ(reprise_batch_assign(batch, 0, &options), REPRISE_OK);
    Tokens ids(1, static_cast<reprise_token>(request));
    for (std::size_t pass = 0; pass < 4; ++pass) {
      reprise_slot slot{0, ids.data(), ids.size(), 16, 0, nullptr, 0, 0};
      ASSERT_EQ(reprise_batch_propose_lookup(batch, &slot, 1, 0), REPRISE_OK);
      const Tokens wrong(slot.drafted, 9'999);
      asked += slot.drafted > 0 ? 1 : 0;
      ASSERT_EQ(reprise_batch_add_head(batch, 0, wrong.data(), wrong.size()), REPRISE_OK);
      ASSERT_EQ(reprise_batch_draft_proposed(batch, &slot, 1, 0), REPRISE_OK);
      ids.push_back(static_cast<reprise_token>(20'000 + request * 10 + pass));
    }
  }
  EXPECT_LT(asked, 20U) << "of 160 passes with a head that is always wrong";
}

}  // namespace
}  // namespace reprise::c_heads_test
