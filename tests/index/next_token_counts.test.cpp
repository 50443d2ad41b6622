// SPDX-License-Identifier: Apache-2.0
#include "reprise/index/next_tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "reprise_testing/random.hpp"
#include "support/next_tokens.hpp"
#include "support/streams.hpp"

namespace reprise::next_token_counts_test {
namespace {

using detail::NextTokenWord;
using testing::check_counts;
using testing::check_next;
using testing::counts_after;
using testing::counts_in;
using testing::listed_counts;
using testing::NextTokenModel;
using testing::Random;
using testing::same_counts;
using testing::Stream;
using Tokens = std::vector<Token>;
using Listed = std::vector<NextTokens::CountedToken>;

NextTokens table_of(std::size_t bytes, std::uint64_t key = 7) {
  return NextTokens::make({.max_bytes = bytes, .key = key}).value();
}
Listed listed(const NextTokens::CountedTokens& next) { return {next.listed().begin(), next.listed().end()}; }

void add_times(NextTokens& table, Token last, Token next, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) table.add(std::array{last, next});
}

void expect_same(const NextTokens& table, const NextTokenModel& model) {
  ASSERT_EQ(table.evictions(), 0U) << "counts are exact only without evictions";
  for (const auto& [context, counts] : model.counts()) {
    const NextTokens::CountedTokens next = counts_after(table, context);
    std::uint32_t total = 0;
    for (const auto& [token, count] : counts) total += count;
    ASSERT_EQ(listed_counts(next), counts);
    ASSERT_EQ(next.total(), total);
    ASSERT_EQ(check_next(next), "");
  }
  ASSERT_EQ(check_counts(table), "");
}

TEST(NextTokenCounts, AreThoseOfANaiveReference) {
  for (const Stream stream : {Stream::random_small, Stream::period_1, Stream::period_2, Stream::period_3,
                              Stream::fibonacci, Stream::thue_morse, Stream::de_bruijn, Stream::all_distinct})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      NextTokens table = table_of(1 << 20, seed);
      NextTokenModel model;
      for (std::uint64_t text = 0; text < 3; ++text) {
        const Tokens tokens = testing::make_stream(stream, 200 + 100 * seed, 10 * seed + text);
        table.add(tokens);
        model.add(tokens);
      }
      SCOPED_TRACE(testing::name(stream));
      ASSERT_NO_FATAL_FAILURE(expect_same(table, model));
    }
}

TEST(NextTokenCounts, GoOnWhereTheyWere) {
  const Tokens tokens = testing::make_stream(Stream::random_small, 300, 4);
  Random random(1);
  for (int i = 0; i < 20; ++i) {
    NextTokens table = table_of(1 << 20);
    NextTokenModel model;
    model.add(tokens);
    for (std::size_t size = 0; size < tokens.size();) {
      const std::size_t more = std::min(tokens.size() - size, random.below(i < 10 ? 4 : 50));
      table.add(TokenSpan(tokens).first(size + more), size);
      size += more;
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(table, model));
  }
  NextTokens table = table_of(1 << 16);
  table.add(tokens, tokens.size());
  table.add(tokens, tokens.size() + 5);
  table.add(Tokens());
  EXPECT_EQ(table.after(tokens[0]).counts().total(), 0U);
}

/// Readers need not sort: lines are sorted after every change.
TEST(NextTokenCounts, KeepTheirLinesSorted) {
  testing::SplitMix random(7);
  NextTokens table = table_of(4 * 64);
  NextTokens other = table_of(4 * 64);
  for (int i = 0; i < 20'000; ++i) {
    NextTokens& changed = random.one_in(2) ? table : other;
    const auto last = static_cast<Token>(random.below(4));
    changed.add(std::array{last, testing::zipf_token(random, 12)});
    if (i % 500 == 499) {
      ASSERT_TRUE(table.merge(other));
    }
    for (std::size_t line = 0; line < table.lines(); ++line) {
      const NextTokens::Line words = counts_in(table, line);
      ASSERT_TRUE(std::is_sorted(words.begin(), words.end(),
                                 [](NextTokenWord a, NextTokenWord b) { return a.rank() > b.rank(); }));
    }
  }
}

/// Halving empties the `unlisted` word of a count of 1, which must stay the word of its context.
TEST(NextTokenLine, KeepsItsContextIfTheUnlistedWordIsHalvedToNothing) {
  reprise::detail::NextTokenLine line{};
  line[0] = NextTokenWord::unlisted(7, 1);
  for (Token token = 1; token < 8; ++token)
    line[static_cast<std::size_t>(token)] = NextTokenWord(7, token, NextTokenWord::most_count);
  reprise::detail::unlist(line, 3);
  EXPECT_EQ(line[0], NextTokenWord::unlisted(7, NextTokenWord::most_count / 2));
  EXPECT_TRUE(line[3].empty());
  for (const NextTokenWord word : line) EXPECT_TRUE(word.empty() || word.tag() == 7);
}

