// SPDX-License-Identifier: Apache-2.0
// The sections of the tables: next_token_snapshot.hpp and ranked_row_snapshot.hpp.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/history/table_snapshots.hpp"
#include "support/snapshots.hpp"
#include "support/table_kinds.hpp"

namespace reprise::table_snapshot_test {
namespace {

using testing::Bytes;
using testing::Random;
using testing::some_table_key;
using testing::some_tokenizer;

/// What the tests must know of the section of a table.
struct Counts : testing::CountTables {
  static constexpr SectionKind kind = SectionKind::next_tokens;
  static constexpr std::uint32_t kind_number = 4;
  static constexpr std::size_t testing::SnapshotCoverage::*loaded = &testing::SnapshotCoverage::next_tokens;
  static std::size_t bytes_of(const Table& table) { return next_token_bytes(table); }
  static void write(SnapshotWriter& writer, const Table& table) { write_next_tokens(writer, table); }
  static auto load(const SnapshotReader& reader, Table& table) { return load_next_tokens(reader, table); }
  /// Uses a table further. Returns a fault of it, or an empty string.
  static std::string use(Table& table, Random&) {
    std::string fault = testing::check_words(table);
    for (Token last = 0; last < 50; ++last) {
      const NextTokenCounts::NextTokens next = table.next(last);
      if (fault.empty()) fault = testing::check_next(next);
      for (const NextTokenCounts::NextToken& token : next.listed())
        if (token.token >= 1000) fault = "a token outside the vocabulary";
      table.add(last, last + 1, last + 2);
    }
    return fault.empty() ? testing::check_words(table) : fault;
  }
};
struct Rows : testing::RowTables {
  static constexpr SectionKind kind = SectionKind::ranked_rows;
  static constexpr std::uint32_t kind_number = 5;
  static constexpr std::size_t testing::SnapshotCoverage::*loaded = &testing::SnapshotCoverage::ranked_rows;
  static std::size_t bytes_of(const Table& table) { return ranked_row_bytes(table); }
  static void write(SnapshotWriter& writer, const Table& table) { write_ranked_rows(writer, table); }
  static auto load(const SnapshotReader& reader, Table& table) { return load_ranked_rows(reader, table); }
  static std::string use(Table& table, Random& random) {
    for (std::size_t line = 0; line < table.lines(); ++line)
      for (const Token token : table.line(line).ranking.tokens)
        if (token < Ranking::none || token >= 1000) return "a token outside the vocabulary";
    const Ranking ranking = testing::random_ranking(random, 50);
    table.add(std::vector<RankedRows::Row>{{3, 4, ranking}});
    return table.after(3, 4) == ranking ? "" : "a row that is not found again";
  }
};

template <class Kind>
class TableSnapshot : public ::testing::Test {
 protected:
  using Table = typename Kind::Table;

