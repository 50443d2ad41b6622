// SPDX-License-Identifier: Apache-2.0
#include "reprise/batch/packing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::packing_test {
namespace {

using ::testing::ElementsAre;
using testing::Random;

/// A planned pass, with the arrays that it refers to.
struct Planned {
  std::vector<Token> batch;
  std::vector<NodeIndex> parents;
  std::vector<std::uint32_t> depths;
  std::size_t context = 0;

  [[nodiscard]] Pass pass() const {
    Pass pass;
    pass.batch = batch;
    pass.drafted = parents.size();
    pass.pending = batch.size() - parents.size();
    pass.parents = parents;
    pass.depths = depths;
    return pass;
  }
};

Planned tree() { return {{7, 8, 20, 21, 22}, {-1, 0, 0}, {1, 2, 2}, 10}; }  // two pending tokens
Planned plain() { return {{5}, {}, {}, 4}; }

BatchPacker packed() {
  BatchPacker packer;
  EXPECT_TRUE(packer.add(3, tree().pass(), 10));
  EXPECT_TRUE(packer.add(1, plain().pass(), 4));
  return packer;
}

TEST(BatchPacker, SaysWhatItCannotReserve) {
  BatchPacker packer;
  for (const auto& reserved : {packer.reserve(unlimited, 1), packer.reserve(1, unlimited)}) {
    ASSERT_FALSE(reserved);
    EXPECT_EQ(reserved.error().code, ErrorCode::out_of_memory);
  }
  EXPECT_TRUE(packer.reserve(2, 8));
}

TEST(BatchPacker, LaysTheRowsOfAllSequencesSideBySide) {
  const BatchPacker packer = packed();
  const PackedBatch batch = packer.batch();
  EXPECT_EQ(packer.size(), 2U);
  EXPECT_EQ(batch.rows(), 6U);
  EXPECT_THAT(batch.tokens, ElementsAre(7, 8, 20, 21, 22, 5));
  EXPECT_THAT(batch.positions, ElementsAre(8, 9, 10, 11, 11, 3));
  EXPECT_THAT(batch.sequences, ElementsAre(3, 3, 3, 3, 3, 1));
  EXPECT_THAT(batch.parents, ElementsAre(-1, 0, 1, 2, 2, -1));
  EXPECT_THAT(batch.wants_logits, ElementsAre(0, 1, 1, 1, 1, 1));
  EXPECT_THAT(batch.offsets, ElementsAre(0, 5, 6));
}

TEST(BatchPacker, FindsEachSequencesPartOfThePicks) {
  const BatchPacker packer = packed();
  const std::vector<Token> picks = {100, 101, 102, 103, 104, 105};
  EXPECT_THAT(packer.picks_of(0, std::span(picks)), ElementsAre(101, 102, 103, 104));
  EXPECT_THAT(packer.picks_of(1, std::span(picks)), ElementsAre(105));
  EXPECT_EQ(packer.flat_row(0, 3), 3U);
  EXPECT_EQ(packer.flat_row(1, 0), 5U);
}

TEST(BatchPacker, FindsEachSequencesPartOfThePicksOfWantedRowsAlone) {
  const BatchPacker packer = packed();
  EXPECT_THAT(packer.batch().logit_rows, ElementsAre(1, 2, 3, 4, 5));
  const std::vector<Token> picks = {101, 102, 103, 104, 105};
  EXPECT_THAT(packer.compact_picks_of(0, std::span(picks)), ElementsAre(101, 102, 103, 104));
  EXPECT_THAT(packer.compact_picks_of(1, std::span(picks)), ElementsAre(105));
}

TEST(BatchPacker, TakesAPassAsCheckBatchHandsItOut) {
  const Planned planned = tree();
  const SequencePass part{3, planned.batch, 3, planned.parents, planned.context};
  EXPECT_EQ(part.pending(), 2U);
  EXPECT_EQ(part.cached(), 8U);
  BatchPacker packer;
  ASSERT_TRUE(packer.add(part));
  ASSERT_TRUE(packer.add({1, plain().batch, 0, {}, 4}));
  EXPECT_EQ(batch_digest(packer.batch()), batch_digest(packed().batch()));
  EXPECT_THAT(packer.batch().positions, ElementsAre(8, 9, 10, 11, 11, 3));
  EXPECT_THAT(packer.batch().wants_logits, ElementsAre(0, 1, 1, 1, 1, 1));
}

TEST(BatchPacker, PadsTheWholeBatch) {
  BatchPacker packer = packed();
  ASSERT_TRUE(packer.pad_to(8, 99));
  ASSERT_TRUE(packer.pad_to(2)) << "wide enough";
  EXPECT_EQ(packer.batch().rows(), 8U);
  EXPECT_THAT(packer.batch().sequences.last(2), ElementsAre(no_sequence, no_sequence));
  EXPECT_THAT(packer.batch().tokens.last(2), ElementsAre(99, 99));
  EXPECT_THAT(packer.batch().offsets, ElementsAre(0, 5, 6)) << "of no sequence";
}

TEST(BatchPacker, IsEmptyAfterClear) {
  BatchPacker packer = packed();
  packer.clear();
  EXPECT_EQ(packer.size(), 0U);
  EXPECT_EQ(packer.batch().rows(), 0U);
  EXPECT_EQ(packer.batch().offsets.size(), 0U);
  ASSERT_TRUE(packer.add(1, plain().pass(), 4));
  EXPECT_THAT(packer.batch().offsets, ElementsAre(0, 1));
}

TEST(BatchPacker, WhatWasPackedCanBeUnpacked) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Planned> passes(random.below(9));
    BatchPacker packer;
    for (Planned& planned : passes) {
      const std::size_t pending = 1 + random.below(3);
      planned.context = pending + random.below(20);
      for (std::size_t i = 0; i < pending; ++i) planned.batch.push_back(static_cast<Token>(random.below(1000)));
      const std::size_t drafted = random.below(6);
      for (std::size_t i = 0; i < drafted; ++i) {
        const auto parent = static_cast<NodeIndex>(random.below(i + 1)) - 1;
        planned.parents.push_back(parent);
        planned.depths.push_back(parent < 0 ? 1 : planned.depths[static_cast<std::size_t>(parent)] + 1);
        planned.batch.push_back(static_cast<Token>(random.below(1000)));
      }
      ASSERT_TRUE(packer.add(static_cast<BatchSlot>(packer.size()), planned.pass(), planned.context));
    }
    ASSERT_TRUE(packer.pad_to(random.below(80)));
    const PackedBatch batch = packer.batch();
    const auto wanted = static_cast<std::ptrdiff_t>(batch.logit_rows.size());
    ASSERT_EQ(std::count(batch.wants_logits.begin(), batch.wants_logits.end(), 1), wanted);
    std::vector<Token> rows(batch.rows());
    std::iota(rows.begin(), rows.end(), 0);
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const Planned& planned = passes[i];
      const std::size_t pending = planned.pass().pending;
      for (std::size_t row = 0; row < planned.batch.size(); ++row) {
        const std::size_t flat = packer.flat_row(i, row);
        ASSERT_EQ(batch.tokens[flat], planned.batch[row]);
        ASSERT_EQ(batch.sequences[flat], static_cast<BatchSlot>(i));
        // A row is one position after its parent; a row without one is one position after the cache.
        const NodeIndex parent = batch.parents[flat];
        const std::int32_t before = parent == anchor_parent
                                        ? static_cast<std::int32_t>(planned.context - pending) - 1
                                        : batch.positions[packer.flat_row(i, static_cast<std::size_t>(parent))];
        ASSERT_EQ(batch.positions[flat], before + 1);
      }
      const auto picks = packer.picks_of(i, std::span(rows));
      const auto compact = packer.compact_picks_of(i, batch.logit_rows);
      ASSERT_EQ(compact.size(), planned.parents.size() + 1);
      for (std::size_t j = 0; j < compact.size(); ++j) ASSERT_EQ(static_cast<std::size_t>(picks[j]), compact[j]);
      ASSERT_EQ(picks.size(), planned.parents.size() + 1);
      for (std::size_t j = 0; j <= planned.parents.size(); ++j) {
        ASSERT_EQ(static_cast<std::size_t>(picks[j]), packer.flat_row(i, pending - 1 + j));
        ASSERT_EQ(batch.wants_logits[static_cast<std::size_t>(picks[j])], 1);
      }
    }
  }
}

