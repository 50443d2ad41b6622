// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"
#include "support/lent_context.hpp"

namespace reprise::testing {

/// A target that ranks tokens. Its ranking after a text depends on the last `order` tokens.
struct RankedText {
  std::size_t order = 1;
  Token vocabulary = 12;
  std::uint64_t seed = 1;

  [[nodiscard]] Token say(TokenSpan text, std::size_t rank = 0) const {
    std::uint64_t hash = mix(seed);
    for (const Token token : text.last(std::min(order, text.size())))
      hash = mix(hash ^ static_cast<std::uint32_t>(token));
    // Different ranks have different tokens.
    return static_cast<Token>((hash + rank * (1 + hash % 2 * 4)) % static_cast<std::uint64_t>(vocabulary));
  }
};

inline std::vector<Token> tokens_to(DraftView draft, NodeIndex node) {
  std::vector<Token> path;
  for (; node != anchor_parent; node = draft[static_cast<std::size_t>(node)].parent)
    path.insert(path.begin(), draft[static_cast<std::size_t>(node)].token);
  return path;
}

inline std::vector<Token> behind(TokenSpan context, DraftView draft, NodeIndex node) {
  std::vector<Token> text(context.begin(), context.end());
  const std::vector<Token> path = tokens_to(draft, node);
  text.insert(text.end(), path.begin(), path.end());
  return text;
}

/// Returns the first `ranks` choices of the target for the anchor's row and for the rows of `sent`.
inline std::vector<Outcome::RankedToken> revealed_by(const RankedText& target, TokenSpan context, DraftView draft,
                                                     std::span<const NodeIndex> sent, std::size_t ranks) {
  std::vector<Outcome::RankedToken> revealed;
  const auto reveal = [&](NodeIndex node) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      revealed.push_back({node, static_cast<std::uint16_t>(rank), target.say(behind(context, draft, node), rank)});
  };
  reveal(anchor_parent);
  for (const NodeIndex node : sent) reveal(node);
  return revealed;
}

/// One round of a greedy target.
struct RankedRound {
  std::vector<DraftNode> nodes;
  std::vector<NodeIndex> accepted;
  std::vector<Token> committed;
  [[nodiscard]] DraftView draft() const { return {nodes, DraftKind::ordered}; }
};
struct RankedRoundOptions {
  DraftBudget budget = {};
  std::size_t most_sent = unlimited;
  bool reveals = true;
};

/// Proposes, verifies, learns and commits: the lent context grows.
template <class Strategy>
RankedRound run_round(Lent<Strategy>& strategy, const RankedText& target, const RankedRoundOptions& options = {}) {
  RankedRound round;
  round.nodes = strategy.propose(options.budget).nodes;
  const TokenSpan context = strategy.context();
  std::vector<NodeIndex> sent;
  for (std::size_t i = 0; i < std::min(round.nodes.size(), options.most_sent); ++i)
    sent.push_back(static_cast<NodeIndex>(i));
  NodeIndex last = anchor_parent;
  for (bool agrees = true; agrees;) {
    const Token pick = target.say(behind(context, round.draft(), last));
    round.committed.push_back(pick);
    const auto next = std::find_if(sent.begin(), sent.end(), [&](NodeIndex i) {
      const DraftNode& node = round.nodes[static_cast<std::size_t>(i)];
      return !node.auxiliary && node.parent == last && node.token == pick;
    });
    agrees = next != sent.end();
    if (agrees) round.accepted.push_back(last = *next);
  }
  const auto revealed = options.reveals ? revealed_by(target, context, round.draft(), sent,
                                                      static_cast<std::size_t>(strategy->top_k_wanted()))
                                        : std::vector<Outcome::RankedToken>();
  const Cut cut = sent.size() < round.nodes.size() ? Cut::budget : Cut::none;
  strategy.feedback({round.draft(), sent, round.accepted, round.committed.back(), cut, revealed});
  strategy.observe(round.committed, Origin::output);
  return round;
}

/// Shows a row of the anchor in a pass without a draft, which commits `pick`.
template <class Strategy>
void show_row(Lent<Strategy>& strategy, const std::vector<Token>& row, Token pick) {
  std::vector<Outcome::RankedToken> revealed;
  for (const Token token : row) revealed.push_back({anchor_parent, static_cast<std::uint16_t>(revealed.size()), token});
  strategy.feedback({{}, {}, {}, pick, Cut::none, revealed});
  strategy.observe(std::vector<Token>{pick}, Origin::output);
}
/// The row after `token` that a drafter knows.
template <class Strategy>
std::vector<Token> row_of(const Lent<Strategy>& strategy, Token token) {
  const TokenSpan row = strategy->top_k(token);
  return {row.begin(), row.end()};
}

/// A strategy whose outcomes carry the top-k rows of a TopKVerifier, for checks that drive strategies without one.
template <DraftStrategy Strategy>
class Revealing {
 public:
  Revealing(Strategy strategy, const RankedText& target) : strategy_(std::move(strategy)), target_(target) {}

  void begin(TokenSpan context) { strategy_.begin(context); }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) { strategy_.observe(context, fresh, origin); }
  void propose(TokenSpan context, Draft& draft) { strategy_.propose(context, draft); }
  void feedback(TokenSpan context, Outcome outcome) {
    std::vector<NodeIndex> all(outcome.draft.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<NodeIndex>(i);
    const auto ranks = static_cast<std::size_t>(strategy_.top_k_wanted());
    const std::vector<Outcome::RankedToken> revealed = revealed_by(target_, context, outcome.draft, all, ranks);
    outcome.sent = all;
    outcome.top_k = revealed;
    strategy_.feedback(context, outcome);
  }
  void truncate(TokenSpan context, std::size_t size) { strategy_.truncate(context, size); }
  [[nodiscard]] Strategy& strategy() { return strategy_; }

 private:
  Strategy strategy_;
  RankedText target_;
};

}  // namespace reprise::testing
