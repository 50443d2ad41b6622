// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
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
  std::vector<llama_seq_id> sequences;  ///< ascending; attention uses the first
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

/// Writes state as bytes.
class Writer {
 public:
  explicit Writer(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  template <class T>
  void write(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.resize(bytes_.size() + sizeof(T));  // insert() makes g++ 12 warn of a write past the end
    std::memcpy(bytes_.data() + bytes_.size() - sizeof(T), &value, sizeof(T));
  }

 private:
  std::vector<std::uint8_t>& bytes_;
};
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  template <class T>
  bool read(T& value) {
    if (bytes_.size() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return true;
  }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size(); }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// A cache of keys and values, with one stream for all sequences or one for each. Every cell is a token at a position,
/// and belongs to one or several sequences. Like keys and values, it depends on the cells that were visible when it
/// ran.
class KvCache {
 public:
  struct Cell {
    llama_pos pos = -1;  ///< -1: free
    llama_token token = 0;
    std::uint64_t first = 0;   ///< hash of the token and its position
    std::uint64_t second = 0;  ///< hash of the visible `first` values
    Sequences sequences;
  };

  /// `window`: the number of positions that a row sees, including its own; 0: all.
  KvCache(std::size_t cells, std::size_t sequences, bool unified, llama_pos window)
      : streams_(unified ? 1 : sequences), sequences_(sequences), window_(window) {
    for (Stream& stream : streams_) stream.cells.resize(cells);
  }

  void clear() {
    for (Stream& stream : streams_) stream = {std::vector<Cell>(stream.cells.size()), 0};
  }
  [[nodiscard]] std::size_t used() const {
    std::size_t count = 0;
    for (const Stream& stream : streams_)
      for (const Cell& cell : stream.cells) count += cell.pos >= 0 ? 1 : 0;
    return count;
  }
  void remove(llama_seq_id sequence, Range range) {
    expects(sequence >= -1 && sequence < ssize(), "seq_id == -1 || (seq_id >= 0 && seq_id < n_seq_max)");
    for (Stream& stream : streams_)
      for (std::size_t i = 0; i < stream.cells.size(); ++i) {
        Cell& cell = stream.cells[i];
        if (cell.pos < 0 || !range.has(cell.pos) || (sequence >= 0 && !cell.sequences[at(sequence)])) continue;
        if (sequence >= 0) cell.sequences.reset(at(sequence));
        if (sequence < 0 || cell.sequences.none()) cell = {};
        if (cell.pos < 0) stream.head = std::min(stream.head, i);
      }
  }
  void copy(llama_seq_id from, llama_seq_id to, Range range) {
    expects(from >= 0 && from < ssize(), "seq_id_src >= 0 && seq_id_src < n_seq_max");
    expects(to >= 0 && to < ssize(), "seq_id_dst >= 0 && seq_id_dst < n_seq_max");
    if (from == to) return;
    Stream& source = stream_of(from);
    Stream& target = stream_of(to);
    if (&source != &target) {
      expects(range.all(), "is_full && \"seq_cp() is only supported for full KV buffers\"");
      target = source;
      for (Cell& cell : target.cells) cell.sequences = cell.pos < 0 ? Sequences() : Sequences().set(at(to));
      return;
    }
    for (Cell& cell : source.cells)
      if (cell.pos >= 0 && range.has(cell.pos) && cell.sequences[at(from)]) cell.sequences.set(at(to));
  }
  void keep(llama_seq_id sequence) {
    for (Cell& cell : stream_of(sequence).cells) {
      if (cell.pos < 0) continue;
      if (cell.sequences[at(sequence)])
        cell.sequences = Sequences().set(at(sequence));
      else
        cell = {};
    }
  }
  [[nodiscard]] llama_pos lowest(llama_seq_id sequence) const {
    llama_pos lowest = -1;
    for (const Cell& cell : stream_of(sequence).cells)
      if (cell.sequences[at(sequence)] && (lowest < 0 || cell.pos < lowest)) lowest = cell.pos;
    return lowest;
  }
  [[nodiscard]] llama_pos highest(llama_seq_id sequence) const {
    llama_pos highest = -1;
    for (const Cell& cell : stream_of(sequence).cells)
      if (cell.sequences[at(sequence)]) highest = std::max(highest, cell.pos);
    return highest;
  }

