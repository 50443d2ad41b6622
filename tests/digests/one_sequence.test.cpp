// SPDX-License-Identifier: Apache-2.0
// A planner with one sequence plans what CostControl chooses: in every pass of the bundled traces, at several costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "digests/digest.hpp"
#include "replay/trace.hpp"
#include "reprise/batch.hpp"
#include "reprise/reprise.hpp"

namespace reprise::testing::one_sequence_test {
namespace {

struct Cell {
  double slope;
  bool told;
  Capabilities can;
};

/// Decodes a session under control, and again under a planner, side by side. Returns the number of drafted tokens.
std::size_t play(const replay::TraceSession& recorded, const Cell& cell) {
  constexpr std::size_t most = 32;
  const std::optional<CostCurve> curve = cell.told ? std::optional(CostCurve::linear(cell.slope)) : std::nullopt;
  Session<NgramDrafter<>, CostControl> one{NgramDrafter<>(), CostControl({.curve = curve, .max_nodes = most})};
  Session<NgramDrafter<>, SendAll> other{NgramDrafter<>()};
  BatchPlanner planner({.curve = curve, .max_nodes = most});
  Limits limits;
  Limits planned;
  limits.draft.max_nodes = most;
  std::size_t drafted = 0;
  std::uint64_t noise = 1;
  for (const replay::Turn& turn : recorded.turns) {
    const bool first = &turn == &recorded.turns.front();
    const TokenSpan output = turn.output;
    EXPECT_TRUE(first ? one.begin(turn.prompt, cell.can) : one.append(turn.prompt));
    EXPECT_TRUE(first ? other.begin(turn.prompt, cell.can) : other.append(turn.prompt));
    EXPECT_TRUE(one.append(output.first(1), Origin::output) && other.append(output.first(1), Origin::output));
    for (std::size_t done = 1; done < output.size();) {
      one.propose(limits);
      const auto pass = one.plan();
      planned.draft = planner.budget(limits.draft, {1, other.pending().size(), other.context().size()});
      other.propose(planned);
      const BatchEntry entry{other.offer().value(), other.context().size()};
      const BatchPlan plan = planner.plan({&entry, 1});
      const auto same = other.plan(plan.nodes_of(0), plan.cut);
      if (!std::ranges::equal(pass->batch, same->batch)) {
        ADD_FAILURE() << recorded.id << ", slope " << cell.slope << (cell.told ? ", told" : ", learned") << ": control "
                      << pass->drafted << ", planner " << same->drafted << " after " << done << " tokens";
        return 0;
      }
      const TokenSpan coming = output.subspan(done);
      std::vector<Token> picks = {coming[0]};
      for (const std::uint32_t depth : pass->depths) picks.push_back(depth < coming.size() ? coming[depth] : 0);
      const std::size_t end = one.output().size() + coming.size();
      const auto ends = [end](TokenSpan text, Token) {
        return text.size() + 1 == end ? StopDecision::stop_after : StopDecision::proceed;
      };
      const std::size_t committed = one.resolve(pass->ticket, picks, ends)->tokens.size();
      EXPECT_EQ(other.resolve(same->ticket, picks, ends)->tokens.size(), committed);
      noise = noise * 6364136223846793005U + 1442695040888963407U;
      const double error = 0.95 + 0.1 * static_cast<double>(noise >> 40) / (1 << 24);
      std::optional<Duration> time;
      if (!cell.told)
        time = Duration(static_cast<std::int64_t>(1e7 * error * (1 + cell.slope * static_cast<double>(pass->drafted))));
      EXPECT_TRUE(one.commit(pass->ticket, time) && other.commit(same->ticket, time));
      planner.learn({&committed, 1}, time);
      drafted += pass->drafted;
      done += committed;
    }
  }
  return drafted;
}

TEST(OneSequence, IsPlannedAsCostControlChooses) {
  const Capabilities chain{.max_leaves = 1};
  const Capabilities tree{.max_leaves = unlimited};
  Capabilities recurrent = chain;
  recurrent.rollback = Rollback::snapshot;
  std::size_t drafted = 0;
  for (const std::string name :
       {"chat", "code-edit", "json", "prose", "reasoning", "retrieval", "summary", "translation"}) {
    const replay::Trace trace = replay::read_trace(REPRISE_SOURCE_DIR "/bench/traces/" + name + ".jsonl");
    for (const replay::TraceSession& session : trace.sessions)
      for (const bool told : {true, false}) {
        for (const double slope : {0.02, 0.1, 0.3})
          for (const Capabilities& can : {chain, tree}) drafted += play(session, {slope, told, can});
        drafted += play(session, {0.05, told, recurrent});
      }
  }
  EXPECT_GT(drafted, 100'000U);
}

}  // namespace
}  // namespace reprise::testing::one_sequence_test
