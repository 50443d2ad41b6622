// SPDX-License-Identifier: Apache-2.0
#include "llama_verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/draft/no_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/extras/token_recycling_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/testing/check_verifier.hpp"
#include "reprise/testing/lossless.hpp"
#include "support/hostile_strategy.hpp"
#include "support/llama_stand_in/small_context.hpp"
#include "support/llama_stand_in/stand_in.hpp"

// The adapter for llama.cpp, over a stand-in for llama.cpp.
namespace reprise::llama::llama_verifier_test {
namespace {

using llama_stand_in::Fault;
using llama_stand_in::ModelText;
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

/// Returns a chain of penalties, cuts, a temperature and a seeded choice.
llama_sampler* make_sampler(std::uint32_t seed = 7) {
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, llama_sampler_init_penalties(48, 8, 1.3F, 0.4F, 0.2F));
  llama_sampler_chain_add(chain, llama_sampler_init_top_k(20));
  llama_sampler_chain_add(chain, llama_sampler_init_top_p(0.95F, 1));
  llama_sampler_chain_add(chain, llama_sampler_init_min_p(0.02F, 1));
  llama_sampler_chain_add(chain, llama_sampler_init_temp(1.2F));
  llama_sampler_chain_add(chain, llama_sampler_init_dist(seed));
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

struct Kind {
  const char* name;
  const char* model;
  bool sampled = false;
  std::size_t leaves = 1;
  std::uint32_t n_ubatch = 512;
  bool unified = true;
};
std::string name_of(const ::testing::TestParamInfo<Kind>& info) { return info.param.name; }

/// The `count` likeliest tokens after `text`, likeliest first, by a pass without a draft and a full sort. The lowest id
/// wins a tie.
std::vector<Token> likeliest(const Maker& make, const std::vector<Token>& text, std::size_t count) {
  LlamaVerifier verifier = make(text);
  EXPECT_TRUE(verifier.verify(TokenSpan(text).last(1), 0));
  const std::span<const float> logits = verifier.logits(0);
  std::vector<Token> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::ranges::stable_sort(tokens, [&](Token a, Token b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  tokens.resize(std::min(count, tokens.size()));
  return tokens;
}
std::vector<Token> copy(TokenSpan tokens) { return {tokens.begin(), tokens.end()}; }

struct LlamaVerifiers : ::testing::TestWithParam<Kind> {
  static SmallContext context() {
    llama_context_params params = SmallContext::params();
    params.n_ubatch = GetParam().n_ubatch;
    params.kv_unified = GetParam().unified;
    return {SmallContext::small(GetParam().model), params};
  }
};
INSTANTIATE_TEST_SUITE_P(
    OfAllKinds, LlamaVerifiers,
    ::testing::Values(Kind{"Greedy", "attention"}, Kind{"Sampled", "attention", true},
                      Kind{"GreedyTree", "attention", false, 8}, Kind{"SampledTree", "attention", true, 8},
                      Kind{"TwoLeaves", "attention", false, 2}, Kind{"InSmallParts", "attention", false, 8, 3},
                      Kind{"OneCacheEach", "attention", false, 1, 512, false}, Kind{"Window", "window"},
                      Kind{"WindowTree", "window", false, 8}, Kind{"Recurrent", "recurrent"},
                      Kind{"RecurrentSampled", "recurrent", true}, Kind{"Hybrid", "hybrid"},
                      Kind{"HybridSampled", "hybrid", true}, Kind{"HybridInSmallParts", "hybrid", false, 1, 3}),
    name_of);

TEST_P(LlamaVerifiers, AgreeWithThemselvesInAllThatTheContractSays) {
  const SmallContext context = this->context();
  const Report report = check({&context, GetParam().sampled, GetParam().leaves}, small(GetParam().sampled));
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}
TEST_P(LlamaVerifiers, GenerateWithDraftsWhatTheyGenerateWithout) {
  const SmallContext context = this->context();
  const Maker make{&context, GetParam().sampled, GetParam().leaves};
  const auto copied = compare_lossless(make, prompt, limits(150), drafter());
  EXPECT_TRUE(copied.identical()) << copied.message;
  EXPECT_TRUE(copied.plain.error.empty()) << copied.plain.error;
  if (!GetParam().sampled) {
    EXPECT_LT(copied.drafted.statistics.passes, copied.plain.statistics.passes * 9 / 10);
  }
  const auto recycled = compare_lossless(make, prompt, limits(150), TokenRecyclingDrafter());
  EXPECT_TRUE(recycled.identical()) << recycled.message;
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
TEST_P(LlamaVerifiers, TellWhenTheCacheIsFullAndGoOnWhenThereIsRoom) {
  if (std::string(GetParam().model) == "recurrent" || !GetParam().unified)
    GTEST_SKIP() << "no other can fill its cache";
  const SmallContext context = this->context();
  const Maker make{&context, GetParam().sampled, GetParam().leaves};
  const auto plain = compare_lossless(make, prompt, limits(100), NoDrafter());
  LlamaVerifier verifier = make(prompt);
  auto other = LlamaVerifier::make(context.get(), {nullptr, 11, 1});
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->prefill(std::vector<Token>(200, 9)));
  Session session(drafter());
  const auto full = generate(session, verifier, prompt, limits(100));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::verifier_failed);
  EXPECT_THAT(std::string(full.error().message), HasSubstr("KV cache"));
  ASSERT_TRUE(other->truncate(0));
  const auto rest = generate(session, verifier, limits(100));
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(std::vector<Token>(rest->tokens.begin(), rest->tokens.end()), plain.plain.output);
}
TEST_P(LlamaVerifiers, DoNotDisturbEachOtherInOneContext) {
  const SmallContext context = this->context();
  const std::vector<Token> other_prompt = {30, 31, 30, 31, 30};
  const Maker make{&context, GetParam().sampled, std::min<std::size_t>(GetParam().leaves, 6)};
  Maker make_other = make;
  make_other.sequence = 6;
  const auto plain = compare_lossless(make, prompt, limits(50), NoDrafter());
  const auto plain_other = compare_lossless(make_other, other_prompt, limits(50), NoDrafter());
  LlamaVerifier verifier = make(prompt);
  LlamaVerifier other = make_other(other_prompt);
  Session session(drafter());
  Session session_other(drafter());
  ASSERT_TRUE(generate(session, verifier, prompt, limits(1)));
  ASSERT_TRUE(generate(session_other, other, other_prompt, limits(1)));
  for (std::size_t tokens = 2; tokens <= 50; tokens += 3) {
    ASSERT_TRUE(generate(session, verifier, limits(tokens)));
    ASSERT_TRUE(generate(session_other, other, limits(tokens)));
  }
  ASSERT_TRUE(generate(session, verifier, limits(50)));
  ASSERT_TRUE(generate(session_other, other, limits(50)));
  EXPECT_EQ(std::vector<Token>(session.output().begin(), session.output().end()), plain.plain.output);
  EXPECT_EQ(std::vector<Token>(session_other.output().begin(), session_other.output().end()), plain_other.plain.output);
}
TEST_P(LlamaVerifiers, ShowTheLikeliestTokensOfEveryRowWhetherAcceptedOrNot) {
  const SmallContext context = this->context();
  const Maker make{&context, GetParam().sampled, GetParam().leaves};
  const bool tree = GetParam().leaves > 1 && GetParam().n_ubatch > 3;
  // A tree: 9 follows the anchor, 30 and 31 follow 9. A chain: 9, 30.
  const std::vector<NodeIndex> parents =
      tree ? std::vector<NodeIndex>{anchor_parent, 0, 0} : std::vector<NodeIndex>{anchor_parent, 0};
  std::vector<std::vector<Token>> paths = {{}, {9}, {9, 30}, {9, 31}};
  paths.resize(parents.size() + 1);
  std::vector<Token> batch = {prompt.back()};
  for (std::size_t row = 1; row < paths.size(); ++row) batch.push_back(paths[row].back());
  std::vector<std::vector<Token>> expected;
  for (const std::vector<Token>& path : paths) {
    std::vector<Token> text = prompt;
    text.insert(text.end(), path.begin(), path.end());
    expected.push_back(likeliest(make, text, 8));
    for (std::size_t i = 0; i + 1 < expected.size(); ++i) ASSERT_NE(expected[i], expected.back()) << "rows are alike";
  }
  LlamaVerifier verifier = make(prompt);
  ASSERT_TRUE(verifier.snapshot());
  ASSERT_TRUE(tree ? verifier.verify_tree(batch, parents.size(), parents) : verifier.verify(batch, parents.size()));
  const Token* const memory = verifier.top_k(0).data();
  for (std::size_t i = paths.size(); i-- > 0;) {  // in any order
    EXPECT_EQ(copy(verifier.top_k(i)), expected[i]) << "row " << i;
    EXPECT_EQ(verifier.top_k(i).data(), memory) << "no memory of its own for a row";
  }
}
TEST_P(LlamaVerifiers, LeaveNothingInTheSequencesOfOtherLeaves) {
  const SmallContext context = this->context();
  LlamaVerifier verifier = Maker{&context, GetParam().sampled, GetParam().leaves}(prompt);
  Session session{TokenRecyclingDrafter()};
  ASSERT_TRUE(generate(session, verifier, prompt, limits(60)));
  for (llama_seq_id sequence = 1; sequence < 12; ++sequence)
    EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), sequence), -1) << sequence;
  EXPECT_EQ(llama_memory_seq_pos_max(context.memory(), 0) + 1, static_cast<llama_pos>(verifier.cached().size()));
}

