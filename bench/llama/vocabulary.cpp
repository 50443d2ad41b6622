// SPDX-License-Identifier: Apache-2.0
#include "vocabulary.hpp"

#include "common/input_error.hpp"

namespace reprise::llama {

void check_vocabulary(TokenSpan prompt, TokenSpan output, const std::string& where, std::size_t turn,
                      std::size_t vocabulary, std::string_view what_to_do) {
  const auto check = [&](TokenSpan tokens, const char* field) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i] < 0 || static_cast<std::size_t>(tokens[i]) >= vocabulary)
        throw tools::InputError(where + ": turns[" + std::to_string(turn) + "]." + field + "[" + std::to_string(i) +
                                "]: token " + std::to_string(tokens[i]) + " is not in this model's vocabulary of " +
                                std::to_string(vocabulary) + "; " + std::string(what_to_do));
  };
  check(prompt, "prompt");
  check(output, "output");
}

void check_vocabulary(const replay::TraceSession& session, std::size_t vocabulary, std::string_view what_to_do) {
  for (std::size_t i = 0; i < session.turns.size(); ++i)
    check_vocabulary(session.turns[i].prompt, session.turns[i].output, session.where, i, vocabulary, what_to_do);
}

}  // namespace reprise::llama
