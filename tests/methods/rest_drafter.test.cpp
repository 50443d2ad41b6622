// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/rest_drafter.hpp"

#include <gmock/gmock.h>
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

#include "reprise/core/datastore.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/lossless.hpp"
#include "reprise_testing/random.hpp"
#include "support/lent_context.hpp"
#include "support/ranked_checks.hpp"
#include "support/ranked_rounds.hpp"
#include "support/transformer_engine.hpp"

namespace reprise::rest_drafter_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<Token>;
using Paths = std::vector<Tokens>;

const DraftBudget whole = {.max_nodes = RestDrafter::max_nodes};

/// A store of one text, which compares every place, and gives at most `run` tokens at a time.
class PlainStore {
 public:
  explicit PlainStore(Tokens tokens, std::size_t run = unlimited) : tokens_(std::move(tokens)), run_(run) {}

  [[nodiscard]] std::size_t find(TokenSpan suffix, std::span<StoreMatch> out) const noexcept {
    std::size_t found = 0;
    for (std::size_t length = std::min<std::size_t>(suffix.size(), 32); length > 0; --length)
      for (std::size_t next = length; next <= tokens_.size() && found < out.size(); ++next)
        if (agreement(next, suffix) == length)
          out[found++] = {next, static_cast<std::uint32_t>((std::uint64_t{1} << length) - 1)};
    return found;
  }
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    const std::size_t size = std::min({tokens_.size() - static_cast<std::size_t>(place), out.size(), run_});
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(place), size, out.begin());
    return {size, size == 0 ? no_place : place + size};
  }
  void touch(StorePlace) const noexcept { ADD_FAILURE() << "the published datastore never changes"; }

  [[nodiscard]] const Tokens& tokens() const { return tokens_; }

 private:
  [[nodiscard]] std::size_t agreement(std::size_t next, TokenSpan suffix) const {
    std::size_t length = 0;
    while (length < std::min<std::size_t>({next, suffix.size(), 32}) &&
           tokens_[next - 1 - length] == suffix[suffix.size() - 1 - length])
      ++length;
    return length;
  }

  Tokens tokens_;
  std::size_t run_;
};
static_assert(Datastore<PlainStore>);

Paths paths_of(const testing::Drafted& draft) {
  Paths paths;
  for (std::size_t i = 0; i < draft.nodes.size(); ++i)
    paths.push_back(testing::tokens_to(draft.view(), static_cast<NodeIndex>(i)));
  return paths;
}

testing::Drafted drafted(RestOptions options, const PlainStore& store, const Tokens& context,
                         const DraftBudget& budget = whole) {
  options.store = store;
  RestDrafter drafter = RestDrafter::make(options).value();
  drafter.begin(context);
  return testing::propose(drafter, context, budget);
}

Tokens random_text(testing::Random& random, std::size_t size, std::uint64_t vocabulary) {
  Tokens text(size);
  for (Token& token : text) token = static_cast<Token>(random.below(vocabulary));
  // Repeated passages, so that long suffixes are found at several places.
  for (int i = 0; i < 6 && size >= 40; ++i) {
    const std::size_t from = random.below(size - 30);
    const std::size_t to = random.below(size - 30);
    const Tokens passage(text.begin() + static_cast<std::ptrdiff_t>(from),
                         text.begin() + static_cast<std::ptrdiff_t>(from + 10 + random.below(20)));
    std::copy(passage.begin(), passage.end(), text.begin() + static_cast<std::ptrdiff_t>(to));
  }
  return text;
}

