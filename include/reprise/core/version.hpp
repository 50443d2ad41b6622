// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "reprise/core/detail/contract.hpp"

namespace reprise::inline v0 {

/// The version of these headers (semantic versioning). CMakeLists.txt reads the project version from this file.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;
inline constexpr std::string_view version_string = "0.1.0";

}  // namespace reprise
