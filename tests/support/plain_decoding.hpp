// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::testing {

/// One turn of plain decoding: the reference for every drafted run. It shares no code with the loop under test, decodes
/// one token at a time, and implements the stop rules from their documentation.
struct PlainTurn {
  std::vector<Token> committed;  ///< stop tokens included
  std::size_t returned = 0;      ///< length of the output within `committed`
  FinishReason finish = FinishReason::none;

  [[nodiscard]] TokenSpan output() const { return TokenSpan(committed).first(returned); }
};

inline bool ends_with(TokenSpan tokens, TokenSpan end) {
  return tokens.size() >= end.size() && std::equal(end.rbegin(), end.rend(), tokens.rbegin());
}

/// Returns how many tokens the stream must withhold: the longest suffix of `output` that is a proper prefix of a stop
/// sequence.
inline std::size_t plain_held_back(const Limits& limits, TokenSpan output) {
  std::size_t held = 0;
  for (const auto& sequence : limits.stop_sequences)
    for (std::size_t n = 1; n < sequence.size(); ++n)
      if (ends_with(output, TokenSpan(sequence).first(n))) held = std::max(held, n);
  return held;
}

/// Decodes to the end of the turn. `context` is the whole context and grows; its tokens from `output_begin` on are
/// output. `engine` holds all of it except the pending tokens.
template <class Predicate>
PlainTurn decode_plainly(ScriptedVerifier& engine, std::vector<Token>& context, std::size_t output_begin,
                         const Limits& limits, const Predicate& predicate) {
  PlainTurn turn;
  turn.committed.assign(context.begin() + static_cast<std::ptrdiff_t>(output_begin), context.end());
  std::vector<Token>& out = turn.committed;
  const std::size_t max_context = std::min(limits.max_context, engine.capabilities().max_context);
  const auto is_in = [](const std::vector<Token>& set, Token token) {
    return std::count(set.begin(), set.end(), token) != 0;
  };
  while (turn.finish == FinishReason::none) {
    turn.returned = out.size();
    if (out.size() >= limits.max_tokens) {
      turn.finish = FinishReason::max_tokens;
    } else if (context.size() >= max_context) {
      turn.finish = FinishReason::context_full;
    } else {
      const TokenSpan pending = TokenSpan(context).subspan(engine.cache().size());
      const Token next = (*engine.verify(pending, 0))[0];
      const StopDecision decision = predicate(TokenSpan(out), next);
      const bool refused = decision == StopDecision::stop_before;
      static_cast<void>(engine.commit(refused ? pending.size() - 1 : pending.size()));
      if (refused) {
        turn.finish = FinishReason::predicate;
        break;
      }
      out.push_back(next);
      context.push_back(next);
      turn.returned = out.size();
      std::size_t longest = 0;
      for (const auto& sequence : limits.stop_sequences)
        if (ends_with(out, sequence)) longest = std::max(longest, sequence.size());
      if (is_in(limits.eos, next)) {
        turn.finish = FinishReason::eos;
        turn.returned -= 1;
      } else if (is_in(limits.stop_ids, next)) {
        turn.finish = FinishReason::stop_id;
        turn.returned -= 1;
      } else if (longest > 0) {
        turn.finish = FinishReason::stop_sequence;
        turn.returned -= longest;
      } else if (decision == StopDecision::stop_after) {
        turn.finish = FinishReason::predicate;
      }
    }
  }
  return turn;
}

}  // namespace reprise::testing
