// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"
#include "support/choices.hpp"
#include "support/random_rows.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::testing {

/// A scripted engine whose rows of likeliest tokens can be lies: other tokens, negative or huge ones, repetitions, any
/// number of them. Its picks are true.
class LyingEngine : public ScriptedVerifier {
 public:
  /// `percent`: share of the rows that are lies.
  explicit LyingEngine(const ScriptedOptions& options, TokenSpan prompt = {}, std::size_t percent = 0)
      : ScriptedVerifier(options, prompt), percent_(percent), choices_(mix(options.seed)) {}

  TokenSpan top_k(std::size_t i) {
    const TokenSpan honest = ScriptedVerifier::top_k(i);
    if (!choices_.chance(percent_)) return honest;
    lie_ = random_ranking(choices_, honest);
    return lie_;
  }

 private:
  std::size_t percent_;
  Choices choices_;
  std::vector<Token> lie_;
};

}  // namespace reprise::testing
