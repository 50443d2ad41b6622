// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reprise/history/history_snapshot.hpp"
#include "support/snapshots.hpp"

namespace reprise::snapshot_runs_test {
namespace {

using testing::Bytes;
using testing::some_tokenizer;
using testing::StoredRun;

Bytes written(const std::vector<StoredRun>& runs) {
  std::size_t length = 0;
  for (const StoredRun& run : runs) length += detail::run_bytes(run.size());
  Bytes bytes(snapshot_bytes({length}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(SectionKind::runs);
  for (const StoredRun& run : runs) testing::write_run(writer, run);
  EXPECT_TRUE(writer.finish()) << "as long as it was said beforehand";
  return bytes;
}

SnapshotReader::Cursor section_of(const Bytes& bytes) {
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  EXPECT_TRUE(reader);
  return *reader->section(SectionKind::runs);
}

std::vector<StoredRun> read(const Bytes& bytes) {
  std::vector<StoredRun> runs;
  EXPECT_TRUE(detail::for_each_run(section_of(bytes),
                                   [&](const detail::RunView& run) { runs.push_back(testing::stored(run)); }));
  return runs;
}

TEST(SnapshotRuns, ComeBackInTheirOrder) {
  testing::Random random(4);
  std::vector<StoredRun> runs;
  for (const std::size_t tokens : {1U, 2U, 15U, 16U, 17U, 32U, 33U, 1000U, 1U})
    runs.push_back(testing::random_run(random, tokens));
  runs.push_back({1, {0, 0x7ffffffe, 0xfffffffe, 0x40000000}, {9}});  // the largest tokens
  EXPECT_EQ(read(written(runs)), runs);
  EXPECT_EQ(read(written({})), std::vector<StoredRun>());
}

TEST(SnapshotRuns, WhoSaidATokenSharesAWordWithItWithoutOverlap) {
  static_assert(detail::HistoryWord(0x7ffffffe, Origin::prompt).bits() == 0x7ffffffe);
  static_assert(detail::HistoryWord(0x7ffffffe, Origin::output).bits() == 0xfffffffe);
  static_assert(detail::run_bytes(1) == 17 && detail::run_bytes(32) == 141 && detail::run_bytes(33) == 146);
}

/// The result for a section with two runs of 20 tokens, after a change of its contents, with correct checksums. `runs`
/// is the number of visited runs: the valid ones before the first invalid one.
struct Visited {
  std::size_t runs = 0;
  Result<void> result;
};
Visited after(const std::function<void(std::span<std::byte>)>& change, std::size_t cut = 0) {
  testing::Random random(6);
  const std::vector<StoredRun> runs = {testing::random_run(random, 20), testing::random_run(random, 20)};
  Bytes bytes = written(runs);
  change(std::span(bytes).subspan(76));
  bytes.resize(bytes.size() - cut);
  testing::repair(bytes);
  Visited visited;
  visited.result = detail::for_each_run(section_of(bytes), [&](const detail::RunView& /*run*/) { ++visited.runs; });
  return visited;
}

constexpr std::size_t second = detail::run_bytes(20);

void expect_forged(const Visited& visited, std::size_t where) {
  ASSERT_FALSE(visited.result);
  EXPECT_EQ(visited.result.error().code, ErrorCode::snapshot_forged);
  EXPECT_EQ(visited.result.error().value, where);
  EXPECT_EQ(visited.runs, where / second);
}

TEST(ForgedRuns, WithoutTokensAreRefused) {
  expect_forged(after([](auto contents) { detail::store_little(std::uint32_t{0}, &contents[8]); }), 0);
}

TEST(ForgedRuns, WithMoreTokensThanBytesAreRefused) {
  for (const std::uint32_t size : {21U, 22U, 1000U, 0x3fffffffU, 0x40000000U, 0x80000000U, 0xffffffffU})
    expect_forged(after([&](auto contents) { detail::store_little(size, &contents[second + 8]); }), second);
}

TEST(ForgedRuns, ThatEndAnywhereAreRefused) {
  for (std::size_t cut = 1; cut < second; ++cut) expect_forged(after([](auto) {}, cut), second);
  const Visited between = after([](auto) {}, second);
  EXPECT_TRUE(between.result);
  EXPECT_EQ(between.runs, 1U);
}

TEST(ForgedRuns, WithAWordThatIsNoTokenAreRefused) {
  for (std::size_t token = 0; token < 20; ++token)
    for (const std::uint32_t word : {0x7fffffffU, 0xffffffffU})
      expect_forged(after([&](auto contents) { detail::store_little(word, &contents[second + 12 + 4 * token]); }),
                    second);
}

}  // namespace
}  // namespace reprise::snapshot_runs_test
