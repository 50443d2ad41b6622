// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <string>

#include "advice.hpp"
#include "common/text.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"

namespace reprise::replay {
namespace {

using tools::decimal;

/// "2nd", "11th", "23rd".
std::string ordinal(std::size_t number) {
  const std::size_t last = number % 100 / 10 == 1 ? 0 : number % 10;
  return tools::grouped(number) + (last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

std::string tried_table(const Advice& advice) {
  HtmlTable table{"Settings that were tried",
                  {"Question", "Setting", "Speedup", "Change", "99% interval", "Memory", "Verdict"},
                  {},
                  6};
  const auto or_dash = [](const std::string& text) { return text.empty() ? "–" : html(text); };
  for (const Tried& tried : advice.tried) {
    const TriedText text = text_of(tried, advice);
    table.rows.push_back({html(tried.question), html(tried.setting), decimal(tried.speedup, 3), html(text.change),
                          or_dash(text.interval), or_dash(text.memory),
                          tried.chosen ? "<strong>" + html(text.verdict) + "</strong>" : html(text.verdict)});
  }
  return table.text();
}

}  // namespace

std::string advice_section(const PageData& page) {
  const Advice& advice = page.advice;
  const AdviceReport report = {advice, page.curves[page.main], page.settings, page.part,
                               page.settings.top_k && has_top_k(page.traces)};
  std::ostringstream summary;
  write_summary(summary, advice);
  std::string text =
      "<section aria-labelledby=\"advice\"><h2 id=\"advice\">What should I set?</h2>\n<p id=\"advised\">" +
      html_lines(summary.str()) + "</p>\n";
  if (advice.tried.empty()) return text + "</section>\n";
  if (page.advised_every > 1)
    text += "<p class=\"note\">From every " + ordinal(page.advised_every) +
            " session: " + counted(advice.sessions, "session") + ", " + tools::grouped(advice.tokens) +
            " tokens. <code>--advise</code> tries the settings on all.</p>\n";
  text += "<p>The defaults of the library (chains, " +
          std::string(report.top_k ? "rankings of accepted tokens" : "no rankings") + ", no history): <strong>" +
          decimal(advice.default_speedup, 3) + "×</strong> under <code>" + html(report.curve.spec()) +
          "</code>.</p>\n" + tried_table(advice) +
          "<p class=\"note\">Each change is relative to the settings chosen above it. A change must gain " +
          decimal(100 * Change::least_gain(), 1) + "%, and " +
          decimal(100 * (Change::least_gain(1 << 20) - Change::least_gain()), 2) +
          "% more for each MiB of memory that it adds.</p>\n";
  std::ostringstream code;
  write_code(code, report);
  return text +
         "<h3>The same as C++</h3>\n<pre class=\"frame\" role=\"region\" tabindex=\"0\" aria-label=\"The settings as "
         "C++\"><code>" +
         html_lines(code.str()) + "</code></pre>\n</section>\n";
}

}  // namespace reprise::replay
