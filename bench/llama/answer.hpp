// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "engine.hpp"
#include "generate.hpp"

namespace reprise::llama {

/// Holds bytes back until they are whole UTF-8 characters: a character can be spread over several tokens, and those of
/// one token need not be a character.
class CharacterStream {
 public:
  /// Takes bytes; answers those that can be shown. Bytes that begin no character are shown as they are.
  std::string add(std::string_view bytes);
  /// What was held back, complete or not.
  std::string rest();

 private:
  std::string held_;
};

/// The text of an answer, without the token that ended it.
std::string answer_text(const Engine& engine, const TurnRun& turn);

/// One line for people: how many tokens in how many passes, how fast.
void write_summary(std::ostream& out, const RequestRun& run);

/// One JSON object on one line: prompts, texts, tokens, statistics.
void write_json(std::ostream& out, const Engine& engine, const Request& request, const std::string& strategy,
                const RequestRun& run);

}  // namespace reprise::llama
