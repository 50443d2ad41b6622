// SPDX-License-Identifier: Apache-2.0
#include "page_viewer.hpp"

#include <algorithm>
#include <string>

#include "common/text.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::replay {
namespace {

/// The last tokens of a prompt that are shown.
constexpr std::size_t prompt_tail = 32;

}  // namespace

void ViewerJson::write(std::span<const ViewedSession> sessions) {
  json_.member("prefilled", prefilled_).key("sources").begin_array();
  for (std::size_t i = 0; i < draft_source_count; ++i) json_.value(to_string(static_cast<DraftSource>(i)));
  json_.end().key("cuts").begin_array();
  for (std::size_t i = 0; i < cut_count; ++i) json_.value(to_string(static_cast<Cut>(i)));
  json_.end().key("sessions").begin_array();
  for (const ViewedSession& viewed : sessions) session(viewed);
  json_.end().key("words").begin_object();
  for (const Token token : used_)
    if (const std::string* word = words_.find(token)) json_.member(std::to_string(token), *word);
  json_.end();
}

void ViewerJson::token(Token token) {
  if (!words_.empty()) used_.insert(token);
  json_.value(token);
}

void ViewerJson::session(const ViewedSession& viewed) {
  const ShownSession& shown = *viewed.shown;
  json_.begin_object().member("id", tools::printable(shown.session->id));
  json_.member("category", tools::printable(shown.session->category));
  json_.member("tokens", viewed.tokens).raw_member("speedup", tools::shortest(viewed.speedup));
  json_.member("complete", shown.complete).key("turns").begin_array();
  auto pass = shown.passes.begin();
  for (const Turn& turn : shown.session->turns) {
    if (pass == shown.passes.end() && !shown.complete) break;
    json_.begin_object().member("prompt_size", turn.prompt.size()).key("prompt").begin_array();
    for (const Token t : TokenSpan(turn.prompt).last(std::min(turn.prompt.size(), prompt_tail))) token(t);
    json_.end().key("passes").begin_array();
    std::size_t done = std::min(turn.output.size(), prefilled_);
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

}  // namespace reprise::replay
