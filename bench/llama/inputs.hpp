// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine.hpp"
#include "replay/trace.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// The input before one answer: text, or tokens of a recorded trace.
struct RequestTurn {
  std::string text;
  std::vector<Token> tokens;
  std::size_t max_tokens = 0;        ///< of the answer, including the token that ends it
  std::vector<Token> recorded = {};  ///< the answer in a trace; its length is max_tokens
};

/// One session to run.
struct Request {
  std::string id;
  std::string category;
  std::string where;    ///< file and line, for messages
  std::string system;   ///< empty: none
  bool tokens = false;  ///< the turns are tokens, not text
  std::vector<RequestTurn> turns;
  bool repeated = false;  ///< the same request was run before
  bool draft = true;      ///< false: nothing is drafted for this session
};

/// The category of repeated requests in results.
inline constexpr const char* repeated_category = "repeated";

/// The sources of sessions. Exactly one of the first three is given.
struct Inputs {
  std::string prompt;
  std::vector<std::string>
      prompts;  ///< files of {"id", "category", "system", "draft" (both optional), "turns": ["text", ...]}
  std::vector<std::string> traces;  ///< recorded token traces, as reprise-replay reads them
  bool raw = false;                 ///< no chat template
  std::size_t max_tokens = 256;     ///< of each answer; answers of a trace are as long as recorded
  std::size_t limit = unlimited;    ///< sessions of each file
};

/// Reads all sessions. Throws InputError that names file, line and field.
std::vector<Request> read_requests(const Inputs& inputs);

/// Returns the whole text of a file. `option`: names it in errors. Throws InputError if it cannot be read or is empty.
std::string read_text(const std::string& option, const std::string& path);

/// Keeps the requests of `part` and returns those of the other one. Throws InputError if there is none of `part`.
std::vector<Request> take_part(std::vector<Request>& requests, replay::TracePart part);

/// Appends `count` of the requests once more, evenly chosen, as repeated ones; all of them if there are fewer.
/// Throws InputError if a request has the category of repeated ones already.
void repeat_some(std::vector<Request>& requests, std::size_t count);

/// Checks all requests against the model before anything runs. Throws InputError for tokens outside the
/// vocabulary, text that needs a missing chat template, and turns that cannot fit into the context.
void check_requests(const std::vector<Request>& requests, const Inputs& inputs, const Engine& engine);

}  // namespace reprise::llama
