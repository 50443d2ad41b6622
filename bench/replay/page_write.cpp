// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text.hpp"
#include "page_files.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"
#include "reprise/core/version.hpp"

namespace reprise::replay {
namespace {

std::string source_of(const PageData& page) {
  if (page.traces.size() == 1) return page.traces.front().path;
  return std::to_string(page.traces.size()) + " traces";
}

std::string settings_of(const PageData& page) {
  const SessionCost all = sum(page.main_costs());
  std::string text = tools::grouped(page.sessions.size()) + (page.sessions.size() == 1 ? " session, " : " sessions, ") +
                     tools::grouped(page.counts.turns) + (page.counts.turns == 1 ? " turn, " : " turns, ") +
                     tools::grouped(all.tokens) + " output tokens";
  if (page.part != TracePart::all) text += "; part " + std::string(name(page.part)) + " of the sessions only";
  if (page.settings.kept == Kept::past) text += "; past sessions are remembered";
  return html(text);
}

}  // namespace

void write_page(std::ostream& out, const PageData& page, const Vocabulary& words) {
  const std::pair<std::string_view, std::string> parts[] = {
      {"{{title}}", html(source_of(page))},
      {"{{style}}", std::string(page_style())},
      {"{{settings}}", settings_of(page)},
      {"{{fault}}", page.counts.lossless()
                        ? ""
                        : "<p class=\"fault\" role=\"alert\">NOT LOSSLESS: " + html(page.counts.fault) + "</p>"},
      {"{{gain}}", gain_section(page)},
      {"{{where}}", where_section(page)},
      {"{{why}}", why_section(page)},
      {"{{trust}}", trust_section(page)},
      {"{{version}}", std::string(version_string)},
      {"{{data}}", page_json(page, words)},
      {"{{script}}", std::string(page_script())}};
  // One pass over the template, so that a name from a trace cannot be taken for a placeholder.
  std::string_view rest = page_template();
  while (true) {
    const std::size_t at = rest.find("{{");
    out << rest.substr(0, at);
    if (at == std::string_view::npos) return;
    const std::size_t end = rest.find("}}", at) + 2;
    for (const auto& [mark, text] : parts)
      if (rest.substr(at, end - at) == mark) out << text;
    rest.remove_prefix(end);
  }
}

}  // namespace reprise::replay
