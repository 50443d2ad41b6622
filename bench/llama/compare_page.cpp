// SPDX-License-Identifier: Apache-2.0
#include "compare_page.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "replay/page_figures.hpp"
#include "replay/page_html.hpp"
#include "replay/page_parts.hpp"
#include "replay/page_shell.hpp"
#include "replay/page_viewer.hpp"
#include "replay/vocabulary.hpp"

namespace reprise::llama {
namespace {

using replay::counted;
using replay::html;

std::string settings_of(const ComparePage& page) {
  const CompareReport& report = page.report;
  const EngineOptions& engine = report.engine.options();
  const Summary all = page.main().total();
  std::string text = counted(all.sessions, "session") + ", " + counted(all.drafted.turns, "turn") + ", " +
                     counted(all.drafted.tokens, "output token");
  text += report.repeat == 1 ? "" : " in " + counted(report.repeat, "repetition");
  text += "; " + counted(static_cast<std::uint64_t>(engine.threads), "thread") + ", context " +
          tools::grouped(report.engine.context_size()) + ", up to " + counted(report.settings.leaves, "path");
  if (report.kept == replay::Kept::past) text += "; past sessions are remembered";
  if (report.filled_with != 0) text += ", beginning with " + counted(report.filled_with, "session");
  return html(text);
}

std::string fault_of(const ComparePage& page) {
  std::size_t near_ties = 0;
  std::size_t wrong = 0;
  std::size_t runs = 0;
  for (const StrategyPairs& strategy : page.report.strategies)
    for (const Pair& pair : strategy.pairs) {
      ++runs;
      near_ties += pair.verdict() == Verdict::near_tie ? 1 : 0;
      wrong += pair.verdict() == Verdict::wrong ? 1 : 0;
    }
  if (near_ties + wrong == 0) return {};
  const std::string part = " of " + counted(runs, "text");
  if (wrong == 0)
    return replay::fault_box("Not lossless as run here: " + tools::grouped(near_ties) + part +
                             " differ from plain decoding, each first at a near tie.");
  return replay::fault_box("WRONG: " + tools::grouped(wrong) + part +
                           " differ from plain decoding, and no rounding explains it.");
}

/// The recorded sessions to show: the asked ones, then the worst, the median and the best of each category.
std::vector<replay::ViewedSession> viewed(const ComparePage& page) {
  const auto& recorded = page.notes.recorded();
  std::vector<TimedSession> times;
  std::vector<std::string> names;
  std::vector<std::uint64_t> tokens;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    times.push_back(page.main().pairs[recorded[i].index].timed());
    names.push_back(recorded[i].session->category);
    tokens.push_back(times.back().tokens);
    const bool asked = std::find(page.asked.begin(), page.asked.end(), recorded[i].session->id) != page.asked.end();
    if (asked && chosen.size() < CompareNotes::most_shown) chosen.push_back(i);
  }
  for (const replay::Group& group : replay::group_by(names, tokens, CompareNotes::most_shown / 3).groups)
    for (const std::size_t i : replay::worst_median_best(times, group))
      if (chosen.size() < CompareNotes::most_shown && std::find(chosen.begin(), chosen.end(), i) == chosen.end())
        chosen.push_back(i);
  std::vector<replay::ViewedSession> sessions;
  for (const std::size_t i : chosen) {
    std::uint64_t shown = 0;
    for (const replay::Turn& turn : recorded[i].session->turns) shown += turn.output.size();
    sessions.push_back({&recorded[i], shown, times[i].speedup()});
  }
  return sessions;
}

/// The texts of the tokens of these sessions.
replay::Vocabulary words_of(const std::vector<replay::ViewedSession>& sessions, const Engine& engine) {
  replay::Vocabulary words;
  const auto add = [&](Token token) {
    if (token < 0 || static_cast<std::size_t>(token) >= engine.vocabulary() || words.find(token) != nullptr) return;
    if (std::string text = engine.text({&token, 1}); !text.empty()) words.add(token, std::move(text));
  };
  for (const replay::ViewedSession& session : sessions) {
    for (const replay::Turn& turn : session.shown->session->turns) {
      for (const Token token : turn.prompt) add(token);
      for (const Token token : turn.output) add(token);
    }
    for (const replay::ShownPass& pass : session.shown->passes)
      for (const replay::ShownPass::Node& node : pass.nodes) add(node.token);
  }
  return words;
}

std::string data_of(const ComparePage& page) {
  std::ostringstream text;
  tools::JsonWriter json(text, tools::JsonWriter::Spacing::compact);
  json.begin_object().key("strategies").begin_array();
  for (const StrategyPairs& strategy : page.report.strategies) {
    if (&strategy == page.report.strategies.data() + replay::most_groups) break;
    const Summary all = strategy.total();
    json.begin_object().member("name", tools::printable(strategy.spec));
    json.raw_member("speedup", tools::shortest(speedup(all.plain, all.drafted))).end();
  }
  json.end();
  const std::vector<replay::ViewedSession> sessions = viewed(page);
  const replay::Vocabulary words = words_of(sessions, page.report.engine);
  replay::ViewerJson(json, words, 0).write(sessions);
  json.end();
  return replay::inside_script(text.str());
}

}  // namespace

std::vector<TimedSession> timed_sessions(const StrategyPairs& strategy) {
  std::vector<TimedSession> sessions;
  for (const Pair& pair : strategy.pairs)
    if (!pair.repeated) sessions.push_back(pair.timed());
  return sessions;
}

void write_page(std::ostream& out, const ComparePage& page) {
  replay::write_shell(
      out, {.about = "Measured:",
            .kind = "Speculative decoding, measured with llama.cpp",
            .title = html(page.report.engine.description()),
            .settings = settings_of(page),
            .fault = fault_of(page),
            .gain = gain_section(page),
            .where = where_section(page),
            .why = why_section(page),
            .trust = trust_section(page),
            .footer = "Speedup: the time per token without drafting divided by the time per token with it. Times are "
                      "those of decoding: everything between the prefill and the last token, with strategy, control "
                      "and the reading of the prompt by the strategy. The times that the page itself needed are not "
                      "in them.",
            .tool = "reprise-llama",
            .data = data_of(page)});
}

}  // namespace reprise::llama
