// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "generate.hpp"

namespace reprise::llama {

/// Holds bytes back until they form whole UTF-8 characters, because one character can span several tokens.
class CharacterStream {
 public:
  /// Adds bytes and returns those that can be printed. Bytes that begin no character are returned unchanged.
  std::string add(std::string_view bytes);
  /// Returns the bytes held back, complete or not.
  std::string rest();

 private:
  std::string held_;
};

/// Writes one line for people: tokens, passes and speed.
void write_summary(std::ostream& out, const RequestRun& run);

}  // namespace reprise::llama
