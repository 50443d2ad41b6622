// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/prompt_lookup_drafter.hpp"

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

}  // namespace
}  // namespace reprise::presets_test
