// SPDX-License-Identifier: Apache-2.0
#include "page_shell.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "page_files.hpp"
#include "reprise/core/version.hpp"

namespace reprise::replay {

std::string inside_script(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else if (json.compare(i, 3, "\xe2\x80\xa8") == 0 || json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      safe += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += c;
    }
  }
  return safe;
}

void write_shell(std::ostream& out, const PageShell& shell) {
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"{{about}}", shell.about},      {"{{kind}}", shell.kind},         {"{{title}}", shell.title},
      {"{{style}}", page_style()},     {"{{settings}}", shell.settings}, {"{{fault}}", shell.fault},
      {"{{gain}}", shell.gain},        {"{{where}}", shell.where},       {"{{why}}", shell.why},
      {"{{trust}}", shell.trust},      {"{{footer}}", shell.footer},     {"{{tool}}", shell.tool},
      {"{{version}}", version_string}, {"{{data}}", shell.data},         {"{{script}}", page_script()}};
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
