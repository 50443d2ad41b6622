// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/engine/rejection.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise::inline v0 {

/// What a generation gave. `tokens` lies in the session and holds until the session changes.
struct Generation {
  TokenSpan tokens;  ///< the output, without the stop tokens that ended it
  FinishReason finish = FinishReason::none;
  Statistics statistics;
};

/// The streaming callback of those who need none.
struct IgnoreTokens {
  void operator()(TokenSpan) const noexcept {}
};

namespace detail {

/// Leaves the session as before the round unless the round was committed: also when the verifier throws.
template <class Session>
class CancelAtEnd {
 public:
  CancelAtEnd(Session& session, Ticket ticket) noexcept : session_(session), ticket_(ticket) {}
  CancelAtEnd(const CancelAtEnd&) = delete;
  CancelAtEnd& operator=(const CancelAtEnd&) = delete;
  ~CancelAtEnd() { static_cast<void>(session_.cancel(ticket_)); }  // of a committed round: refused, changes nothing

 private:
  Session& session_;
  Ticket ticket_;
};

/// Calls what may answer with a Result<void> or with nothing.
template <class Call>
Result<void> attempt(Call&& call) {
  if constexpr (is_result<std::remove_cvref_t<std::invoke_result_t<Call&>>>)
    return call();
  else
    return call(), Result<void>();
}

inline Error no_checkpoints() {
  return {ErrorCode::invalid_argument,
          "the engine rolls back by snapshot, but the verifier has no snapshot() and restore(committed): add them "
          "(CheckpointVerifier), or keep a state for each row (Rollback::per_row)"};
}

/// The engine keeps what was agreed on and forgets the rest.
template <Verifier V>
Result<void> keep_rows(V& verifier, const Capabilities& can, const Decision& decision) {
  if (decision.restore) {
    if constexpr (CheckpointVerifier<V>)
      return attempt([&] { return verifier.restore(decision.tokens.size()); });
    else
      return no_checkpoints();
  }
  if constexpr (TreeVerifier<V>)
    if (can.max_leaves > 1) return attempt([&] { return verifier.commit_rows(decision.rows); });
  return attempt([&] { return verifier.commit(decision.keep); });
}

/// Shows the strategy what the target ranks high, row by row.
template <class Strategy, class Control, class V>
void report_top_k(Session<Strategy, Control>& session, const Pass& pass, V& verifier) {
  if constexpr (TopKVerifier<V> && TopKLearner<Strategy>) {
    const auto wanted = static_cast<std::size_t>(session.strategy().top_k_wanted());
    for (std::size_t i = 0; wanted > 0 && i <= pass.drafted; ++i) {
      const TokenSpan tokens = verifier.top_k(i);
      static_cast<void>(session.report_top_k(pass.ticket, i, tokens.first(std::min(wanted, tokens.size()))));
    }
  }
}

/// Decides on a sampled draft by rejection sampling.
template <class Strategy, class Control, DistributionVerifier V, class Predicate>
Result<Decision> reject_or_take(Session<Strategy, Control>& session, const Pass& pass, V& verifier,
                                Predicate& predicate) {
  const auto target = [&](std::size_t i) { return std::span<const float>(verifier.probabilities(i)); };
  const auto drafter = [&](std::size_t i) {
    return std::span<const float>(session.strategy().distribution(pass.nodes[i]));
  };
  const auto uniform = [&] { return static_cast<double>(verifier.uniform()); };
  const TokenSpan drafted = pass.batch.last(pass.drafted).first(pass.drafted - pass.padding);
  RejectionPicks picks(drafted, target, drafter, uniform);
  auto decision = session.resolve(pass.ticket, picks, predicate);
  if (picks.failed())
    return Error{ErrorCode::verifier_failed,
                 "probabilities(i) holds no weight at all: a distribution has a token that can follow"};
  return decision;
}

/// Commits what the verifier's answer decides.
template <class Strategy, class Control, Verifier V, class Answer, class Predicate>
Result<void> finish_pass(Session<Strategy, Control>& session, const Pass& pass, V& verifier, Answer&& answer,
                         Predicate& predicate) {
  constexpr bool may_fail = is_result<std::remove_cvref_t<Answer>>;
  if constexpr (may_fail) {
    if (!answer) return answer.error();
  }
  auto decision = [&]() -> Result<Decision> {
    if constexpr (DistributionVerifier<V> && DistributionStrategy<Strategy>)
      // Where passes have fixed widths, how much of a draft is sent depends on how long it is, and that on what was
      // drawn: agreement is exact then as well, rejection is not.
      if (pass.kind == DraftKind::sampled && session.capabilities().allowed_widths.empty())
        return reject_or_take(session, pass, verifier, predicate);
    if constexpr (may_fail)
      return session.resolve(pass.ticket, *answer, predicate);
    else
      return session.resolve(pass.ticket, answer, predicate);
  }();
  if (!decision) return decision.error();
  report_top_k(session, pass, verifier);
  if (auto kept = keep_rows(verifier, session.capabilities(), *decision); !kept) return kept;
  if constexpr (TimedVerifier<V>) {
    static_assert(noexcept(std::chrono::nanoseconds(verifier.pass_time())),
                  "pass_time() has to be noexcept: the engine has kept its rows, and the session has to follow");
    return session.commit(pass.ticket, verifier.pass_time());
  } else {
    return session.commit(pass.ticket);
  }
}

/// Runs one planned pass through the verifier and commits it.
template <class Strategy, class Control, Verifier V, class Predicate>
Result<void> run_pass(Session<Strategy, Control>& session, const Pass& pass, V& verifier, Predicate& predicate) {
  const CancelAtEnd round(session, pass.ticket);
  if constexpr (CheckpointVerifier<V>) {
    constexpr bool may_refuse = !std::is_same_v<std::remove_cvref_t<Predicate>, NeverStop>;
    constexpr bool draws = !requires(unwrap_t<decltype(verifier.verify(pass.batch, pass.drafted))> & picks) {
      picks.size();
    };
    constexpr bool ranks = TopKVerifier<V> && TopKLearner<Strategy>;
    constexpr bool may_be_void = may_refuse || draws || ranks;  // though nothing was drafted
    if (session.capabilities().rollback == Rollback::snapshot && (may_be_void || pass.drafted > 0))
      if (auto saved = attempt([&] { return verifier.snapshot(); }); !saved) return saved;
  }
  if constexpr (SelfWalkingVerifier<V>) {
    return finish_pass(session, pass, verifier, verifier.verify_and_walk(pass.batch, pass.drafted, pass.parents),
                       predicate);
  } else {
    if constexpr (TreeVerifier<V>)
      if (session.capabilities().max_leaves > 1)
        return finish_pass(session, pass, verifier, verifier.verify_tree(pass.batch, pass.drafted, pass.parents),
                           predicate);
    return finish_pass(session, pass, verifier, verifier.verify(pass.batch, pass.drafted), predicate);
  }
}

/// What a verifier says of itself, held to what it has functions for.
template <Verifier V>
Result<Capabilities> capabilities_of(const V& verifier) {
  Capabilities can;
  if constexpr (VerifierWithCapabilities<V>) can = verifier.capabilities();
  if constexpr (!TreeVerifier<V>) can.max_leaves = 1;
  if (!CheckpointVerifier<V> && can.rollback == Rollback::snapshot) return no_checkpoints();
  return can;
}

/// Hands tokens to the callback; false when it says stop. A callback that returns nothing goes on.
template <class OnTokens>
bool stream(OnTokens& on_tokens, TokenSpan tokens) {
  if (tokens.empty()) return true;
  if constexpr (std::convertible_to<std::invoke_result_t<OnTokens&, TokenSpan>, bool>)
    return static_cast<bool>(on_tokens(tokens));
  else
    return on_tokens(tokens), true;
}

}  // namespace detail

