// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/token_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "reprise_testing/random.hpp"
#include "support/fails.hpp"
#include "support/streams.hpp"

namespace reprise::token_table_test {
namespace {

using testing::Random;
using Tokens = std::vector<Token>;
using Found = std::optional<Token>;

TokenTable table_of(std::uint32_t ngram, std::size_t bytes = std::size_t{1} << 20,
                    std::uint64_t key = IndexOptions{}.key) {
  return TokenTable::make({.ngram = ngram, .bytes = bytes, .key = key}).value();
}
constexpr std::size_t overhead = 128;
constexpr std::size_t one_bucket = overhead + 32;

/// The naive reference: a table of unlimited size.
class NaiveTable {
 public:
  explicit NaiveTable(std::size_t n) : n_(n) {}
  void learn(const Tokens& tokens, std::size_t from = 0) {
    for (std::size_t i = std::max(from, n_); i < tokens.size(); ++i) next_[ngram_before(tokens, i)] = tokens[i];
  }
  [[nodiscard]] Found find(const Tokens& ngram) const {
    const auto found = next_.find(ngram);
    return found == next_.end() ? Found() : Found(found->second);
  }
  [[nodiscard]] std::size_t size() const { return next_.size(); }
  [[nodiscard]] const std::map<Tokens, Token>& all() const { return next_; }
  [[nodiscard]] Tokens ngram_before(const Tokens& tokens, std::size_t i) const {
    return {tokens.begin() + static_cast<std::ptrdiff_t>(i - n_), tokens.begin() + static_cast<std::ptrdiff_t>(i)};
  }

