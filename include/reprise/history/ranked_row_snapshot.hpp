// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/table_section.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/index/ranked_rows.hpp"

/// \file Saves a table of ranked rows as a section of a snapshot, and loads it. docs/formats.md documents every byte.
///
/// The section holds the table line by line. Only a table with the same key and number of lines can load it. It does
/// not hold the key. However, the places of known contexts depend on the key: anyone who reads the section can find the
/// key with about 2^32 attempts. Protect the file like the conversations in it.

namespace reprise::inline v0 {

namespace detail {

/// The rules of a section of kind `ranked_rows`: a line is the set of ranks that have a token, then the tag and the
/// tokens if there is a token.
struct RankedRowSection {
  static constexpr SectionKind kind = SectionKind::ranked_rows;

  [[nodiscard]] static std::size_t bytes_of(const RankedLine& line) noexcept {
    const auto tokens =
        line.ranking.tokens.size() -
        static_cast<std::size_t>(std::count(line.ranking.tokens.begin(), line.ranking.tokens.end(), Ranking::none));
    return tokens == 0 ? 1 : 1 + sizeof(std::uint16_t) + tokens * sizeof(std::uint32_t);
  }
  static void put_line(SnapshotWriter& writer, const RankedRows& table, std::size_t line) noexcept {
    const RankedLine row = table.line(line);
    unsigned ranks = 0;
    for (std::size_t rank = 0; rank < Ranking::most; ++rank)
      ranks |= row.ranking.tokens[rank] == Ranking::none ? 0U : 1U << rank;
    writer.put(static_cast<std::uint8_t>(ranks));
    if (ranks == 0) return;
    writer.put(row.tag);
    for (const Token token : row.ranking.tokens)
      if (token != Ranking::none) writer.put(token);
  }
  [[nodiscard]] static std::optional<RankedLine> take_line(SnapshotCursor& section) noexcept {
    RankedLine line;
    const auto ranks = section.take<std::uint8_t>();
    if (!ranks) return std::nullopt;
    if (*ranks == 0) return line;
    const auto tag = section.take<std::uint16_t>();
    if (!tag) return std::nullopt;
    line.tag = *tag;
    for (std::size_t rank = 0; rank < Ranking::most; ++rank) {
      if ((*ranks >> rank & 1) == 0) continue;
      const auto token = section.take<Token>();
      if (!token || *token < 0) return std::nullopt;
      line.ranking.tokens[rank] = *token;
    }
    return line;
  }
  [[nodiscard]] static std::uint32_t vocabulary_of(const RankedLine& line) noexcept {
    const Token largest = *std::max_element(line.ranking.tokens.begin(), line.ranking.tokens.end());
    return static_cast<std::uint32_t>(largest) + 1;  // 0 for Ranking::none
  }
};

}  // namespace detail

/// Returns the length in bytes of the contents of a section of kind `ranked_rows`, for snapshot_bytes(). Cost: reads
/// the table once. Threads: as for write_ranked_rows().
[[nodiscard]] inline std::size_t ranked_row_bytes(const RankedRows& table) noexcept {
  std::size_t bytes = detail::table_header_bytes;
  for (std::size_t line = 0; line < table.lines(); ++line)
    bytes += detail::RankedRowSection::bytes_of(table.line(line));
  return bytes;
}

/// Writes a table as a section of kind `ranked_rows`, whose contents are ranked_row_bytes() long. Call both functions
/// on the writer's thread, or while nobody writes to the table. Cost: reads the table once; no allocation.
inline void write_ranked_rows(SnapshotWriter& writer, const RankedRows& table) noexcept {
  detail::write_table<detail::RankedRowSection>(writer, table);
}

/// Takes over the rows in a snapshot, like RankedRows::merge(): they replace the rows in the same lines of the table.
/// Any bytes are either loaded or refused. If they are refused, nothing changes. Errors:
///
///  * no_such_section: the snapshot has no section of kind `ranked_rows`.
///  * other_table: the section was saved from a table with a different key or number of lines (`value`: its lines,
///    `limit`: the lines of this table).
///  * snapshot_forged: the contents of the section break a rule of the format (`value`: an offset in the section,
///    `limit`: the section's kind).
///  * token_out_of_range: the largest token (`value`) is not below RankedRowsOptions::vocabulary (`limit`).
///
/// A forged section with valid contents can only cost speed: the target rejects wrong drafts. Set
/// RankedRowsOptions::vocabulary; otherwise, drafts can contain any token.
///
/// Cost: two passes over the section; no allocation. Threads: the rules of RankedRows::add() apply.
[[nodiscard]] inline Result<void> load_ranked_rows(const SnapshotReader& reader, RankedRows& table) noexcept {
  return detail::load_table<detail::RankedRowSection>(reader, table);
}

}  // namespace reprise
