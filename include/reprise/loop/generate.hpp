// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "reprise/control/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise {

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

/// Commits what the verifier's answer decides; `keep(decision)` has the verifier keep the rows.
template <class Session, class V, class Answer, class Keep, class Predicate>
Result<void> finish_pass(Session& session, Ticket ticket, V& verifier, Answer&& answer, Keep keep,
                         Predicate& predicate) {
  constexpr bool may_fail = is_result<std::remove_cvref_t<Answer>>;
  if constexpr (may_fail) {
    if (!answer) return answer.error();
  }
  auto decision = [&] {
    if constexpr (may_fail)
      return session.resolve(ticket, *answer, predicate);
    else
      return session.resolve(ticket, answer, predicate);
  }();
  if (!decision) return decision.error();
  if constexpr (is_result<std::remove_cvref_t<decltype(keep(*decision))>>) {
    if (auto kept = keep(*decision); !kept) return kept.error();
  } else {
    keep(*decision);
  }
  if constexpr (TimedVerifier<V>) {
    static_assert(noexcept(std::chrono::nanoseconds(verifier.pass_time())),
                  "pass_time() has to be noexcept: the engine has kept its rows, and the session has to follow");
    return session.commit(ticket, verifier.pass_time());
  } else {
    return session.commit(ticket);
  }
}

/// Runs one planned pass through the verifier and commits it.
template <class Session, Verifier V, class Predicate>
Result<void> run_pass(Session& session, const Pass& pass, V& verifier, Predicate& predicate) {
  const CancelAtEnd round(session, pass.ticket);
  if constexpr (TreeVerifier<V>)
    if (session.capabilities().max_leaves > 1)
      return finish_pass(
          session, pass.ticket, verifier, verifier.verify_tree(pass.batch, pass.drafted, pass.parents),
          [&](const Decision& decision) { return verifier.commit_rows(decision.rows); }, predicate);
  return finish_pass(
      session, pass.ticket, verifier, verifier.verify(pass.batch, pass.drafted),
      [&](const Decision& decision) { return verifier.commit(decision.keep); }, predicate);
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
  Capabilities capabilities;
  if constexpr (DescribedVerifier<V>) capabilities = verifier.capabilities();
  if constexpr (!TreeVerifier<V>) capabilities.max_leaves = 1;
  if (prompt.size() > limits.max_context)
    return Error{ErrorCode::context_too_long,
                 "the prompt is longer than Limits::max_context: shorten it or raise the limit", prompt.size(),
                 limits.max_context};
  if (auto begun = session.begin(prompt, capabilities); !begun) return begun.error();
  return generate(session, verifier, limits, on_tokens, predicate);
}

}  // namespace reprise
