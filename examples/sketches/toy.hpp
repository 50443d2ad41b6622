// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise/testing/check_verifier.hpp"

/// \file What the sketches share: a "model", and the call by which each of them shows that it keeps its contract.
namespace toy {

/// The model: what it says depends on the last three tokens, each at its place.
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

/// Checks an engine; `make(prompt)` gives one that has all tokens but the last. The exit code of a program.
template <class Make>
int check(Make make) {
  const auto report = reprise::testing::check_verifier(make, prompt());
  std::puts(report.to_string().c_str());
  return report.passed() ? 0 : 1;
}

}  // namespace toy
