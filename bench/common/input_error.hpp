// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace reprise::tools {

/// Something that was handed to the tool cannot be used: an argument, a trace, a curve. The message says what was
/// wrong, where, and what would do; main() prints it and exits with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace reprise::tools
