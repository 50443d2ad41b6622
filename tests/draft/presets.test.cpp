// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/extras/token_table_drafter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/lent_context.hpp"
#include "support/naive_index.hpp"
#include "support/preset_rules.hpp"
#include "support/streams.hpp"

namespace reprise::presets_test {
namespace {

using testing::NaiveIndex;
using testing::Tokens;

template <LookupIndex Index = RollingHashIndex>
Tokens drafted(const PromptLookupOptions& options, const Tokens& context) {
  auto drafter = PromptLookupDrafter<Index>::make(options).value();
  drafter.begin(context);
  return testing::propose(drafter, context, {.max_nodes = 64}).tokens();
}

TEST(Presets, AreSettingsThatMakeAccepts) {
  for (const PromptLookupOptions& options : {presets::prompt_lookup(), presets::hugging_face(), presets::vllm(),
                                             presets::llama_cpp_simple(), presets::ds4()})
    EXPECT_TRUE(PromptLookupDrafter<>::make(options).has_value());
}

// --- All presets, against their rules written as plain loops ---

std::optional<Token> random_eos(testing::SplitMix& random) {
  if (random.one_in(3)) return {};
  return static_cast<Token>(random.below(3));
}

template <class Index>
class PresetRules : public ::testing::Test {};
using Indexes = ::testing::Types<NaiveIndex, RollingHashIndex, SuffixArrayIndex>;
TYPED_TEST_SUITE(PresetRules, Indexes);

TYPED_TEST(PresetRules, HoldOnTenThousandSmallContexts) {
  using Index = TypeParam;
  testing::SplitMix random(2024);
  std::array<std::size_t, 5> hits{};
  for (int i = 0; i < 10000; ++i) {
    const std::size_t vocabulary = random.between(1, 5);
    Tokens context(random.between(1, 40));
    for (Token& token : context) token = static_cast<Token>(random.below(vocabulary));
    const std::size_t n = random.between(1, 4);
    const std::size_t longest = n + random.below(4);
    const std::size_t k = random.below(11);
    const std::optional<Token> eos = random_eos(random);
    const auto n32 = static_cast<std::uint32_t>(n);
    const auto longest32 = static_cast<std::uint32_t>(longest);
    SCOPED_TRACE(::testing::Message() << "case " << i << ", n " << n << ", longest " << longest << ", k " << k
                                      << ", context " << ::testing::PrintToString(context));

    const std::array<Tokens, 5> expected = {testing::pld(context, n, k), testing::hugging_face(context, n, k),
                                            testing::vllm(context, n, longest, k), testing::ngram_simple(context, n, k),
                                            testing::ds4(context, n, k, eos)};
    ASSERT_EQ(drafted<Index>(presets::prompt_lookup(n32, k), context), expected[0]);
    ASSERT_EQ(drafted<Index>(presets::hugging_face(n32, k), context), expected[1]);
    ASSERT_EQ(drafted<Index>(presets::vllm(n32, longest32, k), context), expected[2]);
    ASSERT_EQ(drafted<Index>(presets::llama_cpp_simple(n32, k), context), expected[3]);
    ASSERT_EQ(drafted<Index>(presets::ds4(n32, k, eos), context), expected[4]);
    for (std::size_t p = 0; p < expected.size(); ++p) hits[p] += expected[p].empty() ? 0 : 1;
  }
  for (const std::size_t hit : hits) EXPECT_GT(hit, 1000U) << "too few contexts on which anything is drafted";
}

// --- Token tables, round by round ---

template <class Options>
void follow_ngram_mod(const Options& options_of, bool without_anchor, std::size_t n_min_of_theirs) {
  testing::SplitMix random(77);
  std::size_t hits = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t n = random.between(1, 6);
    const std::size_t n_min = n_min_of_theirs == 0 ? 0 : random.below(8);
    const std::size_t n_max = random.below(12);
    TokenTable table = TokenTable::make({.ngram = static_cast<std::uint32_t>(n), .bytes = 1 << 18}).value();
    const TokenTableDrafterOptions options = options_of(&table, n_min, n_max);
    TokenTableDrafter drafter(&table, options);
    testing::NgramMod rules{n, n_min, n_max, without_anchor};
    for (int sequence = 0; sequence < 3; ++sequence) {
      const Tokens text = testing::make_stream(testing::Stream::trace_like, 250, random.next(), random.between(2, 12));
      Tokens context(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(random.between(1, 80)));
      drafter.begin(context);
      rules.begin(context);
      for (std::size_t more = 1; more > 0;) {
        // If fewer tokens are sent than the original would send, the sent tokens are still a prefix of the original's.
        const std::size_t room = random.one_in(2) ? 64 : random.between(1, 12);
        const Tokens tokens = testing::propose(drafter, context, {.max_nodes = room}).tokens();
        const Tokens expected = testing::copy(rules.draft(context), 0, room);
        ASSERT_EQ(tokens, expected) << "case " << i << ", n " << n << ", after " << context.size();
        hits += tokens.empty() ? 0 : 1;
        more = std::min(text.size() - context.size(), random.between(1, 9));
        const TokenSpan next = TokenSpan(text).subspan(context.size(), more);
        context.insert(context.end(), next.begin(), next.end());
        drafter.observe(context, more, Origin::output);
      }
    }
  }
  EXPECT_GT(hits, 5000U) << "too few rounds in which anything is drafted";
}

TEST(LlamaCppMod, DraftsWhatItsRulesDraft) {
  follow_ngram_mod([](TokenTable* table, std::size_t n_min,
                      std::size_t n_max) { return presets::llama_cpp_mod(table, n_min, n_max); },
                   true, 1);
}
TEST(LlamaCppMod, HasItsDefaults) {
  EXPECT_EQ(presets::llama_cpp_mod_table().ngram, 24U);
  EXPECT_EQ(presets::llama_cpp_mod_table().bytes, std::size_t{16} << 20);
  const TokenTableDrafterOptions options = presets::llama_cpp_mod(nullptr);
  EXPECT_EQ(options.min_draft, 48U);
  EXPECT_EQ(options.max_draft, 64U);
  EXPECT_EQ(options.poor_rounds, 5U);
  EXPECT_EQ(options.poor_share, Probability::ratio(1, 4));
}
TEST(MlxLmMod, DraftsWhatItsRulesDraft) {
  follow_ngram_mod([](TokenTable* table, std::size_t, std::size_t n_max) { return presets::mlx_lm_mod(table, n_max); },
                   false, 0);
}
TEST(MlxLmMod, HasItsDefaults) {
  EXPECT_EQ(presets::mlx_lm_mod_table().ngram, 16U);
  EXPECT_EQ(presets::mlx_lm_mod_table().bytes, std::size_t{16} << 20);
  const TokenTableDrafterOptions options = presets::mlx_lm_mod(nullptr);
  EXPECT_EQ(options.max_draft, 3U);
  EXPECT_EQ(options.poor_rounds, 3U);
  EXPECT_EQ(options.poor_share, Probability::ratio(1, 2));
  EXPECT_EQ(presets::mlx_lm_gate().ngram, 3U);
  EXPECT_EQ(presets::mlx_lm_gate().threshold, Probability::ratio(2, 100));
}

}  // namespace
}  // namespace reprise::presets_test
