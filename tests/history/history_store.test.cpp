// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/history_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "support/fails.hpp"
#include "support/histories.hpp"

namespace reprise::history_store_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::make_memory;
using testing::Random;
using testing::random_tokens;
using testing::remember;
using Tokens = std::vector<Token>;

/// Returns the continuations, of at most `most` tokens, at the places that end like `end`.
template <class Memory>
std::vector<Tokens> continuations(const Memory& memory, const Tokens& end, std::size_t most = 8) {
  std::array<typename Memory::HistoryMatch, Memory::most_matches> found;
  std::vector<Tokens> all;
  const std::size_t count = memory.find(end, found);
  for (std::size_t i = 0; i < count; ++i) {
    Tokens next;
    for (auto place = found[i].next; place != Memory::nowhere && next.size() < most; place = memory.after(place)) {
      if (memory.word(place).empty()) break;
      next.push_back(memory.word(place).token());
    }
    all.push_back(next);
  }
  return all;
}

TEST(HistoryStore, SaysWhichTokensAgreeAndWhoSaidWhatFollows) {
  HistoryStore memory = make_memory();
  memory.begin_sequence(1);
  memory.append(Tokens{5, 1, 2, 3}, Origin::prompt);
  memory.append(Tokens{4}, Origin::output);
  memory.end_sequence();
  std::array<HistoryStore::HistoryMatch, 4> found;
  ASSERT_EQ(memory.find(Tokens{5, 9, 2, 3}, found), 1U);
  EXPECT_EQ(found[0].agreements, 0b1011U);
  EXPECT_EQ(memory.word(found[0].next).token(), 4);
  EXPECT_EQ(memory.word(found[0].next).origin(), Origin::output);
  EXPECT_THAT(continuations(memory, {77, 1, 2}), ElementsAre(Tokens{3, 4}));
  for (const Tokens& end : {Tokens{3, 4}, Tokens{2, 77}, Tokens{}})
    EXPECT_THAT(continuations(memory, end), IsEmpty()) << "nothing followed";
}

TEST(HistoryStore, IsReadAsADatastoreAsPlaceByPlace) {
  HistoryStore memory = make_memory();
  Random random(3);
  for (int i = 0; i < 20; ++i) remember(memory, random_tokens(random, 1 + random.below(100), 5), random.below(3));
  std::array<HistoryStore::HistoryMatch, HistoryStore::most_matches> places;
  std::array<StoreMatch, HistoryStore::most_matches> matches;
  for (int i = 0; i < 100; ++i) {
    const Tokens end = random_tokens(random, 10, 5);
    const std::size_t count = memory.find(end, places);
    ASSERT_EQ(memory.find(end, matches), count);
    const std::vector<Tokens> expected = continuations(memory, end, 200);
    for (std::size_t k = 0; k < count; ++k) {
      EXPECT_EQ(matches[k], (StoreMatch{places[k].next, places[k].agreements}));
      Tokens read;
      std::array<Token, 7> some{};
      for (StoreRun run{0, matches[k].next}; run.next != no_place && read.size() < 193;) {
        run = memory.read(run.next, std::span(some).first(1 + random.below(some.size())));
        EXPECT_LE(run.size, some.size());
        read.insert(read.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(run.size));
      }
      ASSERT_LE(read.size(), 200U);
      ASSERT_TRUE(std::equal(read.begin(), read.end(), expected[k].begin()));
      if (read.size() < 193) {
        EXPECT_EQ(read.size(), expected[k].size()) << "the text ends";
      }
    }
  }
}

TEST(HistoryStore, PutsLongerAgreementFirstAndTheLatestOfEquals) {
  HistoryStore memory = make_memory();
  remember(memory, {1, 2, 3, 4, 100});
  remember(memory, {9, 9, 3, 4, 200});
  remember(memory, {8, 8, 3, 4, 300});
  EXPECT_THAT(continuations(memory, {1, 2, 3, 4}, 1), ElementsAre(Tokens{100}, Tokens{300}, Tokens{200}));
}

