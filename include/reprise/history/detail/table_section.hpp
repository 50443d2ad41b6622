// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/core/result.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/index/detail/token_hash.hpp"

/// \file The rules that sections of tables have in common: next-token counts and ranked rows. A section begins with the
/// number of lines and a check of the key. Then the lines follow.

namespace reprise::inline v0::detail {

/// The length of the number of lines and the check of the key, in bytes.
inline constexpr std::size_t table_header_bytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

/// Returns 32 bits that differ between two keys with a probability of 1 - 2^-32. The key cannot be computed from them
/// alone, because 2^32 keys have the same bits.
[[nodiscard]] constexpr std::uint32_t key_check(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>((spread(key) ^ key) >> 32);
}

// The rules of one kind of section are the static members of a type, `Section`. It has a `kind`. put_line(writer,
// table, line) writes a line. take_line(cursor) reads it, and returns nullopt if a rule is broken. vocabulary_of(line)
// returns the number of tokens that the vocabulary must have for it.

/// Writes a table as a section.
template <class Section, class Table>
void write_table(SnapshotWriter& writer, const Table& table) noexcept {
  writer.begin_section(Section::kind);
  writer.put(std::uint64_t{table.lines()});
  writer.put(key_check(table.options().key));
  for (std::size_t line = 0; line < table.lines(); ++line) Section::put_line(writer, table, line);
}

/// Checks whether `table` can load a section. Errors: other_table, snapshot_forged and token_out_of_range, with the
/// values that load_next_tokens() documents.
template <class Section, class Table>
[[nodiscard]] Result<void> check_table(SnapshotReader::Cursor section, const Table& table) noexcept {
  const auto forged = [](std::size_t at) {
    return Error{ErrorCode::snapshot_forged,
                 "a table in the snapshot breaks the rules of the format, though its checksum is right: do not trust "
                 "where it comes from",
                 at, static_cast<std::uint64_t>(Section::kind)};
  };
  const auto lines = section.take<std::uint64_t>();
  const auto check = section.take<std::uint32_t>();
  if (!lines || !check || *lines > section.left()) return forged(0);  // a line has at least one byte
  if (*lines != table.lines() || *check != key_check(table.options().key))
    return Error{ErrorCode::other_table,
                 "the table in the snapshot has another key or size: make the table with the options that it was "
                 "saved with, or begin without its contents",
                 *lines, table.lines()};
  std::uint32_t needed = 0;
  for (std::size_t i = 0; i < table.lines(); ++i) {
    const std::size_t at = section.offset();
    const auto line = Section::take_line(section);
    if (!line) return forged(at);
    needed = std::max(needed, Section::vocabulary_of(*line));
  }
  if (section.left() != 0) return forged(section.offset());
  if (needed > table.options().vocabulary)
    return Error{ErrorCode::token_out_of_range,
                 "the snapshot has tokens outside the vocabulary of the table: load the one that was saved with this "
                 "model, from a source that you trust",
                 needed - 1, table.options().vocabulary};
  return {};
}

/// Merges the section of a snapshot into a table. Errors: no_such_section, and those of check_table(). After an error,
/// nothing has changed.
template <class Section, class Table>
[[nodiscard]] Result<void> load_table(const SnapshotReader& reader, Table& table) noexcept {
  auto section = reader.section(Section::kind);
  if (!section)
    return Error{ErrorCode::no_such_section,
                 "the snapshot has no table of this kind: give one to which it was written, or begin with an empty "
                 "table"};
  if (auto valid = check_table<Section>(*section, table); !valid) return valid;
  static_cast<void>(section->take_bytes(table_header_bytes));
  for (std::size_t line = 0; line < table.lines(); ++line)
    table.merge_line(line, *Section::take_line(*section));  // cannot fail, because the section has been checked
  return {};
}

}  // namespace reprise::detail
