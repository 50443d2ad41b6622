// SPDX-License-Identifier: Apache-2.0
#include "past.hpp"

#include <limits>
#include <string>
#include <utility>

#include "common/input_error.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/naive_index.hpp"

namespace reprise::replay {
namespace {

using testing::NaiveIndex;

/// Takes over the calibration and the shown rows if the strategy is a drafter over this index.
template <class Index>
void take_knowledge(const AnyStrategy& used, Past& past) {
  const auto* drafter = used.get<NgramDrafter<Index>>();
  if (drafter == nullptr) return;
  past.calibration = drafter->calibration();
  past.next_tokens.add(drafter->rows());
}

/// Says why a number of bytes is refused. `or_none`: what to give for no memory at all. `parts`: the table is so many
/// times as large as the number.
std::string why_no_room(const Error& error, const char* or_none, std::size_t parts = 1) {
  if (error.code == ErrorCode::out_of_memory) return "there is not that much memory; give less";
  const std::string limit = std::to_string(error.limit / parts);
  return error.value > error.limit ? "too much; give at most " + limit : "too little; give at least " + limit + or_none;
}

}  // namespace

std::size_t Past::memory_bytes() const {
  return memory.memory_bytes() + next_tokens.memory_bytes() + (table == nullptr ? 0 : table->memory_bytes()) +
         (strategy ? strategy->memory_bytes() : 0);
}

void give_room(Past& past, std::size_t max_bytes, std::size_t next_token_bytes, bool rankings) {
  HistoryOptions options;
  options.max_bytes = max_bytes;
  auto made = HistoryStore::make(options);
  if (!made)
    throw tools::InputError("--memory-bytes " + std::to_string(max_bytes) + ": " + why_no_room(made.error(), ""));
  past.memory = std::move(*made);
  if (next_token_bytes == 0) return;
  const std::size_t parts = rankings ? 2 : 1;
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  const std::size_t bytes = next_token_bytes > most / parts ? most : parts * next_token_bytes;
  auto table = NextTokens::make({.max_bytes = bytes, .rankings = rankings});
  if (!table)
    throw tools::InputError("--next-tokens " + std::to_string(next_token_bytes) + ": " +
                            why_no_room(table.error(), ", or 0", parts));
  past.next_tokens = std::move(*table);
}

void load(Past& past, const SnapshotBytes& snapshot) {
  const auto loaded = load_history(snapshot.bytes, snapshot.fingerprint, past.memory, past.calibration);
  if (loaded) return;
  const Error& error = loaded.error();
  std::string text(error.message);
  if (error.code == ErrorCode::other_tokenizer)
    text +=
        " (its fingerprint is " + std::to_string(error.value) + ", --fingerprint " + std::to_string(error.limit) + ")";
  throw tools::InputError(snapshot.name + ": " + text);
}

std::vector<std::byte> save(const Past& past, std::uint64_t fingerprint) {
  std::vector<std::byte> bytes(snapshot_bytes_of(past.memory));
  static_cast<void>(save_history(bytes, fingerprint, past.memory, past.calibration));  // `bytes` is large enough
  return bytes;
}

void leave(Past& past, const TraceSession& session, const AnyStrategy& used) {
  past.memory.begin_sequence(fnv1a(session.id));
  for (const Turn& turn : session.turns) {
    past.memory.append(turn.prompt, Origin::prompt);
    past.memory.append(turn.output, Origin::output);
  }
  past.memory.end_sequence();
  std::vector<Token> text;
  for (const Turn& turn : session.turns) {
    text.insert(text.end(), turn.prompt.begin(), turn.prompt.end());
    text.insert(text.end(), turn.output.begin(), turn.output.end());
  }
  past.next_tokens.add(text);
  take_knowledge<RollingHashIndex>(used, past);
  take_knowledge<SuffixArrayIndex>(used, past);
  take_knowledge<NaiveIndex>(used, past);
}

}  // namespace reprise::replay
