// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"
#include "reprise/history/detail/snapshot_runs.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot.hpp"

/// \file Saves a HistoryStore and the calibration learned with it as a snapshot in memory, and loads such snapshots.
/// snapshot_file.hpp writes and reads files.
///
/// A snapshot holds the contents of a history: tokens, their origins, the names of their sequences and their use
/// counts. It contains neither the layout, the size nor the hash key of the history.

namespace reprise::inline v0 {

namespace detail {

/// Calls visit(number) for each number of a state, in declaration order.
template <class State, class Visit>
constexpr void for_each_number(State& state, const Visit& visit) {
  for_each_bias(visit, state);
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

/// The length in bytes of the contents of a section of kind `calibration`.
inline constexpr std::size_t calibration_bytes = detail::bytes_of_numbers();

static_assert(calibration_bytes == 10264 && sizeof(CalibrationState) == calibration_bytes,
              "the state has changed: write every field, and give the section a new kind");

/// Writes `state` as a section of kind `calibration`, calibration_bytes long.
inline void write_calibration(SnapshotWriter& writer, const CalibrationState& state) noexcept {
  writer.begin_section(SectionKind::calibration);
  detail::for_each_number(state, [&](const auto& number) { writer.put(number); });
}

/// Returns the state in a section of kind `calibration`. TokenCalibrator clamps numbers outside the bounds of learning,
/// so any bytes of the right length give a valid state. Error: snapshot_forged if the length is wrong (`value`: the
/// length, `limit`: the expected one).
[[nodiscard]] inline Result<CalibrationState> read_calibration(SnapshotReader::Cursor section) noexcept {
  if (section.left() != calibration_bytes)
    return Error{ErrorCode::snapshot_forged,
                 "the calibration of the snapshot has a wrong length, though its checksum is right: do not trust "
                 "where it comes from",
                 section.left(), calibration_bytes};
  CalibrationState state;
  detail::for_each_number(state, [&]<class T>(T& number) { number = *section.take<T>(); });
  return detail::TokenCalibrator(state).state();
}

// Implementations of the public functions below, for any slot type and segment size.
namespace detail {

/// Presents a run of a history as a RunSource.
template <class History>
class HistoryRunSource {
 public:
  HistoryRunSource(const History& history, const typename History::HistoryRun& run) noexcept
      : history_(history), run_(run), next_word_(run.first), next_count_(run.first) {}

  [[nodiscard]] std::uint64_t sequence() const noexcept { return run_.sequence; }
  [[nodiscard]] std::size_t size() const noexcept { return run_.size; }
  [[nodiscard]] std::uint32_t word(std::size_t) noexcept {
    const detail::HistoryWord word = history_.word(next_word_);
    next_word_ = history_.after(next_word_);
    return static_cast<std::uint32_t>(word.token()) | (word.origin() == Origin::output ? RunWord::output : 0);
  }
  [[nodiscard]] std::uint8_t use_count(std::size_t) noexcept {
    const std::uint8_t count = history_.use_count(next_count_);
    for (std::size_t i = 0; i < tokens_per_use_count && next_count_ != History::nowhere; ++i)
      next_count_ = history_.after(next_count_);
    return count;
  }

 private:
  const History& history_;
  typename History::HistoryRun run_;
  typename History::Slot next_word_;
  typename History::Slot next_count_;
};

template <class Slot, std::size_t segment_size>
[[nodiscard]] std::size_t snapshot_bytes_of(const BasicHistoryStore<Slot, segment_size>& history) noexcept {
  std::size_t length = 0;
  history.for_each_run([&](const auto& run) { length += run_bytes(run.size); });
  return snapshot_bytes({calibration_bytes, length});
}

template <class Slot, std::size_t segment_size>
void write_history(SnapshotWriter& writer, const BasicHistoryStore<Slot, segment_size>& history,
                   const CalibrationState& calibration) noexcept {
  write_calibration(writer, calibration);
  writer.begin_section(SectionKind::runs);
  history.for_each_run([&](const auto& run) { write_run(writer, HistoryRunSource(history, run)); });
}

template <class Slot, std::size_t segment_size>
[[nodiscard]] Result<std::span<const std::byte>> save_history(std::span<std::byte> room, std::uint64_t tokenizer,
                                                              const BasicHistoryStore<Slot, segment_size>& history,
                                                              const CalibrationState& calibration) noexcept {
  SnapshotWriter writer(room, tokenizer);
  write_history(writer, history, calibration);
  return writer.finish();
}

/// Validates a section of kind `runs`. Errors: those of for_each_run(), and token_out_of_range if the largest token
/// (`value`) is not below `vocabulary` (`limit`).
[[nodiscard]] inline Result<void> check_runs(SnapshotReader::Cursor runs, std::uint32_t vocabulary) noexcept {
  std::uint32_t needed = 0;
  const auto valid = for_each_run(runs, [&](const RunView& run) {
    for (std::size_t i = 0; i < run.size(); ++i) needed = std::max(needed, (run.word(i) & RunWord::token) + 1);
  });
  if (!valid) return valid.error();
  if (needed > vocabulary)
    return Error{ErrorCode::token_out_of_range,
                 "the snapshot has tokens outside HistoryOptions::vocabulary: load the one that was saved with this "
                 "model, from a source that you trust",
                 needed - 1, vocabulary};
  return {};
}

template <class Slot, std::size_t segment_size>
[[nodiscard]] Result<void> load_history(std::span<const std::byte> bytes, std::uint64_t tokenizer,
                                        BasicHistoryStore<Slot, segment_size>& history,
                                        CalibrationState& calibration) noexcept {
  const auto reader = SnapshotReader::open(bytes, tokenizer);
  if (!reader) return reader.error();
  const auto runs = reader->section(SectionKind::runs);
  if (runs)
    if (const auto valid = check_runs(*runs, history.options().vocabulary); !valid) return valid.error();
  if (const auto section = reader->section(SectionKind::calibration)) {
    const auto learned = read_calibration(*section);
    if (!learned) return learned.error();
    calibration = *learned;
  }
  if (!runs) return {};
  const auto restore = [&](const RunView& run) {
    history.begin_sequence(run.sequence());
    for (std::size_t i = 0; i < run.size(); ++i) {
      const std::uint32_t word = run.word(i);
      history.restore(static_cast<Token>(word & RunWord::token),
                      (word & RunWord::output) != 0 ? Origin::output : Origin::prompt,
                      run.use_count(i / tokens_per_use_count));
    }
  };
  history.end_sequence();
  static_cast<void>(for_each_run(*runs, restore));  // cannot fail, because check_runs() has accepted the runs
  history.end_sequence();
  return {};
}

}  // namespace detail

/// Returns the number of bytes that save_history() needs. Cost: reads every segment once. Threads: as for
/// save_history().
[[nodiscard]] inline std::size_t snapshot_bytes_of(const HistoryStore& history) noexcept {
  return detail::snapshot_bytes_of(history);
}

/// Writes a snapshot of a history and of the calibration for a target model into `room`. Returns the part of `room`
/// that holds the snapshot.
///
/// `tokenizer`: any number that identifies the tokenizer, see SnapshotWriter. Make the number depend on the model too,
/// because a calibration belongs to one model. A sequence that has not ended is saved without the tokens that append()
/// holds back.
///
/// Error: out_of_room (`value`: the bytes needed, see snapshot_bytes_of()). Cost: a pass over the tokens and one over
/// the bytes; no allocation. Threads: call it on the thread that writes the history, or while nobody writes; readers
/// may continue.
[[nodiscard]] inline Result<std::span<const std::byte>> save_history(std::span<std::byte> room, std::uint64_t tokenizer,
                                                                     const HistoryStore& history,
                                                                     const CalibrationState& calibration) noexcept {
  return detail::save_history(room, tokenizer, history, calibration);
}

/// Writes the sections of save_history() into a snapshot that has further sections, for example those of
/// cost_snapshot.hpp. The sections of save_history() take snapshot_bytes_of(history) - snapshot_bytes({}) bytes.
/// Requires that the writer has no section of kind `calibration` or `runs` yet. Threads: as for save_history().
inline void write_history(SnapshotWriter& writer, const HistoryStore& history,
                          const CalibrationState& calibration) noexcept {
  detail::write_history(writer, history, calibration);
}

/// Adds the contents of a snapshot to a history of any size; clear() the history first to replace its contents. The
/// history indexes the tokens under its own key and evicts as usual when it is full. Replaces `calibration` with the
/// calibration in the snapshot, whose biases of stores belong to NgramOptions::stores in the same order. If the
/// snapshot has no section of kind `runs`, the history stays unchanged; without one of kind `calibration`,
/// `calibration` stays unchanged. Tokens of an origin that HistoryOptions excludes are not stored.
///
/// If the snapshot has runs, ends the current sequence first: tokens appended later without begin_sequence() get the
/// name 0. Loading restores names too, including those of sequences that were removed after the snapshot was saved:
/// remove() them again.
///
/// Any bytes are either loaded or refused. If the bytes are refused, nothing changes. Errors:
///
///  * those of SnapshotReader::open() and read_calibration().
///  * snapshot_forged: a run is malformed.
///  * token_out_of_range: the largest token (`value`) is not below HistoryOptions::vocabulary (`limit`). The snapshot
///    belongs to a different model or is forged.
///
/// A forged file with correct checksums and tokens in the vocabulary can only cost speed: the target rejects wrong
/// drafts. Set HistoryOptions::vocabulary; otherwise, drafts can contain any token.
///
/// Cost: three passes over the bytes, plus the cost of append(); no allocation. Threads: the rules of append() apply.
[[nodiscard]] inline Result<void> load_history(std::span<const std::byte> bytes, std::uint64_t tokenizer,
                                               HistoryStore& history, CalibrationState& calibration) noexcept {
  return detail::load_history(bytes, tokenizer, history, calibration);
}

}  // namespace reprise
