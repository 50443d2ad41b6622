// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/control.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/engine/rejection.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise { inline namespace v0 {

/// The result of a generation. `tokens` points into the session's memory: copy them to keep them after the session has
/// changed or was destroyed.
struct Generation {
  TokenSpan tokens;  ///< the output, without the stop tokens that ended it
  FinishReason finish = FinishReason::none;
  Statistics statistics;
};

/// The streaming callback that ignores the tokens.
struct IgnoreTokens {
  void operator()(TokenSpan) const noexcept {}
};

namespace detail {

/// Abandons the round at the end of the scope unless it was committed, because its pass may have run. The session is
/// then as it was before the round, even if the verifier throws.
template <class Session>
class AbandonAtEnd {
 public:
  AbandonAtEnd(Session& session, Ticket ticket) noexcept : session_(session), ticket_(ticket) {}
  AbandonAtEnd(const AbandonAtEnd&) = delete;
  AbandonAtEnd& operator=(const AbandonAtEnd&) = delete;
  ~AbandonAtEnd() { static_cast<void>(session_.abandon(ticket_)); }  // has no effect after a commit

 private:
  Session& session_;
  Ticket ticket_;
};

/// Calls a function that returns Result<void> or void. Returns its result, or success if it returns void.
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

/// Makes the engine apply the decision: it keeps decision.rows and discards the rest, or restores its saved state.
/// Errors: those of the verifier; invalid_argument if the state must be restored, but the verifier is not a
/// CheckpointVerifier.
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

/// Returns true if the verifier declares that top_k() cannot fail.
template <class V>
consteval bool top_k_is_noexcept() {
  if constexpr (TopKVerifier<V>)
    return noexcept(std::declval<V&>().top_k(std::size_t{}));
  else
    return false;
}

/// Returns the number of likeliest tokens that the strategy wants for each row; 0 if the verifier cannot report them.
template <Verifier V, class Strategy, class Control>
std::size_t ranks_wanted(const Session<Strategy, Control>& session) {
  if constexpr (TopKVerifier<V> && TopKLearner<Strategy>)
    return static_cast<std::size_t>(session.strategy().top_k_wanted());
  else
    return 0;
}

/// Passes the target's `wanted` likeliest tokens after each row to the session.
template <class Strategy, class Control, class V>
void report_top_k(Session<Strategy, Control>& session, const Pass& pass, V& verifier, std::size_t wanted) {
  if constexpr (TopKVerifier<V> && TopKLearner<Strategy>) {
    for (std::size_t i = 0; wanted > 0 && i <= pass.drafted; ++i) {
      const TokenSpan tokens = verifier.top_k(i);
      static_cast<void>(session.report_top_k(pass.ticket, i, tokens.first(std::min(wanted, tokens.size()))));
    }
  }
}

/// Decides on a sampled draft by rejection sampling, and returns the decision. Errors: verifier_failed if a
/// distribution has no positive weight, and those of Session::resolve().
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
                 "probabilities(i) has no positive weight: give at least one token a probability above 0"};
  return decision;
}

/// Returns the decision, or bad_picks if the picks ended before it was complete: each row that was read agreed with the
/// draft, and nothing ended the generation.
inline Result<Decision> if_complete(Result<Decision> decision) {
  if (decision && decision->accepted == decision->tokens.size() && decision->finish == FinishReason::none)
    return Error{ErrorCode::bad_picks,
                 "the span of picks ends before the first disagreement: return a token for each row, from the anchor's "
                 "row on",
                 decision->tokens.size(), 0};
  return decision;
}

/// Decides by rejection sampling, or from the picks or the path in `answer`.
template <class Strategy, class Control, Verifier V, class Answer, class Predicate>
Result<Decision> decide(Session<Strategy, Control>& session, const Pass& pass, V& verifier, Answer& answer,
                        Predicate& predicate) {
  if constexpr (DistributionVerifier<V> && DistributionStrategy<Strategy>)
    // With fixed widths, the number of tokens sent depends on the draft's length, and thus on the drawn tokens. In that
    // case agreement stays exact, but rejection sampling does not.
    if (pass.kind == DraftKind::sampled && session.capabilities().allowed_widths.empty())
      return reject_or_take(session, pass, verifier, predicate);
  if constexpr (is_result<std::remove_cv_t<Answer>>)
    return decide(session, pass, verifier, *answer, predicate);
  else if constexpr (requires { answer.size(); })
    return if_complete(session.resolve(pass.ticket, answer, predicate));
  else
    return session.resolve(pass.ticket, answer, predicate);
}

