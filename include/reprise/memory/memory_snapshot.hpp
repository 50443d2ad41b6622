// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/token_calibrator.hpp"
#include "reprise/memory/shared_memory.hpp"
#include "reprise/memory/snapshot.hpp"
#include "reprise/memory/snapshot_calibration.hpp"
#include "reprise/memory/snapshot_pieces.hpp"

/// \file A SharedMemory and what was learned beside it, as a snapshot in a span of bytes. snapshot_file.hpp has the
/// files.
///
/// What a memory holds is saved, not how it holds it: tokens, who said them, the names of their sequences, and how much
/// they were of use (their credit). Neither its size nor its hash key is in a snapshot.

namespace reprise {

namespace detail {

/// A piece of a memory as a snapshot has it. Words are asked for in their order.
template <class Memory>
class RememberedPiece {
 public:
  RememberedPiece(const Memory& memory, const typename Memory::MemoryPiece& piece) noexcept
      : memory_(memory), piece_(piece), place_(piece.first), credited_(piece.first) {}

  [[nodiscard]] std::uint64_t sequence() const noexcept { return piece_.sequence; }
  [[nodiscard]] std::size_t size() const noexcept { return piece_.size; }
  [[nodiscard]] std::uint32_t word(std::size_t) noexcept {
    const Word word = memory_.word(place_);
    place_ = memory_.after(place_);
    return static_cast<std::uint32_t>(word.token()) | (word.origin() == Origin::output ? PieceWord::output : 0);
  }
  [[nodiscard]] std::uint8_t credit(std::size_t) noexcept {
    const std::uint8_t credit = memory_.credit_of(credited_);
    for (std::size_t i = 0; i < tokens_per_credit && credited_ != Memory::nowhere; ++i)
      credited_ = memory_.after(credited_);
    return credit;
  }

 private:
  const Memory& memory_;
  typename Memory::MemoryPiece piece_;
  typename Memory::Place place_;
  typename Memory::Place credited_;
};

}  // namespace detail

/// The bytes that save_memory() needs. Cost: a look at every segment.
template <class Place, std::size_t segment_size>
[[nodiscard]] std::size_t snapshot_bytes_of(const BasicSharedMemory<Place, segment_size>& memory) noexcept {
  std::size_t length = 0;
  memory.for_each_piece([&](const auto& piece) { length += piece_bytes(piece.size); });
  return snapshot_bytes({calibration_bytes, length});
}

/// Writes a snapshot of a memory and of what was learned about the target. The answer are its bytes, in `room`.
///
/// `tokenizer`: any number that stands for the tokenizer, see SnapshotWriter; mix the model into it, because what was
/// learned belongs to a model. Errors: out_of_room (`value` bytes are needed: snapshot_bytes_of()). Cost: a pass over
/// the tokens and one over the bytes; no allocation. Threads: for the writer of the memory, or while nobody writes;
/// readers do not mind. A sequence that has not ended is saved without what was held back of it.
template <class Place, std::size_t segment_size>
[[nodiscard]] Result<std::span<const std::byte>> save_memory(std::span<std::byte> room, std::uint64_t tokenizer,
                                                             const BasicSharedMemory<Place, segment_size>& memory,
                                                             const CalibrationState& calibration) noexcept {
  SnapshotWriter writer(room, tokenizer);
  write_calibration(writer, calibration);
  writer.begin_section(SectionKind::pieces);
  memory.for_each_piece([&](const auto& piece) { write_piece(writer, detail::RememberedPiece(memory, piece)); });
  return writer.finish();
}

/// Takes a snapshot into a memory of any size, which remembers on top what the snapshot holds: clear() it first to have
/// that alone. The index is built anew, under the memory's own key; where there is too little room, the oldest gives
/// way as it always does. `calibration` becomes that of the snapshot. What the snapshot has no section for, as what
/// MemoryOptions do not want to be remembered, stays as it was.
///
/// A sequence that has not ended is ended first: what is appended later without a begin_sequence() is stored under the
/// name 0. Names come back too, also those of sequences that were removed after the snapshot was saved: remove() them
/// again.
///
/// Any bytes whatever are loaded or refused, and then nothing is changed. Errors: those of SnapshotReader::open(),
/// read_calibration() and for_each_piece(), and token_out_of_range: the largest token (`value`) is not below
/// MemoryOptions::vocabulary (`limit`), so the snapshot is of another model or forged. A file that is forged with right
/// checksums and tokens of the vocabulary can cost speed: drafts are made of them, and refused by the target. Where
/// MemoryOptions::vocabulary was not given, its tokens can be any, and so can those of drafts.
///
/// Cost: three passes over the bytes, then that of append(); no allocation. Threads: as append().
template <class Place, std::size_t segment_size>
[[nodiscard]] Result<void> load_memory(std::span<const std::byte> bytes, std::uint64_t tokenizer,
                                       BasicSharedMemory<Place, segment_size>& memory,
                                       CalibrationState& calibration) noexcept {
  const auto reader = SnapshotReader::open(bytes, tokenizer);
  if (!reader) return reader.error();
  const auto pieces = reader->section(SectionKind::pieces);
  if (pieces) {
    const std::uint32_t vocabulary = memory.options().vocabulary;
    std::uint32_t needed = 0;
    const auto sound = for_each_piece(*pieces, [&](const PieceView& piece) {
      for (std::size_t i = 0; i < piece.size(); ++i) needed = std::max(needed, (piece.word(i) & PieceWord::token) + 1);
    });
    if (!sound) return sound.error();
    if (needed > vocabulary)
      return Error{ErrorCode::token_out_of_range,
                   "the snapshot has tokens outside MemoryOptions::vocabulary: load the one that was saved with this "
                   "model, and trust where it comes from",
                   needed - 1, vocabulary};
  }
  if (const auto section = reader->section(SectionKind::calibration)) {
    const auto learned = read_calibration(*section);
    if (!learned) return learned.error();
    calibration = *learned;
  }
  if (!pieces) return {};
  const auto restore = [&](const PieceView& piece) {
    memory.begin_sequence(piece.sequence());
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const std::uint32_t word = piece.word(i);
      memory.restore(static_cast<Token>(word & PieceWord::token),
                     (word & PieceWord::output) != 0 ? Origin::output : Origin::prompt,
                     piece.credit(i / tokens_per_credit));
    }
  };
  memory.end_sequence();
  static_cast<void>(for_each_piece(*pieces, restore));  // sound, as was seen
  memory.end_sequence();
  return {};
}

}  // namespace reprise
