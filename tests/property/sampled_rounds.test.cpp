// SPDX-License-Identifier: Apache-2.0
// ModelDrafter leaves the target's distribution as it is when the decision to send a draft depends on earlier rounds:
// through the loss budget of CostControl, and through the size of the last pass of a BatchPlanner. A drafter that used
// a random number in two rounds would tie its tokens to that decision. Seeds are fixed, so the result is too.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "reprise/batch/planner.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/draft/model_drafter.hpp"
#include "reprise/engine/rejection.hpp"
#include "reprise/loop/session.hpp"
#include "support/streams.hpp"

namespace reprise::testing::property_sampled_rounds_test {
namespace {

constexpr std::size_t vocabulary = 12;
using Row = std::array<float, vocabulary>;
/// The distribution of the next token after each token.
using Table = std::array<Row, vocabulary>;

Row even(std::initializer_list<std::pair<std::size_t, float>> weights) {
  Row row{};
  for (const auto& [token, weight] : weights) row[token] = weight;
  return row;
}

/// After the token 3 the draft model draws 4 or 5, which the target mostly rejects. Then it is sure after 0 and unsure
/// after 1, so the number that draws that second token decides how many rows are sent.
Table drafter_table() {
  Table table;
  for (Row& row : table) row.fill(1.0F / vocabulary);
  table[3] = even({{4, 0.5F}, {5, 0.5F}});
  table[4] = table[5] = even({{0, 0.5F}, {1, 0.5F}});
  table[0] = even({{6, 1.0F}});
  table[7] = table[8] = table[9] = even({{8, 0.75F}, {9, 0.25F}});
  return table;
}
Table target_table() {
  Table table = drafter_table();
  table[3] = even({{3, 0.5F}, {4, 0.25F}, {5, 0.25F}});
  table[4] = table[5] = table[0] = table[1];
  return table;
}

/// A draft model that knows the last token.
struct LastToken {
  Table table = drafter_table();
  std::vector<Token> context = {};

