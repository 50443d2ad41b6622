// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/snapshot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/committed_inputs.hpp"
#include "support/fails.hpp"
#include "support/snapshots.hpp"

namespace reprise::snapshot_test {
namespace {

using testing::Bytes;
using testing::repair_header;
using testing::sample_snapshot;
using testing::some_tokenizer;

constexpr auto other_kind = static_cast<SectionKind>(77);

Result<SnapshotReader> open(const Bytes& bytes) { return SnapshotReader::open(bytes, some_tokenizer); }

/// Returns the code of the error, if there is one.
std::optional<ErrorCode> error_of(const Bytes& bytes) {
  const auto reader = open(bytes);
  return reader ? std::nullopt : std::optional(reader.error().code);
}

/// A snapshot of three sections: numbers, nothing, one byte.
Bytes three_sections() {
  Bytes bytes(snapshot_bytes({27, 0, 1}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(SectionKind::runs);
  writer.put(std::uint8_t{200});
  writer.put(std::int16_t{-2});
  writer.put(std::uint32_t{0x89abcdef});
  writer.put(std::int32_t{-3});
  writer.put(std::uint64_t{0x0123456789abcdef});
  writer.put(std::numeric_limits<std::int64_t>::min());
  writer.begin_section(SectionKind::calibration);
  writer.begin_section(other_kind);
  writer.put(std::uint8_t{7});
  EXPECT_TRUE(writer.finish());
  return bytes;
}

TEST(Snapshot, NumbersComeBack) {
  const Bytes bytes = three_sections();
  const auto reader = open(bytes);
  ASSERT_TRUE(reader);
  auto section = reader->section(SectionKind::runs);
  ASSERT_TRUE(section);
  EXPECT_EQ(section->take<std::uint8_t>(), 200);
  EXPECT_EQ(section->take<std::int16_t>(), -2);
  EXPECT_EQ(section->take<std::uint32_t>(), 0x89abcdef);
  EXPECT_EQ(section->take<std::int32_t>(), -3);
  EXPECT_EQ(section->take<std::uint64_t>(), 0x0123456789abcdef);
  EXPECT_EQ(section->take<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(section->left(), 0U);
}

TEST(Snapshot, SectionsAreFoundByTheirKindAndUnknownOnesPassedOver) {
  const Bytes bytes = three_sections();
  const auto reader = open(bytes);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->section(SectionKind::calibration)->left(), 0U);
  EXPECT_EQ(reader->section(other_kind)->take<std::uint8_t>(), 7);
  EXPECT_FALSE(reader->section(static_cast<SectionKind>(78)));
}

TEST(Snapshot, MayHaveNoSectionOrTheMostSections) {
  Bytes bytes(snapshot_bytes({}));
  ASSERT_TRUE(SnapshotWriter(bytes, some_tokenizer).finish());
  ASSERT_TRUE(open(bytes));
  EXPECT_FALSE(open(bytes)->section(SectionKind::runs));

  bytes.resize(snapshot_bytes({}) + 64 * snapshot_bytes({0}) - 64 * snapshot_bytes({}));
  SnapshotWriter writer(bytes, some_tokenizer);
  for (std::uint32_t kind = 0; kind < 64; ++kind) writer.begin_section(static_cast<SectionKind>(kind));
  ASSERT_TRUE(writer.finish());
  for (std::uint32_t kind = 0; kind < 64; ++kind) EXPECT_TRUE(open(bytes)->section(static_cast<SectionKind>(kind)));
}

TEST(Snapshot, WithMoreRoomSaysWhereItEndsAndFinishingAgainChangesNothing) {
  Bytes bytes(1000);
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(other_kind);
  writer.put(std::uint8_t{7});
  const auto finished = writer.finish();
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->data(), bytes.data());
  EXPECT_EQ(finished->size(), snapshot_bytes({1}));
  EXPECT_TRUE(SnapshotReader::open(*finished, some_tokenizer));
  const Bytes once = bytes;
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(bytes, once);
}

TEST(Snapshot, WithTooLittleRoomSaysHowMuchItTakesAndWritesNothingBeyond) {
  const Bytes whole = three_sections();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes bytes(whole.size(), std::byte{0xaa});
    SnapshotWriter writer(std::span<std::byte>(bytes).first(size), some_tokenizer);
    writer.begin_section(SectionKind::runs);
    for (int i = 0; i < 27; ++i) writer.put(std::uint8_t{1});
    writer.begin_section(SectionKind::calibration);
    writer.begin_section(other_kind);
    writer.put(std::uint8_t{7});
    const auto finished = writer.finish();
    ASSERT_FALSE(finished);
    ASSERT_EQ(finished.error().code, ErrorCode::out_of_room);
    ASSERT_EQ(finished.error().value, whole.size());
    ASSERT_EQ(finished.error().limit, size);
    ASSERT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(size), bytes.end(),
                            [](std::byte byte) { return byte == std::byte{0xaa}; }));
  }
}

