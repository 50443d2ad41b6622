// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reprise/testing/check_batch.hpp"
#include "reprise/testing/check_verifier.hpp"
#include "support/recurrent.hpp"
#include "support/transformer.hpp"
#include "support/transformer_engine.hpp"
#include "support/transformer_server.hpp"

// The conformance checks on engines with real attention and real recurrence. A correct engine passes, and each fault of
// these engines is found under its clause.
namespace reprise::testing::check_attention_test {
namespace {

const std::vector<Token> prompt = {3, 14, 15, 9, 26, 5};

const Report::Finding* first_wrong(const Report& report) {
  const auto wrong = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const Report::Finding& finding) { return finding.verdict == Verdict::wrong; });
  return wrong == report.findings.end() ? nullptr : &*wrong;
}
VerifierCheck small(bool sampled = false) {
  VerifierCheck check;
  check.tokens = 16;
  check.max_draft = 3;
  check.mixed_runs = 2;
  check.sampled = sampled;
  return check;
}

template <class Engine>
Report check_transformer(TransformerFault fault, bool sampled = false, double epsilon = 0) {
  static const Transformer model;
  TransformerOptions options;
  options.fault = fault;
  options.sampler.sampled = sampled;
  options.sampler.penalty = sampled ? 1 : 0;
  VerifierCheck check = small(sampled);
  check.epsilon = epsilon;
  return check_verifier([&](TokenSpan tokens) { return Engine(model, tokens, options); }, prompt, check);
}

TEST(CheckAttention, PassesSoundTransformers) {
  for (const bool sampled : {false, true}) {
    const Report report = check_transformer<TransformerEngine>(TransformerFault::none, sampled);
    EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
    const Report walked = check_transformer<WalkingTransformerEngine>(TransformerFault::none, sampled);
    EXPECT_EQ(walked.verdict(), Verdict::exact) << walked.to_string();
  }
}
TEST(CheckAttention, CallsSumsThatDependOnThePassNearTiesAtMost) {
  const Report report = check_transformer<TransformerEngine>(TransformerFault::sums_depend_on_the_pass, false, 1e-3);
  EXPECT_TRUE(report.passed()) << report.to_string();
}

