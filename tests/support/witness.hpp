// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/detail/lent_copy.hpp"

namespace reprise::testing {

/// Wraps a strategy and records the calls of the loop. A strategy out of step does not change the output, so only a
/// witness can see breaches of S1, S2, S5 and S6. It lends the strategy a copy of the context, which is overwritten
/// after each call.
template <DraftStrategy Strategy>
class Witness {
 public:
  explicit Witness(Strategy strategy) : strategy_(std::move(strategy)) {}

  void begin(TokenSpan context) {
    seen_.assign(context.begin(), context.end());
    feedbacks_ = 0;
    lender_.lend(context, [&](TokenSpan lent) { strategy_.begin(lent); });
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    if (origin == Origin::output && !heard_) breach("S5: output was observed before the feedback of its round");
    if (fresh > context.size()) return breach("S2: more tokens are new than there are");
    check_context(context.first(context.size() - fresh), "S2: the tokens before the new ones are not the known ones");
    const TokenSpan tokens = context.last(fresh);
    heard_ = false;
    for (std::size_t i = 0; i < expected_.size(); ++i)
      if (i >= tokens.size() || tokens[i] != expected_[i]) breach("S5: the accepted path is not what was committed");
    expected_.clear();
    seen_.insert(seen_.end(), tokens.begin(), tokens.end());
    lender_.lend(context, [&](TokenSpan lent) { strategy_.observe(lent, fresh, origin); });
  }
  void propose(TokenSpan context, Draft& draft) {
    if (!draft.empty()) breach("S3: the draft did not arrive empty");
    check_context(context, "S3: the context is not the committed tokens");
    lender_.lend(context, [&](TokenSpan lent) { strategy_.propose(lent, draft); });
    proposed_.assign(draft.view().begin(), draft.view().end());
    if (proposed_.size() > draft.budget().max_nodes) breach("S3: the draft took more nodes than its budget");
  }
  void feedback(TokenSpan context, const Outcome& outcome) {
    check_context(context, "S5: the context does not end at the anchor of the round");
    if (heard_) breach("S5: two feedbacks in one round");
    heard_ = true;
    ++feedbacks_;
    const auto& draft = outcome.draft;
    padding_ = 0;
    for (std::size_t i = 0; i < outcome.sent.size(); ++i) {
      const NodeIndex node = outcome.sent[i];
      if (node < 0 || static_cast<std::size_t>(node) >= draft.size() || (i > 0 && node <= outcome.sent[i - 1]))
        return breach("S5: what was sent is not in the order of the draft");
      const DraftNode& sent = draft[static_cast<std::size_t>(node)];
      const bool padding = static_cast<std::size_t>(node) >= proposed_.size();
      padding_ += padding ? 1 : 0;
      if (padding ? sent.source != DraftSource::padding : sent.token != proposed_[static_cast<std::size_t>(node)].token)
        return breach("S5: what was sent is neither what was proposed nor padding");
      const auto before = outcome.sent.first(i);
      if (sent.parent != anchor_parent && std::find(before.begin(), before.end(), sent.parent) == before.end())
        return breach("S5: what was sent follows something that was not");
    }
    for (std::size_t i = 0; i < outcome.accepted.size(); ++i) {
      const NodeIndex node = outcome.accepted[i];
      if (draft[static_cast<std::size_t>(node)].auxiliary) return breach("S5: an auxiliary node was accepted");
      if (std::find(outcome.sent.begin(), outcome.sent.end(), node) == outcome.sent.end())
        return breach("S5: what was accepted was not sent");
      if (draft[static_cast<std::size_t>(node)].parent != (i == 0 ? anchor_parent : outcome.accepted[i - 1]))
        return breach("S5: what was accepted is no path from the anchor");
      expected_.push_back(draft[static_cast<std::size_t>(node)].token);
    }
    check_top_k(outcome);
    proposed_.clear();
    lender_.lend(context, [&](TokenSpan lent) { strategy_.feedback(lent, outcome); });
  }
  /// The witness checks top-k rows, whether the strategy has a use for them or not.
  [[nodiscard]] std::size_t top_k_wanted() const { return 8; }
  void learn_row(TokenSpan context, TokenSpan likeliest) {
    check_context(context, "a row of the prompt after other tokens than the committed ones", context.size());
    if constexpr (RowLearner<Strategy>)
      lender_.lend(context, [&](TokenSpan lent) { strategy_.learn_row(lent, likeliest); });
  }
  /// A round begins, possibly one in which control asks for no draft.
  void forget_proposal() { proposed_.clear(); }
  void truncate(TokenSpan context, std::size_t size) {
    check_context(context, "S6: the context is not as it was before the call");
    seen_.resize(std::min(size, seen_.size()));
    lender_.lend(context, [&](TokenSpan lent) { strategy_.truncate(lent, size); });
  }

