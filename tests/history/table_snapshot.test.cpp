// SPDX-License-Identifier: Apache-2.0
// The section of a table of next tokens, with rankings and without.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/history/table_snapshots.hpp"
#include "support/next_tokens.hpp"
#include "support/snapshots.hpp"

namespace reprise::table_snapshot_test {
namespace {

using testing::Bytes;
using testing::Random;
using testing::same_tables;
using testing::some_table_key;
using testing::some_tokenizer;
using testing::table_of;
using Contents = std::vector<std::uint8_t>;

NextTokens empty(bool rankings, std::size_t lines, std::uint32_t vocabulary = 1000) {
  return table_of(rankings, lines, 0, some_table_key, vocabulary);
}
NextTokens taught(bool rankings, std::size_t lines, std::size_t rows = 100, std::uint64_t key = some_table_key) {
  return table_of(rankings, lines, rows, key);
}
Bytes snapshot_of(const NextTokens& table) {
  Bytes bytes(snapshot_bytes({next_token_bytes(table)}));
  SnapshotWriter writer(bytes, some_tokenizer);
  write_next_tokens(writer, table);
  EXPECT_TRUE(writer.finish()) << "the bytes that were promised";
  return bytes;
}
bool load(const Bytes& bytes, NextTokens& table) {
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  return reader && load_next_tokens(*reader, table);
}
Error error_of(const Bytes& bytes, NextTokens table) {
  const NextTokens before = table.copy().value();
  const auto loaded = load_next_tokens(SnapshotReader::open(bytes, some_tokenizer).value(), table);
  EXPECT_FALSE(loaded);
  EXPECT_TRUE(same_tables(before, table)) << "a refusal changes nothing";
  return loaded.error();
}

/// Sections of a table, and the same table to load them, without rankings and with them.
class TableSnapshot : public ::testing::TestWithParam<bool> {
 protected:
  static NextTokens empty(std::size_t lines, std::uint32_t vocabulary = 1000) {
    return table_snapshot_test::empty(GetParam(), lines, vocabulary);
  }
  static NextTokens taught(std::size_t lines, std::size_t rows = 100, std::uint64_t key = some_table_key) {
    return table_snapshot_test::taught(GetParam(), lines, rows, key);
  }
};
INSTANTIATE_TEST_SUITE_P(Rankings, TableSnapshot, ::testing::Bool());

TEST_P(TableSnapshot, BringsBackWhatWasSaved) {
  for (const std::size_t times : {std::size_t{0}, std::size_t{3}, std::size_t{1'000}})
    for (const std::size_t lines : {std::size_t{1}, std::size_t{3}, std::size_t{500}}) {
      const NextTokens table = taught(lines, times);
      const Bytes bytes = snapshot_of(table);
      NextTokens again = empty(lines);
      ASSERT_TRUE(load(bytes, again));
      EXPECT_TRUE(same_tables(table, again));
      EXPECT_EQ(snapshot_of(again), bytes);
    }
}

TEST_P(TableSnapshot, IsMergedIntoWhatTheTableHas) {
  const NextTokens saved = taught(30, 20);
  NextTokens loaded = taught(30, 25);
  NextTokens merged = loaded.copy().value();
  ASSERT_TRUE(merged.merge(saved));
  ASSERT_FALSE(same_tables(merged, saved));
  ASSERT_FALSE(same_tables(merged, loaded));
  ASSERT_TRUE(load(snapshot_of(saved), loaded));
  EXPECT_TRUE(same_tables(loaded, merged));
}

TEST_P(TableSnapshot, IsRefusedWithoutASection) {
  EXPECT_EQ(error_of(testing::sample_snapshot(2), taught(10)).code, ErrorCode::no_such_section);
}

TEST_P(TableSnapshot, IsRefusedForAnotherTable) {
  const Bytes bytes = snapshot_of(taught(10));
  for (const std::size_t lines : {std::size_t{1}, std::size_t{9}, std::size_t{11}}) {
    const Error error = error_of(bytes, taught(lines));
    EXPECT_EQ(error.code, ErrorCode::other_table);
    EXPECT_EQ(error.value, 10U);
    EXPECT_EQ(error.limit, lines);
  }
  EXPECT_EQ(error_of(bytes, taught(10, 5, some_table_key + 1)).code, ErrorCode::other_table);
  EXPECT_EQ(error_of(bytes, NextTokens()).code, ErrorCode::other_table);
}

TEST_P(TableSnapshot, IsRefusedForASmallerVocabulary) {
  const Error error = error_of(snapshot_of(taught(10)), empty(10, 20));
  EXPECT_EQ(error.code, ErrorCode::token_out_of_range);
  EXPECT_GE(error.value, 20U);
  EXPECT_LT(error.value, 50U);
  EXPECT_EQ(error.limit, 20U);
}

/// With rankings, one shorter length is valid: a section without them.
TEST_P(TableSnapshot, OfEveryOtherLengthIsForged) {
  const NextTokens table = taught(3);
  const Bytes whole = snapshot_of(table);
  const std::size_t counts = next_token_bytes(table_snapshot_test::taught(false, 3));
  for (std::size_t length = 0; length < whole.size() - snapshot_bytes({0}); ++length) {
    const Bytes bytes = testing::with_shorter_section(whole, SectionKind::next_tokens, length);
    if (length != counts) {
      ASSERT_EQ(error_of(bytes, taught(3, 1)).code, ErrorCode::snapshot_forged) << length;
      continue;
    }
    NextTokens again = empty(3);
    ASSERT_TRUE(load(bytes, again));
    EXPECT_TRUE(testing::same_counts(table, again));
    EXPECT_TRUE(testing::same_rankings(empty(3), again));
  }
}

TEST_P(TableSnapshot, WithAnyDamageAndRightChecksumsIsReadOrRefused) {
  const Bytes wholes[] = {snapshot_of(taught(1)), snapshot_of(taught(4)), snapshot_of(taught(3, 1))};
  testing::SnapshotCoverage coverage;
  ASSERT_EQ(testing::read_damaged_snapshots(wholes, coverage), "");
  EXPECT_GT(GetParam() ? coverage.rankings : coverage.next_tokens, 1000U);
  EXPECT_GT(coverage.forged_contents, 500U);
}

/// The checksums protect a file; these are the contents themselves. Whatever bits are wrong, a table that loads them
/// has only tokens of the vocabulary, and can be used further.
TEST_P(TableSnapshot, WithWrongContentsCanBeUsed) {
  Random random(7);
  std::size_t loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = snapshot_of(taught(2));
    const std::size_t contents = snapshot_bytes({0}) + detail::table_header_bytes;
    for (std::size_t changes = 1 + random.below(3); changes > 0; --changes)
      bytes[contents + random.below(bytes.size() - contents)] ^= static_cast<std::byte>(1U << random.below(8));
    testing::repair(bytes);
    NextTokens table = taught(2, 3);
    if (!load(bytes, table)) continue;
    ++loaded;
    ASSERT_EQ(testing::check_counts(table), "");
    ASSERT_EQ(testing::check_rankings(table, 1000), "");
    for (Token last = 0; last < 50; ++last) {
      const NextTokens::CountedTokens next = table.after(last).counts();
      ASSERT_EQ(testing::check_next(next), "");
      for (const NextTokens::CountedToken& token : next.listed()) ASSERT_LT(token.token, 1000);
      table.add(std::vector<Token>{last, last + 1, last + 2});
    }
    const Ranking ranking = testing::random_ranking(random, 50);
    table.add(std::vector<NextTokens::RankedRow>{{3, 4, ranking}});
    ASSERT_EQ(table.after(3, 4).ranking(), GetParam() ? ranking : Ranking());
    ASSERT_EQ(testing::check_counts(table), "");
  }
  EXPECT_GT(loaded, 200U);
}

// With rankings, and without them

TEST(TableSnapshots, OfCountsAloneAreLoadedByATableWithRankings) {
  const NextTokens saved = taught(false, 20, 30);
  NextTokens table = taught(true, 20, 10);
  NextTokens merged = taught(false, 20, 10);
  const NextTokens before = table.copy().value();
  ASSERT_TRUE(merged.merge(saved));
  ASSERT_TRUE(load(snapshot_of(saved), table));
  EXPECT_TRUE(testing::same_counts(table, merged));
  EXPECT_TRUE(testing::same_rankings(table, before)) << "it keeps its own";
}

TEST(TableSnapshots, WithRankingsAreLoadedByATableOfCountsAlone) {
  const NextTokens saved = taught(true, 20, 30);
  NextTokens table = taught(false, 20, 10);
  NextTokens merged = table.copy().value();
  ASSERT_TRUE(merged.merge(saved));
  ASSERT_TRUE(load(snapshot_of(saved), table));
  EXPECT_TRUE(same_tables(table, merged));
  EXPECT_EQ(table.memory_bytes(), merged.memory_bytes());
}

/// A version that knows no rankings in this section has written the same bytes.
TEST(TableSnapshots, BeginWithTheSectionOfCountsAlone) {
  const Bytes counts = snapshot_of(taught(false, 20));
  const Bytes both = snapshot_of(taught(true, 20));
  const std::size_t contents = snapshot_bytes({0});
  ASSERT_GT(both.size(), counts.size());
  EXPECT_EQ(testing::with_shorter_section(both, SectionKind::next_tokens, counts.size() - contents), counts);
}

/// Earlier versions wrote rankings alone, as a section of kind 5.
TEST(TableSnapshots, OfRankingsAloneAreLeftOut) {
  EXPECT_EQ(static_cast<std::uint32_t>(SectionKind::next_tokens), 4U);
  constexpr auto rankings_alone = SectionKind{5};
  const NextTokens saved = taught(true, 2);
  const auto snapshot = [&](bool with_table) {
    const Contents line = {1, 9, 9, 3, 0, 0, 0};  // one rank, the tag, the token
    const std::size_t bytes_of_rankings = detail::table_header_bytes + 2 * line.size();
    Bytes bytes(with_table ? snapshot_bytes({bytes_of_rankings, next_token_bytes(saved)})
                           : snapshot_bytes({bytes_of_rankings}));
    SnapshotWriter writer(bytes, some_tokenizer);
    writer.begin_section(rankings_alone);
    writer.put(std::uint64_t{2});
    writer.put(detail::key_check(some_table_key));
    for (const std::size_t i : {0U, 1U})
      for (const std::uint8_t byte : line) writer.put(static_cast<std::uint8_t>(byte + i));
    if (with_table) write_next_tokens(writer, saved);
    EXPECT_TRUE(writer.finish());
    return bytes;
  };
  for (const bool rankings : {false, true}) {
    EXPECT_EQ(error_of(snapshot(false), taught(rankings, 2, 3)).code, ErrorCode::no_such_section);
    NextTokens table = empty(rankings, 2);
    ASSERT_TRUE(load(snapshot(true), table));
    EXPECT_TRUE(testing::same_counts(table, saved));
    EXPECT_EQ(testing::same_rankings(table, saved), rankings);
  }
}

// Bytes

/// A snapshot of a section with the header of a table of `lines` lines, any contents and correct checksums.
Bytes forged(std::uint64_t lines, const Contents& contents) {
  Bytes bytes(snapshot_bytes({detail::table_header_bytes + contents.size()}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(SectionKind::next_tokens);
  writer.put(lines);
  writer.put(detail::key_check(some_table_key));
  for (const std::uint8_t byte : contents) writer.put(byte);
  EXPECT_TRUE(writer.finish());
  return bytes;
}

TEST(TableSnapshots, HaveTheBytesOfTheFormat) {
  NextTokens table = NextTokens::make({.max_bytes = 128, .key = 5, .rankings = true}).value();
  table.add(std::vector<Token>{1, 0x010203});
  table.add(std::vector<Token>{1, 0x010203});
  Ranking ranking;
  ranking.tokens[1] = 0x010203;
  ranking.tokens[7] = 4;
  table.add(std::vector<NextTokens::RankedRow>{{Ranking::none, 1, ranking}});
  const Bytes bytes = snapshot_of(table);

  const auto check = static_cast<std::uint32_t>((detail::spread(5) ^ 5) >> 32);
  const auto tag = static_cast<std::uint16_t>(detail::token_hash(5, 1));
  const auto byte = [](std::uint64_t number, int i) { return static_cast<std::uint8_t>(number >> (8 * i)); };
  Contents contents = {1, 0, 0, 0, 0, 0, 0, 0};  // lines
  for (int i = 0; i < 4; ++i) contents.push_back(byte(check, i));
  contents.insert(contents.end(), {1, 3, 2, 1, 0, 2, 0, byte(tag, 0), byte(tag, 1)});  // words, token, count, tag
  contents.insert(contents.end(), {0x82, byte(tag, 0), byte(tag, 1)});                 // ranks, tag
  contents.insert(contents.end(), {3, 2, 1, 0, 4, 0, 0, 0});                           // tokens
  ASSERT_EQ(bytes.size(), snapshot_bytes({contents.size()}));
  for (std::size_t i = 0; i < contents.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[snapshot_bytes({0}) + i]), contents[i]) << i;
}

using Word = detail::NextTokenWord;
using WordBits = std::vector<std::uint64_t>;

std::uint64_t word(std::uint16_t tag, Token token, std::uint32_t count) { return Word(tag, token, count).bits(); }
std::uint64_t rest(std::uint16_t tag, std::uint32_t count) { return Word::unlisted(tag, count).bits(); }
Bytes with_counts(const std::vector<WordBits>& lines, std::size_t surplus = 0) {
  Contents contents;
  for (const WordBits& line : lines) {
    contents.push_back(static_cast<std::uint8_t>(line.size()));
    for (const std::uint64_t bits : line)
      for (int i = 0; i < 8; ++i) contents.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
  contents.resize(contents.size() + surplus);
  return forged(lines.size(), contents);
}

TEST_P(TableSnapshot, WithForgedCountsIsRefused) {
  const WordBits good = {rest(9, 40), word(9, 3, 7), word(9, 2, 7), word(8, 3, 65'535)};
  NextTokens table = empty(2);
  ASSERT_TRUE(load(with_counts({good, {}}), table));
  const auto refused = [&](const WordBits& line) {
    const Error error = error_of(with_counts({{}, line}), table.copy().value());
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
  WordBits nine;
  for (Token token = 9; token > 0; --token) nine.push_back(word(9, token, 1));
  EXPECT_TRUE(refused(nine)) << "too many words";
  EXPECT_EQ(error_of(with_counts({good, {}}, 1), empty(2)).code, ErrorCode::snapshot_forged)
      << "one line of rankings, which should be two or none";
  EXPECT_EQ(error_of(with_counts({good, {}}, 3), empty(2)).code, ErrorCode::snapshot_forged)
      << "bytes after the last line";
  EXPECT_EQ(error_of(with_counts({good, {word(9, 1000, 1)}}), empty(2)).code, ErrorCode::token_out_of_range);
}

TEST_P(TableSnapshot, WithFewerBytesThanLinesIsForged) {
  for (const std::uint64_t lines : {std::uint64_t{2}, ~std::uint64_t{0}})
    for (const Contents& contents : {Contents{}, {0}}) {
      const Error error = error_of(forged(lines, contents), taught(2));
      EXPECT_EQ(error.code, ErrorCode::snapshot_forged);
      EXPECT_EQ(error.value, 0U);
    }
  EXPECT_EQ(error_of(forged(~std::uint64_t{0}, {0, 0}), taught(2)).value, 0U);
}

/// Returns a snapshot of a table with two lines, without counts, and with these bytes for the rankings.
Bytes with_rankings(const Contents& contents) {
  Contents all = {0, 0};
  all.insert(all.end(), contents.begin(), contents.end());
  return forged(2, all);
}

TEST_P(TableSnapshot, WithForgedRankingsIsRefused) {
  const auto refused_at = [&](const Contents& contents) {
    const Error error = error_of(with_rankings(contents), taught(2));
    EXPECT_EQ(error.code, ErrorCode::snapshot_forged);
    EXPECT_EQ(error.limit, 4U);
    return error.value - detail::table_header_bytes - 2;
  };
  EXPECT_EQ(refused_at({0}), 1U) << "one line";
  EXPECT_EQ(refused_at({0, 0, 0}), 2U) << "bytes after the last line";
  EXPECT_EQ(refused_at({0, 1}), 1U) << "no tag";
  EXPECT_EQ(refused_at({0, 1, 9}), 1U) << "half a tag";
  EXPECT_EQ(refused_at({0, 1, 9, 9}), 1U) << "no token";
  EXPECT_EQ(refused_at({0, 3, 9, 9, 1, 0, 0, 0, 1, 0, 0}), 1U) << "a short token";
  EXPECT_EQ(refused_at({0, 1, 9, 9, 1, 0, 0, 0x80}), 1U) << "a negative token";
  EXPECT_EQ(refused_at({0, 1, 9, 9, 255, 255, 255, 255}), 1U) << "the token -1";
  EXPECT_EQ(refused_at({0, 1, 9, 9, 255, 255, 255, 0x7f}), 1U) << "the largest number is no token of any table";
}

TEST_P(TableSnapshot, MayRankTheLargestTokenOfTheVocabularyAndNoneBeyond) {
  const Error error = error_of(with_rankings({0, 1, 9, 9, 0xe8, 3, 0, 0}), taught(2));
  EXPECT_EQ(error.code, ErrorCode::token_out_of_range);
  EXPECT_EQ(error.value, 1000U);
  EXPECT_EQ(error.limit, 1000U);
  NextTokens table = empty(2);
  ASSERT_TRUE(load(with_rankings({0, 1, 9, 9, 0xe7, 3, 0, 0}), table));
  const testing::RankedLine loaded = {0x0909, Ranking(std::vector<Token>{999})};
  EXPECT_EQ(testing::ranking_in(table, 1), GetParam() ? loaded : testing::RankedLine());
}

}  // namespace
}  // namespace reprise::table_snapshot_test
