// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
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

/// Begins the section of a table with this number of lines.
inline void begin_table(SnapshotWriter& writer, SectionKind kind, std::size_t lines, std::uint64_t key) noexcept {
  writer.begin_section(kind);
  writer.put(std::uint64_t{lines});
  writer.put(key_check(key));
}

/// Checks a section for a table with this number of lines, key and vocabulary. `take_line` reads one line and returns
/// the number of tokens that the vocabulary must have for it, or nullopt if a rule is broken. Errors: other_table,
/// snapshot_forged and token_out_of_range, with the values that load_next_tokens() documents.
template <class TakeLine>
[[nodiscard]] Result<void> check_table(SnapshotCursor section, SectionKind kind, std::size_t lines, std::uint64_t key,
                                       std::uint32_t vocabulary, TakeLine&& take_line) noexcept {
  const auto forged = [kind](std::size_t at) {
    return Error{ErrorCode::snapshot_forged,
                 "a table in the snapshot breaks the rules of the format, though its checksum is right: do not trust "
                 "where it comes from",
                 at, static_cast<std::uint64_t>(kind)};
  };
  const auto stored_lines = section.take<std::uint64_t>();
  const auto check = section.take<std::uint32_t>();
  if (!stored_lines || !check || *stored_lines > section.left()) return forged(0);  // a line has at least one byte
  if (*stored_lines != lines || *check != key_check(key))
    return Error{ErrorCode::other_table,
                 "the table in the snapshot has another key or size: make the table with the options that it was "
                 "saved with, or begin without its contents",
                 *stored_lines, lines};
  std::uint32_t needed = 0;
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t at = section.offset();
    const std::optional<std::uint32_t> tokens = take_line(section);
    if (!tokens) return forged(at);
    needed = std::max(needed, *tokens);
  }
  if (section.left() != 0) return forged(section.offset());
  if (needed > vocabulary)
    return Error{ErrorCode::token_out_of_range,
                 "the snapshot has tokens outside the vocabulary of the table: load the one that was saved with this "
                 "model, from a source that you trust",
                 needed - 1, vocabulary};
  return {};
}

}  // namespace reprise::detail