  /// The committed tokens as the strategy has seen them.
  [[nodiscard]] TokenSpan seen() const { return seen_; }
  [[nodiscard]] std::size_t feedbacks() const { return feedbacks_; }
  /// Number of top-k tokens over all rounds.
  [[nodiscard]] std::size_t revealed() const { return revealed_; }
  /// Pad rows of the last round.
  [[nodiscard]] std::size_t padding() const { return padding_; }
  [[nodiscard]] const std::string& breached() const { return breached_; }

 private:
  /// Compares `context` with the first `size` tokens that are committed.
  void check_context(TokenSpan context, const char* otherwise, std::size_t size = unlimited) {
    const TokenSpan seen = TokenSpan(seen_).first(std::min(size, seen_.size()));
    if (!std::equal(context.begin(), context.end(), seen.begin(), seen.end())) breach(otherwise);
  }
  void check_top_k(const Outcome& outcome) {
    revealed_ += outcome.top_k.size();
    for (std::size_t i = 0; i < outcome.top_k.size(); ++i) {
      const Outcome::RankedToken& candidate = outcome.top_k[i];
      const bool first = i == 0 || outcome.top_k[i - 1].after != candidate.after;
      if (candidate.after != anchor_parent &&
          std::find(outcome.sent.begin(), outcome.sent.end(), candidate.after) == outcome.sent.end())
        return breach("a candidate after a node that was not sent");
      if (candidate.rank >= top_k_wanted() || candidate.rank != (first ? 0 : outcome.top_k[i - 1].rank + 1))
        return breach("candidates are not ranked, or more than were wanted");
    }
  }
  void breach(const char* sentence) {
    if (breached_.empty()) breached_ = sentence;
  }

  Strategy strategy_;
  detail::LentCopy lender_;
  std::vector<Token> seen_;
  std::vector<DraftNode> proposed_;
  std::vector<Token> expected_;
  std::size_t feedbacks_ = 0;
  std::size_t padding_ = 0;
  std::size_t revealed_ = 0;
  bool heard_ = false;
  std::string breached_;
};

/// One of several strategies, chosen at run time: one session type tests them all.
template <DraftStrategy... Strategies>
class OneOf {
 public:
  template <class Strategy>
  requires(std::same_as<Strategy, Strategies> || ...) OneOf(Strategy strategy) : strategy_(std::move(strategy)) {}

  void begin(TokenSpan context) {
    std::visit([&](auto& s) { s.begin(context); }, strategy_);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    std::visit([&](auto& s) { s.observe(context, fresh, origin); }, strategy_);
  }
  void propose(TokenSpan context, Draft& draft) {
    std::visit([&](auto& s) { s.propose(context, draft); }, strategy_);
  }
  void feedback(TokenSpan context, const Outcome& outcome) {
    std::visit([&](auto& s) { s.feedback(context, outcome); }, strategy_);
  }
  void truncate(TokenSpan context, std::size_t size) {
    std::visit([&](auto& s) { s.truncate(context, size); }, strategy_);
  }
  void learn_row(TokenSpan context, TokenSpan likeliest) {
    std::visit(
        [&]<class S>(S& s) {
          if constexpr (RowLearner<S>) s.learn_row(context, likeliest);
        },
        strategy_);
  }

 private:
  std::variant<Strategies...> strategy_;
};

}  // namespace reprise::testing
