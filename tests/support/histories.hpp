// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Histories and their texts.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

inline std::vector<Token> random_tokens(Random& random, std::size_t size, std::uint64_t vocabulary) {
  std::vector<Token> tokens(size);
  for (Token& token : tokens) token = static_cast<Token>(random.below(vocabulary));
  return tokens;
}

template <class Memory = HistoryStore>
Memory make_memory(std::size_t max_bytes = std::size_t{1} << 20, HistoryOptions options = {}) {
  options.max_bytes = max_bytes;
  return Memory::make(options).value();
}

template <class Memory>
void remember(Memory& memory, const std::vector<Token>& tokens, SequenceTag id = 1, Origin origin = Origin::output) {
  memory.begin_sequence(id);
  memory.append(tokens, origin);
  memory.end_sequence();
}

}  // namespace reprise::testing
