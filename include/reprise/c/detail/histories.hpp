// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/c/detail/arguments.hpp"
#include "reprise/c/detail/errors.hpp"
#include "reprise/c/detail/handles.hpp"
#include "reprise/c/reprise.h"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/history_types.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/table_snapshots.hpp"
#include "reprise/index/next_token_counts.hpp"

/// \file The functions of histories in the C interface.
namespace reprise::inline v0::c {

[[nodiscard]] inline Result<void> make_history(const reprise_history_options* in, reprise_history*& made) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  HistoryOptions options;
  options.max_bytes = limit_of(read->max_bytes, options.max_bytes);
  if (read->key != 0) options.key = read->key;
  if (read->vocabulary != 0) options.vocabulary = read->vocabulary;
  auto store = HistoryStore::make(options);
  if (!store) return store.error();
  NextTokenCounts counts;
  if (read->next_token_bytes != 0) {
    auto table = NextTokenCounts::make(
        {.max_bytes = read->next_token_bytes, .key = next_token_key(options.key), .vocabulary = options.vocabulary});
    if (!table) return table.error();
    counts = *std::move(table);
  }
  return make(made, *std::move(store), std::move(counts));
}

[[nodiscard]] inline Result<void> add_to(reprise_history& history, std::uint64_t name, TokenSpan tokens,
                                         std::size_t prompt_count, bool removable) noexcept {
  if (prompt_count > tokens.size())
    return Error{ErrorCode::size_out_of_range, "prompt_count is larger than the number of tokens", prompt_count,
                 tokens.size()};
  const std::uint32_t vocabulary = std::min(history.store.options().vocabulary, detail::HistoryWord::most_tokens);
  for (const Token token : tokens)
    if (static_cast<std::uint32_t>(token) >= vocabulary)
      return Error{ErrorCode::token_out_of_range, "a token is outside the vocabulary of the history",
                   static_cast<std::uint32_t>(token), vocabulary};
  history.store.begin_sequence(name);
  history.store.append(tokens.first(prompt_count), Origin::prompt);
  history.store.append(tokens.subspan(prompt_count), Origin::output);
  history.store.end_sequence();
  if (!removable) history.next_tokens.add(tokens);
  return {};
}

[[nodiscard]] inline Result<void> save(const reprise_history& history, std::uint64_t tokenizer, void* buffer,
                                       std::size_t room, std::size_t& needed) noexcept {
  const auto bytes = buffer_of(buffer, room);
  if (!bytes) return bytes.error();
  const bool counted = history.next_tokens.lines() != 0;
  needed = snapshot_bytes_of(history.store);
  if (counted) needed += detail::SnapshotFormat::section_header_bytes + next_token_bytes(history.next_tokens);
  if (needed > room)
    return Error{ErrorCode::out_of_room, "the buffer is too small for the snapshot: provide the bytes needed", needed,
                 room};
  SnapshotWriter writer(*bytes, tokenizer);
  write_history(writer, history.store, history.calibration);
  if (counted) write_next_tokens(writer, history.next_tokens);
  const auto snapshot = writer.finish();
  if (!snapshot) return snapshot.error();
  return {};
}

[[nodiscard]] inline Result<void> load(reprise_history& history, std::uint64_t tokenizer, const void* buffer,
                                       std::size_t count) noexcept {
  const auto bytes = array_of(static_cast<const std::byte*>(buffer), count);
  if (!bytes) return bytes.error();
  const auto reader = SnapshotReader::open(*bytes, tokenizer);
  if (!reader) return reader.error();
  // The table is checked first and loaded last, so that refused bytes change nothing.
  bool counted = false;
  if (const auto section = reader->section(SectionKind::next_tokens); section && history.next_tokens.lines() != 0) {
    const auto valid = detail::check_table<detail::NextTokenSection>(*section, history.next_tokens);
    if (!valid && valid.error().code != ErrorCode::other_table) return valid;
    counted = valid.has_value();
  }
  if (auto loaded = load_history(*bytes, tokenizer, history.store, history.calibration); !loaded) return loaded;
  if (counted) return load_next_tokens(*reader, history.next_tokens);
  return {};
}

}  // namespace reprise
