// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

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
class OpenRound {
 public:
  OpenRound(Session& session, Ticket ticket) noexcept : session_(session), ticket_(ticket) {}
  OpenRound(const OpenRound&) = delete;
  OpenRound& operator=(const OpenRound&) = delete;
  ~OpenRound() { static_cast<void>(session_.cancel(ticket_)); }  // of a committed round: refused, changes nothing

 private:
  Session& session_;
  Ticket ticket_;
};

/// Runs one planned pass through the verifier and commits it.
template <DraftStrategy Strategy, Verifier V, class Predicate>
Result<void> run_pass(Session<Strategy>& session, const Pass& pass, V& verifier, Predicate& predicate) {
  const OpenRound round(session, pass.ticket);
  auto&& answer = verifier.verify(pass.batch, pass.drafted);
  constexpr bool may_fail = is_result<std::remove_cvref_t<decltype(answer)>>;
  if constexpr (may_fail) {
    if (!answer) return answer.error();
  }
  auto decision = [&] {
    if constexpr (may_fail)
      return session.resolve(pass.ticket, *answer, predicate);
    else
      return session.resolve(pass.ticket, answer, predicate);
  }();
  if (!decision) return decision.error();
  if constexpr (is_result<std::remove_cvref_t<decltype(verifier.commit(std::size_t{}))>>) {
    if (auto kept = verifier.commit(decision->keep); !kept) return kept.error();
  } else {
    verifier.commit(decision->keep);
  }
  return session.commit(pass.ticket);
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
/// complete a stop sequence whose beginning was streamed then. `predicate`: see StopDecision.
/// Errors: not_begun, context_too_long, too_many_pending, out_of_memory, bad_picks, and what the verifier returns.
/// Throws: what the verifier, the predicate, the callback or the strategy throws. After an error, or a throw of the
/// verifier or the predicate, the session is as before the round; the other two throw after it was committed, and
/// tokens that a throwing callback was given count as streamed. generate() can be called again to go on.
template <DraftStrategy Strategy, Verifier V, std::invocable<TokenSpan> OnTokens = IgnoreTokens,
          class Predicate = NeverStop>
Result<Generation> generate(Session<Strategy>& session, V& verifier, const Limits& limits,
                            OnTokens&& on_tokens = OnTokens(), Predicate&& predicate = Predicate()) {
  for (session.propose(limits); !session.finished(); session.propose(limits)) {
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
template <DraftStrategy Strategy, Verifier V, std::invocable<TokenSpan> OnTokens = IgnoreTokens,
          class Predicate = NeverStop>
Result<Generation> generate(Session<Strategy>& session, V& verifier, TokenSpan prompt, const Limits& limits,
                            OnTokens&& on_tokens = OnTokens(), Predicate&& predicate = Predicate()) {
  Capabilities capabilities;
  if constexpr (DescribedVerifier<V>) capabilities = verifier.capabilities();
  if (prompt.size() > limits.max_context)
    return Error{ErrorCode::context_too_long,
                 "the prompt is longer than Limits::max_context: shorten it or raise the limit", prompt.size(),
                 limits.max_context};
  if (auto begun = session.begin(prompt, capabilities); !begun) return begun.error();
  return generate(session, verifier, limits, on_tokens, predicate);
}

}  // namespace reprise
