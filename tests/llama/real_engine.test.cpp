// SPDX-License-Identifier: Apache-2.0
/// \file The adapter for llama.cpp on the real library: the conformance kit, and generation compared with plain
/// decoding. The environment variable REPRISE_LLAMA_MODELS names the folder of the models. These are the models that
/// make_tiny_models.py writes, and SmolLM2-135M-Instruct.Q4_1.gguf. Tests of missing models are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "llama.h"
#include "llama_verifier.hpp"
#include "reprise/reprise.hpp"
#include "reprise_testing/check_verifier.hpp"
#include "reprise_testing/lossless.hpp"
#include "reprise_testing/random.hpp"
#include "support/oracle_strategy.hpp"

namespace reprise::llama::real_engine_test {
namespace {

using ::testing::HasSubstr;
using testing::OracleOptions;
using testing::OracleStrategy;
using testing::Verdict;
using testing::VerifierCheck;

/// Returns a model of the folder, loaded once, or null if it is missing.
llama_model* find_model(const std::string& file) {
  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  static std::map<std::string, std::unique_ptr<llama_model, Free>> models;
  const char* const folder = std::getenv("REPRISE_LLAMA_MODELS");
  if (folder == nullptr) return nullptr;
  const std::filesystem::path path = std::filesystem::path(folder) / file;
  if (!std::filesystem::exists(path)) return nullptr;
  auto& model = models[file];
  if (!model) {
    // Passes that fail on purpose log as well, so only the log of a failed load is shown.
    static std::string log;
    llama_log_set([](ggml_log_level, const char* text, void*) { log.append(text).erase(0, log.size() / 2000 * 1000); },
                  nullptr);
    model.reset(llama_model_load_from_file(path.string().c_str(), llama_model_default_params()));
    if (!model) throw std::runtime_error("this llama.cpp cannot load " + path.string() + ": " + log);
  }
  return model.get();
}

/// A model and its settings. It runs on one thread, so that a run can be repeated on any machine.
struct ModelRun {
  const char* name;
  const char* file;
  std::size_t leaves = 1;
  llama_flash_attn_type flash = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  bool whole_window = true;         ///< a sliding window keeps all rows (swa_full)
  std::uint32_t micro_batch = 64;   ///< rows computed at once (n_ubatch)
  ggml_type cache = GGML_TYPE_F32;  ///< half precision would add most of the noise
  std::uint32_t context = 512;
  llama_seq_id sequence = 0;

  /// True if picks may differ at near ties. With a sampler, such a difference looks like a mistake.
  [[nodiscard]] bool in_half_precision() const {
    return flash == LLAMA_FLASH_ATTN_TYPE_ENABLED || cache == GGML_TYPE_F16;
  }
  friend void PrintTo(const ModelRun& setup, std::ostream* out) { *out << setup.name; }
};

constexpr auto flash = LLAMA_FLASH_ATTN_TYPE_ENABLED;
constexpr auto no_flash = LLAMA_FLASH_ATTN_TYPE_DISABLED;

using MakeSampler = llama_sampler* (*)(const llama_vocab*);

llama_sampler* greedy(const llama_vocab*) { return nullptr; }

llama_sampler* seeded(const llama_vocab* vocab) {
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, llama_sampler_init_penalties(llama_vocab_n_tokens(vocab), 16, 1.2F, 0.1F, 0.1F));
  llama_sampler_chain_add(chain, llama_sampler_init_top_k(20));
  llama_sampler_chain_add(chain, llama_sampler_init_temp(1.5F));
  llama_sampler_chain_add(chain, llama_sampler_init_dist(7));
  return chain;
}

/// Allows four tokens only, so the text repeats often and drafts are both right and wrong.
llama_sampler* few_tokens(const llama_vocab* vocab) {
  std::vector<llama_logit_bias> biases;
  const std::int32_t size = llama_vocab_n_tokens(vocab);
  for (Token token = 0; token < size; ++token)
    if (token < 40 || token >= 44) biases.push_back({token, -std::numeric_limits<float>::infinity()});
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain,
                          llama_sampler_init_logit_bias(size, static_cast<std::int32_t>(biases.size()), biases.data()));
  return chain;
}
llama_sampler* greedy_of_few(const llama_vocab* vocab) {
  llama_sampler* chain = few_tokens(vocab);
  llama_sampler_chain_add(chain, llama_sampler_init_greedy());
  return chain;
}
llama_sampler* seeded_of_few(const llama_vocab* vocab) {
  llama_sampler* chain = few_tokens(vocab);
  llama_sampler_chain_add(chain, llama_sampler_init_temp(1.5F));
  llama_sampler_chain_add(chain, llama_sampler_init_dist(11));
  return chain;
}

