// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/core/result.hpp"

namespace reprise::testing {

using Number = std::optional<std::uint64_t>;

MATCHER_P4(FailsWith, code, value, limit, words, "") {
  if (arg.has_value()) {
    *result_listener << "which succeeded";
    return false;
  }
  const Error& error = arg.error();
  *result_listener << error.message << " (" << error.value << ", limit " << error.limit << ")";
  return error.code == code && error.value == value.value_or(error.value) &&
         error.limit == limit.value_or(error.limit) && error.message.find(words) != std::string_view::npos;
}

/// Matches a Result with this error. Numbers that are not given are not compared. The message has to contain `words`.
inline auto fails(ErrorCode code, Number value = {}, Number limit = {}, const std::string& words = {}) {
  return FailsWith(code, value, limit, words);
}

/// The same for a setting that is refused.
inline auto refuses(std::uint64_t value, std::uint64_t limit, const std::string& words = {}) {
  return fails(ErrorCode::invalid_argument, value, limit, words);
}

}  // namespace reprise::testing