#if REPRISE_CONTRACTS == 2
TEST(SnapshotContract, ASectionOfEachKindIsBegunOnce) {
  SnapshotWriter writer({}, some_tokenizer);
  writer.begin_section(SectionKind::runs);
  writer.begin_section(other_kind);
  EXPECT_DEATH(writer.begin_section(SectionKind::runs), "");
}
#endif

TEST(SnapshotReaderCursor, NeverReadsBeyondItsEnd) {
  const Bytes bytes(7);
  SnapshotReader::Cursor cursor{std::span(bytes)};
  EXPECT_FALSE(cursor.take<std::uint64_t>());
  EXPECT_EQ(cursor.left(), 7U) << "no step";
  EXPECT_TRUE(cursor.take<std::uint32_t>());
  EXPECT_FALSE(cursor.take<std::uint32_t>());
  EXPECT_FALSE(cursor.take_bytes(4));
  EXPECT_FALSE(cursor.take_bytes(std::numeric_limits<std::size_t>::max()));
  EXPECT_EQ(cursor.offset(), 4U);
  EXPECT_EQ(cursor.take_bytes(3)->size(), 3U);
  EXPECT_TRUE(cursor.take_bytes(0));
  EXPECT_FALSE(cursor.take<std::uint8_t>());
}

// Damage.

TEST(DamagedSnapshot, CutAnywhereIsTruncated) {
  for (const Bytes& whole : {sample_snapshot(3), three_sections()})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto reader = SnapshotReader::open(std::span(whole).first(size), some_tokenizer);
      ASSERT_FALSE(reader) << size;
      ASSERT_EQ(reader.error().code, ErrorCode::snapshot_truncated) << size;
      ASSERT_EQ(reader.error().value, size);
      ASSERT_EQ(reader.error().limit,
                size < detail::SnapshotFormat::header_bytes ? detail::SnapshotFormat::header_bytes : whole.size());
    }
}

TEST(DamagedSnapshot, WithAnySingleWrongBitIsRefused) {
  const Bytes whole = sample_snapshot(4);
  const std::size_t second = snapshot_bytes({calibration_bytes});
  ASSERT_EQ(error_of(whole), std::nullopt);
  Bytes bytes = whole;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const std::size_t at = bit / 8;
    bytes[at] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto reader = open(bytes);
    ASSERT_FALSE(reader) << "bit " << bit;
    if (at < detail::SnapshotFormat::magic.size()) {
      ASSERT_EQ(reader.error().code, ErrorCode::not_a_snapshot) << "bit " << bit;
    } else {
      ASSERT_EQ(reader.error().code, ErrorCode::snapshot_damaged) << "bit " << bit;
      ASSERT_EQ(reader.error().value, at < 48 ? 0 : at < second ? 48 : second) << "bit " << bit;
      const bool contents = at >= second + 28 || (at >= 76 && at < second);
      if (contents) {
        ASSERT_EQ(reader.error().limit, at < second ? 1U : 2U) << "bit " << bit;
      }
    }
    bytes[at] = whole[at];
  }
}

