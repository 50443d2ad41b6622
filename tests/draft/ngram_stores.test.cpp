// SPDX-License-Identifier: Apache-2.0
// NgramDrafter with datastores whose types it does not know. The random worlds of ngram_digests.test.cpp have up to
// four histories: they cover what is drafted from them, and what is learned of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/datastore.hpp"
#include "reprise/draft/detail/voters.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "support/histories.hpp"
#include "support/ngram_world.hpp"
#include "support/strategies.hpp"

namespace reprise::ngram_stores_test {
namespace {

using Tokens = std::vector<Token>;
using Nodes = std::vector<DraftNode>;
using testing::draft_of;
using testing::LentNgram;
using testing::remember;
using testing::tokens_of;

constexpr DraftBudget tree = {.max_nodes = 16, .shape = DraftShape::tree};
constexpr DraftBudget chain = {.max_nodes = 16, .shape = DraftShape::chain};

/// A store that finds places in its text by the last token, reads at most `run` tokens at a time, and records its
/// calls.
class Text {
 public:
  explicit Text(Tokens tokens, std::size_t run = unlimited) : tokens_(std::move(tokens)), run_(run) {}

  [[nodiscard]] std::size_t find(TokenSpan suffix, std::span<StoreMatch> out) const noexcept {
    asked = out.size();
    std::size_t found = 0;
    for (std::size_t i = tokens_.size(); i-- > 1 && found < out.size();) {
      std::uint32_t agreements = 0;
      for (std::size_t k = 0; k < std::min<std::size_t>({i, suffix.size(), 32}); ++k)
        agreements |= std::uint32_t{tokens_[i - 1 - k] == suffix[suffix.size() - 1 - k]} << k;
      if ((agreements & 1) != 0) out[found++] = {i, agreements};
    }
    return found + more_than_asked;
  }
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    const TokenSpan rest = TokenSpan(tokens_).subspan(std::min<std::size_t>(place, tokens_.size()));
    const std::size_t size = std::min({rest.size(), out.size(), run_});
    std::copy_n(rest.begin(), size, out.begin());
    read_tokens += size;
    ++reads;
    // If all the tokens read were wanted, the end is not reported here: place + size may have no more tokens.
    return {size, size == 0 ? no_place : place + size};
  }
  void touch(StorePlace place) const noexcept { touched.push_back(place); }

  mutable std::size_t asked = 0;
  mutable std::size_t reads = 0;
  mutable std::size_t read_tokens = 0;
  mutable std::vector<StorePlace> touched;
  std::size_t more_than_asked = 0;

