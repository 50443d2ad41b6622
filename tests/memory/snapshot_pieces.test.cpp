// SPDX-License-Identifier: Apache-2.0
#include "reprise/memory/snapshot_pieces.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "support/snapshots.hpp"

namespace reprise {
namespace {

using testing::Bytes;
using testing::some_tokenizer;
using testing::StoredPiece;

Bytes written(const std::vector<StoredPiece>& pieces) {
  std::size_t length = 0;
  for (const StoredPiece& piece : pieces) length += piece_bytes(piece.size());
  Bytes bytes(snapshot_bytes({length}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(SectionKind::pieces);
  for (const StoredPiece& piece : pieces) write_piece(writer, piece);
  EXPECT_TRUE(writer.finish()) << "as long as it was said beforehand";
  return bytes;
}

SnapshotCursor section_of(const Bytes& bytes) {
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  EXPECT_TRUE(reader);
  return *reader->section(SectionKind::pieces);
}

std::vector<StoredPiece> read(const Bytes& bytes) {
  std::vector<StoredPiece> pieces;
  SnapshotCursor section = section_of(bytes);
  for (auto piece = next_piece(section); piece && *piece; piece = next_piece(section))
    pieces.push_back(testing::stored(**piece));
  return pieces;
}

TEST(SnapshotPieces, ComeBackInTheirOrder) {
  testing::Random random(4);
  std::vector<StoredPiece> pieces;
  for (const std::size_t tokens : {1U, 2U, 15U, 16U, 17U, 32U, 33U, 1000U, 1U})
    pieces.push_back(testing::random_piece(random, tokens));
  const Bytes bytes = written(pieces);
  EXPECT_EQ(read(bytes), pieces);
  const auto totals = check_pieces(section_of(bytes));
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->pieces, pieces.size());
  EXPECT_EQ(totals->tokens, 1117U);
}

TEST(SnapshotPieces, OfAFileCanBeWrittenAgain) {
  testing::Random random(5);
  const Bytes bytes = written({testing::random_piece(random, 40)});
  SnapshotCursor section = section_of(bytes);
  const auto piece = next_piece(section);
  ASSERT_TRUE(piece && *piece);
  Bytes again(bytes.size());
  SnapshotWriter writer(again, some_tokenizer);
  writer.begin_section(SectionKind::pieces);
  write_piece(writer, **piece);
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(again, bytes);
}

TEST(SnapshotPieces, NoPieceIsASectionWithoutBytes) {
  EXPECT_EQ(read(written({})), std::vector<StoredPiece>());
  EXPECT_EQ(check_pieces(section_of(written({})))->pieces, 0U);
}

TEST(SnapshotPieces, HoldTheLargestTokenToo) {
  const std::vector<StoredPiece> pieces = {{1, {0, 0x7ffffffe, 0x7ffffffe | PieceWord::output, 0x40000000}, {9}}};
  EXPECT_EQ(read(written(pieces)), pieces);
}

TEST(SnapshotPieces, WhoSaidATokenSharesAWordWithItWithoutOverlap) {
  static_assert((PieceWord::output | PieceWord::token) == 0xffffffff);
  static_assert((PieceWord::output & PieceWord::token) == 0);
  static_assert(piece_bytes(1) == 17 && piece_bytes(32) == 141 && piece_bytes(33) == 146);
}

/// What is said of a section with two pieces of 20 tokens, after a change of its contents and the right checksums.
Result<PieceTotals> after(const std::function<void(std::span<std::byte>)>& change, std::size_t cut = 0) {
  testing::Random random(6);
  const std::vector<StoredPiece> pieces = {testing::random_piece(random, 20), testing::random_piece(random, 20)};
  Bytes bytes = written(pieces);
  change(std::span(bytes).subspan(80));
  bytes.resize(bytes.size() - cut);
  testing::repair(bytes);
  return check_pieces(section_of(bytes));
}

constexpr std::size_t second = piece_bytes(20);

void expect_forged(const Result<PieceTotals>& totals, std::size_t where) {
  ASSERT_FALSE(totals);
  EXPECT_EQ(totals.error().code, ErrorCode::snapshot_forged);
  EXPECT_EQ(totals.error().value, where);
}

TEST(ForgedPieces, ThatAreLeftAsTheyAreAreSound) {
  EXPECT_TRUE(after([](auto) {}));
}

TEST(ForgedPieces, WithoutTokensAreRefused) {
  expect_forged(after([](auto contents) { detail::store_little(std::uint32_t{0}, &contents[8]); }), 0);
}

TEST(ForgedPieces, WithMoreTokensThanBytesAreRefused) {
  for (const std::uint32_t size : {21U, 22U, 1000U, 0x3fffffffU, 0x40000000U, 0x80000000U, 0xffffffffU})
    expect_forged(after([&](auto contents) { detail::store_little(size, &contents[second + 8]); }), second);
}

TEST(ForgedPieces, ThatEndAnywhereAreRefused) {
  for (std::size_t cut = 1; cut < second; ++cut) expect_forged(after([](auto) {}, cut), second);
  EXPECT_EQ(after([](auto) {}, second)->pieces, 1U) << "cut between two pieces";
}

TEST(ForgedPieces, WithAWordThatIsNoTokenAreRefused) {
  for (std::size_t token = 0; token < 20; ++token)
    for (const std::uint32_t word : {0x7fffffffU, 0xffffffffU})
      expect_forged(after([&](auto contents) { detail::store_little(word, &contents[second + 12 + 4 * token]); }),
                    second);
}

}  // namespace
}  // namespace reprise
