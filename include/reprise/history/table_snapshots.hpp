// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/index/detail/next_token_line.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/next_tokens.hpp"

/// \file Saves a table of next tokens as a section of a snapshot, and loads it. docs/formats.md documents every byte.
///
/// The section holds the table line by line. Only a table with the same key and number of lines can load it. It does
/// not hold the key. However, the places of known contexts depend on the key: anyone who reads the section can find the
/// key with about 2^32 attempts. Protect the file like the conversations in it.
namespace reprise { inline namespace v0 {

namespace detail {

/// The length of the number of lines and the check of the key, in bytes.
inline constexpr std::size_t table_header_bytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);

/// Returns 32 bits that differ between two keys with a probability of 1 - 2^-32. The key cannot be computed from them
/// alone, because 2^32 keys have the same bits.
[[nodiscard]] constexpr std::uint32_t key_check(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>((spread(key) ^ key) >> 32);
}

/// Writes a line of counts: its number of words, then the words, falling.
inline void put_counts(SnapshotWriter& writer, NextTokenLine words) noexcept {
  std::sort(words.begin(), words.end(), [](NextTokenWord a, NextTokenWord b) { return a.bits() > b.bits(); });
  const auto used = std::count_if(words.begin(), words.end(), [](NextTokenWord word) { return !word.empty(); });
  writer.put(static_cast<std::uint8_t>(used));
  for (const NextTokenWord word : words)
    if (!word.empty()) writer.put(word.bits());
}
/// Reads a line of counts. Returns nullopt if it breaks a rule.
[[nodiscard]] inline std::optional<NextTokenLine> take_counts(SnapshotReader::Cursor& section) noexcept {
  NextTokenLine words{};
  const auto count = section.take<std::uint8_t>();
  if (!count || *count > words.size() || section.left() < *count * sizeof(std::uint64_t)) return std::nullopt;
  for (std::size_t i = 0; i < *count; ++i) {
    words[i] = NextTokenWord::from_bits(*section.take<std::uint64_t>());
    if (!words[i].valid() || (i > 0 && words[i].bits() >= words[i - 1].bits())) return std::nullopt;
    for (std::size_t j = 0; j < i; ++j)
      if (words[i].same_key(words[j])) return std::nullopt;
  }
  for (const NextTokenWord word : words)
    if (!word.empty() && word.is_unlisted() && listed_tokens(words, word.tag()) == 0) return std::nullopt;
  return words;
}

/// Writes a line with a ranking: the set of ranks that have a token, then the tag and the tokens if there is a token.
inline void put_ranking(SnapshotWriter& writer, const NextTokenLine& line) noexcept {
  const NextTokenLine words = of_one_context(line);
  unsigned ranks = 0;
  for (std::size_t rank = 0; rank < words.size(); ++rank) ranks |= words[rank].empty() ? 0U : 1U << rank;
  writer.put(static_cast<std::uint8_t>(ranks));
  const auto first = static_cast<std::size_t>(std::countr_zero(ranks));
  if (ranks != 0) writer.put(words[first].tag());
  for (const NextTokenWord word : words)
    if (!word.empty()) writer.put(word.token());
}
/// Reads a line with a ranking. Returns nullopt if it breaks a rule.
[[nodiscard]] inline std::optional<NextTokenLine> take_ranking(SnapshotReader::Cursor& section) noexcept {
  NextTokenLine words{};
  const auto ranks = section.take<std::uint8_t>();
  if (!ranks || *ranks == 0) return ranks ? std::optional(words) : std::nullopt;
  const auto tag = section.take<std::uint16_t>();
  if (!tag) return std::nullopt;
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if ((*ranks >> rank & 1) == 0) continue;
    const auto token = section.take<Token>();
    if (!token || static_cast<std::uint32_t>(*token) >= NextTokenWord::most_tokens) return std::nullopt;
    words[rank] = {*tag, *token, 1};
  }
  return words;
}

/// Reads a section for a table, and calls `visit(part, line, words)` for each line. Errors: other_table,
/// snapshot_forged and token_out_of_range, with the values that load_next_tokens() documents.
template <class Visit>
[[nodiscard]] Result<void> read_next_tokens(SnapshotReader::Cursor section, const NextTokens& table,
                                            Visit&& visit) noexcept {
  const auto forged = [](std::size_t at) { return forged_section(at, SectionKind::next_tokens); };
  const auto lines = section.take<std::uint64_t>();
  const auto check = section.take<std::uint32_t>();
  if (!lines || !check || *lines > section.left()) return forged(0);  // a line has at least one byte
  if (*lines != table.lines() || *check != key_check(table.options().key))
    return Error{ErrorCode::other_table,
                 "the table in the snapshot has another key or size: make the table with the options that it was "
                 "saved with, or begin without its contents",
                 *lines, table.lines()};
  std::uint32_t needed = 0;
  for (const NextTokens::Part part : NextTokens::parts) {
    if (part == NextTokens::Part::rankings && section.left() == 0) break;  // saved without rankings
    for (std::size_t i = 0; i < table.lines(); ++i) {
      const std::size_t at = section.offset();
      const auto words = part == NextTokens::Part::counts ? take_counts(section) : take_ranking(section);
      if (!words) return forged(at);
      for (const NextTokenWord word : *words)
        if (!word.empty() && !word.is_unlisted())
          needed = std::max(needed, static_cast<std::uint32_t>(word.token()) + 1);
      visit(part, i, *words);
    }
  }
  if (section.left() != 0) return forged(section.offset());
  if (needed > table.options().vocabulary)
    return Error{ErrorCode::token_out_of_range,
                 "the snapshot has tokens outside the vocabulary of the table: load the one that was saved with this "
                 "model, from a source that you trust",
                 needed - 1, table.options().vocabulary};
  return {};
}

/// Checks whether a table can load a section.
[[nodiscard]] inline Result<void> check_next_tokens(SnapshotReader::Cursor section, const NextTokens& table) noexcept {
  return read_next_tokens(section, table, [](auto...) {});
}

}  // namespace detail

