// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "common/text.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"
#include "page_shell.hpp"

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
  write_shell(
      out, {.about = "Replay of",
            .kind = "Speculative decoding, replayed",
            .title = html(source_of(page)),
            .settings = settings_of(page),
            .fault = page.counts.lossless() ? "" : fault_box("NOT LOSSLESS: " + page.counts.fault),
            .gain = gain_section(page),
            .where = where_section(page),
            .why = why_section(page),
            .trust = trust_section(page),
            .footer = "Speedup: output tokens divided by the cost of the passes; a pass without a draft costs 1. The "
                      "first output token of a turn is not counted, because the prefill gives it. The time of "
                      "drafting and control is stated but not charged.",
            .tool = "reprise-replay",
            .data = page_json(page, words)});
}

}  // namespace reprise::replay
