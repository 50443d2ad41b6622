// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/capabilities.hpp"
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

/// The next batch to run.
struct Pass {
  TokenSpan batch;          ///< [pending | draft]; valid and unchanged until the pass is committed or cancelled
  std::size_t pending = 0;  ///< committed tokens at its front that are not in the cache; the last is the anchor
  std::size_t drafted = 0;  ///< drafted tokens behind them
  PassShape shape;
  Ticket ticket;
};

/// For engines that walk the draft themselves (on the device): the committed tokens, the accepted ones first and
/// then the pick that ends the path, each with the row of the batch that it was picked after.
struct Accepted {
  std::span<const std::size_t> rows;
  TokenSpan tokens;
};

/// What the picks of a pass decided. Nothing has changed yet: that is commit().
struct Decision {
  std::span<const CommittedToken> tokens;  ///< valid until the next plan()
  std::size_t keep = 0;                    ///< rows of the batch that stay in the cache
  std::size_t accepted = 0;                ///< tokens that the draft had foreseen
  FinishReason finish = FinishReason::none;
};

}  // namespace reprise
