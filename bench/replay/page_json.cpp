// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "page_sections.hpp"
#include "page_shell.hpp"
#include "page_viewer.hpp"

namespace reprise::replay {

std::string page_json(const PageData& page, const Vocabulary& words) {
  std::ostringstream text;
  tools::JsonWriter json(text, tools::JsonWriter::Spacing::compact);
  json.begin_object().key("curves").begin_array();
  for (const CostCurve& curve : page.curves) {
    json.begin_object().member("spec", curve.spec()).key("slope");
    curve.linear() == nullptr ? json.null() : json.raw(tools::shortest(curve.linear()->slope));
    json.end();
  }
  json.end().member("main", page.main).key("lines").begin_array();
  for (std::size_t i = 0; i < std::min(page.lines.size(), most_groups); ++i) {
    const PageLine& line = page.lines[i];
    json.begin_object().member("name", line.label).key("speedups").begin_array();
    for (const auto& costs : line.costs) json.raw(tools::shortest(sum(costs).speedup()));
    json.end().end();
  }
  json.end();
  std::vector<ViewedSession> viewed;
  for (const ShownSession& shown : page.shown) {
    const SessionCost& cost = page.main_costs()[shown.index];
    viewed.push_back({&shown, cost.tokens, cost.speedup()});
  }
  ViewerJson(json, words, 1).write(viewed);
  json.end();
  return inside_script(text.str());
}

}  // namespace reprise::replay
