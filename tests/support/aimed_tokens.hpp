// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise/index/detail/ngram_table.hpp"
#include "reprise/index/detail/token_hash.hpp"

namespace reprise::testing {

/// How a text is aimed at the hash tables of the default drafter, whose key the attacker knows. The n-grams of each
/// length are hashed into the first part of their table, so that this part overflows.
struct Aim {
  std::size_t runs = 1;       ///< number of runs of each probe that are aimed; 1 is enough against linear probing
  std::size_t single = 100;   ///< percent of the table that the single tokens may reach
  std::size_t pair = 100;     ///< the same for 2-grams
  std::size_t four = 100;     ///< the same for 4-grams
  std::size_t counted = 100;  ///< the same for the slots of TokenCounts
  std::size_t counted_slots = 1 << 16;  ///< number of slots that TokenCounts is expected to have
};

/// Returns true if the first `runs` runs of a probe in NgramTable begin in the first `percent` of any table.
inline bool aimed_at_ngrams(std::uint64_t hash, std::size_t runs, std::size_t percent) {
  const std::uint64_t end = (std::uint64_t{percent} << 32) / 100;
  for (; runs > 0; --runs, hash = reprise::detail::NgramTable::next_run(hash))
    if (hash >> 32 >= end) return false;
  return true;
}

/// The same for a probe in a TokenCounts of Aim::counted_slots slots.
inline bool aimed_at_counts(std::uint64_t hash, const Aim& aim) {
  for (std::size_t run = 0; run < aim.runs; ++run, hash = reprise::detail::spread(hash))
    if ((hash & (aim.counted_slots - 1)) * 100 >= aim.counted * aim.counted_slots) return false;
  return true;
}

/// The tokens below `vocabulary` that are aimed alone.
inline std::vector<Token> aimed_vocabulary(const Aim& aim, std::uint64_t key, Token vocabulary) {
  std::vector<Token> tokens;
  for (Token token = 0; token < vocabulary; ++token) {
    const std::uint64_t hash = reprise::detail::token_hash(key, token);
    if (aimed_at_ngrams(reprise::detail::spread(hash), aim.runs, aim.single) && aimed_at_counts(hash, aim))
      tokens.push_back(token);
  }
  return tokens;
}

/// Returns a text of ordinary tokens, each below `vocabulary`, whose n-grams are all aimed. A step at which no token
/// fits takes any.
inline std::vector<Token> aimed_text(std::size_t length, const Aim& aim, std::uint64_t key,
                                     Token vocabulary = 1 << 17) {
  const std::vector<Token> choices = aimed_vocabulary(aim, key, vocabulary);
  std::vector<Token> text;
  std::vector<std::uint64_t> hashes;  // of the text
  std::uint64_t random = 1;
  for (std::size_t i = 0; i < length; ++i) {
    const auto rolled = [&](std::size_t n) {
      std::uint64_t sum = 0;
      for (std::size_t back = 1; back < n && back <= i; ++back)
        sum ^= std::rotl(hashes[i - back], static_cast<int>(back));
      return sum;
    };
    const std::uint64_t pair = rolled(2);
    const std::uint64_t four = rolled(4);
    random = reprise::detail::spread(random + i);
    std::size_t at = random % choices.size();
    for (std::size_t tried = 0; tried < choices.size(); ++tried, at = (at + 1) % choices.size()) {
      const std::uint64_t hash = reprise::detail::token_hash(key, choices[at]);
      if (aimed_at_ngrams(reprise::detail::spread(pair ^ hash), aim.runs, aim.pair) &&
          aimed_at_ngrams(reprise::detail::spread(four ^ hash), aim.runs, aim.four))
        break;
    }
    text.push_back(choices[at]);
    hashes.push_back(reprise::detail::token_hash(key, choices[at]));
  }
  return text;
}

}  // namespace reprise::testing
