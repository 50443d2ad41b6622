// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// What is put in before one answer: text, or tokens of a recorded trace.
struct RequestTurn {
  std::string text;
  std::vector<Token> tokens;
  std::size_t max_tokens = 0;        ///< of the answer, what ends it included
  std::vector<Token> recorded = {};  ///< the answer that a trace has: max_tokens is its length
};

/// One session to run.
struct Request {
  std::string id;
  std::string category;
  std::string where;    ///< file and line, for messages
  std::string system;   ///< empty: none
  bool tokens = false;  ///< the turns are tokens, not text
  std::vector<RequestTurn> turns;
};

/// Where sessions come from. Exactly one of the first four is given.
struct Inputs {
  std::string prompt;
  std::string prompt_file;
  std::vector<std::string> prompts;  ///< files of {"id", "category", "system" (optional), "turns": ["text", ...]}
  std::vector<std::string> traces;   ///< recorded token traces, as reprise-replay reads them
  std::string system;
  bool raw = false;               ///< no chat template
  std::size_t max_tokens = 256;   ///< of each answer; those of a trace are as long as recorded
  std::size_t limit = unlimited;  ///< sessions of each file
};

/// Reads all sessions. Throws InputError that names file, line and field.
std::vector<Request> read_requests(const Inputs& inputs);

/// Holds them against the model before anything is run. Throws InputError: a token that the model does not have, text
/// that needs a chat template where there is none, turns that cannot fit into the context.
void check_requests(const std::vector<Request>& requests, const Inputs& inputs, const Engine& engine);

}  // namespace reprise::llama
