// SPDX-License-Identifier: Apache-2.0
/// \file Many sequences in one pass on the real library: check_batch, and batched decoding compared with each session
/// decoded alone. The environment variable REPRISE_LLAMA_MODELS names the folder of the models that
/// make_tiny_models.py writes. Tests of missing models are skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batch_decode.hpp"
#include "batch_engine.hpp"
#include "reprise/engine/top_k.hpp"
#include "reprise_testing/check_batch.hpp"
#include "reprise_testing/random.hpp"
#include "support/refusal.hpp"
#include "verdict.hpp"

namespace reprise::llama::real_batch_test {
namespace {

using ::testing::HasSubstr;

/// The path of a model; empty if it is missing.
std::string model_path(const std::string& file) {
  const char* const folder = std::getenv("REPRISE_LLAMA_MODELS");
  const std::filesystem::path path = std::filesystem::path(folder == nullptr ? "" : folder) / file;
  return folder != nullptr && std::filesystem::exists(path) ? path.string() : "";
}

/// A model and its cache. It runs on one thread, without flash attention and with a cache in single precision. So the
/// rounding of a row hardly depends on the other rows.
struct BatchSetup {
  const char* name;
  const char* file;
  bool unified = true;
  bool whole_window = true;

  [[nodiscard]] Engine load(std::uint32_t sequences, std::uint32_t context = 4096) const {
    EngineOptions options;
    options.model = model_path(file);
    options.context = context;
    options.batch = 128;
    options.threads = 1;
    options.sequences = sequences;
    options.unified = unified;
    options.adjust = [whole = whole_window](llama_context_params& params) {
      params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
      params.type_k = params.type_v = GGML_TYPE_F32;
      params.swa_full = whole;
    };
    return Engine::load(options);
  }
  friend void PrintTo(const BatchSetup& setup, std::ostream* out) { *out << setup.name; }
};

std::vector<Token> random_tokens(std::size_t vocabulary, std::size_t size, std::uint64_t seed) {
  testing::Random random(seed);
  std::vector<Token> tokens{1};
  while (tokens.size() < size) tokens.push_back(static_cast<Token>(3 + random.below(vocabulary - 3)));
  return tokens;
}

/// A BatchEngine as check_batch() calls it.
class CheckedServer {
 public:
  CheckedServer(Engine& engine, std::span<const std::vector<Token>> prompts)
      : passes_(std::make_unique<BatchEngine>(engine.context(), prompts.size())) {
    for (std::size_t s = 0; s < prompts.size(); ++s) {
      cached_.push_back(prompts[s].size() - 1);
      BatchPacker packer;
      if (cached_[s] == 0) continue;
      EXPECT_TRUE(packer.add({s, TokenSpan(prompts[s]).first(cached_[s]), 0, {}, cached_[s]}));
      EXPECT_TRUE(passes_->run(packer.batch(), 0));
    }
  }
  std::vector<std::vector<Token>> verify(std::span<const SequencePass> passes) {
    for (const std::size_t s : open_) passes_->truncate(static_cast<BatchSlot>(s), cached_[s]);
    open_.clear();
    packer_.clear();
    for (const SequencePass& pass : passes) {
      EXPECT_TRUE(packer_.add(pass));
      open_.push_back(pass.sequence);
    }
    EXPECT_TRUE(passes_->run(packer_.batch()));
    std::vector<std::vector<Token>> picks;
    margins_.clear();
    for (std::size_t k = 0; k < passes.size(); ++k) {
      picks.emplace_back();
      margins_.emplace_back();
      for (std::size_t i = 0; i <= passes[k].drafted; ++i) {
        const auto logits = passes_->logits(packer_.flat_row(k, passes[k].pending() - 1 + i));
        picks[k].push_back(argmax(logits));
        std::vector<float> sorted(logits.begin(), logits.end());
        std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
        margins_[k].push_back(static_cast<double>(sorted[0]) - static_cast<double>(sorted[1]));
      }
    }
    return picks;
  }
  void commit(std::size_t sequence, std::span<const std::size_t> rows) {
    cached_[sequence] += rows.size();
    passes_->truncate(static_cast<BatchSlot>(sequence), cached_[sequence]);
    std::erase(open_, sequence);
  }
  void leave(std::size_t sequence) {
    passes_->truncate(static_cast<BatchSlot>(sequence), 0);
    std::erase(open_, sequence);
  }
  [[nodiscard]] double margin(std::size_t k, std::size_t i) const { return margins_[k][i]; }

