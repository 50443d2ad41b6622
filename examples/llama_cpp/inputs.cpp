// SPDX-License-Identifier: Apache-2.0
#include "inputs.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "replay/input_error.hpp"
#include "replay/json.hpp"
#include "replay/trace.hpp"
#include "vocabulary.hpp"

namespace reprise::llama {
namespace {

using replay::InputError;
using replay::Json;

std::ifstream open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw InputError(path + ": is a directory; give a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path + ": cannot be opened; is the path right?");
  return in;
}

bool blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::string place(const std::string& path, std::size_t line) { return path + ":" + std::to_string(line); }

/// One line of a file of prompts.
class PromptLine {
 public:
  PromptLine(std::string where, std::size_t max_tokens) : where_(std::move(where)), max_tokens_(max_tokens) {}

  [[nodiscard]] Request request(std::string_view line) const {
    Json json;
    if (const auto error = parse_json(line, json))
      fail("column " + std::to_string(error->column) + ": " + error->message);
    if (json.object() == nullptr) fail("expected an object for each session, found " + std::string(json.kind()));
    for (const std::string& key : json.object()->keys)
      if (key != "id" && key != "category" && key != "system" && key != "turns")
        fail(key + ": there is no such field; there are id, category, system and turns");
    Request request{text(member(json, "id"), "id"), text(member(json, "category"), "category"), where_, {}, false, {}};
    if (const Json* system = json.find("system")) request.system = text(*system, "system");
    const Json& turns = member(json, "turns");
    if (turns.array() == nullptr) fail("turns: expected an array of texts, found " + std::string(turns.kind()));
    for (const Json& turn : *turns.array()) {
      const std::string field = "turns[" + std::to_string(request.turns.size()) + "]";
      request.turns.push_back({text(turn, field), {}, max_tokens_, {}});
      if (request.turns.back().text.empty()) fail(field + ": is empty; a turn says something");
    }
    if (request.turns.empty()) fail("turns: is empty; a session has at least one turn");
    return request;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_ + ": " + what); }
  [[nodiscard]] const Json& member(const Json& json, const std::string& key) const {
    const Json* found = json.find(key);
    if (found == nullptr) fail(key + ": missing");
    return *found;
  }
  [[nodiscard]] const std::string& text(const Json& json, const std::string& field) const {
    if (json.string() == nullptr) fail(field + ": expected a string, found " + std::string(json.kind()));
    return *json.string();
  }

  std::string where_;
  std::size_t max_tokens_;
};

void read_prompts(const std::string& path, const Inputs& inputs, std::vector<Request>& requests) {
  std::ifstream in = open(path);
  std::size_t sessions = 0;
  std::string line;
  for (std::size_t number = 1; sessions < inputs.limit && std::getline(in, line); ++number) {
    if (blank(line)) continue;
    requests.push_back(PromptLine(place(path, number), inputs.max_tokens).request(line));
    ++sessions;
  }
  if (in.bad()) throw InputError(path + ": reading failed");
  if (sessions == 0)
    throw InputError(path + ": no sessions; expected one JSON object a line with \"id\", \"category\" and \"turns\"");
}

void read_tokens(const std::string& path, const Inputs& inputs, std::vector<Request>& requests) {
  replay::Trace trace = replay::read_trace(path, inputs.limit);
  for (replay::TraceSession& session : trace.sessions) {
    Request request{session.id, session.category, session.where, {}, true, {}};
    for (replay::Turn& turn : session.turns) {
      const std::string field = "turns[" + std::to_string(request.turns.size()) + "].";
      if (turn.prompt.empty() && request.turns.empty())
        throw InputError(request.where + ": " + field + "prompt: is empty; a model needs a token to begin with");
      if (turn.output.empty())
        throw InputError(request.where + ": " + field + "output: is empty; a turn generates as many as were recorded");
      const std::size_t size = turn.output.size();
      request.turns.push_back({{}, std::move(turn.prompt), size, std::move(turn.output)});
    }
    requests.push_back(std::move(request));
  }
}

void check_tokens(const Request& request, const Engine& engine) {
  for (std::size_t i = 0; i < request.turns.size(); ++i) {
    const std::string place = request.where + ": turns[" + std::to_string(i) + "].";
    check_vocabulary(request.turns[i].tokens, place + "prompt", engine.vocabulary(), recorded_with);
    check_vocabulary(request.turns[i].recorded, place + "output", engine.vocabulary(), recorded_with);
  }
}

/// Tokens that the turns need at the least, answers of a trace included: what can be known before.
std::size_t least_context(const Request& request, const Inputs& inputs, const Engine& engine) {
  std::size_t tokens = 1;  // the first of the last answer
  if (request.tokens) {
    for (const RequestTurn& turn : request.turns) tokens += turn.tokens.size() + turn.max_tokens;
    return tokens - 1;
  }
  if (inputs.raw) {
    for (const RequestTurn& turn : request.turns)
      tokens += engine.tokenize(turn.text, &turn == request.turns.data()).size();
    return tokens;
  }
  std::vector<Message> messages;
  if (!request.system.empty()) messages.push_back({"system", request.system});
  for (const RequestTurn& turn : request.turns) {
    if (!messages.empty() && messages.back().role == "user") messages.push_back({"assistant", ""});
    messages.push_back({"user", turn.text});
  }
  return tokens + engine.tokenize(engine.chat(messages, true), true).size();
}

}  // namespace

std::vector<Request> read_requests(const Inputs& inputs) {
  std::vector<Request> requests;
  if (!inputs.prompt.empty())
    requests.push_back(
        {"prompt", "prompt", "--prompt", inputs.system, false, {{inputs.prompt, {}, inputs.max_tokens, {}}}});
  if (!inputs.prompt_file.empty()) {
    std::ifstream in = open(inputs.prompt_file);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (in.bad()) throw InputError(inputs.prompt_file + ": reading failed");
    if (text.empty()) throw InputError(inputs.prompt_file + ": is empty; a prompt has at least one character");
    requests.push_back(
        {inputs.prompt_file, "prompt", inputs.prompt_file, inputs.system, false, {{text, {}, inputs.max_tokens, {}}}});
  }
  for (const std::string& path : inputs.prompts) read_prompts(path, inputs, requests);
  for (const std::string& path : inputs.traces) read_tokens(path, inputs, requests);
  return requests;
}

void check_requests(const std::vector<Request>& requests, const Inputs& inputs, const Engine& engine) {
  for (const Request& request : requests) {
    if (request.tokens) check_tokens(request, engine);
    if (inputs.raw && !request.system.empty())
      throw InputError(request.where +
                       ": system: only a chat template has a place for it; without --raw, or in the text");
    const std::size_t least = least_context(request, inputs, engine);
    if (least > engine.context_size())
      throw InputError(request.where + ": needs " + std::to_string(least) +
                       " tokens of context or more, and there are " + std::to_string(engine.context_size()) +
                       "; give --context " + std::to_string(least) + " or more, or a shorter prompt");
  }
}

}  // namespace reprise::llama
