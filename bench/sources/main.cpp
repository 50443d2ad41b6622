// SPDX-License-Identifier: Apache-2.0
// Compares draft sources on a small transformer with random weights, in accepted and drafted tokens. Some texts often
// repeat earlier passages, others hardly do. Every run is checked against plain decoding.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"
#include "reprise_methods/lookahead_drafter.hpp"
#include "reprise_methods/token_recycling_drafter.hpp"
#include "reprise_testing/random.hpp"
#include "support/transformer_engine.hpp"

namespace {

using reprise::Token;
using reprise::testing::Transformer;
using reprise::testing::TransformerEngine;
using reprise::testing::TransformerOptions;

constexpr std::size_t prompts = 4;
constexpr std::size_t prompt_tokens = 32;
constexpr std::size_t output_tokens = 512;
constexpr double row_cost = 0.02;  // each drafted row adds 2% to a pass

struct Texts {
  const char* name;
  float attention_gain;
  bool sampled;
};
constexpr std::array<Texts, 4> texts = {{
    {"greedy, often repeats", 2, false},
    {"greedy, hardly repeats", 6, false},
    {"sampled at 0.5, often repeats", 2, true},
    {"sampled at 0.5, hardly repeats", 6, true},
}};

using Outputs = std::vector<std::vector<Token>>;

/// Decodes all prompts. Returns false if an output is not the expected one.
template <class Strategy, class Control>
bool decode(const Texts& kind, const Strategy& strategy, const Control& control, Outputs& expected,
            reprise::Statistics& sum) {
  reprise::testing::TransformerShape shape;
  shape.attention_gain = kind.attention_gain;
  const Transformer model(shape);
  reprise::testing::Random random(7);
  for (std::size_t i = 0; i < prompts; ++i) {
    std::vector<Token> prompt(prompt_tokens);
    for (Token& token : prompt) token = static_cast<Token>(random.below(shape.vocabulary));
    TransformerOptions options;
    options.sampler.sampled = kind.sampled;
    options.sampler.temperature = 0.5F;
    options.sampler.candidates = 8;
    TransformerEngine engine(model, prompt, options);
    reprise::Session<Strategy, Control> session(strategy, control);
    reprise::Limits limits;
    limits.max_tokens = output_tokens;
    limits.draft.max_nodes = 64;
    const auto generated = reprise::generate(session, engine, prompt, limits);
    if (!generated) return false;
    const std::vector<Token> output(generated->tokens.begin(), generated->tokens.end());
    if (expected.size() == i) expected.push_back(output);
    if (output != expected[i]) return false;
    sum += generated->statistics;
  }
  return true;
}

/// Prints one row of the table: first with all nodes sent, then with the number that pays under the cost curve.
template <class Strategy>
bool row(const char* name, const Texts& kind, const Strategy& strategy, Outputs& expected) {
  reprise::Statistics all;
  reprise::Statistics paid;
  const reprise::CostControl control({.curve = reprise::CostCurve::linear(row_cost), .calibrated = true});
  if (!decode(kind, strategy, reprise::SendAll(), expected, all) || !decode(kind, strategy, control, expected, paid)) {
    std::printf("%s: the output differs from plain decoding\n", name);
    return false;
  }
  const double cost = static_cast<double>(paid.passes) + row_cost * static_cast<double>(paid.drafted);
  std::printf("| %-26s | %5.2f | %10.1f | %9.1f%% | %8.2f | %11.2f | %6.2f |\n", name, all.mean_accepted_tokens(),
              all.drafted_per_pass(), 100 * all.acceptance_rate(), paid.mean_accepted_tokens(), paid.drafted_per_pass(),
              static_cast<double>(paid.tokens) / cost);
  return true;
}

}  // namespace

int main() {
  bool sound = true;
  for (const Texts& kind : texts) {
    std::printf("\n%s\n", kind.name);
    std::printf("| %-26s | %5s | %10s | %10s | %8s | %11s | %6s |\n", "strategy", "MAT", "drafted", "accepted",
                "paid MAT", "paid drafts", "speed");
    Outputs expected;
    sound = row("none", kind, reprise::NoDrafter(), expected) && sound;
    sound = row("ngram", kind, reprise::NgramDrafter<>(), expected) && sound;
    sound = row("lookahead W 5 N 4 G 5", kind, reprise::LookaheadDrafter(), expected) && sound;
    sound = row("lookahead W 10 N 3 G 10", kind,
                reprise::LookaheadDrafter::make({.window = 10, .ngram = 3, .candidates = 10}).value(), expected) &&
            sound;
    sound = row("recycling, 8 candidates", kind, reprise::TokenRecyclingDrafter(), expected) && sound;
    sound = row("recycling, 1 candidate", kind, reprise::TokenRecyclingDrafter::make({.candidates = 1}).value(),
                expected) &&
            sound;
  }
  return sound ? 0 : 1;
}
