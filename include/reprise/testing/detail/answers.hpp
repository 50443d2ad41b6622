// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "reprise/core/result.hpp"

/// \file Engines answer with a value or with a Result of one; the kit reads both alike.
namespace reprise::testing::detail {

/// False if it is an Error.
template <class T>
bool succeeded(const T& answer) {
  if constexpr (is_result<T>)
    return answer.has_value();
  else
    return true;
}
/// The value, of a Result that has one too.
template <class T>
decltype(auto) unwrapped(T& answer) {
  if constexpr (is_result<std::remove_cv_t<T>>)
    return *answer;
  else
    return (answer);
}
/// Makes a call that answers with a Result or with nothing of interest; false if that is an Error.
template <class Call>
bool done(Call&& call) {
  if constexpr (is_result<std::remove_cvref_t<decltype(call())>>)
    return call().has_value();
  else
    return call(), true;
}

}  // namespace reprise::testing::detail
