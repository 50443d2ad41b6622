// SPDX-License-Identifier: Apache-2.0
// The step of examples/python/native: random batches get the drafts of reprise_batch_draft() with all ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "python/native/rows.cpp"
#include "reprise_testing/random.hpp"

namespace reprise::python_rows_test {
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
  std::array<std::size_t, slots> known{};
  std::array<std::size_t, slots> salts{};
  Tokens table(slots * longest);
  std::array<std::int32_t, slots> lengths{};
  std::array<Request, slots> requests;
  std::array<bool, slots> used{};
  std::size_t drafted = 0;
  for (int turn = 0; turn < 80; ++turn) {
    std::vector<reprise_python_row> rows;
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
      reprise_python_row row{};
      row.slot = slot;
      row.most = random.below(5) == 0 ? random.below(4) : 100;
      row.kind = request.begun ? reprise_python_goes_on : reprise_python_begins;
      if (!request.begun && random.below(3) == 0) {
        row.kind = reprise_python_waits;
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
      reprise_python_row row{};
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

    std::array<reprise_slot, slots> scratch{};
    std::array<std::int64_t, slots * width> drafts{};
    reprise_python_step step{};
    step.batch = tested.batch;
    step.ids = table.data();
    step.stride = step.longest = longest;
    step.lengths = lengths.data();
    step.known = known.data();
    step.rows = rows.data();
    step.size = rows.size() - ended.size();
    step.count = rows.size();
    step.slots = scratch.data();
    step.drafts = drafts.data();
    step.width = width;
    reprise_python_run_step(&step);
    ASSERT_EQ(step.done.load(), 1);
    ASSERT_EQ(step.status, REPRISE_OK);
    std::size_t at = 0;
    for (std::size_t row = 0; row < step.size; ++row) {
      const bool waits = std::find(waiting.begin(), waiting.end(), row) != waiting.end();
      Tokens wanted(width, waits ? 0 : requests[rows[row].slot].text.back());
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

TEST(PythonRows, RandomBatchesAreThoseOfTheBatchWithAllIds) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) run(seed);
}

TEST(PythonRows, AFailureMakesTheNextStepPassAllIds) {
  Batch tested;
  std::array<std::size_t, slots> known{};
  Tokens table = {1, 2, 1, 2};
  table.resize(slots * longest);
  std::array<std::int32_t, slots> lengths{4};
  std::array<reprise_slot, slots> scratch{};
  std::array<std::int64_t, 2 * width> drafts{};
  std::array<reprise_python_row, 2> rows{};  // one slot in two rows
  for (auto& row : rows) row.most = width, row.kind = reprise_python_goes_on;
  reprise_python_step step{};
  step.batch = tested.batch;
  step.ids = table.data();
  step.stride = step.longest = longest;
  step.lengths = lengths.data();
  step.known = known.data();
  step.rows = rows.data();
  step.size = step.count = 2;
  step.slots = scratch.data();
  step.drafts = drafts.data();
  step.width = width;
  reprise_python_run_step(&step);
  EXPECT_EQ(step.status, REPRISE_INVALID_ARGUMENT);
  EXPECT_EQ(known[0], 0U);
  step.size = step.count = 1;
  reprise_python_run_step(&step);
  EXPECT_EQ(step.status, REPRISE_OK);
  EXPECT_EQ(known[0], 4U);
}

}  // namespace
}  // namespace reprise::python_rows_test
