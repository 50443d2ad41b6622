// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "reprise/core/result.hpp"

/// \file Engines return a value or a Result of one. These functions read both alike.
namespace reprise::testing::detail {

/// False if it is an Error.
template <class T>
bool succeeded(const T& answer) {
  if constexpr (is_result<T>)
    return answer.has_value();
  else
    return true;
}
/// The value of the answer. Precondition: succeeded(answer).
template <class T>
decltype(auto) unwrapped(T& answer) {
  if constexpr (is_result<std::remove_cv_t<T>>)
    return *answer;
  else
    return (answer);
}
/// Makes a call whose value does not matter. Returns false if the call returned an Error.
template <class Call>
bool done(Call&& call) {
  if constexpr (is_result<std::remove_cvref_t<decltype(call())>>)
    return call().has_value();
  else
    return call(), true;
}

}  // namespace reprise::testing::detail
