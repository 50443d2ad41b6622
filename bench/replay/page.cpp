// SPDX-License-Identifier: Apache-2.0
#include "page.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "loss_window.hpp"
#include "pass_record.hpp"
#include "report_curve.hpp"
#include "report_json.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::replay {
namespace {

using tools::JsonWriter;
using tools::shortest;

/// Most categories, traces and strategies with an interval.
constexpr std::size_t most_groups = 24;
/// The last tokens of a prompt that are shown.
constexpr std::size_t prompt_tail = 32;

/// Writes the sessions that the script of a page shows token by token, as members of an open JSON object.
class ViewerJson {
 public:
  /// `page`, `words` and `json` outlive the writer.
  ViewerJson(JsonWriter& json, const PageData& page, const Vocabulary& words)
      : json_(json), page_(page), words_(words) {}

  void write();

 private:
  void token(Token token);
  void session(const ShownSession& shown);
  void pass(const ShownPass& pass);

  JsonWriter& json_;
  const PageData& page_;
  const Vocabulary& words_;
  std::set<Token> used_;
};

void ViewerJson::write() {
  json_.key("cuts").begin_array();
  for (std::size_t i = 0; i < cut_count; ++i) json_.value(to_string(static_cast<Cut>(i)));
  json_.end().key("shown").begin_array();
  for (const ShownSession& shown : page_.shown) session(shown);
  json_.end().key("words").begin_object();
  for (const Token token : used_)
    if (const std::string* word = words_.find(token)) json_.member(std::to_string(token), *word);
  json_.end();
}

void ViewerJson::token(Token token) {
  if (!words_.empty()) used_.insert(token);
  json_.value(token);
}

void ViewerJson::session(const ShownSession& shown) {
  json_.begin_object().member("session", shown.index).member("complete", shown.complete).key("turns").begin_array();
  auto pass = shown.passes.begin();
  for (const Turn& turn : shown.session->turns) {
    if (pass == shown.passes.end() && !shown.complete) break;
    json_.begin_object().member("prompt_size", turn.prompt.size()).key("prompt").begin_array();
    for (const Token t : TokenSpan(turn.prompt).last(std::min(turn.prompt.size(), prompt_tail))) token(t);
    json_.end().key("passes").begin_array();
    std::size_t done = std::min<std::size_t>(turn.output.size(), 1);
    for (; pass != shown.passes.end() && done < turn.output.size(); ++pass) {
      this->pass(*pass);
      done += pass->committed;
    }
    json_.end().key("output").begin_array();
    for (const Token t : TokenSpan(turn.output).first(std::min(done, turn.output.size()))) token(t);
    json_.end().end();
  }
  json_.end().end();
}

/// [committed tokens, cut, token ids, parents, sources, fates, percentages]; the last five only with a draft.
/// Sources and fates are texts with a letter for each node: the number of the source, and a, r or n.
void ViewerJson::pass(const ShownPass& pass) {
  json_.begin_array().value(pass.committed).value(static_cast<std::size_t>(pass.cut));
  if (!pass.nodes.empty()) {
    std::string sources;
    std::string fates;
    json_.begin_array();
    for (const ShownPass::Node& node : pass.nodes) {
      token(node.token);
      sources += static_cast<char>('0' + static_cast<int>(node.source));
      fates += "arn"[static_cast<std::size_t>(node.fate)];
    }
    json_.end().begin_array();
    for (const ShownPass::Node& node : pass.nodes) json_.value(node.parent);
    json_.end().value(sources).value(fates).begin_array();
    for (const ShownPass::Node& node : pass.nodes) json_.value(node.percent);
    json_.end();
  }
  json_.end();
}

/// Writes [low, high], or null without an interval.
void write_interval(JsonWriter& json, const std::optional<Interval>& interval) {
  if (!interval) {
    json.null();
    return;
  }
  json.begin_array().raw(shortest(interval->low)).raw(shortest(interval->high)).end();
}

/// For each line, its interval over all sessions, and then over those of each trace.
void write_intervals(JsonWriter& json, const PageData& page) {
  json.key("intervals").begin_array();
  for (std::size_t i = 0; i < std::min(page.lines.size(), most_groups); ++i) {
    std::span<const SessionCost> rest = page.lines[i].costs;
    json.begin_array();
    write_interval(json, bootstrap(rest));
    for (const Trace& trace : page.traces.first(std::min(page.traces.size(), most_groups))) {
      write_interval(json, bootstrap(rest.first(trace.sessions.size())));
      rest = rest.subspan(trace.sessions.size());
    }
    json.end();
  }
  json.end();
}

/// For each session: [id, category, tokens, cost, worst loss].
void write_sessions(JsonWriter& json, const PageData& page) {
  json.key("sessions").begin_array();
  for (std::size_t i = 0; i < page.sessions.size(); ++i) {
    const SessionCost& session = page.main_costs()[i];
    json.begin_array().value(page.session(i).id).value(page.session(i).category).value(session.tokens);
    json.raw(shortest(session.cost)).raw(shortest(page.worst_losses[i])).end();
  }
  json.end();
}

void write_categories(JsonWriter& json, const PageData& page) {
  std::vector<std::string> names;
  std::vector<std::uint64_t> tokens;
  for (std::size_t i = 0; i < page.sessions.size(); ++i) {
    names.push_back(page.session(i).category);
    tokens.push_back(page.main_costs()[i].tokens);
  }
  const Groups groups = group_by(names, tokens, most_groups);
  json.member("folded_categories", groups.folded).key("categories").begin_array();
  for (const Group& group : groups.groups) {
    std::vector<SessionCost> some;
    for (const std::size_t i : group.sessions) some.push_back(page.main_costs()[i]);
    json.begin_object().member("name", group.name).member("sessions", some.size()).member("tokens", sum(some).tokens);
    json.raw_member("speedup", shortest(sum(some).speedup())).key("interval");
    write_interval(json, bootstrap(some));
    json.end();
  }
  json.end();
}

void write_passes(JsonWriter& json, const PassSums& passes) {
  json.member("undrafted", passes.undrafted).member("all_accepted", passes.all_accepted).key("withheld").begin_object();
  for (std::size_t i = 0; i < cut_count; ++i) json.member(to_string(static_cast<Cut>(i)), passes.withheld[i]);
  json.end().key("sources").begin_array();
  for (std::size_t i = 0; i < draft_source_count; ++i) {
    const PassSums::Drafted& source = passes.by_source[i];
    json.begin_object().member("name", to_string(static_cast<DraftSource>(i))).member("proposed", source.proposed);
    json.member("sent", source.sent).member("accepted", source.accepted).end();
  }
  json.end().key("positions").begin_array();
  for (std::size_t i = 0; i < PassSums::positions; ++i) {
    const PassSums::Position& at = passes.by_position[i];
    json.begin_object().member("from", PassSums::first_of(i)).member("passes", at.passes).member("tokens", at.tokens);
    json.raw_member("speedup", shortest(SessionCost{at.tokens, at.cost}.speedup())).end();
  }
  json.end();
}

void write_advice(JsonWriter& json, const Report& report, const PageData& page) {
  const Advice& advice = page.advice;
  std::ostringstream summary;
  std::ostringstream code;
  write_summary(summary, advice);
  write_code(code, {advice, report.curves[page.main], report.settings, report.part, report.rankings()});
  json.key("advice").begin_object().member("summary", summary.str()).member("code", code.str());
  json.member("every", page.advised_every).member("sessions", advice.sessions).member("tokens", advice.tokens);
  json.member("rankings", report.rankings()).raw_member("default_speedup", shortest(advice.default_speedup));
  json.raw_member("least_gain", shortest(Change::least_gain()));
  json.raw_member("least_gain_per_mib", shortest(Change::least_gain(1 << 20) - Change::least_gain()));
  json.key("tried").begin_array();
  for (const Tried& tried : advice.tried) {
    const TriedText text = text_of(tried, advice);
    json.begin_object().member("question", tried.question).member("setting", tried.setting);
    json.raw_member("speedup", shortest(tried.speedup)).member("change", text.change);
    json.member("interval", text.interval).member("memory", text.memory).member("verdict", text.verdict);
    json.member("chosen", tried.chosen).end();
  }
  json.end().end();
}

/// Escapes the characters of JSON that could end a script element, or a line in old scripts.
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

}  // namespace

void write_page(std::ostream& out, const Report& report, const PageData& page, const Vocabulary& words) {
  std::ostringstream text;
  JsonWriter json(text, JsonWriter::Spacing::compact);
  json.begin_object();
  write_results(json, report);
  json.key("curves").begin_array();
  for (const CostCurve& curve : report.curves) json.value(curve.spec());
  json.end().key("traces").begin_array();
  for (const Trace& trace : page.traces) json.value(trace.path);
  json.end().member("main", page.main).member("fault", page.fault).member("window", LossWindow::passes);
  write_intervals(json, page);
  write_sessions(json, page);
  write_categories(json, page);
  write_passes(json, page.passes);
  json.raw_member("hindsight", shortest(sum(page.hindsight).speedup()));
  json.raw_member("ceiling", shortest(sum(page.ceiling).speedup()));
  write_curve_json(json, page.learned, page.rows);
  write_advice(json, report, page);
  ViewerJson(json, page, words).write();
  json.end();
  const std::string_view html = page_template();
  const std::size_t at = html.find(page_data_mark);
  out << html.substr(0, at) << inside_script(text.str()) << html.substr(at + page_data_mark.size());
}

}  // namespace reprise::replay
