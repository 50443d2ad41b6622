// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"

namespace reprise { inline namespace v0 {

/// Identifies a sequence to the engine; for example, the number of its cache.
using BatchSlot = std::int32_t;
/// The slot of pad rows that belong to no sequence.
inline constexpr BatchSlot no_sequence = -1;

/// The part of one sequence in a pass of several sequences. BatchPacker packs it; check_batch() passes it to the server
/// under test.
struct SequencePass {
  std::size_t sequence = 0;                 ///< the engine's id for the sequence; in check_batch(): its prompt index
  TokenSpan batch;                          ///< [pending | draft]
  std::size_t drafted = 0;                  ///< drafted tokens at the end of `batch`
  std::span<const NodeIndex> parents = {};  ///< as in TreeVerifier; for a chain: -1, 0, 1, ...
  std::size_t context = 0;                  ///< committed tokens of the sequence, the pending ones included

  [[nodiscard]] std::size_t pending() const noexcept { return batch.size() - drafted; }
  /// Returns the number of the sequence's tokens that are in the cache.
  [[nodiscard]] std::size_t cached() const noexcept { return context - pending(); }
};

/// One pass of several sequences, in the form that engines with continuous batching expect: flat arrays, with one
/// element per row unless stated otherwise. The rows of a sequence are contiguous. The views are valid until the packer
/// changes.
struct PackedBatch {
  TokenSpan tokens;
  std::span<const std::int32_t> positions;  ///< position of the row in its sequence, from 0
  std::span<const BatchSlot> sequences;     ///< slot whose cache the row sees and extends
  /// The row that this one follows, counted from the first row of its sequence; anchor_parent: the row follows the
  /// cache. A row sees the cache, itself, its parent, and all ancestors of its parent.
  std::span<const NodeIndex> parents;
  std::span<const std::uint8_t> wants_logits;  ///< 1: a pick after this row may be read
  /// Sequence i has the rows from offsets[i] to offsets[i + 1] - 1. The array has one element more than there are
  /// sequences, or none if there are no sequences.
  std::span<const std::uint32_t> offsets;
  /// The rows with wants_logits = 1, ascending. An engine may compute logits for these rows only; see
  /// BatchPacker::compact_picks_of().
  std::span<const std::uint32_t> logit_rows;

  [[nodiscard]] std::size_t rows() const noexcept { return tokens.size(); }
};

/// Packs the passes of several sessions into one, and finds each session's part of the engine's answer.
///
///   packer.clear();
///   for each: packer.add(id, pass, session.context().size());
///   packer.pad_to(plan.width, pad);                       // if the engine has captured widths
///   picks = run(packer.batch());                          // one pick for each row
///   for each i: session.resolve(ticket[i], packer.picks_of(i, picks));
///
/// If the engine returns picks only for the rows in batch().logit_rows, call compact_picks_of(i, picks) instead.
///
/// Only reserve(), add() and pad_to() allocate; the last two do so only beyond the reserved size. Memory: 21 bytes per
/// row, 8 bytes per sequence. Threads: one at a time.
class BatchPacker {
 public:
  /// Reserves memory for `sequences` sequences and `rows` rows in total. Errors: out_of_memory; in that case the batch
  /// is unchanged, and add() allocates on demand.
  Result<void> reserve(std::size_t sequences, std::size_t rows) noexcept {
    const bool done = sequences < unlimited && tokens_.reserve(rows) && positions_.reserve(rows) &&
                      sequences_.reserve(rows) && parents_.reserve(rows) && wants_logits_.reserve(rows) &&
                      logit_rows_.reserve(rows) && offsets_.reserve(sequences + 1) && anchors_.reserve(sequences);
    if (!done) return Error{ErrorCode::out_of_memory, "no memory for batches of so many rows: reserve fewer", rows, 0};
    return {};
  }

  /// Removes all rows and sequences.
  void clear() noexcept {
    truncate(0);
    logit_rows_.clear();
    offsets_.clear();
    anchors_.clear();
  }

  /// Adds the part of one sequence. Returns false and changes nothing if out of memory.
  [[nodiscard]] bool add(const SequencePass& pass) noexcept {
    REPRISE_EXPECTS(offsets_.empty() ? tokens_.empty() : offsets_[offsets_.size() - 1] == tokens_.size());
    const std::size_t rows = pass.batch.size();
    if (!grow(rows) || !logit_rows_.reserve_extra(pass.drafted + 1) || !anchors_.reserve_extra(1) ||
        !offsets_.reserve_extra(offsets_.empty() ? 2 : 1))
      return false;
    const auto id = static_cast<BatchSlot>(pass.sequence);
    const std::size_t pending = pass.pending();
    const std::size_t first = tokens_.size();
    if (offsets_.empty()) offsets_.push_reserved(0);
    anchors_.push_reserved(static_cast<std::uint32_t>(first + pending - 1));
    for (std::size_t row = 0; row < rows; ++row) {
      const NodeIndex parent = row < pending ? static_cast<NodeIndex>(row) - 1
                                             : pass.parents[row - pending] + static_cast<NodeIndex>(pending);
      const std::size_t position =
          parent == anchor_parent ? pass.cached()
                                  : static_cast<std::size_t>(positions_[first + static_cast<std::size_t>(parent)]) + 1;
      push(pass.batch[row], position, id, parent, row + 1 >= pending);
    }
    offsets_.push_reserved(static_cast<std::uint32_t>(tokens_.size()));
    return true;
  }
  /// Like add() above, for the planned pass of sequence `id`, whose session has `context` committed tokens.
  [[nodiscard]] bool add(BatchSlot id, const Pass& pass, std::size_t context) noexcept {
    return add({static_cast<std::size_t>(id), pass.batch, pass.drafted, pass.parents, context});
  }

