// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string_view>

#include "page_data.hpp"
#include "report.hpp"
#include "vocabulary.hpp"

namespace reprise::replay {

/// Writes a page: HTML with a script that draws the results of `report`, as write_json() writes them, and `page`.
void write_page(std::ostream& out, const Report& report, const PageData& page, const Vocabulary& words);

/// The page before its data are put in, from the files of bench/replay/page/ (page/embed.cmake).
std::string_view page_template();
/// Marks the place of the data.
inline constexpr std::string_view page_data_mark = "{{data}}";

}  // namespace reprise::replay