TEST(RestDrafter, DraftsTheMostFrequentContinuationsOfTheLongestSuffix) {
  // 1 2 is found four times, but 9 1 2 only twice.
  const PlainStore store({1, 2, 7, 0, 1, 2, 7, 0, 9, 1, 2, 5, 6, 0, 9, 1, 2, 5, 8});
  EXPECT_THAT(paths_of(drafted({.continuation = 2}, store, {4, 9, 1, 2})),
              ElementsAre(Tokens{5}, Tokens{5, 6}, Tokens{5, 8}));
  EXPECT_THAT(paths_of(drafted({.continuation = 2}, store, {4, 1, 2})),
              ElementsAre(Tokens{7}, Tokens{5}, Tokens{7, 0}, Tokens{5, 6}, Tokens{5, 8}));
  EXPECT_THAT(paths_of(drafted({.max_ngram = 2, .continuation = 1}, store, {9, 1, 2})),
              ElementsAre(Tokens{7}, Tokens{5}))
      << "only two tokens are looked up";
  const testing::Drafted draft = drafted({.continuation = 2}, store, {4, 9, 1, 2});
  EXPECT_EQ(draft.nodes[0].path_probability, Probability::one());
  EXPECT_EQ(draft.nodes[1].path_probability, Probability::ratio(1, 2));
  for (const DraftNode& node : draft.nodes) {
    EXPECT_EQ(node.source, DraftSource::store);
    EXPECT_EQ(node.match_length, 3);
  }
}

/// Drafts in 200 random texts, and in as many with the cut. Returns a digest of all drafts.
std::uint64_t digest_of_drafts(std::uint64_t seed, bool defaults) {
  testing::Random random(seed);
  std::uint64_t digest = 0;
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t vocabulary = 2 + random.below(i % 3 == 0 ? 40 : 5);
    const std::size_t matches = 1 + random.below(12);  // before the text: compilers order arguments differently
    const PlainStore store(random_text(random, random.below(400), vocabulary), matches);
    RestOptions options;
    if (!defaults) {
      options.max_ngram = 1 + random.below(32);
      options.min_ngram = 1 + random.below(options.max_ngram);
      options.places = 1 + random.below(i % 2 == 0 ? 8 : 400);
      options.continuation = 1 + random.below(20);
      options.nodes = 1 + random.below(RestDrafter::max_nodes);
    }
    Tokens context = random_text(random, random.below(40), vocabulary);
    if (!store.tokens().empty()) {  // often ends like a part of the text
      const std::size_t end = random.below(store.tokens().size());
      const std::size_t begin = end - std::min<std::size_t>(end, random.below(24));
      context.insert(context.end(), store.tokens().begin() + static_cast<std::ptrdiff_t>(begin),
                     store.tokens().begin() + static_cast<std::ptrdiff_t>(end));
    }
    for (const bool cut : {false, true}) {
      options.cut = cut;
      digest = testing::digest_of(drafted(options, store, context).nodes, digest);
    }
  }
  return digest;
}

// These drafts were once compared with those of plain loops over the text, and of a map of all paths.
TEST(RestDrafter, DraftsWhatItAlwaysDrafted) {
  EXPECT_EQ(digest_of_drafts(1, true), 9878595536068924593U);
  EXPECT_EQ(digest_of_drafts(2, false), 10217346540926842896U);
  EXPECT_EQ(digest_of_drafts(3, false), 6816456797083781290U);
}

TEST(RestDrafter, FollowsTheMostFrequentChildrenInAChain) {
  const PlainStore store({1, 2, 5, 6, 0, 1, 2, 5, 7, 0, 1, 2, 5, 7, 0, 1, 2, 4, 4, 4, 4, 1, 2, 4, 4, 1});
  EXPECT_THAT(paths_of(drafted({.continuation = 3}, store, {1, 2}, {.shape = DraftShape::chain})),
              ElementsAre(Tokens{5}, Tokens{5, 7}, Tokens{5, 7, 0}));
  EXPECT_THAT(paths_of(drafted({.continuation = 3}, store, {1, 2}, {.max_leaves = 1})),
              ElementsAre(Tokens{5}, Tokens{5, 7}, Tokens{5, 7, 0}));
}