 private:
  Tokens tokens_;
  std::size_t run_;
};
static_assert(Datastore<Text>);

Tokens run_of(std::size_t size, Token first) {
  Tokens tokens(size);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}
LentNgram<> drafter_of(const std::array<DatastoreRef, NgramOptions::max_stores>& stores, TokenSpan context) {
  NgramOptions options;
  options.stores = stores;
  LentNgram<> drafter(options);
  drafter.begin(context);
  return drafter;
}
/// The target accepts the first `accepted` tokens of the chain, then picks another token.
void accept(LentNgram<>& drafter, const Nodes& nodes, std::size_t accepted) {
  std::vector<NodeIndex> path(accepted);
  std::iota(path.begin(), path.end(), NodeIndex{0});
  drafter.feedback({DraftView(nodes, DraftKind::ordered), {}, path, Token{999'999}, Cut::none, {}});
}

// --- StoreText ---

TEST(StoreText, ReadsAnyDepthInAnyOrder) {
  const Tokens tokens = run_of(50, 100);
  for (const std::size_t run : {1U, 2U, 3U, 4U, 100U}) {
    const Text text(tokens, run);
    const DatastoreRef store = text;
    detail::StoreText reader(7);
    for (const std::size_t depth : {0U, 1U, 2U, 3U, 4U, 5U, 30U, 29U, 0U, 42U, 3U}) {
      ASSERT_TRUE(reader.read(store, depth)) << run;
      EXPECT_EQ(reader[depth], 107 + static_cast<Token>(depth)) << run;
    }
    EXPECT_FALSE(reader.read(store, 43)) << "the text ends";
    EXPECT_FALSE(reader.read(store, 60));
    ASSERT_TRUE(reader.read(store, 42));
    EXPECT_EQ(reader[42], 149);
    EXPECT_EQ(reader.begin(), 7U);
  }
}

TEST(StoreText, ReadsNoMoreThanAFewTokensAhead) {
  const Text text(run_of(50, 100));
  detail::StoreText reader(0);
  EXPECT_EQ(text.read_tokens, 0U) << "nothing was asked for";
  for (std::size_t depth = 0; depth < 20; ++depth) {
    EXPECT_TRUE(reader.read(text, depth) && reader.known(depth));
    EXPECT_LE(text.read_tokens, depth + 4);
  }
  EXPECT_EQ(text.reads, 5U);
}

// --- NgramDrafter ---

TEST(NgramStores, ShareThirtyTwoVotes) {
  const Text text({1, 2});
  for (const auto& [stores, share] : {std::pair{1U, 12U}, {2U, 12U}, {3U, 10U}, {4U, 8U}}) {
    std::array<DatastoreRef, NgramOptions::max_stores> list;
    for (std::size_t i = 0; i < stores; ++i) list[list.size() - 1 - i] = text;  // empty stores do not count
    LentNgram<> drafter = drafter_of(list, Tokens{5, 1});
    draft_of(drafter, tree);
    EXPECT_EQ(text.asked, share) << stores;
  }
}

TEST(NgramStores, VoteThirtyTwoTimesAtMostWhateverTheySay) {
  Tokens many;
  for (Token i = 0; i < 100; ++i) many.insert(many.end(), {1, i % 7 + 10});
  std::vector<Text> texts(NgramOptions::max_stores, Text(many));
  for (Text& text : texts) text.more_than_asked = 1000;
  LentNgram<> drafter = drafter_of({texts[0], texts[1], texts[2], texts[3]}, Tokens{1, 5, 1, 6, 1, 7, 1, 8, 1, 9, 1});
  const testing::Drafted drafted = drafter.propose({.max_nodes = 64}, 128);
  EXPECT_GT(drafted.nodes.size(), 7U);
  EXPECT_FALSE(drafted.malformed);
}

TEST(NgramStores, VoteUnlessTheContextAgreesForLonger) {
  const Tokens context = {1, 2, 3, 4, 9, 1, 2, 3};  // 4 followed the last three tokens
  const auto drafted = [&](Tokens stored) {
    const Text text(std::move(stored));
    LentNgram<> drafter = drafter_of({text}, context);
    const Nodes nodes = draft_of(drafter, tree);
    return std::count_if(nodes.begin(), nodes.end(), [](const DraftNode& node) { return node.token == 77; });
  };
  EXPECT_EQ(drafted({8, 2, 3, 77, 78}), 0) << "two tokens agree";
  EXPECT_EQ(drafted({8, 1, 2, 3, 77, 78}), 1) << "three";
  EXPECT_EQ(drafted({9, 1, 2, 3, 77, 78}), 1) << "four";

  // Lengths above 32 are equal: no store can show a longer agreement.
  Tokens twice = run_of(40, 100);
  const Tokens once = twice;
  twice.push_back(4);
  twice.insert(twice.end(), once.begin(), once.end());
  Tokens stored = once;
  stored.insert(stored.end(), {77, 78});
  const Text text(stored);
  LentNgram<> drafter = drafter_of({text}, twice);
  const Nodes nodes = draft_of(drafter, {.max_nodes = 16, .max_depth = 1});
  EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(), [](const DraftNode& node) { return node.token == 77; }));
}

TEST(NgramStores, AreReadOnlyAsFarAsTheyAreWanted) {
  const Text text(run_of(5000, 0));
  LentNgram<> drafter = drafter_of({text}, Tokens{7000, 50, 51});
  ASSERT_EQ(tokens_of(draft_of(drafter, {.max_nodes = 1})), Tokens{52});
  EXPECT_LE(text.read_tokens, 4U);
  const Nodes nodes = draft_of(drafter, chain);
  EXPECT_EQ(tokens_of(nodes), run_of(nodes.size(), 52));
  EXPECT_LE(text.read_tokens, 4 + nodes.size() + 4);
}

TEST(NgramStores, AreTouchedWhereTheirTextWasAccepted) {
  const Text right({1, 2, 3, 4, 5, 6});
  const Text wrong({1, 2, 9, 9, 9, 9});
  LentNgram<> drafter = drafter_of({wrong, right}, Tokens{3, 7000, 1, 2, 3});
  const Nodes nodes = draft_of(drafter, chain);
  ASSERT_GT(nodes.size(), 1U);
  ASSERT_EQ(nodes[0].token, 4);
  accept(drafter, nodes, 0);
  EXPECT_TRUE(right.touched.empty()) << "nothing was accepted";
  accept(drafter, draft_of(drafter, chain), 2);
  EXPECT_EQ(right.touched, std::vector<StorePlace>{3}) << "where the match goes on";
  EXPECT_TRUE(wrong.touched.empty());
}

// --- HistoryStore ---

HistoryStore memory_of(std::size_t segments) {
  return std::move(*HistoryStore::make({.max_bytes = HistoryStore::bytes_for(32 * segments)}));
}

TEST(NgramHistory, GivesTextThatWasUsedASecondChance) {
  for (const bool of_use : {false, true}) {
    HistoryStore memory = memory_of(4);
    remember(memory, run_of(32, 0), 1);
    if (of_use) {
      LentNgram<> drafter = drafter_of({memory}, Tokens{10, 11});
      const Nodes nodes = draft_of(drafter, chain);
      ASSERT_GT(nodes.size(), 1U);
      accept(drafter, nodes, 1);
    }
    remember(memory, run_of(32 * 4, 1000), 2);
    LentNgram<> later = drafter_of({memory}, Tokens{10, 11});
    const Nodes nodes = draft_of(later, chain);
    EXPECT_EQ(!nodes.empty() && nodes[0].token == 12, of_use);
    EXPECT_EQ(memory.counts().second_chances, of_use ? 1U : 0U);
  }
}

}  // namespace
}  // namespace reprise::ngram_stores_test
