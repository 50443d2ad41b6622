// SPDX-License-Identifier: Apache-2.0
#include "past.hpp"

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
  past.ranked_rows.add(drafter->rows());
}

/// Says why a number of bytes is refused. `or_none`: what to give for no memory at all.
std::string why_no_room(const Error& error, const char* or_none) {
  if (error.code == ErrorCode::out_of_memory) return "there is not that much memory; give less";
  if (error.value > error.limit) return "too much; give at most " + std::to_string(error.limit);
  return "too little; give at least " + std::to_string(error.limit) + or_none;
}

}  // namespace

std::size_t Past::memory_bytes() const {
  return memory.memory_bytes() + next_tokens.memory_bytes() + ranked_rows.memory_bytes() +
         (table == nullptr ? 0 : table->memory_bytes()) + (strategy ? strategy->memory_bytes() : 0);
}

void give_room(Past& past, std::size_t max_bytes, std::size_t next_token_bytes, bool rankings) {
  HistoryOptions options;
  options.max_bytes = max_bytes;
  auto made = HistoryStore::make(options);
  if (!made)
    throw tools::InputError("--memory-bytes " + std::to_string(max_bytes) + ": " + why_no_room(made.error(), ""));
  past.memory = std::move(*made);
  if (next_token_bytes == 0) return;
  auto counts = NextTokenCounts::make({.max_bytes = next_token_bytes});
  if (!counts)
    throw tools::InputError("--next-tokens " + std::to_string(next_token_bytes) + ": " +
                            why_no_room(counts.error(), ", or 0"));
  past.next_tokens = std::move(*counts);
  if (!rankings) return;
  auto rows = RankedRows::make({.max_bytes = next_token_bytes});
  if (!rows)
    throw tools::InputError("--next-tokens " + std::to_string(next_token_bytes) +
                            ": there is not that much memory; give less");
  past.ranked_rows = std::move(*rows);
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