TEST(LlamaVerifier, ShowsAsManyTokensAsItWasMadeFor) {
  const SmallContext context;  // 48 tokens
  for (const std::size_t count : {0U, 1U, 48U, 60U}) {
    LlamaOptions options;
    options.top_k = count;
    auto verifier = LlamaVerifier::make(context.get(), options);
    ASSERT_TRUE(verifier);
    ASSERT_TRUE(verifier->prefill(TokenSpan(prompt).first(prompt.size() - 1)));
    ASSERT_TRUE(verifier->verify(TokenSpan(prompt).last(1), 0));
    const std::vector<Token> shown = copy(verifier->top_k(0));
    EXPECT_EQ(shown, likeliest(Maker{&context, false, 1, 3}, prompt, count)) << count;
    EXPECT_THAT(copy(verifier->top_k(1)), ::testing::IsEmpty()) << "no such row";
  }
}
/// Wants no rows, or wants eight and remembers how many it got.
struct RowCounter : NoDrafter {
  std::size_t wanted = 0;
  std::size_t* rows = nullptr;

  [[nodiscard]] std::size_t top_k_wanted() const { return wanted; }
  void feedback(TokenSpan, const Outcome& outcome) { *rows += outcome.top_k.size(); }
};
TEST(LlamaVerifier, ShowsRowsOnlyToStrategiesThatWantThem) {
  const SmallContext context;
  for (const std::size_t wanted : {0U, 5U, 20U}) {
    std::size_t rows = 0;
    RowCounter strategy;
    strategy.wanted = wanted;
    strategy.rows = &rows;
    LlamaVerifier verifier = Maker{&context}(prompt);
    Session session(strategy);
    ASSERT_TRUE(generate(session, verifier, prompt, limits(10)));
    EXPECT_EQ(rows, 10 * std::min<std::size_t>(wanted, 8)) << wanted;
  }
}
// A row that cannot fail to be shown makes no pass void, so a pass without a draft needs no saved state.
TEST(LlamaVerifier, SavesNoStateForTheRowsThatItShows) {
  const SmallContext context("recurrent");
  std::size_t rows = 0;
  RowCounter strategy;
  strategy.wanted = 8;
  strategy.rows = &rows;
  struct Counting : LlamaVerifier {
    explicit Counting(LlamaVerifier&& verifier) : LlamaVerifier(std::move(verifier)) {}
    Result<void> snapshot() { return ++snapshots, LlamaVerifier::snapshot(); }
    std::size_t snapshots = 0;
  };
  Counting verifier(Maker{&context}(prompt));
  Session session(strategy);
  ASSERT_TRUE(generate(session, verifier, prompt, limits(10)));
  EXPECT_EQ(rows, 80U);
  EXPECT_EQ(verifier.snapshots, 0U);
}
TEST(LlamaVerifier, StopsAtATokenThatEndsInsideADraft) {
  ModelText text = SmallContext::small("attention");
  text.eos = 0.5F;
  std::size_t ended = 0;
  for (text.seed = 1; text.seed <= 12; ++text.seed) {
    const SmallContext context(text, SmallContext::params());
    Limits stop = limits(80);
    stop.eos = {llama_vocab_eos(llama_model_get_vocab(llama_get_model(context.get())))};
    for (const std::size_t leaves : {1U, 4U}) {
      const auto report = compare_lossless(Maker{&context, false, leaves}, prompt, stop, drafter());
      EXPECT_TRUE(report.identical()) << report.message;
      ended += report.plain.finish == FinishReason::eos ? 1 : 0;
    }
  }
  EXPECT_GT(ended, 8U);
}
TEST(LlamaVerifier, HasItsSamplerBackAfterAVoidPass) {
  const SmallContext context;
  const Maker make{&context, true};
  LlamaVerifier verifier = make(prompt);
  const std::vector<Token> batch = {prompt.back(), 9, 9};
  const auto draw = [&] {
    auto picks = verifier.verify(batch, 2);
    EXPECT_TRUE(picks);
    std::vector<Token> drawn;
    for (std::size_t i = 0; i <= 2; ++i) drawn.push_back((*picks)[i]);
    return drawn;
  };
  const std::vector<Token> first = draw();
  EXPECT_EQ(draw(), first);
  EXPECT_EQ(draw(), first);
  ASSERT_TRUE(verifier.commit(1));
  LlamaVerifier other = make(prompt);
  ASSERT_TRUE(other.verify(batch, 2));
  EXPECT_EQ(settings().samplers, 2 * 7U + 2 * 7U);  // two chains, and a copy of each for the open pass
}
// A state that is not restored leaves the cache empty. Tokens that run on top of it would continue another text.
TEST(LlamaVerifier, RunsTheSequenceAgainWhereItsStateWasNotTakenBack) {
  for (const char* model : {"recurrent", "hybrid"}) {
    for (const bool sampled : {false, true}) {
      const SmallContext context(model);
      const Maker make{&context, sampled};
      const auto plain = compare_lossless(make, prompt, limits(40), NoDrafter());
      LlamaVerifier verifier = make(prompt);
      Session session(HostileStrategy(3, 48));
      settings().fault = Fault::state_not_restored;
      EXPECT_FALSE(generate(session, verifier, prompt, limits(40))) << model;
      settings().fault = Fault::none;
      const auto generation = generate(session, verifier, limits(40));
      ASSERT_TRUE(generation) << model << ": " << generation.error().message;
      EXPECT_EQ(std::vector<Token>(generation->tokens.begin(), generation->tokens.end()), plain.plain.output)
          << model << (sampled ? ", sampled" : "");
    }
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
  for (const char* model : {"recurrent", "hybrid"}) {
    const SmallContext context(model);
    LlamaVerifier verifier = Maker{&context}(prompt);
    ASSERT_TRUE(verifier.snapshot());
    ASSERT_TRUE(verifier.truncate(0));
    const std::vector<Token> others = {30, 31, 30, 33, 34, 31};
    ASSERT_TRUE(verifier.prefill(TokenSpan(others).first(others.size() - 1)));
    const TokenSpan last = TokenSpan(others).last(1);
    settings().failing_decode = settings().decodes + 1;
    ASSERT_FALSE(verifier.verify(last, 0));
    const auto picks = verifier.verify(last, 0);
    ASSERT_TRUE(picks) << model << ": " << picks.error().message;
    const std::vector<float> logits(verifier.logits(0).begin(), verifier.logits(0).end());
    LlamaVerifier fresh = Maker{&context}(others);
    ASSERT_TRUE(fresh.verify(last, 0));
    EXPECT_EQ(std::vector<float>(fresh.logits(0).begin(), fresh.logits(0).end()), logits) << model;
  }
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
// verify() and commit() are a shorter path for chains, which may be mixed with that of trees.
TEST(LlamaVerifier, GivesAChainTheSameLogitsOnBothPaths) {
  const SmallContext context;
  const Maker make{&context, false, 3};
  const std::vector<Token> batch = {prompt.back(), 9, 30, 31};
  const std::vector<NodeIndex> parents = {anchor_parent, 0, 1};
  const std::vector<NodeIndex> branches = {anchor_parent, anchor_parent, 1};
  const std::vector<std::size_t> rows = {0, 1, 2};
  using Seen = std::vector<float>;
  const auto run = [&](bool tree) {
    LlamaVerifier verifier = make(prompt);
    std::vector<Seen> seen;
    for (int pass = 0; pass < 3; ++pass) {
      EXPECT_TRUE(pass == 1 ? verifier.verify_tree(batch, 3, branches)
                  : tree    ? verifier.verify_tree(batch, 3, parents)
                            : verifier.verify(batch, 3));
      for (std::size_t i = 0; i <= 3; ++i) seen.emplace_back(verifier.logits(i).begin(), verifier.logits(i).end());
      const std::vector<std::size_t> path = {0, 2, 3};
      EXPECT_TRUE(pass == 1 ? verifier.commit_rows(path) : tree ? verifier.commit_rows(rows) : verifier.commit(3));
    }
    const std::vector<Token> expected = {prompt.back(), 9, 30, prompt.back(), 30, 31, prompt.back(), 9, 30};
    const TokenSpan cached = verifier.cached().last(expected.size());
    EXPECT_EQ(std::vector<Token>(cached.begin(), cached.end()), expected);
    return seen;
  };
  EXPECT_EQ(run(false), run(true));
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
  const auto blind = chain.verify(batch, 2);
  ASSERT_FALSE(blind);
  EXPECT_EQ(blind.error().code, ErrorCode::verifier_failed);
  EXPECT_THAT(std::string(blind.error().message), HasSubstr("llama_get_logits_ith"));
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

  settings().fault = Fault::no_batch;
  const auto unmade = LlamaVerifier::make(context.get(), {});
  ASSERT_FALSE(unmade);
  EXPECT_EQ(unmade.error().code, ErrorCode::out_of_memory);
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
TEST(LlamaVerifier, DrawsLazily) {
  const SmallContext context;
  LlamaVerifier verifier = Maker{&context, true}(prompt);
  ASSERT_TRUE(verifier.verify(TokenSpan(prompt).last(1), 0));
  auto once = verifier.verify(TokenSpan(prompt).last(1), 0);
  const Token first = (*once)[0];
  ASSERT_TRUE(verifier.commit(1));
  LlamaVerifier again = Maker{&context, true}(prompt);
  auto picks = again.verify(std::vector<Token>{prompt.back(), first}, 1);
  EXPECT_EQ((*picks)[0], first);
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
  EXPECT_THAT(sentence(SmallContext("hybrid"), 2), HasSubstr("one state"));
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
  const SmallContext hybrid("hybrid");
  EXPECT_EQ(Maker{&hybrid}(prompt).capabilities().rollback, Rollback::snapshot);
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

// A window that moves on overwrites cells, so a rollback must recompute them.
struct LlamaWindow : ::testing::Test {
  static std::vector<Token> long_text() {
    std::vector<Token> text(600);
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<Token>(4 + i * i % 40);
    return text;
  }
  static SmallContext long_context(std::uint32_t n_ubatch, bool full = false) {
    llama_context_params params = SmallContext::params();
    params.n_ctx = 1024;
    params.n_ubatch = n_ubatch;
    params.swa_full = full;
    return {SmallContext::small("window"), params};
  }
};
TEST_F(LlamaWindow, IsWholeAfterDraftsAreRolledBack) {
  for (const std::uint32_t n_ubatch : {64U, 4U}) {
    const SmallContext context = long_context(n_ubatch);
    const auto report = compare_lossless(Maker{&context}, prompt, limits(700), drafter());
    EXPECT_TRUE(report.identical()) << n_ubatch << ": " << report.message;
    EXPECT_TRUE(report.drafted.error.empty()) << report.drafted.error;
    EXPECT_GT(llama_memory_seq_pos_min(context.memory(), 0), 0);
  }
}
// In a pass that runs in parts, the later parts reuse cells that the window passed in the earlier parts.
TEST_F(LlamaWindow, IsWholeAfterTheLongestPassIsRolledBack) {
  const SmallContext context = long_context(64);
  const std::vector<Token> text = long_text();
  const TokenSpan before = TokenSpan(text).first(400);
  LlamaVerifier verifier = Maker{&context}(before);
  const std::size_t rows = std::min<std::size_t>(verifier.capabilities().max_rows, 300);
  std::vector<Token> batch(rows, 9);
  batch.front() = before.back();
  ASSERT_TRUE(verifier.verify(batch, rows - 1));
  ASSERT_TRUE(verifier.commit(1));
  const TokenSpan next = TokenSpan(text).subspan(400, 1);
  const auto picks = verifier.verify(next, 0);
  ASSERT_TRUE(picks);
  const std::vector<float> logits(verifier.logits(0).begin(), verifier.logits(0).end());
  LlamaVerifier fresh = Maker{&context}(TokenSpan(text).first(401));
  ASSERT_TRUE(fresh.verify(next, 0));
  EXPECT_EQ(std::vector<float>(fresh.logits(0).begin(), fresh.logits(0).end()), logits);
}
TEST_F(LlamaWindow, IsWholeAfterTruncate) {
  const SmallContext context = long_context(64);
  const std::vector<Token> text = long_text();
  for (const std::size_t size : {590U, 400U, 100U, 0U}) {
    LlamaVerifier verifier = Maker{&context}(text);
    ASSERT_TRUE(verifier.truncate(size));
    ASSERT_EQ(verifier.cached().size(), size);
    const TokenSpan next = TokenSpan(text).subspan(size, 1);
    const auto picks = verifier.verify(next, 0);
    ASSERT_TRUE(picks) << size << ": " << picks.error().message;
    const Token after = (*picks)[0];
    LlamaVerifier fresh = Maker{&context}(TokenSpan(text).first(size + 1));
    EXPECT_EQ((*fresh.verify(next, 0))[0], after) << size;
  }
}
TEST_F(LlamaWindow, TakesTreesWhereItsCacheIsFullSize) {
  const SmallContext context = long_context(64, true);
  const auto report = compare_lossless(Maker{&context, false, 6}, prompt, limits(700), TokenRecyclingDrafter());
  EXPECT_TRUE(report.identical()) << report.message;
  EXPECT_TRUE(report.drafted.error.empty()) << report.drafted.error;
}
// llama.cpp reuses no cell that sequences share, even after the window has passed it. A tree then finds no free cells.
TEST_F(LlamaWindow, TellsThatATreeFindsNoRoomInASmallOne) {
  const SmallContext context = long_context(64);
  const std::vector<Token> text = long_text();
  LlamaVerifier verifier = Maker{&context, false, 2}(text);
  const std::vector<Token> tree = {text.back(), 5, 6};
  const std::vector<NodeIndex> parents = {anchor_parent, anchor_parent};
  const auto refused = verifier.verify_tree(tree, 2, parents);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().value, 1U);
  EXPECT_TRUE(verifier.verify(TokenSpan(tree).first(2), 1));
}

// If logits depend on the shape of the pass, the margin shows it.
TEST(LlamaVerifier, TellsNearTiesFromMistakes) {
  const SmallContext context;
  settings().row_count_noise = 0.5F;
  VerifierCheck near = small();
  near.epsilon = 2.01;  // twice the noise, for each token
  const Report report = check({&context}, near);
  EXPECT_EQ(report.verdict(), Verdict::near_tie) << report.to_string();
  near.epsilon = 1e-4;
  EXPECT_EQ(check({&context}, near).verdict(), Verdict::wrong);
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

struct Planted {
  const char* name;
  Fault fault;
  const char* model;
  std::size_t leaves = 1;
  bool sampled = false;
};
struct LlamaVerifierFinds : ::testing::TestWithParam<Planted> {};
TEST_P(LlamaVerifierFinds, WhatTheLibraryWouldGetWrong) {
  const SmallContext context(GetParam().model);
  const Maker make{&context, GetParam().sampled, GetParam().leaves};
  settings().fault = GetParam().fault;
  const Report report = check(make, small(GetParam().sampled));
  EXPECT_EQ(report.verdict(), Verdict::wrong) << report.to_string();
  settings().fault = Fault::none;
}
INSTANTIATE_TEST_SUITE_P(Mistakes, LlamaVerifierFinds,
                         ::testing::Values(Planted{"RollbackKeepsOne", Fault::rollback_keeps_one, "attention"},
                                           Planted{"RollbackRefused", Fault::rollback_refused, "attention"},
                                           Planted{"CopyForgetsLast", Fault::copy_forgets_last, "attention", 4},
                                           Planted{"SiblingsVisible", Fault::siblings_visible, "attention", 4},
                                           Planted{"StateIsStale", Fault::state_is_stale, "recurrent"},
                                           Planted{"StateIsStaleInPart", Fault::state_is_stale, "hybrid"},
                                           Planted{"StateNotSaved", Fault::state_not_saved, "recurrent"},
                                           Planted{"StateNotRestored", Fault::state_not_restored, "hybrid"},
                                           Planted{"CloneForgets", Fault::clone_forgets, "attention", 1, true}),
                         [](const auto& planted) { return std::string(planted.param.name); });

}  // namespace
}  // namespace reprise::llama::llama_verifier_test
