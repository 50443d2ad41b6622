// SPDX-License-Identifier: Apache-2.0
// The error codes of the C interface, its rules for handles and structs, and one decoding with each kind of handle.
// c_calls.test.cpp compares all functions with the C++ classes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_c/detail/arguments.hpp"
#include "reprise_c/reprise.h"
#include "reprise_testing/random.hpp"

namespace reprise::c_interface_test {
namespace {

using Tokens = std::vector<reprise_token>;

template <class Struct>
Struct sized() {
  Struct made{};
  made.size = sizeof(Struct);
  return made;
}

/// The handles of a test.
class CInterfaceErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    auto options = sized<reprise_memory_options>();
    options.max_bytes = 10'000;
    options.vocabulary = 100;
    ASSERT_EQ(reprise_memory_create(&options, &memory, nullptr), REPRISE_OK);
    ASSERT_EQ(reprise_session_create(nullptr, &session, nullptr), REPRISE_OK);
    ASSERT_EQ(reprise_follower_create(nullptr, &follower, nullptr), REPRISE_OK);
    ASSERT_EQ(reprise_batch_create(nullptr, 2, &batch, nullptr), REPRISE_OK);
  }
  void TearDown() override {
    reprise_batch_destroy(batch);
    reprise_follower_destroy(follower);
    reprise_session_destroy(session);
    reprise_memory_destroy(memory);
  }

  reprise_status begin(const Tokens& tokens, std::size_t cached = REPRISE_UNLIMITED,
                       const reprise_capabilities* can = nullptr) {
    return reprise_session_begin(session, tokens.data(), tokens.size(), cached, can);
  }
  /// Checks the last error of the session, and returns its message.
  std::string last(reprise_status status, std::uint64_t value = 0, std::uint64_t limit = 0) {
    const reprise_error* const error = reprise_session_error(session);
    EXPECT_EQ(error->status, status);
    EXPECT_EQ(error->value, value) << error->message;
    EXPECT_EQ(error->limit, limit) << error->message;
    return error->message;
  }

  reprise_memory* memory = nullptr;
  reprise_session* session = nullptr;
  reprise_follower* follower = nullptr;
  reprise_batch* batch = nullptr;
  reprise_pass pass = sized<reprise_pass>();
  reprise_commit done = sized<reprise_commit>();
  const Tokens text = {1, 2, 3, 4};
};

TEST_F(CInterfaceErrors, AreOkBeforeTheFirstOneAndThenStayUntilTheNextOne) {
  for (const reprise_error* error : {reprise_session_error(session), reprise_follower_error(follower),
                                     reprise_batch_error(batch), reprise_memory_error(memory)}) {
    EXPECT_EQ(error->status, REPRISE_OK);
    EXPECT_STREQ(error->message, "");
  }
  EXPECT_EQ(reprise_session_truncate(session, 1), REPRISE_NOT_BEGUN);
  EXPECT_EQ(begin(text), REPRISE_OK);
  last(REPRISE_NOT_BEGUN);
  EXPECT_EQ(reprise_session_truncate(session, 9), REPRISE_SIZE_OUT_OF_RANGE);
  EXPECT_NE(last(REPRISE_SIZE_OUT_OF_RANGE, 9, 4), "");
}

