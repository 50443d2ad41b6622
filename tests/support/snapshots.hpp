// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reprise/core/result.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"
#include "reprise/history/detail/byte_format.hpp"
#include "reprise/history/detail/segments.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/table_snapshots.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

// The conformance kit has a testing::detail of its own, which hides the library's if both are included.
namespace detail {
using namespace reprise::detail;
}

using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t some_tokenizer = 0xfedcba9876543210;

/// A run in memory.
struct StoredRun {
  std::uint64_t id = 0;
  std::vector<std::uint32_t> words;
  std::vector<std::uint8_t> use_counts;

  [[nodiscard]] std::size_t size() const { return words.size(); }
  friend bool operator==(const StoredRun&, const StoredRun&) = default;
};
inline StoredRun stored(const detail::RunView& view) {
  StoredRun run = {view.sequence(), {}, {}};
  for (std::size_t i = 0; i < view.size(); ++i) run.words.push_back(view.word(i).bits());
  for (std::size_t i = 0; i * detail::tokens_per_use_count < view.size(); ++i)
    run.use_counts.push_back(view.use_count(i));
  return run;
}

/// Writes a run into the section begun last.
inline void write_run(SnapshotWriter& writer, const detail::RunView& run) {
  writer.put(run.sequence());
  writer.put(static_cast<std::uint32_t>(run.size()));
  for (std::size_t i = 0; i < run.size(); ++i) writer.put(run.word(i).bits());
  for (std::size_t i = 0; i * detail::tokens_per_use_count < run.size(); ++i) writer.put(run.use_count(i));
}
inline void write_run(SnapshotWriter& writer, const StoredRun& run) {
  writer.put(run.id);
  writer.put(static_cast<std::uint32_t>(run.size()));
  for (const std::uint32_t word : run.words) writer.put(word);
  for (const std::uint8_t count : run.use_counts) writer.put(count);
}

/// Returns a run of arbitrary tokens.
inline StoredRun random_run(Random& random, std::size_t tokens) {
  constexpr std::uint32_t no_token = detail::HistoryWord::most_tokens;
  StoredRun run = {random.next(), {}, {}};
  for (std::size_t i = 0; i < tokens; ++i) {
    const auto word = static_cast<std::uint32_t>(random.next());
    run.words.push_back((word & no_token) == no_token ? 0 : word);
    if (i % detail::tokens_per_use_count == 0) run.use_counts.push_back(static_cast<std::uint8_t>(random.next()));
  }
  return run;
}

