// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "reprise/index/lookup_index.hpp"

namespace reprise::testing {

inline TokenSpan span_of(const std::vector<Token>& tokens) { return {tokens.data(), tokens.size()}; }

/// Returns the answer of `index`, with room for `room` matches.
template <LookupIndex I>
std::vector<Match> matches(const I& index, const MatchLimits& limits, std::size_t room = 64) {
  std::vector<Match> out(room);
  out.resize(index.find(limits, out));
  return out;
}

template <LookupIndex I>
I index_of(const IndexOptions& options, const std::vector<Token>& tokens) {
  I index(options);
  index.append(tokens);
  return index;
}

/// Returns the tokens of the index, as a vector that can be compared.
template <LookupIndex I>
std::vector<Token> held(const I& index) {
  const TokenSpan tokens = index.tokens();
  return {tokens.begin(), tokens.end()};
}

}  // namespace reprise::testing
