// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine.hpp"
#include "inputs.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// What a turn puts into the context: its first `keep` tokens stay, `tokens` come behind them.
struct NextPrompt {
  std::size_t keep = 0;
  std::vector<Token> tokens;
};

/// Turns of a session as tokens. A chat is rendered as a whole each time, and what the context does not hold yet is
/// put behind it. Its text is compared, not its tokens: a model may spell a text in other tokens than the tokenizer
/// does. Where the template writes earlier turns differently than they were (without the blanks at the end of an
/// answer, say), the context is kept up to the first token that differs.
class Conversation {
 public:
  /// Both have to outlive it. `raw`: no chat template.
  Conversation(const Engine& engine, const Request& request, bool raw) : engine_(engine), request_(request), raw_(raw) {
    if (!request.system.empty()) messages_.push_back({"system", request.system});
  }

  /// The prompt of the turn after those that were answered. `context`: all tokens so far.
  NextPrompt next(TokenSpan context);
  /// The answer to it, what ended it included.
  void answered(TokenSpan output);

 private:
  NextPrompt chat(const std::string& said, TokenSpan context);

  const Engine& engine_;
  const Request& request_;
  bool raw_;
  std::size_t turn_ = 0;
  std::vector<Message> messages_;
  std::string text_;  // what the context holds, special tokens by their names, what the tokenizer adds left out
};

}  // namespace reprise::llama