  /// Adds pad rows that belong to no sequence, until the batch has `rows` rows. No sequence can be added afterwards,
  /// until clear(). Returns false and changes nothing if out of memory.
  [[nodiscard]] bool pad_to(std::size_t rows, Token pad = 0) noexcept {
    const std::size_t padding = rows - std::min(rows, tokens_.size());
    if (!grow(padding)) return false;
    for (std::size_t row = 0; row < padding; ++row) push(pad, 0, no_sequence, anchor_parent, false);
    return true;
  }

  [[nodiscard]] PackedBatch batch() const noexcept REPRISE_LIFETIMEBOUND {
    const std::size_t rows = tokens_.size();
    return {{tokens_.data(), rows},
            {positions_.data(), rows},
            {sequences_.data(), rows},
            {parents_.data(), rows},
            {wants_logits_.data(), rows},
            {offsets_.data(), offsets_.size()},
            {logit_rows_.data(), logit_rows_.size()}};
  }
  /// Returns the number of sequences added.
  [[nodiscard]] std::size_t size() const noexcept { return anchors_.size(); }

  /// Returns the picks of sequence i, as Session::resolve() reads them. `flat` has one element per row of the batch.
  /// The result has one element for the anchor's row, then one for each drafted row.
  template <class T>
  [[nodiscard]] std::span<T> picks_of(std::size_t i, std::span<T> flat) const noexcept {
    return flat.subspan(anchors_[i], offsets_[i + 1] - anchors_[i]);
  }
  /// Returns the picks of sequence i from `compact`, which has one element per row of PackedBatch::logit_rows.
  template <class T>
  [[nodiscard]] std::span<T> compact_picks_of(std::size_t i, std::span<T> compact) const noexcept {
    const auto place = [&](std::uint32_t row) {
      return static_cast<std::size_t>(std::lower_bound(logit_rows_.begin(), logit_rows_.end(), row) -
                                      logit_rows_.begin());
    };
    return compact.subspan(place(anchors_[i]), place(offsets_[i + 1]) - place(anchors_[i]));
  }
  /// Returns the batch row that is row `row` of sequence i. Use it to convert Decision::rows and CommittedToken::row.
  [[nodiscard]] std::size_t flat_row(std::size_t i, std::size_t row) const noexcept { return offsets_[i] + row; }

  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return tokens_.memory_bytes() + positions_.memory_bytes() + sequences_.memory_bytes() + parents_.memory_bytes() +
           wants_logits_.memory_bytes() + logit_rows_.memory_bytes() + offsets_.memory_bytes() +
           anchors_.memory_bytes();
  }

 private:
  [[nodiscard]] bool grow(std::size_t rows) noexcept {
    return tokens_.reserve_extra(rows) && positions_.reserve_extra(rows) && sequences_.reserve_extra(rows) &&
           parents_.reserve_extra(rows) && wants_logits_.reserve_extra(rows);
  }
  void push(Token token, std::size_t position, BatchSlot id, NodeIndex parent, bool logits) noexcept {
    tokens_.push_reserved(token);
    positions_.push_reserved(static_cast<std::int32_t>(position));
    sequences_.push_reserved(id);
    parents_.push_reserved(parent);
    wants_logits_.push_reserved(logits ? 1 : 0);
    if (logits) logit_rows_.push_reserved(static_cast<std::uint32_t>(tokens_.size() - 1));
  }
  void truncate(std::size_t rows) noexcept {
    tokens_.truncate(rows);
    positions_.truncate(rows);
    sequences_.truncate(rows);
    parents_.truncate(rows);
    wants_logits_.truncate(rows);
  }

  detail::Buffer<Token> tokens_;
  detail::Buffer<std::int32_t> positions_;
  detail::Buffer<BatchSlot> sequences_;
  detail::Buffer<NodeIndex> parents_;
  detail::Buffer<std::uint8_t> wants_logits_;
  detail::Buffer<std::uint32_t> logit_rows_;
  detail::Buffer<std::uint32_t> offsets_;
  detail::Buffer<std::uint32_t> anchors_;  // the row of each sequence's anchor
};

/// Returns a hash of everything packed for a pass, and of all earlier passes if their digest is passed as `before`.
///
/// Tensor-parallel ranks that draft independently must run the same batch, or their collectives wait for each other
/// forever. Drafts and plans are pure functions of tokens, settings, seeds and measured times. The ranks therefore
/// agree unless their inputs differ. To detect a difference in the step where it happens:
///
///   digest = batch_digest(packer.batch(), digest);
///   // exchange it between the ranks (8 bytes: the minimum and the maximum must be equal); if they differ, stop
///
/// If that is too expensive in every step, compare in every hundredth step: a difference persists. The value is the
/// same on every machine and compiler; it is not a cryptographic hash. Cost: about 2 ns per row.
[[nodiscard]] inline std::uint64_t batch_digest(const PackedBatch& batch, std::uint64_t before = 0) noexcept {
  std::uint64_t hash = before ^ 0x9E3779B97F4A7C15;
  const auto add = [&](std::uint64_t value) {
    // The finalizer of MurmurHash3 (Appleby), one round for each value.
    hash = (hash ^ value) * 0xFF51AFD7ED558CCD;
    hash ^= hash >> 32;
  };
  const auto pair = [](std::int32_t high, std::int32_t low) {
    return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
  };
  add(batch.rows());
  add(batch.offsets.size());
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    add(pair(batch.tokens[row], batch.positions[row]));
    add(pair(batch.sequences[row], batch.parents[row] * 2 + batch.wants_logits[row]));
  }
  for (const std::uint32_t offset : batch.offsets) add(offset);
  add(0xC4CEB9FE1A85EC53);
  return hash;
}

}}  // namespace reprise
