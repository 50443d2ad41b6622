// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"
#include "pass_record.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::replay {
namespace {

/// The last tokens of a prompt that are shown.
constexpr std::size_t prompt_tail = 32;

/// Writes the sessions that the script of a page shows token by token, as members of an open JSON object.
class ViewerJson {
 public:
  /// `page`, `words` and `json` outlive the writer.
  ViewerJson(tools::JsonWriter& json, const PageData& page, const Vocabulary& words)
      : json_(json), page_(page), words_(words) {}

  void write();

 private:
  void token(Token token);
  void session(const ShownSession& shown);
  void pass(const ShownPass& pass);

  tools::JsonWriter& json_;
  const PageData& page_;
  const Vocabulary& words_;
  std::set<Token> used_;
};

void ViewerJson::write() {
  json_.key("sources").begin_array();
  for (std::size_t i = 0; i < draft_source_count; ++i) json_.value(to_string(static_cast<DraftSource>(i)));
  json_.end().key("cuts").begin_array();
  for (std::size_t i = 0; i < cut_count; ++i) json_.value(to_string(static_cast<Cut>(i)));
  json_.end().key("sessions").begin_array();
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
  const SessionCost& cost = page_.main_costs()[shown.index];
  json_.begin_object().member("id", tools::printable(shown.session->id));
  json_.member("category", tools::printable(shown.session->category));
  json_.member("tokens", cost.tokens).raw_member("speedup", tools::shortest(cost.speedup()));
  json_.member("complete", shown.complete).key("turns").begin_array();
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

std::string page_json(const PageData& page, const Vocabulary& words) {
  std::ostringstream text;
  tools::JsonWriter json(text, tools::JsonWriter::Spacing::compact);
  json.begin_object().key("curves").begin_array();
  for (const CostCurve& curve : page.curves) {
    json.begin_object().member("spec", curve.spec()).key("slope");
    curve.linear() == nullptr ? json.null() : json.raw(tools::shortest(curve.linear()->slope));
    json.end();
  }
  json.end().member("main", page.main).key("lines").begin_array();
  for (std::size_t i = 0; i < std::min(page.lines.size(), most_groups); ++i) {
    const PageLine& line = page.lines[i];
    json.begin_object().member("name", line.label).key("speedups").begin_array();
    for (const auto& costs : line.costs) json.raw(tools::shortest(sum(costs).speedup()));
    json.end().end();
  }
  json.end();
  ViewerJson(json, page, words).write();
  json.end();
  return inside_script(text.str());
}

}  // namespace reprise::replay