/// A context of a model, and verifiers on it, one after the other.
class Engine {
 public:
  Engine(llama_model* model, const ModelRun& setup)
      : setup_(setup), vocab_(llama_model_get_vocab(model)), abort_(std::make_unique<std::size_t>(0)) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = setup.context;
    params.n_batch = 64;
    params.n_ubatch = setup.micro_batch;
    params.n_threads = params.n_threads_batch = 1;
    params.n_seq_max = static_cast<std::uint32_t>(static_cast<std::size_t>(setup.sequence) + setup.leaves);
    params.kv_unified = params.n_seq_max > 1;
    params.flash_attn_type = setup.flash;
    params.swa_full = setup.whole_window;
    params.type_k = params.type_v = setup.cache;
    // Ends a pass after part of its work, as in an engine that is told to stop.
    params.abort_callback = [](void* left) {
      auto& nodes = *static_cast<std::size_t*>(left);
      return nodes > 0 && --nodes == 0;
    };
    params.abort_callback_data = abort_.get();
    context_.reset(llama_init_from_model(model, params));
    if (!context_) throw std::runtime_error("llama.cpp makes no such context");
  }

  [[nodiscard]] llama_context* context() const { return context_.get(); }
  [[nodiscard]] const llama_vocab* vocab() const { return vocab_; }
  [[nodiscard]] std::size_t vocabulary() const { return static_cast<std::size_t>(llama_vocab_n_tokens(vocab_)); }
  /// Makes the next pass stop half-way.
  void fail_next() { *abort_ = 25; }

  /// Returns a verifier that has prefilled all but the last token.
  [[nodiscard]] LlamaVerifier start(TokenSpan prompt, MakeSampler sampler) {
    auto verifier = LlamaVerifier::make(
        context(), {.sampler = sampler(vocab_), .sequence = setup_.sequence, .leaves = setup_.leaves});
    if (!verifier) throw std::runtime_error(std::string(verifier.error().message));
    if (const auto done = verifier->prefill(prompt.first(prompt.size() - 1)); !done)
      throw std::runtime_error(std::string(done.error().message));
    return std::move(*verifier);
  }
  [[nodiscard]] std::vector<Token> random_prompt(std::size_t size) const {
    testing::Random random(17);
    std::vector<Token> prompt{1};
    while (prompt.size() < size) prompt.push_back(static_cast<Token>(3 + random.below(vocabulary() - 3)));
    return prompt;
  }
  [[nodiscard]] std::vector<Token> tokenize(const std::string& text) const {
    std::vector<Token> tokens(text.size() + 8);
    const std::int32_t count = llama_tokenize(vocab_, text.c_str(), static_cast<std::int32_t>(text.size()),
                                              tokens.data(), static_cast<std::int32_t>(tokens.size()), true, true);
    if (count < 0) throw std::runtime_error("the text has more tokens than bytes");
    tokens.resize(static_cast<std::size_t>(count));
    return tokens;
  }
  [[nodiscard]] std::vector<Token> end_tokens() const {
    std::vector<Token> found;
    for (Token token = 0; token < llama_vocab_n_tokens(vocab_); ++token)
      if (llama_vocab_is_eog(vocab_, token)) found.push_back(token);
    return found;
  }

 private:
  struct Free {
    void operator()(llama_context* context) const { llama_free(context); }
  };

  ModelRun setup_;
  const llama_vocab* vocab_;
  std::unique_ptr<std::size_t> abort_;  // nodes of the graph until a pass is aborted; 0: never
  std::unique_ptr<llama_context, Free> context_;
};

