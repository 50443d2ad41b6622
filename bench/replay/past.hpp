// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/draft/any_strategy.hpp"
#include "reprise/evidence/token_calibrator.hpp"
#include "reprise/extras/token_table.hpp"
#include "reprise/history/history_store.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// What the sessions of one run leave behind for the next ones. A strategy takes of it what it can use.
struct Past {
  HistoryStore memory;                ///< without room, unless it is asked for
  CalibrationState calibration;       ///< as the last session left it
  std::shared_ptr<TokenTable> table;  ///< made by the first strategy that wants one

  /// What is kept takes up so many bytes.
  [[nodiscard]] std::size_t memory_bytes() const;
};

/// Bytes of a snapshot, and the fingerprint of the tokenizer that they have to be of.
struct SnapshotBytes {
  std::span<const std::byte> bytes;
  std::uint64_t fingerprint = 0;
  std::string name = {};  ///< that errors call it by
};

/// Makes room for sequences, of at most so many bytes. Throws InputError.
void give_room(Past& past, std::size_t max_bytes);
/// Begins with what was saved. Throws InputError that says what is wrong with it.
void load(Past& past, const SnapshotBytes& snapshot);
/// What load() takes: the sequences and the calibration.
std::vector<std::byte> save(const Past& past, std::uint64_t fingerprint);

/// A session is over: its prompts and outputs are remembered, and what the strategy that was used has learned. For
/// those that keep sequences.
void leave(Past& past, const TraceSession& session, const AnyStrategy& used);

}  // namespace reprise::replay
