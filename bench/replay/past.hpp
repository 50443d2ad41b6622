// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/any_strategy.hpp"
#include "reprise/history/memory.hpp"
#include "reprise_methods/token_table.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The state that sessions of one run leave to later ones. A strategy uses the part that it supports.
struct Past {
  std::optional<Memory> memory;              ///< for strategies that keep sequences
  std::shared_ptr<TokenTable> table;         ///< made by the first strategy that needs one
  std::optional<AnyStrategy> strategy = {};  ///< the strategy of the last session, if it keeps its own knowledge

  /// The size of the kept state in bytes.
  [[nodiscard]] std::size_t memory_bytes() const;
};

/// The bytes of a snapshot, and the fingerprint that its tokenizer must have.
struct SnapshotBytes {
  std::span<const std::byte> bytes;
  std::uint64_t fingerprint = 0;
  std::string name = {};  ///< the name in error messages
};

/// Gives the past a memory with text of at most `max_bytes` (0: what was learned alone), and a table of next tokens
/// with at most `next_token_bytes` for counts (0: no table) and, with `rankings`, as many for rankings. Throws
/// InputError.
void give_room(Past& past, std::size_t max_bytes, std::size_t next_token_bytes = 0, bool rankings = true);
/// Restores a saved past. Throws InputError that describes the fault of the snapshot.
void load(Past& past, const SnapshotBytes& snapshot);
/// The bytes that load() reads: the sequences and the calibration.
std::vector<std::byte> save(const Past& past, std::uint64_t fingerprint);

/// Records the end of a session: its prompts and outputs, and the knowledge of the strategy `used`. For strategies that
/// keep sequences.
void leave(Past& past, const TraceSession& session, AnyStrategy used);

}  // namespace reprise::replay
