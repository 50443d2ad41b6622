// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "page_data.hpp"
#include "vocabulary.hpp"

namespace reprise::replay {

/// The sections of a page as HTML, in its order. They need no script. Each answers the question of its heading.
std::string gain_section(const PageData& page);    ///< What would I gain?
std::string where_section(const PageData& page);   ///< Where?
std::string why_section(const PageData& page);     ///< Why not more?
std::string advice_section(const PageData& page);  ///< What should I set?
std::string trust_section(const PageData& page);   ///< Can I trust it?

/// The data that the script of the page draws: speedups of all lines and curves, and the shown sessions.
std::string page_json(const PageData& page, const Vocabulary& words);

/// Writes the whole page. Categories and sessions beyond a fixed number are folded.
void write_page(std::ostream& out, const PageData& page, const Vocabulary& words);

}  // namespace reprise::replay