/// Decodes until a stop rule or limit ends it: propose, plan, verify, resolve, commit, again. The session has begun.
///
/// `on_tokens(TokenSpan)` streams committed tokens as soon as no stop sequence can take them back; returning false
/// ends generation (FinishReason::caller). What a limit ends is streamed whole: going on with a higher limit can
/// complete a stop sequence whose beginning was streamed then. `predicate`: see StopDecision. Drafts are chains unless
/// the verifier is a TreeVerifier and the session began with capabilities of more than one leaf.
/// Errors: not_begun, context_too_long, too_many_pending, out_of_memory, bad_picks, and what the verifier returns.
/// Throws: what the verifier, the predicate, the callback or the strategy throws. After an error, or a throw of the
/// verifier or the predicate, the session is as before the round; the other two throw after it was committed, and
/// tokens that a throwing callback was given count as streamed. generate() can be called again to go on.
template <DraftStrategy Strategy, DraftControl Control, Verifier V, std::invocable<TokenSpan> OnTokens = IgnoreTokens,
          class Predicate = NeverStop>
Result<Generation> generate(Session<Strategy, Control>& session, V& verifier, const Limits& limits,
                            OnTokens&& on_tokens = OnTokens(), Predicate&& predicate = Predicate()) {
  constexpr DraftShape shape = TreeVerifier<V> ? DraftShape::tree : DraftShape::chain;
  for (session.propose(limits, shape); !session.finished(); session.propose(limits, shape)) {
    if constexpr (ConstrainedVerifier<V>)
      session.constrain([&](TokenSpan path) { return static_cast<std::size_t>(verifier.allowed(path)); });
    const auto pass = session.plan();
    if (!pass) return pass.error();
    if (auto done = detail::run_pass(session, *pass, verifier, predicate); !done) return done.error();
    if (!detail::stream(on_tokens, session.take_settled(limits))) session.finish();
  }
  // A limit that was reached before the first pass settles what an earlier call had held back.
  if (session.finish_reason() != FinishReason::caller)
    static_cast<void>(detail::stream(on_tokens, session.take_settled(limits)));
  return Generation{session.output(), session.finish_reason(), session.statistics()};
}

/// The same from a prompt: begins the session with what the verifier says of itself, then decodes. The engine has
/// prefilled all tokens of the prompt but the last. Further errors: those of Session::begin().
template <DraftStrategy Strategy, DraftControl Control, Verifier V, std::invocable<TokenSpan> OnTokens = IgnoreTokens,
          class Predicate = NeverStop>
Result<Generation> generate(Session<Strategy, Control>& session, V& verifier, TokenSpan prompt, const Limits& limits,
                            OnTokens&& on_tokens = OnTokens(), Predicate&& predicate = Predicate()) {
  const auto capabilities = detail::capabilities_of(verifier);
  if (!capabilities) return capabilities.error();
  if (prompt.size() > limits.max_context)
    return Error{ErrorCode::context_too_long,
                 "the prompt is longer than Limits::max_context: shorten it or raise the limit", prompt.size(),
                 limits.max_context};
  if (auto begun = session.begin(prompt, *capabilities); !begun) return begun.error();
  return generate(session, verifier, limits, on_tokens, predicate);
}

}  // namespace reprise
