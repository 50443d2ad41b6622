// SPDX-License-Identifier: Apache-2.0
// Three requests get similar answers. A history of past requests, which survives a restart, drafts the second and
// third.
#include <reprise/history.hpp>
#include <reprise/history/snapshot_file.hpp>
#include <reprise/reprise.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr reprise::HistoryOptions options{.max_bytes = 1 << 20, .key = 42, .vocabulary = 128};  // use a secret key
constexpr std::uint64_t fingerprint = 7;  // a hash of the tokenizer and the model

struct Engine {  // stands for a model that calls a tool; a token is a character
  std::string answer;
  std::size_t said = 0;  // tokens of the answer in the cache
  std::vector<reprise::Token> picks;
  const std::vector<reprise::Token>& verify(reprise::TokenSpan, std::size_t drafted) {
    picks.clear();
    for (std::size_t at = said; at <= said + drafted; ++at)
      picks.push_back(at < answer.size() ? reprise::Token{answer[at]} : 0);
    return picks;
  }
  void commit(std::size_t keep) { said += keep; }
};

/// Answers a request, stores it in the history, and returns the mean number of tokens per pass.
double serve(reprise::HistoryStore& memory, reprise::CalibrationState& learned, std::string_view city,
             reprise::SequenceTag name) {
  const std::string request = "What is the weather like in " + std::string(city) + "?\n";
  Engine engine;
  engine.answer = "{\"tool\": \"forecast\", \"arguments\": {\"place\": \"" + std::string(city) +
                  "\", \"unit\": \"celsius\", \"days\": 3, \"hourly\": false}}";
  const std::vector<reprise::Token> prompt(request.begin(), request.end());

  reprise::NgramOptions drafter;
  drafter.stores = {memory};
  drafter.prior = learned;
  reprise::Speculator speculator(drafter);
  const auto generated = reprise::generate(speculator, engine, prompt, reprise::Limits{.eos = {0}});
  if (!generated || generated->tokens.size() != engine.answer.size()) return 0;

  memory.begin_sequence(name);
  memory.append(prompt, reprise::Origin::prompt);
  memory.append(generated->tokens, reprise::Origin::output);
  memory.end_sequence();
  learned = speculator.strategy().calibration();
  const double mean = generated->statistics.mean_accepted_tokens();
  std::printf("%-10s %.2f tokens per pass\n", city.data(), mean);
  return mean;
}

}  // namespace

int main() {
  auto memory = reprise::HistoryStore::make(options);
  if (!memory) return std::puts(memory.error().message.data()), 1;
  reprise::CalibrationState learned;
  const double first = serve(*memory, learned, "Lisbon", 1);
  const double second = serve(*memory, learned, "Oslo", 2);

  std::vector<std::byte> bytes(reprise::snapshot_bytes_of(*memory));
  const auto saved = reprise::save_history(bytes, fingerprint, *memory, learned);
  if (!saved) return std::puts(saved.error().message.data()), 1;
  if (const auto written = reprise::save_file("memory.snapshot", *saved); !written)
    return std::puts(written.error().message.data()), 1;

  // After a restart:
  auto restarted = reprise::HistoryStore::make(options);
  reprise::Bytes file;
  if (const auto loaded = reprise::load_file("memory.snapshot", file, 1 << 20); !loaded)
    return std::puts(loaded.error().message.data()), 1;
  if (const auto loaded = reprise::load_history({file.data(), file.size()}, fingerprint, *restarted, learned); !loaded)
    return std::puts(loaded.error().message.data()), 1;
  const double third = serve(*restarted, learned, "Nairobi", 3);
  std::remove("memory.snapshot");
  return second > 1.5 * first && third > 1.5 * first ? 0 : 1;
}
