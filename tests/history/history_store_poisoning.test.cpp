// SPDX-License-Identifier: Apache-2.0
// The effect of an attacker who writes to the same memory on the hits of a victim, compared with the same number of
// random tokens. docs/security.md states these results, including the bad ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/history/history_store.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "support/histories.hpp"

namespace reprise::history_store_poisoning_test {
namespace {

using testing::Random;
using testing::remember;
using Tokens = std::vector<Token>;

constexpr std::size_t vocabulary = 50'000;
constexpr std::size_t room = 2048;  // capacity of the memory, in tokens
constexpr std::size_t segment = 32;
constexpr std::size_t context = 8;  // known tokens of the victim before a lookup
constexpr std::size_t victim_tokens = 64;
constexpr double margin = 0.01;

Tokens random_tokens(Random& random, std::size_t size) { return testing::random_tokens(random, size, vocabulary); }

/// Returns the share of every `step`-th position in the victim's text whose next token the memory predicts.
double hit_rate(const HistoryStore& memory, const Tokens& victim, std::size_t step) {
  std::size_t hits = 0;
  std::size_t asked = 0;
  for (std::size_t at = context; at < victim.size(); at += step) {
    std::array<HistoryStore::HistoryMatch, HistoryStore::most_matches> found;
    const std::size_t count = memory.find(TokenSpan(victim).first(at), found);
    ++asked;
    for (std::size_t i = 0; i < count; ++i) {
      if (!memory.word(found[i].next).is(victim[at])) continue;
      ++hits;
      break;
    }
  }
  return static_cast<double>(hits) / static_cast<double>(asked);
}

/// An attacker who writes `size` tokens.
struct Attacker {
  Random& random;
  HistoryStore& memory;
  const Tokens& victim;
  std::size_t size;

  void say(const Tokens& tokens, SequenceTag name = 666) const { remember(memory, tokens, name); }
  void say_random() const { say(random_tokens(random, size)); }

  /// Writes n-grams of each length in turn. They evict the victim's n-grams from the index if `key` is the memory's
  /// key.
  void aim(std::uint64_t key) const {
    const auto set_of = [&](TokenSpan ngram) {
      const std::size_t sets = memory.capacity() / (ngram.size() == 1 ? 64 : 16);
      detail::CyclicHash hash;
      for (const Token token : ngram) hash.advance(detail::token_hash(key, token));
      return (hash.value() >> 32) * sets >> 32;
    };
    Tokens said = random_tokens(random, context);
    for (std::size_t i = 0; said.size() < size; ++i) {
      const std::size_t n = HistoryStore::orders[i / 16 % 4];
      const std::size_t last = context + i / 64 % (victim.size() - context);
      const std::uint64_t aimed_at = set_of(TokenSpan(victim).subspan(last - n, n));
      said.push_back(0);
      do said.back() = static_cast<Token>(random.below(vocabulary));
      while (set_of(TokenSpan(said).last(n)) != aimed_at);
    }
    say(said);
  }

  /// Repeats the same few tokens.
  void say_periodic(std::size_t period) const {
    const Tokens word = random_tokens(random, period);
    Tokens said(size);
    for (std::size_t i = 0; i < size; ++i) said[i] = word[i % period];
    say(said);
  }

  /// Writes random tokens twice and reports all of them as used, so that they are not evicted next.
  void look_useful() const {
    const Tokens said = random_tokens(random, size / 2);
    for (int i = 0; i < 2; ++i) say(said);
    std::array<HistoryStore::HistoryMatch, HistoryStore::most_matches> found;
    for (std::size_t at = context; at < said.size(); at += context)
      if (memory.find(TokenSpan(said).first(at), found) > 0)
        for (int i = 0; i < 20; ++i) memory.touch(found[0].next);
  }

  void say_short_sequences(std::size_t length) const {
    for (std::size_t i = 0; i < size; i += length) say(random_tokens(random, length), i);
  }

