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

/// \file What a Session and an engine hand each other in a round.
namespace reprise::inline v0 {

/// Names one planned pass of one session. A ticket is good for one commit() or cancel(); planning again replaces it.
struct Ticket {
  std::uint64_t id = 0;
  friend bool operator==(Ticket, Ticket) = default;
};

/// The next batch to run. Its views are valid and unchanged until the pass is committed or cancelled.
struct Pass {
  TokenSpan batch;          ///< [pending | draft]
  std::size_t pending = 0;  ///< committed tokens at its front that are not in the cache; the last is the anchor
  std::size_t drafted = 0;  ///< drafted tokens behind them, pad rows included
  std::size_t padding = 0;  ///< how many of these, at the end, are pad rows
  std::span<const NodeIndex> parents;     ///< of each drafted row: the drafted row that it follows, counted from 0, or
                                          ///< anchor_parent; of a chain -1, 0, 1, ...
  std::span<const std::uint32_t> depths;  ///< of each drafted row: 1 follows the anchor. With n tokens of context, the
                                          ///< row's position in the sequence is n - 1 + depth
  std::span<const NodeIndex> nodes;       ///< of each drafted row: its node in the draft that was proposed
  DraftKind kind = DraftKind::ordered;    ///< of that draft: one that was sampled may be checked by rejection sampling
  PassShape shape;
  Ticket ticket;
};

/// What a round has to offer, for planners of several sequences; see Session::offer(). Valid until the next call.
struct Offer {
  DraftView draft;                      ///< as it was proposed
  std::span<const NodeIndex> sendable;  ///< the nodes that fit: each prefix of them can be planned,
                                        ///< where passes have no fixed widths
  std::size_t pending = 0;              ///< rows of the pass without a draft
};

/// What the picks of a pass decided. Nothing has changed yet: that is commit(). Its views are valid until the next
/// plan().
struct Decision {
  std::span<const CommittedToken> tokens;
  std::span<const std::size_t> rows;  ///< of the batch, ascending: those that stay in the cache. Pending ones, then the
                                      ///< accepted path; of a chain, a prefix. The last committed token has none.
  std::size_t keep = 0;               ///< how many these are
  bool restore = false;               ///< the state before the pass has to be put back instead (Rollback::snapshot):
                                      ///< not every row stays. The committed tokens are pending then
  std::size_t accepted = 0;           ///< tokens that the draft had foreseen
  FinishReason finish = FinishReason::none;
};

}  // namespace reprise
