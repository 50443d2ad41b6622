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

namespace reprise::testing {

/// Stands between a loop and a strategy and keeps what the loop has told it, because a strategy that lost step does
/// not change the output: S1, S2, S5 and S6 can only be seen here.
template <DraftStrategy Strategy>
class Witness {
 public:
  explicit Witness(Strategy strategy) : strategy_(std::move(strategy)) {}

  void begin(TokenSpan tokens) {
    seen_.assign(tokens.begin(), tokens.end());
    feedbacks_ = 0;
    strategy_.begin(tokens);
  }
  void observe(TokenSpan tokens, Origin origin) {
    if (origin == Origin::output && !heard_) breach("S5: output was observed before the feedback of its round");
    heard_ = false;
    for (std::size_t i = 0; i < expected_.size(); ++i)
      if (i >= tokens.size() || tokens[i] != expected_[i]) breach("S5: the accepted path is not what was committed");
    expected_.clear();
    seen_.insert(seen_.end(), tokens.begin(), tokens.end());
    strategy_.observe(tokens, origin);
  }
  void propose(const DraftBudget& budget, Draft& draft) {
    if (!draft.empty()) breach("S3: the draft did not arrive empty");
    strategy_.propose(budget, draft);
    proposed_.assign(draft.view().begin(), draft.view().end());
    if (proposed_.size() > budget.max_nodes) proposed_.resize(budget.max_nodes);
  }
  void feedback(const Outcome& outcome) {
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
    check_revealed(outcome);
    proposed_.clear();
    strategy_.feedback(outcome);
  }
  /// It has no use for them, but looks at what it is told.
  [[nodiscard]] std::size_t candidates_wanted() const { return 3; }
  /// A round begins; it may be one in which control asks for no draft.
  void forget_proposal() { proposed_.clear(); }
  void truncate(std::size_t size) {
    seen_.resize(std::min(size, seen_.size()));
    strategy_.truncate(size);
  }

  /// The committed tokens as the strategy was told them.
  [[nodiscard]] TokenSpan seen() const { return seen_; }
  [[nodiscard]] std::size_t feedbacks() const { return feedbacks_; }
  /// Candidates that were revealed, in all rounds.
  [[nodiscard]] std::size_t revealed() const { return revealed_; }
  /// Pad rows of the last round.
  [[nodiscard]] std::size_t padding() const { return padding_; }
  [[nodiscard]] const std::string& breached() const { return breached_; }

 private:
  void check_revealed(const Outcome& outcome) {
    revealed_ += outcome.revealed.size();
    for (std::size_t i = 0; i < outcome.revealed.size(); ++i) {
      const Candidate& candidate = outcome.revealed[i];
      const bool first = i == 0 || outcome.revealed[i - 1].after != candidate.after;
      if (candidate.after != anchor_parent &&
          std::find(outcome.sent.begin(), outcome.sent.end(), candidate.after) == outcome.sent.end())
        return breach("a candidate after a node that was not sent");
      if (candidate.rank >= candidates_wanted() || candidate.rank != (first ? 0 : outcome.revealed[i - 1].rank + 1))
        return breach("candidates are not ranked, or more than were wanted");
    }
  }
  void breach(const char* sentence) {
    if (breached_.empty()) breached_ = sentence;
  }

  Strategy strategy_;
  std::vector<Token> seen_;
  std::vector<DraftNode> proposed_;
  std::vector<Token> expected_;
  std::size_t feedbacks_ = 0;
  std::size_t padding_ = 0;
  std::size_t revealed_ = 0;
  bool heard_ = false;
  std::string breached_;
};

/// One of several strategies, chosen when the program runs: one session type tests them all.
template <DraftStrategy... Strategies>
class OneOf {
 public:
  template <class Strategy>
  requires(std::same_as<Strategy, Strategies> || ...) OneOf(Strategy strategy) : strategy_(std::move(strategy)) {}

  void begin(TokenSpan tokens) {
    std::visit([&](auto& s) { s.begin(tokens); }, strategy_);
  }
  void observe(TokenSpan tokens, Origin origin) {
    std::visit([&](auto& s) { s.observe(tokens, origin); }, strategy_);
  }
  void propose(const DraftBudget& budget, Draft& draft) {
    std::visit([&](auto& s) { s.propose(budget, draft); }, strategy_);
  }
  void feedback(const Outcome& outcome) {
    std::visit([&](auto& s) { s.feedback(outcome); }, strategy_);
  }
  void truncate(std::size_t size) {
    std::visit([&](auto& s) { s.truncate(size); }, strategy_);
  }

 private:
  std::variant<Strategies...> strategy_;
};

}  // namespace reprise::testing