  /// Repeats the victim's text with another next token at every `step`-th position.
  void contradict(std::size_t step) const {
    Tokens said;
    for (std::size_t at = context; said.size() < size; at = at + step < victim.size() ? at + step : context) {
      const TokenSpan end = TokenSpan(victim).subspan(at - context, context);
      said.insert(said.end(), end.begin(), end.end());
      said.push_back(static_cast<Token>(random.below(vocabulary)));
    }
    say(said);
  }
};

/// Returns the victim's hit rate after `size` tokens of an attacker: the mean over many keys and texts, in full
/// memories.
template <class Attack>
double hits_after(std::size_t size, Attack attack, std::size_t step = 1, std::uint64_t trials = 60) {
  double hits = 0;
  for (std::uint64_t trial = 0; trial < trials; ++trial) {
    Random random(trial);
    HistoryOptions options;
    options.max_bytes = HistoryStore::bytes_for(room);
    options.key = random.next();
    HistoryStore memory = *HistoryStore::make(options);
    remember(memory, random_tokens(random, memory.capacity()), 1);
    const Tokens victim = random_tokens(random, victim_tokens);
    remember(memory, victim, 2);
    remember(memory, random_tokens(random, memory.capacity() / 8), 1);
    attack(Attacker{random, memory, victim, size});
    hits += hit_rate(memory, victim, step);
  }
  return hits / static_cast<double>(trials);
}

double hits_after_random(std::size_t size, std::size_t step = 1) {
  return hits_after(
      size, [](const Attacker& attacker) { attacker.say_random(); }, step);
}

/// Sizes that do not yet make the victim's text the oldest; beyond that, any text evicts it.
constexpr std::array<std::size_t, 2> sizes = {room / 2, room * 3 / 4};

TEST(SharedMemoryPoisoning, RandomTokensTakeSomeHitsAndThoseOfAWholeMemoryAll) {
  EXPECT_EQ(hits_after_random(0), 1.0);
  EXPECT_GT(hits_after_random(room / 2), 0.97);
  EXPECT_LT(hits_after_random(room * 3 / 4), 0.97);
  EXPECT_EQ(hits_after_random(room), 0.0);
}

TEST(SharedMemoryPoisoning, WhoDoesNotKnowTheKeyTakesNoMoreHitsThanRandomTokensDo) {
  for (const std::size_t size : sizes) {
    const double by_random = hits_after_random(size);
    EXPECT_GE(hits_after(size, [](const Attacker& a) { a.aim(0x1234567); }), by_random - margin) << size;
    for (const std::size_t period : {1U, 3U, 100U})
      EXPECT_GE(hits_after(size, [&](const Attacker& a) { a.say_periodic(period); }), by_random - margin)
          << size << " tokens, of a period of " << period;
    EXPECT_GE(hits_after(size, [](const Attacker& a) { a.look_useful(); }), by_random - margin) << size;
  }
}

TEST(SharedMemoryPoisoning, WhoKnowsTheKeyTakesThemAll) {
  // Sixteen tokens for each of four n-grams at each position, in a memory that holds all of them.
  constexpr std::size_t size = 64 * victim_tokens;
  double hits = 0;
  double hits_without_aim = 0;
  for (std::uint64_t trial = 0; trial < 5; ++trial) {
    for (const bool aims : {false, true}) {
      Random random(trial);
      HistoryOptions options;
      options.max_bytes = HistoryStore::bytes_for(2 * size);
      HistoryStore memory = *HistoryStore::make(options);  // with the default key, which is public
      const Tokens victim = random_tokens(random, victim_tokens);
      remember(memory, victim, 2);
      const Attacker attacker{random, memory, victim, size};
      aims ? attacker.aim(HistoryOptions().key) : attacker.say_random();
      (aims ? hits : hits_without_aim) += hit_rate(memory, victim, 1) / 5;
    }
  }
  EXPECT_LT(hits, 0.01);
  EXPECT_GT(hits_without_aim, 0.99);
}

TEST(SharedMemoryPoisoning, AShortSequenceCountsAsAWholeSegment) {
  for (const std::size_t length : {1U, 8U, 16U}) {
    const std::size_t factor = segment / length;
    const auto short_ones = [&](const Attacker& a) { a.say_short_sequences(length); };
    for (const std::size_t taken : sizes)
      EXPECT_GE(hits_after(taken / factor, short_ones), hits_after_random(taken) - margin) << length << ", " << taken;
    EXPECT_EQ(hits_after(room / factor, short_ones), 0.0) << length;
    EXPECT_GT(hits_after_random(room / factor), 0.97) << length;
  }
}

TEST(SharedMemoryPoisoning, WhoSaysWhatTheVictimSaysWithAnotherEndingTakesTheHitsThere) {
  constexpr std::size_t step = 9;
  constexpr std::size_t places = (victim_tokens - context + step - 1) / step;
  constexpr std::size_t once = places * (context + 1);
  const auto contradict = [](const Attacker& a) { a.contradict(step); };
  EXPECT_GT(hits_after(6 * once, contradict, step), 0.95);
  EXPECT_EQ(hits_after(12 * once, contradict, step), 0.0);
  EXPECT_EQ(hits_after_random(12 * once, step), 1.0);
}

}  // namespace
}  // namespace reprise::history_store_poisoning_test