TEST(HistoryStore, StoresLongRunsOnceAndWhatIsNewBehindThem) {
  Random random(1);
  HistoryStore memory = make_memory();
  const Tokens known = random_tokens(random, 1000, 1'000'000);
  remember(memory, known, 1);
  EXPECT_EQ(memory.counts().stored, 1000U);
  remember(memory, known, 2);
  EXPECT_EQ(memory.counts().stored, 1000U);
  EXPECT_EQ(memory.counts().duplicates, 1000U);

  Tokens other(known.begin() + 100, known.begin() + 600);
  other.insert(other.end(), {7, 8, 9});
  remember(memory, other, 3);
  EXPECT_EQ(memory.counts().stored, 1000 + HistoryStore::lead + 3);
  const Tokens end(other.end() - 7, other.end() - 2);
  const auto next = continuations(memory, end, 2);
  EXPECT_THAT(next, ::testing::Contains(Tokens{8, 9}));
  const Tokens before(other.end() - 20, other.end() - 3);
  EXPECT_THAT(continuations(memory, before, 1), ::testing::UnorderedElementsAre(Tokens{7}, Tokens{known[600]}));
}

TEST(HistoryStore, CountsWhatCameByAgain) {
  Random random(2);
  HistoryStore memory = make_memory();
  const Tokens known = random_tokens(random, 200, 1'000'000);
  for (int i = 0; i < 4; ++i) remember(memory, known);
  std::array<HistoryStore::HistoryMatch, 4> found;
  for (std::size_t at = 1; at < known.size(); ++at) {
    ASSERT_EQ(memory.find(TokenSpan(known).first(at), found), 1U);
    ASSERT_EQ(memory.use_count(found[0].next), 3) << at;
  }
}

TEST(HistoryStore, StoresNothingOfWhatItKnowsFromBeginToEnd) {
  Random random(12);
  for (const std::size_t size : {64U, 96U, 320U, 1000U}) {
    HistoryStore memory = make_memory();
    const Tokens known = random_tokens(random, size, 1'000'000);
    for (int i = 0; i < 50; ++i) remember(memory, known, static_cast<SequenceTag>(i));
    EXPECT_EQ(memory.counts().stored, size);
    std::size_t runs = 0;
    memory.for_each_run([&](const HistoryStore::HistoryRun&) { ++runs; });
    EXPECT_EQ(runs, 1U);
  }
  HistoryStore memory = make_memory();
  const Tokens too_short = random_tokens(random, 60, 1'000'000);
  for (int i = 0; i < 2; ++i) remember(memory, too_short);
  EXPECT_EQ(memory.counts().stored, 120U);
  EXPECT_EQ(memory.counts().duplicates, 0U);
}

TEST(HistoryStore, PutsSequencesOfOneNameIntoTheSameSegments) {
  const auto runs_in = [](bool one_name) {
    HistoryStore memory = make_memory(HistoryStore::bytes_for(4 * 32));
    for (Token i = 0; i < 12; ++i)
      remember(memory, {10 * i, 10 * i + 1, 10 * i + 2, 10 * i + 3, 10 * i + 4, 10 * i + 5},
               one_name ? 1U : static_cast<SequenceTag>(1 + i));
    std::size_t runs = 0;
    memory.for_each_run([&](const HistoryStore::HistoryRun& run) {
      ++runs;
      EXPECT_EQ(run.size, 6U);
    });
    EXPECT_THAT(continuations(memory, {114, 115}), IsEmpty());
    EXPECT_THAT(continuations(memory, {112, 113}), ElementsAre(Tokens{114, 115}));
    return runs;
  };
  EXPECT_EQ(runs_in(true), 12U);
  EXPECT_EQ(runs_in(false), 4U);
}