// The example in the comment of RestDrafter.
TEST(RestDrafter, CutsTwoChainsOfTenTokensTo15Nodes) {
  Tokens text = {1, 2};
  for (Token token = 100; token < 110; ++token) text.push_back(token);
  text.insert(text.end(), {1, 2});
  for (Token token = 200; token < 210; ++token) text.push_back(token);
  const PlainStore store(text);
  EXPECT_EQ(drafted({}, store, {1, 2}).nodes.size(), 20U);
  const Paths cut = paths_of(drafted({.cut = true}, store, {1, 2}));
  ASSERT_EQ(cut.size(), 15U);
  EXPECT_EQ(cut.back(), (Tokens{100, 101, 102, 103, 104, 105, 106, 107}));
  EXPECT_EQ(drafted({.cut = true}, store, {100, 101}).nodes.size(), 10U) << "1 + 2 + ... + 10 is below 64";
  // A repeated token costs nothing.
  const PlainStore same(Tokens(100, 7));
  EXPECT_EQ(drafted({.continuation = 64, .cut = true}, same, {7, 7}).nodes.size(), 64U);
}

TEST(RestDrafter, DraftsFromAHistoryByTheMatchesThatItGives) {
  testing::Random random(3);
  HistoryStore history = HistoryStore::make({.max_bytes = 1 << 20}).value();
  for (int i = 0; i < 30; ++i) {
    history.begin_sequence(static_cast<SequenceTag>(i));
    history.append(random_text(random, 100, 6), Origin::output);
  }
  history.end_sequence();
  RestDrafter drafter = RestDrafter::make({.store = history}).value();
  drafter.begin({});
  std::size_t found = 0;
  for (int i = 0; i < 300; ++i) {
    const Tokens context = random_text(random, 20, 6);
    std::array<StoreMatch, 100> matches;
    const std::size_t size = history.find(TokenSpan(context).last(16), matches);
    const auto follows_a_match = [&](const Tokens& path, std::size_t length) {
      return std::any_of(matches.begin(), matches.begin() + size, [&](const StoreMatch& match) {
        std::array<Token, 10> text;
        const StoreRun run = history.read(match.next, text);
        return static_cast<std::size_t>(std::countr_one(match.agreements)) >= length && run.size >= path.size() &&
               std::equal(path.begin(), path.end(), text.begin());
      });
    };
    const testing::Drafted draft = testing::propose(drafter, context, whole);
    for (const Tokens& path : paths_of(draft)) ASSERT_TRUE(follows_a_match(path, draft.nodes[0].match_length));
    found += draft.nodes.size();
  }
  EXPECT_GT(found, 3'000U);
}

/// A store that breaks its contract: more matches than asked for, more tokens than there is room for, and places that
/// never end.
struct LyingStore {
  [[nodiscard]] std::size_t find(TokenSpan, std::span<StoreMatch> out) const noexcept {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = {i, i % 5 == 0 ? 0U : ~0U};
    return out.size() + 7;
  }
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    if (place % 7 == 0) return {0, place};
    out[0] = static_cast<Token>(place * 0x9e3779b9U & 0x7fffffffU);
    return {place % 3 == 0 ? out.size() + 9 : 1, place};
  }
  void touch(StorePlace) const noexcept {}
};

TEST(RestDrafter, SurvivesAStoreThatBreaksItsContract) {
  const LyingStore store;
  RestDrafter drafter = RestDrafter::make({.store = store, .places = 100}).value();
  drafter.begin({});
  const Tokens context = {1, 2, 3};
  const testing::Drafted draft = testing::propose(drafter, context, whole);
  EXPECT_FALSE(draft.malformed);
  EXPECT_EQ(draft.nodes.size(), 64U);
  EXPECT_EQ(draft.nodes.front().match_length, 3) << "no more than were looked up";
}