/// The result of a generation.
struct Run {
  std::vector<Token> context;
  FinishReason finish = FinishReason::none;
  Statistics statistics;
};

/// Decodes a prompt, and then a next turn that adds `next`.
template <class Strategy>
Run generate_turns(Engine& engine, MakeSampler sampler, Strategy strategy, TokenSpan prompt, TokenSpan next,
                   const Limits& limits) {
  Session<Strategy> session(std::move(strategy));
  LlamaVerifier verifier = engine.start(prompt, sampler);
  const auto checked = [](const Result<Generation>& generation) {
    if (!generation) throw std::runtime_error(std::string(generation.error().message));
    return *generation;
  };
  const Generation first = checked(generate(session, verifier, prompt, limits));
  Run run{{}, first.finish, first.statistics};
  if (!next.empty()) {
    // The new turn is not prefilled: it is pending, after the token that ended the first turn. If it exceeds a pass,
    // all but its last token are prefilled here.
    std::size_t cached = session.cached();
    std::vector<Token> pending(session.pending().begin(), session.pending().end());
    pending.insert(pending.end(), next.begin(), next.end());
    if (pending.size() > verifier.capabilities().max_rows) {
      pending.pop_back();
      if (!verifier.prefill(pending)) throw std::runtime_error("the next turn was not prefilled");
      cached += pending.size();
    }
    if (!session.append(next, Origin::prompt, cached)) throw std::runtime_error("the next turn was refused");
    checked(generate(session, verifier, limits));
  }
  EXPECT_EQ(session.cached(), verifier.cached().size());
  run.context.assign(session.context().begin(), session.context().end());
  return run;
}

class RealEngine : public ::testing::TestWithParam<ModelRun> {
 protected:
  void SetUp() override {
    if (find_model(GetParam().file) == nullptr) GTEST_SKIP() << GetParam().file << " is not in REPRISE_LLAMA_MODELS";
  }
  [[nodiscard]] static Engine make_engine(std::uint32_t context = 0) {
    ModelRun setup = GetParam();
    if (context > 0) setup.context = context;
    return Engine(find_model(setup.file), setup);
  }
};

TEST_P(RealEngine, PicksTheSameWithDraftsAsWithout) {
  Engine engine = make_engine();
  // With flash attention or half-precision caches, rounding depends on the other rows of a pass. That is no mistake.
  const double epsilon = GetParam().in_half_precision() ? 0.01 : 0.0;
  const auto make = [&](TokenSpan prompt) { return engine.start(prompt, greedy); };
  const auto report =
      testing::check_verifier(make, engine.random_prompt(12), {.max_draft = 6, .mixed_runs = 16, .epsilon = epsilon},
                              [&](LlamaVerifier&) { engine.fail_next(); });
  if (report.verdict() == Verdict::near_tie) std::cout << report.to_string();
  EXPECT_TRUE(report.verdict() == Verdict::exact || (epsilon > 0 && report.passed())) << report.to_string();
}

TEST_P(RealEngine, DrawsTheSameFromASeededSampler) {
  if (GetParam().in_half_precision()) GTEST_SKIP() << "near ties of half precision would not be told from mistakes";
  Engine engine = make_engine();
  const auto make = [&](TokenSpan prompt) { return engine.start(prompt, seeded); };
  const auto report = testing::check_verifier(make, engine.random_prompt(12), {.mixed_runs = 16, .sampled = true},
                                              [&](LlamaVerifier&) { engine.fail_next(); });
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}