 private:
  std::size_t n_;
  std::map<Tokens, Token> next_;
};

/// Random n-grams, each with the token that follows it.
std::vector<Tokens> random_ngrams(std::size_t count, std::size_t n, Random& random) {
  std::vector<Tokens> made(count);
  for (Tokens& tokens : made)
    for (std::size_t i = 0; i <= n; ++i) tokens.push_back(static_cast<Token>(random.below(100'000)));
  return made;
}
/// The share of these n-grams for which the table returns the right next token.
template <class Table>
double hit_rate(const Table& table, const std::vector<Tokens>& ngrams) {
  std::size_t hits = 0;
  for (const Tokens& tokens : ngrams)
    hits += table.find(TokenSpan(tokens).first(tokens.size() - 1)) == tokens.back() ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(ngrams.size());
}

TEST(TokenTable, LearnsNothingFromTextsNoLongerThanAnNgram) {
  TokenTable table = table_of(3);
  table.learn(Tokens{});
  table.learn(Tokens{1, 2, 3});
  table.learn(Tokens{1, 2, 3, 4}, 4);
  table.learn(Tokens{1, 2, 3, 4}, 400);
  EXPECT_EQ(table.size(), 0U);
  table.learn(Tokens{1, 2, 3, 4});
  EXPECT_EQ(table.find(Tokens{2, 3}), Found()) << "too short";
  EXPECT_EQ(table.find(Tokens{}), Found());
}

TEST(TokenTable, RefusesWhatCannotWork) {
  for (const std::uint32_t n : {0U, 33U, 1000U}) {
    EXPECT_THAT(TokenTable::make({.ngram = n}), testing::fails(ErrorCode::invalid_argument, n));
  }
  for (const std::uint32_t n : {1U, 32U}) EXPECT_TRUE(TokenTable::make({.ngram = n, .bytes = one_bucket}));
  for (const std::size_t bytes : {std::size_t{0}, one_bucket - 1}) {
    EXPECT_THAT(TokenTable::make({.bytes = bytes}), testing::fails(ErrorCode::invalid_argument, {}, one_bucket));
  }
  // A table of the largest size: token_table_drafter.allocation.test.cpp. With 32 bits, no number is above.
  constexpr std::uint64_t most = std::uint64_t{1} << 37;
  if (sizeof(std::size_t) == 4) return;
  for (const auto bytes : {static_cast<std::size_t>(most + 1), unlimited})
    EXPECT_THAT(TokenTable::make({.bytes = bytes}), testing::refuses(bytes, most, "at most 128 GiB"));
}

TEST(TokenTable, StaysWithinItsBytes) {
  for (const std::size_t bytes : {one_bucket, one_bucket + 31, one_bucket + 32, std::size_t{100'000}}) {
    TokenTable table = table_of(4, bytes);
    EXPECT_LE(table.memory_bytes(), bytes);
    EXPECT_GT(table.memory_bytes() + 32, bytes);
    EXPECT_EQ(table.capacity(), (bytes - overhead) / 32 * 4);
    const std::size_t before = table.memory_bytes();
    table.learn(testing::make_stream(testing::Stream::zipf, 20'000, 1));
    EXPECT_EQ(table.memory_bytes(), before);
    EXPECT_LE(table.size(), table.capacity());
  }
}

TEST(TokenTable, AgreesWithAMapWhileThereIsRoom) {
  for (const std::uint32_t n : {1U, 2U, 3U, 8U, 16U, 24U, 31U, 32U}) {
    for (const testing::Stream stream : testing::all_streams) {
      TokenTable table = table_of(n);
      NaiveTable map(n);
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const Tokens text = testing::with_extreme_ids(testing::make_stream(stream, 700, seed, 50));
        table.learn(text);
        map.learn(text);
      }
      for (const auto& [ngram, token] : map.all()) ASSERT_EQ(table.find(ngram), Found(token)) << n;
      EXPECT_EQ(table.size(), map.size());
      const Tokens other = testing::make_stream(stream, 700, 99, 50);
      for (std::size_t i = n; i < other.size(); ++i)
        ASSERT_EQ(table.find(TokenSpan(other).first(i)), map.find(map.ngram_before(other, i))) << n;
    }
  }
}

TEST(TokenTable, LearnsInPiecesWhatItLearnsAtOnce) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const auto n = static_cast<std::uint32_t>(1 + random.below(32));
    const Tokens text = testing::make_stream(testing::Stream::trace_like, 300, random.next(), 30);
    TokenTable at_once = table_of(n, 4096);
    at_once.learn(text);
    TokenTable in_pieces = table_of(n, 4096);
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t to = std::min(text.size(), from + random.below(40));
      in_pieces.learn(TokenSpan(text).first(to), from);
      from = to;
    }
    EXPECT_EQ(in_pieces.counts(), at_once.counts());
    for (std::size_t i = n; i < text.size(); ++i)
      ASSERT_EQ(in_pieces.find(TokenSpan(text).first(i)), at_once.find(TokenSpan(text).first(i)));
  }
}

TEST(TokenTable, SaysNothingWrongWhenItIsTooSmall) {
  Random random(11);
  for (int round = 0; round < 100; ++round) {
    const auto n = static_cast<std::uint32_t>(1 + random.below(6));
    TokenTable table = table_of(n, overhead + 32 * (1 + random.below(20)));
    NaiveTable map(n);
    for (int texts = 0; texts < 5; ++texts) {
      const Tokens text = testing::make_stream(testing::Stream::trace_like, 400, random.next(), 20);
      table.learn(text);
      map.learn(text);
      EXPECT_EQ(table.find(TokenSpan(text).first(text.size() - 1)), Found(text.back())) << "what it has just learned";
    }
    std::size_t known = 0;
    for (const auto& [ngram, token] : map.all()) {
      const Found found = table.find(ngram);
      known += found ? 1 : 0;
      ASSERT_EQ(found.value_or(token), token);
    }
    EXPECT_EQ(known, table.size());
  }
}

TEST(TokenTable, OverwritesWhatWasLearnedLongestAgo) {
  // A single bucket, compared with a list of the last four n-grams.
  TokenTable table = table_of(1, one_bucket);
  ASSERT_EQ(table.capacity(), 4U);
  std::vector<std::pair<Token, Token>> recent;
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::pair<Token, Token> pair(static_cast<Token>(random.below(9)), static_cast<Token>(1 + random.below(3)));
    table.learn(Tokens{pair.first, pair.second});
    std::erase_if(recent, [&](const auto& other) { return other.first == pair.first; });
    recent.insert(recent.begin(), pair);
    recent.resize(std::min<std::size_t>(recent.size(), 4));
    for (Token token = 0; token < 9; ++token) {
      const auto known = std::find_if(recent.begin(), recent.end(), [&](const auto& p) { return p.first == token; });
      ASSERT_EQ(table.find(Tokens{token}), known == recent.end() ? Found() : Found(known->second)) << i;
    }
  }
}

TEST(TokenTable, KeepsFourFifthsOfAsManyAsItHasRoomFor) {
  TokenTable table = table_of(8, std::size_t{1} << 20);
  Random random(5);
  const std::vector<Tokens> ngrams = random_ngrams(static_cast<std::size_t>(table.capacity()), 8, random);
  for (const Tokens& tokens : ngrams) table.learn(tokens);
  EXPECT_NEAR(hit_rate(table, ngrams), 0.805, 0.01);
  EXPECT_NEAR(static_cast<double>(table.size()) / static_cast<double>(table.capacity()), 0.805, 0.01);
}

TEST(TokenTable, CountsWhatBecameOfNgrams) {
  TokenTable table = table_of(1, one_bucket);
  table.learn(Tokens{1, 2});
  table.learn(Tokens{1, 2});
  table.learn(Tokens{1, 3});
  EXPECT_EQ(table.counts(), (TokenTable::Counts{.added = 1, .renewed = 1, .changed = 1}));
  for (const Token token : {11, 12, 13}) table.learn(Tokens{token, 1});
  EXPECT_EQ(table.counts().evicted, 0U);
  EXPECT_EQ(table.size(), 4U);
  table.learn(Tokens{14, 1});
  EXPECT_EQ(table.counts(), (TokenTable::Counts{.added = 5, .renewed = 1, .changed = 1, .evicted = 1}));
  EXPECT_EQ(table.size(), 4U);
  EXPECT_EQ(table.find(Tokens{1}), Found());
}

TEST(TokenTable, IsNotConfusedByWhatReadsAsVacant) {
  // One in 256 n-grams that precede token 0 has an entry of zeros here.
  auto table = detail::BasicTokenTable<8>::make({.ngram = 1, .bytes = one_bucket}).value();
  for (Token token = 1; token < 3000; ++token) {
    table.learn(Tokens{token, token % 2});
    ASSERT_LE(table.size(), 4U) << token;
    ASSERT_GE(table.size(), std::min<std::uint64_t>(static_cast<std::uint64_t>(token) / 2, 4)) << token;
  }
}

TEST(TokenTable, ForgetsEverythingWhenAsked) {
  TokenTable table = table_of(2);
  table.learn(Tokens{1, 2, 3, 4});
  table.clear();
  EXPECT_EQ(table.find(Tokens{1, 2}), Found());
  EXPECT_EQ(table.size(), 0U);
  EXPECT_EQ(table.counts(), (TokenTable::Counts{.added = 2, .cleared = 1}));
  table.learn(Tokens{1, 2, 3});
  EXPECT_EQ(table.find(Tokens{1, 2}), Found(3));
  EXPECT_EQ(table.size(), 1U);
}

TEST(TokenTable, CanBeMoved) {
  TokenTable table = table_of(2);
  table.learn(Tokens{1, 2, 3});
  TokenTable moved = std::move(table);
  EXPECT_EQ(moved.find(Tokens{1, 2}), Found(3));
  TokenTable other = table_of(2);
  other = std::move(moved);
  EXPECT_EQ(other.find(Tokens{1, 2}), Found(3));
}

// --- Foreign tokens ---

/// The rate at which a table that is full to the last entry answers for n-grams that it never learned.
template <unsigned Bits>
double foreign_rate(std::size_t lookups) {
  auto table = detail::BasicTokenTable<Bits>::make({.ngram = 4, .bytes = std::size_t{64} << 10, .key = 77}).value();
  Random random(Bits);
  while (table.size() < table.capacity()) table.learn(random_ngrams(1, 4, random).front());
  EXPECT_GT(table.counts().evicted, table.capacity());
  std::size_t answered = 0;
  for (std::size_t i = 0; i < lookups; ++i) {
    Tokens ngram;
    for (int k = 0; k < 4; ++k) ngram.push_back(static_cast<Token>(1'000'000 + random.below(100'000)));
    answered += table.find(ngram) ? 1 : 0;
  }
  return static_cast<double>(answered) / static_cast<double>(lookups);
}

TEST(TokenTableWhenFull, ReturnsForeignTokensAsSeldomAsItsFingerprintsSay) {
  static_assert(TokenTable::foreign_bits == 30);
  // Within five standard deviations of 2^-f.
  EXPECT_NEAR(foreign_rate<8>(200'000), 0x1p-6, 5 * 0x1p-3 / 447);
  EXPECT_NEAR(foreign_rate<12>(1'000'000), 0x1p-10, 5 * 0x1p-5 / 1000);
  EXPECT_EQ(foreign_rate<32>(1'000'000), 0);
}

// --- Poisoning ---

/// A victim's n-grams after somebody else has written to the table.
class Poisoning : public ::testing::Test {
 protected:
  static constexpr std::uint32_t n = 4;
  static constexpr std::uint64_t secret = 0xfeedface12345678;
  static constexpr std::size_t bytes = std::size_t{1} << 20;
  Random random{42};
  std::vector<Tokens> victim = random_ngrams(2000, n, random);

  /// The victim's hit rate after an attack: the mean of eight tables with different keys.
  [[nodiscard]] double after(const std::vector<Tokens>& attack) const {
    double sum = 0;
    for (std::uint64_t i = 0; i < 8; ++i) {
      TokenTable table = table_of(n, bytes, secret + i);
      for (const Tokens& tokens : victim) table.learn(tokens);
      EXPECT_GT(hit_rate(table, victim), 0.99);
      for (const Tokens& tokens : attack) table.learn(tokens);
      sum += hit_rate(table, victim);
    }
    return sum / 8;
  }
  double after_random(std::size_t writes) {
    Random other(4711);
    return after(random_ngrams(writes, n, other));
  }
  /// N-grams that share a bucket with one of the victim's if the key is `guessed`.
  std::vector<Tokens> aimed(std::size_t writes, std::uint64_t guessed) {
    const TokenTable own = table_of(n, bytes, guessed);
    const auto bucket_of = [&](const Tokens& tokens) {
      return ((own.hash(TokenSpan(tokens).first(n)).value() >> 32) * (own.capacity() / 4)) >> 32;
    };
    std::vector<bool> wanted(static_cast<std::size_t>(own.capacity() / 4));
    for (const Tokens& tokens : victim) wanted[static_cast<std::size_t>(bucket_of(tokens))] = true;
    std::vector<Tokens> found;
    while (found.size() < writes) {
      Tokens tokens = random_ngrams(1, n, random).front();
      if (wanted[static_cast<std::size_t>(bucket_of(tokens))]) found.push_back(std::move(tokens));
    }
    return found;
  }
};

TEST_F(Poisoning, AimedWithoutTheKeyDoesNoMoreThanRandomWrites) {
  for (const std::size_t writes : {std::size_t{20'000}, std::size_t{60'000}}) {
    const double random_rate = after_random(writes);
    const double aimed_rate = after(aimed(writes, IndexOptions{}.key));
    RecordProperty("random_" + std::to_string(writes), std::to_string(random_rate));
    RecordProperty("aimed_" + std::to_string(writes), std::to_string(aimed_rate));
    EXPECT_GE(aimed_rate, random_rate - 0.01) << writes;
  }
}
TEST_F(Poisoning, AimedWithTheKeyTakesEverything) {
  // With the key, aiming works: the table whose key the attack uses loses everything, the other seven do not.
  const double random_rate = after_random(40'000);
  EXPECT_GT(random_rate, 0.9);
  EXPECT_NEAR(after(aimed(40'000, secret)), random_rate * 7 / 8, 0.01);
}
TEST_F(Poisoning, WithVariationsOfTheVictimsNgramsDoesNoMoreThanRandomWrites) {
  std::vector<Tokens> permuted;
  std::vector<Tokens> changed;
  std::vector<Tokens> shifted;
  for (const Tokens& tokens : victim) {
    Tokens order = tokens;
    std::sort(order.begin(), order.begin() + n);
    do {
      if (!std::equal(order.begin(), order.begin() + n, tokens.begin())) permuted.push_back(order);
    } while (std::next_permutation(order.begin(), order.begin() + n));
    for (std::size_t i = 0; i < 24; ++i) {
      Tokens other = tokens;
      other[i % n] += static_cast<Token>(1 + i);
      changed.push_back(other);
      other = tokens;
      for (std::size_t k = 0; k < n; ++k) other[k] += static_cast<Token>(1 + i);
      shifted.push_back(other);
    }
  }
  for (const std::vector<Tokens>* attack : {&permuted, &changed, &shifted})
    EXPECT_GE(after(*attack), after_random(attack->size()) - 0.01);
}
TEST_F(Poisoning, IsPossibleForThoseWhoKnowTheTextItself) {
  // As documented: private text needs a table of its own.
  std::vector<Tokens> same = victim;
  for (Tokens& tokens : same) ++tokens.back();
  EXPECT_EQ(after(same), 0);
}

// --- Threads ---

TEST(TokenTableThreads, ReadersSeeWholeEntriesWhileOneWrites) {
  // Token t is always followed by f(t) or g(t), whatever is written when. A reader must never see another token.
  constexpr std::uint32_t vocabulary = 1009;
  const auto follows = [](Token token, std::uint32_t factor) {
    return static_cast<Token>(1 + (static_cast<std::uint32_t>(token) * factor) % vocabulary);
  };
  TokenTable table =
      table_of(1, overhead + std::size_t{32} * 200);  // too small for all tokens, so entries are evicted and moved
  std::atomic<bool> done = false;
  std::atomic<std::size_t> wrong = 0;
  std::atomic<std::size_t> found = 0;
  const auto read = [&](std::uint64_t seed) {
    for (Random random(seed); !done.load();) {
      const auto token = static_cast<Token>(1 + random.below(vocabulary));
      const Found next = table.find(Tokens{token});
      if (!next) continue;
      ++found;
      if (*next != follows(token, 7) && *next != follows(token, 13)) ++wrong;
      if (table.size() > table.capacity()) ++wrong;
    }
  };
  std::thread first(read, 1);
  std::thread second(read, 2);
  Random random(3);
  for (int i = 0; i < 2000 || (found < 100'000 && i < 1'000'000); ++i) {  // until readers and writer have met
    const std::uint32_t factor = random.chance(50) ? 7 : 13;
    Tokens text = {static_cast<Token>(1 + random.below(vocabulary))};
    while (text.size() < 50) text.push_back(follows(text.back(), factor));
    table.learn(text);
    if (i % 500 == 0) table.clear();
  }
  done = true;
  first.join();
  second.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(found, 0U);
}

}  // namespace
}  // namespace reprise::token_table_test
