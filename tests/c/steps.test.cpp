// SPDX-License-Identifier: Apache-2.0
// reprise_batch_step(): random batches get the drafts of reprise_batch_draft() with all ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reprise_c/reprise.h"
#include "reprise_testing/random.hpp"

namespace reprise::steps_test {
namespace {

using testing::Random;
using Tokens = std::vector<reprise_token>;
constexpr std::size_t slots = 5;
constexpr std::size_t longest = 120;
constexpr std::size_t width = 6;

/// A batch with a memory of its own, and options of each salt.
struct Batch {
  Batch() {
    reprise_memory_options kept{};
    kept.size = sizeof kept;
    kept.max_bytes = 1 << 20;
    reprise_memory_create(&kept, &memory, nullptr);
    reprise_curve_create_linear(0.0, &curve, nullptr);
    for (reprise_options& each : options) {
      each.size = sizeof each;
      each.memory = memory;
      each.curve = curve;
      each.salt = static_cast<std::uint64_t>(&each - options.data());
    }
    reprise_batch_create(options.data(), slots, &batch, nullptr);
  }
  Batch(const Batch&) = delete;
  ~Batch() {
    reprise_batch_destroy(batch);
    reprise_curve_destroy(curve);
    reprise_memory_destroy(memory);
  }
  reprise_memory* memory = nullptr;
  reprise_curve* curve = nullptr;
  reprise_batch* batch = nullptr;
  std::array<reprise_options, 3> options{};
};

/// A step of a batch, without its rows.
reprise_step step_of(const Batch& batch, const Tokens& table, std::span<const std::int32_t> lengths,
                     std::span<std::int64_t> drafts) {
  reprise_step step{};
  step.size = sizeof step;
  step.batch = batch.batch;
  step.ids = table.data();
  step.stride = step.longest = longest;
  step.lengths = lengths.data();
  step.drafts = drafts.data();
  step.width = width;
  return step;
}

struct Request {
  Tokens text, prediction;
  std::size_t prompt = 0;
  std::size_t salt = 0;
  bool begun = false;
};

/// Tokens that repeat, so that there is something to draft.
reprise_token next(const Tokens& text, Random& random) {
  return random.below(9) == 0 ? static_cast<reprise_token>(random.below(30)) : (text.back() * 5 + 1) % 23;
}

/// An engine: requests come, wait for the rest of their prompts, go on in some of the steps, and end.
void run(std::uint64_t seed) {
  Random random(seed);
  Batch tested;
  Batch reference;
  std::array<std::size_t, slots> salts{};
  Tokens table(slots * longest);
  std::array<std::int32_t, slots> lengths{};
  std::array<Request, slots> requests;
  std::array<bool, slots> used{};
  std::size_t drafted = 0;
  for (int turn = 0; turn < 80; ++turn) {
    std::vector<reprise_row> rows;
    std::vector<reprise_slot> expected;
    std::vector<std::size_t> waiting;
    std::vector<std::size_t> ended;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      Request& request = requests[slot];
      if (used[slot] && random.below(12) == 0) used[slot] = false, ended.push_back(slot);
      if (!used[slot] && random.below(2) == 0) {
        const bool same = !ended.empty() && ended.back() == slot;
        if (same) ended.pop_back();  // a new request of the same slot: nobody says that the old one has ended
        request = {{static_cast<reprise_token>(random.below(3))}, {}, 0, random.below(3), false};
        while (request.text.size() < 20) request.text.push_back(next(request.text, random));
        request.prompt = request.text.size();
        if (random.below(2) == 0) {
          request.prediction = request.text;
          while (request.prediction.size() < 45) request.prediction.push_back(next(request.prediction, random));
          request.prediction.erase(request.prediction.begin(), request.prediction.begin() + 20);
        }
        used[slot] = true;
      } else if (!used[slot]) {
        continue;
      }
      if (random.below(4) == 0) continue;  // not in this step
      reprise_row row{};
      row.slot = row.at = slot;
      row.most = random.below(5) == 0 ? random.below(4) : 100;
      row.kind = request.begun ? REPRISE_ROW_GOES_ON : REPRISE_ROW_BEGINS;
      if (!request.begun && random.below(3) == 0) {
        row.kind = REPRISE_ROW_WAITS;
        rows.push_back(row);
        waiting.push_back(rows.size() - 1);
        continue;
      }
      const std::size_t sampled = 1 + random.below(3);
      for (std::size_t i = 0; i < sampled && request.text.size() < longest; ++i) {
        const std::size_t at = request.text.size() - request.prompt;
        request.text.push_back(at < request.prediction.size() && random.below(20) != 0 ? request.prediction[at]
                                                                                       : next(request.text, random));
      }
      if (!request.begun) {
        if (salts[slot] != request.salt) row.options = &tested.options[request.salt];
        row.prediction = request.prediction.empty() ? nullptr : request.prediction.data();
        row.predicted = request.prediction.size();
        row.prompt = request.prompt;
      }
      rows.push_back(row);
      expected.push_back({slot, request.text.data(), request.text.size(),
                          std::min({row.most, width, longest - std::min(longest, request.text.size() + 1)}), 0, nullptr,
                          0, 0});
      std::copy(request.text.begin(), request.text.end(), table.begin() + static_cast<std::ptrdiff_t>(slot * longest));
      lengths[slot] = static_cast<std::int32_t>(request.text.size());
    }
    // The reference: the same calls, one by one, and all ids.
    for (const std::size_t slot : ended) {
      reprise_row row{};
      row.slot = slot;
      if (salts[slot] != 0) row.options = tested.options.data();
      rows.push_back(row);
      if (salts[slot] != 0)
        ASSERT_EQ(reprise_batch_assign(reference.batch, slot, reference.options.data()), REPRISE_OK);
      else
        ASSERT_EQ(reprise_batch_forget(reference.batch, slot), REPRISE_OK);
      salts[slot] = 0;
    }
    for (const reprise_slot& each : expected) {
      Request& request = requests[each.slot];
      if (std::exchange(request.begun, true)) continue;
      if (salts[each.slot] != request.salt)
        ASSERT_EQ(reprise_batch_assign(reference.batch, each.slot, &reference.options[request.salt]), REPRISE_OK);
      else
        ASSERT_EQ(reprise_batch_forget(reference.batch, each.slot), REPRISE_OK);
      salts[each.slot] = request.salt;
      if (request.prediction.empty()) continue;
      const Tokens output(request.text.begin() + static_cast<std::ptrdiff_t>(request.prompt), request.text.end());
      const bool begins = output.size() <= request.prediction.size() &&
                          std::equal(output.begin(), output.end(), request.prediction.begin());
      const std::size_t skipped = begins ? output.size() : 0;
      ASSERT_EQ(reprise_batch_predict(reference.batch, each.slot, request.prediction.data() + skipped,
                                      request.prediction.size() - skipped),
                REPRISE_OK);
    }
    if (!expected.empty()) {
      ASSERT_EQ(reprise_batch_draft(reference.batch, expected.data(), expected.size(), 0), REPRISE_OK);
    }

    std::array<std::int64_t, slots * width> drafts{};
    reprise_step step = step_of(tested, table, lengths, drafts);
    step.rows = rows.data();
    step.count = rows.size() - ended.size();
    step.ended = ended.size();
    reprise_batch_step(&step);
    ASSERT_EQ(step.done, 1);
    ASSERT_EQ(step.status, REPRISE_OK);
    std::size_t at = 0;
    for (std::size_t row = 0; row < step.count; ++row) {
      const bool waits = std::find(waiting.begin(), waiting.end(), row) != waiting.end();
      Tokens wanted(width,
                    lengths[rows[row].slot] == 0
                        ? 0
                        : table[rows[row].slot * longest + static_cast<std::size_t>(lengths[rows[row].slot]) - 1]);
      if (!waits) {
        std::copy_n(expected[at].draft, expected[at].drafted, wanted.begin());
        drafted += expected[at++].drafted;
      }
      const auto first = drafts.begin() + static_cast<std::ptrdiff_t>(row * width);
      ASSERT_EQ(Tokens(first, first + width), wanted) << "seed " << seed << ", turn " << turn;
    }
  }
  EXPECT_GT(drafted, 20U);
}

TEST(Steps, RandomBatchesAreThoseOfTheBatchWithAllIds) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) run(seed);
}