  static Table empty(std::size_t lines, std::uint32_t vocabulary = 1000) {
    return testing::table_of<Kind>(lines, 0, some_table_key, vocabulary);
  }
  static Table taught(std::size_t lines, std::size_t rows = 100, std::uint64_t key = some_table_key) {
    return testing::table_of<Kind>(lines, rows, key);
  }
  static Bytes snapshot_of(const Table& table) {
    Bytes bytes(snapshot_bytes({Kind::bytes_of(table)}));
    SnapshotWriter writer(bytes, some_tokenizer);
    Kind::write(writer, table);
    EXPECT_TRUE(writer.finish()) << "the bytes that were promised";
    return bytes;
  }
  static bool load(const Bytes& bytes, Table& table) {
    const auto reader = SnapshotReader::open(bytes, some_tokenizer);
    return reader && Kind::load(*reader, table);
  }
  static Error error_of(const Bytes& bytes, Table table) {
    const auto before = table.copy().value();
    const auto loaded = Kind::load(SnapshotReader::open(bytes, some_tokenizer).value(), table);
    EXPECT_FALSE(loaded);
    EXPECT_TRUE(Kind::same(before, table)) << "a refusal changes nothing";
    return loaded.error();
  }
};
using Kinds = ::testing::Types<Counts, Rows>;
TYPED_TEST_SUITE(TableSnapshot, Kinds);

TYPED_TEST(TableSnapshot, BringsBackWhatWasSaved) {
  for (const std::size_t times : {std::size_t{0}, std::size_t{3}, std::size_t{1'000}})
    for (const std::size_t lines : {std::size_t{1}, std::size_t{3}, std::size_t{500}}) {
      const auto table = this->taught(lines, times);
      const Bytes bytes = this->snapshot_of(table);
      auto again = this->empty(lines);
      ASSERT_TRUE(this->load(bytes, again));
      EXPECT_TRUE(TypeParam::same(table, again));
      EXPECT_EQ(this->snapshot_of(again), bytes);
    }
}

TYPED_TEST(TableSnapshot, IsMergedIntoWhatTheTableHas) {
  const auto saved = this->taught(30, 20);
  auto loaded = this->taught(30, 25);
  auto merged = loaded.copy().value();
  ASSERT_TRUE(merged.merge(saved));
  ASSERT_FALSE(TypeParam::same(merged, saved));
  ASSERT_FALSE(TypeParam::same(merged, loaded));
  ASSERT_TRUE(this->load(this->snapshot_of(saved), loaded));
  EXPECT_TRUE(TypeParam::same(loaded, merged));
}

TYPED_TEST(TableSnapshot, HasTheNumberOfItsKind) {
  EXPECT_EQ(static_cast<std::uint32_t>(TypeParam::kind), TypeParam::kind_number);
}

TYPED_TEST(TableSnapshot, IsRefusedWithoutASection) {
  EXPECT_EQ(this->error_of(testing::sample_snapshot(2), this->taught(10)).code, ErrorCode::no_such_section);
}

TYPED_TEST(TableSnapshot, IsRefusedForAnotherTable) {
  const Bytes bytes = this->snapshot_of(this->taught(10));
  for (const std::size_t lines : {std::size_t{1}, std::size_t{9}, std::size_t{11}}) {
    const Error error = this->error_of(bytes, this->taught(lines));
    EXPECT_EQ(error.code, ErrorCode::other_table);
    EXPECT_EQ(error.value, 10U);
    EXPECT_EQ(error.limit, lines);
  }
  EXPECT_EQ(this->error_of(bytes, this->taught(10, 5, some_table_key + 1)).code, ErrorCode::other_table);
  EXPECT_EQ(this->error_of(bytes, typename TypeParam::Table()).code, ErrorCode::other_table);
}

TYPED_TEST(TableSnapshot, IsRefusedForASmallerVocabulary) {
  const Error error = this->error_of(this->snapshot_of(this->taught(10)), this->empty(10, 20));
  EXPECT_EQ(error.code, ErrorCode::token_out_of_range);
  EXPECT_GE(error.value, 20U);
  EXPECT_LT(error.value, 50U);
  EXPECT_EQ(error.limit, 20U);
}

TYPED_TEST(TableSnapshot, OfEveryOtherLengthIsForged) {
  const Bytes whole = this->snapshot_of(this->taught(3));
  for (std::size_t length = 0; length < whole.size() - snapshot_bytes({0}); ++length) {
    const Bytes bytes = testing::with_shorter_section(whole, TypeParam::kind, length);
    ASSERT_EQ(this->error_of(bytes, this->taught(3, 1)).code, ErrorCode::snapshot_forged) << length;
  }
}

TYPED_TEST(TableSnapshot, WithAnyDamageAndRightChecksumsIsReadOrRefused) {
  const Bytes wholes[] = {this->snapshot_of(this->taught(1)), this->snapshot_of(this->taught(4)),
                          this->snapshot_of(this->taught(3, 1))};
  testing::SnapshotCoverage coverage;
  ASSERT_EQ(testing::read_damaged_snapshots(wholes, coverage), "");
  EXPECT_GT(coverage.*TypeParam::loaded, 1000U);
  EXPECT_GT(coverage.forged_contents, 500U);
}

/// The checksums protect a file; these are the contents themselves. Whatever bits are wrong, a table that loads them
/// has only tokens of the vocabulary, and can be used further.
TYPED_TEST(TableSnapshot, WithWrongContentsCanBeUsed) {
  Random random(7);
  std::size_t loaded = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = this->snapshot_of(this->taught(2));
    const std::size_t contents = snapshot_bytes({0}) + detail::table_header_bytes;
    for (std::size_t changes = 1 + random.below(3); changes > 0; --changes)
      bytes[contents + random.below(bytes.size() - contents)] ^= static_cast<std::byte>(1U << random.below(8));
    testing::repair(bytes);
    auto table = this->taught(2, 3);
    if (!this->load(bytes, table)) continue;
    ++loaded;
    ASSERT_EQ(TypeParam::use(table, random), "");
  }
  EXPECT_GT(loaded, 200U);
}

/// A snapshot of a section with the header of a table of `lines` lines, any contents and correct checksums.
Bytes forged(SectionKind kind, std::uint64_t lines, const std::vector<std::uint8_t>& contents) {
  Bytes bytes(snapshot_bytes({detail::table_header_bytes + contents.size()}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(kind);
  writer.put(lines);
  writer.put(detail::key_check(some_table_key));
  for (const std::uint8_t byte : contents) writer.put(byte);
  EXPECT_TRUE(writer.finish());
  return bytes;
}

/// Checks that a snapshot of a table with key 5 has one line, and these bytes after the tag of the context {1}.
void expect_line(const Bytes& bytes, const std::vector<std::uint8_t>& before, const std::vector<std::uint8_t>& after) {
  const auto tag = static_cast<std::uint16_t>(detail::token_hash(5, 1));
  const auto check = static_cast<std::uint32_t>((detail::spread(5) ^ 5) >> 32);
  const auto byte = [](std::uint64_t number, int i) { return static_cast<std::uint8_t>(number >> (8 * i)); };
  std::vector<std::uint8_t> contents = {1, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < 4; ++i) contents.push_back(byte(check, i));
  contents.insert(contents.end(), before.begin(), before.end());
  for (int i = 0; i < 2; ++i) contents.push_back(byte(tag, i));
  contents.insert(contents.end(), after.begin(), after.end());
  ASSERT_EQ(bytes.size(), snapshot_bytes({contents.size()}));
  for (std::size_t i = 0; i < contents.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[snapshot_bytes({0}) + i]), contents[i]) << i;
}

struct NextTokenSnapshot : TableSnapshot<Counts> {
  using Word = detail::NextTokenWord;
  using Line = std::vector<std::uint64_t>;

  static std::uint64_t word(std::uint16_t tag, Token token, std::uint32_t count) {
    return Word(tag, token, count).bits();
  }
  static std::uint64_t rest(std::uint16_t tag, std::uint32_t count) { return Word::unlisted(tag, count).bits(); }
  static Bytes with_lines(const std::vector<Line>& lines, std::size_t surplus = 0) {
    std::vector<std::uint8_t> contents;
    for (const Line& line : lines) {
      contents.push_back(static_cast<std::uint8_t>(line.size()));
      for (const std::uint64_t bits : line)
        for (int i = 0; i < 8; ++i) contents.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
    }
    contents.resize(contents.size() + surplus);
    return forged(SectionKind::next_tokens, lines.size(), contents);
  }
};
struct RankedRowSnapshot : TableSnapshot<Rows> {};

TEST_F(NextTokenSnapshot, HasTheBytesOfTheFormat) {
  NextTokenCounts table = NextTokenCounts::make({.max_bytes = 64, .key = 5}).value();
  table.add(1, 0x010203);
  table.add(1, 0x010203);
  expect_line(snapshot_of(table), {1, 3, 2, 1, 0, 2, 0}, {});  // words, token, count, tag
}

TEST_F(RankedRowSnapshot, HasTheBytesOfTheFormat) {
  RankedRows table = RankedRows::make({.max_bytes = 64, .key = 5}).value();
  Ranking ranking;
  ranking.tokens[1] = 0x010203;
  ranking.tokens[7] = 4;
  table.add(std::vector<RankedRows::Row>{{Ranking::none, 1, ranking}});
  expect_line(snapshot_of(table), {0x82}, {3, 2, 1, 0, 4, 0, 0, 0});  // ranks, tag, tokens
}

TEST_F(NextTokenSnapshot, ForgedContentsAreRefused) {
  const Line good = {rest(9, 40), word(9, 3, 7), word(9, 2, 7), word(8, 3, 65'535)};
  NextTokenCounts table = empty(2);
  ASSERT_TRUE(load(with_lines({good, {}}), table));
  const auto refused = [&](const Line& line) {
    const Error error = error_of(with_lines({{}, line}), table.copy().value());
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
  EXPECT_EQ(error_of(with_lines({good, {}}, 1), empty(2)).code, ErrorCode::snapshot_forged)
      << "bytes after the last line";
  EXPECT_EQ(error_of(with_lines({good, {word(9, 1000, 1)}}), empty(2)).code, ErrorCode::token_out_of_range);
}

TEST_F(RankedRowSnapshot, ForgedContentsAreRefused) {
  const auto refused_at = [&](std::uint64_t lines, const std::vector<std::uint8_t>& contents) {
    const Error error = error_of(forged(SectionKind::ranked_rows, lines, contents), empty(2));
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
}

TEST_F(RankedRowSnapshot, MayHaveTheLargestTokenOfTheVocabularyAndNoneBeyond) {
  RankedRows table = empty(2);
  EXPECT_EQ(error_of(forged(SectionKind::ranked_rows, 2, {0, 1, 9, 9, 0xe8, 3, 0, 0}), empty(2)).code,
            ErrorCode::token_out_of_range);
  ASSERT_TRUE(load(forged(SectionKind::ranked_rows, 2, {0, 1, 9, 9, 0xe7, 3, 0, 0}), table));
  EXPECT_EQ(table.line(1), (RankedRows::Line{0x0909, Ranking(std::vector<Token>{999})}));
}

}  // namespace
}  // namespace reprise::table_snapshot_test
