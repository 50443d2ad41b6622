// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/input_error.hpp"

namespace reprise::testing {

/// Returns the message of the InputError that a call throws, or "accepted".
template <class Call>
std::string refusal(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const tools::InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace reprise::testing