/// Writes a table as a section of kind `next_tokens`, whose contents are next_token_bytes() long. Call both functions
/// on the writer's thread, or while nobody writes to the table. Cost: reads the table once; no allocation.
inline void write_next_tokens(SnapshotWriter& writer, const NextTokens& table) noexcept {
  writer.begin_section(SectionKind::next_tokens);
  writer.put(std::uint64_t{table.lines()});
  writer.put(detail::key_check(table.options().key));
  for (std::size_t i = 0; i < table.lines(); ++i) detail::put_counts(writer, table.words(NextTokens::Part::counts, i));
  if (!table.options().rankings) return;
  for (std::size_t i = 0; i < table.lines(); ++i)
    detail::put_ranking(writer, table.words(NextTokens::Part::rankings, i));
}

/// Returns the length in bytes of the contents of a section of kind `next_tokens`, for snapshot_bytes(). Cost: reads
/// the table once. Threads: as for write_next_tokens().
[[nodiscard]] inline std::size_t next_token_bytes(const NextTokens& table) noexcept {
  SnapshotWriter counting({}, 0);  // without memory, bytes are only counted
  write_next_tokens(counting, table);
  return static_cast<std::size_t>(counting.finish().error().value) - snapshot_bytes({0});
}

/// Merges the table in a snapshot into a table, like NextTokens::merge(); clear() the table first to replace its
/// contents. A section without rankings leaves those of the table. Rankings in the section are checked, and left out if
/// the table keeps none. Any bytes are either loaded or refused. If they are refused, nothing changes. Errors:
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
/// Cost: two passes over the section; no allocation. Threads: the rules of NextTokens::add() apply.
[[nodiscard]] inline Result<void> load_next_tokens(const SnapshotReader& reader, NextTokens& table) noexcept {
  const auto section = reader.section(SectionKind::next_tokens);
  if (!section)
    return Error{ErrorCode::no_such_section,
                 "the snapshot has no table of next tokens: give one to which it was written, or begin with an empty "
                 "table"};
  if (auto valid = detail::check_next_tokens(*section, table); !valid) return valid;
  return detail::read_next_tokens(*section, table,
                                  [&](NextTokens::Part part, std::size_t line, const detail::NextTokenLine& words) {
                                    table.merge_line(part, line, words);
                                  });
}

}}  // namespace reprise

/// \file Saves learned pass costs as a section of a snapshot, and loads them. docs/formats.md documents every byte.
///
/// Costs belong to an engine on a machine, not to a tenant. They are loaded only by load_costs(): load_history() skips
/// them. Pass times can carry a little information about texts, so share saved
/// costs only among users who may observe each other's pass times.

