// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A strategy together with the context that it is lent, for tests that call strategies without a session.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise::testing {

/// A draft with memory of its own.
struct Drafted {
  std::vector<DraftNode> nodes;
  DraftKind kind = DraftKind::ordered;
  bool left_out = false;
  bool held_back = false;
  bool malformed = false;

  [[nodiscard]] DraftView view() const { return {nodes, kind}; }
  [[nodiscard]] std::vector<Token> tokens() const {
    std::vector<Token> tokens;
    for (const DraftNode& node : nodes) tokens.push_back(node.token);
    return tokens;
  }
};

/// Returns the draft of `strategy` after `context`, with room for `capacity` nodes.
template <class S>
Drafted propose(S& strategy, TokenSpan context, const DraftBudget& budget = {}, std::size_t capacity = 64) {
  std::vector<DraftNode> storage(capacity);
  Draft draft(storage, budget);
  strategy.propose(context, draft);
  return {{draft.view().begin(), draft.view().end()},
          draft.view().kind(),
          draft.left_out(),
          draft.held_back(),
          draft.malformed()};
}

/// A strategy and its context, which grows and shrinks as in a session. Apart from the context, only the propose()
/// without the caller's storage allocates.
template <class S>
class Lent {
 public:
  Lent() = default;
  explicit Lent(S strategy) : strategy_(std::move(strategy)) {}

  void begin(TokenSpan context) {
    context_.assign(context.begin(), context.end());
    strategy_.begin(this->context());
  }
  void observe(TokenSpan fresh, Origin origin = Origin::output) {
    context_.insert(context_.end(), fresh.begin(), fresh.end());
    strategy_.observe(context(), fresh.size(), origin);
  }
  void propose(Draft& draft) { strategy_.propose(context(), draft); }
  [[nodiscard]] Drafted propose(const DraftBudget& budget = {}, std::size_t capacity = 64) {
    return testing::propose(strategy_, context(), budget, capacity);
  }
  void feedback(const Outcome& outcome) { strategy_.feedback(context(), outcome); }
  void truncate(std::size_t size) {
    strategy_.truncate(context(), size);
    context_.resize(size);
  }
  void rebase(TokenSpan context) {
    const std::vector<Token> before = std::exchange(context_, {context.begin(), context.end()});
    strategy_.rebase(TokenSpan(before), this->context());
  }
  /// Reserves memory for a context of this size, here and in strategies that can reserve.
  void reserve(std::size_t max_context) {
    context_.reserve(max_context);
    if constexpr (ReservableStrategy<S>) strategy_.reserve(max_context);
  }

  [[nodiscard]] TokenSpan context() const { return context_; }
  [[nodiscard]] S& strategy() { return strategy_; }
  [[nodiscard]] const S& strategy() const { return strategy_; }
  S* operator->() { return &strategy_; }
  const S* operator->() const { return &strategy_; }

 private:
  S strategy_;
  std::vector<Token> context_;
};

}  // namespace reprise::testing
