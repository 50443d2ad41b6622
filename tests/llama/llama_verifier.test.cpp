// SPDX-License-Identifier: Apache-2.0
#include "llama_verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise_testing/check_verifier.hpp"
#include "reprise_testing/lossless.hpp"
#include "support/fails.hpp"
#include "support/hostile_strategy.hpp"
#include "support/llama_stand_in/small_context.hpp"
#include "support/llama_stand_in/stand_in.hpp"

// The adapter for llama.cpp, over a stand-in for llama.cpp.
namespace reprise::llama::llama_verifier_test {
namespace {

using llama_stand_in::Fault;
using llama_stand_in::settings;
using llama_stand_in::SmallContext;
using reprise::testing::check_verifier;
using reprise::testing::compare_lossless;
using reprise::testing::HostileStrategy;
using reprise::testing::Report;
using reprise::testing::Verdict;
using reprise::testing::VerifierCheck;
using ::testing::HasSubstr;

const std::vector<Token> prompt = {5, 14, 15, 9, 26, 5};

/// Returns a chain of a temperature and a seeded choice.
llama_sampler* make_sampler() {
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, llama_sampler_init_temp(1.2F));
  llama_sampler_chain_add(chain, llama_sampler_init_dist(7));
  return chain;
}

/// Makes verifiers over one context, one after the other.
struct Maker {
  const SmallContext* context = nullptr;
  bool sampled = false;
  std::size_t leaves = 1;
  llama_seq_id sequence = 0;