namespace reprise { inline namespace v0 {

/// The maximum length in bytes of the name of an engine in a snapshot.
inline constexpr std::size_t most_engine_name_bytes = 100;

/// Returns the length in bytes of the contents of a section of kind `costs`, for snapshot_bytes().
[[nodiscard]] inline std::size_t cost_bytes(const CostPrior& prior, std::string_view engine) noexcept {
  constexpr std::size_t counts = 2;  // the length of the name, and the number of costs
  return counts + engine.size() + prior.size() * (sizeof(std::uint8_t) + sizeof(Cost));
}

/// Writes costs as a section of kind `costs`, whose contents are cost_bytes() long. `prior`: usually
/// LearnedCurve::prior(). `engine`: any name of the engine, the model and the machine, for example "llama.cpp Q4_0,
/// 8 threads, host 7". load_costs() returns the costs only if it is given the same name.
///
/// Error: invalid_argument if the name is longer than
/// most_engine_name_bytes (`value`: its length, `limit`: the longest); nothing is written then. Cost: one put() for
/// each number and each byte of the name.
[[nodiscard]] inline Result<void> save_costs(const CostPrior& prior, std::string_view engine,
                                             SnapshotWriter& writer) noexcept {
  if (engine.size() > most_engine_name_bytes)
    return Error{ErrorCode::invalid_argument, "the name of the engine is too long for a snapshot: shorten it",
                 engine.size(), most_engine_name_bytes};
  writer.begin_section(SectionKind::costs);
  writer.put(static_cast<std::uint8_t>(engine.size()));
  for (const char byte : engine) writer.put(static_cast<std::uint8_t>(byte));
  writer.put(static_cast<std::uint8_t>(prior.size()));
  for (std::size_t rows = CostPrior::least_rows; rows <= CostPrior::most_rows; ++rows) {
    if (!prior.assumes(rows)) continue;
    writer.put(static_cast<std::uint8_t>(rows));
    writer.put(prior.cost(rows));
  }
  return {};
}

namespace detail {

/// The contents of a section of kind `costs`.
struct StoredCosts {
  std::string_view engine;
  CostPrior prior;
};

/// Reads the contents of a section of kind `costs`. The returned name is a view of the section. Error: snapshot_forged
/// if they break a rule of the format. `value`: the offset in the section of the name, of the number of costs or of the
/// cost that is wrong; `limit`: the section's kind.
[[nodiscard]] inline Result<StoredCosts> read_costs(SnapshotReader::Cursor section) noexcept {
  const auto forged = [](std::size_t at) { return forged_section(at, SectionKind::costs); };
  StoredCosts stored;
  const auto length = section.take<std::uint8_t>();
  if (!length || *length > most_engine_name_bytes) return forged(0);
  const auto engine = section.take_bytes(*length);
  if (!engine) return forged(section.offset());
  stored.engine = {reinterpret_cast<const char*>(engine->data()), engine->size()};
  const std::size_t counted = section.offset();
  const auto count = section.take<std::uint8_t>();
  if (!count || section.left() != *count * (sizeof(std::uint8_t) + sizeof(Cost))) return forged(counted);
  std::size_t last = CostPrior::least_rows - 1;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::size_t at = section.offset();
    const std::size_t rows = *section.take<std::uint8_t>();
    const Cost cost = *section.take<Cost>();
    if (rows <= last || rows > CostPrior::most_rows) return forged(at);
    if (cost < CostPrior::least_cost || cost > CostPrior::most_cost) return forged(at);
    stored.prior.assume(rows, cost);
    last = rows;
  }
  return stored;
}

}  // namespace detail

/// Returns the costs in a snapshot, for CostOptions::prior. `engine`: the name that they must have. Errors:
///
///  * no_such_section: the snapshot has no section of kind `costs`.
///  * snapshot_forged: the contents of this section break a rule of the format.
///  * other_engine: the costs were saved with another name.
///
/// A forged section with valid contents can only cost speed: costs decide how much is drafted, not which tokens are
/// committed. Measured times correct wrong costs. Cost: a pass over the section; no allocation.
[[nodiscard]] inline Result<CostPrior> load_costs(const SnapshotReader& reader, std::string_view engine) noexcept {
  const auto section = reader.section(SectionKind::costs);
  if (!section)
    return Error{ErrorCode::no_such_section,
                 "the snapshot has no pass costs: give one to which save_costs() has written, or begin without costs"};
  const auto stored = detail::read_costs(*section);
  if (!stored) return stored.error();
  if (stored->engine != engine)
    return Error{ErrorCode::other_engine,
                 "the pass costs of the snapshot belong to another engine: give the name that they were saved with, or "
                 "begin without costs"};
  return stored->prior;
}

}}  // namespace reprise