TEST_P(RealEngine, GeneratesTheSameWithTheDefaultStrategy) {
  if (GetParam().in_half_precision()) GTEST_SKIP() << "near ties of half precision would not be told from mistakes";
  Engine engine = make_engine();
  const auto prompt = engine.random_prompt(12);
  for (const MakeSampler sampler : {greedy_of_few, seeded_of_few}) {
    const auto make = [&](TokenSpan tokens) { return engine.start(tokens, sampler); };
    CostOptions cost{.curve = CostCurve::linear(0.02)};
    cost.calibrated = true;
    const auto report = testing::compare_lossless(make, prompt, Limits{.max_tokens = 160}, NgramDrafter<>(),
                                                  NeverStop(), CostControl(cost));
    EXPECT_TRUE(report.identical()) << report.message;
    const Statistics& statistics = report.drafted.statistics;
    EXPECT_GT(statistics.accepted, 0U);
    EXPECT_LT(statistics.accepted, statistics.drafted);
    EXPECT_LT(statistics.passes, report.plain.statistics.passes);
  }
}

TEST_P(RealEngine, EndsInsideADraftAndGoesOnWithTheNextTurn) {
  if (GetParam().in_half_precision()) GTEST_SKIP() << "near ties of half precision would not be told from mistakes";
  Engine engine = make_engine();
  const auto prompt = engine.random_prompt(12);
  const std::vector<Token> next{50, 60, 70, 80, 90};
  for (const MakeSampler sampler : {greedy, seeded}) {
    Limits limits{.max_tokens = 24};
    const auto unended = generate_turns(engine, sampler, archetype::Strategy(), prompt, {}, limits);
    // A token that plain decoding produces here for the first time.
    std::size_t end = prompt.size() + 6;
    const auto begin = unended.context.begin();
    while (std::find(begin + 12, begin + static_cast<std::ptrdiff_t>(end), unended.context[end]) !=
           begin + static_cast<std::ptrdiff_t>(end))
      ++end;
    limits.eos = {unended.context[end]};
    const auto plain = generate_turns(engine, sampler, archetype::Strategy(), prompt, next, limits);
    ASSERT_EQ(plain.finish, FinishReason::eos);
    for (const std::size_t right : {std::size_t{100}, std::size_t{70}}) {
      const OracleOptions options{.right_percent = right, .length = 5, .siblings = GetParam().leaves > 1};
      const auto drafted =
          generate_turns(engine, sampler, OracleStrategy(unended.context, options), prompt, next, limits);
      EXPECT_EQ(drafted.finish, FinishReason::eos);
      EXPECT_EQ(drafted.context, plain.context);
      EXPECT_GT(drafted.statistics.accepted, 0U);
      if (right == 100 && !options.siblings)
        EXPECT_EQ(drafted.statistics.accepted, drafted.statistics.drafted) << "nothing is drafted after the end";
      else
        EXPECT_LT(drafted.statistics.accepted, drafted.statistics.drafted);
    }
  }
}

TEST_P(RealEngine, FillsItsContext) {
  if (GetParam().in_half_precision()) GTEST_SKIP() << "near ties of half precision would not be told from mistakes";
  Engine engine = make_engine(256);
  const auto prompt = engine.random_prompt(12);
  const auto plain = generate_turns(engine, greedy, archetype::Strategy(), prompt, {}, {});
  EXPECT_EQ(plain.finish, FinishReason::context_full);
  const OracleOptions options{.right_percent = 70, .length = 8, .siblings = GetParam().leaves > 1};
  const auto drafted = generate_turns(engine, greedy, OracleStrategy(plain.context, options), prompt, {}, {});
  EXPECT_EQ(drafted.finish, FinishReason::context_full);
  EXPECT_EQ(drafted.context, plain.context);
}

