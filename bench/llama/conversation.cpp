// SPDX-License-Identifier: Apache-2.0
#include "conversation.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace reprise::llama {

NextPrompt Conversation::next(TokenSpan context) {
  const RequestTurn& turn = request_.turns[turn_];
  if (request_.tokens) return {context.size(), turn.tokens};
  if (raw_) return {context.size(), engine_.tokenize(turn.text, turn_ == 0)};
  return chat(turn.text, context);
}

NextPrompt Conversation::chat(const std::string& said, TokenSpan context) {
  messages_.push_back({"user", said});
  std::string rendered = engine_.chat(messages_, true);
  NextPrompt next;
  if (turn_ > 0 && rendered.compare(0, text_.size(), text_) == 0) {
    next = {context.size(), engine_.tokenize(std::string_view(rendered).substr(text_.size()), false)};
  } else {
    next.tokens = engine_.tokenize(rendered, true);
    const auto same = std::mismatch(context.begin(), context.end(), next.tokens.begin(), next.tokens.end()).second;
    next.keep = static_cast<std::size_t>(same - next.tokens.begin());
    next.tokens.erase(next.tokens.begin(), same);
  }
  text_ = std::move(rendered);
  return next;
}

void Conversation::answered(TokenSpan output) {
  ++turn_;
  if (request_.tokens || raw_) return;
  const bool ended = !output.empty() && engine_.ends(output.back());
  messages_.push_back({"assistant", engine_.text(output.first(output.size() - (ended ? 1 : 0)))});
  text_ += engine_.text(output);
}

}  // namespace reprise::llama
