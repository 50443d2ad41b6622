// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::replay {
namespace {

using tools::decimal;
using tools::grouped;

/// What a cut means, for readers of the page.
constexpr std::string_view meaning(Cut cut) {
  constexpr std::string_view meanings[cut_count] = {
      "every proposed token was sent",
      "nothing to propose: no earlier text matched",
      "no candidate, or no further one, was likely enough to be worth its cost",
      "drafting was skipped for a while after losses",
      "the limit of drafted tokens in a pass",
      "the draft was malformed",
      "deeper than the engine allows",
      "more rows than the engine allows",
      "the engine allows only certain numbers of rows",
      "more drafted rows than the engine can roll back",
      "the context of the engine is full",
      "the limit of output tokens",
      "no memory for a draft",
      "a grammar or another rule refused the tokens",
      "the strategy failed"};
  return meanings[static_cast<std::size_t>(cut)];
}

std::string drafted_tokens(const PassSums& sums) {
  const PassSums::Drafted& drafted = sums.drafted;
  std::uint64_t passes = 0;
  for (const std::uint64_t count : sums.passes) passes += count;
  return "<p>All " + grouped(passes) + " passes proposed " + grouped(drafted.proposed) + " tokens. " +
         grouped(sums.undrafted) + " passes (" + share(sums.undrafted, passes) + ") carried no draft. In " +
         grouped(sums.all_accepted) + " passes (" + share(sums.all_accepted, passes) +
         ") the whole draft was accepted, so a longer one might have gained more.</p>\n" +
         stacked_bar("Proposed tokens by what became of them",
                     {{"accepted", "accepted", drafted.accepted},
                      {"sent and rejected", "rejected", drafted.sent - std::min(drafted.accepted, drafted.sent)},
                      {"proposed, not sent", "withheld", drafted.proposed - std::min(drafted.sent, drafted.proposed)}});
}

std::string cut_reasons(const PassSums& sums) {
  std::uint64_t passes = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < cut_count; ++i) {
    passes += sums.passes[i];
    if (sums.passes[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sums.passes[a] > sums.passes[b]; });
  HtmlTable table{"Passes by the reason why their draft was not sent whole",
                  {"Reason", "Meaning", "Passes", "Share", "Tokens not sent"},
                  {},
                  1};
  for (const std::size_t i : order)
    table.rows.push_back({"<code>" + html(to_string(static_cast<Cut>(i))) + "</code>",
                          html(meaning(static_cast<Cut>(i))), grouped(sums.passes[i]), share(sums.passes[i], passes),
                          grouped(sums.withheld[i])});
  return table.text();
}

/// A speedup beside that of a run, and what it means.
struct Bound {
  std::string name;
  std::string meaning;
  double speedup = 1;
};

std::string bounds(const PageData& page) {
  std::vector<Bound> bounds = {
      {"This run", "the control decides how much of each draft is sent", sum(page.main_costs()).speedup()}};
  if (!page.hindsight.empty())
    bounds.push_back({"Hindsight",
                      "drafts of the same strategy, sent as far as they will be accepted; no control can know that",
                      sum(page.hindsight).speedup()});
  if (!page.ceiling.empty())
    bounds.push_back({"Ceiling", "an oracle that copies from the session, and knows from where and how far",
                      sum(page.ceiling).speedup()});
  double most = 1.1;  // the mark of plain decoding is inside the bar
  for (const Bound& bound : bounds) most = std::max(most, bound.speedup);
  HtmlTable table{"Speedup beside two bounds", {"", "Speedup", "", "Meaning"}, {}, 3};
  for (const Bound& bound : bounds)
    table.rows.push_back({bound.name, decimal(bound.speedup, 3), bar_cell(bound.speedup, {}, most), bound.meaning});
  return table.text() +
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