// A window that has moved on, or a state, cannot go back by removing rows: tokens may have to run again.
TEST_P(RealEngine, PicksAsAFreshOneAfterALongRollback) {
  if (GetParam().in_half_precision()) GTEST_SKIP() << "near ties of half precision would not be told from mistakes";
  Engine engine = make_engine();
  const auto text = engine.random_prompt(300);
  const auto expect_fresh = [&](LlamaVerifier& verifier) {
    const std::size_t size = verifier.cached().size();
    const TokenSpan next = TokenSpan(text).subspan(size, 1);
    const auto picks = verifier.verify(next, 0);
    ASSERT_TRUE(picks) << size << ": " << picks.error().message;
    const Token pick = (*picks)[0];
    LlamaVerifier fresh = engine.start(TokenSpan(text).first(size + 1), greedy);
    const auto expected = fresh.verify(next, 0);
    ASSERT_TRUE(expected);
    EXPECT_EQ((*expected)[0], pick) << size;
  };
  LlamaVerifier longest = engine.start(TokenSpan(text).first(201), greedy);
  std::vector<Token> batch(longest.capabilities().max_rows, 9);
  batch.front() = text[200];
  const bool trims = longest.capabilities().rollback == Rollback::trim;
  if (!trims) {
    ASSERT_TRUE(longest.snapshot());
  }
  ASSERT_TRUE(longest.verify(batch, batch.size() - 1));
  ASSERT_TRUE(trims ? longest.commit(1) : longest.restore(0));
  expect_fresh(longest);
  for (const std::size_t size : {290U, 150U, 40U, 0U}) {
    LlamaVerifier cut = engine.start(text, greedy);
    ASSERT_TRUE(cut.truncate(size));
    ASSERT_EQ(cut.cached().size(), size);
    expect_fresh(cut);
  }
}

/// Checks the power of the tests above: wrong rows would change picks, and the noise of kernels at other row counts
/// does not.
TEST_P(RealEngine, AnswersVaryAndItsMarginsAreAboveTheNoise) {
  Engine engine = make_engine();
  const auto prompt = engine.random_prompt(12);
  LlamaVerifier plain = engine.start(prompt, greedy);
  std::vector<Token> text = prompt;
  std::vector<std::vector<float>> logits;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < 32; ++i) {
    const auto picks = plain.verify(TokenSpan(text).last(1), 0);
    ASSERT_TRUE(picks);
    text.push_back((*picks)[0]);
    least = std::min(least, plain.margin(0));
    logits.emplace_back(plain.logits(0).begin(), plain.logits(0).end());
    ASSERT_TRUE(plain.commit(1));
  }
  double worst = 0;
  for (const std::size_t rows : {std::size_t{2}, std::size_t{3}, std::size_t{8}}) {
    LlamaVerifier drafted = engine.start(prompt, greedy);
    for (std::size_t i = 0; i + rows <= logits.size(); i += rows) {
      ASSERT_TRUE(drafted.verify(TokenSpan(text).subspan(prompt.size() - 1 + i, rows), rows - 1));
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t t = 0; t < engine.vocabulary(); ++t)
          worst = std::max(worst, std::abs(static_cast<double>(logits[i + row][t] - drafted.logits(row)[t])));
      ASSERT_TRUE(drafted.commit(rows));
    }
  }
  std::cout << "  smallest margin " << least << ", logits differ by at most " << worst << " with the number of rows\n";
  EXPECT_GE(std::set<Token>(text.end() - 32, text.end()).size(), 16U);
  EXPECT_GT(least, 4 * worst);
}

