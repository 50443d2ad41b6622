// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "reprise/control/head_control.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/headed_drafter.hpp"
#include "reprise/loop/session.hpp"

namespace reprise { inline namespace v0 {

/// The Speculator of an engine that has a draft head or a draft model. In each pass, it asks the lookup first, and the
/// head only where the head is expected to pay.
///
///   HeadedSpeculator session;
///   session.begin(prompt, capabilities);
///   while (!session.finished()) {
///     if (const std::size_t tokens = session.propose_lookup(limits)) {
///       const TokenSpan drafted = head.draft(session.context(), tokens);         // yours
///       session.add_head(drafted, limits, its time);
///     }
///     const auto pass = session.plan();
///     ...run the pass, resolve and commit, as with any Session...
///   }
///
/// Costs of passes and of the head are told, or learned from their times. Threads: as for Session.
class HeadedSpeculator : public Session<HeadedDrafter<>, HeadControl> {
 public:
  using Base = Session<HeadedDrafter<>, HeadControl>;

  HeadedSpeculator() : HeadedSpeculator(NgramOptions()) {}
  explicit HeadedSpeculator(const NgramOptions& drafter, CostOptions cost = {}, std::optional<HeadCost> head = {})
      : Base(HeadedDrafter<>(NgramDrafter<>(drafter)), HeadControl(std::move(cost), head)) {}

  /// Starts a round with the draft of the lookup. Returns how many tokens the head should draft, at most `most`; 0: it
  /// should not run in this pass.
  std::size_t propose_lookup(const Limits& limits, std::size_t most = HeadForecast::most_tokens) {
    strategy().head().clear();
    static_cast<void>(propose(limits));
    if (finished()) return 0;
    processed_ = std::min(processed_, context().size());
    return control().head_tokens(strategy().forecast(), {1, pending().size(), context().size()}, late(), most);
  }
  std::size_t propose_lookup(const Limits&&, std::size_t = 0) = delete;  // limits must live until the round ends
  /// Adds the head's draft to that of the lookup. `limits`: those of propose_lookup(). `time`: how long the head took.
  /// Without tokens, only its time counts. Errors: out_of_memory; the round then has the draft of the lookup.
  Result<void> add_head(TokenSpan tokens, const Limits& limits, std::optional<Duration> time = {}) {
    control().head_ran(tokens.size(), late(), time);
    processed_ = context().size();
    if (tokens.empty()) return {};
    auto set = strategy().set(tokens);
    static_cast<void>(propose(limits));
    return set;
  }
  Result<void> add_head(TokenSpan, const Limits&&, std::optional<Duration> = {}) = delete;
  /// Returns the committed tokens that the head has not processed, because it did not run.
  [[nodiscard]] std::size_t late() const noexcept { return context().size() - processed_; }

  Result<void> begin(TokenSpan context, Capabilities capabilities = {}, std::optional<std::size_t> cached = {}) {
    auto begun = Base::begin(context, capabilities, cached);
    if (begun) processed_ = context.size();  // a head runs with the prompt
    return begun;
  }

 private:
  std::size_t processed_ = 0;  // tokens that the head has processed
};

}}  // namespace reprise
