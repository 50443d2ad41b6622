// SPDX-License-Identifier: Apache-2.0
// Every index gives the answers of the naive one after any appends, truncations, forks and clears.
// REPRISE_PROPERTY_SCALE multiplies the number of cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reprise/index/lookup_index.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/naive_index.hpp"
#include "support/property_cases.hpp"
#include "support/streams.hpp"

namespace index_equivalence_test {
namespace {

using reprise::Match;
using reprise::MatchLimits;
using reprise::Token;
using reprise::TokenSpan;
using Random = reprise::testing::SplitMix;
using reprise::testing::Stream;

std::size_t scale() {
  return std::max<std::size_t>(1, reprise::testing::environment_number("REPRISE_PROPERTY_SCALE", 1));
}

std::vector<Match> answer(const auto& index, const MatchLimits& limits, std::size_t room) {
  std::vector<Match> out(room);
  out.resize(index.find(limits, out));
  return out;
}

std::string text(const std::vector<Match>& matches) {
  std::string line;
  for (const Match& match : matches) line += std::to_string(match.end) + ":" + std::to_string(match.length) + " ";
  return line;
}

/// The three indexes over one sequence, and the sequence itself.
struct World {
  explicit World(const reprise::IndexOptions& options) : naive(options), rolling(options), suffixes(options) {}

  void append(TokenSpan span) {
    for (const Token token : span)  // a placeholder is indexed under a number of its own
      tokens.push_back(token < 0 ? -1 - static_cast<Token>(tokens.size()) : token);
    naive.append(span);
    rolling.append(span);
    suffixes.append(span);
  }
  void truncate(std::size_t size) {
    tokens.resize(std::min(tokens.size(), size));
    naive.truncate(size);
    rolling.truncate(size);
    suffixes.truncate(size);
  }
  void clear() {
    tokens.clear();
    naive.clear();
    rolling.clear();
    suffixes.clear();
  }
  void reserve(std::size_t size) {
    EXPECT_TRUE(naive.reserve(size));
    EXPECT_TRUE(rolling.reserve(size));
    EXPECT_TRUE(suffixes.reserve(size));
  }
  [[nodiscard]] bool same_tokens() const {
    const auto same = [this](TokenSpan span) {
      return std::equal(span.begin(), span.end(), tokens.begin(), tokens.end());
    };
    return same(naive.tokens()) && same(rolling.tokens()) && same(suffixes.tokens()) && !naive.exhausted() &&
           !rolling.exhausted() && !suffixes.exhausted();
  }

