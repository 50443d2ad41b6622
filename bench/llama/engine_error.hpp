// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace reprise::llama {

/// A failure of the engine or the machine during the work: a pass, a full disk. The message names the operation and a
/// remedy; run_tool() prints it and returns 1.
class EngineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace reprise::llama
