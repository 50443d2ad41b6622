// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The algorithm: one round of speculative decoding, with picks instead of probabilities. Sources: Leviathan et
/// al. 2023 and Stern et al. 2018; for trees, Miao et al. 2023 ("SpecInfer").
///
/// walk() follows the draft while it agrees with the target's picks, then takes one more pick. A stop rule or a limit
/// can end the walk earlier. Only walk() decides which tokens are committed, and it commits picks, never drafted
/// tokens. So a draft can be wrong in any way without changing the output.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"

namespace reprise { inline namespace v0 {

/// A token that a pass commits.
struct CommittedToken {
  Token token = 0;
  std::size_t row = 0;   ///< the row of the batch after which the target picked it
  bool drafted = false;  ///< true if it is the token of an accepted drafted row
};

/// The result of walk().
struct Walk {
  /// The input of walk(). Of these members, walk() writes only to `text`. It puts accepted tokens after the output, so
  /// that the predicate and the stop rules see one contiguous output. No other code reads these tokens before commit.
  struct Input {
    std::span<Token> text;    ///< the output so far, then room for every token that the pass can commit
    std::size_t output = 0;   ///< output tokens so far
    std::size_t context = 0;  ///< committed tokens in total
    std::size_t max_context = unlimited;
    TokenSpan draft;                       ///< the tokens of the drafted rows
    std::span<const NodeIndex> parents;    ///< the drafted row that each drafted row follows, or anchor_parent
    std::span<const bool> auxiliary = {};  ///< true for rows that are never accepted; empty: none
    std::size_t anchor_row = 0;            ///< row of the anchor in the batch
    std::size_t picked_rows = unlimited;   ///< number of rows with a pick, from the anchor's row on
    std::size_t most_picks = unlimited;    ///< upper bound on picks to read
  };

  /// The memory that walk() writes to. `path` has one element per drafted row; `committed` has one element more.
  struct Output {
    std::span<CommittedToken> committed;
    std::span<NodeIndex> path;  ///< the accepted drafted rows
  };

  std::size_t committed = 0;  ///< tokens written
  std::size_t accepted = 0;   ///< drafted tokens among the committed ones
  FinishReason finish = FinishReason::none;
  std::size_t trim = 0;       ///< tokens at the end that the returned output omits
  std::optional<Token> pick;  ///< the pick after the accepted path, if it was read
};

/// Returns the index of the pick after a drafted row. Index 0 is the pick after the anchor.
inline std::size_t pick_after(NodeIndex row) noexcept {
  return row == anchor_parent ? 0 : static_cast<std::size_t>(row) + 1;
}

/// Returns the first drafted row that follows `parent`, holds `token` and may be accepted. Returns anchor_parent if
/// there is none.
inline NodeIndex find_child(const Walk::Input& in, NodeIndex parent, Token token) noexcept {
  for (std::size_t row = pick_after(parent); row < in.draft.size(); ++row)
    if (in.parents[row] == parent && in.draft[row] == token && (in.auxiliary.empty() || !in.auxiliary[row]))
      return static_cast<NodeIndex>(row);
  return anchor_parent;
}

/// Follows the draft while it agrees with the picks. Writes the committed tokens and the accepted rows to `out`.
/// Returns their numbers and the finish reason. Also writes accepted tokens after the output in `in.text`; if the round
/// is cancelled, nothing reads them. Each pick is read at most once, in order. No pick is read after the first one that
/// matches no child, or after the token that ends generation.
template <Picks P, class Predicate>
Walk walk(const Walk::Input& in, const Limits& limits, P&& picks, Predicate&& predicate, const Walk::Output& out) {
  Walk walked;
  NodeIndex last = anchor_parent;  // the row whose pick is read next
  for (std::size_t i = 0; i < in.most_picks; ++i) {
    const std::size_t pick = pick_after(last);
    if (pick >= in.picked_rows) break;
    const auto next = static_cast<Token>(picks[pick]);
    const TokenSpan output = in.text.first(in.output + i);  // accepted tokens are in the text already
    const NodeIndex child = find_child(in, last, next);
    const bool agrees = child != anchor_parent;
    const StopDecision decision = predicate(output, next);
    if (!agrees || decision == StopDecision::stop_before) walked.pick = next;
    if (decision == StopDecision::stop_before) {
      walked.finish = FinishReason::predicate;
      break;
    }
    out.committed[i] = {next, in.anchor_row + pick, agrees};
    walked.committed = i + 1;
    if (agrees) out.path[walked.accepted++] = child;

    const detail::StopCheck stop = detail::check_stop(limits, output, next);
    walked.finish = stop.reason;
    walked.trim = stop.trim;
    if (walked.finish == FinishReason::none && decision == StopDecision::stop_after)
      walked.finish = FinishReason::predicate;
    if (walked.finish == FinishReason::none && in.output + i + 1 >= limits.max_tokens)
      walked.finish = FinishReason::max_tokens;
    if (walked.finish == FinishReason::none && in.context + i + 1 >= in.max_context)
      walked.finish = FinishReason::context_full;
    if (walked.finish != FinishReason::none || !agrees) break;
    in.text[in.output + i] = next;
    last = child;
  }
  return walked;
}

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

}}  // namespace reprise