  std::vector<Token> tokens;
  reprise::testing::NaiveIndex naive;
  reprise::RollingHashIndex rolling;
  reprise::SuffixArrayIndex suffixes;
};

/// Asks for the last occurrence of a random n-gram, most of which are in the text. Returns false if it is not that of a
/// linear search.
bool latest_agrees(const World& world, const reprise::NgramOrders& orders, Random& random) {
  const std::vector<Token>& text = world.tokens;
  const std::size_t n = orders[random.below(orders.size())];
  if (text.size() < n) return world.rolling.latest(std::vector<Token>(n, 1)) == 0;
  const auto from = text.begin() + static_cast<std::ptrdiff_t>(random.below(text.size() - n + 1));
  std::vector<Token> ngram(from, from + static_cast<std::ptrdiff_t>(n));
  if (random.one_in(3)) ngram[random.below(n)] = text[random.below(text.size())];
  const auto found = std::find_end(text.begin(), text.end(), ngram.begin(), ngram.end());
  const std::size_t end = found == text.end() ? 0 : static_cast<std::size_t>(found - text.begin()) + n;
  EXPECT_EQ(world.rolling.latest(ngram), end);
  EXPECT_EQ(world.naive.latest(ngram), end);
  return world.rolling.latest(ngram) == end && world.naive.latest(ngram) == end;
}

/// Asks one random query. Returns false if the indexes differ.
bool agree(const World& world, const reprise::NgramOrders& orders, Random& random) {
  MatchLimits limits;
  limits.shortest = orders[random.below(orders.size())];
  limits.longest =
      static_cast<std::uint32_t>(random.one_in(8) ? random.between(0, 80) : random.between(limits.shortest, 32));
  limits.candidates = static_cast<std::uint32_t>(random.between(0, 20));
  limits.order = random.one_in(2) ? MatchLimits::Order::most_recent : MatchLimits::Order::earliest;
  const std::size_t room = random.one_in(4) ? random.below(20) : 20;
  const std::vector<Match> expected = answer(world.naive, limits, room);
  const std::vector<Match> hashed = answer(world.rolling, limits, room);
  const std::vector<Match> sorted = answer(world.suffixes, limits, room);
  if (hashed == expected && sorted == expected) return true;
  ADD_FAILURE() << "shortest " << limits.shortest << " longest " << limits.longest << " candidates "
                << limits.candidates << (limits.order == MatchLimits::Order::earliest ? " earliest" : " most recent")
                << " room " << room << " size " << world.tokens.size() << "\nnaive   " << text(expected) << "\nrolling "
                << text(hashed) << "\nsuffix  " << text(sorted);
  return false;
}

reprise::IndexOptions random_options(Random& random) {
  reprise::IndexOptions options;
  options.orders = {};
  const std::size_t count = random.between(1, 8);
  while (options.orders.size() < count)
    options.orders.add(static_cast<std::uint32_t>(random.between(1, random.one_in(2) ? 8 : 32)));
  options.earliest = true;
  options.key = random.next();
  return options;
}

/// Returns false at the first difference.
bool run_case(Stream kind, std::uint64_t seed, std::size_t length) {
  Random random(seed);
  const reprise::IndexOptions options = random_options(random);
  std::vector<Token> source = reprise::testing::make_stream(kind, length * 2, seed, 50);
  if (random.one_in(2)) source = reprise::testing::with_extreme_ids(std::move(source));
  std::vector<World> worlds;
  worlds.emplace_back(options);
  const std::size_t steps = 60;
  for (std::size_t step = 0; step < steps; ++step) {
    World& world = worlds[random.below(worlds.size())];
    const std::size_t size = world.tokens.size();
    switch (random.below(12)) {
      case 0:
        world.truncate(random.below(size + 3));
        break;
      case 1:
        world.truncate(size - std::min(size, random.below(8)));
        break;
      case 2:
        if (worlds.size() < 3) {
          worlds.push_back(World(world));
        } else {
          worlds[0] = worlds[random.below(worlds.size())];
        }
        break;
      case 3:
        if (random.one_in(6)) world.clear();
        if (random.one_in(6)) world.reserve(random.below(2 * length));
        break;
      default: {
        // Usually the stream continues at the end of the sequence; sometimes from elsewhere.
        const std::size_t most = random.one_in(3) ? length / 4 : 6;
        const std::size_t from = random.one_in(5) ? random.below(length) : size % length;
        if (size < 2 * length)
          world.append(TokenSpan(source).subspan(from, random.between(1, std::max<std::size_t>(most, 1))));
      }
    }
    for (const World& each : worlds) {
      if (!each.same_tokens()) {
        ADD_FAILURE() << "tokens differ at step " << step;
        return false;
      }
      if (!agree(each, options.orders, random) || !agree(each, options.orders, random)) return false;
      if (!latest_agrees(each, options.orders, random)) return false;
    }
  }
  return true;
}

class IndexEquivalence : public testing::TestWithParam<Stream> {};

TEST_P(IndexEquivalence, OfNaiveRollingHashAndSuffixArrayOnEveryQuery) {
  const std::size_t cases = 1000 * scale();
  for (std::size_t i = 0; i < cases; ++i) {
    const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(GetParam()) + i + (i << 32);
    const std::size_t length = i % 20 == 19 ? 2000 : 20 + i % 300;
    ASSERT_TRUE(run_case(GetParam(), seed, length)) << name(GetParam()) << " case " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllStreams, IndexEquivalence, testing::ValuesIn(reprise::testing::all_streams),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace index_equivalence_test