TEST(RestDrafter, DraftsNothingWithoutAStoreOrBeforeItBegins) {
  const Tokens context = {1, 2};
  RestDrafter without;
  without.begin(context);
  EXPECT_THAT(testing::propose(without, context).nodes, IsEmpty());
  EXPECT_EQ(without.memory_bytes(), 0U);
  const PlainStore store({1, 2, 3});
  RestDrafter fresh = RestDrafter::make({.store = store}).value();
  EXPECT_THAT(testing::propose(fresh, context).nodes, IsEmpty());
  fresh.begin(context);
  EXPECT_EQ(fresh.memory_bytes(), 5'000U * 84);
  RestDrafter copy = fresh;
  EXPECT_EQ(testing::propose(copy, context).tokens(), Tokens{3});
  EXPECT_EQ(testing::propose(fresh, context).tokens(), Tokens{3});
}

TEST(RestDrafter, KeepsTheContractOfAStrategy) {
  testing::Random random(4);
  const PlainStore store(random_text(random, 300, 6));
  for (const bool cut : {false, true})
    for (const DraftBudget& budget : {whole, DraftBudget{}, DraftBudget{.max_depth = 3}, DraftBudget{.max_leaves = 3},
                                      DraftBudget{.shape = DraftShape::chain}}) {
      testing::StrategyCheck check{.budget = budget};
      check.text = random_text(random, 200, 6);
      const RestOptions options{.store = store, .places = 100, .cut = cut};
      const auto report = testing::check_strategy([&] { return RestDrafter::make(options).value(); }, check);
      EXPECT_TRUE(report.passed()) << report.to_string();
    }
}

TEST(RestDrafter, CostsALosslessRunOfATransformerNoToken) {
  const testing::Transformer model;
  const Tokens prompt = {1, 2, 3, 4, 5};
  const auto text_of = [&] {
    const auto make = [&](TokenSpan tokens) { return testing::TransformerEngine(model, tokens, {}); };
    return testing::compare_lossless(make, prompt, {.max_tokens = 150}, RestDrafter()).drafted.output;
  };
  const PlainStore store(text_of());
  for (const std::size_t leaves : {std::size_t{1}, std::size_t{8}, unlimited}) {
    testing::TransformerOptions engine;
    engine.capabilities.max_leaves = leaves;
    const auto make = [&](TokenSpan tokens) { return testing::TransformerEngine(model, tokens, engine); };
    const auto report = testing::compare_lossless(make, prompt, {.max_tokens = 150, .draft = whole},
                                                  RestDrafter::make({.store = store}).value());
    EXPECT_TRUE(report.identical()) << report.message;
    EXPECT_GT(report.drafted.statistics.accepted, 100U);
  }
}

TEST(RestOptions, OutOfRangeAreRefused) {
  const auto message = [](const RestOptions& options) {
    const auto made = RestDrafter::make(options);
    return made ? std::string() : std::string(made.error().message);
  };
  EXPECT_EQ(message({.max_ngram = 0}), "max_ngram has to be between 1 and 32");
  EXPECT_EQ(message({.max_ngram = 33}), "max_ngram has to be between 1 and 32");
  EXPECT_EQ(message({.min_ngram = 0}), "min_ngram has to be between 1 and max_ngram");
  EXPECT_EQ(message({.max_ngram = 4, .min_ngram = 5}), "min_ngram has to be between 1 and max_ngram");
  EXPECT_EQ(message({.places = 0}), "places has to be between 1 and 65,536");
  EXPECT_EQ(message({.places = 65'537}), "places has to be between 1 and 65,536");
  EXPECT_EQ(message({.continuation = 0}), "continuation has to be between 1 and 64");
  EXPECT_EQ(message({.continuation = 65}), "continuation has to be between 1 and 64");
  EXPECT_EQ(message({.nodes = 0}), "nodes has to be between 1 and 64");
  EXPECT_EQ(message({.nodes = 65}), "nodes has to be between 1 and 64");
  EXPECT_EQ(message({.max_ngram = 32, .min_ngram = 32, .places = 65'536, .continuation = 64}), "");
  EXPECT_EQ(RestDrafter::make({.max_ngram = 4, .min_ngram = 5}).error().value, 5U);
  EXPECT_EQ(RestDrafter::make({.max_ngram = 4, .min_ngram = 5}).error().limit, 4U);
}

}  // namespace
}  // namespace reprise::rest_drafter_test
