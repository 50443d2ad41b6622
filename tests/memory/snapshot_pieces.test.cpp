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
  EXPECT_TRUE(
      for_each_piece(section_of(bytes), [&](const PieceView& piece) { pieces.push_back(testing::stored(piece)); }));
  return pieces;
}

TEST(SnapshotPieces, ComeBackInTheirOrder) {
  testing::Random random(4);
  std::vector<StoredPiece> pieces;
  for (const std::size_t tokens : {1U, 2U, 15U, 16U, 17U, 32U, 33U, 1000U, 1U})
    pieces.push_back(testing::random_piece(random, tokens));
  const Bytes bytes = written(pieces);
  EXPECT_EQ(read(bytes), pieces);
}

TEST(SnapshotPieces, OfAFileCanBeWrittenAgain) {
  testing::Random random(5);
  const Bytes bytes = written({testing::random_piece(random, 40)});
  Bytes again(bytes.size());
  SnapshotWriter writer(again, some_tokenizer);
  writer.begin_section(SectionKind::pieces);
  ASSERT_TRUE(for_each_piece(section_of(bytes), [&](const PieceView& piece) { write_piece(writer, piece); }));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(again, bytes);
}

TEST(SnapshotPieces, NoPieceIsASectionWithoutBytes) { EXPECT_EQ(read(written({})), std::vector<StoredPiece>()); }

TEST(SnapshotPieces, HoldTheLargestTokenToo) {
  const std::vector<StoredPiece> pieces = {{1, {0, 0x7ffffffe, 0x7ffffffe | PieceWord::output, 0x40000000}, {9}}};
  EXPECT_EQ(read(written(pieces)), pieces);
}

TEST(SnapshotPieces, WhoSaidATokenSharesAWordWithItWithoutOverlap) {
  static_assert((PieceWord::output | PieceWord::token) == 0xffffffff);
  static_assert((PieceWord::output & PieceWord::token) == 0);
  static_assert(piece_bytes(1) == 17 && piece_bytes(32) == 141 && piece_bytes(33) == 146);
}

/// What is said of a section with two pieces of 20 tokens, after a change of its contents and the right checksums: how
/// many pieces are visited, all that are sound before the first that is not.
struct Visited {
  std::size_t pieces = 0;
  Result<void> result;
};
Visited after(const std::function<void(std::span<std::byte>)>& change, std::size_t cut = 0) {
  testing::Random random(6);
  const std::vector<StoredPiece> pieces = {testing::random_piece(random, 20), testing::random_piece(random, 20)};
  Bytes bytes = written(pieces);
  change(std::span(bytes).subspan(76));
  bytes.resize(bytes.size() - cut);
  testing::repair(bytes);
  Visited visited;
  visited.result = for_each_piece(section_of(bytes), [&](const PieceView& /*piece*/) { ++visited.pieces; });
  return visited;
}

constexpr std::size_t second = piece_bytes(20);

void expect_forged(const Visited& visited, std::size_t where) {
  ASSERT_FALSE(visited.result);
  EXPECT_EQ(visited.result.error().code, ErrorCode::snapshot_forged);
  EXPECT_EQ(visited.result.error().value, where);
  EXPECT_EQ(visited.pieces, where / second);
}

TEST(ForgedPieces, ThatAreLeftAsTheyAreAreSound) {
  const Visited visited = after([](auto) {});
  EXPECT_TRUE(visited.result);
  EXPECT_EQ(visited.pieces, 2U);
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
  const Visited between = after([](auto) {}, second);
  EXPECT_TRUE(between.result);
  EXPECT_EQ(between.pieces, 1U);
}

TEST(ForgedPieces, WithAWordThatIsNoTokenAreRefused) {
  for (std::size_t token = 0; token < 20; ++token)
    for (const std::uint32_t word : {0x7fffffffU, 0xffffffffU})
      expect_forged(after([&](auto contents) { detail::store_little(word, &contents[second + 12 + 4 * token]); }),
                    second);
}

}  // namespace
}  // namespace reprise