  /// Finds cells for the rows, reusing cells that no row of their sequence will see again. Returns false if there are
  /// not enough; then some may have been taken.
  bool place(std::span<const Row> rows, std::vector<std::size_t>& cells) {
    cells.clear();
    std::vector<llama_pos> ends(most_sequences, -1);
    for (std::size_t s = 0; s < sequences_; ++s) ends[s] = highest(static_cast<llama_seq_id>(s)) + 1;
    std::vector<llama_pos> lost(most_sequences, -1);
    for (const Row& row : rows) {
      Stream& stream = stream_of(row.sequences.front());
      std::size_t tried = 0;
      while (tried < stream.cells.size() &&
             !usable(stream.cells[stream.head % stream.cells.size()], ends, cells, stream.head))
        stream.head = (stream.head + 1) % stream.cells.size(), ++tried;
      if (tried == stream.cells.size()) return false;
      const std::size_t index = stream.head % stream.cells.size();
      Cell& cell = stream.cells[index];
      for (std::size_t s = 0; s < sequences_; ++s)
        if (cell.pos >= 0 && cell.sequences[s]) lost[s] = std::max(lost[s], cell.pos);
      cell = {
          row.pos, row.token, mix(static_cast<std::uint64_t>(row.token), static_cast<std::uint64_t>(row.pos)), 0, {}};
      for (const llama_seq_id sequence : row.sequences) cell.sequences.set(at(sequence));
      cells.push_back(index);
      stream.head = (index + 1) % stream.cells.size();
    }
    // The rest of a sequence must have no gaps.
    for (std::size_t s = 0; s < sequences_; ++s)
      if (lost[s] >= 0) remove(static_cast<llama_seq_id>(s), Range(0, lost[s] + 1));
    return true;
  }
  /// Runs placed rows, all at once. seen[i] is the hash of the cells that row i sees.
  void run(std::span<const Row> rows, std::span<const std::size_t> cells, std::vector<std::uint64_t>& seen) {
    seen.assign(rows.size(), 0);
    for (std::size_t i = 0; i < rows.size(); ++i)
      cell_of(rows[i], cells[i]).second = sum(rows[i], i, cells, &Cell::first);
    for (std::size_t i = 0; i < rows.size(); ++i) seen[i] = sum(rows[i], i, cells, &Cell::second);
  }
  /// Returns the token before a row's, as the row sees it, or -1 if there is none.
  [[nodiscard]] llama_token before(const Row& row) const {
    const Cell* last = nullptr;
    for (const Cell& cell : stream_of(row.sequences.front()).cells)
      if (visible(cell, row) && cell.pos < row.pos && (last == nullptr || cell.pos > last->pos)) last = &cell;
    return last == nullptr ? -1 : last->token;
  }

  void write(Writer& writer, llama_seq_id sequence) const {
    const llama_pos end = highest(sequence);
    std::vector<const Cell*> cells;
    for (const Cell& cell : stream_of(sequence).cells)
      if (cell.sequences[at(sequence)] && !masked(cell.pos, end)) cells.push_back(&cell);
    writer.write(static_cast<std::uint32_t>(cells.size()));
    for (const Cell* cell : cells) writer.write(*cell);
  }
  /// Returns false, with the sequence empty, if there are too few bytes or cells.
  bool read(Reader& reader, llama_seq_id sequence) {
    remove(sequence, Range(-1, -1));
    std::uint32_t count = 0;
    if (!reader.read(count)) return false;
    Stream& stream = stream_of(sequence);
    std::size_t index = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      while (index < stream.cells.size() && stream.cells[index].pos >= 0) ++index;
      Cell cell;
      if (index == stream.cells.size() || !reader.read(cell)) {
        remove(sequence, Range(-1, -1));
        return false;
      }
      cell.sequences = Sequences().set(at(sequence));
      stream.cells[index] = cell;
    }
    return true;
  }

 private:
  struct Stream {
    std::vector<Cell> cells;
    std::size_t head = 0;
  };

  static std::size_t at(llama_seq_id sequence) noexcept { return static_cast<std::size_t>(sequence); }
  [[nodiscard]] llama_seq_id ssize() const noexcept { return static_cast<llama_seq_id>(sequences_); }
  [[nodiscard]] const Stream& stream_of(llama_seq_id sequence) const {
    expects(sequence >= 0 && sequence < ssize(), "seq_id >= 0 && (size_t) seq_id < seq_to_stream.size()");
    return streams_[streams_.size() == 1 ? 0 : at(sequence)];
  }
  Stream& stream_of(llama_seq_id sequence) { return const_cast<Stream&>(std::as_const(*this).stream_of(sequence)); }
  Cell& cell_of(const Row& row, std::size_t index) { return stream_of(row.sequences.front()).cells[index]; }

