// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace reprise::tools {

/// An unusable input: an argument, a trace, a curve. The message names the problem, its place and a remedy.
/// main() prints it and exits with 2.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace reprise::tools