/// A step of two rows of a text that repeats.
struct TwoRows {
  TwoRows() {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].slot = rows[i].at = i;
      rows[i].most = width;
      rows[i].kind = REPRISE_ROW_BEGINS;
      for (std::size_t k = 0; k < longest; ++k) table[i * longest + k] = static_cast<reprise_token>(10 * i + k % 4);
      lengths[i] = 16;
    }
    step.rows = rows.data();
    step.count = rows.size();
  }
  /// Runs the step, and the next one with one more id. Returns which rows have drafts, as bits.
  std::size_t run(std::int32_t status = REPRISE_OK) {
    step.done = 0;
    reprise_batch_step(&step);
    EXPECT_EQ(step.status, status);
    EXPECT_EQ(step.done, 1);
    for (reprise_row& row : rows) row.kind = REPRISE_ROW_GOES_ON, row.options = nullptr;
    for (std::int32_t& length : lengths) ++length;
    return (rows[0].drafted > 0 ? 1U : 0U) + (rows[1].drafted > 0 ? 2U : 0U);
  }
  Batch batch;
  std::array<reprise_row, 2> rows{};
  Tokens table = Tokens(2 * longest);
  std::array<std::int32_t, 2> lengths{};
  std::array<std::int64_t, 2 * width> drafts{};
  reprise_step step = step_of(batch, table, lengths, drafts);
};

