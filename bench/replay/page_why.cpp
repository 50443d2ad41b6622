// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "page_sections.hpp"

namespace reprise::replay {
namespace {

std::string bounds(const PageData& page) {
  const auto speedup = [](std::span<const SessionCost> sessions) { return sum(sessions).speedup(); };
  std::vector<Bound> bounds = {
      {"This run", "the control decides how much of each draft is sent", speedup(page.main_costs())}};
  if (!page.hindsight.empty())
    bounds.push_back({"Hindsight",
                      "drafts of the same strategy, sent as far as they will be accepted; no control can know that",
                      speedup(page.hindsight)});
  if (!page.ceiling.empty())
    bounds.push_back(
        {"Ceiling", "an oracle that copies from the session, and knows from where and how far", speedup(page.ceiling)});
  return bound_bars("Speedup beside two bounds", bounds) +
         "<p class=\"note\">The gap from this run to hindsight is the price of not knowing which drafts will be "
         "accepted. The gap from hindsight to the ceiling is text that the drafter did not find, or did not rank "
         "first. A drafter with knowledge from outside the session can exceed the ceiling.</p>\n";
}

}  // namespace

std::string why_section(const PageData& page) {
  return "<section aria-labelledby=\"why\"><h2 id=\"why\">Why not more?</h2>\n<h3>Drafted tokens</h3>\n" +
         drafted_tokens(page.passes) + "<h3>Reasons</h3>\n" + cut_reasons(page.passes) +
         "<h3>Hindsight and ceiling</h3>\n" + bounds(page) + "</section>\n";
}

}  // namespace reprise::replay
