// SPDX-License-Identifier: Apache-2.0
// NgramDrafter with a table of next tokens, which is itself tested in tests/index/next_tokens.test.cpp. The random
// worlds of ngram_digests.test.cpp cover what is drafted from a table, and what is learned of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::ngram_next_tokens_test {
namespace {

using detail::NextTokenEvidence;
using detail::NextTokenSource;

using Tokens = std::vector<Token>;

/// Returns `size` tokens below `vocabulary`, with repetition.
Tokens random_text(std::size_t size, std::size_t vocabulary, std::uint64_t seed) {
  testing::Random random(seed);
  Tokens text;
  for (std::size_t i = 0; i < size; ++i)
    text.push_back(random.below(3) == 0 || i < 9 ? static_cast<Token>(random.below(vocabulary)) : text[i - 8]);
  return text;
}

// --- NextTokenEvidence ---

TEST(NextTokenEvidence, OrdersClassesByShare) {
  for (const NextTokenSource source : {NextTokenSource::counts_after_two, NextTokenSource::counts_after_one}) {
    for (const std::uint32_t total : {1U, 3U, 10U, 100U, 65'535U}) {
      std::uint8_t before = 255;
      for (std::uint32_t count = 1; count <= total; count += std::max(1U, total / 50)) {
        const std::uint8_t known = NextTokenEvidence::CountClasses(source, total).of(count);
        EXPECT_GT(known, NextTokenEvidence::absent(source));
        EXPECT_LT(known, NextTokenEvidence::classes_in_all);
        EXPECT_LE(known, before) << "a larger share has a lower class";
        before = known;
      }
    }
    EXPECT_NE(NextTokenEvidence::CountClasses(source, 1).of(1), NextTokenEvidence::CountClasses(source, 100).of(100))
        << "a large total counts more";
  }
}

TEST(NextTokenEvidence, HasDifferentClassesForAllSources) {
  std::set<std::size_t> classes = {NextTokenEvidence::unknown};
  const auto add = [&](std::size_t known) { EXPECT_TRUE(classes.insert(known).second) << known; };
  for (std::size_t i = 0; i < NextTokenEvidence::sources; ++i) {
    const auto source = static_cast<NextTokenSource>(i);
    add(NextTokenEvidence::absent(source));
    if (i < 2) {
      std::set<std::size_t> counted;
      for (const std::uint32_t total : {1U, 2U, 5U, 20U, 65'535U})
        for (std::uint32_t count = 1; count <= total; ++count)
          counted.insert(NextTokenEvidence::CountClasses(source, total).of(count));
      for (const std::size_t known : counted) add(known);
      continue;
    }
    const bool has_carried = i < 4;
    if (has_carried) add(NextTokenEvidence::absent(source, true));
    for (std::size_t rank = 0; rank < Ranking::most; ++rank) {
      add(NextTokenEvidence::ranked(source, rank));
      if (has_carried) add(NextTokenEvidence::ranked(source, rank, true));
    }
  }
  EXPECT_LT(*classes.rbegin(), NextTokenEvidence::classes_in_all);
}

TEST(NextTokenEvidence, IsRankedByRankingsAlone) {
  NextTokenEvidence evidence;
  EXPECT_FALSE(evidence.known());
  evidence.set(NextTokenSource::counts_after_one,
               NextTokenEvidence::CountClasses(NextTokenSource::counts_after_one, 1).of(1));
  for (const auto source : {NextTokenSource::ranked_after_two, NextTokenSource::ranked_after_one})
    evidence.set(source, NextTokenEvidence::absent(source, true));
  EXPECT_FALSE(evidence.ranked());
  evidence.set(NextTokenSource::ranked_anchor, NextTokenEvidence::ranked(NextTokenSource::ranked_anchor, 7));
  EXPECT_TRUE(evidence.ranked());
}

// --- Drafts ---

TEST(NgramNextTokens, KeepTheRulesOfDraftsWithAnyTable) {
  NextTokens table = NextTokens::make({.max_bytes = 4096}).value();
  table.add(random_text(5000, 16, 1));  // full: contexts are evicted all the time
  NgramOptions options;
  options.next_tokens = &table;
  const testing::Report report = testing::check_strategy([&] { return NgramDrafter<>(options); });
  EXPECT_TRUE(report.passed()) << report.to_string();
}

}  // namespace
}  // namespace reprise::ngram_next_tokens_test
