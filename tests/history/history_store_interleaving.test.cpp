// SPDX-License-Identifier: Apache-2.0
// Readers and the writer, step by step. They share single atomic words only, so a reader always sees the state after
// some of the writer's stores. Here the writer takes one small step: it appends three tokens, begins a sequence, or
// removes one.
//
// After each step, new readers look up matches. Readers from earlier steps advance one place along the matches that
// they found then. All short scripts of steps are run. HistoryStore.IsReadWhileItIsWritten tests the inside of a step
// with threads, under a thread sanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/history/history_store.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::history_store_interleaving_test {
namespace {

using testing::Random;
using Tokens = std::vector<Token>;

constexpr Token most_tokens = 3;

/// The next step of the writer, or of a reader that reports a match as used.
enum class Step : std::uint8_t { say_0, say_1, say_2, begin_1, begin_2, remove_1, remove_2, touch };
constexpr std::size_t steps = 8;

/// A memory, its stored text, and readers that are some steps late. Sequence 1 is stored as prompt and sequence 2 as
/// output, so a word's origin shows its sequence.
template <class Memory>
class Theatre {
 public:
  using Slot = typename Memory::Slot;

  explicit Theatre(std::size_t segments)
      : segments_(segments),
        memory_(*Memory::make({.max_bytes = Memory::bytes_for(segments * Memory::segment_tokens)})) {
    begin(1);
  }

  void take(Step step) {
    switch (step) {
      case Step::say_0:
      case Step::say_1:
      case Step::say_2:
        return say(static_cast<Token>(step));
      case Step::begin_1:
        return begin(1);
      case Step::begin_2:
        return begin(2);
      case Step::remove_1:
        return remove(1);
      case Step::remove_2:
        return remove(2);
      case Step::touch:
        return touch();
    }
  }

  /// The readers' turn. Returns a fault, or an empty string.
  std::string read() {
    std::string fault = every_word_was_said();
    if (fault.empty()) fault = every_walk_ends();
    if (fault.empty()) fault = every_find_is_exact();
    if (fault.empty()) fault = what_was_said_last_is_found();
    if (fault.empty()) fault = readers_go_on();
    return fault;
  }

  [[nodiscard]] const HistoryStore::Counts& counts() const { return memory_.counts(); }
  std::uint64_t matches = 0;       ///< found by readers after a step
  std::uint64_t late_reads = 0;    ///< places read by readers that found them after an earlier step
  std::uint64_t late_changes = 0;  ///< late reads whose token had changed or was removed

 private:
  struct Said {
    SequenceTag id;
    Tokens tokens;
  };
  /// A reader that follows a match one place after each step, while the writer continues.
  struct Reader {
    Slot begin;
    Slot at;
    Token expected;
  };

  void begin(SequenceTag id) {
    memory_.begin_sequence(id);
    id_ = id;
    all_said_.push_back({id, {}});
    appended_ = 0;
    stored_ = memory_.counts().stored;
  }
  void say(Token token) {
    const std::uint64_t second_chances = memory_.counts().second_chances;
    const std::array said = {token, token, static_cast<Token>((token + 1) % most_tokens)};
    memory_.append(said, id_ == 1 ? Origin::prompt : Origin::output);
    all_said_.back().tokens.insert(all_said_.back().tokens.end(), said.begin(), said.end());
    appended_ += said.size();
    if (memory_.counts().second_chances != second_chances) reindexed_ = 3;  // older n-grams may have evicted the latest
    if (reindexed_ > 0) --reindexed_;
  }
  void remove(SequenceTag id) {
    memory_.remove(id);
    std::erase_if(all_said_, [&](const Said& part) { return part.id == id; });
    if (id == id_ || all_said_.empty()) {
      all_said_.push_back({id_, {}});
      appended_ = 0;
      stored_ = memory_.counts().stored;
    }
  }
  void touch() {
    for (Slot place = 0; place < memory_.capacity(); place = static_cast<Slot>(place + 3))
      if (!memory_.word(place).empty()) memory_.touch(place);
  }