INSTANTIATE_TEST_SUITE_P(
    , RealEngine,
    ::testing::Values(ModelRun{"attention", "attention.gguf"}, ModelRun{"attention_flash", "attention.gguf", 1, flash},
                      ModelRun{"attention_half_precision", "attention.gguf", 1, no_flash, true, 64, GGML_TYPE_F16},
                      ModelRun{"attention_in_small_pieces", "attention.gguf", 1, no_flash, true, 9},
                      ModelRun{"attention_2_leaves", "attention.gguf", 2},
                      ModelRun{"attention_4_leaves", "attention.gguf", 4},
                      ModelRun{"attention_8_leaves", "attention.gguf", 8},
                      ModelRun{"attention_8_leaves_flash", "attention.gguf", 8, flash},
                      ModelRun{"attention_8_leaves_in_small_pieces", "attention.gguf", 8, no_flash, true, 9},
                      ModelRun{"attention_fourth_sequence", "attention.gguf", 4, no_flash, true, 64, GGML_TYPE_F32, 512,
                               3},
                      ModelRun{"whole_sliding_window", "sliding_window.gguf"},
                      ModelRun{"whole_sliding_window_8_leaves", "sliding_window.gguf", 8},
                      ModelRun{"sliding_window", "sliding_window.gguf", 1, no_flash, false},
                      ModelRun{"sliding_window_flash", "sliding_window.gguf", 1, flash, false},
                      ModelRun{"sliding_window_in_small_pieces", "sliding_window.gguf", 1, no_flash, false, 9},
                      ModelRun{"sliding_window_8_leaves", "sliding_window.gguf", 8, no_flash, false},
                      ModelRun{"recurrent", "recurrent.gguf"},
                      ModelRun{"recurrent_in_small_pieces", "recurrent.gguf", 1, no_flash, true, 9},
                      ModelRun{"hybrid", "hybrid.gguf"}, ModelRun{"hybrid_flash", "hybrid.gguf", 1, flash},
                      ModelRun{"hybrid_in_small_pieces", "hybrid.gguf", 1, no_flash, true, 9},
                      ModelRun{"hybrid_second_sequence", "hybrid.gguf", 1, no_flash, true, 64, GGML_TYPE_F32, 512, 1}),
    [](const auto& setup) { return std::string(setup.param.name); });

TEST(RealEngineRefuses, WhatItCannotDo) {
  if (find_model("attention.gguf") == nullptr || find_model("recurrent.gguf") == nullptr)
    GTEST_SKIP() << "attention.gguf and recurrent.gguf are not in REPRISE_LLAMA_MODELS";
  const auto refusal = [](const Engine& engine, LlamaOptions options) {
    options.sampler = seeded(engine.vocab());  // freed even on failure
    const auto verifier = LlamaVerifier::make(engine.context(), options);
    return verifier ? std::string() : std::string(verifier.error().message);
  };
  Engine attention(find_model("attention.gguf"), ModelRun{"", "", 4});
  EXPECT_EQ(refusal(attention, {.leaves = 4}), "");
  EXPECT_THAT(refusal(attention, {.leaves = 5}), HasSubstr("n_seq_max"));
  EXPECT_THAT(refusal(attention, {.sequence = 1, .leaves = 4}), HasSubstr("n_seq_max"));
  EXPECT_THAT(refusal(attention, {.sequence = -1}), HasSubstr("n_seq_max"));
  Engine recurrent(find_model("recurrent.gguf"), ModelRun{"", "", 4});
  EXPECT_THAT(refusal(recurrent, {.leaves = 4}), HasSubstr("leaves"));
}

TEST(RealEngineSequences, DoNotDisturbEachOther) {
  for (const char* file : {"attention.gguf", "hybrid.gguf"}) {
    if (find_model(file) == nullptr) GTEST_SKIP() << file << " is not in REPRISE_LLAMA_MODELS";
    const bool trees = std::string(file) == "attention.gguf";
    Engine engine(find_model(file), ModelRun{"", file, trees ? std::size_t{8} : std::size_t{2}});
    const auto prompt = engine.random_prompt(12);
    const Limits limits{.max_tokens = 48};
    Engine alone(find_model(file), ModelRun{"", file});
    const auto plain = generate_turns(alone, greedy, archetype::Strategy(), prompt, {}, limits);

    const std::size_t leaves = trees ? 4 : 1;
    std::vector<LlamaVerifier> verifiers;
    std::vector<Session<OracleStrategy>> sessions;
    for (std::size_t i = 0; i < 2; ++i) {
      auto verifier =
          LlamaVerifier::make(engine.context(), {.sequence = static_cast<llama_seq_id>(i * leaves), .leaves = leaves});
      ASSERT_TRUE(verifier);
      ASSERT_TRUE(verifier->prefill(TokenSpan(prompt).first(prompt.size() - 1)));
      verifiers.push_back(std::move(*verifier));
      sessions.emplace_back(OracleStrategy(plain.context, {.right_percent = 60, .seed = 1 + i, .siblings = trees}));
      ASSERT_TRUE(sessions.back().begin(prompt, verifiers.back().capabilities()));
    }
    // In turns, a few tokens each.
    for (std::size_t most = 4; most <= limits.max_tokens; most += 4)
      for (std::size_t i = 0; i < 2; ++i) {
        const Limits few{.max_tokens = most};
        ASSERT_TRUE(generate(sessions[i], verifiers[i], few));
      }
    for (const auto& session : sessions)
      EXPECT_THAT(std::vector<Token>(session.context().begin(), session.context().end()),
                  ::testing::ElementsAreArray(plain.context));
  }
}

