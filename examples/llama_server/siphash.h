// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4, in C++17.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace reprise_server {

// Returns a hash of `text` that cannot be guessed without the key.
inline uint64_t siphash(const std::array<uint64_t, 2>& key, const std::string& text) {
  std::array<uint64_t, 4> v = {key[0] ^ 0x736f6d6570736575U, key[1] ^ 0x646f72616e646f6dU, key[0] ^ 0x6c7967656e657261U,
                               key[1] ^ 0x7465646279746573U};
  const auto add = [&v](size_t to, size_t from, int by) {
    v[to] += v[from];
    v[from] = (v[from] << by | v[from] >> (64 - by)) ^ v[to];
  };
  const auto mix = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      add(0, 1, 13), add(2, 3, 16);
      v[0] = v[0] << 32 | v[0] >> 32;
      add(2, 1, 17), add(0, 3, 21);
      v[2] = v[2] << 32 | v[2] >> 32;
    }
  };
  const auto absorb = [&](uint64_t word) {
    v[3] ^= word;
    mix(2);
    v[0] ^= word;
  };
  uint64_t word = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    word |= uint64_t{static_cast<uint8_t>(text[i])} << 8 * (i % 8);
    if (i % 8 == 7) absorb(word), word = 0;
  }
  absorb(word | uint64_t{text.size()} << 56);
  v[2] ^= 0xffU;
  mix(4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

}  // namespace reprise_server
