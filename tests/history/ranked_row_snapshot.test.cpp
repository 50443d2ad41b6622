// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/table_snapshots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "support/ranked_rows.hpp"
#include "support/snapshots.hpp"

namespace reprise::ranked_row_snapshot_test {
namespace {

using testing::Bytes;
using testing::Random;
using testing::same_rows;
using testing::some_table_key;
using testing::some_tokenizer;
using Rows = std::vector<RankedRows::Row>;

RankedRows empty_table(std::size_t lines, std::uint64_t key = some_table_key) {
  return RankedRows::make({.max_bytes = RankedRows::line_bytes * lines, .key = key, .vocabulary = 1000}).value();
}
RankedRows taught_table(std::size_t lines, std::size_t rows = 100, std::uint64_t key = some_table_key) {
  RankedRows table = empty_table(lines, key);
  Random random(lines + rows);
  table.add(testing::random_rows(random, rows, 50));
  return table;
}
Bytes snapshot_of(const RankedRows& table) {
  Bytes bytes(snapshot_bytes({ranked_row_bytes(table)}));
  SnapshotWriter writer(bytes, some_tokenizer);
  write_ranked_rows(writer, table);
  EXPECT_TRUE(writer.finish()) << "ranked_row_bytes() is the length";
  return bytes;
}
Error error_of(const Bytes& bytes, RankedRows& table) {
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  if (!reader) return reader.error();
  const auto before = table.copy().value();
  const auto loaded = load_ranked_rows(*reader, table);
  EXPECT_FALSE(loaded);
  EXPECT_TRUE(same_rows(before, table)) << "a refusal changes nothing";
  return loaded.error();
}
Error error_of(const Bytes& bytes, RankedRows&& table) { return error_of(bytes, table); }

/// A section of kind `ranked_rows` with any contents after the header, and correct checksums.
Bytes forged(std::uint64_t lines, const std::vector<std::uint8_t>& contents) {
  Bytes bytes(snapshot_bytes({detail::table_header_bytes + contents.size()}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(SectionKind::ranked_rows);
  writer.put(lines);
  writer.put(detail::key_check(some_table_key));
  for (const std::uint8_t byte : contents) writer.put(byte);
  EXPECT_TRUE(writer.finish());
  return bytes;
}

TEST(RankedRowSnapshot, BringsBackWhatWasSaved) {
  for (const std::size_t rows : {std::size_t{0}, std::size_t{5}, std::size_t{2'000}})
    for (const std::size_t lines : {std::size_t{1}, std::size_t{3}, std::size_t{500}}) {
      const RankedRows table = taught_table(lines, rows);
      const Bytes bytes = snapshot_of(table);
      RankedRows again = empty_table(lines);
      const auto reader = SnapshotReader::open(bytes, some_tokenizer);
      ASSERT_TRUE(reader);
      ASSERT_TRUE(load_ranked_rows(*reader, again));
      EXPECT_TRUE(same_rows(table, again));
      EXPECT_EQ(snapshot_of(again), bytes);
    }
}

TEST(RankedRowSnapshot, IsMergedIntoTheRowsOfTheTable) {
  const RankedRows saved = taught_table(30, 20);
  RankedRows loaded = taught_table(30, 25);
  RankedRows merged = loaded.copy().value();
  ASSERT_TRUE(merged.merge(saved));
  ASSERT_FALSE(same_rows(merged, saved));
  ASSERT_FALSE(same_rows(merged, loaded));
  const Bytes bytes = snapshot_of(saved);
  ASSERT_TRUE(load_ranked_rows(SnapshotReader::open(bytes, some_tokenizer).value(), loaded));
  EXPECT_TRUE(same_rows(loaded, merged));
}

TEST(RankedRowSnapshot, HasTheBytesOfTheFormat) {
  RankedRows table = RankedRows::make({.max_bytes = 64, .key = 5}).value();
  Ranking ranking;
  ranking.tokens[1] = 0x010203;
  ranking.tokens[7] = 4;
  table.add(Rows{{Ranking::none, 1, ranking}});
  const auto tag = static_cast<std::uint16_t>(detail::token_hash(5, 1));
  const auto check = static_cast<std::uint32_t>((detail::spread(5) ^ 5) >> 32);
  const auto byte = [](std::uint64_t number, int i) { return static_cast<std::uint8_t>(number >> (8 * i)); };
  std::vector<std::uint8_t> contents = {1, 0, 0, 0, 0, 0, 0, 0};   // lines
  for (int i = 0; i < 4; ++i) contents.push_back(byte(check, i));  // check of the key
  for (const std::uint8_t rest : {std::uint8_t{0x82}, byte(tag, 0), byte(tag, 1)}) contents.push_back(rest);
  contents.insert(contents.end(), {3, 2, 1, 0, 4, 0, 0, 0});  // tokens
  const Bytes bytes = snapshot_of(table);
  ASSERT_EQ(bytes.size(), snapshot_bytes({contents.size()}));
  for (std::size_t i = 0; i < contents.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[snapshot_bytes({0}) + i]), contents[i]) << i;
  EXPECT_EQ(static_cast<std::uint32_t>(SectionKind::ranked_rows), 5U);
}

TEST(RankedRowSnapshot, LivesBesideAHistoryAndCounts) {
  HistoryStore history = HistoryStore::make({.max_bytes = 40'000}).value();
  history.begin_sequence(1);
  history.append(std::vector<Token>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, Origin::output);
  history.end_sequence();
  NextTokenCounts counts = NextTokenCounts::make({.max_bytes = 640, .key = some_table_key, .vocabulary = 1000}).value();
  counts.add(std::vector<Token>{1, 2, 3});
  const RankedRows table = taught_table(20);
  const auto section = [](std::size_t bytes) { return snapshot_bytes({bytes}) - snapshot_bytes({}); };
  Bytes bytes(snapshot_bytes_of(history) + section(ranked_row_bytes(table)) + section(next_token_bytes(counts)));
  SnapshotWriter writer(bytes, some_tokenizer);
  write_ranked_rows(writer, table);
  write_next_tokens(writer, counts);
  write_history(writer, history, testing::taught_state(4));
  ASSERT_TRUE(writer.finish());

  HistoryStore again = HistoryStore::make({.max_bytes = 40'000}).value();
  CalibrationState calibration;
  ASSERT_TRUE(load_history(bytes, some_tokenizer, again, calibration));
  EXPECT_EQ(again.counts().stored, history.counts().stored);
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  ASSERT_TRUE(reader);
  RankedRows loaded = empty_table(20);
  ASSERT_TRUE(load_ranked_rows(*reader, loaded));
  EXPECT_TRUE(same_rows(loaded, table));
  counts.clear();
  ASSERT_TRUE(load_next_tokens(*reader, counts));
  EXPECT_EQ(counts.next(1).total(), 1U);
}

TEST(RankedRowSnapshot, IsRefusedWithoutASectionAndForAnotherTable) {
  EXPECT_EQ(error_of(testing::sample_snapshot(2), taught_table(10)).code, ErrorCode::no_such_section);
  const Bytes bytes = snapshot_of(taught_table(10));
  for (const std::size_t lines : {std::size_t{1}, std::size_t{9}, std::size_t{11}}) {
    const Error error = error_of(bytes, taught_table(lines));
    EXPECT_EQ(error.code, ErrorCode::other_table);
    EXPECT_EQ(error.value, 10U);
    EXPECT_EQ(error.limit, lines);
  }
  EXPECT_EQ(error_of(bytes, taught_table(10, 100, some_table_key + 1)).code, ErrorCode::other_table);
  EXPECT_EQ(error_of(bytes, RankedRows()).code, ErrorCode::other_table);
  RankedRows small = RankedRows::make({.max_bytes = 640, .key = some_table_key, .vocabulary = 20}).value();
  const Error error = error_of(bytes, small);
  EXPECT_EQ(error.code, ErrorCode::token_out_of_range);
  EXPECT_GE(error.value, 20U);
  EXPECT_LT(error.value, 50U);
  EXPECT_EQ(error.limit, 20U);
}

TEST(RankedRowSnapshot, CutAnywhereIsTruncated) {
  const Bytes whole = snapshot_of(taught_table(5));
  RankedRows table = taught_table(5, 1);
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_EQ(error_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), table).code,
              ErrorCode::snapshot_truncated)
        << size;
}

TEST(RankedRowSnapshot, WithAnyWrongBitIsRefused) {
  const Bytes whole = snapshot_of(taught_table(5));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    ASSERT_FALSE(SnapshotReader::open(bytes, some_tokenizer)) << bit;
  }
}

TEST(RankedRowSnapshot, ForgedContentsAreRefused) {
  RankedRows table = empty_table(2);
  const auto refused_at = [&](std::uint64_t lines, const std::vector<std::uint8_t>& contents) {
    const Error error = error_of(forged(lines, contents), table);
    EXPECT_EQ(error.code, ErrorCode::snapshot_forged);
    EXPECT_EQ(error.limit, 5U);
    return error.value;
  };
  const std::size_t first_line = detail::table_header_bytes;
  EXPECT_EQ(refused_at(2, {}), 0U) << "lines have at least one byte";
  EXPECT_EQ(refused_at(2, {0}), 0U);
  EXPECT_EQ(refused_at(~std::uint64_t{0}, {0, 0}), 0U);
  EXPECT_EQ(refused_at(2, {0, 0, 0}), first_line + 2) << "bytes after the last line";
  EXPECT_EQ(refused_at(2, {0, 1}), first_line + 1) << "no tag";
  EXPECT_EQ(refused_at(2, {0, 1, 9}), first_line + 1) << "half a tag";
  EXPECT_EQ(refused_at(2, {0, 1, 9, 9}), first_line + 1) << "no token";
  EXPECT_EQ(refused_at(2, {0, 3, 9, 9, 1, 0, 0, 0, 1, 0, 0}), first_line + 1) << "a short token";
  EXPECT_EQ(refused_at(2, {0, 1, 9, 9, 1, 0, 0, 0x80}), first_line + 1) << "a negative token";
  EXPECT_EQ(refused_at(2, {0, 1, 9, 9, 255, 255, 255, 255}), first_line + 1) << "the token -1";
  EXPECT_EQ(error_of(forged(2, {0, 1, 9, 9, 0xe8, 3, 0, 0}), table).code, ErrorCode::token_out_of_range);
  const Bytes valid = forged(2, {0, 1, 9, 9, 0xe7, 3, 0, 0});
  ASSERT_TRUE(load_ranked_rows(SnapshotReader::open(valid, some_tokenizer).value(), table));
  EXPECT_EQ(table.line(1), (RankedRows::Line{0x0909, Ranking(std::vector<Token>{999})}));
}

TEST(RankedRowSnapshot, OfEveryOtherLengthIsForged) {
  const Bytes whole = snapshot_of(taught_table(3));
  RankedRows table = taught_table(3, 1);
  for (std::size_t length = 0; length < whole.size() - snapshot_bytes({0}); ++length) {
    const Bytes bytes = testing::with_shorter_section(whole, SectionKind::ranked_rows, length);
    ASSERT_EQ(error_of(bytes, table).code, ErrorCode::snapshot_forged) << length;
  }
}

TEST(RankedRowSnapshot, WithAnyDamageAndRightChecksumsIsReadOrRefused) {
  const Bytes wholes[] = {snapshot_of(taught_table(1)), snapshot_of(taught_table(4)), snapshot_of(taught_table(3, 1))};
  testing::SnapshotCoverage coverage;
  ASSERT_EQ(testing::read_damaged_snapshots(wholes, coverage), "");
  EXPECT_GT(coverage.ranked_rows, 1000U);
  EXPECT_GT(coverage.forged_contents, 500U);
}

/// The checksums protect a file; these are the contents themselves. Whatever bits are wrong, a table that loads them
/// has only tokens of the vocabulary, and can be used further.
TEST(RankedRowSnapshot, WithWrongContentsGivesWrongRowsOnly) {
  const RankedRows taught = taught_table(2);
  Random random(7);
  std::size_t loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = snapshot_of(taught);
    const std::size_t contents = snapshot_bytes({0}) + detail::table_header_bytes;
    for (std::size_t changes = 1 + random.below(3); changes > 0; --changes)
      bytes[contents + random.below(bytes.size() - contents)] ^= static_cast<std::byte>(1U << random.below(8));
    testing::repair(bytes);
    RankedRows table = taught_table(2, 3);
    const auto reader = SnapshotReader::open(bytes, some_tokenizer);
    if (!reader || !load_ranked_rows(*reader, table)) continue;
    ++loaded;
    for (std::size_t line = 0; line < 2; ++line)
      for (const Token token : table.line(line).ranking.tokens) {
        ASSERT_GE(token, Ranking::none);
        ASSERT_LT(token, 1000);
      }
    const Ranking ranking = testing::random_ranking(random, 50);
    table.add(Rows{{3, 4, ranking}});
    ASSERT_EQ(table.after(3, 4), ranking);
  }
  EXPECT_GT(loaded, 200U);
}

}  // namespace
}  // namespace reprise::ranked_row_snapshot_test
