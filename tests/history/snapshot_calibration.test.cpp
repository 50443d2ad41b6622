// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/history_snapshot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "support/fails.hpp"
#include "support/snapshots.hpp"

namespace reprise::snapshot_calibration_test {
namespace {

using testing::Bytes;
using testing::some_tokenizer;

Bytes written(const CalibrationState& state) {
  Bytes bytes(snapshot_bytes({calibration_bytes}));
  SnapshotWriter writer(bytes, some_tokenizer);
  write_calibration(writer, state);
  EXPECT_TRUE(writer.finish());
  return bytes;
}

Result<CalibrationState> read(const Bytes& bytes) {
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  if (!reader) return reader.error();
  return read_calibration(*reader->section(SectionKind::calibration));
}

TEST(SnapshotCalibration, ComesBackWithEveryNumber) {
  const CalibrationState state = testing::taught_state(3);
  const auto back = read(written(state));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, state);
  EXPECT_EQ(*read(written({})), CalibrationState());
}

TEST(SnapshotCalibration, EveryNumberHasBytesOfItsOwn) {
  const CalibrationState state = testing::taught_state(3);
  const Bytes before = written(state);
  const std::size_t begin = detail::SnapshotFormat::header_bytes + detail::SnapshotFormat::section_header_bytes;
  std::size_t at = begin;
  CalibrationState changed = state;
  detail::for_each_number(changed, [&]<class T>(T& number) {
    const std::size_t offset = at - begin;
    if ((offset >= 48 && offset < 216) || offset == 4104) {  // unused
      at += sizeof(T);
      return;
    }
    number = static_cast<T>(number ^ 1);
    const Bytes after = written(changed);
    number = static_cast<T>(number ^ 1);
    const auto contents = static_cast<std::ptrdiff_t>(begin);
    const auto first = std::mismatch(before.begin() + contents, before.end(), after.begin() + contents).first;
    ASSERT_EQ(static_cast<std::size_t>(first - before.begin()), at);
    ASSERT_TRUE(std::equal(first + 1, before.end(), after.begin() + (first - before.begin()) + 1)) << "no other byte";
    at += sizeof(T);
  });
  EXPECT_EQ(at, before.size());
}

TEST(SnapshotCalibration, AnyNumbersAreAStateThatIsWithinTheBoundsOfLearning) {
  for (const int byte : {0x00, 0x7f, 0x80, 0xff, 0x55}) {
    Bytes bytes = written({});
    std::fill(bytes.begin() + 76, bytes.end(), static_cast<std::byte>(byte));
    testing::repair(bytes);
    const auto state = read(bytes);
    ASSERT_TRUE(state) << byte;
    EXPECT_EQ(detail::TokenCalibrator(*state).state(), *state) << byte;
    detail::TokenCalibrator calibration(*state);
    const detail::TokenEvidence evidence = {.votes = 1, .strongest = 1, .longest = 2, .occurrences = 1, .count = 1};
    calibration.learn(calibration.weigh(7, evidence, 2, calibration.tree_context(0, 5, 1)), true);
    static_cast<void>(merge(calibration.state(), *state));
  }
}

TEST(SnapshotCalibration, AnotherLengthIsForged) {
  for (const std::size_t length : {std::size_t{0}, calibration_bytes - 1, calibration_bytes + 1}) {
    Bytes bytes(snapshot_bytes({length}));
    SnapshotWriter writer(bytes, some_tokenizer);
    writer.begin_section(SectionKind::calibration);
    for (std::size_t i = 0; i < length; ++i) writer.put(std::uint8_t{0});
    ASSERT_TRUE(writer.finish());
    EXPECT_THAT(read(bytes), testing::fails(ErrorCode::snapshot_forged, length, calibration_bytes));
  }
}

}  // namespace
}  // namespace reprise::snapshot_calibration_test
