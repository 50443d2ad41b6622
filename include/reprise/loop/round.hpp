// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The algorithm. One round of speculative decoding (Leviathan et al. 2023, Stern et al. 2018) with picks
/// instead of probabilities, as three pure functions:
///
///   best_chain()  the chain inside a draft that a verifier of chains can check
///   Room          how many of its tokens this pass may carry, and which rule says so
///   walk()        follow the draft while it agrees with the target's picks, then take one token more
///
/// Only walk() decides what is committed, and it commits picks, never drafted tokens: a draft can be wrong in any
/// way without changing the output.

#include <cstddef>
#include <optional>
#include <span>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"

namespace reprise {

/// Writes the indices of the best chain of `draft` to `chain` and returns its length: the first child of the
/// anchor, the first child of that node, and so on. In an ordered draft the first child is the likeliest. Nodes
/// whose parent is anything else (out of range, a later node, the node itself) are never reached.
inline std::size_t best_chain(DraftView draft, std::span<NodeIndex> chain) noexcept {
  std::size_t length = 0;
  NodeIndex last = anchor_parent;
  for (std::size_t i = 0; i < draft.size() && length < chain.size(); ++i) {
    if (draft[i].auxiliary || draft[i].parent != last) continue;
    last = static_cast<NodeIndex>(i);
    chain[length++] = last;
  }
  return length;
}

/// The number of draft tokens a pass may carry: the least of all bounds, and the rule that set it.
class Room {
 public:
  explicit Room(std::size_t proposed) noexcept : nodes_(proposed) {}

  void bound(std::size_t nodes, Cut why) noexcept {
    if (nodes >= nodes_) return;
    nodes_ = nodes;
    cut_ = why;
  }
  /// The pass has to have one of `widths` rows (ascending, empty: any). Never forbids a pass without a draft.
  void bound_width(std::span<const std::size_t> widths, std::size_t pending) noexcept {
    if (widths.empty()) return;
    std::size_t fitting = pending;
    for (const std::size_t width : widths)
      if (width >= pending && width <= pending + nodes_) fitting = width;
    bound(fitting - pending, Cut::width);
  }

  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }
  [[nodiscard]] Cut cut() const noexcept { return cut_; }

 private:
  std::size_t nodes_;
  Cut cut_ = Cut::none;
};

/// A token that a pass has committed.
struct CommittedToken {
  Token token = 0;
  std::size_t row = 0;   ///< the row of the batch that it was picked after: where its logits are
  bool drafted = false;  ///< it was in the draft
};

/// What a walk found.
struct Walk {
  std::size_t committed = 0;  ///< tokens written
  std::size_t accepted = 0;   ///< how many of them the draft had foreseen
  FinishReason finish = FinishReason::none;
  std::size_t trim = 0;       ///< tokens at the end that the returned output leaves out
  std::optional<Token> pick;  ///< the pick after the accepted path, if it was read
};

/// What walk() reads of the session.
struct WalkInput {
  TokenSpan output_and_draft;  ///< the output so far, and behind it the draft of this pass
  std::size_t output = 0;      ///< tokens of output so far
  std::size_t context = 0;     ///< committed tokens in all
  std::size_t max_context = unlimited;
  std::size_t anchor_row = 0;          ///< row of the anchor in the batch
  std::size_t picks_size = unlimited;  ///< picks there are; reading stops there
};

/// Follows the draft along the picks. Each pick is read at most once, in order, none after the first that
/// disagrees nor after the token that ends generation. `committed` has room for the draft and one token more.
template <Picks P, class Predicate>
Walk walk(const WalkInput& in, const Limits& limits, P&& picks, Predicate&& predicate,
          std::span<CommittedToken> committed) {
  Walk walked;
  const std::size_t drafted = in.output_and_draft.size() - in.output;
  for (std::size_t i = 0; i <= drafted && i < in.picks_size; ++i) {
    const auto next = static_cast<Token>(picks[i]);
    const TokenSpan output = in.output_and_draft.first(in.output + i);  // agreed drafts are output already
    const bool agrees = i < drafted && next == in.output_and_draft[in.output + i];
    const StopDecision decision = predicate(output, next);
    if (!agrees || decision == StopDecision::stop_before) walked.pick = next;
    if (decision == StopDecision::stop_before) {
      walked.finish = FinishReason::predicate;
      break;
    }
    committed[i] = {next, in.anchor_row + i, agrees};
    walked.committed = i + 1;
    walked.accepted += agrees ? 1 : 0;

    const StopCheck stop = check_stop(limits, output, next);
    walked.finish = stop.reason;
    walked.trim = stop.trim;
    if (walked.finish == FinishReason::none && decision == StopDecision::stop_after)
      walked.finish = FinishReason::predicate;
    if (walked.finish == FinishReason::none && in.output + i + 1 >= limits.max_tokens)
      walked.finish = FinishReason::max_tokens;
    if (walked.finish == FinishReason::none && in.context + i + 1 >= in.max_context)
      walked.finish = FinishReason::context_full;
    if (walked.finish != FinishReason::none || !agrees) break;
  }
  return walked;
}

}  // namespace reprise
