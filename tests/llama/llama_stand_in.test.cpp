// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "support/llama_stand_in/small_context.hpp"
#include "support/llama_stand_in/stand_in.hpp"

// The stand-in must keep llama.cpp's contracts: tests of the adapter miss every fault that it accepts.
namespace reprise::llama_stand_in::llama_stand_in_test {
namespace {

using Scores = std::vector<float>;

Scores scores(const SmallContext& context, std::int32_t row) {
  const float* logits = llama_get_logits_ith(context.get(), row);
  return logits == nullptr ? Scores() : Scores(logits, logits + 48);
}
/// Returns the scores after a text that runs in one pass, in a context of its own.
Scores fresh(const char* kind, const std::vector<llama_token>& text) {
  const SmallContext context(kind);
  Rows rows;
  for (std::size_t i = 0; i < text.size(); ++i) rows.add(text[i], static_cast<llama_pos>(i));
  EXPECT_EQ(rows.decode(context), 0);
  return scores(context, -1);
}

struct LlamaStandIns : ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(OfAllKinds, LlamaStandIns, ::testing::Values("attention", "window", "recurrent", "hybrid"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(LlamaStandIns, ScoresATextTheSameInAnyParts) {
  const SmallContext context(GetParam());
  EXPECT_EQ(Rows().add(5, 0).add(6, 1).add(7, 2, {0}, false).decode(context), 0);
  EXPECT_EQ(scores(context, 0), fresh(GetParam(), {5}));
  EXPECT_EQ(scores(context, 1), fresh(GetParam(), {5, 6}));
  EXPECT_TRUE(scores(context, 2).empty());
  EXPECT_TRUE(scores(context, 3).empty());
  EXPECT_EQ(scores(context, -1), scores(context, 1));
  EXPECT_TRUE(scores(context, -3).empty());
  EXPECT_EQ(Rows().add(8, 3).decode(context), 0);
  EXPECT_EQ(scores(context, 0), fresh(GetParam(), {5, 6, 7, 8}));
  EXPECT_NE(scores(context, 0), fresh(GetParam(), {6, 5, 7, 8}));
}
TEST_P(LlamaStandIns, RefusesWhatIsNoBatchAndChangesNothing) {
  const SmallContext context(GetParam());
  ASSERT_EQ(Rows().add(5, 0).add(6, 1).decode(context), 0);
  EXPECT_EQ(Rows().decode(context), -1);
  EXPECT_EQ(Rows().add(-1, 2).decode(context), -1);
  EXPECT_EQ(Rows().add(48, 2).decode(context), -1);
  EXPECT_EQ(Rows().add(5, 2, {12}).decode(context), -1);
  EXPECT_EQ(Rows().add(5, 2, {-1}).decode(context), -1);
  EXPECT_EQ(Rows().add(5, 1).decode(context), -1);            // already there
  EXPECT_EQ(Rows().add(5, 3).decode(context), -1);            // a gap
  EXPECT_EQ(Rows().add(5, 2).add(5, 4).decode(context), -1);  // a gap within the batch
  EXPECT_EQ(Rows().add(5, 3).add(5, 2).decode(context), -1);  // in the wrong order
  EXPECT_EQ(Rows().add(5, 2, {0, 1}).decode(context), -1);    // the sequences have diverged
  EXPECT_EQ(Rows().add(5, 0, {1, 2}).add(5, 1, {1, 3}).add(5, 2, {2, 3}).decode(context), -1);
  EXPECT_EQ(settings().refused_batches, 11U);
  EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 0), 1);
  EXPECT_EQ(Rows().add(7, 2).decode(context), 0);
  EXPECT_EQ(scores(context, 0), fresh(GetParam(), {5, 6, 7}));
}
TEST_P(LlamaStandIns, KeepsSequencesApart) {
  const SmallContext context(GetParam());
  ASSERT_EQ(Rows().add(5, 0, {1}).add(9, 0, {3}).add(6, 1, {1}).add(10, 1, {3}).decode(context), 0);
  EXPECT_EQ(scores(context, 2), fresh(GetParam(), {5, 6}));
  EXPECT_EQ(scores(context, 3), fresh(GetParam(), {9, 10}));
  llama_memory_seq_cp(context.memory(), 1, 4, -1, -1);
  ASSERT_EQ(Rows().add(7, 2, {4}).decode(context), 0);
  EXPECT_EQ(scores(context, 0), fresh(GetParam(), {5, 6, 7}));
  llama_memory_seq_keep(context.memory(), 4);
  EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 1), -1);
  EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 4), 2);
  llama_memory_clear(context.memory(), true);
  EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 4), -1);
  EXPECT_EQ(used_cells(context.get()), 0U);
}
TEST_P(LlamaStandIns, SavesASequenceAndBringsItBack) {
  const SmallContext context(GetParam());
  ASSERT_EQ(Rows().add(5, 0).add(6, 1).decode(context), 0);
  for (const bool partial : {false, true}) {
    const llama_state_seq_flags flags = partial ? LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY : LLAMA_STATE_SEQ_FLAGS_NONE;
    std::vector<std::uint8_t> state(llama_state_seq_get_size_ext(context.get(), 0, flags));
    ASSERT_EQ(llama_state_seq_get_data_ext(context.get(), state.data(), state.size(), 0, flags), state.size());
    EXPECT_EQ(llama_state_seq_get_data_ext(context.get(), state.data(), state.size() - 1, 0, flags), 0U);
    ASSERT_EQ(Rows().add(9, 2).add(9, 3).decode(context), 0);
    EXPECT_EQ(llama_state_seq_set_data_ext(context.get(), state.data(), state.size(), 0, flags), state.size());
    EXPECT_TRUE(llama_memory_seq_rm(context.memory(), 0, 2, -1));
    ASSERT_EQ(Rows().add(7, 2).decode(context), 0);
    EXPECT_EQ(scores(context, 0), fresh(GetParam(), {5, 6, 7}));
    ASSERT_GT(llama_state_seq_set_data_ext(context.get(), state.data(), state.size(), 0, flags), 0U);
    EXPECT_TRUE(llama_memory_seq_rm(context.memory(), 0, 2, -1));
    const std::vector<std::uint8_t> half(state.begin(), state.end() - 1);
    EXPECT_EQ(llama_state_seq_set_data_ext(context.get(), state.data(), 0, 0, flags), 0U);
    if (partial) {
      EXPECT_EQ(llama_state_seq_set_data_ext(context.get(), half.data(), half.size(), 0, flags), 0U);
    }
  }
}
TEST_P(LlamaStandIns, FailsWhenToldAndOnlyThen) {
  const SmallContext context(GetParam());
  ASSERT_EQ(Rows().add(5, 0).decode(context), 0);
  for (const std::int32_t failure : {1, -1, 2, -3}) {
    settings().failing_decode = settings().decodes + 1;
    settings().failure = failure;
    EXPECT_EQ(Rows().add(6, 1).decode(context), failure);
    const bool recurs = std::string(GetParam()) == "recurrent" || std::string(GetParam()) == "hybrid";
    const bool stays = recurs && failure != 1 && failure != -1;  // no part of a state can be removed
    EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 0), stays ? 1 : 0) << failure;
    if (stays) return;
  }
  EXPECT_EQ(Rows().add(6, 1).decode(context), 0);
}
TEST(LlamaStandIn, ShowsATreeToEachRowAsItsSequencesSay) {
  const SmallContext context;
  ASSERT_EQ(Rows().add(5, 0).decode(context), 0);
  llama_memory_seq_cp(context.memory(), 0, 1, -1, -1);
  ASSERT_EQ(Rows().add(6, 1, {0, 1}).add(7, 2, {0}).add(8, 2, {1}).add(9, 3, {1}).decode(context), 0);
  EXPECT_EQ(scores(context, 1), fresh("attention", {5, 6, 7}));
  EXPECT_EQ(scores(context, 3), fresh("attention", {5, 6, 8, 9}));
  EXPECT_EQ(used_cells(context.get()), 5U);
  EXPECT_TRUE(llama_memory_seq_rm(context.memory(), 0, 2, -1));
  llama_memory_seq_cp(context.memory(), 1, 0, 2, -1);
  EXPECT_TRUE(llama_memory_seq_rm(context.memory(), 1, -1, -1));
  ASSERT_EQ(Rows().add(10, 4).decode(context), 0);
  EXPECT_EQ(scores(context, 0), fresh("attention", {5, 6, 8, 9, 10}));
}
TEST(LlamaStandIn, HasNoRoomForMoreThanItsCells) {
  const SmallContext context;
  ASSERT_EQ(llama_n_ctx(context.get()), 256U);
  for (llama_pos pos = 0; pos < 250; ++pos) ASSERT_EQ(Rows().add(5, pos).decode(context), 0);
  Rows seven;
  for (llama_pos pos = 250; pos < 257; ++pos) seven.add(5, pos);
  EXPECT_EQ(seven.decode(context), 1);
  EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 0), 249);
  EXPECT_EQ(used_cells(context.get()), 250U);
}
TEST(LlamaStandIn, SharesNoRowsBetweenCachesOrStates) {
  llama_context_params params = SmallContext::params();
  params.kv_unified = false;
  const SmallContext apart(SmallContext::small("attention"), params);
  EXPECT_EQ(llama_n_ctx_seq(apart.get()) * 12, llama_n_ctx(apart.get()));
  EXPECT_EQ(Rows().add(5, 0, {0, 1}).decode(apart), 1);
  const SmallContext recurrent("recurrent");
  EXPECT_EQ(Rows().add(5, 0, {0, 1}).decode(recurrent), 1);
}
TEST(LlamaStandIn, CannotRemovePartOfAState) {
  for (const char* kind : {"recurrent", "hybrid"}) {
    const SmallContext context(kind);
    ASSERT_EQ(Rows().add(5, 0).add(6, 1).decode(context), 0);
    EXPECT_FALSE(llama_memory_seq_rm(context.memory(), 0, 1, -1));
    EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 0), 1);
    EXPECT_TRUE(llama_memory_seq_rm(context.memory(), 0, 2, -1));
    EXPECT_TRUE(llama_memory_seq_rm(context.memory(), 0, -1, -1));
    EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 0), -1);
  }
  ModelText text = SmallContext::small("recurrent");
  text.rollback = true;
  llama_context_params params = SmallContext::params();
  params.n_rs_seq = 2;
  const SmallContext context(text, params);
  ASSERT_EQ(llama_n_rs_seq(context.get()), 2U);
  ASSERT_EQ(Rows().add(5, 0).add(6, 1).add(7, 2).add(8, 3).decode(context), 0);
  EXPECT_FALSE(llama_memory_seq_rm(context.memory(), 0, 1, -1));
  EXPECT_TRUE(llama_memory_seq_rm(context.memory(), 0, 2, -1));
  EXPECT_FALSE(llama_memory_seq_rm(context.memory(), 0, 1, -1));  // only once
  ASSERT_EQ(Rows().add(9, 2).decode(context), 0);
  EXPECT_EQ(scores(context, 0), fresh("recurrent", {5, 6, 9}));
}
TEST(LlamaStandIn, ForgetsWhatItsWindowHasPassedWhenItNeedsTheCells) {
  llama_context_params params = SmallContext::params(1);
  params.n_ctx = 1024;
  params.n_ubatch = 32;
  params.swa_full = false;
  const SmallContext context(SmallContext::small("window"), params);
  for (llama_pos pos = 0; pos < 256; ++pos) ASSERT_EQ(Rows().add(5, pos).decode(context), 0);
  EXPECT_EQ(llama_memory_seq_pos_min(context.memory(), 0), 0);
  for (llama_pos pos = 256; pos < 600; ++pos) ASSERT_EQ(Rows().add(5, pos).decode(context), 0);
  EXPECT_EQ(llama_memory_seq_pos_min(context.memory(), 0), 600 - 256);
  EXPECT_EQ(llama_model_n_swa(llama_get_model(context.get())), 16);
}
TEST(LlamaStandInDeathTest, EndsTheProcessWhereLlamaCppAsserts) {
  llama_context_params params = SmallContext::params();
  params.n_batch = 2;
  const SmallContext context(SmallContext::small("attention"), params);
  EXPECT_DEATH(Rows().add(5, 0).add(6, 1).add(7, 2).decode(context), "n_batch");
  EXPECT_DEATH(llama_memory_seq_rm(context.memory(), 12, -1, -1), "n_seq_max");
  EXPECT_DEATH(llama_sampler_sample(llama_sampler_init_greedy(), context.get(), 0), "logits != nullptr");
}

