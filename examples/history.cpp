// SPDX-License-Identifier: Apache-2.0
// The parts of a Memory, for an engine that decides itself when to store which text: a history of past requests, a
// table of next tokens, and one file for both. Three requests get similar answers; the third comes after a restart.
#include <reprise/history.hpp>
#include <reprise/history/snapshot_file.hpp>
#include <reprise/reprise.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr reprise::HistoryOptions options{.max_bytes = 1 << 20, .key = 42, .vocabulary = 128};  // use a secret key
constexpr reprise::NextTokenOptions table_options{.max_bytes = 1 << 17, .key = 43, .rankings = true};
constexpr std::uint64_t fingerprint = 7;  // a hash of the tokenizer and the model

struct Parts {
  reprise::HistoryStore history = reprise::HistoryStore::make(options).value();
  reprise::NextTokens next_tokens = reprise::NextTokens::make(table_options).value();
  reprise::CalibrationState learned;
};

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

/// Answers a request, stores it in the parts, and returns the mean number of tokens per pass.
double serve(Parts& parts, std::string_view city, reprise::SequenceTag name) {
  const std::string request = "What is the weather like in " + std::string(city) + "?\n";
  Engine engine;
  engine.answer = "{\"tool\": \"forecast\", \"arguments\": {\"place\": \"" + std::string(city) +
                  "\", \"unit\": \"celsius\", \"days\": 3, \"hourly\": false}}";
  const std::vector<reprise::Token> prompt(request.begin(), request.end());

  reprise::NgramOptions drafter;
  drafter.stores = {parts.history};
  drafter.next_tokens = &parts.next_tokens;
  drafter.prior = parts.learned;
  reprise::Speculator speculator(drafter);
  const auto generated = reprise::generate(speculator, engine, prompt, reprise::Limits{.eos = {0}});
  if (!generated || generated->tokens.size() != engine.answer.size()) return 0;

  parts.history.begin_sequence(name);
  parts.history.append(prompt, reprise::Origin::prompt);
  parts.history.append(generated->tokens, reprise::Origin::output);
  parts.history.end_sequence();
  parts.next_tokens.add(generated->tokens);
  parts.next_tokens.add(speculator.strategy().rows());  // the rankings that the engine has shown
  parts.learned = speculator.strategy().calibration();
  const double mean = generated->statistics.mean_accepted_tokens();
  std::printf("%-10s %.2f tokens per pass\n", city.data(), mean);
  return mean;
}

// Prints some contents of the parts.
void describe(const Parts& parts) {
  const reprise::HistoryStore::Counts& counts = parts.history.counts();
  std::printf("stored %llu tokens, not stored again %llu\n", static_cast<unsigned long long>(counts.stored),
              static_cast<unsigned long long>(counts.duplicates));
  const reprise::NextTokens::CountedTokens next = parts.next_tokens.after('a', 'r').counts();
  for (const reprise::NextTokens::CountedToken& token : next.listed())
    std::printf("after \"ar\": %c, %u of %u\n", token.token, token.count, next.total());
  const reprise::Ranking ranking = parts.next_tokens.after('a', 'r').ranking();
  std::printf("rankings of the model after \"ar\": %s\n", ranking.empty() ? "none were shown" : "kept");
}

// One file for all parts. Each is a section of it.
reprise::Result<void> save(const char* path, const Parts& parts) {
  std::vector<std::byte> bytes(reprise::snapshot_bytes_of(parts.history) +
                               reprise::snapshot_bytes({reprise::next_token_bytes(parts.next_tokens)}));
  reprise::SnapshotWriter writer(bytes, fingerprint);
  reprise::write_history(writer, parts.history, parts.learned);
  reprise::write_next_tokens(writer, parts.next_tokens);
  const auto written = writer.finish();
  if (!written) return written.error();
  return reprise::save_file(path, *written);
}
reprise::Result<void> load(const char* path, Parts& parts) {
  reprise::Bytes file;
  if (auto loaded = reprise::load_file(path, file, 1 << 20); !loaded) return loaded;
  const std::span<const std::byte> bytes(file.data(), file.size());
  const auto reader = reprise::SnapshotReader::open(bytes, fingerprint);
  if (!reader) return reader.error();
  if (auto loaded = reprise::load_history(bytes, fingerprint, parts.history, parts.learned); !loaded) return loaded;
  // A file that was saved without a table has no section for it.
  if (!reader->section(reprise::SectionKind::next_tokens)) return {};
  return reprise::load_next_tokens(*reader, parts.next_tokens);
}

}  // namespace

int main() {
  Parts parts;
  const double first = serve(parts, "Lisbon", 1);
  const double second = serve(parts, "Oslo", 2);
  describe(parts);
  if (const auto saved = save("memory.snapshot", parts); !saved) return std::puts(saved.error().message.data()), 1;

  Parts restarted;
  const auto loaded = load("memory.snapshot", restarted);
  std::remove("memory.snapshot");
  if (!loaded) return std::puts(loaded.error().message.data()), 1;
  const double third = serve(restarted, "Nairobi", 3);
  return second > 1.5 * first && third > 1.5 * first ? 0 : 1;
}
