// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "llama.h"
#include "stand_in.hpp"

/// \file The inside of the stand-in: hashes, the model, its vocabulary.
namespace reprise::llama_stand_in {

/// Returns a hash of two numbers that depends on all their bits.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a * 0x9E3779B97F4A7C15ULL + b + 0x632BE59BD9B4E019ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}
/// Returns a number in [0, 1).
inline float fraction(std::uint64_t hash) noexcept { return static_cast<float>(hash >> 40U) * 0x1p-24F; }

/// Logs the failed assertion and ends the process, as llama.cpp does even in a release build.
[[noreturn]] void fail(const char* assertion);
void log_error(const std::string& text);

/// Fails with `assertion` unless the condition holds.
inline void expects(bool condition, const char* assertion) {
  if (!condition) fail(assertion);
}

}  // namespace reprise::llama_stand_in

/// Token 0 begins a text, 1 ends it, and 2 and 3 are those of chatml. Bytes from the space on follow, then words.
struct llama_vocab {  // NOLINT(readability-identifier-naming)
  std::int32_t size = 0;

  static constexpr llama_token begin = 0;
  static constexpr llama_token end = 1;
  static constexpr llama_token turn_begins = 2;
  static constexpr llama_token turn_ends = 3;
  static constexpr llama_token first_byte = 4;
  static constexpr llama_token first_word = 260;
  static constexpr std::int32_t smallest = 8;

  [[nodiscard]] bool has(llama_token token) const noexcept { return token >= 0 && token < size; }
  [[nodiscard]] std::string piece(llama_token token, bool special) const;
};

struct llama_model {  // NOLINT(readability-identifier-naming)
  reprise::llama_stand_in::ModelText text;
  llama_vocab vocab;
};
