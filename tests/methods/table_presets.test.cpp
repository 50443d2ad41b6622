// SPDX-License-Identifier: Apache-2.0
// The presets of token tables against the rules of llama.cpp's ngram-mod and mlx-lm's, written as plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise_methods/token_table_drafter.hpp"
#include "support/lent_context.hpp"
#include "support/preset_rules.hpp"
#include "support/streams.hpp"

namespace reprise::table_presets_test {
namespace {

using testing::Tokens;

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
}  // namespace reprise::table_presets_test