  [[nodiscard]] static std::size_t vocabulary() { return property_sampled_rounds_test::vocabulary; }
  std::span<const float> feed(TokenSpan tokens) {
    context.insert(context.end(), tokens.begin(), tokens.end());
    return table[static_cast<std::size_t>(context.back())];
  }
  void truncate(std::size_t size) { context.resize(size); }
};
using Drafter = ModelDrafter<LastToken>;

Drafter drafter(const Table& table = drafter_table()) {
  return Drafter::make(
             LastToken{.table = table},
             {.kind = DraftKind::sampled, .draft_length = 3, .min_path_probability = Probability::from_raw(1)})
      .value();
}

/// Decides on a pass by rejection sampling, commits it, and returns its tokens.
template <class Session>
std::vector<Token> sample(Session& session, const Pass& pass, const Table& target, SplitMix& random) {
  const TokenSpan draft = pass.batch.last(pass.drafted);
  const Token anchor = pass.batch[pass.pending - 1];
  RejectionPicks picks(
      draft,
      [&](std::size_t i) {
        return std::span<const float>(target[static_cast<std::size_t>(i == 0 ? anchor : draft[i - 1])]);
      },
      [&](std::size_t i) { return session.strategy().distribution(pass.nodes[i]); }, [&] { return random.unit(); });
  const auto decision = session.resolve(pass.ticket, picks);
  EXPECT_TRUE(decision);
  std::vector<Token> tokens;
  for (const CommittedToken& committed : decision->tokens) tokens.push_back(committed.token);
  EXPECT_TRUE(session.commit(pass.ticket));
  return tokens;
}

/// Returns Pearson's statistic of these counts. Tokens with a probability of 0 must not occur.
double chi_square(const std::array<double, vocabulary>& counts, const Row& expected) {
  double total = 0;
  double sum = 0;
  for (const double count : counts) total += count;
  for (std::size_t token = 0; token < vocabulary; ++token) {
    const double wanted = total * static_cast<double>(expected[token]);
    if (wanted == 0) {
      EXPECT_EQ(counts[token], 0) << token;
      continue;
    }
    sum += (counts[token] - wanted) * (counts[token] - wanted) / wanted;
  }
  return sum;
}

// Two degrees of freedom: above 25 in one case of 250,000.
constexpr double most = 25;

using Controlled = Session<Drafter, CostControl>;

TEST(SampledRounds, LeaveTheDistributionAsItIsIfTheLossBudgetIsAlmostSpent) {
  const Table target = target_table();
  const Limits limits{.max_tokens = 6};
  const std::array<Token, 1> prompt = {3};
  for (const double slope : {0.1, 0.15, 0.2, 0.24, 0.3}) {
    SplitMix random(7);
    std::array<double, vocabulary> second{};
    for (int text = 0; text < 20'000; ++text) {
      LossBudget budget(to_cost(0.86));
      Controlled session(drafter(),
                         CostControl({.curve = CostCurve::linear(slope), .calibrated = true, .loss_budget = &budget}));
      session.strategy().reseed(random.next());
      ASSERT_TRUE(session.begin(prompt));
      std::vector<Token> output;
      while (output.size() < 2 && (output.empty() || output[0] == 3)) {
        session.propose(limits, DraftShape::chain);
        for (const Token token : sample(session, session.plan().value(), target, random)) output.push_back(token);
      }
      if (output[0] == 3) ++second[static_cast<std::size_t>(output[1])];
    }
    EXPECT_LT(chi_square(second, target[3]), most) << slope;
  }
}

TEST(SampledRounds, LeaveTheDistributionAsItIsInOneSessionForManyRequests) {
  const Table target = target_table();
  const Limits limits{.max_tokens = 9};
  // Requests that begin with 7 agree with the drafter, and refill the budget.
  for (const unsigned agreeing : {5U, 15U, 30U})
    for (const bool reseeded : {true, false}) {
      SplitMix random(11);
      std::array<double, vocabulary> second{};
      Controlled session(drafter(), CostControl({.curve = CostCurve::linear(0.27), .calibrated = true}));
      for (int request = 0; request < 60'000; ++request) {
        if (reseeded) session.strategy().reseed(random.next());
        const std::array<Token, 1> prompt = {random.next() % 100 < agreeing ? 7 : 3};
        ASSERT_TRUE(session.begin(prompt));
        std::vector<Token> output;
        while (output.size() < (prompt[0] == 7 ? 4U : 2U)) {
          session.propose(limits, DraftShape::chain);
          for (const Token token : sample(session, session.plan().value(), target, random)) output.push_back(token);
        }
        if (prompt[0] == 3 && output[0] == 3) ++second[static_cast<std::size_t>(output[1])];
      }
      EXPECT_LT(chi_square(second, target[3]), most) << agreeing << " of 100 agree, reseeded: " << reseeded;
    }
}

TEST(SampledRounds, LeaveTheDistributionAsItIsUnderAPlannerOfPasses) {
  // The next token after 3, over one long text in which 3 is frequent.
  Table target = target_table();
  for (Row& row : target) {
    row.fill(0.4F / (vocabulary - 1));
    row[3] = 0.6F;
  }
  target[3] = even({{3, 0.5F}, {4, 0.25F}, {5, 0.25F}});
  target[4] = target[5] = even({{0, 0.4F}, {1, 0.4F}, {3, 0.2F}});
  target[0] = even({{6, 0.9F}, {3, 0.1F}});
  target[1] = even({{3, 0.8F}, {0, 0.1F}, {2, 0.1F}});
  // After 1 the drafter is always wrong, so it learns that a third row is not worth sending there.
  Table drafted_from = drafter_table();
  drafted_from[1] = even({{6, 0.2F}, {7, 0.2F}, {8, 0.2F}, {9, 0.2F}, {10, 0.2F}});
  // A row is cheap until a fourth row begins a new tile.
  std::vector<CostPoint> points;
  for (std::size_t rows = 1; rows <= 8; ++rows)
    points.push_back({1, 0, rows, 1e6 * (0.95 + 0.05 * static_cast<double>(rows) + (rows < 5 ? 0.0 : 0.6))});
  BatchPlanner planner({.curve = CostCurve::from_points(points).value()});
  Session<Drafter> session(drafter(drafted_from));
  SplitMix random(3);
  Limits limits;
  std::array<double, vocabulary> next{};
  for (int text = 0; text < 400; ++text) {
    ASSERT_TRUE(session.begin(std::array<Token, 1>{3}));
    Token last = 3;
    for (int round = 0; round < 400; ++round) {
      limits.draft = planner.budget({}, {1, session.pending().size(), session.context().size()});
      session.propose(limits, DraftShape::chain);
      const std::array<BatchEntry, 1> entries = {BatchEntry{session.offer().value(), session.context().size()}};
      const BatchPlan plan = planner.plan(entries);
      const std::vector<Token> tokens =
          sample(session, session.plan(plan.nodes_of(0), plan.cut).value(), target, random);
      for (const Token token : tokens) {
        if (last == 3) ++next[static_cast<std::size_t>(token)];
        last = token;
      }
      planner.learn(std::array<std::size_t, 1>{tokens.size()});
    }
  }
  EXPECT_LT(chi_square(next, target[3]), most);
}

}  // namespace
}  // namespace reprise::testing::property_sampled_rounds_test