struct Attention {
  TransformerFault fault;
  const char* name;
  const char* clause;  ///< of the first wrong finding
  bool sampled = false;
};
struct CheckAttentionFinds : ::testing::TestWithParam<Attention> {};
TEST_P(CheckAttentionFinds, AMistakeByItsClause) {
  const Report report = check_transformer<WalkingTransformerEngine>(GetParam().fault, GetParam().sampled);
  const Report::Finding* wrong = first_wrong(report);
  ASSERT_NE(wrong, nullptr) << report.to_string();
  EXPECT_EQ(wrong->clause, GetParam().clause) << report.to_string();
}
INSTANTIATE_TEST_SUITE_P(
    Mistakes, CheckAttentionFinds,
    ::testing::Values(Attention{TransformerFault::rollback_one_short, "RollbackOneShort", "V4"},
                      Attention{TransformerFault::rollback_one_long, "RollbackOneLong", "V2"},
                      Attention{TransformerFault::positions_by_row, "PositionsByRow", "V6"},
                      Attention{TransformerFault::positions_one_off, "PositionsOneOff", "V6"},
                      Attention{TransformerFault::siblings_visible, "SiblingsVisible", "V6"},
                      Attention{TransformerFault::stale_row, "StaleRow", "V8"},
                      Attention{TransformerFault::anchor_position, "AnchorPosition", "V2"},
                      Attention{TransformerFault::void_rows_stay, "VoidRowsStay", "V5"},
                      Attention{TransformerFault::void_picks_stay, "VoidPicksStay", "V5", true},
                      Attention{TransformerFault::candidates_one_row_off, "CandidatesOneRowOff", "V11"},
                      Attention{TransformerFault::walks_first_child, "WalksFirstChild", "V13"},
                      Attention{TransformerFault::walk_rows_from_draft, "WalkRowsFromDraft", "V13"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

template <class Engine>
Report check_recurrent(RecurrentFault fault, std::size_t attention_layers, bool sampled = false) {
  RecurrentShape shape;
  shape.attention_layers = attention_layers;
  const RecurrentModel model(shape);
  RecurrentOptions options;
  options.fault = fault;
  options.sampler.sampled = sampled;
  return check_verifier([&](TokenSpan tokens) { return Engine(model, tokens, options); }, prompt, small(sampled));
}

TEST(CheckRecurrence, PassesSoundEngines) {
  for (const bool sampled : {false, true})
    for (const std::size_t layers : {0U, 1U}) {
      const Report report = check_recurrent<RecurrentEngine>(RecurrentFault::none, layers, sampled);
      EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
      EXPECT_EQ(report.find("restored again and again")->verdict, Verdict::exact);
      const Report rows = check_recurrent<PerRowRecurrentEngine>(RecurrentFault::none, layers, sampled);
      EXPECT_EQ(rows.verdict(), Verdict::exact) << rows.to_string();
    }
}

struct Recurrence {
  RecurrentFault fault;
  const char* name;
  const char* clause;
  std::size_t attention_layers = 0;
  bool sampled = false;
};
struct CheckRecurrenceFinds : ::testing::TestWithParam<Recurrence> {};
TEST_P(CheckRecurrenceFinds, AMistakeByItsClause) {
  const Recurrence& mistake = GetParam();
  const Report report =
      mistake.fault == RecurrentFault::row_one_off
          ? check_recurrent<PerRowRecurrentEngine>(mistake.fault, 0)
          : check_recurrent<RecurrentEngine>(mistake.fault, mistake.attention_layers, mistake.sampled);
  const Report::Finding* wrong = first_wrong(report);
  ASSERT_NE(wrong, nullptr) << report.to_string();
  EXPECT_EQ(wrong->clause, mistake.clause) << report.to_string();
}
INSTANTIATE_TEST_SUITE_P(
    Mistakes, CheckRecurrenceFinds,
    ::testing::Values(Recurrence{RecurrentFault::restore_forgotten, "RestoreForgotten", "V10"},
                      Recurrence{RecurrentFault::restore_before_drafts, "RestoreBeforeDrafts", "V10"},
                      Recurrence{RecurrentFault::snapshot_too_late, "SnapshotTooLate", "V10"},
                      Recurrence{RecurrentFault::attention_not_restored, "AttentionNotRestored", "V10", 1},
                      Recurrence{RecurrentFault::recurrence_not_restored, "RecurrenceNotRestored", "V10", 1},
                      Recurrence{RecurrentFault::restore_rewinds_sampler, "RestoreRewindsSampler", "V10", 0, true},
                      Recurrence{RecurrentFault::row_one_off, "RowOneOff", "V4"},
                      Recurrence{RecurrentFault::void_rows_stay, "VoidRowsStay", "V5"}),
    [](const auto& mistake) { return std::string(mistake.param.name); });

/// A TransformerServer with the interface that check_batch() requires.
class PackedServer {
 public:
  PackedServer(const Transformer& model, const std::vector<std::vector<Token>>& prompts, TransformerFault fault)
      : server_(model, fault) {
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

Report check_server(TransformerFault fault) {
  static const Transformer model;
  const std::vector<std::vector<Token>> prompts = {{3, 14, 15}, {9, 26, 5, 35}, {8, 9}};
  BatchCheck check;
  check.tokens = 12;
  check.max_draft = 3;
  check.mixed_runs = 2;
  check.capabilities.max_leaves = 6;
  const auto make = [&] {
    PackedServer server(model, prompts, fault);
    for (std::size_t s = 0; s < prompts.size(); ++s) server.prefilled(s, prompts[s].size() - 1);
    return server;
  };
  return check_batch(make, prompts, check);
}
TEST(CheckAttention, PassesASoundServer) {
  const Report report = check_server(TransformerFault::none);
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}
TEST(CheckAttention, FindsTheMistakesOfAServer) {
  for (const TransformerFault fault :
       {TransformerFault::neighbours_cut, TransformerFault::siblings_visible, TransformerFault::rollback_one_short})
    EXPECT_EQ(check_server(fault).verdict(), Verdict::wrong) << static_cast<int>(fault);
}

}  // namespace
}  // namespace reprise::testing::check_attention_test
