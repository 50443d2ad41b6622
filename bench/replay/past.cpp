// SPDX-License-Identifier: Apache-2.0
#include "past.hpp"

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/input_error.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/memory.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/naive_index.hpp"

namespace reprise::replay {
namespace {

using testing::NaiveIndex;

/// Hands the sequence to the memory if the strategy is a drafter over this index. Returns true if it is.
template <class Index>
bool kept(AnyStrategy& used) {
  auto* drafter = used.get<NgramDrafter<Index>>();
  if (drafter != nullptr) drafter->keep();
  return drafter != nullptr;
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
  return (memory ? memory->memory_bytes() : 0) + (table == nullptr ? 0 : table->memory_bytes()) +
         (strategy ? strategy->memory_bytes() : 0);
}

void give_room(Past& past, std::size_t max_bytes, std::size_t next_token_bytes, bool rankings) {
  const std::size_t parts = rankings ? 2 : 1;
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  MemoryOptions options{.max_bytes = max_bytes, .rankings = rankings, .salts = 1};
  options.next_token_bytes = next_token_bytes > most / parts ? most : parts * next_token_bytes;
  auto made = Memory::make(options);
  if (made) {
    past.memory = *std::move(made);
    return;
  }
  const bool of_table = made.error().message.find("of the table") != std::string_view::npos;
  if (of_table)
    throw tools::InputError("--next-tokens " + std::to_string(next_token_bytes) + ": " +
                            why_no_room(made.error(), ", or 0", parts));
  throw tools::InputError("--memory-bytes " + std::to_string(max_bytes) + ": " + why_no_room(made.error(), ""));
}

void load(Past& past, const SnapshotBytes& snapshot) {
  const auto loaded = past.memory->load(snapshot.bytes, snapshot.fingerprint);
  if (loaded) return;
  const Error& error = loaded.error();
  std::string text(error.message);
  if (error.code == ErrorCode::other_tokenizer)
    text +=
        " (its fingerprint is " + std::to_string(error.value) + ", --fingerprint " + std::to_string(error.limit) + ")";
  throw tools::InputError(snapshot.name + ": " + text);
}

std::vector<std::byte> save(const Past& past, std::uint64_t fingerprint) {
  std::vector<std::byte> bytes(past.memory->snapshot_bytes());
  static_cast<void>(past.memory->save(bytes, fingerprint));  // `bytes` is large enough
  return bytes;
}

void leave(Past& past, const TraceSession& session, AnyStrategy used) {
  if (kept<RollingHashIndex>(used) || kept<SuffixArrayIndex>(used) || kept<NaiveIndex>(used)) return;
  std::vector<Token> text;
  for (const Turn& turn : session.turns) {
    text.insert(text.end(), turn.prompt.begin(), turn.prompt.end());
    text.insert(text.end(), turn.output.begin(), turn.output.end());
  }
  past.memory->add(text);
}

}  // namespace reprise::replay