  LlamaVerifier operator()(TokenSpan tokens) const {
    LlamaOptions options;
    options.sampler = sampled ? make_sampler() : nullptr;
    options.leaves = leaves;
    options.sequence = sequence;
    auto verifier = LlamaVerifier::make(context->get(), options);
    EXPECT_TRUE(verifier) << verifier.error().message;
    EXPECT_TRUE(verifier->prefill(tokens.first(tokens.size() - 1)));
    return std::move(*verifier);
  }
};

VerifierCheck small(bool sampled = false) {
  VerifierCheck check;
  check.tokens = 24;
  check.sampled = sampled;
  return check;
}
void fail_next(LlamaVerifier&) { settings().failing_decode = settings().decodes + 1; }
Report check(const Maker& maker, const VerifierCheck& how) { return check_verifier(maker, prompt, how, fail_next); }

auto drafter() {
  PromptLookupOptions options;
  options.min_ngram = 1;
  return PromptLookupDrafter<>::make(options).value();
}
Limits limits(std::size_t tokens) {
  Limits limits;
  limits.max_tokens = tokens;
  return limits;
}

static_assert(VerifierWithCapabilities<LlamaVerifier> && TruncatableVerifier<LlamaVerifier> &&
              MarginVerifier<LlamaVerifier> && TreeVerifier<LlamaVerifier> && CheckpointVerifier<LlamaVerifier> &&
              TimedVerifier<LlamaVerifier> && TopKVerifier<LlamaVerifier>);
// A row that cannot fail to be shown makes no pass void, so a pass without a draft needs no saved state.
static_assert(noexcept(std::declval<LlamaVerifier&>().top_k(0)));

struct Kind {
  const char* name;
  const char* model;
  bool sampled = false;
  std::size_t leaves = 1;
  std::uint32_t n_ubatch = 512;
};
std::string name_of(const ::testing::TestParamInfo<Kind>& info) { return info.param.name; }

struct LlamaVerifiers : ::testing::TestWithParam<Kind> {
  static SmallContext context() {
    llama_context_params params = SmallContext::params();
    params.n_ubatch = GetParam().n_ubatch;
    return {SmallContext::small(GetParam().model), params};
  }
};
INSTANTIATE_TEST_SUITE_P(OfAllKinds, LlamaVerifiers,
                         ::testing::Values(Kind{"Greedy", "attention"}, Kind{"Sampled", "attention", true},
                                           Kind{"SampledTree", "attention", true, 8},
                                           Kind{"InSmallParts", "attention", false, 8, 3},
                                           Kind{"Recurrent", "recurrent"}, Kind{"RecurrentSampled", "recurrent", true}),
                         name_of);

TEST_P(LlamaVerifiers, AgreeWithThemselvesInAllThatTheContractSays) {
  const SmallContext context = this->context();
  const Report report = check({&context, GetParam().sampled, GetParam().leaves}, small(GetParam().sampled));
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}
TEST_P(LlamaVerifiers, RunNoTokenThatIsNone) {
  const SmallContext context = this->context();
  const Maker make{&context, GetParam().sampled, GetParam().leaves};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto report = compare_lossless(make, prompt, limits(60), HostileStrategy(seed, 48));
    EXPECT_TRUE(report.identical()) << report.message;
    EXPECT_TRUE(report.drafted.error.empty()) << report.drafted.error;
  }
  EXPECT_EQ(settings().refused_batches, 0U);
}
// Whichever call fails, and however, the generated tokens and the following ones must not change.
TEST_P(LlamaVerifiers, GoOnAfterAnyFailedPass) {
  const SmallContext context = this->context();
  const Maker make{&context, GetParam().sampled, GetParam().leaves};
  const auto plain = compare_lossless(make, prompt, limits(40), NoDrafter());
  for (const std::int32_t failure : {1, -1, 2, -3}) {
    std::size_t failed = 0;
    for (std::size_t at = 1; at <= 25; ++at) {
      settings().failing_decode = 0;
      LlamaVerifier verifier = make(prompt);
      Session session(drafter());
      settings().failing_decode = settings().decodes + at;
      settings().failure = failure;
      auto generation = generate(session, verifier, prompt, limits(40));
      ASSERT_EQ(!generation, settings().decodes >= settings().failing_decode) << at << " " << failure;
      if (!generation) {
        ++failed;
        EXPECT_EQ(generation.error().code, ErrorCode::verifier_failed);
        EXPECT_EQ(static_cast<std::int64_t>(generation.error().value), failure);
        EXPECT_FALSE(generation.error().message.empty());
        generation = generate(session, verifier, limits(40));
      }
      ASSERT_TRUE(generation) << at << " " << failure << ": " << generation.error().message;
      ASSERT_EQ(std::vector<Token>(generation->tokens.begin(), generation->tokens.end()), plain.plain.output)
          << "call " << at << " failed with " << failure;
    }
    EXPECT_GE(failed, 15U) << failure;
  }
}
TEST_P(LlamaVerifiers, PrefillAgainWhatFailed) {
  const SmallContext context = this->context();
  const Maker make{&context, GetParam().sampled, GetParam().leaves};
  const auto plain = compare_lossless(make, prompt, limits(20), NoDrafter());
  for (const std::int32_t failure : {1, -1, 2, -3}) {
    LlamaOptions options;
    options.sampler = GetParam().sampled ? make_sampler() : nullptr;
    options.leaves = GetParam().leaves;
    auto verifier = LlamaVerifier::make(context.get(), options);
    ASSERT_TRUE(verifier);
    settings().failing_decode = settings().decodes + 1;
    settings().failure = failure;
    const TokenSpan tokens = TokenSpan(prompt).first(prompt.size() - 1);
    EXPECT_FALSE(verifier->prefill(tokens));
    EXPECT_TRUE(verifier->cached().empty());
    const auto again = verifier->prefill(tokens);
    ASSERT_TRUE(again) << failure << ": " << again.error().message;
    Session session(drafter());
    const auto generation = generate(session, *verifier, prompt, limits(20));
    ASSERT_TRUE(generation) << generation.error().message;
    EXPECT_EQ(std::vector<Token>(generation->tokens.begin(), generation->tokens.end()), plain.plain.output) << failure;
  }
}
// A state that is not restored leaves the cache empty. Tokens that run on top of it would continue another text.
TEST(LlamaVerifier, RunsTheSequenceAgainWhereItsStateWasNotTakenBack) {
  for (const bool sampled : {false, true}) {
    const SmallContext context("recurrent");
    const Maker make{&context, sampled};
    const auto plain = compare_lossless(make, prompt, limits(40), NoDrafter());
    LlamaVerifier verifier = make(prompt);
    Session session(HostileStrategy(3, 48));
    settings().fault = Fault::state_not_restored;
    EXPECT_FALSE(generate(session, verifier, prompt, limits(40)));
    settings().fault = Fault::none;
    const auto generation = generate(session, verifier, limits(40));
    ASSERT_TRUE(generation) << generation.error().message;
    EXPECT_EQ(std::vector<Token>(generation->tokens.begin(), generation->tokens.end()), plain.plain.output) << sampled;
  }
}
TEST(LlamaVerifier, RunsNoTokenAgainThatIsCutOff) {
  const SmallContext context("recurrent");
  LlamaVerifier verifier = Maker{&context}(prompt);
  for (const std::size_t size : {3U, 0U}) {
    ASSERT_TRUE(verifier.snapshot());
    ASSERT_TRUE(verifier.verify(TokenSpan(prompt).last(1), 0));
    settings().fault = Fault::state_not_restored;
    ASSERT_FALSE(verifier.restore(0));
    settings().fault = Fault::none;
    const std::size_t before = settings().rows;
    ASSERT_TRUE(verifier.truncate(size));
    EXPECT_EQ(settings().rows, before + size);
    EXPECT_EQ(verifier.cached().size(), size);
  }
}
TEST(LlamaVerifier, TimesRestoringWithThePass) {
  const SmallContext context("recurrent");
  LlamaVerifier verifier = Maker{&context}(prompt);
  ASSERT_TRUE(verifier.snapshot());
  ASSERT_TRUE(verifier.verify(TokenSpan(prompt).last(1), 0));
  const auto verified = verifier.pass_time();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(verifier.restore(0));  // so often that a coarse clock shows it
  EXPECT_GT(verifier.pass_time(), verified);
}
// As many tokens as were in the cache when it was saved, but other ones.
TEST(LlamaVerifier, PutsNoStateOfOtherTokensBack) {
  const SmallContext context("recurrent");
  LlamaVerifier verifier = Maker{&context}(prompt);
  ASSERT_TRUE(verifier.snapshot());
  ASSERT_TRUE(verifier.truncate(0));
  const std::vector<Token> others = {30, 31, 30, 33, 34, 31};
  ASSERT_TRUE(verifier.prefill(TokenSpan(others).first(others.size() - 1)));
  const TokenSpan last = TokenSpan(others).last(1);
  settings().failing_decode = settings().decodes + 1;
  ASSERT_FALSE(verifier.verify(last, 0));
  const auto picks = verifier.verify(last, 0);
  ASSERT_TRUE(picks) << picks.error().message;
  const std::vector<float> logits(verifier.logits(0).begin(), verifier.logits(0).end());
  LlamaVerifier fresh = Maker{&context}(others);
  ASSERT_TRUE(fresh.verify(last, 0));
  EXPECT_EQ(std::vector<float>(fresh.logits(0).begin(), fresh.logits(0).end()), logits);
}
TEST(LlamaVerifier, RefusesMorePathsThanItHasSequencesFor) {
  const SmallContext context;
  LlamaVerifier other = Maker{&context, false, 1, 2}(prompt);
  LlamaVerifier verifier = Maker{&context, false, 2}(prompt);
  const std::vector<Token> batch = {prompt.back(), 5, 6, 7};
  const std::vector<NodeIndex> parents(3, anchor_parent);
  EXPECT_FALSE(verifier.verify_tree(batch, 3, parents));
  EXPECT_TRUE(verifier.verify(TokenSpan(batch).first(1), 0));
  EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 2) + 1, static_cast<llama_pos>(other.cached().size()));
  EXPECT_TRUE(other.verify(TokenSpan(batch).first(1), 0));
}
// A null row of logits would otherwise pick token 0.
TEST(LlamaVerifier, ChecksEveryAnswerOfTheLibrary) {
  const SmallContext context;
  const std::vector<Token> batch = {prompt.back(), 9, 30};
  const std::vector<NodeIndex> branches(2, anchor_parent);
  const auto works = [&](LlamaVerifier& verifier) {
    settings().fault = Fault::none;
    auto picks = verifier.verify(batch, 2);
    ASSERT_TRUE(picks) << picks.error().message;
    LlamaVerifier fresh = Maker{&context, false, 1, 5}(prompt);
    ASSERT_TRUE(fresh.verify(batch, 2));
    EXPECT_TRUE(std::ranges::equal(fresh.logits(2), verifier.logits(2)));
  };
  LlamaVerifier chain = Maker{&context}(prompt);
  settings().fault = Fault::no_logits;
  EXPECT_THAT(chain.verify(batch, 2), testing::fails(ErrorCode::verifier_failed, {}, {}, "llama_get_logits_ith"));
  works(chain);

  LlamaVerifier drawn = Maker{&context, true}(prompt);
  settings().fault = Fault::no_clone;
  const auto uncopied = drawn.verify(batch, 2);
  ASSERT_FALSE(uncopied);
  EXPECT_THAT(std::string(uncopied.error().message), HasSubstr("llama_sampler_clone"));
  works(drawn);

  LlamaVerifier tree = Maker{&context, false, 2}(prompt);
  settings().fault = Fault::copy_does_nothing;
  const auto unshared = tree.verify_tree(batch, 2, branches);
  ASSERT_FALSE(unshared);
  EXPECT_THAT(std::string(unshared.error().message), HasSubstr("llama_memory_seq_cp"));
  works(tree);
  settings().fault = Fault::none;
  ASSERT_TRUE(tree.verify_tree(batch, 2, branches));
  settings().fault = Fault::copy_does_nothing;
  const std::vector<std::size_t> first = {0, 1};  // the leaf of the first row is not leaf 0
  const auto uncommitted = tree.commit_rows(first);
  ASSERT_FALSE(uncommitted);
  EXPECT_THAT(std::string(uncommitted.error().message), HasSubstr("llama_memory_seq_cp"));
  EXPECT_EQ(tree.cached().size(), prompt.size() - 1);
  works(tree);

  const SmallContext recurrent("recurrent");
  LlamaVerifier saving = Maker{&recurrent}(prompt);
  settings().fault = Fault::state_not_saved;
  const auto unsaved = saving.snapshot();
  ASSERT_FALSE(unsaved);
  EXPECT_THAT(std::string(unsaved.error().message), HasSubstr("llama_state_seq_get_data_ext"));

  settings().fault = Fault::no_batch;
  EXPECT_THAT(LlamaVerifier::make(context.get(), {}), testing::fails(ErrorCode::out_of_memory));
  settings().fault = Fault::none;
}
TEST(LlamaVerifier, FreesWhatItOwns) {
  {
    const SmallContext context;
    LlamaVerifier verifier = Maker{&context, true}(prompt);
    LlamaVerifier moved = std::move(verifier);
    ASSERT_TRUE(moved.verify(TokenSpan(prompt).last(1), 0));
    LlamaOptions options;
    options.sampler = make_sampler();
    options.sequence = -1;
    EXPECT_FALSE(LlamaVerifier::make(context.get(), options));
  }
  EXPECT_EQ(settings().samplers, 0U);
  EXPECT_EQ(settings().contexts, 0U);
  EXPECT_EQ(settings().models, 0U);
}
TEST(LlamaVerifier, RefusesWhatCannotWorkWithASentence) {
  const auto sentence = [](const SmallContext& context, std::size_t leaves, llama_seq_id sequence = 0) {
    const auto verifier = LlamaVerifier::make(context.get(), {nullptr, sequence, leaves});
    if (verifier) return std::string("taken");
    EXPECT_EQ(verifier.error().code, ErrorCode::invalid_argument);
    return std::string(verifier.error().message);
  };
  const SmallContext attention;
  EXPECT_THAT(sentence(attention, 0), HasSubstr("n_seq_max"));
  EXPECT_THAT(sentence(attention, 13), HasSubstr("n_seq_max"));
  EXPECT_THAT(sentence(attention, 1, 12), HasSubstr("n_seq_max"));
  EXPECT_THAT(sentence(attention, 1, -1), HasSubstr("n_seq_max"));
  EXPECT_THAT(sentence(attention, std::numeric_limits<std::size_t>::max(), 2), HasSubstr("n_seq_max"));
  EXPECT_EQ(sentence(attention, 12), "taken");
  EXPECT_EQ(sentence(attention, 1, 11), "taken");
  EXPECT_THAT(sentence(SmallContext("recurrent"), 2), HasSubstr("one state"));
  EXPECT_THAT(sentence(SmallContext("encoder"), 1), HasSubstr("no KV cache"));
  llama_context_params params = SmallContext::params();
  params.kv_unified = false;
  const SmallContext apart(SmallContext::small("attention"), params);
  EXPECT_THAT(sentence(apart, 2), HasSubstr("kv_unified"));
  EXPECT_EQ(sentence(apart, 1), "taken");
}
TEST(LlamaVerifier, SaysWhatItCanDo) {
  llama_context_params params = SmallContext::params();
  params.n_batch = 40;
  params.n_ubatch = 20;
  const SmallContext context(SmallContext::small("attention"), params);
  const Capabilities tree = Maker{&context, false, 5}(prompt).capabilities();
  EXPECT_EQ(tree.max_rows, 20U);
  EXPECT_EQ(tree.max_context, 256U);
  EXPECT_EQ(tree.max_leaves, 5U);
  EXPECT_EQ(tree.rollback, Rollback::trim);
  EXPECT_FALSE(tree.deterministic);
  const SmallContext recurrent("recurrent");
  EXPECT_EQ(Maker{&recurrent}(prompt).capabilities().rollback, Rollback::snapshot);
}
TEST(LlamaVerifier, PrefillsPromptsThatAreLongerThanABatch) {
  llama_context_params params = SmallContext::params();
  const std::vector<Token> text(100, 7);
  const SmallContext whole(SmallContext::small("attention"), params);
  auto at_once = Maker{&whole}(text);
  const Token expected = (*at_once.verify(TokenSpan(text).last(1), 0))[0];
  params.n_batch = 16;
  const SmallContext parts(SmallContext::small("attention"), params);
  auto in_parts = Maker{&parts}(text);
  EXPECT_EQ(in_parts.cached().size(), 99U);
  EXPECT_EQ((*in_parts.verify(TokenSpan(text).last(1), 0))[0], expected);
  EXPECT_FALSE(in_parts.verify(text, 99));  // more rows than a batch has: an error, not an abort
}
TEST(LlamaVerifier, RefusesPromptsThatDoNotFit) {
  const SmallContext context;
  auto verifier = LlamaVerifier::make(context.get(), {});
  ASSERT_TRUE(verifier);
  const auto long_prompt = verifier->prefill(std::vector<Token>(300, 7));
  ASSERT_FALSE(long_prompt);
  EXPECT_THAT(std::string(long_prompt.error().message), HasSubstr("KV cache"));
  const auto no_token = verifier->prefill(std::vector<Token>{7, 48});
  ASSERT_FALSE(no_token);
  EXPECT_EQ(static_cast<std::int64_t>(no_token.error().value), -1);
  EXPECT_TRUE(verifier->cached().empty());
  EXPECT_TRUE(verifier->prefill(prompt));
}

