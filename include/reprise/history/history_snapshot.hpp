// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"
#include "reprise/history/detail/byte_format.hpp"
#include "reprise/history/detail/segments.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot.hpp"

/// \file Saves a HistoryStore and the calibration learned with it as a snapshot in memory, and loads such snapshots.
/// snapshot_file.hpp writes and reads files. `History` is HistoryStore, here and below; tests use smaller ones.
///
/// A snapshot holds the contents of a history: tokens, their origins, the names of their sequences and their use
/// counts. It contains neither the layout, the size nor the hash key of the history.

namespace reprise { inline namespace v0 {

namespace detail {

/// Calls visit(number) for each number of the section, in its order. Numbers that only earlier versions used are
/// written as 0, and ignored when they are read.
template <class State, class Visit>
constexpr void for_each_number(State& state, const Visit& visit) {
  std::array<std::int32_t, 42> by_source{};
  std::int32_t slope = 0;
  const auto each = [&](auto&... fields) { (visit_each(visit, fields), ...); };
  each(state.all, state.by_length, state.by_depth, by_source, state.by_next, slope, state.by_previous, state.by_token,
       state.by_token_and_length, state.recent, state.lessons);
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

static_assert(calibration_bytes == 10264 &&
                  sizeof(CalibrationState) == (calibration_bytes - 43 * sizeof(std::int32_t) + 7) / 8 * 8,
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

namespace detail {

/// The number of tokens that share a use count.
inline constexpr std::size_t tokens_per_use_count = 32;

/// Returns the size in bytes of a run of `tokens` tokens in a section of kind `runs`.
constexpr std::size_t run_bytes(std::size_t tokens) noexcept {
  return sizeof(std::uint64_t) + sizeof(std::uint32_t) + tokens * sizeof(std::uint32_t) +
         (tokens + tokens_per_use_count - 1) / tokens_per_use_count;
}

/// A view of a run in the bytes of a snapshot: the name of its sequence, its words, and one use count for every 32
/// words (the last group may be smaller).
class RunView {
 public:
  [[nodiscard]] constexpr std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return words_.size() / sizeof(std::uint32_t); }
  [[nodiscard]] constexpr HistoryWord word(std::size_t i) const noexcept {
    REPRISE_EXPECTS(i < size());
    return HistoryWord::from_bits(load_little<std::uint32_t>(words_.data() + i * sizeof(std::uint32_t)));
  }
  /// Returns the use count of the tokens from 32 * i on.
  [[nodiscard]] constexpr std::uint8_t use_count(std::size_t i) const noexcept {
    REPRISE_EXPECTS(i < use_counts_.size());
    return std::to_integer<std::uint8_t>(use_counts_[i]);
  }

 private:
  template <class Visit>
  friend Result<void> for_each_run(SnapshotReader::Cursor section, Visit visit) noexcept;
  constexpr RunView(std::uint64_t sequence, std::span<const std::byte> words,
                    std::span<const std::byte> use_counts) noexcept
      : sequence_(sequence), words_(words), use_counts_(use_counts) {}

  std::uint64_t sequence_;
  std::span<const std::byte> words_;
  std::span<const std::byte> use_counts_;
};

/// Writes a run of a history, which needs run_bytes() bytes, into the section begun last. Requires a section of kind
/// `runs`.
template <class History>
void write_run(SnapshotWriter& writer, const History& history, const typename History::HistoryRun& run) noexcept {
  writer.put(run.sequence);
  writer.put(static_cast<std::uint32_t>(run.size));
  typename History::Slot slot = run.first;
  for (std::size_t i = 0; i < run.size; ++i, slot = history.after(slot)) writer.put(history.word(slot).bits());
  slot = run.first;
  for (std::size_t i = 0; i < run.size; ++i, slot = history.after(slot))
    if (i % tokens_per_use_count == 0) writer.put(history.use_count(slot));
}

/// Calls visit(RunView) for the runs of a section of kind `runs`, in the order in which they are stored. For
/// all-or-nothing semantics, call it twice: first to validate, then to apply.
///
/// Error: snapshot_forged (`value`: the offset of the run in the section, `limit`: the section's kind). A run is
/// refused if its bytes are incomplete, if it has no tokens, or if it has a word without a token. Does not call visit
/// for that run or any later one.
///
/// Cost: a pass over the words, plus the cost of the visits; no allocation.
template <class Visit>
[[nodiscard]] Result<void> for_each_run(SnapshotReader::Cursor section, Visit visit) noexcept {
  while (section.left() != 0) {
    const Error forged = forged_section(section.offset(), SectionKind::runs);
    const auto sequence = section.take<std::uint64_t>();
    const auto size = section.take<std::uint32_t>();
    if (!sequence || !size || *size == 0 || *size > section.left() / sizeof(std::uint32_t)) return forged;
    const auto words = section.take_bytes(*size * sizeof(std::uint32_t));
    const auto use_counts = section.take_bytes((std::size_t{*size} + tokens_per_use_count - 1) / tokens_per_use_count);
    if (!words || !use_counts) return forged;
    const RunView run(*sequence, *words, *use_counts);
    for (std::size_t i = 0; i < run.size(); ++i)
      if (static_cast<std::uint32_t>(run.word(i).token()) == HistoryWord::most_tokens) return forged;
    visit(run);
  }
  return {};
}

/// Validates a section of kind `runs`. Errors: those of for_each_run(), and token_out_of_range if the largest token
/// (`value`) is not below `vocabulary` (`limit`).
[[nodiscard]] inline Result<void> check_runs(SnapshotReader::Cursor runs, std::uint32_t vocabulary) noexcept {
  std::uint32_t needed = 0;
  const auto valid = for_each_run(runs, [&](const RunView& run) {
    for (std::size_t i = 0; i < run.size(); ++i)
      needed = std::max(needed, static_cast<std::uint32_t>(run.word(i).token()) + 1);
  });
  if (!valid) return valid.error();
  if (needed > vocabulary)
    return Error{ErrorCode::token_out_of_range,
                 "the snapshot has tokens outside HistoryOptions::vocabulary: load the one that was saved with this "
                 "model, from a source that you trust",
                 needed - 1, vocabulary};
  return {};
}

}  // namespace detail

/// Returns the number of bytes that save_history() needs. Cost: reads every segment once. Threads: as for
/// save_history().
template <class History>
[[nodiscard]] std::size_t snapshot_bytes_of(const History& history) noexcept {
  std::size_t length = 0;
  history.for_each_run([&](const auto& run) { length += detail::run_bytes(run.size); });
  return snapshot_bytes({calibration_bytes, length});
}

/// Writes the sections of save_history() into a snapshot that has further sections, for example those of
/// cost_snapshot.hpp. The sections of save_history() take snapshot_bytes_of(history) - snapshot_bytes({}) bytes.
/// Requires that the writer has no section of kind `calibration` or `runs` yet. Threads: as for save_history().
template <class History>
void write_history(SnapshotWriter& writer, const History& history, const CalibrationState& calibration) noexcept {
  write_calibration(writer, calibration);
  writer.begin_section(SectionKind::runs);
  history.for_each_run([&](const auto& run) { detail::write_run(writer, history, run); });
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
template <class History>
[[nodiscard]] Result<std::span<const std::byte>> save_history(std::span<std::byte> room, std::uint64_t tokenizer,
                                                              const History& history,
                                                              const CalibrationState& calibration) noexcept {
  SnapshotWriter writer(room, tokenizer);
  write_history(writer, history, calibration);
  return writer.finish();
}

namespace detail {

/// Refuses bytes as load_history() does. Otherwise, returns their reader, and writes their calibration if they have
/// one.
[[nodiscard]] inline Result<SnapshotReader> check_history(std::span<const std::byte> bytes, std::uint64_t tokenizer,
                                                          std::uint32_t vocabulary,
                                                          CalibrationState& calibration) noexcept {
  const auto reader = SnapshotReader::open(bytes, tokenizer);
  if (!reader) return reader;
  if (const auto runs = reader->section(SectionKind::runs))
    if (const auto valid = check_runs(*runs, vocabulary); !valid) return valid.error();
  if (const auto section = reader->section(SectionKind::calibration)) {
    const auto learned = read_calibration(*section);
    if (!learned) return learned.error();
    calibration = *learned;
  }
  return reader;
}
/// Adds the text of a snapshot that check_history() has accepted.
template <class History>
void restore_history(const SnapshotReader& reader, History& history) noexcept {
  const auto runs = reader.section(SectionKind::runs);
  if (!runs) return;
  const auto restore = [&](const RunView& run) {
    history.begin_sequence(run.sequence());
    for (std::size_t i = 0; i < run.size(); ++i) {
      const HistoryWord word = run.word(i);
      history.restore(word.token(), word.origin(), run.use_count(i / tokens_per_use_count));
    }
  };
  history.end_sequence();
  static_cast<void>(for_each_run(*runs, restore));  // cannot fail, because check_runs() has accepted the runs
  history.end_sequence();
}

}  // namespace detail

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
template <class History>
[[nodiscard]] Result<void> load_history(std::span<const std::byte> bytes, std::uint64_t tokenizer, History& history,
                                        CalibrationState& calibration) noexcept {
  const auto reader = detail::check_history(bytes, tokenizer, history.options().vocabulary, calibration);
  if (!reader) return reader.error();
  detail::restore_history(*reader, history);
  return {};
}

}}  // namespace reprise