TEST(DamagedSnapshot, WithBytesBehindItsEndIsRefused) {
  Bytes bytes = sample_snapshot(1);
  const std::size_t size = bytes.size();
  bytes.push_back(std::byte{0});
  EXPECT_THAT(open(bytes), testing::fails(ErrorCode::snapshot_damaged, size));
}

TEST(DamagedSnapshot, OtherFilesAreNone) {
  for (const std::string text : {"x", "{\"version\": 1}", "\x93NUMPY", "GGUF"}) {
    const auto bytes = std::as_bytes(std::span(text));
    EXPECT_EQ(error_of(Bytes(bytes.begin(), bytes.end())), ErrorCode::not_a_snapshot) << text;
  }
  EXPECT_EQ(error_of(Bytes(1000)), ErrorCode::not_a_snapshot);
  EXPECT_EQ(error_of(Bytes(1000, std::byte{0xff})), ErrorCode::not_a_snapshot);
  // A text-mode transfer converts line endings.
  Bytes text = sample_snapshot(1);
  text.erase(text.begin() + 4);
  EXPECT_EQ(error_of(text), ErrorCode::not_a_snapshot);
}

// Undamaged, but not for this reader: each case has its own error.

/// Returns a snapshot with another number in its header, and the right checksum.
template <class T>
Bytes with_header(std::size_t at, T value) {
  Bytes bytes = three_sections();
  detail::store_little(value, bytes.data() + at);
  repair_header(bytes);
  return bytes;
}

TEST(ForeignSnapshot, OfAnotherTokenizerIsRefused) {
  const Bytes bytes = three_sections();
  EXPECT_THAT(SnapshotReader::open(bytes, 5), testing::fails(ErrorCode::other_tokenizer, some_tokenizer, 5U));
}

TEST(ForeignSnapshot, OfANewerVersionIsRefused) {
  EXPECT_THAT(open(with_header<std::uint32_t>(12, 2)), testing::fails(ErrorCode::newer_version, 2U, 1U));
}

TEST(ForeignSnapshot, WithTokensOfAnotherWidthIsRefused) {
  for (const std::uint32_t width : {0U, 2U, 8U}) {
    EXPECT_THAT(open(with_header(16, width)), testing::fails(ErrorCode::other_token_width, width, 4U));
  }
}

TEST(ForeignSnapshot, WithItsHighestBytesFirstIsRefused) {
  Bytes bytes = three_sections();
  // All numbers of the header, as a machine of the other byte order writes them.
  constexpr std::array<std::array<std::ptrdiff_t, 2>, 6> numbers = {
      {{8, 4}, {12, 4}, {16, 4}, {20, 4}, {24, 8}, {32, 8}}};
  for (const auto& [at, size] : numbers) std::reverse(bytes.begin() + at, bytes.begin() + at + size);
  repair_header(bytes);
  std::reverse(bytes.begin() + 40, bytes.begin() + 48);
  EXPECT_THAT(open(bytes), testing::fails(ErrorCode::other_byte_order, 0x04030201U, 0x01020304U));
}

// Correct checksums, invalid contents.

TEST(ForgedSnapshot, HeadersThatNobodyWritesAreRefused) {
  EXPECT_EQ(error_of(with_header<std::uint32_t>(8, 5)), ErrorCode::snapshot_forged) << "byte order";
  EXPECT_EQ(error_of(with_header<std::uint32_t>(12, 0)), ErrorCode::snapshot_forged) << "version";
  EXPECT_EQ(error_of(with_header<std::uint32_t>(20, 2)), ErrorCode::snapshot_forged) << "one section too few";
  EXPECT_EQ(error_of(with_header<std::uint32_t>(20, 4)), ErrorCode::snapshot_forged) << "one section too many";
  EXPECT_EQ(error_of(with_header<std::uint32_t>(20, 65)), ErrorCode::snapshot_forged);
  EXPECT_EQ(error_of(with_header<std::uint32_t>(20, 0xffffffff)), ErrorCode::snapshot_forged);
  EXPECT_EQ(error_of(with_header<std::uint64_t>(32, 0)), ErrorCode::snapshot_damaged) << "bytes behind the end";
  EXPECT_EQ(error_of(with_header(32, std::numeric_limits<std::uint64_t>::max())), ErrorCode::snapshot_truncated);
}