TEST_F(CInterfaceErrors, OfMemories) {
  EXPECT_EQ(reprise_memory_add(memory, 1, text.data(), 4, 5), REPRISE_SIZE_OUT_OF_RANGE);
  std::size_t needed = 0;
  EXPECT_EQ(reprise_memory_save(memory, 0, 7, nullptr, 0, &needed), REPRISE_OUT_OF_ROOM);
  std::vector<unsigned char> bytes(needed);
  ASSERT_EQ(reprise_memory_save(memory, 0, 7, bytes.data(), bytes.size(), &needed), REPRISE_OK);
  EXPECT_EQ(reprise_memory_load(memory, 0, 7, bytes.data(), bytes.size()), REPRISE_OK);
  EXPECT_EQ(reprise_memory_load(memory, 0, 8, bytes.data(), bytes.size()), REPRISE_BAD_SNAPSHOT);
  EXPECT_EQ(reprise_memory_load(memory, 0, 7, nullptr, 0), REPRISE_BAD_SNAPSHOT);
  auto options = sized<reprise_memory_options>();
  options.max_bytes = 1;
  reprise_error error{};
  reprise_memory* none = memory;
  EXPECT_EQ(reprise_memory_create(&options, &none, &error), REPRISE_SIZE_OUT_OF_RANGE);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(error.status, REPRISE_SIZE_OUT_OF_RANGE);
  options.max_bytes = REPRISE_UNLIMITED;
  EXPECT_EQ(reprise_memory_create(&options, &none, &error), REPRISE_SIZE_OUT_OF_RANGE);
  EXPECT_EQ(error.limit, std::uint64_t{18} << 30);
  options.max_bytes = 10'000;
  options.next_token_bytes = REPRISE_UNLIMITED;
  EXPECT_EQ(reprise_memory_create(&options, &none, &error), REPRISE_SIZE_OUT_OF_RANGE);
  EXPECT_EQ(error.limit, std::uint64_t{1} << 38);
  options.next_token_bytes = 0;
  options.vocabulary = 0x80000000;
  EXPECT_EQ(reprise_memory_create(&options, &none, &error), REPRISE_SIZE_OUT_OF_RANGE);
  EXPECT_EQ(error.value, options.vocabulary);
  options.vocabulary = 0x7fffffff;
  options.flags = 32;
  EXPECT_EQ(reprise_memory_create(&options, &none, &error), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(error.value, 32U);
  options.flags = 31;
  EXPECT_EQ(reprise_memory_create(&options, &none, &error), REPRISE_OK);
  reprise_memory_destroy(none);
}

/// Returns a snapshot of a memory.
std::vector<unsigned char> saved(reprise_memory* memory) {
  std::size_t needed = 0;
  EXPECT_EQ(reprise_memory_save(memory, 0, 7, nullptr, 0, &needed), REPRISE_OUT_OF_ROOM);
  std::vector<unsigned char> bytes(needed);
  EXPECT_EQ(reprise_memory_save(memory, 0, 7, bytes.data(), bytes.size(), &needed), REPRISE_OK);
  return bytes;
}

// The text of the snapshot is good, but its table is not: nothing may be loaded.
TEST_F(CInterfaceErrors, OfATableThatCannotBeLoadedLeaveTheTextAsItWas) {
  const auto make = [](std::uint32_t vocabulary) {
    auto options = sized<reprise_memory_options>();
    options.max_bytes = 10'000;
    options.next_token_bytes = 1'000;
    options.vocabulary = vocabulary;
    reprise_memory* made = nullptr;
    EXPECT_EQ(reprise_memory_create(&options, &made, nullptr), REPRISE_OK);
    return made;
  };
  reprise_memory* const large = make(1000);
  reprise_memory* const small = make(10);
  const Tokens counted = {500, 501, 502};
  ASSERT_EQ(reprise_memory_add(large, 0, counted.data(), counted.size(), 0), REPRISE_OK);
  testing::Random random(1);
  Tokens later(2000);  // the text has no place beside these, but its counts stay
  for (Token& token : later) token = static_cast<Token>(random.below(2));
  ASSERT_EQ(reprise_memory_add(large, 0, later.data(), later.size(), 0), REPRISE_OK);
  const auto before = saved(small);
  const auto bytes = saved(large);
  EXPECT_EQ(reprise_memory_load(small, 0, 7, bytes.data(), bytes.size()), REPRISE_TOKEN_OUT_OF_RANGE);
  EXPECT_EQ(saved(small), before);
  // A memory without a table of this size ignores it.
  EXPECT_EQ(reprise_memory_load(memory, 0, 7, bytes.data(), bytes.size()), REPRISE_OK);
  EXPECT_NE(saved(memory), before);
  reprise_memory_destroy(small);
  reprise_memory_destroy(large);
}

TEST_F(CInterfaceErrors, OfCostsThatWereSaved) {
  std::array<unsigned char, 1000> bytes{};
  std::size_t size = 0;
  ASSERT_EQ(reprise_follower_save_costs(follower, "engine", bytes.data(), bytes.size(), &size), REPRISE_OK);
  auto options = sized<reprise_options>();
  options.saved_costs = bytes.data();
  options.saved_costs_size = size;
  reprise_session* made = nullptr;
  EXPECT_EQ(reprise_session_create(&options, &made, nullptr), REPRISE_INVALID_ARGUMENT) << "no name";
  options.engine = "another";
  EXPECT_EQ(reprise_session_create(&options, &made, nullptr), REPRISE_BAD_SNAPSHOT);
  options.engine = "engine";
  bytes[size / 2] ^= 1;
  EXPECT_EQ(reprise_session_create(&options, &made, nullptr), REPRISE_BAD_SNAPSHOT);
  bytes[size / 2] ^= 1;
  EXPECT_EQ(reprise_session_create(&options, &made, nullptr), REPRISE_OK);
  reprise_session_destroy(made);
}

TEST_F(CInterfaceErrors, OfSlotsChangeNothing) {
  const auto slot = [&](std::size_t number, const reprise_token* ids, std::size_t count) {
    return reprise_slot{number, ids, count, 9, 0, text.data(), 7, 0};
  };
  const auto refused = [&](std::vector<reprise_slot> slots, std::int64_t now = 0) {
    const auto status = reprise_batch_draft(batch, slots.data(), slots.size(), now);
    EXPECT_EQ(reprise_batch_error(batch)->status, status);
    for (const reprise_slot& one : slots) EXPECT_TRUE(one.draft == nullptr && one.drafted == 0);
    return status;
  };
  const auto good = slot(0, text.data(), 4);
  reprise_slot first = good;
  ASSERT_EQ(reprise_batch_draft(batch, &first, 1, 0), REPRISE_OK);
  EXPECT_EQ(refused({good, slot(2, text.data(), 4)}), REPRISE_INVALID_ARGUMENT) << "an unknown slot";
  EXPECT_EQ(reprise_batch_error(batch)->value, 2U);
  EXPECT_EQ(refused({good, good}), REPRISE_INVALID_ARGUMENT) << "twice";
  EXPECT_EQ(refused({good, slot(1, text.data(), 4), good}), REPRISE_INVALID_ARGUMENT) << "too many";
  EXPECT_EQ(refused({good, slot(1, nullptr, 0)}), REPRISE_EMPTY_CONTEXT);
  EXPECT_EQ(refused({good, slot(1, nullptr, 4)}), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(refused({good, slot(1, text.data(), SIZE_MAX)}), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(refused({good}, -1), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_draft(batch, nullptr, 1, 0), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_report_top_k(batch, 0, 0, text.data(), 4), REPRISE_OK) << "the pass is still open";
  EXPECT_EQ(reprise_batch_report_top_k(batch, 1, 0, text.data(), 4), REPRISE_NOT_PLANNED);
  EXPECT_EQ(reprise_batch_report_top_k(batch, 2, 0, text.data(), 4), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_report_top_k(batch, 0, 0, nullptr, 4), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_forget(batch, 2), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_assign(batch, 2, nullptr), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_predict(batch, 2, text.data(), 4), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(reprise_batch_predict(batch, 0, nullptr, 4), REPRISE_INVALID_ARGUMENT);
  std::size_t needed = 7;
  EXPECT_EQ(reprise_batch_statistics(batch, 2, nullptr, 0, &needed), REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(needed, 0U);
  EXPECT_EQ(reprise_batch_draft(batch, nullptr, 0, 0), REPRISE_OK) << "a pass without slots";
  for (const std::size_t slots : {std::size_t{0}, std::size_t{65'537}, SIZE_MAX}) {
    reprise_batch* none = batch;
    EXPECT_EQ(reprise_batch_create(nullptr, slots, &none, nullptr), REPRISE_SIZE_OUT_OF_RANGE);
    EXPECT_EQ(none, nullptr);
  }
}

/// Returns the draft of a slot of a batch.
Tokens drafted(reprise_batch* batch, std::size_t slot, const Tokens& ids) {
  reprise_slot one = {slot, ids.data(), ids.size(), REPRISE_UNLIMITED, 0, nullptr, 0, 0};
  EXPECT_EQ(reprise_batch_draft(batch, &one, 1, 0), REPRISE_OK);
  return {one.draft, one.draft + one.drafted};
}

/// 1 to 6 again and again, then 1 to 3.
Tokens repeating() {
  Tokens ids;
  for (std::int32_t i = 0; i < 63; ++i) ids.push_back(1 + i % 6);
  return ids;
}

TEST_F(CInterfaceErrors, NothingIsDraftedAfterTheEndsOfAFollowerAndOfASlot) {
  const Tokens repeated = repeating();
  const Tokens ends = {4};
  const auto follow = [&] {
    const reprise_token* draft = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(reprise_follower_draft(follower, repeated.data(), repeated.size(), 9, 0, 0, &draft, &count), REPRISE_OK);
    return Tokens(draft, draft + count);
  };
  EXPECT_GT(follow().size(), 1U);
  EXPECT_EQ(reprise_follower_stop_at(follower, nullptr, 1), REPRISE_INVALID_ARGUMENT);
  ASSERT_EQ(reprise_follower_stop_at(follower, ends.data(), 1), REPRISE_OK);
  EXPECT_EQ(follow(), (Tokens{4}));
  ASSERT_EQ(reprise_follower_stop_at(follower, nullptr, 0), REPRISE_OK);
  EXPECT_GT(follow().size(), 1U);

  EXPECT_EQ(reprise_batch_stop_at(batch, 2, ends.data(), 1), REPRISE_INVALID_ARGUMENT);
  ASSERT_EQ(reprise_batch_stop_at(batch, 1, ends.data(), 1), REPRISE_OK);
  EXPECT_EQ(drafted(batch, 1, repeated), (Tokens{4}));
  EXPECT_GT(drafted(batch, 0, repeated).size(), 1U);
}

/// Returns the draft of a follower after `after` known tokens and `ids`.
Tokens drafted_after(reprise_follower* follower, const Tokens& ids, std::size_t after, std::uint64_t conversation = 0) {
  const reprise_token* draft = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(reprise_follower_draft_after(follower, ids.data(), ids.size(), after, 9, 0, conversation, &draft, &count),
            REPRISE_OK);
  return {draft, draft + count};
}

TEST_F(CInterfaceErrors, AWrongNumberOfKnownTokensChangesNothing) {
  const Tokens ids = repeating();
  const Tokens more = {4};
  const auto refused = [&](std::size_t after, std::uint64_t conversation) {
    const reprise_token* draft = text.data();
    std::size_t count = 7;
    EXPECT_EQ(reprise_follower_draft_after(follower, more.data(), 1, after, 9, 0, conversation, &draft, &count),
              REPRISE_INVALID_ARGUMENT);
    EXPECT_TRUE(draft == nullptr && count == 0);
    return reprise_follower_error(follower);
  };
  EXPECT_EQ(refused(1, 7)->limit, 0U) << "no sequence has begun";
  static_cast<void>(drafted_after(follower, ids, 0, 7));
  for (const std::size_t wrong : {std::size_t{1}, ids.size() - 1, ids.size() + 1, REPRISE_UNLIMITED}) {
    EXPECT_EQ(refused(wrong, 7)->value, wrong);
    EXPECT_EQ(reprise_follower_error(follower)->limit, ids.size());
  }
  refused(ids.size(), 8);
  refused(ids.size(), 0);
  EXPECT_EQ(drafted_after(follower, more, ids.size(), 7).front(), 5);
  std::string counts(4096, 0);
  std::size_t needed = 0;
  ASSERT_EQ(reprise_follower_statistics(follower, counts.data(), counts.size(), &needed), REPRISE_OK);
  EXPECT_NE(counts.find("\"accepted\": 1,"), std::string::npos) << "the refused calls have not voided the draft";
  ASSERT_EQ(reprise_follower_forget(follower), REPRISE_OK);
  refused(ids.size() + 1, 7);
}

TEST_F(CInterfaceErrors, CostsOfAnIdleHandleReplaceNoNewerOnes) {
  auto options = sized<reprise_options>();
  options.memory = memory;
  const auto make = [&] {
    reprise_follower* made = nullptr;
    EXPECT_EQ(reprise_follower_create(&options, &made, nullptr), REPRISE_OK);
    return made;
  };
  const auto teach = [&](reprise_follower* taught, std::int64_t pass_ns) {
    Tokens ids = {1, 2, 3};
    const reprise_token* draft = nullptr;
    std::size_t size = 0;
    for (std::int64_t now = 1; ids.size() < 60; now += pass_ns) {
      EXPECT_EQ(reprise_follower_draft(taught, ids.data(), ids.size(), 4, now, 0, &draft, &size), REPRISE_OK);
      ids.push_back(static_cast<reprise_token>(ids.size() % 3 + 1));
    }
    reprise_follower_destroy(taught);
  };
  const auto kept = [&] {
    reprise_follower* const made = make();
    std::size_t needed = 0;
    static_cast<void>(reprise_follower_save_costs(made, "engine", nullptr, 0, &needed));
    std::vector<unsigned char> bytes(needed);
    EXPECT_EQ(reprise_follower_save_costs(made, "engine", bytes.data(), bytes.size(), &needed), REPRISE_OK);
    reprise_follower_destroy(made);
    return bytes;
  };
  teach(make(), 1'000'000);
  reprise_follower* const idle = make();
  const auto first = kept();
  teach(make(), 9'000'000);
  const auto second = kept();
  EXPECT_NE(first, second);
  reprise_follower_destroy(idle);
  EXPECT_EQ(kept(), second);
}

TEST_F(CInterfaceErrors, APredictedOutputIsDraftedInTheNextSequence) {
  const Tokens predicted = {100, 101, 102, 103, 104};
  const Tokens prompt = {1, 2, 3};
  const Tokens wanted = {100, 101};
  ASSERT_EQ(reprise_follower_predict(follower, predicted.data(), predicted.size()), REPRISE_OK);
  const reprise_token* draft = nullptr;
  std::size_t size = 0;
  const auto begun = [&] {
    EXPECT_EQ(reprise_follower_draft(follower, prompt.data(), prompt.size(), 2, 0, 0, &draft, &size), REPRISE_OK);
    return Tokens(draft, draft + size);
  };
  EXPECT_EQ(begun(), wanted);
  ASSERT_EQ(reprise_follower_forget(follower), REPRISE_OK);
  EXPECT_NE(begun(), wanted) << "of one sequence alone";
  ASSERT_EQ(reprise_follower_predict(follower, predicted.data(), predicted.size()), REPRISE_OK);
  EXPECT_EQ(begun(), wanted) << "a new sequence with the same ids";

  ASSERT_EQ(reprise_batch_predict(batch, 1, predicted.data(), predicted.size()), REPRISE_OK);
  std::array<reprise_slot, 2> slots = {
      {{0, prompt.data(), 3, 2, 0, nullptr, 0, 0}, {1, prompt.data(), 3, 2, 0, nullptr, 0, 0}}};
  ASSERT_EQ(reprise_batch_draft(batch, slots.data(), slots.size(), 0), REPRISE_OK);
  EXPECT_EQ(Tokens(slots[1].draft, slots[1].draft + slots[1].drafted), wanted);
  EXPECT_NE(Tokens(slots[0].draft, slots[0].draft + slots[0].drafted), wanted);

  ASSERT_EQ(reprise_session_predict(session, predicted.data(), predicted.size()), REPRISE_OK);
  ASSERT_EQ(reprise_session_begin(session, prompt.data(), prompt.size(), REPRISE_UNLIMITED, nullptr), REPRISE_OK);
  ASSERT_EQ(reprise_session_plan(session, nullptr, 2, &pass), REPRISE_OK);
  EXPECT_EQ(Tokens(pass.batch + pass.pending, pass.batch + pass.rows), wanted);
}

TEST_F(CInterfaceErrors, PlaceholdersOutsideTheVocabularyAreNotDrafted) {
  const Tokens images = {1, 2, 70, 70, 1, 2, -1, 1, 2};
  for (const std::size_t vocabulary : {std::size_t{0}, std::size_t{70}}) {
    auto options = sized<reprise_options>();
    options.vocabulary = vocabulary;
    reprise_batch* known = nullptr;
    ASSERT_EQ(reprise_batch_create(&options, 1, &known, nullptr), REPRISE_OK);
    const Tokens draft = drafted(known, 0, images);
    EXPECT_EQ(std::count(draft.begin(), draft.end(), 70) > 0, vocabulary == 0);
    EXPECT_EQ(std::count(draft.begin(), draft.end(), -1), 0);
    reprise_batch_destroy(known);
  }
}

TEST_F(CInterfaceErrors, TheEngineSaysHowManyDraftedTokensItHasRun) {
  Tokens ids = repeating();
  ASSERT_GT(drafted(batch, 0, ids).size(), 1U);
  EXPECT_EQ(reprise_batch_verified(batch, 2, 1), REPRISE_INVALID_ARGUMENT);
  ASSERT_EQ(reprise_batch_verified(batch, 0, 1), REPRISE_OK);
  ids.insert(ids.end(), {4, 5});  // one accepted, and the target's own token, which the draft had too
  static_cast<void>(drafted(batch, 0, ids));
  std::string counts(4096, 0);
  std::size_t needed = 0;
  ASSERT_EQ(reprise_batch_statistics(batch, 0, counts.data(), counts.size(), &needed), REPRISE_OK);
  EXPECT_NE(counts.find("\"drafted\": 1,"), std::string::npos) << counts;
  EXPECT_NE(counts.find("\"accepted\": 1,"), std::string::npos) << counts;
}

TEST_F(CInterfaceErrors, WithoutABoundInTheOptionsACallGetsUpTo64Tokens) {
  auto options = sized<reprise_options>();
  reprise_curve* curve = nullptr;
  ASSERT_EQ(reprise_curve_create_linear(0, &curve, nullptr), REPRISE_OK);
  options.curve = curve;
  Tokens ids(400);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<reprise_token>(i % 90);
  for (const std::size_t bound : {0U, 20U, 64U})
    for (const std::size_t most : {std::size_t{33}, std::size_t{64}, std::size_t{300}, REPRISE_UNLIMITED}) {
      options.max_draft_nodes = bound;
      const auto wanted = [&, unbounded = most == REPRISE_UNLIMITED](std::size_t usual) {
        return std::min({most, unbounded && bound == 0 ? usual : 64, bound == 0 ? 64 : bound});
      };
      reprise_batch* batched = nullptr;
      reprise_follower* following = nullptr;
      ASSERT_EQ(reprise_batch_create(&options, 1, &batched, nullptr), REPRISE_OK);
      ASSERT_EQ(reprise_follower_create(&options, &following, nullptr), REPRISE_OK);
      reprise_slot slot{};
      slot.ids = ids.data();
      slot.count = ids.size();
      slot.most = most;
      ASSERT_EQ(reprise_batch_draft(batched, &slot, 1, 0), REPRISE_OK);
      EXPECT_EQ(slot.drafted, wanted(63)) << bound << ", " << most;
      const reprise_token* draft = nullptr;
      std::size_t drafted = 0;
      ASSERT_EQ(reprise_follower_draft(following, ids.data(), ids.size(), most, 0, 0, &draft, &drafted), REPRISE_OK);
      EXPECT_EQ(drafted, wanted(32)) << bound << ", " << most;
      reprise_batch_destroy(batched);
      reprise_follower_destroy(following);
    }
  reprise_curve_destroy(curve);
}

TEST_F(CInterfaceErrors, ABoundAbove64IsRefused) {
  auto options = sized<reprise_options>();
  for (const std::size_t bound : {std::size_t{65}, std::size_t{300}, REPRISE_UNLIMITED}) {
    options.max_draft_nodes = bound;
    reprise_error error{};
    reprise_batch* batched = nullptr;
    reprise_follower* following = nullptr;
    reprise_session* decoding = nullptr;
    EXPECT_EQ(reprise_batch_create(&options, 1, &batched, &error), REPRISE_SIZE_OUT_OF_RANGE);
    EXPECT_EQ(error.value, bound);
    EXPECT_EQ(error.limit, 64U);
    EXPECT_EQ(reprise_follower_create(&options, &following, &error), REPRISE_SIZE_OUT_OF_RANGE);
    EXPECT_EQ(reprise_session_create(&options, &decoding, &error), REPRISE_SIZE_OUT_OF_RANGE);
    EXPECT_EQ(batched, nullptr);
    EXPECT_EQ(following, nullptr);
    EXPECT_EQ(decoding, nullptr);
  }
}

TEST_F(CInterfaceErrors, OfCurves) {
  reprise_curve* curve = nullptr;
  reprise_error error{};
  for (const double bad : {-0.1, 1e9, std::strtod("nan", nullptr)}) {
    EXPECT_EQ(reprise_curve_create_linear(bad, &curve, &error), REPRISE_INVALID_ARGUMENT);
    EXPECT_EQ(curve, nullptr);
  }
  EXPECT_EQ(reprise_curve_create(nullptr, 0, &curve, &error), REPRISE_INVALID_ARGUMENT);
  const reprise_cost_point point = {1, 0, 2, 5};
  EXPECT_EQ(reprise_curve_create(&point, 1, &curve, &error), REPRISE_INVALID_ARGUMENT) << "no plain pass";
  EXPECT_NE(std::string_view(error.message).find("plain pass"), std::string_view::npos);
  EXPECT_EQ(reprise_curve_create(&point, SIZE_MAX, &curve, &error), REPRISE_INVALID_ARGUMENT);
}

TEST_F(CInterfaceErrors, EveryFunctionRefusesANullHandle) {
  std::size_t needed = 7;
  const reprise_token* draft = text.data();
  std::size_t drafted = 7;
  reprise_session* forked = session;
  auto state = sized<reprise_state>();
  const std::array statuses = {
      reprise_memory_add(nullptr, 1, text.data(), 4, 0),
      reprise_memory_forget(nullptr, 1),
      reprise_memory_save(nullptr, 0, 1, nullptr, 0, &needed),
      reprise_memory_load(nullptr, 0, 1, nullptr, 0),
      reprise_session_keep(nullptr),
      reprise_session_predict(nullptr, text.data(), 4),
      reprise_follower_predict(nullptr, text.data(), 4),
      reprise_batch_predict(nullptr, 0, text.data(), 4),
      reprise_follower_draft(nullptr, text.data(), 4, 9, 0, 0, &draft, &drafted),
      reprise_follower_draft_after(nullptr, text.data(), 4, 0, 9, 0, 0, &draft, &drafted),
      reprise_follower_forget(nullptr),
      reprise_follower_verified(nullptr, 0),
      reprise_follower_stop_at(nullptr, text.data(), 1),
      reprise_follower_statistics(nullptr, nullptr, 0, &needed),
      reprise_follower_save_costs(nullptr, "engine", nullptr, 0, &needed),
      reprise_batch_draft(nullptr, nullptr, 0, 0),
      reprise_batch_known(nullptr, nullptr, 0),
      reprise_batch_ran(nullptr, 1),
      reprise_batch_report_top_k(nullptr, 0, 0, text.data(), 4),
      reprise_batch_forget(nullptr, 0),
      reprise_batch_verified(nullptr, 0, 0),
      reprise_batch_stop_at(nullptr, 0, text.data(), 1),
      reprise_batch_statistics(nullptr, 0, nullptr, 0, &needed),
      reprise_batch_assign(nullptr, 0, nullptr),
      reprise_batch_save_costs(nullptr, 1, "engine", nullptr, 0, &needed),
      reprise_batch_load_costs(nullptr, 1, "engine", nullptr, 0),
      reprise_session_fork(nullptr, &forked),
      reprise_session_begin(nullptr, text.data(), 4, 0, nullptr),
      reprise_session_plan(nullptr, nullptr, 9, &pass),
      reprise_session_report_top_k(nullptr, 0, text.data(), 4),
      reprise_session_report_prompt_row(nullptr, 0, text.data(), 4),
      reprise_session_commit(nullptr, text.data(), 1, 0, &done),
      reprise_session_append(nullptr, text.data(), 4, 0),
      reprise_session_truncate(nullptr, 1),
      reprise_session_rebase(nullptr, text.data(), 4, 0, &needed),
      reprise_session_set_cached(nullptr, 0),
      reprise_session_state(nullptr, &state),
      reprise_session_statistics(nullptr, nullptr, 0, &needed),
      reprise_session_save_costs(nullptr, "engine", nullptr, 0, &needed),
  };
  for (std::size_t i = 0; i < statuses.size(); ++i) EXPECT_EQ(statuses[i], REPRISE_INVALID_ARGUMENT) << i;
  EXPECT_EQ(needed, 0U);
  EXPECT_EQ(drafted, 0U);
  EXPECT_EQ(draft, nullptr);
  EXPECT_EQ(forked, nullptr);
  for (const reprise_error* error : {reprise_session_error(nullptr), reprise_follower_error(nullptr),
                                     reprise_batch_error(nullptr), reprise_memory_error(nullptr)})
    EXPECT_EQ(error->status, REPRISE_INVALID_ARGUMENT);
  reprise_curve_destroy(nullptr);
  reprise_memory_destroy(nullptr);
  reprise_follower_destroy(nullptr);
  reprise_batch_destroy(nullptr);
  reprise_session_destroy(nullptr);
}

TEST_F(CInterfaceErrors, EveryFunctionRefusesANullResult) {
  std::size_t number = 7;
  const reprise_token* draft = nullptr;
  const std::array statuses = {
      reprise_curve_create_linear(0.1, nullptr, nullptr),
      reprise_curve_create(nullptr, 0, nullptr, nullptr),
      reprise_memory_create(nullptr, nullptr, nullptr),
      reprise_memory_save(memory, 0, 1, nullptr, 0, nullptr),
      reprise_follower_create(nullptr, nullptr, nullptr),
      reprise_follower_draft(follower, text.data(), 4, 9, 0, 0, nullptr, &number),
      reprise_follower_draft(follower, text.data(), 4, 9, 0, 0, &draft, nullptr),
      reprise_follower_draft_after(follower, text.data(), 4, 0, 9, 0, 0, nullptr, &number),
      reprise_follower_draft_after(follower, text.data(), 4, 0, 9, 0, 0, &draft, nullptr),
      reprise_follower_statistics(follower, nullptr, 0, nullptr),
      reprise_follower_save_costs(follower, "engine", nullptr, 0, nullptr),
      reprise_batch_create(nullptr, 2, nullptr, nullptr),
      reprise_batch_statistics(batch, 0, nullptr, 0, nullptr),
      reprise_batch_save_costs(batch, 1, "engine", nullptr, 0, nullptr),
      reprise_session_create(nullptr, nullptr, nullptr),
      reprise_session_fork(session, nullptr),
      reprise_session_plan(session, nullptr, 9, nullptr),
      reprise_session_commit(session, text.data(), 1, 0, nullptr),
      reprise_session_rebase(session, text.data(), 4, 0, nullptr),
      reprise_session_state(session, nullptr),
      reprise_session_statistics(session, nullptr, 0, nullptr),
      reprise_session_save_costs(session, "engine", nullptr, 0, nullptr),
  };
  for (std::size_t i = 0; i < statuses.size(); ++i) EXPECT_EQ(statuses[i], REPRISE_INVALID_ARGUMENT) << i;
}

/// Calls call(pointer) with structs of size 0, one byte too small, and larger than this library knows.
template <class Struct, class Call>
void try_sizes(Call call) {
  struct {
    Struct known;
    std::array<unsigned char, 32> later;
  } given{};
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, sizeof(Struct) - 1}) {
    given.known.size = size;
    EXPECT_EQ(call(&given.known), REPRISE_INVALID_ARGUMENT) << size;
  }
  for (const std::size_t size : {sizeof(Struct), sizeof(Struct) + 32, SIZE_MAX}) {
    given.later.fill(0xa5);
    given.known.size = size;
    EXPECT_EQ(call(&given.known), REPRISE_OK) << size;
    EXPECT_EQ(given.known.size, size);
    for (const unsigned char byte : given.later) ASSERT_EQ(byte, 0xa5);
  }
}

TEST_F(CInterfaceErrors, StructsAreCheckedByTheirSize) {
  try_sizes<reprise_memory_options>([](const reprise_memory_options* options) {
    reprise_memory* made = nullptr;
    const auto status = reprise_memory_create(options, &made, nullptr);
    reprise_memory_destroy(made);
    return status;
  });
  try_sizes<reprise_options>([](const reprise_options* options) {
    reprise_session* made = nullptr;
    const auto status = reprise_session_create(options, &made, nullptr);
    reprise_session_destroy(made);
    return status;
  });
  try_sizes<reprise_options>([](const reprise_options* options) {
    reprise_follower* made = nullptr;
    const auto status = reprise_follower_create(options, &made, nullptr);
    reprise_follower_destroy(made);
    return status;
  });
  try_sizes<reprise_options>([](const reprise_options* options) {
    reprise_batch* made = nullptr;
    const auto status = reprise_batch_create(options, 2, &made, nullptr);
    reprise_batch_destroy(made);
    return status;
  });
  try_sizes<reprise_options>([&](const reprise_options* options) { return reprise_batch_assign(batch, 0, options); });
  try_sizes<reprise_capabilities>([&](const reprise_capabilities* can) { return begin(text, 3, can); });
  try_sizes<reprise_limits>(
      [&](const reprise_limits* limits) { return reprise_session_plan(session, limits, 9, &pass); });
  try_sizes<reprise_pass>([&](reprise_pass* out) { return reprise_session_plan(session, nullptr, 0, out); });
  try_sizes<reprise_commit>([&](reprise_commit* out) {
    EXPECT_EQ(reprise_session_plan(session, nullptr, 0, &pass), REPRISE_OK);
    return reprise_session_commit(session, text.data(), 1, 0, out);
  });
  try_sizes<reprise_state>([&](reprise_state* out) { return reprise_session_state(session, out); });
}

TEST(CInterface, HasAStatusForEveryErrorCodeThatItMeets) {
  EXPECT_EQ(c::status_of(ErrorCode::out_of_memory), REPRISE_OUT_OF_MEMORY);
  EXPECT_EQ(c::status_of(ErrorCode::no_such_section), REPRISE_BAD_SNAPSHOT);
  EXPECT_EQ(c::status_of(ErrorCode::verifier_failed), REPRISE_INTERNAL);
  EXPECT_EQ(c::status_of(static_cast<ErrorCode>(255)), REPRISE_INTERNAL);
}

TEST(CInterface, KnowsItsVersion) { EXPECT_EQ(std::string_view(reprise_version()), version_string); }

}  // namespace
}  // namespace reprise::c_interface_test
