// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_testing/check_verifier.hpp"

/// \file The parts that the sketches share: a "model", and the check that each sketch runs on its engine.
namespace toy {

/// The model: the next token depends on the last three tokens and their order.
inline reprise::Token next(reprise::TokenSpan context) {
  unsigned hash = 7;
  for (std::size_t i = context.size() < 3 ? 0 : context.size() - 3; i < context.size(); ++i)
    hash = hash * 31 + static_cast<unsigned>(context[i]);
  return static_cast<reprise::Token>(hash / 7 % 11);
}

inline const std::vector<reprise::Token>& prompt() {
  static const std::vector<reprise::Token> tokens = {3, 1, 4, 1, 5};
  return tokens;
}

/// Checks an engine and returns the exit status of the program. `make(prompt)` returns an engine whose cache holds all
/// tokens but the last.
template <class Make>
int check(Make make) {
  const auto report = reprise::testing::check_verifier(make, prompt());
  std::puts(report.to_string().c_str());
  return report.passed() ? 0 : 1;
}

}  // namespace toy