// If the memory cannot remove rejected rows, the error says so, and nothing of the pass is committed.
TEST(LlamaVerifier, TellsWhenRejectedRowsAreNotRemoved) {
  for (const bool sampled : {false, true})
    for (const std::size_t leaves : {std::size_t{1}, std::size_t{4}}) {
      const SmallContext context;
      const Maker make{&context, sampled, leaves};
      const auto plain = compare_lossless(make, prompt, limits(30), NoDrafter());
      LlamaVerifier verifier = make(prompt);
      Session session(HostileStrategy(3, 48));
      settings().fault = Fault::rollback_refused;
      auto generation = generate(session, verifier, prompt, limits(30));
      ASSERT_FALSE(generation);
      EXPECT_EQ(generation.error().code, ErrorCode::verifier_failed);
      EXPECT_THAT(std::string(generation.error().message), HasSubstr("does not remove rejected rows"));
      EXPECT_EQ(verifier.cached().size() + 1, session.context().size());
      settings().fault = Fault::none;
      generation = generate(session, verifier, limits(30));
      ASSERT_TRUE(generation) << generation.error().message;
      const TokenSpan output = session.context().subspan(prompt.size());
      EXPECT_EQ(std::vector<Token>(output.begin(), output.end()), plain.plain.output);
    }
}

}  // namespace
}  // namespace reprise::llama::llama_verifier_test
