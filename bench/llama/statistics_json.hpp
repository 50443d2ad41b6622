// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "reprise/stats/statistics_text.hpp"

namespace reprise::llama {

/// All counts as the library's JSON object.
inline std::string statistics_json(const Statistics& statistics) {
  std::string json;
  write_json(statistics, [&](std::string_view piece) { json += piece; });
  return json;
}

}  // namespace reprise::llama
