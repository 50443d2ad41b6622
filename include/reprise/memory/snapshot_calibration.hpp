// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/core/result.hpp"
#include "reprise/evidence/token_calibrator.hpp"
#include "reprise/memory/snapshot.hpp"

namespace reprise {

namespace detail {

/// All numbers of a state, in the order in which a snapshot has them.
template <class State, class Visit>
constexpr void for_each_number(State& state, Visit visit) {
  visit(state.all);
  for (auto& bias : state.by_length) visit(bias);
  for (auto& bias : state.by_depth) visit(bias);
  for (auto& biases : state.by_source)
    for (auto& bias : biases) visit(bias);
  visit(state.slope);
  for (auto& bias : state.by_previous) visit(bias);
  for (auto& bias : state.by_token) visit(bias);
  for (auto& bias : state.by_token_and_length) visit(bias);
  visit(state.recent);
  visit(state.lessons);
}

constexpr std::size_t bytes_of_numbers() noexcept {
  CalibrationState state;
  std::size_t bytes = 0;
  for_each_number(state, [&](const auto& number) { bytes += sizeof(number); });
  return bytes;
}

}  // namespace detail

/// The length of a section of kind `calibration`.
inline constexpr std::size_t calibration_bytes = detail::bytes_of_numbers();

// The state has no padding, so a field that is new to it would be seen here. What was learned of further stores is not
// written: which stores a drafter reads is a setting of one process.
static_assert(calibration_bytes == 6264 &&
                  sizeof(CalibrationState) == calibration_bytes + sizeof(CalibrationState::by_store),
              "the state has changed: write every field, and give the section a new kind");

/// Writes a section of kind `calibration`: calibration_bytes.
inline void write_calibration(SnapshotWriter& writer, const CalibrationState& state) noexcept {
  writer.begin_section(SectionKind::calibration);
  detail::for_each_number(state, [&](const auto& number) { writer.put(number); });
}

/// Reads what a section of kind `calibration` holds, as TokenCalibrator takes it: what is beyond the bounds of learning
/// is moved to them, so that any numbers are a state. snapshot_forged: the length is another (`value`, `limit`
/// expected).
[[nodiscard]] inline Result<CalibrationState> read_calibration(SnapshotCursor section) noexcept {
  if (section.left() != calibration_bytes)
    return Error{ErrorCode::snapshot_forged,
                 "the calibration of the snapshot has a wrong length, though its checksum is right: do not trust "
                 "where it comes from",
                 section.left(), calibration_bytes};
  CalibrationState state;
  detail::for_each_number(state, [&]<class T>(T& number) { number = *section.take<T>(); });
  return TokenCalibrator(state).state();
}

}  // namespace reprise
