// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise_testing/check_verifier.hpp"
#include "support/recurrent.hpp"
#include "support/transformer.hpp"
#include "support/transformer_engine.hpp"

// The conformance checks on engines with real attention and real recurrence, which must pass. Tests of each check plant
// the faults.
namespace reprise::testing::check_attention_test {
namespace {

const std::vector<Token> prompt = {3, 14, 15, 9, 26, 5};

VerifierCheck small(bool sampled = false) {
  VerifierCheck check;
  check.tokens = 16;
  check.max_draft = 3;
  check.mixed_runs = 2;
  check.sampled = sampled;
  return check;
}

template <class Engine>
Report check_transformer(bool sampled) {
  static const Transformer model;
  TransformerOptions options;
  options.sampler.sampled = sampled;
  options.sampler.penalty = sampled ? 1 : 0;
  return check_verifier([&](TokenSpan tokens) { return Engine(model, tokens, options); }, prompt, small(sampled));
}

TEST(CheckAttention, PassesSoundTransformers) {
  for (const bool sampled : {false, true}) {
    const Report report = check_transformer<TransformerEngine>(sampled);
    EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
    const Report walked = check_transformer<WalkingTransformerEngine>(sampled);
    EXPECT_EQ(walked.verdict(), Verdict::exact) << walked.to_string();
  }
}

template <class Engine>
Report check_recurrent(std::size_t attention_layers, bool sampled) {
  RecurrentShape shape;
  shape.attention_layers = attention_layers;
  const RecurrentModel model(shape);
  RecurrentOptions options;
  options.sampler.sampled = sampled;
  return check_verifier([&](TokenSpan tokens) { return Engine(model, tokens, options); }, prompt, small(sampled));
}

TEST(CheckRecurrence, PassesSoundEngines) {
  for (const bool sampled : {false, true})
    for (const std::size_t layers : {0U, 1U}) {
      const Report report = check_recurrent<RecurrentEngine>(layers, sampled);
      EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
      EXPECT_EQ(report.find("restored again and again")->verdict, Verdict::exact);
      const Report rows = check_recurrent<PerRowRecurrentEngine>(layers, sampled);
      EXPECT_EQ(rows.verdict(), Verdict::exact) << rows.to_string();
    }
}

}  // namespace
}  // namespace reprise::testing::check_attention_test
