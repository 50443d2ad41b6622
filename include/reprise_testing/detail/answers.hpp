// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "reprise/core/result.hpp"

/// \file Engines return a value or a Result of a value. These functions accept both.
namespace reprise::testing::detail {

/// Returns a pointer to the value of the answer; nullptr if the answer is an Error.
template <class T>
auto* value_in(T& answer) {
  if constexpr (is_result<std::remove_cv_t<T>>)
    return answer ? &*answer : nullptr;
  else
    return &answer;
}
/// Calls `call()` and ignores its value. Returns false if it returns an Error.
template <class Call>
bool done(Call&& call) {
  if constexpr (is_result<std::remove_cvref_t<decltype(call())>>)
    return call().has_value();
  else
    return call(), true;
}

}  // namespace reprise::testing::detail