TEST(NextTokenCounts, AreHalvedTogetherWhenOneIsFull) {
  NextTokens table = table_of(64);
  add_times(table, 1, 10, 60'000);
  add_times(table, 1, 11, 30'000);
  add_times(table, 1, 12, 1);
  add_times(table, 2, 10, 500);
  add_times(table, 1, 10, 5'535);
  EXPECT_EQ(listed(table.after(1).counts()), (Listed{{10, 65'535}, {11, 30'000}, {12, 1}}));
  table.add(Tokens{1, 10});
  EXPECT_EQ(listed(table.after(1).counts()), (Listed{{10, 32'768}, {11, 15'000}})) << "65,535 / 2 + 1";
  EXPECT_EQ(listed(table.after(2).counts()), (Listed{{10, 500}})) << "another context keeps its counts";
  EXPECT_EQ(check_counts(table), "");
}

TEST(NextTokenCounts, OfTokensOutsideTheVocabularyAreRefused) {
  NextTokens table = NextTokens::make({.max_bytes = 1 << 12, .vocabulary = 100}).value();
  table.add(Tokens{1, 2, 100, 3, 4, -1, 5, 6, 7});
  EXPECT_EQ(listed(table.after(1).counts()), (Listed{{2, 1}}));
  EXPECT_TRUE(table.after(2).counts().empty());
  EXPECT_TRUE(table.after(100).counts().empty());
  EXPECT_TRUE(table.after(2, 100).counts().empty());
  EXPECT_EQ(listed(table.after(3).counts()), (Listed{{4, 1}}));
  EXPECT_TRUE(table.after(100, 3).counts().empty());
  EXPECT_TRUE(table.after(-1).counts().empty());
  EXPECT_TRUE(table.after(-1, 5).counts().empty());
  EXPECT_EQ(listed(table.after(5, 6).counts()), (Listed{{7, 1}}));

  NextTokens all = table_of(1 << 12);
  all.add(Tokens{0x7ffffffe, 0x7ffffffe, 0x7fffffff, 5});
  EXPECT_EQ(listed(all.after(0x7ffffffe).counts()), (Listed{{0x7ffffffe, 1}}));
  EXPECT_TRUE(all.after(0x7fffffff).counts().empty()) << "the largest token cannot be counted";
}

/// One context, and next tokens whose shares fall like 1 / rank. Every token with a share of 4% or more is listed at
/// the end, and its share is right within 5 percentage points.
TEST(NextTokenCounts, OfFrequentTokensSurviveEviction) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    testing::SplitMix random(seed);
    NextTokens table = table_of(64, seed);
    std::map<Token, std::uint32_t> truth;
    constexpr std::uint32_t total = 20'000;
    for (std::uint32_t i = 0; i < total; ++i) {
      const Token token = testing::zipf_token(random, 2000);
      table.add(std::array{Token{1}, token});
      ++truth[token];
    }
    EXPECT_GT(table.evictions(), 5'000U);
    const NextTokens::CountedTokens next = table.after(1).counts();
    auto found = listed_counts(next);
    for (const auto& [token, count] : truth) {
      const double share = static_cast<double>(count) / total;
      if (share < 0.04) break;  // tokens are ranks
      ASSERT_TRUE(found.contains(token)) << "token " << token << " with a share of " << share << ", seed " << seed;
      EXPECT_NEAR(static_cast<double>(found[token]) / next.total(), share, 0.05) << token << ", seed " << seed;
    }
  }
}

/// A table that is much too small for its text. Tokens that are frequent after frequent contexts stay listed first.
TEST(NextTokenCounts, OfFrequentContextsSurviveAmongRareOnes) {
  testing::SplitMix random(3);
  NextTokens table = table_of(1 << 14);  // 2,048 words
  for (int i = 0; i < 200'000; ++i) {
    const Token last = testing::zipf_token(random, 100'000);
    table.add(std::array{last, random.one_in(4) ? static_cast<Token>(random.below(100'000)) : last + 1});
  }
  int first = 0;
  for (Token last = 0; last < 100; ++last) {
    const NextTokens::CountedTokens next = table.after(last).counts();
    first += !next.empty() && next.listed()[0].token == last + 1 ? 1 : 0;
  }
  EXPECT_GE(first, 90);
}

/// All contexts in one line, any tokens: the work is one line, and the words stay valid.
TEST(NextTokenCounts, StayValidUnderAnyText) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{128}, std::size_t{1024}})
    for (const Stream stream : testing::all_streams) {
      const Tokens tokens = testing::with_extreme_ids(testing::make_stream(stream, 5'000, bytes));
      NextTokens table = table_of(bytes);
      for (std::size_t i = 0; i < tokens.size(); i += 100) {
        table.add(TokenSpan(tokens).first(std::min(i + 100, tokens.size())), i);
        ASSERT_EQ(check_counts(table), "") << testing::name(stream);
        for (std::size_t j = i; j + 1 < std::min(i + 100, tokens.size()); ++j) {
          ASSERT_EQ(check_next(table.after(tokens[j]).counts()), "");
          ASSERT_EQ(check_next(table.after(tokens[j], tokens[j + 1]).counts()), "");
        }
      }
    }
}

/// Returns words that a table could have, with few tags and tokens, and with counts of all sizes.
NextTokens::Line any_words(Random& random) {
  NextTokens::Line words{};
  for (NextTokenWord& word : words) {
    const auto tag = static_cast<std::uint16_t>(random.below(3));
    const std::uint32_t large = random.chance(50) ? NextTokenWord::most_count : 4;
    const auto count = static_cast<std::uint32_t>(1 + random.below(large));
    const NextTokenWord next = random.chance(15) ? NextTokenWord::unlisted(tag, count)
                                                 : NextTokenWord(tag, static_cast<Token>(random.below(12)), count);
    const auto same = [next](NextTokenWord other) { return other.same_key(next); };
    if (random.chance(90) && std::none_of(words.begin(), words.end(), same)) word = next;
  }
  detail::remove_unlisted_alone(words);
  return words;
}

/// Sums that are too large, totals without tokens, and evictions: the words stay valid, whatever they were. Counts of a
/// context are at most the sum of both lines.
TEST(NextTokenCounts, StayValidForAnyWords) {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    NextTokens table = table_of(64);
    const auto one = any_words(random);
    const auto two = any_words(random);
    table.merge_line(NextTokens::Part::counts, 0, one);
    table.merge_line(NextTokens::Part::counts, 0, two);
    ASSERT_EQ(check_counts(table), "") << i;
    std::uint64_t before = 0;
    std::uint64_t after = 0;
    for (const auto& words : {one, two})
      for (const NextTokenWord word : words) before += word.count();
    for (const NextTokenWord word : counts_in(table, 0)) after += word.count();
    ASSERT_LE(after, before) << i;
    ASSERT_GT(after, 0U) << i;
  }
}

TEST(NextTokenCounts, AreTheSameForTheSameTextOnEveryMachine) {
  NextTokens table = table_of(1 << 12, 5);
  Random random(1);
  Tokens tokens(20'000);
  for (Token& token : tokens) token = static_cast<Token>(random.below(1 + random.below(300)));
  table.add(tokens);
  std::uint64_t digest = 0;
  for (std::size_t line = 0; line < table.lines(); ++line)
    for (const NextTokenWord word : counts_in(table, line)) digest = testing::mix(digest ^ word.bits());
  EXPECT_EQ(digest, 17004958014015819016U);
  EXPECT_EQ(table.evictions(), 35'534U);
}

/// What is kept, evicted and halved where the words of two lines do not fit into one.
TEST(NextTokenCountsMerged, AreTheSameForTheSameWordsOnEveryMachine) {
  Random random(2);
  std::uint64_t digest = 0;
  for (int i = 0; i < 20'000; ++i) {
    NextTokens table = table_of(64);
    table.merge_line(NextTokens::Part::counts, 0, any_words(random));
    table.merge_line(NextTokens::Part::counts, 0, any_words(random));
    for (const NextTokenWord word : counts_in(table, 0)) digest = testing::mix(digest ^ word.bits());
  }
  EXPECT_EQ(digest, 16621037824579533527U);
}

TEST(NextTokenCounts, TakeTheirEvictionsWithThem) {
  NextTokens table = table_of(1 << 12);
  table.add(testing::make_stream(Stream::zipf, 5'000, 1));
  const std::uint64_t evictions = table.evictions();
  ASSERT_GT(evictions, 0U);
  EXPECT_EQ(table.copy().value().evictions(), evictions);
  NextTokens moved;
  moved = std::move(table);
  EXPECT_EQ(moved.evictions(), evictions);
  moved.clear();
  EXPECT_EQ(moved.evictions(), 0U);
}

TEST(NextTokenCountsMerged, AreTheSumOfBoth) {
  const Tokens one = testing::make_stream(Stream::random_small, 500, 1);
  const Tokens two = testing::make_stream(Stream::random_small, 700, 2);
  NextTokens first = table_of(1 << 18);
  NextTokens second = table_of(1 << 18);
  NextTokenModel model;
  first.add(one);
  second.add(two);
  model.add(one);
  model.add(two);
  ASSERT_TRUE(first.merge(second));
  ASSERT_NO_FATAL_FAILURE(expect_same(first, model));
  model.add(two);
  ASSERT_TRUE(first.merge(second));
  ASSERT_NO_FATAL_FAILURE(expect_same(first, model));
}

TEST(NextTokenCountsMerged, AreTheSameInBothDirections) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    NextTokens first = table_of(256);
    NextTokens second = table_of(256);
    first.add(testing::make_stream(Stream::zipf, 100 + 40 * seed, seed));
    second.add(testing::make_stream(Stream::zipf, 300, seed + 1000));
    auto again = second.copy().value();
    ASSERT_TRUE(second.merge(first));
    ASSERT_TRUE(first.merge(again));
    ASSERT_TRUE(same_counts(first, second)) << seed;
    ASSERT_EQ(check_counts(first), "");
  }
}

}  // namespace
}  // namespace reprise::next_token_counts_test
