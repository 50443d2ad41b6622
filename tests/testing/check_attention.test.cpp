// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "reprise/testing/check_batch.hpp"
#include "reprise/testing/check_verifier.hpp"
#include "support/recurrent.hpp"
#include "support/transformer.hpp"
#include "support/transformer_engine.hpp"
#include "support/transformer_server.hpp"

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

/// A TransformerServer with the interface that check_batch() requires.
class PackedServer {
 public:
  PackedServer(const Transformer& model, const std::vector<std::vector<Token>>& prompts) : server_(model) {
    for (const auto& tokens : prompts) slots_.push_back(server_.join(tokens));
  }
  std::vector<std::vector<Token>> verify(std::span<const SequencePass> passes) {
    std::vector<Token> tokens;
    std::vector<std::size_t> positions;
    std::vector<std::size_t> sequences;
    std::vector<std::size_t> offsets = {0};
    std::vector<NodeIndex> parents;
    std::vector<std::vector<Token>> picks;
    for (const SequencePass& pass : passes) {
      const std::size_t pending = pass.batch.size() - pass.drafted;
      const std::size_t first = positions.size();
      for (std::size_t row = 0; row < pass.batch.size(); ++row) {
        tokens.push_back(pass.batch[row]);
        sequences.push_back(slots_[pass.sequence]);
        NodeIndex parent = static_cast<NodeIndex>(row) - 1;
        if (row >= pending) parent = pass.parents[row - pending] + static_cast<NodeIndex>(pending);
        parents.push_back(parent);
        positions.push_back(parent == anchor_parent ? committed_of(pass.sequence)
                                                    : positions[first + static_cast<std::size_t>(parent)] + 1);
      }
      offsets.push_back(tokens.size());
    }
    const TokenSpan all = server_.forward({tokens, positions, sequences, offsets, parents});
    for (std::size_t k = 0; k < passes.size(); ++k)
      picks.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(offsets[k + 1] - passes[k].drafted - 1),
                         all.begin() + static_cast<std::ptrdiff_t>(offsets[k + 1]));
    return picks;
  }
  void commit(std::size_t sequence, std::span<const std::size_t> rows) {
    server_.commit(slots_[sequence], rows);
    committed_[sequence] += rows.size();
  }
  void leave(std::size_t sequence) { server_.leave(slots_[sequence]); }
  void prefilled(std::size_t sequence, std::size_t rows) { committed_[sequence] = rows; }

 private:
  std::size_t committed_of(std::size_t sequence) { return committed_[sequence]; }

  TransformerServer server_;
  std::vector<std::size_t> slots_;
  std::vector<std::size_t> committed_ = std::vector<std::size_t>(8);
};

TEST(CheckAttention, PassesASoundServer) {
  static const Transformer model;
  const std::vector<std::vector<Token>> prompts = {{3, 14, 15}, {9, 26, 5, 35}, {8, 9}};
  BatchCheck check;
  check.tokens = 12;
  check.max_draft = 3;
  check.mixed_runs = 2;
  check.capabilities.max_leaves = 6;
  const auto make = [&] {
    PackedServer server(model, prompts);
    for (std::size_t s = 0; s < prompts.size(); ++s) server.prefilled(s, prompts[s].size() - 1);
    return server;
  };
  const Report report = check_batch(make, prompts, check);
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}

}  // namespace
}  // namespace reprise::testing::check_attention_test