/// Opens a snapshot with another number in the header of its second section, at byte 103, and the right checksum.
template <class T>
Result<SnapshotReader> with_second_section(Bytes& bytes, std::size_t at, T value) {
  bytes = three_sections();
  constexpr std::size_t second = snapshot_bytes({27});
  static_assert(second == 103);
  detail::store_little(value, bytes.data() + second + at);
  detail::store_little(detail::crc64(std::span(bytes).subspan(second, 20)), bytes.data() + second + 20);
  return open(bytes);
}

TEST(ForgedSnapshot, SectionsThatNobodyWritesAreRefused) {
  Bytes bytes;
  const auto expect_forged = [](const Result<SnapshotReader>& reader, std::uint32_t kind) {
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::snapshot_forged);
    EXPECT_EQ(reader.error().value, 103U);
    EXPECT_EQ(reader.error().limit, kind);
  };
  expect_forged(with_second_section<std::uint32_t>(bytes, 0, 2), 2);  // a kind that the first section has
  for (const std::uint64_t length : {std::uint64_t{30}, std::uint64_t{1} << 32, ~std::uint64_t{0}, ~std::uint64_t{27}})
    expect_forged(with_second_section(bytes, 4, length), 1);
  EXPECT_TRUE(with_second_section<std::uint32_t>(bytes, 0, 99)) << "kinds that nobody knows are no forgery";
}

TEST(ForgedSnapshot, MoreSectionsThanThereMayBeAreRefused) {
  // Each section has a kind of its own and is valid: only the number of sections is wrong.
  Bytes bytes(snapshot_bytes({}) + 64 * detail::SnapshotFormat::section_header_bytes);
  SnapshotWriter writer(bytes, some_tokenizer);
  for (std::uint32_t kind = 0; kind < 64; ++kind) writer.begin_section(static_cast<SectionKind>(kind));
  ASSERT_TRUE(writer.finish());
  ASSERT_EQ(error_of(bytes), std::nullopt);
  const std::size_t at = bytes.size();
  bytes.resize(at + detail::SnapshotFormat::section_header_bytes);
  detail::store_little(std::uint32_t{64}, bytes.data() + at);
  detail::store_little(detail::crc64({}), bytes.data() + at + 12);
  detail::store_little(detail::crc64(std::span(bytes).subspan(at, 20)), bytes.data() + at + 20);
  detail::store_little(std::uint32_t{65}, bytes.data() + 20);
  detail::store_little(std::uint64_t{bytes.size()}, bytes.data() + 32);
  repair_header(bytes);
  EXPECT_THAT(open(bytes), testing::fails(ErrorCode::snapshot_forged, 0U));
}

TEST(Snapshot, IsTheSameInWhateverOrderItsSectionsAre) {
  Bytes bytes(snapshot_bytes({1, 1}));
  SnapshotWriter writer(bytes, some_tokenizer);
  for (const auto kind : {SectionKind::calibration, SectionKind::runs}) {
    writer.begin_section(kind);
    writer.put(static_cast<std::uint8_t>(kind));
  }
  ASSERT_TRUE(writer.finish());
  ASSERT_EQ(error_of(bytes), std::nullopt);
  std::rotate(bytes.begin() + 48, bytes.begin() + 48 + 29, bytes.end());
  const auto reader = open(bytes);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->section(SectionKind::calibration)->take<std::uint8_t>(), 1);
  EXPECT_EQ(reader->section(SectionKind::runs)->take<std::uint8_t>(), 2);
}

// Arbitrary bytes. fuzz/snapshot.fuzz.cpp has the same body.

