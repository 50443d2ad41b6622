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
namespace reprise {

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
  std::span<const NodeIndex> parents;     ///< of each drafted row: the drafted row that it follows, counted from 0, or
                                          ///< anchor_parent; of a chain -1, 0, 1, ...
  std::span<const std::uint32_t> depths;  ///< of each drafted row: 1 follows the anchor. With n tokens of context, the
                                          ///< row's position in the sequence is n - 1 + depth
  PassShape shape;
  Ticket ticket;
};

/// For engines that walk the draft themselves (on the device): the committed tokens, the accepted ones first and
/// then the pick that ends the path, each with the row of the batch that it was picked after.
struct Accepted {
  std::span<const std::size_t> rows;
  TokenSpan tokens;
};

/// What the picks of a pass decided. Nothing has changed yet: that is commit(). Its views are valid until the next
/// plan().
struct Decision {
  std::span<const CommittedToken> tokens;
  std::span<const std::size_t> rows;  ///< of the batch, ascending: those that stay in the cache. Pending ones, then the
                                      ///< accepted path; of a chain, a prefix. The last committed token has none.
  std::size_t keep = 0;               ///< how many these are
  std::size_t accepted = 0;           ///< tokens that the draft had foreseen
  FinishReason finish = FinishReason::none;
};

}  // namespace reprise
