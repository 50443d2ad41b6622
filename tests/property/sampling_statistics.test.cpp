// SPDX-License-Identifier: Apache-2.0
// Compares rejection sampling in floating point with the target's distribution, by Pearson's chi-square test. Seeds are
// fixed, so the result is too. exact_sampling.test.cpp proves the method; this file tests its arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/engine/rejection.hpp"
#include "reprise/loop/session.hpp"
#include "support/property_cases.hpp"
#include "support/streams.hpp"

namespace reprise::sampling_statistics_test {
namespace {

using Random = testing::SplitMix;

constexpr std::size_t vocabulary = 8;
constexpr std::size_t known_to_drafter = 7;  // it lacks one token
constexpr std::size_t draft_length = 3;

/// Returns the number of samples: five per case, 50,000 to ten million.
std::size_t samples() {
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(reprise::testing::property_cases(), 10'000, 2'000'000) * 5);
}

/// The distribution of the next token after each token.
using Table = std::array<std::vector<float>, vocabulary>;

Table make_table(std::size_t tokens, Random& random) {
  Table table;
  for (auto& row : table) {
    double sum = 0;
    for (std::size_t i = 0; i < tokens; ++i) {
      row.push_back(random.one_in(6) ? 0.0F : static_cast<float>(std::exp(3 * random.unit())));
      sum += static_cast<double>(row.back());
    }
    if (sum == 0) sum = row[0] = 1;
    for (float& p : row) p = static_cast<float>(static_cast<double>(p) / sum);
  }
  return table;
}
const std::vector<float>& after(const Table& table, Token token) { return table[static_cast<std::size_t>(token)]; }

/// Draws its drafts from its own table. It states in advance how often the next token will be accepted.
struct Drafter : archetype::Strategy {
  const Table* target;
  const Table* own;
  Random random;
  std::array<Token, draft_length> before{};  // the token before each drafted token

  void propose(TokenSpan context, Draft& draft) {
    draft.clear(DraftKind::sampled);
    Token token = context.back();
    double path = 1;
    for (std::size_t i = 0; i < std::min(draft_length, draft.budget().max_nodes); ++i) {
      const std::vector<float>& q = after(*own, token);
      double accepted = 0;
      for (std::size_t t = 0; t < q.size(); ++t)
        accepted += static_cast<double>(std::min(q[t], after(*target, token)[t]));
      path *= std::min(accepted, 1.0);
      before[i] = token;
      token = static_cast<Token>(draw_index(q, random.unit()).value());
      draft.extend({.token = token,
                    .path_probability = Probability::from_raw(static_cast<std::uint32_t>(path * Probability::scale))});
    }
  }
};
static_assert(DraftStrategy<Drafter>);

/// The statistic over all transitions of a run, and the bound that a correct sampler exceeds once in a million runs.
struct ChiSquare {
  double statistic = 0;
  double bound = 0;
  double accepted = 0;  ///< share of the drafted tokens
  bool forbidden = false;

  [[nodiscard]] bool fits() const { return !forbidden && statistic < bound; }
};

using Counts = std::array<std::array<double, vocabulary>, vocabulary>;

ChiSquare test(const Counts& counts, const Table& target) {
  ChiSquare result;
  double freedom = 0;
  for (std::size_t from = 0; from < vocabulary; ++from) {
    double total = 0;
    for (const double count : counts[from]) total += count;
    if (total == 0) continue;
    freedom -= 1;
    for (std::size_t to = 0; to < vocabulary; ++to) {
      const double expected = total * static_cast<double>(target[from][to]);
      if (expected == 0) {
        result.forbidden = result.forbidden || counts[from][to] > 0;
        continue;
      }
      freedom += 1;
      result.statistic += (counts[from][to] - expected) * (counts[from][to] - expected) / expected;
    }
  }
  // The quantile by Wilson and Hilferty (1931).
  constexpr double z = 4.753;
  const double part = 2 / (9 * freedom);
  result.bound = freedom * std::pow(1 - part + z * std::sqrt(part), 3);
  return result;
}

/// Decodes with the picks of `make(draft, p, q, random)`.
template <class Control, class MakePicks>
ChiSquare decode(std::uint64_t seed, Control control, std::size_t tokens, MakePicks make) {
  Random random(seed);
  const Table target = make_table(vocabulary, random);
  const Table own = make_table(known_to_drafter, random);
  Session<Drafter, Control> session(Drafter{{}, &target, &own, Random(seed + 1)}, std::move(control), draft_length);
  Limits limits;
  limits.max_context = 4'000;
  Counts counts{};
  double drafted = 0;
  double accepted = 0;
  std::vector<Token> prompt = {0};
  for (std::size_t done = 0; done < tokens;) {
    EXPECT_TRUE(session.begin(prompt));
    while (true) {
      session.propose(limits);
      if (session.finished()) break;
      const auto pass = session.plan();
      const TokenSpan draft = pass->batch.last(pass->drafted);
      auto picks = make(
          draft, [&](std::size_t i) { return std::span<const float>(after(target, pass->batch[i])); },
          [&](std::size_t i) { return std::span<const float>(after(own, session.strategy().before[i])); },
          [&] { return random.unit(); });
      static_cast<void>(session.resolve(pass->ticket, picks));
      static_cast<void>(session.commit(pass->ticket));
    }
    const TokenSpan text = session.context();
    for (std::size_t i = 1; i < text.size(); ++i)
      ++counts[static_cast<std::size_t>(text[i - 1])][static_cast<std::size_t>(text[i])];
    done += text.size() - 1;
    drafted += static_cast<double>(session.statistics().drafted);
    accepted += static_cast<double>(session.statistics().accepted);
    prompt = {text.back()};
  }
  ChiSquare result = test(counts, target);
  result.accepted = drafted == 0 ? 0 : accepted / drafted;
  return result;
}

const auto by_rejection = [](TokenSpan draft, auto target, auto drafter, auto random) {
  return RejectionPicks(draft, std::move(target), std::move(drafter), std::move(random));
};
/// Treats the drafter's distribution as a point mass.
const auto by_agreement = [](TokenSpan draft, auto target, auto, auto random) {
  return RejectionPicks(
      draft, std::move(target), [](std::size_t) { return std::span<const float>(); }, std::move(random));
};

TEST(SamplingStatistics, FitTheTargetByRejection) {
  constexpr std::uint64_t seeds = 4;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const ChiSquare result = decode(seed, SendAll(), samples() / seeds, by_rejection);
    EXPECT_TRUE(result.fits()) << result.statistic << " above " << result.bound;
    RecordProperty("chi_square_" + std::to_string(seed), std::to_string(result.statistic));
    EXPECT_GT(result.accepted, 0.2);
    EXPECT_LT(result.accepted, 0.9);
  }
}
TEST(SamplingStatistics, FitTheTargetWithThePlanner) {
  CostOptions options;
  options.curve = CostCurve::linear(0.1);
  for (const bool calibrated : {false, true}) {
    options.calibrated = calibrated;
    const ChiSquare result = decode(11, CostControl(options), samples() / 2, by_rejection);
    EXPECT_TRUE(result.fits()) << result.statistic << " above " << result.bound;
    EXPECT_GT(result.accepted, 0.2);
  }
}
TEST(SamplingStatistics, FitTheTargetByAgreement) {
  const ChiSquare result = decode(12, SendAll(), samples() / 2, by_agreement);
  EXPECT_TRUE(result.fits()) << result.statistic << " above " << result.bound;
  EXPECT_GT(result.accepted, 0.02);
}

}  // namespace
}  // namespace reprise::sampling_statistics_test