TEST(HistoryStore, TakesAFreeSegmentThoughALateReaderTouchesIt) {
  Random random(17);
  HistoryStore memory = make_memory(HistoryStore::bytes_for(3200));
  remember(memory, random_tokens(random, 1600, 1'000'000), 1);
  const Tokens gone = random_tokens(random, 1600, 1'000'000);
  remember(memory, gone, 2);
  std::vector<HistoryStore::Slot> places;
  std::array<HistoryStore::HistoryMatch, 1> found;
  for (std::size_t at = 8; at < gone.size(); at += 32)
    if (memory.find(TokenSpan(gone).first(at), found) == 1) places.push_back(found[0].next);
  ASSERT_GT(places.size(), 40U);
  memory.remove(2);
  for (const HistoryStore::Slot place : places) memory.touch(place);
  remember(memory, random_tokens(random, 1600, 1'000'000), 3);
  EXPECT_EQ(memory.counts().evicted, 0U);
  EXPECT_EQ(memory.counts().second_chances, 0U);
}

TEST(HistoryStore, GivesAWholeTextThatIsUsedASecondChance) {
  Random random(15);
  HistoryStore memory = make_memory(HistoryStore::bytes_for(100'000));
  const Tokens hot = random_tokens(random, 3200, 1'000'000);
  remember(memory, hot);
  std::array<HistoryStore::HistoryMatch, 4> found;
  const auto use = [&] {
    std::size_t known = 0;
    for (std::size_t at = 16; at < hot.size(); at += 32)
      if (memory.find(TokenSpan(hot).first(at), found) > 0 && std::countr_one(found[0].agreements) >= 8) {
        memory.touch(found[0].next);
        ++known;
      }
    return known;
  };
  for (int i = 0; i < 200; ++i) {
    use();
    remember(memory, random_tokens(random, 1000, 1'000'000), 2);
  }
  EXPECT_GE(use(), 90U) << "of 100 segments";
}

TEST(HistoryStore, RefusesTokensBeyondTheVocabulary) {
  HistoryOptions options;
  options.vocabulary = 100;
  HistoryStore memory = make_memory(1 << 20, options);
  remember(memory, {1, 2, 99, 100, 3, 4});
  EXPECT_EQ(memory.counts().refused, 1U);
  EXPECT_THAT(continuations(memory, {1, 2}), ElementsAre(Tokens{99}));
  EXPECT_THAT(continuations(memory, {3}), ElementsAre(Tokens{4}));
}

TEST(HistoryStore, FindsNothingWhenItHasBeenMovedFrom) {
  HistoryStore memory = make_memory();
  remember(memory, {1, 2, 3, 4});
  memory.begin_sequence(2);
  memory.append(Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, Origin::output);
  const HistoryStore other = std::move(memory);
  EXPECT_THAT(continuations(other, {77, 1, 2}, 2), ::testing::Contains(Tokens{3, 4}));
  memory.end_sequence();
  EXPECT_THAT(continuations(memory, {1, 2}), IsEmpty());  // NOLINT(bugprone-use-after-move)
  remember(memory, {1, 2, 3, 4});
  memory.remove(1);
  memory.clear();
  EXPECT_EQ(memory.memory_bytes(), 0U);
}

TEST(HistoryStore, AppendsUnderNoNameWhatBelongsToNoSequence) {
  HistoryStore memory = make_memory();
  remember(memory, {1, 2, 3}, 7);
  memory.append(Tokens{4, 5, 6}, Origin::output);
  memory.end_sequence();
  memory.remove(7);
  EXPECT_THAT(continuations(memory, {1, 2}), IsEmpty());
  EXPECT_THAT(continuations(memory, {4, 5}), ElementsAre(Tokens{6}));
  memory.remove(0);
  EXPECT_THAT(continuations(memory, {4, 5}), IsEmpty());
}

TEST(HistoryStore, RestoresBehindWhatIsHeldBack) {
  Random random(16);
  HistoryStore memory = make_memory();
  const Tokens known = random_tokens(random, 200, 1'000'000);
  remember(memory, known);
  memory.begin_sequence(2);
  memory.append(known, Origin::output);
  memory.restore(7, Origin::output, 9);
  memory.restore(8, Origin::output, 9);
  memory.end_sequence();
  EXPECT_EQ(memory.counts().stored, 200 + HistoryStore::lead + 2);
  std::array<HistoryStore::HistoryMatch, 4> found;
  ASSERT_GE(memory.find(Tokens{known[199], 7}, found), 1U);
  EXPECT_TRUE(memory.word(found[0].next).is(8));
  EXPECT_EQ(memory.use_count(found[0].next), 9);
}

TEST(HistoryStore, DoesNotCareInWhatPiecesItIsTold) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    HistoryStore whole = make_memory(50'000);
    HistoryStore pieces = make_memory(50'000);
    for (int sequence = 0; sequence < 20; ++sequence) {
      const Tokens tokens = random_tokens(random, random.below(400), 1 + random.below(40));
      remember(whole, tokens);
      pieces.begin_sequence(1);
      for (std::size_t at = 0; at < tokens.size();) {
        const std::size_t size = std::min<std::size_t>(1 + random.below(50), tokens.size() - at);
        pieces.append(TokenSpan(tokens).subspan(at, size), Origin::output);
        at += size;
      }
      pieces.end_sequence();
    }
    ASSERT_EQ(whole.counts(), pieces.counts());
    for (int i = 0; i < 20; ++i) {
      const Tokens end = random_tokens(random, 4, 4);
      ASSERT_EQ(continuations(whole, end), continuations(pieces, end));
    }
  }
}

TEST(HistoryStore, RemembersWhatItsOptionsSay) {
  HistoryOptions options;
  options.prompts = false;
  HistoryStore memory = make_memory(1 << 20, options);
  memory.begin_sequence(1);
  memory.append(Tokens{1, 2, 3, 4}, Origin::prompt);
  memory.append(Tokens{5, 6, 7}, Origin::output);
  memory.append(Tokens{8, 9, 10}, Origin::prompt);
  memory.append(Tokens{11, 12, 13}, Origin::output);
  memory.end_sequence();
  EXPECT_EQ(memory.counts().stored, 6U);
  EXPECT_THAT(continuations(memory, {1, 2}), IsEmpty());
  EXPECT_THAT(continuations(memory, {5, 6}), ElementsAre(Tokens{7})) << "what lay between is not skipped";
}

TEST(HistoryStore, BreaksAtTokensThatItCannotHold) {
  HistoryStore memory = make_memory();
  remember(memory, {1, 2, -3, 4, 5, 0x7fffffff, 6, 7, 8});
  EXPECT_EQ(memory.counts().refused, 2U);
  EXPECT_THAT(continuations(memory, {1, 2}), IsEmpty());
  EXPECT_THAT(continuations(memory, {6, 7}), ElementsAre(Tokens{8}));
  EXPECT_THAT(continuations(memory, {-3}), IsEmpty());
  EXPECT_THAT(continuations(memory, {0x7fffffff}), IsEmpty());
}

TEST(HistoryStore, ForgetsTheOldestFirst) {
  Random random(5);
  HistoryStore memory = make_memory(100'000);
  std::vector<Tokens> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(random_tokens(random, 100, 1'000'000));
    remember(memory, all.back());
    ASSERT_LE(memory.memory_bytes(), 100'000U);
  }
  EXPECT_GT(memory.counts().evicted, 0U);
  const auto known = [&](const Tokens& tokens) {
    return !continuations(memory, Tokens(tokens.begin() + 30, tokens.begin() + 50)).empty();
  };
  EXPECT_FALSE(known(all.front()));
  for (std::size_t i = 180; i < 200; ++i) EXPECT_TRUE(known(all[i])) << i;
}

TEST(HistoryStore, MakesRoomEvenIfEverythingIsOfUse) {
  Random random(7);
  HistoryStore memory = make_memory(20'000);
  std::array<HistoryStore::HistoryMatch, 4> found;
  for (int i = 0; i < 300; ++i) {
    const Tokens tokens = random_tokens(random, 64, 1'000'000);
    remember(memory, tokens);
    for (std::size_t at = 8; at < 64; at += 8)
      if (memory.find(TokenSpan(tokens).first(at), found) > 0)
        for (int j = 0; j < 300; ++j) memory.touch(found[0].next);
    int known = 0;
    for (std::ptrdiff_t at = 8; at < 64; ++at)
      known += continuations(memory, Tokens(tokens.begin(), tokens.begin() + at)).empty() ? 0 : 1;
    ASSERT_GE(known, 50) << "of 56 places of the last text";
  }
}

TEST(HistoryStore, RemovesASequenceOnRequest) {
  Random random(8);
  HistoryStore memory = make_memory();
  const Tokens first = random_tokens(random, 500, 1'000'000);
  const Tokens second = random_tokens(random, 500, 1'000'000);
  remember(memory, first, 1);
  remember(memory, second, 2);
  memory.remove(1);
  EXPECT_EQ(memory.counts().removed, 500U);
  for (std::size_t at = 8; at < 500; at += 13) {
    EXPECT_THAT(continuations(memory, Tokens(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(at))),
                IsEmpty());
    EXPECT_THAT(continuations(memory, Tokens(second.begin(), second.begin() + static_cast<std::ptrdiff_t>(at))),
                ::testing::SizeIs(1));
  }
  memory.remove(99);
  EXPECT_EQ(memory.counts().removed, 500U);
  memory.clear();
  EXPECT_THAT(continuations(memory, Tokens(second.begin(), second.begin() + 100)), IsEmpty());
  EXPECT_EQ(memory.counts(), HistoryStore::Counts());
  remember(memory, second);
  EXPECT_THAT(continuations(memory, Tokens(second.begin(), second.begin() + 100)), ::testing::SizeIs(1));
}

TEST(HistoryStore, RefusesACeilingWithoutRoom) {
  HistoryOptions options;
  options.max_bytes = 100;
  const auto made = HistoryStore::make(options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::size_out_of_range);
  EXPECT_EQ(made.error().value, 100U);
  EXPECT_GT(made.error().limit, 100U);
}

TEST(HistoryStore, RefusesMoreThanItsLimits) {
  using Small = detail::BasicHistoryStore<std::uint16_t, 32>;
  const auto largest = Small::make({.max_bytes = Small::most_bytes});
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->capacity(), std::size_t{65'535 / 4 / 32 * 32});
  EXPECT_EQ(Small::make({.max_bytes = Small::most_bytes + 1}).error().limit, Small::most_bytes);
  constexpr std::uint64_t most = std::uint64_t{18} << 30;
  EXPECT_EQ(HistoryStore::most_bytes, most);
  if (sizeof(std::size_t) > 4) {  // or else no number is above
    EXPECT_THAT(HistoryStore::make({.max_bytes = static_cast<std::size_t>(most + 1)}),
                testing::fails(ErrorCode::size_out_of_range, most + 1, most, "max_bytes is above"));
  }
  constexpr std::uint32_t tokens = 0x7fffffff;
  EXPECT_TRUE(HistoryStore::make({.max_bytes = 10'000, .vocabulary = tokens}));
  EXPECT_THAT(HistoryStore::make({.max_bytes = 10'000, .vocabulary = tokens + 1}),
              testing::fails(ErrorCode::size_out_of_range, tokens + 1, tokens, "vocabulary is above"));
}

/// Every continuation that is found must occur in one of the sequences; the reference searches the whole past. The
/// place types are so small that the memory is always full and evicting.
template <class Memory>
void holds_only_what_was_said(std::uint64_t seed, std::size_t segments, std::uint64_t& found) {
  Random random(seed);
  Memory memory = make_memory<Memory>(Memory::bytes_for(segments * Memory::segment_tokens));
  std::map<SequenceTag, std::vector<Tokens>> past;
  for (int round = 0; round < 40; ++round) {
    const SequenceTag id = 1 + random.below(6);
    Tokens tokens = random_tokens(random, random.below(120), 2 + random.below(30));
    if (!past.empty() && random.below(3) == 0) {  // repeats an earlier text
      const auto& again = past.begin()->second;
      if (!again.empty()) tokens.insert(tokens.end(), again[0].begin(), again[0].end());
    }
    remember(memory, tokens, id);
    past[id].push_back(tokens);
    if (random.below(10) == 0) {
      const SequenceTag gone = 1 + random.below(6);
      memory.remove(gone);
    }
    for (int i = 0; i < 3; ++i) {
      const Tokens end = random_tokens(random, 2 + random.below(3), 6);
      std::array<typename Memory::HistoryMatch, Memory::most_matches> matches;
      const std::size_t count = memory.find(end, matches);
      const std::vector<Tokens> all = continuations(memory, end, 20);
      ASSERT_EQ(all.size(), count);
      for (std::size_t m = 0; m < count; ++m) {
        const Tokens& next = all[m];
        const auto agreed = std::countr_one(matches[m].agreements);
        ++found;
        const bool said = std::any_of(past.begin(), past.end(), [&](const auto& of) {
          return std::any_of(of.second.begin(), of.second.end(), [&](const Tokens& text) {
            Tokens wanted(end.end() - agreed, end.end());
            wanted.insert(wanted.end(), next.begin(), next.end());
            return std::search(text.begin(), text.end(), wanted.begin(), wanted.end()) != text.end();
          });
        });
        ASSERT_TRUE(said) << "seed " << seed;
        ASSERT_FALSE(next.empty());
      }
    }
  }
}

TEST(HistoryStore, HoldsOnlyWhatWasSaid) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    holds_only_what_was_said<HistoryStore>(seed, 1 + seed, found);
    holds_only_what_was_said<detail::BasicHistoryStore<std::uint8_t, 8>>(seed, 1 + seed % 7, found);
    holds_only_what_was_said<detail::BasicHistoryStore<std::uint8_t, 2>>(seed, 1 + seed % 31, found);
    holds_only_what_was_said<detail::BasicHistoryStore<std::uint16_t, 8>>(seed, 1 + 8 * seed, found);
    holds_only_what_was_said<detail::BasicHistoryStore<std::uint16_t, 32>>(seed, 1 + 16 * seed, found);
  }
  EXPECT_GT(found, 10'000U);
}

TEST(HistoryStore, FindsNearlyAllOfWhatItHasRoomFor) {
  Random random(10);
  HistoryStore memory = make_memory(std::size_t{4} << 20);
  const std::size_t tokens_told = memory.capacity() * 3 / 4;
  std::vector<Tokens> all;
  for (std::size_t told = 0; told < tokens_told; told += 1000) {
    all.push_back(random_tokens(random, 1000, 1'000'000));
    remember(memory, all.back());
  }
  std::size_t asked = 0;
  std::size_t found = 0;
  for (const Tokens& tokens : all) {
    for (std::size_t at = 8; at < 1000; at += 31) {
      ++asked;
      found +=
          continuations(memory, Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at)), 1).empty()
              ? 0
              : 1;
    }
  }
  EXPECT_GT(found * 100, asked * 95);
}

/// One writer and two readers. Each walk of a reader ends and meets only stored tokens.
TEST(HistoryStore, IsReadWhileItIsWritten) {
  HistoryStore memory = make_memory(60'000);
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> found = 0;
  const auto read = [&](std::uint64_t seed) {
    Random random(seed);
    std::array<HistoryStore::HistoryMatch, HistoryStore::most_matches> matches;
    while (!done.load()) {
      const Token first = static_cast<Token>(random.below(1000));
      const Tokens end = {first, first + 1, first + 2, first + 3};
      const std::size_t count = memory.find(end, matches);
      for (std::size_t i = 0; i < count; ++i) {
        std::size_t steps = 0;
        for (auto place = matches[i].next; place != HistoryStore::nowhere && steps < 100; place = memory.after(place)) {
          const auto word = memory.word(place);
          if (word.empty()) break;
          ASSERT_LT(word.token(), 2000);
          ++steps;
        }
        memory.touch(matches[i].next);
        found.fetch_add(1, std::memory_order_relaxed);
      }
    }
  };
  std::thread one(read, 1);
  std::thread two(read, 2);
  Random random(3);
  for (int i = 0; i < 1000 || (found.load() < 100 && i < 300'000); ++i) {
    Tokens tokens(random.below(300));
    std::iota(tokens.begin(), tokens.end(), static_cast<Token>(random.below(1000)));
    remember(memory, tokens, random.below(50));
    if (i % 100 == 0) memory.remove(random.below(50));
  }
  done.store(true);
  one.join();
  two.join();
  EXPECT_GT(found.load(), 0U);
}

}  // namespace
}  // namespace reprise::history_store_test