 private:
  std::unique_ptr<BatchEngine> passes_;
  BatchPacker packer_;
  std::vector<std::size_t> cached_;
  std::vector<std::size_t> open_;  // sequences with rows that are not committed
  std::vector<std::vector<double>> margins_;
};

class RealBatch : public ::testing::TestWithParam<BatchSetup> {
 protected:
  void SetUp() override {
    if (model_path(GetParam().file).empty()) GTEST_SKIP() << GetParam().file << " is not in REPRISE_LLAMA_MODELS";
  }
};

TEST_P(RealBatch, PicksTheSameTogetherAsAlone) {
  Engine engine = GetParam().load(4);
  std::vector<std::vector<Token>> prompts;
  for (const std::size_t size : {12U, 5U, 40U, 1U})
    prompts.push_back(random_tokens(engine.vocabulary(), size, 3 + prompts.size()));
  const auto make = [&] { return CheckedServer(engine, prompts); };
  const auto report =
      testing::check_batch(make, prompts, {.max_draft = 5, .mixed_runs = 8, .max_rows = 100, .epsilon = 1e-4});
  if (report.verdict() == testing::Verdict::near_tie) std::cout << report.to_string();
  EXPECT_TRUE(report.passed()) << report.to_string();
  EXPECT_GT(report.findings.size(), 5U);
}

/// Sessions of tokens, some with two turns.
std::vector<Request> sessions_for(const Engine& engine) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < 6; ++i) {
    Request request{"s" + std::to_string(i), "test", "here", {}, true, {}, true};
    request.turns.push_back({{}, random_tokens(engine.vocabulary(), 6 + 25 * (i % 3), i), 40 - 5 * (i % 2), {}});
    if (i % 2 == 0) request.turns.push_back({{}, random_tokens(engine.vocabulary(), 9, 90 + i), 20, {}});
    requests.push_back(request);
  }
  return requests;
}

class RealBatchTexts : public RealBatch {
 protected:
  /// Decodes the sessions together with every rule and expects the text of each alone. Returns the preemptions.
  static std::size_t expect_texts(Engine& engine, const BatchSettings& settings) {
    const std::vector<Request> sessions = sessions_for(engine);
    std::vector<RequestRun> alone;
    Drafting plain = no_drafting();
    for (const Request& session : sessions) alone.push_back(run_request(engine, session, plain, settings.settings));
    std::size_t preemptions = 0;
    using Kind = BatchRule::Kind;
    for (const BatchRule& rule : {BatchRule{Kind::plain, 0}, BatchRule{Kind::told, 0}, BatchRule{Kind::learned, 0},
                                  BatchRule{Kind::fixed, 1}, BatchRule{Kind::fixed, 4}}) {
      BatchOptions options;
      if (rule.kind == Kind::told) options.curve = CostCurve::linear(0);
      BatchPlanner planner(options);
      const BatchRun run =
          decode_batch(engine, sessions, make_draftings(std::vector<std::string>{"ngram"})[0], rule, planner, settings);
      for (std::size_t i = 0; i < sessions.size(); ++i)
        EXPECT_FALSE(first_difference(alone[i], run.sessions[i].run)) << rule.name() << ", session " << i;
      EXPECT_EQ(run.all.drafted > 0, rule.kind != Kind::plain) << rule.name();
      preemptions += run.preemptions;
    }
    return preemptions;
  }
};

TEST_P(RealBatchTexts, AreThoseOfEachSessionAlone) {
  Engine engine = GetParam().load(4);
  for (const std::size_t chunk : {0U, 5U, 64U}) expect_texts(engine, {.sequences = 4, .chunk = chunk});
}

TEST_P(RealBatchTexts, StayTheSameInAFullCache) {
  if (!GetParam().unified || !GetParam().whole_window) GTEST_SKIP() << "only a shared cache runs full";
  Engine engine = GetParam().load(4, 160);
  EXPECT_GT(expect_texts(engine, {.sequences = 4, .chunk = 16}), 0U);
}

constexpr BatchSetup setups[] = {{"attention", "attention.gguf"},
                                 {"attention_separate", "attention.gguf", false},
                                 {"whole_sliding_window", "sliding_window.gguf"},
                                 {"whole_sliding_window_separate", "sliding_window.gguf", false},
                                 {"sliding_window", "sliding_window.gguf", true, false},
                                 {"sliding_window_separate", "sliding_window.gguf", false, false}};
constexpr auto setup_name = [](const auto& setup) { return std::string(setup.param.name); };
INSTANTIATE_TEST_SUITE_P(, RealBatch, ::testing::ValuesIn(setups), setup_name);
INSTANTIATE_TEST_SUITE_P(, RealBatchTexts, ::testing::ValuesIn(setups), setup_name);

TEST(RealBatchRefuses, RecurrentAndHybridModelsAndTooManySequences) {
  for (const char* file : {"recurrent.gguf", "hybrid.gguf", "attention.gguf"}) {
    if (model_path(file).empty()) GTEST_SKIP() << file << " is not in REPRISE_LLAMA_MODELS";
    const Engine engine = BatchSetup{file, file}.load(2);
    const std::size_t sequences = std::string(file) == "attention.gguf" ? 3 : 2;
    const std::string refused = testing::refusal([&] { BatchEngine(engine.context(), sequences); });
    EXPECT_THAT(refused, HasSubstr(sequences == 3 ? "n_seq_max" : "recurrent or hybrid")) << file;
  }
}

}  // namespace
}  // namespace reprise::llama::real_batch_test