  /// Checks every place, even those that no match leads to: its token belongs to a sequence that was not removed.
  std::string every_word_was_said() const {
    for (std::size_t i = 0; i < memory_.capacity(); ++i) {
      const detail::HistoryWord word = memory_.word(static_cast<Slot>(i));
      if (word.empty()) continue;
      const SequenceTag id = word.origin() == Origin::prompt ? 1 : 2;
      const bool said = std::any_of(all_said_.begin(), all_said_.end(), [&](const Said& part) {
        return part.id == id && std::find(part.tokens.begin(), part.tokens.end(), word.token()) != part.tokens.end();
      });
      if (!said) return "a word that nobody has said, or who said it was removed";
    }
    return {};
  }

  std::string every_walk_ends() const {
    for (std::size_t i = 0; i < memory_.capacity(); ++i) {
      std::size_t length = 0;
      for (auto place = static_cast<Slot>(i); place != Memory::nowhere; place = memory_.after(place)) {
        if (place >= memory_.capacity()) return "a place outside of the memory";
        if (++length > memory_.capacity()) return "a walk without an end";
      }
    }
    return {};
  }

  /// Checks all pairs of tokens and the ends of the open sequence: each match with its continuation occurs in one
  /// sequence.
  std::string every_find_is_exact() {
    for (Token a = 0; a < most_tokens; ++a)
      for (Token b = 0; b < most_tokens; ++b)
        if (std::string fault = find_is_exact({a, b}); !fault.empty()) return fault;
    return find_is_exact(all_said_.back().tokens);
  }
  std::string find_is_exact(const Tokens& end) {
    std::array<typename Memory::HistoryMatch, Memory::most_matches> found;
    const std::size_t count = memory_.find(end, found);
    matches += count;
    for (const auto& match : std::span(found).first(count)) {
      const auto agreed = static_cast<std::size_t>(std::countr_one(match.agreements));
      if (agreed < 1 || agreed > end.size()) return "a match that is none";
      Tokens said(end.end() - static_cast<std::ptrdiff_t>(agreed), end.end());
      SequenceTag id = 0;
      for (Slot place = match.next; place != Memory::nowhere; place = memory_.after(place)) {
        const detail::HistoryWord word = memory_.word(place);
        if (word.empty()) break;
        said.push_back(word.token());
        id = word.origin() == Origin::prompt ? 1 : 2;
      }
      if (said.size() == agreed) return "a match that goes on to nothing";
      const bool once = std::any_of(all_said_.begin(), all_said_.end(), [&](const Said& part) {
        return part.id == id &&
               std::search(part.tokens.begin(), part.tokens.end(), said.begin(), said.end()) != part.tokens.end();
      });
      if (!once) return "a match that no sequence has said";
      readers_.push_back({match.next, match.next, memory_.word(match.next).token()});
    }
    if (readers_.size() > most_readers)
      readers_.erase(readers_.begin(), readers_.end() - static_cast<std::ptrdiff_t>(most_readers));
    return {};
  }

  /// Expects the last text to be found, with three exceptions. Either it repeats stored text and is held back, a second
  /// chance has evicted it from the index, or it has evicted itself in a memory of one segment.
  std::string what_was_said_last_is_found() const {
    const Tokens& said = all_said_.back().tokens;
    if (segments_ == 1) return {};
    if (appended_ < 3 || memory_.counts().stored - stored_ != appended_ || reindexed_ > 0) return {};
    std::array<typename Memory::HistoryMatch, Memory::most_matches> found;
    const std::size_t count = memory_.find(TokenSpan(said).subspan(said.size() - 3, 2), found);
    const bool there = std::any_of(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count),
                                   [&](const auto& match) { return memory_.word(match.next).is(said.back()); });
    return there ? "" : "what was said last is not found";
  }

  /// Advances the readers of earlier steps. They may reach other text, but only words in the memory, and
  /// every_word_was_said() has checked those.
  std::string readers_go_on() {
    for (Reader& reader : readers_) {
      if (reader.at == Memory::nowhere) continue;
      if (reader.at >= memory_.capacity()) return "a reader outside of the memory";
      ++late_reads;
      const detail::HistoryWord word = memory_.word(reader.at);
      if (!word.is(reader.expected)) ++late_changes;
      if (!word.empty()) memory_.touch(reader.begin);
      reader.at = word.empty() ? Memory::nowhere : memory_.after(reader.at);
      if (reader.at != Memory::nowhere) reader.expected = memory_.word(reader.at).token();
    }
    return {};
  }

