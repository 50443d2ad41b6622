// SPDX-License-Identifier: Apache-2.0
#include "page_html.hpp"

#include <algorithm>

#include "common/text.hpp"

namespace reprise::replay {

std::string html(std::string_view text) {
  std::string escaped;
  for (const char c : tools::printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_lines(std::string_view text) {
  std::string escaped;
  while (true) {
    const std::size_t end = text.find('\n');
    escaped += html(text.substr(0, end));
    if (end == std::string_view::npos) return escaped;
    escaped += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string html_name(std::string_view name) {
  if (name.empty()) return "(empty)";
  // A name of any length would widen the page.
  constexpr std::size_t most = 80;
  std::string shown(name);
  if (shown.size() > most) {
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0U) == 0x80U) --end;
    shown = shown.substr(0, end) + "...";
  }
  return "<bdi>" + html(shown) + "</bdi>";
}

std::string bar_cell(double speedup, const std::optional<Interval>& interval, double most) {
  const auto percent = [&](double value) { return tools::decimal(100 * std::clamp(value / most, 0.0, 1.0), 2) + "%"; };
  std::string text =
      "<span class=\"track\" aria-hidden=\"true\"><span class=\"bar\" style=\"width:" + percent(speedup) +
      "\"></span><span class=\"one\" style=\"left:" + percent(1) + "\"></span>";
  if (interval)
    text += "<span class=\"whisker\" style=\"left:" + percent(interval->low) +
            ";width:" + percent(interval->high - interval->low) + "\"></span>";
  return text + "</span>";
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "–";
  return tools::decimal(interval->low, 2) + " to " + tools::decimal(interval->high, 2);
}

std::string counted(std::uint64_t count, const std::string& what) {
  return tools::grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return tools::decimal(whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole), 1) + "%";
}

namespace {

/// A heading without its tags, for an attribute. Its text is escaped already.
std::string without_tags(const std::string& heading) {
  std::string text;
  bool tag = false;
  for (const char c : heading) {
    tag = tag || c == '<';
    if (!tag) text += c;
    tag = tag && c != '>';
  }
  return text;
}

}  // namespace

std::string HtmlTable::text() const {
  // On a phone, the cells of a wide row stand below each other, each with its heading.
  const bool stacks = text_column != 0 || heading.size() > 4;
  // Browsers drop the roles of a table whose parts are laid out as blocks, so the roles are written out.
  const auto role = [&](const std::string& name) { return stacks ? " role=\"" + name + "\"" : std::string(); };
  const auto start = [&](const std::string& tag, const std::string& name) { return "<" + tag + role(name) + ">"; };
  const std::string label = html(caption);
  // The frame scrolls on narrow screens, so it must be reachable by keyboard.
  std::string out = "<div class=\"frame\" role=\"region\" tabindex=\"0\" aria-label=\"" + label + "\"><table" +
                    (stacks ? " class=\"stacks\" role=\"table\" aria-label=\"" + label + "\"" : "") + "><caption>" +
                    label + "</caption>" + start("thead", "rowgroup") + start("tr", "row");
  for (std::size_t i = 0; i < heading.size(); ++i)
    out += "<th scope=\"col\"" + std::string(i != 0 && i == text_column ? " class=\"text\"" : "") +
           role("columnheader") + ">" + heading[i] + "</th>";
  out += "</tr></thead>" + start("tbody", "rowgroup") + "\n";
  for (const auto& row : rows) {
    out += start("tr", "row");
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool labelled = i != 0 && i != text_column && stacks && i < heading.size() && !heading[i].empty();
      const std::string kind = i == 0             ? "th scope=\"row\""
                               : i == text_column ? "td class=\"text\""
                               : labelled         ? "td data-label=\"" + without_tags(heading[i]) + ": \""
                                                  : "td";
      out += start(kind, i == 0 ? "rowheader" : "cell") + row[i] + (i == 0 ? "</th>" : "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string stacked_bar(std::string_view label, const std::vector<StackedPart>& parts) {
  std::uint64_t all = 0;
  for (const StackedPart& part : parts) all += part.value;
  std::string bar = "<div class=\"stack\" aria-hidden=\"true\">";
  std::string legend = "<ul class=\"legend\" aria-label=\"" + html(label) + "\">";
  for (const StackedPart& part : parts) {
    if (all != 0 && part.value != 0)
      bar += "<span class=\"" + part.style +
             "\" style=\"width:" + tools::decimal(100 * static_cast<double>(part.value) / static_cast<double>(all), 3) +
             "%\"></span>";
    legend += "<li><span class=\"key " + part.style + "\" aria-hidden=\"true\"></span>" + html(part.name) + ": " +
              tools::grouped(part.value) + " (" + share(part.value, all) + ")</li>";
  }
  return bar + "</div>" + legend + "</ul>\n";
}

}  // namespace reprise::replay