  [[nodiscard]] bool masked(llama_pos cell, llama_pos row) const noexcept {
    return window_ > 0 && row - cell >= window_;
  }
  [[nodiscard]] bool visible(const Cell& cell, const Row& row) const {
    return cell.pos >= 0 && cell.sequences[at(row.sequences.front())] && cell.pos <= row.pos &&
           !masked(cell.pos, row.pos);
  }
  /// True if a cell is free, or its only sequence does not see it any more.
  [[nodiscard]] bool usable(const Cell& cell, const std::vector<llama_pos>& ends, const std::vector<std::size_t>& taken,
                            std::size_t index) const {
    if (cell.pos < 0) return true;
    if (cell.sequences.count() != 1 || std::count(taken.begin(), taken.end(), index) > 0) return false;
    for (std::size_t s = 0; s < sequences_; ++s)
      if (cell.sequences[s]) return masked(cell.pos, ends[s]);
    return false;
  }
  std::uint64_t sum(const Row& row, std::size_t i, std::span<const std::size_t> cells, std::uint64_t Cell::*value) {
    std::uint64_t sum = 0;
    for (const Cell& cell : stream_of(row.sequences.front()).cells)
      if (visible(cell, row)) sum += mix(cell.*value, 1);
    if (settings().fault == Fault::siblings_visible)
      for (std::size_t j = 0; j < i; ++j) {
        const Cell& cell = stream_of(row.sequences.front()).cells[cells[j]];
        if (!visible(cell, row)) sum += mix(cell.*value, 1);
      }
    return mix(sum, 2);
  }

  std::vector<Stream> streams_;
  std::size_t sequences_;
  llama_pos window_;
};

/// One state for each sequence, which only goes forward.
class RecurrentStates {
 public:
  struct State {
    llama_pos pos = -1;
    llama_token token = -1;
    llama_token before = -1;
    std::uint64_t hash = 0;
  };

  /// `snapshots`: how many rows of the last batch can be removed.
  RecurrentStates(std::size_t sequences, std::size_t snapshots) : sequences_(sequences), snapshots_(snapshots) {}

  void clear() { sequences_.assign(sequences_.size(), {}); }
  /// Returns false if the range starts at a row without a snapshot.
  bool remove(llama_seq_id sequence, Range range) {
    if (sequence >= static_cast<llama_seq_id>(sequences_.size())) return false;
    if (sequence < 0) {
      if (range.first != range.end && !range.all()) return false;
      if (range.all()) clear();
      return true;
    }
    Sequence& all = of(sequence);
    const llama_pos pos = all.state.pos;
    if (pos >= 0 && range.first > 0 && range.first <= pos && range.end > pos) {
      const auto back = static_cast<std::size_t>(pos - range.first + 1);
      if (all.rolled_back || back > snapshots_) return false;
      all.rolled_back = true;
      if (back < all.earlier.size() + 1)
        all.state = all.earlier[all.earlier.size() - back];
      else  // never saved: arbitrary contents
        all.state.hash = mix(all.state.hash, back);
      all.state.pos = range.first - 1;
      return true;
    }
    if (range.has(pos)) all = {};
    return true;
  }
  void copy(llama_seq_id from, llama_seq_id to) {
    if (from != to && fits(from) && fits(to)) of(to) = of(from);
  }
  void keep(llama_seq_id sequence) {
    for (std::size_t s = 0; s < sequences_.size(); ++s)
      if (static_cast<llama_seq_id>(s) != sequence) sequences_[s] = {};
  }
  [[nodiscard]] llama_pos position(llama_seq_id sequence) const {
    return fits(sequence) ? sequences_[static_cast<std::size_t>(sequence)].state.pos : -1;
  }
  void begin_batch() {
    for (Sequence& sequence : sequences_) sequence.touched = false;
  }
  const State& advance(const Row& row) {
    Sequence& all = of(row.sequences.front());
    if (!all.touched) all.earlier.clear();
    all.touched = true;
    all.rolled_back = false;
    all.earlier.push_back(all.state);
    if (all.earlier.size() > snapshots_) all.earlier.erase(all.earlier.begin());
    all.state = {row.pos, row.token, all.state.token, mix(all.state.hash, static_cast<std::uint64_t>(row.token))};
    return all.state;
  }
  void write(Writer& writer, llama_seq_id sequence) const {
    const State state = fits(sequence) ? sequences_[static_cast<std::size_t>(sequence)].state : State();
    const std::uint32_t count = state.pos >= 0 ? 1 : 0;
    writer.write(count);
    if (count == 1) writer.write(state);
  }
  bool read(Reader& reader, llama_seq_id sequence) {
    if (!fits(sequence)) return false;
    of(sequence) = {};
    std::uint32_t count = 0;
    if (!reader.read(count)) return false;
    State state;
    if (count == 1 && !reader.read(state)) return false;
    of(sequence).state = state;
    return true;
  }

 private:
  struct Sequence {
    State state;
    std::vector<State> earlier;  // before each of the last rows
    bool touched = false;
    bool rolled_back = false;  // only once per batch
  };
  [[nodiscard]] bool fits(llama_seq_id sequence) const {
    return sequence >= 0 && sequence < static_cast<llama_seq_id>(sequences_.size());
  }
  Sequence& of(llama_seq_id sequence) { return sequences_[static_cast<std::size_t>(sequence)]; }

  std::vector<Sequence> sequences_;
  std::size_t snapshots_;
};

}  // namespace reprise::llama_stand_in
