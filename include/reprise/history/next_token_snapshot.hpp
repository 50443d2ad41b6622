// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/core/result.hpp"
#include "reprise/history/detail/table_section.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/index/next_token_counts.hpp"

/// \file Saves a table of next-token counts as a section of a snapshot, and loads it. docs/formats.md documents every
/// byte.
///
/// The section holds the words of the table line by line. Only a table with the same key and number of lines can load
/// it. It does not hold the key. However, the places of known contexts depend on the key: anyone who reads the
/// section can find the key with about 2^32 attempts. Protect the file like the conversations in it.

namespace reprise::inline v0 {

namespace detail {

/// The rules of a section of kind `next_tokens`: a line is its number of words, then the words, falling.
struct NextTokenSection {
  static constexpr SectionKind kind = SectionKind::next_tokens;

  static void put_line(SnapshotWriter& writer, const NextTokenCounts& table, std::size_t line) noexcept {
    NextTokenCounts::Words words = table.words(line);
    std::sort(words.begin(), words.end(), [](NextTokenWord a, NextTokenWord b) { return a.bits() > b.bits(); });
    const auto used = std::count_if(words.begin(), words.end(), [](NextTokenWord word) { return !word.empty(); });
    writer.put(static_cast<std::uint8_t>(used));
    for (const NextTokenWord word : words)
      if (!word.empty()) writer.put(word.bits());
  }
  [[nodiscard]] static std::optional<NextTokenCounts::Words> take_line(SnapshotCursor& section) noexcept {
    NextTokenCounts::Words words{};
    const auto count = section.take<std::uint8_t>();
    if (!count || *count > words.size() || section.left() < *count * sizeof(std::uint64_t)) return std::nullopt;
    for (std::size_t i = 0; i < *count; ++i) {
      words[i] = NextTokenWord::from_bits(*section.take<std::uint64_t>());
      if (!words[i].valid() || (i > 0 && words[i].bits() >= words[i - 1].bits())) return std::nullopt;
      for (std::size_t j = 0; j < i; ++j)
        if (words[i].same_key(words[j])) return std::nullopt;
    }
    const auto listed = [&](std::uint16_t tag) {
      return std::any_of(words.begin(), words.end(),
                         [tag](NextTokenWord word) { return word.has_tag(tag) && !word.is_unlisted(); });
    };
    for (const NextTokenWord word : words)
      if (!word.empty() && word.is_unlisted() && !listed(word.tag())) return std::nullopt;
    return words;
  }
  [[nodiscard]] static std::uint32_t vocabulary_of(const NextTokenCounts::Words& words) noexcept {
    std::uint32_t needed = 0;
    for (const NextTokenWord word : words)
      if (!word.empty() && !word.is_unlisted()) needed = std::max(needed, static_cast<std::uint32_t>(word.token()) + 1);
    return needed;
  }
};

}  // namespace detail

/// Returns the length in bytes of the contents of a section of kind `next_tokens`, for snapshot_bytes(). Cost: reads
/// the table once. Threads: as for write_next_tokens().
[[nodiscard]] inline std::size_t next_token_bytes(const NextTokenCounts& table) noexcept {
  std::size_t bytes = detail::table_header_bytes + table.lines();
  for (std::size_t line = 0; line < table.lines(); ++line)
    for (const detail::NextTokenWord word : table.words(line)) bytes += word.empty() ? 0 : sizeof(std::uint64_t);
  return bytes;
}

/// Writes a table as a section of kind `next_tokens`, whose contents are next_token_bytes() long. Call both functions
/// on the writer's thread, or while nobody writes to the table. Cost: reads the table once; no allocation.
inline void write_next_tokens(SnapshotWriter& writer, const NextTokenCounts& table) noexcept {
  detail::write_table<detail::NextTokenSection>(writer, table);
}

/// Adds the counts in a snapshot to a table, like NextTokenCounts::merge(); clear() the table first to replace its
/// counts. Any bytes are either loaded or refused. If they are refused, nothing changes. Errors:
///
///  * no_such_section: the snapshot has no section of kind `next_tokens`.
///  * other_table: the section was saved from a table with a different key or number of lines (`value`: its lines,
///    `limit`: the lines of this table).
///  * snapshot_forged: the contents of the section break a rule of the format (`value`: an offset in the section,
///    `limit`: the section's kind).
///  * token_out_of_range: the largest token (`value`) is not below NextTokenOptions::vocabulary (`limit`).
///
/// A forged section with valid contents can only cost speed: the target rejects wrong drafts. Set
/// NextTokenOptions::vocabulary; otherwise, drafts can contain any token.
///
/// Cost: two passes over the section; no allocation. Threads: the rules of NextTokenCounts::add() apply.
[[nodiscard]] inline Result<void> load_next_tokens(const SnapshotReader& reader, NextTokenCounts& table) noexcept {
  return detail::load_table<detail::NextTokenSection>(reader, table);
}

}  // namespace reprise
