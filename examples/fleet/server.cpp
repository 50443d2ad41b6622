// SPDX-License-Identifier: Apache-2.0
// A server of a fleet. It drafts from its own history and from the published corpus of the whole fleet, opens a new
// generation of the corpus between two requests, and leaves its history as a snapshot for the next generation.
//
// usage: server PUBLISHED SNAPSHOTS TENANT NAME [--private]
//
// A request is a line of standard input: the name of a place. The answer is a line of JSON.
// --private: the snapshot gets a fingerprint of its tenant, so that no common corpus can take it.
#include <reprise/history.hpp>
#include <reprise/history/snapshot_file.hpp>
#include <reprise/reprise.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/json_writer.hpp"
#include "published_corpus.hpp"

namespace {

constexpr std::uint32_t vocabulary = 128;       // a token is a character
constexpr std::uint64_t model_fingerprint = 7;  // a hash of the tokenizer and the model
constexpr std::size_t max_bytes = 1 << 20;

struct Engine {  // stands for a model that calls a tool
  std::string answer;
  std::size_t said = 0;  // tokens of the answer in the cache
  std::size_t passes = 0;
  std::vector<reprise::Token> picks;

  explicit Engine(const std::string& place)
      : answer("{\"tool\": \"forecast\", \"arguments\": {\"place\": \"" + place +
               "\", \"unit\": \"celsius\", \"days\": 3, \"hourly\": false}}") {}
  const std::vector<reprise::Token>& verify(reprise::TokenSpan, std::size_t drafted) {
    ++passes;
    picks.clear();
    for (std::size_t at = said; at <= said + drafted; ++at)
      picks.push_back(at < answer.size() ? reprise::Token{answer[at]} : 0);
    return picks;
  }
  void commit(std::size_t keep) { said += keep; }
};

/// Returns the output of plain decoding: one token in each pass.
std::vector<reprise::Token> plain(Engine engine) {
  std::vector<reprise::Token> output;
  while (true) {
    const reprise::Token token = engine.verify({}, 0).front();
    engine.commit(1);
    if (token == 0) return output;
    output.push_back(token);
  }
}

/// Returns the fingerprint of a tenant that shares nothing. Use a hash with a secret key.
std::uint64_t private_fingerprint(std::string_view tenant) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ model_fingerprint;
  for (const char c : tenant) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

class Server {
 public:
  Server(reprise::HistoryStore memory, std::filesystem::path snapshot, std::uint64_t fingerprint,
         fleet::PublishedCorpus corpus)
      : memory_(std::move(memory)),
        snapshot_(std::move(snapshot)),
        fingerprint_(fingerprint),
        corpus_(std::move(corpus)) {}

  /// Continues with the history of the last run, if there is one.
  reprise::Result<void> load() {
    reprise::Bytes bytes;
    const auto read = reprise::load_file(snapshot_, bytes, 2 * max_bytes);
    if (!read) return read.error().code == reprise::ErrorCode::no_such_file ? reprise::Result<void>() : read;
    return reprise::load_history({bytes.data(), bytes.size()}, fingerprint_, memory_, learned_);
  }

  reprise::Result<void> save() const {
    std::vector<std::byte> bytes(reprise::snapshot_bytes_of(memory_));
    const auto saved = reprise::save_history(bytes, fingerprint_, memory_, learned_);
    if (!saved) return saved.error();
    return reprise::save_file(snapshot_, *saved);
  }

  /// Answers a request. Returns false if the output differs from that of plain decoding.
  bool serve(const std::string& place) {
    if (const std::string fault = corpus_.refresh(); !fault.empty()) std::cerr << "note: " << fault << "\n";
    const std::string request = "What is the weather like in " + place + "?\n";
    const std::vector<reprise::Token> prompt(request.begin(), request.end());
    Engine engine(place);
    const std::vector<reprise::Token> expected = plain(engine);

    reprise::NgramOptions options;
    options.stores[0] = memory_;
    if (corpus_.store() != nullptr) options.stores[1] = *corpus_.store();
    options.prior = learned_;
    reprise::Speculator speculator(options);
    const auto generated = reprise::generate(speculator, engine, prompt, reprise::Limits{.eos = {0}});
    if (!generated || !std::ranges::equal(generated->tokens, expected)) return false;

    memory_.begin_sequence(++sequence_);
    memory_.append(prompt, reprise::Origin::prompt);
    memory_.append(generated->tokens, reprise::Origin::output);
    memory_.end_sequence();
    learned_ = speculator.strategy().calibration();
    reprise::tools::JsonWriter(std::cout)
        .begin_object()
        .member("place", place)
        .member("generation", corpus_.generation())
        .member("tokens", generated->tokens.size())
        .member("passes", engine.passes)
        .end();
    std::cout << std::endl;  // the reader may wait for the line
    return true;
  }

 private:
  reprise::HistoryStore memory_;
  reprise::CalibrationState learned_;
  std::filesystem::path snapshot_;
  std::uint64_t fingerprint_;
  fleet::PublishedCorpus corpus_;
  reprise::SequenceTag sequence_ = 0;
};

bool is_name(std::string_view text) { return !text.empty() && text[0] != '.' && text.find('/') == text.npos; }

bool is_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

int failed(std::string_view sentence, int status = 1) {
  std::cerr << "server: " << sentence << "\n";
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool apart = arguments.size() == 5 && arguments[4] == "--private";
  if (arguments.size() != 4 && !apart) return failed("usage: server PUBLISHED SNAPSHOTS TENANT NAME [--private]", 2);
  const std::string& tenant = arguments[2];
  const std::string& name = arguments[3];
  if (!is_name(tenant) || !is_name(name)) return failed("TENANT and NAME are names of files, without a folder", 2);
  const std::filesystem::path folder = std::filesystem::path(arguments[1]) / tenant;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return failed(folder.string() + ": " + error.message());

  auto memory =
      reprise::HistoryStore::make({.max_bytes = max_bytes, .key = 42, .vocabulary = vocabulary});  // use a secret key
  if (!memory) return failed(memory.error().message);
  Server server(*std::move(memory), folder / (name + ".snapshot"),
                apart ? private_fingerprint(tenant) : model_fingerprint,
                fleet::PublishedCorpus(arguments[0], {.fingerprint = model_fingerprint, .vocabulary = vocabulary}));
  if (const auto loaded = server.load(); !loaded) return failed(loaded.error().message);
  for (std::string place; std::getline(std::cin, place);) {
    if (!is_text(place)) return failed("a request has a character outside ASCII", 2);
    if (!server.serve(place)) return failed("the output differs from that of plain decoding");
  }
  if (const auto saved = server.save(); !saved) return failed(saved.error().message);
  return 0;
}
