// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/table_snapshots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/history/cost_snapshot.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "support/next_tokens.hpp"
#include "support/snapshots.hpp"
#include "support/streams.hpp"

namespace reprise::next_token_snapshot_test {
namespace {

using testing::Bytes;
using testing::Random;
using testing::same_counts;
using testing::some_table_key;
using testing::some_tokenizer;

NextTokenCounts empty_table(std::size_t lines, std::uint64_t key = some_table_key) {
  return NextTokenCounts::make({.max_bytes = NextTokenCounts::line_bytes * lines, .key = key, .vocabulary = 1000})
      .value();
}
NextTokenCounts taught_table(std::size_t lines, std::size_t tokens = 2'000, std::uint64_t key = some_table_key) {
  NextTokenCounts table = empty_table(lines, key);
  Random random(lines);
  std::vector<Token> text(tokens);
  for (Token& token : text) token = static_cast<Token>(random.below(1 + random.below(50)));
  table.add(text);
  return table;
}
Bytes snapshot_of(const NextTokenCounts& table) {
  Bytes bytes(snapshot_bytes({next_token_bytes(table)}));
  SnapshotWriter writer(bytes, some_tokenizer);
  write_next_tokens(writer, table);
  EXPECT_TRUE(writer.finish()) << "next_token_bytes() is the length";
  return bytes;
}
Error error_of(const Bytes& bytes, NextTokenCounts& table) {
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  if (!reader) return reader.error();
  const auto before = table.copy().value();
  const auto loaded = load_next_tokens(*reader, table);
  EXPECT_FALSE(loaded);
  EXPECT_TRUE(same_counts(before, table)) << "a refusal changes nothing";
  return loaded.error();
}
Error error_of(const Bytes& bytes, NextTokenCounts&& table) { return error_of(bytes, table); }

/// A line of a section.
using Line = std::vector<std::uint64_t>;

/// A section of kind `next_tokens` with any lines and correct checksums.
Bytes forged(const std::vector<Line>& lines, std::size_t surplus = 0) {
  std::size_t length = detail::table_header_bytes + surplus;
  for (const Line& line : lines) length += 1 + line.size() * 8;
  Bytes bytes(snapshot_bytes({length}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(SectionKind::next_tokens);
  writer.put(std::uint64_t{lines.size()});
  writer.put(detail::key_check(some_table_key));
  for (const Line& line : lines) {
    writer.put(static_cast<std::uint8_t>(line.size()));
    for (const std::uint64_t word : line) writer.put(word);
  }
  for (; surplus > 0; --surplus) writer.put(std::uint8_t{0});
  EXPECT_TRUE(writer.finish());
  return bytes;
}

TEST(NextTokenSnapshot, BringsBackWhatWasSaved) {
  for (const std::size_t tokens : {std::size_t{0}, std::size_t{50}, std::size_t{20'000}})
    for (const std::size_t lines : {std::size_t{1}, std::size_t{3}, std::size_t{500}}) {
      const NextTokenCounts table = taught_table(lines, tokens);
      const Bytes bytes = snapshot_of(table);
      NextTokenCounts again = empty_table(lines);
      const auto reader = SnapshotReader::open(bytes, some_tokenizer);
      ASSERT_TRUE(reader);
      ASSERT_TRUE(load_next_tokens(*reader, again));
      EXPECT_TRUE(same_counts(table, again));
      EXPECT_EQ(snapshot_of(again), bytes);
    }
}

TEST(NextTokenSnapshot, IsAddedToWhatTheTableHas) {
  const NextTokenCounts saved = taught_table(30, 3'000);
  NextTokenCounts loaded = taught_table(30, 500);
  NextTokenCounts merged = loaded.copy().value();
  ASSERT_TRUE(merged.merge(saved));
  const Bytes bytes = snapshot_of(saved);
  ASSERT_TRUE(load_next_tokens(SnapshotReader::open(bytes, some_tokenizer).value(), loaded));
  EXPECT_TRUE(same_counts(loaded, merged));
}

TEST(NextTokenSnapshot, HasTheBytesOfTheFormat) {
  NextTokenCounts table = NextTokenCounts::make({.max_bytes = 64, .key = 5}).value();
  table.add(1, 0x010203);
  table.add(1, 0x010203);
  const auto tag = static_cast<std::uint16_t>(detail::token_hash(5, 1));
  const auto check = static_cast<std::uint32_t>((detail::spread(5) ^ 5) >> 32);
  const auto byte = [](std::uint64_t number, int i) { return static_cast<std::uint8_t>(number >> (8 * i)); };
  const std::vector<std::uint8_t> contents = {1,
                                              0,
                                              0,
                                              0,
                                              0,
                                              0,
                                              0,
                                              0,
                                              byte(check, 0),
                                              byte(check, 1),
                                              byte(check, 2),
                                              byte(check, 3),
                                              1,  // words
                                              3,
                                              2,
                                              1,
                                              0,  // token
                                              2,
                                              0,  // count
                                              byte(tag, 0),
                                              byte(tag, 1)};
  const Bytes bytes = snapshot_of(table);
  ASSERT_EQ(bytes.size(), snapshot_bytes({contents.size()}));
  for (std::size_t i = 0; i < contents.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[snapshot_bytes({0}) + i]), contents[i]) << i;
  EXPECT_EQ(static_cast<std::uint32_t>(SectionKind::next_tokens), 4U);
}

TEST(NextTokenSnapshot, LivesBesideAHistoryAndCosts) {
  HistoryStore history = HistoryStore::make({.max_bytes = 40'000}).value();
  history.begin_sequence(1);
  history.append(std::vector<Token>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, Origin::output);
  history.end_sequence();
  const NextTokenCounts table = taught_table(20);
  const CostPrior costs = CostPrior::gpu_batch_1();
  const auto section = [](std::size_t bytes) { return snapshot_bytes({bytes}) - snapshot_bytes({}); };
  Bytes bytes(snapshot_bytes_of(history) + section(next_token_bytes(table)) + section(cost_bytes(costs, "e")));
  SnapshotWriter writer(bytes, some_tokenizer);
  write_next_tokens(writer, table);
  write_history(writer, history, testing::taught_state(4));
  ASSERT_TRUE(save_costs(costs, "e", writer));
  ASSERT_TRUE(writer.finish());

  HistoryStore again = HistoryStore::make({.max_bytes = 40'000}).value();
  CalibrationState calibration;
  ASSERT_TRUE(load_history(bytes, some_tokenizer, again, calibration));
  EXPECT_EQ(again.counts().stored, history.counts().stored);
  NextTokenCounts loaded = empty_table(20);
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  ASSERT_TRUE(reader);
  ASSERT_TRUE(load_next_tokens(*reader, loaded));
  EXPECT_TRUE(same_counts(loaded, table));
  EXPECT_TRUE(load_costs(*reader, "e"));
}

TEST(NextTokenSnapshot, IsRefusedWithoutASectionAndForAnotherTable) {
  EXPECT_EQ(error_of(testing::sample_snapshot(2), taught_table(10)).code, ErrorCode::no_such_section);
  const Bytes bytes = snapshot_of(taught_table(10));
  for (const std::size_t lines : {std::size_t{1}, std::size_t{9}, std::size_t{11}}) {
    const Error error = error_of(bytes, taught_table(lines));
    EXPECT_EQ(error.code, ErrorCode::other_table);
    EXPECT_EQ(error.value, 10U);
    EXPECT_EQ(error.limit, lines);
  }
  EXPECT_EQ(error_of(bytes, taught_table(10, 100, some_table_key + 1)).code, ErrorCode::other_table);
  EXPECT_EQ(error_of(bytes, NextTokenCounts()).code, ErrorCode::other_table);
  NextTokenCounts small = NextTokenCounts::make({.max_bytes = 640, .key = some_table_key, .vocabulary = 20}).value();
  const Error error = error_of(bytes, small);
  EXPECT_EQ(error.code, ErrorCode::token_out_of_range);
  EXPECT_GE(error.value, 20U);
  EXPECT_LT(error.value, 50U);
  EXPECT_EQ(error.limit, 20U);
}

TEST(NextTokenSnapshot, CutAnywhereIsTruncated) {
  const Bytes whole = snapshot_of(taught_table(5));
  NextTokenCounts table = taught_table(5, 10);
  for (std::size_t size = 0; size < whole.size(); ++size)
    ASSERT_EQ(error_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), table).code,
              ErrorCode::snapshot_truncated)
        << size;
}

TEST(NextTokenSnapshot, WithAnyWrongBitIsRefused) {
  const Bytes whole = snapshot_of(taught_table(5));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    ASSERT_FALSE(SnapshotReader::open(bytes, some_tokenizer)) << bit;
  }
}

TEST(NextTokenSnapshot, ForgedContentsAreRefused) {
  const auto word = [](std::uint16_t tag, Token token, std::uint32_t count) {
    return detail::NextTokenWord(tag, token, count).bits();
  };
  const auto rest = [](std::uint16_t tag, std::uint32_t count) {
    return detail::NextTokenWord::unlisted(tag, count).bits();
  };
  const Line good = {rest(9, 40), word(9, 3, 7), word(9, 2, 7), word(8, 3, 65'535)};
  NextTokenCounts table = empty_table(2);
  const Bytes valid = forged({good, {}});
  ASSERT_TRUE(load_next_tokens(SnapshotReader::open(valid, some_tokenizer).value(), table));
  const auto refused = [&](const Line& line) {
    const Error error = error_of(forged({{}, line}), table);
    EXPECT_EQ(error.value, detail::table_header_bytes + 1) << "the offset of the line";
    EXPECT_EQ(error.limit, 4U);
    return error.code == ErrorCode::snapshot_forged;
  };
  EXPECT_TRUE(refused({word(9, 3, 1), 0})) << "an empty word";
  EXPECT_TRUE(refused({std::uint64_t{9} << 48 | 5})) << "no count";
  EXPECT_TRUE(refused({word(8, 3, 1), word(9, 3, 1)})) << "rising words";
  EXPECT_TRUE(refused({word(9, 3, 1), word(9, 3, 1)})) << "the same word twice";
  EXPECT_TRUE(refused({word(9, 3, 2), word(9, 3, 1)})) << "two counts of one token";
  EXPECT_TRUE(refused({rest(9, 2), rest(9, 1), word(9, 3, 1)})) << "two rests";
  EXPECT_TRUE(refused({rest(9, 2), word(8, 3, 1)})) << "a rest without tokens";
  EXPECT_TRUE(refused({std::uint64_t{9} << 48 | std::uint64_t{1} << 32 | 0x7fffffff})) << "not a token";
  EXPECT_TRUE(refused({std::uint64_t{9} << 48 | std::uint64_t{1} << 32 | 0x80000001})) << "a negative token";
  Line nine;
  for (Token token = 9; token > 0; --token) nine.push_back(word(9, token, 1));
  EXPECT_TRUE(refused(nine)) << "too many words";
  EXPECT_EQ(error_of(forged({good, {}}, 1), table).code, ErrorCode::snapshot_forged) << "bytes after the last line";
  EXPECT_EQ(error_of(forged({good, {word(9, 1000, 1)}}), table).code, ErrorCode::token_out_of_range);
}

TEST(NextTokenSnapshot, OfEveryOtherLengthIsForged) {
  const Bytes whole = snapshot_of(taught_table(3));
  NextTokenCounts table = taught_table(3, 10);
  for (std::size_t length = 0; length < whole.size() - snapshot_bytes({0}); ++length) {
    const Bytes bytes = testing::with_shorter_section(whole, SectionKind::next_tokens, length);
    ASSERT_EQ(error_of(bytes, table).code, ErrorCode::snapshot_forged) << length;
  }
}

TEST(NextTokenSnapshot, WithAnyDamageAndRightChecksumsIsReadOrRefused) {
  const Bytes wholes[] = {snapshot_of(taught_table(1)), snapshot_of(taught_table(4)), snapshot_of(taught_table(3, 6))};
  testing::SnapshotCoverage coverage;
  ASSERT_EQ(testing::read_damaged_snapshots(wholes, coverage), "");
  EXPECT_GT(coverage.next_tokens, 1000U);
  EXPECT_GT(coverage.forged_contents, 500U);
}

/// The checksums protect a file; these are the words themselves. Whatever bits are wrong, a table that loads the words
/// stays valid, goes on counting and lists only valid tokens.
TEST(NextTokenSnapshot, WithWrongWordsGivesWrongCountsOnly) {
  const NextTokenCounts taught = taught_table(2);
  Random random(7);
  std::size_t loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = snapshot_of(taught);
    const std::size_t contents = snapshot_bytes({0}) + detail::table_header_bytes;
    for (std::size_t changes = 1 + random.below(3); changes > 0; --changes)
      bytes[contents + random.below(bytes.size() - contents)] ^= static_cast<std::byte>(1U << random.below(8));
    testing::repair(bytes);
    NextTokenCounts table = taught_table(2, 300);
    const auto reader = SnapshotReader::open(bytes, some_tokenizer);
    if (!reader || !load_next_tokens(*reader, table)) continue;
    ++loaded;
    ASSERT_EQ(testing::check_words(table), "");
    for (Token last = 0; last < 50; ++last) {
      const NextTokenCounts::NextTokens next = table.next(last);
      ASSERT_EQ(testing::check_next(next), "");
      for (const NextTokenCounts::NextToken& token : next.listed()) ASSERT_LT(token.token, 1000);
      table.add(last, last + 1, last + 2);
    }
    ASSERT_EQ(testing::check_words(table), "");
  }
  EXPECT_GT(loaded, 200U);
}

}  // namespace
}  // namespace reprise::next_token_snapshot_test
