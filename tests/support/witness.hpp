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
  }
  void feedback(const Outcome& outcome) {
    if (heard_) breach("S5: two feedbacks in one round");
    heard_ = true;
    ++feedbacks_;
    const auto& draft = outcome.draft;
    if (outcome.accepted.size() > outcome.sent.size() ||
        !std::equal(outcome.accepted.begin(), outcome.accepted.end(), outcome.sent.begin()))
      breach("S5: what was accepted is no head of what was sent");
    for (std::size_t i = 0; i < outcome.sent.size(); ++i) {
      const auto node = static_cast<std::size_t>(outcome.sent[i]);
      if (node >= draft.size() || node >= proposed_.size() || draft[node].token != proposed_[node].token)
        return breach("S5: what was sent is not what was proposed");
      if (draft[node].parent != (i == 0 ? anchor_parent : outcome.sent[i - 1]))
        return breach("S5: what was sent is no chain from the anchor");
      if (i < outcome.accepted.size()) expected_.push_back(draft[node].token);
    }
    strategy_.feedback(outcome);
  }
  void truncate(std::size_t size) {
    seen_.resize(std::min(size, seen_.size()));
    strategy_.truncate(size);
  }

  /// The committed tokens as the strategy was told them.
  [[nodiscard]] TokenSpan seen() const { return seen_; }
  [[nodiscard]] std::size_t feedbacks() const { return feedbacks_; }
  [[nodiscard]] const std::string& breached() const { return breached_; }

 private:
  void breach(const char* sentence) {
    if (breached_.empty()) breached_ = sentence;
  }

  Strategy strategy_;
  std::vector<Token> seen_;
  std::vector<DraftNode> proposed_;
  std::vector<Token> expected_;
  std::size_t feedbacks_ = 0;
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