/// Returns a state that differs from a fresh one in every number.
inline CalibrationState taught_state(std::uint64_t seed) {
  Random random(seed);
  CalibrationState state;
  detail::for_each_number(state, [&]<class T>(T& number) { number = static_cast<T>(random.below(20'000) + 1); });
  return state;
}

/// Returns a snapshot with `runs` runs of increasing length, and with a calibration unless it is to be small.
inline Bytes sample_snapshot(std::size_t runs, bool with_calibration = true, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<StoredRun> all;
  std::size_t length = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    all.push_back(random_run(random, 1 + i * 7));
    length += detail::run_bytes(all.back().size());
  }
  Bytes bytes(with_calibration ? snapshot_bytes({calibration_bytes, length}) : snapshot_bytes({length}));
  SnapshotWriter writer(bytes, some_tokenizer);
  if (with_calibration) write_calibration(writer, taught_state(seed));
  writer.begin_section(SectionKind::runs);
  for (const StoredRun& run : all) write_run(writer, run);
  static_cast<void>(writer.finish());
  return bytes;
}

/// Corrects the checksum of the header.
inline void repair_header(Bytes& bytes) {
  detail::store_little(detail::crc64(std::span(bytes).first(40)), bytes.data() + 40);
}

/// Makes a snapshot of any bytes: corrects the magic, sizes and checksums, and leaves the contents of the sections. An
/// attacker can do the same.
inline void repair(Bytes& bytes) {
  using Format = detail::SnapshotFormat;
  bytes.resize(std::max(bytes.size(), Format::header_bytes));
  std::size_t at = Format::header_bytes;
  std::uint32_t sections = 0;
  for (; bytes.size() - at >= Format::section_header_bytes && sections < Format::most_sections; ++sections) {
    std::byte* header = bytes.data() + at;
    const std::size_t room = bytes.size() - at - Format::section_header_bytes;
    const std::uint64_t length = std::min<std::uint64_t>(detail::load_little<std::uint64_t>(header + 4), room);
    detail::store_little(detail::load_little<std::uint32_t>(header) % 7, header);
    detail::store_little(length, header + 4);
    const std::span<const std::byte> all(bytes);
    detail::store_little(detail::crc64(all.subspan(at + Format::section_header_bytes, length)), header + 12);
    detail::store_little(detail::crc64(all.subspan(at, 20)), header + 20);
    at += Format::section_header_bytes + length;
  }
  bytes.resize(at);
  for (std::size_t i = 0; i < Format::magic.size(); ++i) bytes[i] = std::byte{Format::magic[i]};
  detail::store_little(Format::byte_order, bytes.data() + 8);
  detail::store_little(Format::version, bytes.data() + 12);
  detail::store_little(std::uint32_t{sizeof(Token)}, bytes.data() + 16);
  detail::store_little(sections, bytes.data() + 20);
  detail::store_little(some_tokenizer, bytes.data() + 24);
  detail::store_little(std::uint64_t{at}, bytes.data() + 32);
  repair_header(bytes);
}

/// Counts of the results over many inputs.
struct SnapshotCoverage {
  std::size_t refused = 0;
  std::size_t opened = 0;
  std::size_t calibrations = 0;
  std::size_t forged_contents = 0;
  std::size_t runs = 0;
  std::size_t costs = 0;
  std::size_t next_tokens = 0;  ///< tables without rankings
  std::size_t rankings = 0;     ///< tables with rankings
};

/// Reads the costs of a snapshot. They must be refused, or be written again with the same bytes. Returns a fault, or an
/// empty string.
inline std::string read_any_costs(const SnapshotReader& reader, SnapshotCoverage& coverage) {
  auto section = reader.section(SectionKind::costs);
  if (!section) return load_costs(reader, "").error().code == ErrorCode::no_such_section ? "" : "costs from nowhere";
  const auto stored = detail::read_costs(*section);
  if (!stored) {
    ++coverage.forged_contents;
    return stored.error().code == ErrorCode::snapshot_forged ? "" : "costs refused with another error";
  }
  ++coverage.costs;
  const std::string engine(stored->engine);
  const auto loaded = load_costs(reader, engine);
  if (!loaded || *loaded != stored->prior) return "costs that are loaded otherwise";
  if (load_costs(reader, engine + "x").error().code != ErrorCode::other_engine) return "costs of another engine";
  Bytes again(snapshot_bytes({cost_bytes(*loaded, engine)}));
  SnapshotWriter writer(again, some_tokenizer);
  if (!save_costs(*loaded, engine, writer) || !writer.finish()) return "costs that cannot be saved again";
  const auto rewritten = std::span<const std::byte>(again).subspan(snapshot_bytes({0}));
  return std::ranges::equal(rewritten, *section->take_bytes(section->left())) ? "" : "costs that are written otherwise";
}

/// The key of the tables into which read_any_table() loads.
inline constexpr std::uint64_t some_table_key = 0x0f1e2d3c4b5a6978;

/// Loads a section of kind `next_tokens` into two empty tables of the stored size, unless it is large: without rankings
/// and with them. Both must refuse it with the same error, or one of them must be written again with the same bytes.
/// Returns a fault, or an empty string.
inline std::string read_any_table(const SnapshotReader& reader, SnapshotCoverage& coverage) {
  auto section = reader.section(SectionKind::next_tokens);
  std::uint64_t lines = 1;
  if (section) lines = SnapshotReader::Cursor(*section).take<std::uint64_t>().value_or(1);
  const auto room = static_cast<std::size_t>(NextTokens::line_bytes * (1 + (lines - 1) % 256));
  const NextTokenOptions options{.max_bytes = room, .key = some_table_key, .vocabulary = 1000};
  auto counts = NextTokens::make(options);
  auto both = NextTokens::make({.max_bytes = 2 * room, .key = options.key, .vocabulary = 1000, .rankings = true});
  if (!counts || !both) return "no memory";
  const auto loaded = load_next_tokens(reader, *both);
  const auto loaded_counts = load_next_tokens(reader, *counts);
  if (loaded.has_value() != loaded_counts.has_value()) return "a table that is loaded only with rankings, or without";
  if (!loaded) {
    if (next_token_bytes(*both) != detail::table_header_bytes + 2 * both->lines()) return "a table from a refusal";
    if (next_token_bytes(*counts) != detail::table_header_bytes + counts->lines()) return "counts from a refusal";
    const Error& error = loaded.error();
    if (error.code != loaded_counts.error().code || error.value != loaded_counts.error().value)
      return "two errors of one section";
    if (!section) return error.code == ErrorCode::no_such_section ? "" : "a table from nowhere";
    if (error.code == ErrorCode::snapshot_forged) ++coverage.forged_contents;
    const bool expected = error.code == ErrorCode::snapshot_forged || error.code == ErrorCode::other_table ||
                          error.code == ErrorCode::token_out_of_range;
    return expected ? "" : "a table refused with another error";
  }
  const bool ranked = section->left() != next_token_bytes(*counts);
  ++(ranked ? coverage.rankings : coverage.next_tokens);
  const NextTokens& whole = ranked ? *both : *counts;
  Bytes again(snapshot_bytes({next_token_bytes(whole)}));
  SnapshotWriter writer(again, some_tokenizer);
  write_next_tokens(writer, whole);
  if (!writer.finish()) return "a table that cannot be saved again";
  const auto rewritten = std::span<const std::byte>(again).subspan(snapshot_bytes({0}));
  if (!std::ranges::equal(rewritten, *section->take_bytes(section->left()))) return "a table that is written otherwise";
  for (std::size_t line = 0; line < counts->lines(); ++line)
    if (counts->words(NextTokens::Part::counts, line) != both->words(NextTokens::Part::counts, line))
      return "counts that depend on rankings";
  return {};
}

/// Reads arbitrary bytes as a snapshot, to the end. They must be valid or be refused with a snapshot error. `repaired`:
/// their checksums are correct. Returns a fault, or an empty string.
inline std::string read_as_snapshot(std::span<const std::byte> bytes, bool repaired, SnapshotCoverage& coverage) {
  const auto fault = [&](const Error& error, bool contents) -> std::string {
    const ErrorCode least = contents ? ErrorCode::snapshot_forged : ErrorCode::not_a_snapshot;
    if (error.code < least || error.code > ErrorCode::snapshot_forged) return "an error that is none of a snapshot";
    if (repaired && error.code != ErrorCode::snapshot_forged) return "checksums were repaired and found wrong";
    return error.message.size() < 40 ? "an error without a sentence" : "";
  };
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  ++(reader ? coverage.opened : coverage.refused);
  if (!reader) return fault(reader.error(), false);
  if (const auto section = reader->section(SectionKind::calibration)) {
    const auto state = read_calibration(*section);
    if (state && reprise::detail::TokenCalibrator(*state).state() != *state)
      return "a state beyond the bounds of learning";
    if (!state && !fault(state.error(), true).empty()) return fault(state.error(), true);
    ++(state ? coverage.calibrations : coverage.forged_contents);
  }
  if (std::string wrong = read_any_costs(*reader, coverage); !wrong.empty()) return wrong;
  if (std::string wrong = read_any_table(*reader, coverage); !wrong.empty()) return wrong;
  if (auto section = reader->section(SectionKind::runs)) {
    Bytes again(snapshot_bytes({section->left()}));
    SnapshotWriter writer(again, some_tokenizer);
    writer.begin_section(SectionKind::runs);
    std::size_t length = 0;
    const auto read = detail::for_each_run(*section, [&](const detail::RunView& run) {
      write_run(writer, run);
      length += detail::run_bytes(run.size());
      ++coverage.runs;
    });
    if (!read && !fault(read.error(), true).empty()) return fault(read.error(), true);
    if (!read) ++coverage.forged_contents;
    // Even if a run is forged, the runs before it are read.
    if (length != (read ? section->left() : read.error().value))
      return "runs of another length than they were read with";
    const auto rewritten = std::span<const std::byte>(again).subspan(snapshot_bytes({0}), length);
    if (!std::ranges::equal(rewritten, *section->take_bytes(length))) return "runs that are written otherwise";
  }
  return {};
}

/// The body of a fuzz target and of a test. It reads the bytes as they are, and again with correct checksums.
inline std::string read_as_any_snapshot(std::span<const std::byte> bytes, SnapshotCoverage& coverage) {
  std::string fault = read_as_snapshot(bytes, false, coverage);
  if (!fault.empty()) return fault;
  Bytes forged(bytes.begin(), bytes.end());
  repair(forged);
  fault = read_as_snapshot(forged, true, coverage);
  return fault.empty() ? fault : "with repaired checksums: " + fault;
}

/// Reads 5,000 snapshots, each one of `wholes` with up to three changes in its sections. Returns a fault, or an empty
/// string.
inline std::string read_damaged_snapshots(std::span<const Bytes> wholes, SnapshotCoverage& coverage) {
  Random random(5);
  for (int i = 0; i < 5000; ++i) {
    Bytes bytes = wholes[random.below(wholes.size())];
    for (std::size_t changes = random.below(4); changes > 0; --changes) {
      const std::size_t at = snapshot_bytes({}) + random.below(bytes.size() - snapshot_bytes({}));
      if (random.chance(80))
        bytes[at] = static_cast<std::byte>(random.chance(50) ? random.below(4) : random.next() & 255);
      else
        bytes.resize(std::max(at, snapshot_bytes({}) + 1));
    }
    const std::string fault = read_as_any_snapshot(bytes, coverage);
    if (!fault.empty()) return "case " + std::to_string(i) + ": " + fault;
  }
  return {};
}

/// Returns a valid snapshot whose only section has the first `length` bytes of the contents of the only section of
/// `whole`.
inline Bytes with_shorter_section(const Bytes& whole, SectionKind kind, std::size_t length) {
  Bytes bytes(snapshot_bytes({length}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(kind);
  for (std::size_t i = 0; i < length; ++i) writer.put(std::to_integer<std::uint8_t>(whole[snapshot_bytes({0}) + i]));
  static_cast<void>(writer.finish());  // `bytes` is large enough
  return bytes;
}

}  // namespace reprise::testing