TEST(LlamaStandIn, SamplesFromWhatItAccepted) {
  const SmallContext context;
  ASSERT_EQ(Rows().add(5, 0).decode(context), 0);
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, llama_sampler_init_penalties(48, 4, 1, 100, 0));
  llama_sampler_chain_add(chain, llama_sampler_init_greedy());
  llama_sampler* copy = llama_sampler_clone(chain);
  const llama_token first = llama_sampler_sample(chain, context.get(), 0);
  const llama_token second = llama_sampler_sample(chain, context.get(), 0);
  EXPECT_NE(first, second);
  llama_sampler* later = llama_sampler_clone(chain);
  EXPECT_EQ(llama_sampler_sample(copy, context.get(), 0), first);
  EXPECT_EQ(llama_sampler_sample(later, context.get(), 0), llama_sampler_sample(chain, context.get(), 0));
  llama_sampler_reset(chain);
  EXPECT_EQ(llama_sampler_sample(chain, context.get(), 0), first);
  llama_sampler_copy(later, chain);
  EXPECT_EQ(llama_sampler_sample(later, context.get(), 0), llama_sampler_sample(chain, context.get(), 0));
  for (llama_sampler* sampler : {chain, copy, later}) llama_sampler_free(sampler);
  EXPECT_EQ(settings().samplers, 0U);
}
TEST(LlamaStandIn, DrawsByItsSeed) {
  const SmallContext context;
  ASSERT_EQ(Rows().add(5, 0).decode(context), 0);
  const auto draw = [&](std::uint32_t seed) {
    llama_sampler* dist = llama_sampler_init_dist(seed);
    std::vector<llama_token> drawn(20);
    for (llama_token& token : drawn) token = llama_sampler_sample(dist, context.get(), 0);
    llama_sampler_free(dist);
    return drawn;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(LlamaStandIn, ReadsModelsFromFiles) {
  static_cast<void>(SmallContext());  // nothing is logged
  const std::string path = ::testing::TempDir() + "stand-in.gguf";
  const auto load = [&](const std::string& text) {
    std::ofstream(path) << text;
    llama_model* model = llama_model_load_from_file(path.c_str(), llama_model_default_params());
    llama_model_free(model);
    return model != nullptr;
  };
  ModelText text;
  text.kind = "hybrid";
  EXPECT_TRUE(load(text.text()));
  for (const char* wrong :
       {"", "GGUF", "llama-stand-in 2\n", "llama-stand-in 1\nkind transformer\n", "llama-stand-in 1\nvocabulary many\n",
        "llama-stand-in 1\nvocabulary 3\n", "llama-stand-in 1\nlayers 3\n"})
    EXPECT_FALSE(load(wrong)) << wrong;
  std::remove(path.c_str());
  EXPECT_EQ(llama_model_load_from_file(path.c_str(), llama_model_default_params()), nullptr);
}
TEST(LlamaStandIn, GivesTextsBack) {
  const SmallContext context(ModelText(), SmallContext::params());
  const llama_vocab* vocab = llama_model_get_vocab(llama_get_model(context.get()));
  const std::string text = "<|im_start|>user\nGr\xC3\xBC\xC3\x9F dich\xFF<|im_end|>";
  std::vector<llama_token> tokens(100);
  const auto size = static_cast<std::int32_t>(text.size());
  EXPECT_LT(llama_tokenize(vocab, text.data(), size, tokens.data(), 3, true, true), -3);
  const std::int32_t count = llama_tokenize(vocab, text.data(), size, tokens.data(), 100, true, true);
  ASSERT_GT(count, 0);
  EXPECT_EQ(tokens[0], llama_vocab_bos(vocab));
  EXPECT_EQ(tokens[1], 2);
  EXPECT_TRUE(llama_vocab_is_eog(vocab, tokens[static_cast<std::size_t>(count) - 1]));
  std::array<char, 100> buffer{};
  const std::int32_t length = llama_detokenize(vocab, tokens.data(), count, buffer.data(), 100, true, true);
  EXPECT_EQ(std::string(buffer.data(), static_cast<std::size_t>(length)), text);
  EXPECT_EQ(llama_token_to_piece(vocab, 2, buffer.data(), 100, 0, false), 0);
  EXPECT_EQ(llama_token_to_piece(vocab, 2, buffer.data(), 3, 0, true), -12);
}
TEST(LlamaStandIn, AppliesTheChatTemplate) {
  const llama_chat_message message = {"user", "Hi"};
  std::array<char, 100> buffer{};
  const std::string expected = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n";
  const auto size = static_cast<std::int32_t>(expected.size());
  const char* known = "{{'<|im_start|>'}}";
  EXPECT_EQ(llama_chat_apply_template(known, &message, 1, true, buffer.data(), 100), size);
  EXPECT_EQ(std::string(buffer.data()), expected);
  EXPECT_EQ(llama_chat_apply_template(known, &message, 1, true, nullptr, 0), size);
  EXPECT_EQ(llama_chat_apply_template("{{ strange }}", &message, 1, true, buffer.data(), 100), -1);
  ModelText none;
  none.chat_template = "none";
  const SmallContext context(none, SmallContext::params());
  EXPECT_EQ(llama_model_chat_template(llama_get_model(context.get()), nullptr), nullptr);
}

}  // namespace
}  // namespace reprise::llama_stand_in::llama_stand_in_test