/// Decides on the pass (decide()), and commits the decision to the verifier and the session. If `answer` is an error,
/// returns it. `wanted`: see report_top_k().
template <class Strategy, class Control, Verifier V, class Answer, class Predicate>
Result<void> finish_pass(Session<Strategy, Control>& session, const Pass& pass, V& verifier, Answer&& answer,
                         Predicate& predicate, std::size_t wanted) {
  if constexpr (is_result<std::remove_cvref_t<Answer>>) {
    if (!answer) return answer.error();
  }
  const auto decision = decide(session, pass, verifier, answer, predicate);
  if (!decision) return decision.error();
  report_top_k(session, pass, verifier, wanted);
  if (auto kept = keep_rows(verifier, session.capabilities(), *decision); !kept) return kept;
  if constexpr (TimedVerifier<V>) {
    static_assert(noexcept(Duration(verifier.pass_time())),
                  "pass_time() has to be noexcept: the engine has kept its rows, and the session has to follow");
    return session.commit(pass.ticket, verifier.pass_time());
  } else {
    return session.commit(pass.ticket);
  }
}

/// Runs one planned pass through the verifier and commits it.
template <class Strategy, class Control, Verifier V, class Predicate>
Result<void> run_pass(Session<Strategy, Control>& session, const Pass& pass, V& verifier, Predicate& predicate) {
  const AbandonAtEnd round(session, pass.ticket);
  const std::size_t wanted = ranks_wanted<V>(session);  // before the pass: a strategy that throws does not void it
  if constexpr (CheckpointVerifier<V>) {
    constexpr bool may_refuse = !std::is_same_v<std::remove_cvref_t<Predicate>, NeverStop>;
    constexpr bool draws = !requires(unwrap_t<decltype(verifier.verify(pass.batch, pass.drafted))> & picks) {
      picks.size();
    };
    const bool ranks = wanted != 0 && !top_k_is_noexcept<V>();
    // Even without drafted rows, these passes may become void. Rejection sampling also decides empty sampled drafts.
    const bool may_be_void = may_refuse || draws || ranks || pass.kind == DraftKind::sampled;
    if (session.capabilities().rollback == Rollback::snapshot && (may_be_void || pass.drafted > 0))
      if (auto saved = attempt([&] { return verifier.snapshot(); }); !saved) return saved;
  }
  if constexpr (SelfWalkingVerifier<V>) {
    return finish_pass(session, pass, verifier, verifier.verify_and_walk(pass.batch, pass.drafted, pass.parents),
                       predicate, wanted);
  } else {
    if constexpr (TreeVerifier<V>)
      if (session.capabilities().max_leaves > 1)
        return finish_pass(session, pass, verifier, verifier.verify_tree(pass.batch, pass.drafted, pass.parents),
                           predicate, wanted);
    return finish_pass(session, pass, verifier, verifier.verify(pass.batch, pass.drafted), predicate, wanted);
  }
}

/// Returns the verifier's capabilities. Sets max_leaves to 1 unless the verifier is a TreeVerifier. Errors:
/// invalid_argument if rollback is Rollback::snapshot and the verifier is not a CheckpointVerifier.
template <Verifier V>
Result<Capabilities> capabilities_of(const V& verifier) {
  Capabilities can;
  if constexpr (VerifierWithCapabilities<V>) can = verifier.capabilities();
  if constexpr (!TreeVerifier<V>) can.max_leaves = 1;
  if (!CheckpointVerifier<V> && can.rollback == Rollback::snapshot) return no_checkpoints();
  return can;
}

/// Passes tokens to the callback. Returns false only if the callback returns false.
template <class OnTokens>
bool stream(OnTokens& on_tokens, TokenSpan tokens) {
  if (tokens.empty()) return true;
  if constexpr (std::convertible_to<std::invoke_result_t<OnTokens&, TokenSpan>, bool>)
    return static_cast<bool>(on_tokens(tokens));
  else
    return on_tokens(tokens), true;
}

}  // namespace detail