TEST(Steps, ARowThatCannotBeginDraftsNothingUntilAnotherOneBegins) {
  TwoRows two;
  EXPECT_EQ(two.run(), 3U);
  reprise_options wrong{};
  wrong.size = 1;
  two.rows[0].kind = two.rows[1].kind = REPRISE_ROW_BEGINS;
  two.rows[0].options = &wrong;
  EXPECT_EQ(two.run(REPRISE_INVALID_ARGUMENT), 2U) << "the other row begins and drafts";
  EXPECT_EQ(two.run(), 2U) << "its slot has what another request may have left";
  two.rows[0].kind = REPRISE_ROW_BEGINS;
  EXPECT_EQ(two.run(), 3U);
}

TEST(Steps, ARowWithAnIdThatIsNoTokenDraftsNothing) {
  TwoRows two;
  two.step.below = 50;
  for (const reprise_token wrong : {-1, 50, 1 << 30}) {
    two.table[static_cast<std::size_t>(two.lengths[0]) - 1] = wrong;
    EXPECT_EQ(two.run(), 2U);
    two.table[static_cast<std::size_t>(two.lengths[0]) - 2] = 1;
    EXPECT_EQ(two.run(), 3U) << "all ids are read again";
  }
}

TEST(Steps, ATextThatHasBecomeShorterIsReadAgain) {
  TwoRows two;
  EXPECT_EQ(two.run(), 3U);
  two.lengths[0] = 12;
  EXPECT_EQ(two.run(), 3U);
  EXPECT_EQ(two.drafts[0], two.table[12]);
}

TEST(Steps, KnownIdsAreNotReadAgain) {
  TwoRows two;
  TwoRows other;
  EXPECT_EQ(two.run(), other.run());
  std::fill_n(other.table.begin(), 15, 3);
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_EQ(two.run(), other.run());
    EXPECT_EQ(two.drafts, other.drafts);
  }
}