TEST(AnySnapshot, WithAnyDamageAndRightChecksumsIsReadOrRefused) {
  const std::array wholes = {sample_snapshot(5), sample_snapshot(30, false), three_sections()};
  testing::SnapshotCoverage coverage;
  ASSERT_EQ(testing::read_damaged_snapshots(wholes, coverage), "");
  EXPECT_GT(coverage.refused, 1000U);
  EXPECT_GT(coverage.opened, 3000U);
  EXPECT_GT(coverage.calibrations, 500U);
  EXPECT_GT(coverage.forged_contents, 500U);
  EXPECT_GT(coverage.runs, 10'000U);
}

// Snapshots of earlier versions. The files of golden/ were written by snapshot_1.py, according to docs/formats.md, and
// not by this library. A later version of the format adds a file and still reads these.

Bytes golden(const char* name) {
  std::ifstream file(std::filesystem::path(REPRISE_SOURCE_DIR) / "tests/history/golden" / name, std::ios::binary);
  EXPECT_TRUE(file);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

CalibrationState golden_state() {
  CalibrationState state;
  state.all = -1'000'000;
  for (std::size_t i = 0; i < 7; ++i) state.by_length[i] = static_cast<std::int32_t>(1000 * i) - 3000;
  for (std::size_t i = 0; i < 4; ++i) state.by_depth[i] = static_cast<std::int32_t>(7 * i);
  for (std::size_t i = 0; i < 972; ++i)
    state.by_next[i / 162][i % 162] = static_cast<std::int32_t>(2'000 * i) - 900'000;
  for (std::size_t i = 0; i < 1024; ++i) {
    state.by_previous[i] = static_cast<std::int16_t>(static_cast<int>(i * 37 % 40'001) - 20'000);
    state.by_token[i] = static_cast<std::int16_t>(static_cast<int>(i * 101 % 40'001) - 20'000);
    state.by_token_and_length[i] = static_cast<std::int16_t>(static_cast<int>(i * 211 % 40'001) - 20'000);
  }
  state.recent = 40'000;
  state.lessons = 123'456'789'012;
  return state;
}

std::vector<testing::StoredRun> golden_runs() {
  std::vector<testing::StoredRun> runs = {{42, {}, {3, 0}}, {0xfffffffffffffff0, {}, {255}}};
  for (std::uint32_t i = 0; i < 40; ++i) runs[0].words.push_back((i * 50'021) | (i >= 12 ? 0x80000000 : 0));
  runs[1].words.push_back(0x7ffffffe);
  return runs;
}

constexpr std::uint64_t golden_tokenizer = 0x0123456789abcdef;

TEST(GoldenSnapshot, IsStillRead) {
  for (const char* name : {"snapshot-1.bin", "snapshot-1-unused.bin"}) {
    const Bytes bytes = golden(name);
    const auto reader = SnapshotReader::open(bytes, golden_tokenizer);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ(*read_calibration(*reader->section(SectionKind::calibration)), golden_state());
    std::vector<testing::StoredRun> runs;
    ASSERT_TRUE(detail::for_each_run(*reader->section(SectionKind::runs),
                                     [&](const detail::RunView& run) { runs.push_back(testing::stored(run)); }));
    EXPECT_EQ(runs, golden_runs());
    EXPECT_EQ(reader->section(other_kind)->left(), 5U);
  }
}

TEST(GoldenSnapshot, IsStillWritten) {
  Bytes bytes(snapshot_bytes({calibration_bytes, detail::run_bytes(40) + detail::run_bytes(1), 5}));
  SnapshotWriter writer(bytes, golden_tokenizer);
  write_calibration(writer, golden_state());
  writer.begin_section(SectionKind::runs);
  for (const auto& run : golden_runs()) testing::write_run(writer, run);
  writer.begin_section(other_kind);
  for (const char character : {'h', 'e', 'l', 'l', 'o'}) writer.put(static_cast<std::uint8_t>(character));
  ASSERT_TRUE(writer.finish());
  EXPECT_EQ(bytes, golden("snapshot-1.bin"));
}

TEST(Snapshot, OfTheFuzzerIsReadOrRefused) {
  testing::SnapshotCoverage coverage;
  for (const auto& input : testing::committed_inputs("snapshot"))
    ASSERT_EQ(testing::read_as_any_snapshot(std::as_bytes(std::span(input.bytes)), coverage), "") << input.name;
}

}  // namespace
}  // namespace reprise::snapshot_test
