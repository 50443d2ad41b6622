// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine.hpp"
#include "inputs.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// A turn's change of the context: the first `keep` tokens stay, and `tokens` follow them.
struct NextPrompt {
  std::size_t keep = 0;
  std::vector<Token> tokens;
};

/// The turns of a session as tokens. The chat template renders the whole conversation each turn, and the part that the
/// context lacks is appended. The comparison uses text rather than tokens, because a model may spell a text in other
/// tokens than the tokenizer does. If the template writes earlier turns differently, the context is kept up to the
/// first token that differs. An example is a template that strips the blanks at the end of an answer.
class Conversation {
 public:
  /// Both must outlive the Conversation. `raw`: no chat template.
  Conversation(const Engine& engine, const Request& request, bool raw) : engine_(engine), request_(request), raw_(raw) {
    if (!request.system.empty()) messages_.push_back({"system", request.system});
  }

  /// The prompt of the next turn. `context`: all tokens so far.
  NextPrompt next(TokenSpan context);
  /// Records the answer to that prompt, including the token that ended it.
  void answered(TokenSpan output);

 private:
  NextPrompt chat(const std::string& said, TokenSpan context);

  const Engine& engine_;
  const Request& request_;
  bool raw_;
  std::size_t turn_ = 0;
  std::vector<Message> messages_;
  std::string text_;  // text of the context: special tokens by name, without those that the tokenizer adds
};

}  // namespace reprise::llama
