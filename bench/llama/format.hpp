// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace reprise::llama {

/// What printf() makes of numbers, up to 159 characters of it.
template <class... Numbers>
std::string format(const char* pattern, Numbers... numbers) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), pattern, numbers...);
  return text.data();
}

}  // namespace reprise::llama