TEST(BatchDigest, IsEqualForEqualBatchesAlone) {
  std::set<std::uint64_t> seen;
  const auto is_new = [&](const BatchPacker& packer) { return seen.insert(batch_digest(packer.batch())).second; };
  EXPECT_TRUE(is_new(packed()));
  EXPECT_FALSE(is_new(packed()));
  EXPECT_TRUE(is_new(BatchPacker()));
  const auto changed = [&](const Planned& planned, BatchSlot id, std::size_t context) {
    BatchPacker packer;
    EXPECT_TRUE(packer.add(id, planned.pass(), context));
    EXPECT_TRUE(packer.add(1, plain().pass(), 4));
    return packer;
  };
  Planned token = tree();
  token.batch[4] = 23;
  EXPECT_TRUE(is_new(changed(token, 3, 10)));
  Planned parent = tree();
  parent.parents[2] = 1;
  EXPECT_TRUE(is_new(changed(parent, 3, 10)));
  EXPECT_TRUE(is_new(changed(tree(), 2, 10)));
  EXPECT_TRUE(is_new(changed(tree(), 3, 11)));
  BatchPacker padded = packed();
  ASSERT_TRUE(padded.pad_to(7));
  EXPECT_TRUE(is_new(padded));
  BatchPacker swapped;
  ASSERT_TRUE(swapped.add(1, plain().pass(), 4));
  ASSERT_TRUE(swapped.add(3, tree().pass(), 10));
  EXPECT_TRUE(is_new(swapped));
}

TEST(BatchDigest, RemembersTheStepsBefore) {
  const BatchPacker packer = packed();
  EXPECT_NE(batch_digest(packer.batch(), 1), batch_digest(packer.batch(), 2));
}

TEST(BatchDigest, IsTheSameOnEveryMachine) { EXPECT_EQ(batch_digest(packed().batch()), 12471287983298581226U); }

}  // namespace
}  // namespace reprise::packing_test