/// How many of ten steps teach a cost, after one in which both requests begin. The engine accepts all drafts. A pass
/// takes 1 ms and 0.1 ms for each row, unless now_ns is -1. `change`: changes the rows of a step.
template <class Change>
std::size_t taught(TwoRows& two, Change change) {
  const auto saved = [&] {
    std::array<std::array<char, 4096>, 2> bytes{};
    std::size_t needed = 0;
    for (std::size_t i = 0; i < 2; ++i)  // the curves of one and of two sequences
      EXPECT_EQ(reprise_batch_save_costs(two.step.batch, 1 + i, "toy", bytes[i].data(), bytes[i].size(), &needed),
                REPRISE_OK);
    return bytes;
  };
  std::size_t count = 0;
  for (std::size_t turn = 0; turn < 11; ++turn) {
    two.step.count = 2;
    for (std::size_t i = 0; i < 2; ++i) {
      if (turn == 0)
        two.lengths[i] = 16, two.rows[i].kind = REPRISE_ROW_BEGINS;
      else
        two.lengths[i] += static_cast<std::int32_t>(two.rows[i].drafted);
    }
    if (turn > 0) change(turn);
    const auto before = saved();
    if (two.step.now_ns >= 0)
      two.step.now_ns += 1'000'000 + 100'000 * static_cast<std::int64_t>(2 + two.rows[0].drafted + two.rows[1].drafted);
    two.run();
    if (turn > 0 && saved() != before) ++count;
  }
  return count;
}

TEST(Steps, ATimeOfOtherRowsThanThePlannedOnesTeachesNoCost) {
  TwoRows two;
  ASSERT_EQ(reprise_batch_create(nullptr, 2, &two.step.batch, nullptr), REPRISE_OK);
  two.step.now_ns = 1;
  const auto goes_on = [](std::size_t) {};
  static_cast<void>(taught(two, goes_on));
  EXPECT_GT(taught(two, goes_on), 5U);
  EXPECT_EQ(taught(two, [&](std::size_t) { two.rows[1].kind = REPRISE_ROW_WAITS; }), 0U) << "its prompt runs";
  EXPECT_EQ(taught(two, [&](std::size_t) { two.rows[1].kind = REPRISE_ROW_BEGINS; }), 0U) << "its prompt has run";
  EXPECT_EQ(taught(two, [&](std::size_t turn) { two.step.count = turn % 2 == 0 ? 2 : 1; }), 0U) << "a row pauses";
  EXPECT_GT(taught(two, goes_on), 5U) << "and then again";
  two.step.now_ns = -1;
  EXPECT_GT(taught(two, goes_on), 2U) << "the times of the calls";
  reprise_batch_destroy(two.step.batch);
}

TEST(Steps, DraftsEndWhereTheTextMustEnd) {
  TwoRows two;
  two.step.longest = 19;
  two.run();
  EXPECT_EQ(two.rows[0].drafted, 2U);
  EXPECT_EQ(two.drafts[2], two.table[15]) << "the last id follows the draft";
  two.run();
  EXPECT_EQ(two.rows[0].drafted, 1U);
  two.run();
  EXPECT_EQ(two.rows[0].drafted, 0U);
}

TEST(Steps, ALengthBeyondTheTableEndsAtItsLine) {
  TwoRows two;
  two.lengths = {2'000'000, 3'000'000};
  EXPECT_EQ(two.run(), 0U);
  EXPECT_EQ(two.drafts[0], two.table[longest - 1]);
  EXPECT_EQ(two.drafts[width], two.table[2 * longest - 1]);
}

TEST(Steps, RefusesWhatIsNoStep) {
  TwoRows two;
  const auto refused = [&](auto change) {
    const reprise_step before = two.step;
    change(two.step);
    two.step.done = 0;
    reprise_batch_step(&two.step);
    EXPECT_NE(two.step.status, REPRISE_OK);
    EXPECT_EQ(two.step.done, 1);
    two.step = before;
  };
  refused([](reprise_step& step) { step.size = 8; });
  refused([](reprise_step& step) { step.batch = nullptr; });
  refused([](reprise_step& step) { step.rows = nullptr; });
  refused([&](reprise_step& step) { step.count = slots + 1; });
  refused([&](reprise_step& step) { two.rows[1].slot = slots, step.count = 2; });
  two.rows[1].slot = 0;  // twice
  refused([](reprise_step&) {});
  EXPECT_STRNE(reprise_batch_error(two.batch.batch)->message, "");
}

}  // namespace
}  // namespace reprise::steps_test