/// Repeats propose, plan, verify, resolve and commit until generation ends; see FinishReason. Precondition: the
/// session has begun. Drafts are chains, unless the verifier is a TreeVerifier and the session began with
/// Capabilities::max_leaves above 1.
///
/// `on_tokens(TokenSpan)` streams committed tokens as soon as they can no longer belong to a stop sequence. Returning
/// false ends generation (FinishReason::caller). If generation ends for another reason, the rest of
/// Generation::tokens is streamed too. Continuing with a higher limit can therefore complete a stop sequence whose
/// beginning was already streamed. `predicate`: see StopDecision.
///
/// Errors: not_begun, too_many_pending, out_of_memory, and errors from the verifier. bad_picks if picks with a size()
/// end before the first disagreement and before the end of the generation. Also verifier_failed if rejection sampling
/// finds no positive weight in probabilities(i). Also invalid_argument if the engine must restore its state, but the
/// verifier is not a CheckpointVerifier. After an error, the session is as it was before the round, and generate() can
/// be called again to continue.
///
/// Throws: exceptions from the verifier, the predicate, the callback and the strategy pass through. After an exception
/// from the verifier or the predicate, the session is as it was before the round. If the callback throws, or if the
/// strategy throws in feedback() or observe(), the round is already committed. Tokens passed to a callback that throws
/// count as streamed.
template <DraftStrategy Strategy, DraftControl Control, Verifier V, std::invocable<TokenSpan> OnTokens = IgnoreTokens,
          class Predicate = NeverStop>
Result<Generation> generate(Session<Strategy, Control>& session REPRISE_LIFETIMEBOUND, V& verifier,
                            const Limits& limits, OnTokens&& on_tokens = OnTokens(),
                            Predicate&& predicate = Predicate()) {
  constexpr DraftShape shape = TreeVerifier<V> ? DraftShape::tree : DraftShape::chain;
  for (session.propose(limits, shape); !session.finished(); session.propose(limits, shape)) {
    if constexpr (ConstrainedVerifier<V>)
      session.constrain([&](TokenSpan path) { return static_cast<std::size_t>(verifier.allowed(path)); });
    const auto pass = session.plan();
    if (!pass) return pass.error();
    if (auto done = detail::run_pass(session, *pass, verifier, predicate); !done) return done.error();
    if (!detail::stream(on_tokens, session.take_settled(limits))) session.finish();
  }
  // If a limit is reached before the first pass, the tokens that an earlier call held back become settled.
  if (session.finish_reason() != FinishReason::caller)
    static_cast<void>(detail::stream(on_tokens, session.take_settled(limits)));
  return Generation{session.output(), session.finish_reason(), session.statistics()};
}

/// Begins the session with `prompt` and the verifier's capabilities, then decodes like the overload above.
/// Precondition: the engine has prefilled all tokens of the prompt except the last. Additional errors: those of
/// Session::begin(); context_too_long also if the prompt is longer than Limits::max_context. This overload also
/// returns invalid_argument if Capabilities::rollback is Rollback::snapshot, but the verifier is not a
/// CheckpointVerifier.
template <DraftStrategy Strategy, DraftControl Control, Verifier V, std::invocable<TokenSpan> OnTokens = IgnoreTokens,
          class Predicate = NeverStop>
Result<Generation> generate(Session<Strategy, Control>& session REPRISE_LIFETIMEBOUND, V& verifier, TokenSpan prompt,
                            const Limits& limits, OnTokens&& on_tokens = OnTokens(),
                            Predicate&& predicate = Predicate()) {
  const auto capabilities = detail::capabilities_of(verifier);
  if (!capabilities) return capabilities.error();
  if (prompt.size() > limits.max_context)
    return Error{ErrorCode::context_too_long,
                 "the prompt is longer than Limits::max_context: shorten it or raise the limit", prompt.size(),
                 limits.max_context};
  if (auto begun = session.begin(prompt, *capabilities); !begun) return begun.error();
  return generate(session, verifier, limits, on_tokens, predicate);
}

}}  // namespace reprise
