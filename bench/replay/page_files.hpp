// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace reprise::replay {

/// The files of bench/replay/page/, which the build turns into code (cmake/embed.cmake).
std::string_view page_template();  ///< page.html
std::string_view page_style();     ///< page.css
std::string_view page_script();    ///< page.js

}  // namespace reprise::replay
