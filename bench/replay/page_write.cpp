// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <utility>

#include "common/text.hpp"
#include "page_files.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"
#include "reprise/core/token.hpp"

namespace reprise::replay {
namespace {

std::string source_of(const PageData& page) {
  if (page.traces.size() == 1) return page.traces.front().path;
  return std::to_string(page.traces.size()) + " traces";
}

std::string settings_of(const PageData& page) {
  const SessionCost all = sum(page.main_costs());
  std::string text = counted(page.sessions.size(), "session") + ", " + counted(page.counts.turns, "turn") + ", " +
                     tools::grouped(all.tokens) + " output tokens";
  if (page.part != TracePart::all) text += "; part " + std::string(name(page.part)) + " of the sessions only";
  if (page.settings.kept == Kept::past) text += "; past sessions are remembered";
  return html(text);
}

}  // namespace

void write_page(std::ostream& out, const PageData& page, const Vocabulary& words) {
  const std::string fault = page.counts.lossless() ? ""
                                                   : "<p class=\"fault\" role=\"alert\">" +
                                                         html("NOT LOSSLESS: " + page.counts.fault) + "</p>";
  const std::pair<std::string_view, std::string> parts[] = {
      {"{{title}}", html(source_of(page))}, {"{{style}}", std::string(page_style())},
      {"{{settings}}", settings_of(page)},  {"{{fault}}", fault},
      {"{{gain}}", gain_section(page)},     {"{{where}}", where_section(page)},
      {"{{why}}", why_section(page)},       {"{{advice}}", advice_section(page)},
      {"{{trust}}", trust_section(page)},   {"{{version}}", std::string(version_string)},
      {"{{data}}", page_json(page, words)}, {"{{script}}", std::string(page_script())}};
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
