// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"

/// \file The values that a Session and an engine exchange in a round.
namespace reprise::inline v0 {

/// Identifies one planned pass of one session. A ticket becomes void when the round ends, and when plan(), constrain()
/// or offer() is called later in the round.
struct Ticket {
  std::uint64_t id = 0;
  friend bool operator==(Ticket, Ticket) = default;
};

/// The next batch to run. Its views are valid and unchanged until the ticket becomes void.
struct Pass {
  TokenSpan batch;          ///< [pending | draft]
  std::size_t pending = 0;  ///< leading tokens that are not in the cache; the last is the anchor
  std::size_t drafted = 0;  ///< drafted tokens after the pending ones, pad rows included
  std::size_t padding = 0;  ///< pad rows: the last of the drafted rows
  /// The parent of each drafted row: the index of a drafted row, from 0, or anchor_parent. For a chain: -1, 0, 1, ...
  std::span<const NodeIndex> parents;
  /// The depth of each drafted row: 1 for the rows directly after the anchor. With n tokens of context, the row's
  /// position in the sequence is n - 1 + depth.
  std::span<const std::uint32_t> depths;
  /// For each drafted row, the index of its node in the proposed draft. The indices of pad rows begin at the draft's
  /// size.
  std::span<const NodeIndex> nodes;
  DraftKind kind = DraftKind::ordered;  ///< kind of the proposed draft; rejection sampling may check a sampled draft
  PassShape shape;
  Ticket ticket;
};

/// The part of a round's draft that a planner of several sequences may send; see Session::offer(). Valid until the next
/// call that changes the session.
struct Offer {
  DraftView draft;  ///< the draft as proposed
  /// The nodes that fit into the pass. If passes have no fixed widths, every prefix of these nodes can be planned.
  std::span<const NodeIndex> sendable;
  std::size_t pending = 0;  ///< rows that the pass has without a draft
  bool replayed = false;    ///< see PassLimits::replayed
};

/// The decision made from the picks of a pass. It has no effect before commit(). Its views are valid until the next
/// plan(), begin() or rebase().
struct Decision {
  std::span<const CommittedToken> tokens;
  /// The rows of the batch that stay in the cache, ascending: the pending rows, then those of all committed tokens
  /// except the last. If a predicate refuses the first pick, the anchor's row does not stay. For a chain, the rows are
  /// a prefix.
  std::span<const std::size_t> rows;
  std::size_t keep = 0;  ///< the number of elements of `rows`
  /// True if not every row stays and the engine uses Rollback::snapshot. In that case, the engine keeps no rows, but
  /// restores its state from before the pass. commit() then adds the committed tokens to the pending ones.
  bool restore = false;
  std::size_t accepted = 0;  ///< committed tokens that were drafted
  FinishReason finish = FinishReason::none;
};

}  // namespace reprise
