// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "llama.h"
#include "model.hpp"

/// \file The memory of a stand-in context: cells of attention, states of recurrence.
namespace reprise::llama_stand_in {

inline constexpr std::size_t most_sequences = 256;
using Sequences = std::bitset<most_sequences>;

/// One token of a batch.
struct Row {
  llama_token token = 0;
  llama_pos pos = 0;
  std::vector<llama_seq_id> sequences;  ///< attention uses the first
  bool output = false;
};

/// A range of positions in the form that llama_memory_seq_rm() takes.
struct Range {
  Range(llama_pos from, llama_pos to) noexcept
      : first(std::max(from, 0)), end(to < 0 ? std::numeric_limits<llama_pos>::max() : to) {}
  [[nodiscard]] bool has(llama_pos pos) const noexcept { return pos >= first && pos < end; }
  [[nodiscard]] bool all() const noexcept { return first == 0 && end == std::numeric_limits<llama_pos>::max(); }
  llama_pos first;
  llama_pos end;
};

inline std::size_t at(llama_seq_id sequence) noexcept { return static_cast<std::size_t>(sequence); }

/// A cache of keys and values for all sequences. Every cell is a token at a position, and belongs to one or several
/// sequences. Like keys and values, it depends on the cells that were visible when it ran.
class KvCache {
 public:
  explicit KvCache(std::size_t cells) : cells_(cells) {}

  void remove(llama_seq_id sequence, Range range) {
    for (Cell& cell : cells_) {
      if (!range.has(cell.pos)) continue;
      cell.sequences.reset(at(sequence));
      if (cell.sequences.none()) cell = {};
    }
  }
  void copy(llama_seq_id from, llama_seq_id to, Range range) {
    for (Cell& cell : cells_)
      if (range.has(cell.pos) && cell.sequences[at(from)]) cell.sequences.set(at(to));
  }
  void clear() { cells_.assign(cells_.size(), {}); }
  /// The last position of a sequence, or -1.
  [[nodiscard]] llama_pos highest(llama_seq_id sequence) const {
    llama_pos highest = -1;
    for (const Cell& cell : cells_)
      if (cell.sequences[at(sequence)]) highest = std::max(highest, cell.pos);
    return highest;
  }
  [[nodiscard]] bool has_room(std::size_t rows) const {
    return static_cast<std::size_t>(std::count_if(cells_.begin(), cells_.end(), is_free)) >= rows;
  }
  /// Runs rows, for which there must be room, all at once. seen[i] is the hash of the cells that row i sees.
  void run(std::span<const Row> rows, std::vector<std::uint64_t>& seen) {
    std::vector<Cell*> placed;
    for (const Row& row : rows) {
      Cell& cell = *std::find_if(cells_.begin(), cells_.end(), is_free);
      cell = {row.pos, row.token, mix(at(row.token), at(row.pos)), 0, {}};
      for (const llama_seq_id sequence : row.sequences) cell.sequences.set(at(sequence));
      placed.push_back(&cell);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) placed[i]->second = sum(rows[i], &Cell::first);
    for (const Row& row : rows) seen.push_back(sum(row, &Cell::second));
  }
  /// Returns the token before a row's, as the row sees it, or -1 if there is none.
  [[nodiscard]] llama_token before(const Row& row) const {
    for (const Cell& cell : cells_)
      if (visible(cell, row) && cell.pos == row.pos - 1) return cell.token;
    return -1;
  }

 private:
  struct Cell {
    llama_pos pos = -1;  // -1: free
    llama_token token = 0;
    std::uint64_t first = 0;   // hash of the token and its position
    std::uint64_t second = 0;  // hash of the visible `first` values
    Sequences sequences;
  };

  static bool is_free(const Cell& cell) noexcept { return cell.pos < 0; }
  static bool visible(const Cell& cell, const Row& row) {
    return cell.sequences[at(row.sequences.front())] && cell.pos <= row.pos;
  }
  std::uint64_t sum(const Row& row, std::uint64_t Cell::*value) const {
    std::uint64_t sum = 0;
    for (const Cell& cell : cells_)
      if (visible(cell, row)) sum += mix(cell.*value, 1);
    return mix(sum, 2);
  }

  std::vector<Cell> cells_;
};

/// The state of a sequence, which only goes forward.
struct RecurrentState {
  llama_pos pos = -1;
  llama_token token = -1;
  llama_token before = -1;
  std::uint64_t hash = 0;

  void advance(const Row& row) { *this = {row.pos, row.token, token, mix(hash, at(row.token))}; }
  /// Returns false if only a part of the sequence is to be removed.
  bool remove(Range range) {
    if (range.first > 0 && range.has(pos)) return false;
    if (range.has(pos)) *this = {};
    return true;
  }
};

}  // namespace reprise::llama_stand_in
