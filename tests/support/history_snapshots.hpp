// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "support/snapshots.hpp"

namespace reprise::testing {

template <class Memory>
Bytes saved(const Memory& memory, const CalibrationState& calibration = {}) {
  Bytes bytes(snapshot_bytes_of(memory));
  if (!save_history(bytes, some_tokenizer, memory, calibration)) bytes.clear();
  return bytes;
}

/// Returns the texts of a snapshot with their ids, without their use counts.
inline std::vector<std::pair<std::uint64_t, std::vector<std::uint32_t>>> texts_in(std::span<const std::byte> bytes) {
  std::vector<std::pair<std::uint64_t, std::vector<std::uint32_t>>> texts;
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  if (!reader) return texts;
  static_cast<void>(detail::for_each_run(*reader->section(SectionKind::runs), [&](const detail::RunView& run) {
    texts.emplace_back(run.sequence(), stored(run).words);
  }));
  return texts;
}

/// The continuation at a place that ends like `end`: how the tokens before it agree, and the tokens after it.
struct Followed {
  std::uint32_t agreements = 0;
  std::vector<std::uint32_t> words;
  friend bool operator==(const Followed&, const Followed&) = default;
};
template <class Memory>
std::vector<Followed> followed(const Memory& memory, TokenSpan end, std::size_t most) {
  std::array<typename Memory::HistoryMatch, Memory::most_matches> found;
  std::vector<Followed> all;
  const std::size_t count = memory.find(end, found);
  for (const auto& match : std::span(found).first(count)) {
    Followed& next = all.emplace_back(Followed{match.agreements, {}});
    for (auto place = match.next; place != Memory::nowhere && next.words.size() < most; place = memory.after(place)) {
      if (memory.word(place).empty()) break;
      next.words.push_back(memory.word(place).bits());
    }
  }
  return all;
}

/// Returns a fault inside a memory, or an empty string.
template <class Memory>
std::string check_memory(const Memory& memory) {
  std::string fault;
  std::size_t tokens = 0;
  memory.for_each_run([&](const auto& run) {
    tokens += run.size;
    std::vector<Token> end;
    auto place = run.first;
    for (std::size_t i = 0; i < run.size; ++i, place = memory.after(place)) {
      if (place == Memory::nowhere || memory.word(place).empty()) {
        fault = "a run that is shorter than it was said";
        return;
      }
      end.push_back(memory.word(place).token());
      if (static_cast<std::uint32_t>(end.back()) >= memory.options().vocabulary)
        fault = "a token outside the vocabulary";
      for (const Followed& next : followed(memory, end, memory.capacity() + 1))
        if (next.words.empty() || next.words.size() > memory.capacity()) fault = "a copy without an end, or empty";
    }
    if (place != Memory::nowhere && !memory.word(place).empty()) fault = "a run that is longer than it was said";
  });
  return tokens > memory.capacity() ? "more tokens than there is room for" : fault;
}

/// Loads arbitrary bytes into a memory with content. All or nothing must be loaded, and the result can be saved again.
/// Returns a fault, or an empty string.
template <class Memory>
std::string load_into(const HistoryOptions& options, std::span<const std::byte> bytes, bool repaired) {
  auto memory = Memory::make(options);
  auto again = Memory::make(options);
  if (!memory || !again) return "no memory";
  const std::vector<Token> known = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  memory->begin_sequence(7);
  memory->append(known, Origin::output);
  memory->end_sequence();
  CalibrationState calibration = taught_state(9);
  const Bytes before = saved(*memory, calibration);
  const HistoryStore::Counts counts = memory->counts();
  const auto loaded = load_history(bytes, some_tokenizer, *memory, calibration);
  if (!loaded) {
    const ErrorCode code = loaded.error().code;
    if (repaired && code != ErrorCode::snapshot_forged && code != ErrorCode::token_out_of_range)
      return "checksums were repaired and found wrong";
    if (code == ErrorCode::token_out_of_range && options.vocabulary == HistoryOptions().vocabulary)
      return "tokens refused for a vocabulary that was not given";
    if (saved(*memory, calibration) != before || memory->counts() != counts)
      return "a memory changed by what it refused";
    return {};
  }
  if (memory->memory_bytes() > options.max_bytes) return "more memory than allowed";
  if (reprise::detail::TokenCalibrator(calibration).state() != calibration)
    return "a state beyond the bounds of learning";
  if (std::string fault = check_memory(*memory); !fault.empty()) return fault;
  const Bytes after = saved(*memory, calibration);
  CalibrationState other;
  if (!load_history(after, some_tokenizer, *again, other)) return "what was loaded and saved cannot be loaded";
  if (other != calibration || saved(*again, other) != after) return "what was saved is loaded otherwise";
  return {};
}

/// The body of a fuzz target and of a test. It loads the bytes as they are, and again with correct checksums, into
/// memories with and without room for them, and with a small vocabulary.
inline std::string load_any_snapshot(std::span<const std::byte> bytes) {
  Bytes forged(bytes.begin(), bytes.end());
  repair(forged);
  std::string fault;
  for (const bool repaired : {false, true}) {
    const std::span<const std::byte> given = repaired ? std::span<const std::byte>(forged) : bytes;
    for (const std::size_t max_bytes : {std::size_t{1500}, std::size_t{40'000}})
      if (fault.empty()) fault = load_into<HistoryStore>({.max_bytes = max_bytes}, given, repaired);
    if (fault.empty()) fault = load_into<HistoryStore>({.max_bytes = 1500, .vocabulary = 500}, given, repaired);
    using Small = detail::BasicHistoryStore<std::uint8_t, 8>;
    if (fault.empty()) fault = load_into<Small>({.max_bytes = Small::most_bytes}, given, repaired);
    if (!fault.empty()) return repaired ? "with repaired checksums: " + fault : fault;
  }
  return fault;
}

}  // namespace reprise::testing