/// A model in real use. It is quantised, so its logits depend on the number of rows in a pass, and near ties are
/// possible. They are counted and shown, and never called exact.
class RealModel : public ::testing::TestWithParam<ModelRun> {
 protected:
  /// The declared bound: picks whose logits are closer than this may differ.
  static constexpr double epsilon = 1.0;

  void SetUp() override {
    if (find_model(GetParam().file) == nullptr) GTEST_SKIP() << GetParam().file << " is not in REPRISE_LLAMA_MODELS";
  }
  static constexpr std::array prompts = {
      "<|im_start|>user\nRepeat: one two three, one two three.<|im_end|>\n<|im_start|>assistant\n",
      "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n",
      "The capital of France is Paris. The capital of Italy is"};
};

TEST_P(RealModel, PicksTheSameWithDraftsAsWithoutButForNearTies) {
  Engine engine(find_model(GetParam().file), GetParam());
  const auto make = [&](TokenSpan prompt) { return engine.start(prompt, greedy); };
  const VerifierCheck check{.tokens = 12, .max_draft = 3, .mixed_runs = 2, .epsilon = epsilon};
  const auto report =
      testing::check_verifier(make, engine.tokenize(prompts[1]), check, [&](LlamaVerifier&) { engine.fail_next(); });
  std::cout << report.to_string();
  EXPECT_TRUE(report.passed());
}

TEST_P(RealModel, GeneratesTheSameWithTheDefaultStrategyButForNearTies) {
  Engine engine(find_model(GetParam().file), GetParam());
  const auto make = [&](TokenSpan prompt) { return engine.start(prompt, greedy); };
  const Limits limits{.max_tokens = 32, .eos = engine.end_tokens()};
  for (const char* const text : prompts) {
    const auto prompt = engine.tokenize(text);
    CostOptions cost{.curve = CostCurve::linear(0.02)};
    cost.calibrated = true;
    const auto report =
        testing::compare_lossless(make, prompt, limits, NgramDrafter<>(), NeverStop(), CostControl(cost));
    std::cout << "  " << report.drafted.statistics.tokens << " tokens in " << report.drafted.statistics.passes
              << " passes: " << (report.identical() ? "identical" : report.message) << '\n';
    if (report.identical()) continue;
    ASSERT_EQ(report.plain.error + report.drafted.error, "");
    std::vector<Token> before = prompt;
    before.insert(before.end(), report.plain.output.begin(),
                  report.plain.output.begin() + static_cast<std::ptrdiff_t>(report.position));
    LlamaVerifier verifier = make(before);
    ASSERT_TRUE(verifier.verify(TokenSpan(before).last(1), 0));
    std::cout << "  near tie: the margin there is " << verifier.margin(0) << '\n';
    EXPECT_LE(verifier.margin(0), epsilon);
  }
}

constexpr const char* smollm2 = "SmolLM2-135M-Instruct.Q4_1.gguf";
INSTANTIATE_TEST_SUITE_P(, RealModel,
                         ::testing::Values(ModelRun{"smollm2", smollm2, 1, no_flash, true, 64, GGML_TYPE_F16},
                                           ModelRun{"smollm2_flash", smollm2, 1, flash, true, 64, GGML_TYPE_F16},
                                           ModelRun{"smollm2_4_leaves", smollm2, 4, no_flash, true, 64, GGML_TYPE_F16}),
                         [](const auto& setup) { return std::string(setup.param.name); });

}  // namespace
}  // namespace reprise::llama::real_engine_test
