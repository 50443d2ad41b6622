// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/prompt_lookup_drafter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/archetypes.hpp"
#include "support/fails.hpp"
#include "support/lent_context.hpp"
#include "support/naive_index.hpp"
#include "support/streams.hpp"

namespace reprise::prompt_lookup_drafter_test {
namespace {

using testing::NaiveIndex;
using Tokens = std::vector<Token>;
using Lengths = std::vector<std::uint32_t>;

static_assert(ReservableStrategy<PromptLookupDrafter<>> && MeasurableStrategy<PromptLookupDrafter<>>);
static_assert(DraftStrategy<PromptLookupDrafter<archetype::Index>>);
static_assert(!std::constructible_from<PromptLookupDrafter<>, PromptLookupOptions>, "settings can be refused");

template <LookupIndex Index = RollingHashIndex>
using Lent = testing::Lent<PromptLookupDrafter<Index>>;

template <class Index>
Tokens drafted_by(Lent<Index>& drafter, const DraftBudget& budget = {}) {
  return drafter.propose(budget, 128).tokens();
}

template <LookupIndex Index = RollingHashIndex>
Tokens drafted(const PromptLookupOptions& options, const Tokens& context, const DraftBudget& budget = {}) {
  Lent<Index> drafter{PromptLookupDrafter<Index>::make(options).value()};
  drafter.begin(context);
  return drafted_by(drafter, budget);
}

Lengths lengths(const NgramOrders& orders) { return {orders.begin(), orders.end()}; }

// --- For every index ---

template <class Index>
class CopyDrafterOver : public ::testing::Test {};
using Indexes = ::testing::Types<NaiveIndex, RollingHashIndex, SuffixArrayIndex>;
TYPED_TEST_SUITE(CopyDrafterOver, Indexes);

TYPED_TEST(CopyDrafterOver, DraftsNothingBeforeASequenceBegins) {
  Lent<TypeParam> drafter;
  EXPECT_EQ(drafted_by(drafter), Tokens());
}

// --- The rule, as a plain loop over the context ---

using Occurrence = PromptLookupOptions::Occurrence;

/// The nodes' tokens, and the agreement that they report (0: no draft).
struct Copy {
  Tokens tokens;
  std::size_t agreement = 0;
  friend bool operator==(const Copy&, const Copy&) = default;
};

/// Measures every occurrence in full, and every length.
Copy copy_by_rule(const PromptLookupOptions& options, const Tokens& context) {
  const std::size_t size = context.size();
  const auto agreement = [&](std::size_t end, std::size_t most) {
    std::size_t n = 0;
    while (n < most && n < end && context[end - 1 - n] == context[size - 1 - n]) ++n;
    return n;
  };
  const Lengths orders = lengths(lookup_orders(options));
  for (std::size_t i = orders.size(); i-- > 0;) {
    const std::size_t n = orders[i];
    std::vector<std::size_t> ends;
    for (std::size_t end = n; end < size; ++end)
      if (agreement(end, n) == n) ends.push_back(end);
    if (options.occurrence != Occurrence::earliest) std::reverse(ends.begin(), ends.end());
    ends.resize(std::min<std::size_t>(ends.size(), options.candidates));
    std::erase_if(ends, [&](std::size_t end) {
      return size - end < options.conditions.min_distance || (options.conditions.apart && size - end <= n) ||
             (options.conditions.never_from_start && end <= n);
    });
    std::size_t longest = 0;
    for (const std::size_t end : ends)
      longest = std::max(longest, agreement(end, options.extend ? options.max_ngram : n));
    std::erase_if(ends, [&](std::size_t end) { return agreement(end, longest) < longest; });
    const auto votes = [&](std::size_t end) {
      return std::count_if(ends.begin(), ends.end(), [&](std::size_t e) { return context[e] == context[end]; });
    };
    const auto chosen = options.occurrence == Occurrence::most_frequent
                            ? std::max_element(ends.begin(), ends.end(),
                                               [&](std::size_t a, std::size_t b) { return votes(a) < votes(b); })
                            : ends.begin();
    if (ends.empty() || size - *chosen < options.conditions.min_copy) continue;
    Copy copy{{}, longest};
    for (std::size_t k = 0; k < options.draft_length; ++k) {
      if (*chosen + k >= size && !options.copy_past_end) break;
      copy.tokens.push_back(*chosen + k < size ? context[*chosen + k] : copy.tokens[*chosen + k - size]);
    }
    return copy.tokens.empty() ? Copy() : copy;
  }
  return {};
}

PromptLookupOptions random_options(testing::SplitMix& random) {
  PromptLookupOptions options;
  options.extend = !random.one_in(4);
  options.min_ngram = static_cast<std::uint32_t>(random.between(1, 4));
  options.max_ngram = options.min_ngram + static_cast<std::uint32_t>(random.below(options.extend ? 29 : 5));
  options.occurrence = static_cast<Occurrence>(random.below(3));
  options.candidates = static_cast<std::uint32_t>(random.one_in(3) ? random.between(1, 3) : random.between(1, 64));
  options.draft_length = random.one_in(30) ? 0 : random.between(1, 12);
  options.copy_past_end = random.one_in(2);
  if (random.one_in(2)) {
    options.conditions.min_distance = random.between(1, 6);
    options.conditions.apart = random.one_in(2);
    options.conditions.min_copy = random.between(1, 6);
    options.conditions.never_from_start = random.one_in(2);
  }
  return options;
}

// The context grows and shrinks, and is never looked up anew: a cut leaves no trace.
TYPED_TEST(CopyDrafterOver, DraftsByTheRuleAsTheContextGrowsAndShrinks) {
  testing::SplitMix random(43);
  std::size_t drafts = 0;
  for (int i = 0; i < 600; ++i) {
    const PromptLookupOptions options = random_options(random);
    const Tokens text = testing::make_stream(testing::Stream::trace_like, 200, random.next(), random.between(2, 12));
    Lent<TypeParam> drafter{PromptLookupDrafter<TypeParam>::make(options).value()};
    drafter.begin(TokenSpan(text).first(random.between(1, 60)));
    for (int round = 0; round < 20; ++round) {
      const std::size_t size = drafter.context().size();
      if (random.one_in(4)) {
        drafter.truncate(size - random.below(size));
      } else {
        drafter.observe(
            TokenSpan(text).subspan(size).first(random.between(0, std::min<std::size_t>(text.size() - size, 12))),
            random.one_in(2) ? Origin::prompt : Origin::output);
      }
      const TokenSpan context = drafter.context();
      const std::vector<DraftNode> nodes = drafter.propose().nodes;
      Copy drafted;
      for (const DraftNode& node : nodes) {
        ASSERT_EQ(node.parent, static_cast<NodeIndex>(drafted.tokens.size()) - 1);
        ASSERT_EQ(node.path_probability, Probability::one());
        ASSERT_EQ(node.source, DraftSource::context);
        ASSERT_FALSE(node.auxiliary);
        drafted.tokens.push_back(node.token);
        drafted.agreement = node.match_length;
      }
      ASSERT_EQ(drafted, copy_by_rule(options, {context.begin(), context.end()}))
          << "case " << i << ", round " << round << ", context " << ::testing::PrintToString(context);
      drafts += nodes.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(drafts, 5500U);
}

/// An index that only records the options it was made with.
struct RecordingIndex : archetype::Index {
  explicit RecordingIndex(const IndexOptions& made_with) : archetype::Index(made_with), options(made_with) {}
  IndexOptions options;
};
static_assert(LookupIndex<RecordingIndex>);

TEST(PromptLookupOptions, ReachTheIndex) {
  PromptLookupOptions options;
  options.key = 42;
  options.max_bytes = 1000;
  options.min_ngram = 2;
  options.max_ngram = 4;
  options.extend = false;
  const auto made_with = [&] { return PromptLookupDrafter<RecordingIndex>::make(options).value().index().options; };
  EXPECT_EQ(made_with().key, 42U);
  EXPECT_EQ(made_with().max_bytes, 1000U);
  EXPECT_EQ(lengths(made_with().orders), (Lengths{2, 3, 4}));
  EXPECT_FALSE(made_with().earliest);
  options.occurrence = PromptLookupOptions::Occurrence::earliest;
  EXPECT_TRUE(made_with().earliest);
}

TEST(PromptLookupOptions, MaxBytesStopsIndexingAndDraftingUntilTheNextSequence) {
  PromptLookupOptions options;
  options.max_bytes = 8192;
  Lent<> drafter{PromptLookupDrafter<>::make(options).value()};
  drafter.begin(Tokens(100000, 1));
  EXPECT_TRUE(drafter->exhausted());
  EXPECT_EQ(drafted_by(drafter), Tokens());
  EXPECT_LE(drafter->memory_bytes(), options.max_bytes);
  drafter.begin(Tokens{1, 1});
  EXPECT_FALSE(drafter->exhausted());
  EXPECT_FALSE(drafted_by(drafter).empty());
}

// --- Budgets ---

TEST(PromptLookupDrafter, MeasuresItsMemory) {
  Lent<> drafter;
  drafter.reserve(1000);
  const std::size_t reserved = drafter->memory_bytes();
  EXPECT_GE(reserved, 1000 * sizeof(Token));
  drafter.begin(Tokens(1000, 1));
  EXPECT_EQ(drafter->memory_bytes(), reserved) << "reserve() made room for it";
}

// --- Settings ---

TEST(LookupOrders, AreAtMostTwoLengthsWithExtend) {
  const auto orders = [](std::uint32_t shortest, std::uint32_t longest) {
    PromptLookupOptions options;
    options.min_ngram = shortest;
    options.max_ngram = longest;
    return lookup_orders(options);
  };
  EXPECT_EQ(lengths(lookup_orders({})), (Lengths{1, 4})) << "the default";
  EXPECT_EQ(lengths(orders(1, 32)), (Lengths{1, 4}));
  EXPECT_EQ(lengths(orders(2, 4)), (Lengths{2}));
  EXPECT_EQ(lengths(orders(2, 5)), (Lengths{2, 5}));
  EXPECT_EQ(lengths(orders(32, 32)), (Lengths{32}));
}

TEST(LookupOrders, AreAllLengthsWithoutExtend) {
  PromptLookupOptions options;
  options.extend = false;
  options.min_ngram = 2;
  options.max_ngram = 5;
  EXPECT_EQ(lengths(lookup_orders(options)), (Lengths{2, 3, 4, 5}));
}

TEST(PromptLookupDrafter, IsNotMadeWithSettingsThatCannotWork) {
  const auto made_with = [](void (*change)(PromptLookupOptions&)) {
    PromptLookupOptions options;
    change(options);
    EXPECT_FALSE(PromptLookupDrafter<SuffixArrayIndex>::make(options).has_value()) << "with every index";
    return PromptLookupDrafter<>::make(options);
  };
  using Options = PromptLookupOptions;
  EXPECT_THAT(made_with([](Options& o) { o.min_ngram = 0; }),
              testing::refuses(0, 1, "min_ngram is 0: give it at least 1"));
  const char* const large = "max_ngram is too large: give it at most 32";
  EXPECT_THAT(made_with([](Options& o) { o.max_ngram = 33; }), testing::refuses(33, 32, large));
  EXPECT_THAT(made_with([](Options& o) { o.max_ngram = 4'000'000'000; }), testing::refuses(4'000'000'000, 32, large));
  EXPECT_THAT(made_with([](Options& o) { o.min_ngram = 17; }),
              testing::refuses(17, 16, "min_ngram is larger than max_ngram: lower"));
  EXPECT_THAT(made_with([](Options& o) { o.extend = false, o.max_ngram = 9; }),
              testing::refuses(9, 8, "too many n-gram lengths from min_ngram to max_ngram: give at most 8"));
  const char* const candidates = "candidates has to be between 1 and 64";
  EXPECT_THAT(made_with([](Options& o) { o.candidates = 0; }), testing::refuses(0, 1, candidates));
  EXPECT_THAT(made_with([](Options& o) { o.candidates = 65; }), testing::refuses(65, 64, candidates));
}

TEST(PromptLookupDrafter, IsMadeWithSettingsAtTheirLimits) {
  const auto accepted = [](const PromptLookupOptions& options) {
    return PromptLookupDrafter<>::make(options).has_value();
  };
  PromptLookupOptions options;
  options.min_ngram = 1;
  options.max_ngram = 32;
  options.candidates = 64;
  options.draft_length = 0;
  EXPECT_TRUE(accepted(options));
  options.min_ngram = 32;
  EXPECT_TRUE(accepted(options));
  options.extend = false;
  options.min_ngram = 25;
  EXPECT_TRUE(accepted(options)) << "eight lengths";
  options.candidates = 1;
  options.draft_length = unlimited;
  EXPECT_TRUE(accepted(options));
  options.min_ngram = options.max_ngram = 1;
  EXPECT_TRUE(accepted(options));
}

TEST(PromptLookupDrafter, HasADefaultThatMakeGivesToo) {
  const PromptLookupDrafter<> by_default;
  const auto made = PromptLookupDrafter<>::make();
  ASSERT_TRUE(made.has_value());
  const auto same = [&](auto member) { return by_default.options().*member == made->options().*member; };
  EXPECT_TRUE(same(&PromptLookupOptions::min_ngram) && same(&PromptLookupOptions::max_ngram) &&
              same(&PromptLookupOptions::extend) && same(&PromptLookupOptions::occurrence) &&
              same(&PromptLookupOptions::candidates) && same(&PromptLookupOptions::draft_length) &&
              same(&PromptLookupOptions::copy_past_end) && same(&PromptLookupOptions::key) &&
              same(&PromptLookupOptions::max_bytes));
  Lent<> lent{PromptLookupDrafter<>()};
  const Tokens context = {1, 2, 3, 4, 2, 3, 5, 1, 2, 3};
  lent.begin(context);
  EXPECT_EQ(drafted_by(lent), drafted({}, context));
}

}  // namespace
}  // namespace reprise::prompt_lookup_drafter_test
