// SPDX-License-Identifier: Apache-2.0
// Writes each file format of the library, or reads such files, so that machines of two byte orders can exchange them.
// Both print one number for what they read back; the same files must give the same number everywhere.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/history.hpp"
#include "reprise/history/snapshot_file.hpp"
#include "reprise/reprise.hpp"
#include "reprise_corpus/corpus_store.hpp"
#include "reprise_corpus/corpus_writer.hpp"
#include "reprise_corpus/verify_corpus.hpp"
#include "reprise_testing/random.hpp"

namespace {

using reprise::Token;
using reprise::testing::mix;
using reprise::testing::Random;

constexpr std::uint64_t tokenizer = 0xfedcba9876543210;
constexpr std::uint64_t key = 42;
constexpr std::string_view engine = "engine 1, 8 threads";
constexpr std::uint32_t vocabulary = 60'000;

std::vector<Token> text(std::uint64_t seed) {
  Random random(seed);
  std::vector<Token> tokens;
  for (int i = 0; i < 3'000; ++i) {
    // Some tokens repeat, and some need more than one byte.
    const std::size_t size = random.chance(70) ? 20 : vocabulary;
    tokens.push_back(static_cast<Token>(random.below(size)));
  }
  return tokens;
}

/// All that a snapshot can hold.
struct Stores {
  reprise::HistoryStore history =
      reprise::HistoryStore::make({.max_bytes = 1 << 20, .key = key, .vocabulary = vocabulary}).value();
  reprise::NextTokens next_tokens =
      reprise::NextTokens::make({.max_bytes = 1 << 19, .key = key, .vocabulary = vocabulary, .rankings = true}).value();
  reprise::CalibrationState calibration;
  reprise::CostPrior costs;
};

/// Decodes a text that repeats, so that the calibration is not a fresh one.
reprise::CalibrationState learned_calibration() {
  reprise::NgramDrafter<> drafter;
  const std::vector<Token> once = text(1);
  std::vector<Token> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  std::size_t size = once.size();
  drafter.begin(reprise::TokenSpan(twice).first(size));
  std::array<reprise::DraftNode, 8> storage;
  while (size < twice.size()) {
    const auto context = reprise::TokenSpan(twice).first(size);
    reprise::DraftBudget budget;
    budget.max_nodes = storage.size();
    reprise::Draft draft(storage, budget);
    drafter.propose(context, draft);
    drafter.feedback(context, {draft.view(), {}, {}, twice[size], reprise::Cut::none, {}});
    ++size;
    drafter.observe(reprise::TokenSpan(twice).first(size), 1, reprise::Origin::output);
  }
  return drafter.calibration();
}

void fill(Stores& stores) {
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    const std::vector<Token> tokens = text(sequence);
    stores.history.begin_sequence(sequence);
    stores.history.append(reprise::TokenSpan(tokens).first(1'000), reprise::Origin::prompt);
    stores.history.append(reprise::TokenSpan(tokens).subspan(1'000), reprise::Origin::output);
    stores.history.end_sequence();
    stores.next_tokens.add(tokens);
    std::vector<reprise::NextTokens::RankedRow> rows;
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
      reprise::Ranking ranking;
      ranking.tokens[0] = tokens[i + 1];
      rows.push_back({tokens[i - 1], tokens[i], ranking});
    }
    stores.next_tokens.add(rows);
  }
  stores.calibration = learned_calibration();
  for (std::size_t rows = 2; rows < 60; ++rows)
    stores.costs.assume(rows, reprise::to_cost(1.0 + 0.0625 * static_cast<double>(rows)));
}

reprise::Result<void> write_snapshot(const std::filesystem::path& path, const Stores& stores) {
  // As large as all contents together, and more.
  std::vector<std::byte> room(std::size_t{4} << 20);
  reprise::SnapshotWriter writer(room, tokenizer);
  reprise::write_history(writer, stores.history, stores.calibration);
  if (auto saved = reprise::save_costs(stores.costs, engine, writer); !saved) return saved;
  reprise::write_next_tokens(writer, stores.next_tokens);
  const auto bytes = writer.finish();
  if (!bytes) return bytes.error();
  return reprise::save_file(path, *bytes);
}

reprise::Result<void> write_corpus(const std::filesystem::path& path) {
  std::vector<std::vector<Token>> texts;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) texts.push_back(text(seed));
  std::vector<reprise::CorpusDocument> documents;
  for (const std::vector<Token>& tokens : texts) documents.push_back({tokens, "document"});
  const auto bytes = reprise::make_corpus(documents, {vocabulary, tokenizer});
  if (!bytes) return bytes.error();
  return reprise::save_file(path, {bytes->data(), bytes->size()});
}

reprise::Result<void> read_snapshot(const std::filesystem::path& path, Stores& stores) {
  reprise::Bytes bytes;
  if (auto loaded = reprise::load_file(path, bytes, std::size_t{4} << 20); !loaded) return loaded;
  const std::span<const std::byte> view(bytes.data(), bytes.size());
  if (auto loaded = reprise::load_history(view, tokenizer, stores.history, stores.calibration); !loaded) return loaded;
  const auto reader = reprise::SnapshotReader::open(view, tokenizer);
  if (!reader) return reader.error();
  const auto costs = reprise::load_costs(*reader, engine);
  if (!costs) return costs.error();
  stores.costs = *costs;
  return reprise::load_next_tokens(*reader, stores.next_tokens);
}

/// A number that depends on each match and each document of the corpus.
reprise::Result<std::uint64_t> read_corpus(const std::filesystem::path& path) {
  reprise::Bytes bytes;
  if (const auto loaded = reprise::load_file(path, bytes, std::size_t{4} << 20); !loaded) return loaded.error();
  const std::span<const std::byte> view(bytes.data(), bytes.size());
  if (const auto verified = reprise::verify_corpus(view); !verified) return verified.error();
  const auto corpus = reprise::CorpusStore::open(view);
  if (!corpus) return corpus.error();
  std::uint64_t digest = corpus->documents();
  std::size_t matches = 0;
  const std::vector<Token> tokens = text(3);
  for (std::size_t size = 1; size <= 500; ++size) {
    std::array<reprise::StoreMatch, 8> found;
    const std::size_t count = corpus->find(reprise::TokenSpan(tokens).first(size), found);
    matches += count;
    for (const reprise::StoreMatch& match : std::span(found).first(count)) {
      std::array<Token, 4> next{};
      static_cast<void>(corpus->read(match.next, next));
      for (const Token token : next) digest = mix(digest ^ static_cast<std::uint32_t>(token));
    }
  }
  if (matches < 500)
    return reprise::Error{reprise::ErrorCode::invalid_argument, "too few matches: each suffix is in the corpus",
                          matches, 500};
  return digest;
}

int complain(const std::string& place, const reprise::Error& error) {
  std::fprintf(stderr, "%s: %.*s (value %llu, limit %llu)\n", place.c_str(), static_cast<int>(error.message.size()),
               error.message.data(), static_cast<unsigned long long>(error.value),
               static_cast<unsigned long long>(error.limit));
  return 1;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3 || (std::string_view(words[1]) != "write" && std::string_view(words[1]) != "read")) {
    std::fputs("usage: exchange write|read FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = words[2];
  const std::filesystem::path snapshot = folder / "all.snapshot";
  const std::filesystem::path corpus = folder / "documents.corpus";
  if (std::string_view(words[1]) == "write") {
    Stores stores;
    fill(stores);
    if (const auto written = write_snapshot(snapshot, stores); !written)
      return complain(snapshot.string(), written.error());
    if (const auto written = write_corpus(corpus); !written) return complain(corpus.string(), written.error());
    return 0;
  }
  Stores stores;
  if (const auto read = read_snapshot(snapshot, stores); !read) return complain(snapshot.string(), read.error());
  // Whatever was read is written again: equal bytes mean that nothing was lost.
  if (const auto written = write_snapshot(folder / "again.snapshot", stores); !written)
    return complain((folder / "again.snapshot").string(), written.error());
  const auto digest = read_corpus(corpus);
  if (!digest) return complain(corpus.string(), digest.error());
  std::printf("%016llx\n", static_cast<unsigned long long>(*digest));
  return 0;
}