  static constexpr std::size_t most_readers = 12;

  std::size_t segments_;
  Memory memory_;
  SequenceTag id_ = 1;
  std::vector<Said> all_said_;
  std::size_t appended_ = 0;  // since the sequence began
  std::uint64_t stored_ = 0;  // before it
  int reindexed_ = 0;
  std::vector<Reader> readers_;
};

struct Seen {
  std::uint64_t matches = 0;
  std::uint64_t late_reads = 0;
  std::uint64_t late_changes = 0;
  std::uint64_t evicted = 0;
  std::uint64_t second_chances = 0;
  std::uint64_t removed = 0;

  template <class Memory>
  void add(const Theatre<Memory>& theatre) {
    matches += theatre.matches;
    late_reads += theatre.late_reads;
    late_changes += theatre.late_changes;
    evicted += theatre.counts().evicted;
    second_chances += theatre.counts().second_chances;
    removed += theatre.counts().removed;
  }
};

std::string describe(std::span<const Step> script) {
  std::string text = "script";
  for (const Step step : script) text.append(" ").append(std::to_string(static_cast<int>(step)));
  return text;
}

/// Runs every script of `length` steps after `beginning`, which fills the memory. A number encodes a script.
template <class Memory>
void run_all(std::size_t segments, std::span<const Step> beginning, std::size_t length, Seen& seen) {
  std::size_t scripts = 1;
  for (std::size_t i = 0; i < length; ++i) scripts *= steps;
  std::vector<Step> script(length);
  for (std::size_t number = 0; number < scripts; ++number) {
    for (std::size_t i = 0, rest = number; i < length; ++i, rest /= steps) script[i] = static_cast<Step>(rest % steps);
    Theatre<Memory> theatre(segments);
    for (const Step step : beginning) theatre.take(step);
    for (const Step step : script) {
      theatre.take(step);
      const std::string fault = theatre.read();
      ASSERT_EQ(fault, "") << describe(script);
    }
    seen.add(theatre);
  }
}

using Tiny = detail::BasicHistoryStore<std::uint8_t, 4>;
using Small = detail::BasicHistoryStore<std::uint8_t, 8>;

using enum Step;
constexpr std::array full = {say_0, say_1, say_2, say_0, say_1, say_1, begin_2, say_0, say_1, say_0, say_2, say_0};

TEST(SharedMemoryInterleaving, EveryShortScriptInMemoriesThatAreEmptyOrFull) {
  Seen seen;
  for (const std::size_t segments : {1U, 2U, 3U}) {
    run_all<Tiny>(segments, {}, 4, seen);
    run_all<Small>(segments, full, 4, seen);
  }
  for (const std::size_t segments : {2U, 3U}) run_all<Tiny>(segments, full, 5, seen);
  EXPECT_GT(seen.matches, 100'000U);
  EXPECT_GT(seen.late_reads, 100'000U);
  EXPECT_GT(seen.late_changes, 10'000U);
  EXPECT_GT(seen.evicted, 10'000U);
  EXPECT_GT(seen.second_chances, 1'000U);
  EXPECT_GT(seen.removed, 10'000U);
}

TEST(SharedMemoryInterleaving, LongRandomScripts) {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Theatre<Small> theatre(1 + seed % 7);
    std::vector<Step> script;
    for (int i = 0; i < 120; ++i) {
      script.push_back(static_cast<Step>(random.chance(85) ? random.below(3) : random.below(steps)));
      theatre.take(script.back());
      const std::string fault = theatre.read();
      ASSERT_EQ(fault, "") << "seed " << seed << ", " << describe(script);
    }
    seen.add(theatre);
  }
  EXPECT_GT(seen.evicted, 1'000U);
  EXPECT_GT(seen.second_chances, 100U);
  EXPECT_GT(seen.late_changes, 100U);
}

}  // namespace
}  // namespace reprise::history_store_interleaving_test
