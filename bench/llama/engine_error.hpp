// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace reprise::llama {

/// The engine or the machine failed in the middle of the work: a pass, a full disk. The message says at what, and
/// what can be done; run_tool() prints it and answers 1.
class EngineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace reprise::llama
