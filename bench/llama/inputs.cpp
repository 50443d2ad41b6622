// SPDX-License-Identifier: Apache-2.0
#include "inputs.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/session_lines.hpp"
#include "replay/trace.hpp"
#include "vocabulary.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;
using tools::Json;

Request request_of(const tools::SessionLine& line, std::size_t max_tokens) {
  const Json& json = line.json();
  for (const std::string& key : json.object()->keys)
    if (key != "id" && key != "category" && key != "system" && key != "turns" && key != "draft")
      line.fail(key + ": there is no such field; the fields are id, category, system, draft and turns");
  const auto text = [&](const char* key) { return line.string(line.member(json, key), key); };
  Request request{text("id"), text("category"), line.where(), {}, false, {}};
  if (json.find("system") != nullptr) request.system = text("system");
  if (const Json* const draft = json.find("draft")) {
    if (draft->boolean() == nullptr) line.fail("draft: expected true or false");
    request.draft = *draft->boolean();
  }
  for (const Json& turn : line.array(line.member(json, "turns"), "turns", "an array of texts")) {
    const std::string field = "turns[" + std::to_string(request.turns.size()) + "]";
    request.turns.push_back({line.string(turn, field), {}, max_tokens, {}});
    if (request.turns.back().text.empty()) line.fail(field + ": is empty; a turn needs text");
  }
  if (request.turns.empty()) line.fail("turns: is empty; a session has at least one turn");
  return request;
}

void read_prompts(const std::string& path, const Inputs& inputs, std::vector<Request>& requests) {
  std::ifstream in = tools::open_input(path, "a file");
  tools::read_session_lines(in, path, inputs.limit, [&](const tools::SessionLine& line) {
    requests.push_back(request_of(line, inputs.max_tokens));
  });
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
        throw InputError(request.where + ": " + field + "output: is empty; a turn needs at least one recorded token");
      const std::size_t size = turn.output.size();
      request.turns.push_back({{}, std::move(turn.prompt), size, std::move(turn.output)});
    }
    requests.push_back(std::move(request));
  }
}

/// The least number of context tokens that the turns need, as far as it is known in advance. It includes the recorded
/// answers of a trace.
std::size_t least_context(const Request& request, const Inputs& inputs, const Engine& engine) {
  std::size_t tokens = 1;  // the first token of the last answer
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

std::string read_text(const std::string& option, const std::string& path) {
  std::ifstream in = tools::open_input(path, "a file");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw InputError(option + " " + path + ": reading failed");
  if (text.empty()) throw InputError(option + " " + path + ": the file is empty");
  return text;
}

std::vector<Request> read_requests(const Inputs& inputs) {
  std::vector<Request> requests;
  if (!inputs.prompt.empty())
    requests.push_back({"prompt", "prompt", "--prompt", {}, false, {{inputs.prompt, {}, inputs.max_tokens, {}}}});
  for (const std::string& path : inputs.prompts) read_prompts(path, inputs, requests);
  for (const std::string& path : inputs.traces) read_tokens(path, inputs, requests);
  return requests;
}

std::vector<Request> take_part(std::vector<Request>& requests, replay::TracePart part) {
  if (part == replay::TracePart::all) return {};
  const auto other = std::stable_partition(
      requests.begin(), requests.end(), [part](const Request& request) { return replay::part_of(request.id) == part; });
  if (other == requests.begin())
    throw InputError("--part " + std::string(replay::name(part)) +
                     ": none of the sessions belongs to this half; give more sessions, or leave the option out");
  std::vector<Request> others(std::make_move_iterator(other), std::make_move_iterator(requests.end()));
  requests.erase(other, requests.end());
  return others;
}

void repeat_some(std::vector<Request>& requests, std::size_t count) {
  for (const Request& request : requests)
    if (request.category == repeated_category)
      throw InputError(request.where + ": category: --again needs the name '" + std::string(repeated_category) +
                       "' for its own row; give the session another category");
  const std::size_t asked = requests.size();
  count = std::min(count, asked);
  for (std::size_t i = 0; i < count; ++i) {
    Request again = requests[i * asked / count];
    again.category = repeated_category;
    again.repeated = true;
    requests.push_back(std::move(again));
  }
}

void check_requests(const std::vector<Request>& requests, const Inputs& inputs, const Engine& engine) {
  for (const Request& request : requests) {
    if (request.tokens)
      for (std::size_t i = 0; i < request.turns.size(); ++i)
        check_vocabulary(request.turns[i].tokens, request.turns[i].recorded, request.where, i, engine.vocabulary(),
                         recorded_with);
    if (inputs.raw && !request.system.empty())
      throw InputError(request.where +
                       ": system: only a chat template has a place for it; leave out --raw, or write it into the text");
    const std::size_t least = least_context(request, inputs, engine);
    if (least <= engine.context_size()) continue;
    const bool separate = !engine.options().unified;
    throw InputError(
        request.where + ": needs at least " + std::to_string(least) + " tokens of context, but there are only " +
        std::to_string(engine.context_size()) + (separate ? " for each sequence" : "") + "; give --context " +
        std::to_string(least * (separate ? engine.options().sequences : 1)) + " or more, or a shorter prompt");
  }
}

}  // namespace reprise::llama
