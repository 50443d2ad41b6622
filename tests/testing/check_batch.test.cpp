// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/check_batch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/scripted_verifier.hpp"

namespace reprise::testing::check_batch_test {
namespace {

using ::testing::HasSubstr;

enum class Slip : std::uint8_t {
  none,
  slots_by_place,         ///< a part is given to the sequence numbered by its place in the pass
  neighbour_seen,         ///< the first row of a part sees the last row of the part before it
  common_width,           ///< finds rows as if all parts were as long as the first
  commit_cuts_others,     ///< drops the uncommitted rows of the other sequences
  absent_rolled_back,     ///< a sequence that is absent from a pass loses a row
  void_part_stays,        ///< the rows of an uncommitted part stay
  leaving_clears_others,  ///< clears the state of the next sequence in the table
  first_rows_kept,        ///< of a tree, keeps the first rows, as many as the path has
  flips_in_company,       ///< with others in the pass, picks flip where the margin is small
};

/// A scripted engine for each sequence, and the faults of passes over several.
class Server {
 public:
  Server(const std::vector<std::vector<Token>>& prompts, Slip slip, std::size_t leaves) : slip_(slip) {
    ScriptedOptions options;
    options.vocabulary = 6;
    options.order = 3;
    options.capabilities.max_leaves = leaves;
    for (const auto& prompt : prompts) sequences_.emplace_back(options, prompt);
    parts_.resize(prompts.size());
  }

  std::vector<std::vector<Token>> verify(std::span<const SequencePass> passes) {
    std::vector<std::vector<Token>> picks;
    std::vector<bool> present(sequences_.size(), false);
    for (std::size_t k = 0; k < passes.size(); ++k) {
      const std::size_t s = is(Slip::slots_by_place) ? k : passes[k].sequence;
      present[s] = true;
      std::vector<Token> batch(passes[k].batch.begin(), passes[k].batch.end());
      ScriptedVerifier& engine = sequences_[s];
      if (is(Slip::void_part_stays) && parts_[s].open) engine.prefill(parts_[s].batch);
      static_cast<void>(engine.verify_tree(batch, passes[k].drafted, passes[k].parents));
      TokenSpan all = engine.greedy_picks();
      picks.emplace_back(all.begin(), all.end());
      if (is(Slip::neighbour_seen) && k > 0 && passes[k - 1].batch.back() == 3) picks.back()[0] ^= 1;
      if (is(Slip::common_width) && passes[k].batch.size() > passes[0].batch.size()) picks.back().back() ^= 1;
      if (is(Slip::flips_in_company) && passes.size() > 1 && picks.back()[0] == 2) picks.back()[0] = 3;
      parts_[s] = {batch, passes[k].drafted, {passes[k].parents.begin(), passes[k].parents.end()}, true};
    }
    for (std::size_t s = 0; s < sequences_.size(); ++s)
      if (is(Slip::absent_rolled_back) && !present[s]) sequences_[s].lose_cache(sequences_[s].cache().size() - 1);
    return picks;
  }
  void commit(std::size_t sequence, std::span<const std::size_t> rows) {
    std::vector<std::size_t> kept(rows.begin(), rows.end());
    for (std::size_t i = 0; i < kept.size() && is(Slip::first_rows_kept); ++i) kept[i] = i;
    static_cast<void>(sequences_[sequence].commit_rows(kept));
    parts_[sequence].open = false;
    for (std::size_t s = 0; s < sequences_.size() && is(Slip::commit_cuts_others); ++s)
      if (parts_[s].open) {
        sequences_[s].lose_cache(sequences_[s].cache().size());
        sequences_[s].prefill({parts_[s].batch.data(), 1});
        parts_[s].open = false;
      }
  }
  void leave(std::size_t sequence) {
    const std::size_t next = (sequence + 1) % sequences_.size();
    if (is(Slip::leaving_clears_others)) sequences_[next].lose_cache(1);
  }
  [[nodiscard]] double margin(std::size_t, std::size_t) const { return is(Slip::flips_in_company) ? 0.001 : 1; }

 private:
  struct Part {
    std::vector<Token> batch;
    std::size_t drafted = 0;
    std::vector<NodeIndex> parents;
    bool open = false;
  };
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }

  Slip slip_;
  std::vector<ScriptedVerifier> sequences_;
  std::vector<Part> parts_;
};
static_assert(BatchServer<Server>);

const std::vector<std::vector<Token>> prompts = {{1, 2, 3, 4, 1}, {5, 1}, {2, 2, 2, 3}, {4, 0, 4}};

Report check_server(Slip slip, BatchCheck check = {}, std::size_t leaves = 8) {
  check.capabilities.max_leaves = leaves;
  return check_batch([&] { return Server(prompts, slip, leaves); }, prompts, check);
}

TEST(CheckBatch, PassesASoundServer) {
  for (const std::size_t leaves : {1U, 3U, 8U}) {
    const Report report = check_server(Slip::none, {}, leaves);
    EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
    EXPECT_EQ(report.find("trees of different forms") == nullptr, leaves == 1);
    for (const Report::Finding& finding : report.findings) EXPECT_GT(finding.checks, 50U) << finding.what;
  }
}

struct Planted {
  Slip slip;
  const char* name;
  const char* clause;
  const char* what;  ///< text of the first wrong finding
};
struct CheckBatchFinds : ::testing::TestWithParam<Planted> {};
TEST_P(CheckBatchFinds, APlantedFaultByItsClause) {
  const Report report = check_server(GetParam().slip);
  const auto wrong = std::find_if(report.findings.begin(), report.findings.end(),
                                  [](const Report::Finding& finding) { return finding.verdict == Verdict::wrong; });
  ASSERT_NE(wrong, report.findings.end()) << report.to_string();
  EXPECT_EQ(wrong->clause, GetParam().clause) << report.to_string();
  EXPECT_EQ(wrong->what, GetParam().what) << report.to_string();
}
INSTANTIATE_TEST_SUITE_P(
    Faults, CheckBatchFinds,
    ::testing::Values(
        Planted{Slip::slots_by_place, "SlotsByPlace", "V2", "all sequences in a pass, without drafts"},
        Planted{Slip::neighbour_seen, "NeighbourSeen", "V2", "all sequences in a pass, without drafts"},
        Planted{Slip::common_width, "CommonWidth", "V2", "right drafts of different lengths"},
        Planted{Slip::commit_cuts_others, "CommitCutsOthers", "V2", "right drafts of different lengths"},
        Planted{Slip::absent_rolled_back, "AbsentRolledBack", "V2", "some sequences are not in the pass"},
        Planted{Slip::void_part_stays, "VoidPartStays", "V5", "a part that is never committed, then the same again"},
        Planted{Slip::leaving_clears_others, "LeavingClearsOthers", "V5", "a sequence leaves, the others go on"},
        Planted{Slip::first_rows_kept, "FirstRowsKept", "V6", "trees of different forms"}),
    [](const auto& planted) { return std::string(planted.param.name); });

TEST(CheckBatch, ShowsADifferenceWithAsFewSequencesAsItTakes) {
  const Report report = check_server(Slip::neighbour_seen);
  const std::string& message = report.find("all sequences in a pass, without drafts")->message;
  EXPECT_THAT(message, HasSubstr("alone it is"));
  EXPECT_THAT(message, HasSubstr("verify(["));
  const std::size_t begin = message.find("verify([");
  const std::string pass = message.substr(begin, message.find("])", begin) - begin);
  EXPECT_EQ(std::count(pass.begin(), pass.end(), ';'), 1) << message;
}
TEST(CheckBatch, CallsADifferenceWithinEpsilonANearTie) {
  EXPECT_EQ(check_server(Slip::flips_in_company, {.epsilon = 0.01}).verdict(), Verdict::near_tie);
  EXPECT_EQ(check_server(Slip::flips_in_company).verdict(), Verdict::wrong);
}
TEST(CheckBatch, SaysHowManyTokensAreCommitted) {
  struct Cached {
    Server inner;
    std::vector<std::size_t> rows;  // in the cache of each sequence
    auto verify(std::span<const SequencePass> passes) {
      for (const SequencePass& pass : passes) EXPECT_EQ(pass.cached(), rows[pass.sequence]);
      return inner.verify(passes);
    }
    void commit(std::size_t sequence, std::span<const std::size_t> kept) {
      rows[sequence] += kept.size();
      inner.commit(sequence, kept);
    }
  };
  const auto make = [] {
    Cached server{Server(prompts, Slip::none, 3), {}};
    for (const auto& prompt : prompts) server.rows.push_back(prompt.size() - 1);
    return server;
  };
  BatchCheck check;
  check.capabilities.max_leaves = 3;
  EXPECT_EQ(check_batch(make, prompts, check).verdict(), Verdict::exact);
}
TEST(CheckBatch, KeepsToTheRowsOfAPass) {
  std::size_t most = 0;
  struct Counting {
    Server inner;
    std::size_t* most;
    auto verify(std::span<const SequencePass> passes) {
      std::size_t rows = 0;
      for (const SequencePass& pass : passes) rows += pass.batch.size();
      *most = std::max(*most, rows);
      return inner.verify(passes);
    }
    void commit(std::size_t sequence, std::span<const std::size_t> rows) { inner.commit(sequence, rows); }
  };
  BatchCheck check;
  const Report report = check_batch([&] { return Counting{Server(prompts, Slip::none, 1), &most}; }, prompts, check);
  EXPECT_EQ(report.verdict(), Verdict::exact);
  EXPECT_EQ(report.find("a sequence leaves, the others go on")->verdict, Verdict::skipped);
  EXPECT_GT(most, 9U);
  most = 0;
  check.max_rows = 9;
  EXPECT_EQ(check_batch(
                [&] {
                  return Counting{Server(prompts, Slip::none, 1), &most};
                },
                prompts, check)
                .verdict(),
            Verdict::exact);
  EXPECT_EQ(most, 9U);
}
TEST(CheckBatch, ChecksNothingWithoutPrompts) {
  EXPECT_EQ(check_batch([] { return Server({}, Slip::none, 1); }, {}).verdict(), Verdict::skipped);
  const std::vector<std::vector<Token>> one_empty = {{1}, {}};
  EXPECT_EQ(check_batch([&] { return Server(prompts, Slip::none, 1); }, one_empty).verdict(), Verdict::skipped);
}

}  // namespace
}  // namespace reprise::testing::check_batch_test
