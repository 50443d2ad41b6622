// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// SplitMix64 (Steele, Lea and Flood 2014): random numbers that are the same on every machine and standard library, for
/// long streams and statistics. testing::Random steps its state by 1 and suits many short streams from close seeds.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    const std::uint64_t number = mix(state_);
    state_ += 0x9e3779b97f4a7c15;
    return number;
  }
  /// Returns 0 ... bound - 1.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  std::size_t between(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  /// Returns x with 0 <= x < 1.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// The picks of a target with a known text: after each row of a pass, the token at the row's depth.
struct StreamPicks {
  TokenSpan coming;                       ///< from the anchor on
  std::span<const std::uint32_t> depths;  ///< see Pass::depths
  Token operator[](std::size_t i) const { return coming[i == 0 ? 0 : depths[i - 1]]; }
};

/// Token streams that are hard or easy for lookup in different ways.
enum class Stream : std::uint8_t {
  random_small,  ///< 2 to 8 tokens, independent
  period_1,      ///< one token forever
  period_2,
  period_3,
  fibonacci,   ///< the Fibonacci word: repeats everywhere, never periodic
  thue_morse,  ///< no block three times in a row; breaks polynomial hashes modulo 2^64
  de_bruijn,   ///< every block of a length before any repeats
  all_distinct,
  zipf,        ///< few frequent tokens, many rare ones
  trace_like,  ///< zipf, half of it copied from earlier, like code, documents and tool results
};
inline constexpr std::array all_streams = {
    Stream::random_small, Stream::period_1,  Stream::period_2,     Stream::period_3, Stream::fibonacci,
    Stream::thue_morse,   Stream::de_bruijn, Stream::all_distinct, Stream::zipf,     Stream::trace_like};

constexpr std::string_view name(Stream stream) {
  constexpr std::array<std::string_view, all_streams.size()> names = {
      "random_small", "period_1",  "period_2",     "period_3", "fibonacci",
      "thue_morse",   "de_bruijn", "all_distinct", "zipf",     "trace_like"};
  return names[static_cast<std::size_t>(stream)];
}

/// Returns the first symbols of the Fibonacci word, 0100101001001...
inline std::vector<Token> fibonacci_word(std::size_t length) {
  std::vector<Token> shorter = {0};
  std::vector<Token> word = {0, 1};
  while (word.size() < length) {
    std::vector<Token> longer = word;
    longer.insert(longer.end(), shorter.begin(), shorter.end());
    shorter = std::exchange(word, std::move(longer));
  }
  word.resize(length);
  return word;
}

/// Returns a cyclic binary de Bruijn sequence, repeated up to `length`. Every block of `order` bits occurs once per
/// cycle (the greedy "prefer one" construction).
inline std::vector<Token> de_bruijn_word(std::size_t length, std::uint32_t order) {
  const std::size_t blocks = std::size_t{1} << order;
  std::vector<bool> seen(blocks);
  std::vector<Token> cycle;
  std::size_t block = 0;
  seen[0] = true;
  cycle.push_back(0);
  while (cycle.size() < blocks) {
    const std::size_t one = ((block << 1) | 1) & (blocks - 1);
    const std::size_t zero = (block << 1) & (blocks - 1);
    block = seen[one] ? zero : one;
    seen[block] = true;
    cycle.push_back(static_cast<Token>(block & 1));
  }
  std::vector<Token> word(length);
  for (std::size_t i = 0; i < length; ++i) word[i] = cycle[i % blocks];
  return word;
}

/// Returns a rank r (from 0) with a probability of about 1 / (r + 1), up to a factor.
inline Token zipf_token(SplitMix& random, std::size_t vocabulary) {
  const double rank = std::exp(random.unit() * std::log(static_cast<double>(vocabulary)));
  return static_cast<Token>(std::min(vocabulary, static_cast<std::size_t>(rank)) - 1);
}

/// Returns new tokens and copies of earlier spans of 4 to 200 tokens, about half and half.
inline std::vector<Token> trace_like_tokens(std::size_t length, SplitMix& random, std::size_t vocabulary) {
  std::vector<Token> word;
  word.reserve(length + 400);
  while (word.size() < length) {
    const std::size_t fresh = random.between(4, 200);
    for (std::size_t i = 0; i < fresh; ++i) word.push_back(zipf_token(random, vocabulary));
    const std::size_t from = random.below(word.size());
    const std::size_t copied = random.between(4, 200);
    for (std::size_t i = 0; i < copied; ++i) word.push_back(word[from + i]);
  }
  word.resize(length);
  return word;
}

/// Returns `length` tokens of a kind. `vocabulary` applies to zipf and trace_like.
inline std::vector<Token> make_stream(Stream stream, std::size_t length, std::uint64_t seed,
                                      std::size_t vocabulary = 1000) {
  SplitMix random(seed);
  std::vector<Token> word(length);
  switch (stream) {
    case Stream::random_small: {
      const std::size_t symbols = random.between(2, 8);
      for (Token& token : word) token = static_cast<Token>(random.below(symbols));
      break;
    }
    case Stream::period_1:
    case Stream::period_2:
    case Stream::period_3: {
      const std::size_t period = 1 + static_cast<std::size_t>(stream) - static_cast<std::size_t>(Stream::period_1);
      for (std::size_t i = 0; i < length; ++i) word[i] = static_cast<Token>(i % period);
      break;
    }
    case Stream::fibonacci:
      return fibonacci_word(length);
    case Stream::thue_morse:
      for (std::size_t i = 0; i < length; ++i) word[i] = static_cast<Token>(std::popcount(i) & 1);
      break;
    case Stream::de_bruijn:
      return de_bruijn_word(length, static_cast<std::uint32_t>(random.between(3, 9)));
    case Stream::all_distinct:
      for (std::size_t i = 0; i < length; ++i) word[i] = static_cast<Token>(i);
      break;
    case Stream::zipf:
      for (Token& token : word) token = zipf_token(random, vocabulary);
      break;
    case Stream::trace_like:
      return trace_like_tokens(length, random, vocabulary);
  }
  return word;
}

/// Returns the same stream over other token ids, one to one: small symbols become the extreme ids, and some others
/// change sign.
inline std::vector<Token> with_extreme_ids(std::vector<Token> word) {
  constexpr std::array<Token, 4> extreme = {std::numeric_limits<Token>::min(), -1, std::numeric_limits<Token>::max(),
                                            0};
  for (Token& token : word) {
    if (token >= 0 && token < 4) {
      token = extreme[static_cast<std::size_t>(token)];
    } else if (token % 3 == 0) {
      token = -token;
    }
  }
  return word;
}

}  // namespace reprise::testing
