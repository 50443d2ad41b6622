// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/head_control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/headed_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/session.hpp"

namespace reprise { inline namespace v0 {

/// The strategy of a BatchFollower for an engine that has a draft head or a draft model; see
/// BatchFollower::propose_lookup().
using HeadedNgramDrafter = detail::HeadedDrafter<>;

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
class HeadedSpeculator : public Session<detail::HeadedDrafter<>, detail::HeadControl> {
 public:
  using Base = Session<detail::HeadedDrafter<>, detail::HeadControl>;

  HeadedSpeculator() : HeadedSpeculator(NgramOptions()) {}
  explicit HeadedSpeculator(const NgramOptions& drafter, CostOptions cost = {}, std::optional<HeadCost> head = {})
      : Base(detail::HeadedDrafter<>(NgramDrafter<>(drafter)), detail::HeadControl(std::move(cost), head)) {}

  /// Starts a round with the draft of the lookup. Returns how many tokens the head should draft, at most `most` and at
  /// most what fits into the pass; 0: it should not run. `limits` must live until the round ends.
  std::size_t propose_lookup(const Limits& limits, std::size_t most = usual_draft_nodes) {
    asked_ = 0;
    static_cast<void>(cancel(lookup_));  // if no pass was planned after it, nothing has run
    strategy().clear();
    static_cast<void>(propose(limits));
    if (context().empty() || finished()) return 0;
    const auto planned = plan();  // says how many rows fit
    if (!planned) return 0;
    lookup_ = planned->ticket;
    const std::size_t room = std::min({most, control().room(), limits.draft.max_nodes});
    const PassShape plain{1, pending().size(), context().size()};
    return asked_ = control().ask_head(strategy().forecast(), plain, room);
  }
  std::size_t propose_lookup(const Limits&&, std::size_t = 0) = delete;  // limits must live until the round ends
  /// Adds the head's draft to that of the lookup; tokens beyond those that propose_lookup() has asked for are left out.
  /// `limits`: those of propose_lookup(). `time`: how long the head took, for learned costs. Without tokens, only its
  /// time counts. Has no effect if no head was asked for. Errors: out_of_memory; the round then has the draft of the
  /// lookup.
  Result<void> add_head(TokenSpan tokens, const Limits& limits, std::optional<Duration> time = {}) {
    const std::size_t asked = std::exchange(asked_, 0);
    if (asked == 0) return {};
    const TokenSpan taken = tokens.first(std::min(tokens.size(), asked));
    control().head_ran(std::max<std::size_t>(taken.size(), 1), time);
    if (taken.empty()) return strategy().set(taken);
    if (auto cancelled = cancel(lookup_); !cancelled) return cancelled;
    auto set = strategy().set(taken);
    static_cast<void>(propose(limits));
    return set;
  }
  Result<void> add_head(TokenSpan, const Limits&&, std::optional<Duration> = {}) = delete;

  /// Returns a second session that continues from the committed state of this one. Errors: as Session::fork().
  [[nodiscard]] Result<HeadedSpeculator> fork() const {
    auto forked = Base::fork();
    if (!forked) return forked.error();
    return HeadedSpeculator(std::move(*forked));
  }

 private:
  explicit HeadedSpeculator(Base&& session) noexcept : Base(std::move(session)) {}

  Ticket lookup_;          // of the pass with the draft of the lookup alone
  std::size_t asked_ = 0;  // tokens of the head
};

}}  // namespace reprise
