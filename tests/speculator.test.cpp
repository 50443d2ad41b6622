// SPDX-License-Identifier: Apache-2.0
#include "reprise/speculator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise/loop/generate.hpp"
#include "support/hostile_strategy.hpp"
#include "support/streams.hpp"

namespace reprise::speculator_test {
namespace {

using testing::Stream;

Capabilities trees() {
  Capabilities can;
  can.max_leaves = unlimited;
  return can;
}

struct Played {
  double speedup = 0;
  double worst_loss = 0;  // over any 1,000 passes in a row
  bool exact = true;
};

/// Decodes the rest of `text` after its first `prompt` tokens. cost(k) is the cost of a pass with k drafted tokens.
template <class Session, class Cost>
Played play(Session& session, TokenSpan text, std::size_t prompt, Cost cost, bool timed = false) {
  Played played;
  const Limits limits{.max_tokens = text.size() - prompt - 70};
  if (!session.begin(text.first(prompt), trees())) return {};
  std::vector<double> losses = {0};
  double spent = 0;
  for (session.propose(limits); !session.finished(); session.propose(limits)) {
    const auto pass = session.plan();
    const std::size_t before = session.context().size();
    if (!session.resolve(pass->ticket, testing::StreamPicks{text.subspan(before), pass->depths})) return {};
    const double paid = cost(pass->drafted);
    std::optional<std::chrono::nanoseconds> time;
    if (timed) time = std::chrono::nanoseconds(static_cast<std::int64_t>(paid * 1e7));
    if (!session.commit(pass->ticket, time)) return {};
    spent += paid;
    losses.push_back(losses.back() + paid - static_cast<double>(session.context().size() - before));
  }
  for (std::size_t end = 1; end < losses.size(); ++end)
    for (std::size_t begin = end > 1000 ? end - 1000 : 0; begin < end; begin += 7)
      played.worst_loss = std::max(played.worst_loss, losses[end] - losses[begin]);
  played.speedup = static_cast<double>(session.output().size()) / spent;
  const TokenSpan expected = text.subspan(prompt, session.output().size());
  played.exact = std::equal(expected.begin(), expected.end(), session.output().begin(), session.output().end());
  return played;
}

/// Drafts tokens that never come, and is sure of them.
struct Certain : archetype::Strategy {
  void propose(TokenSpan, Draft& draft) const {
    while (draft.extend({.token = 2'000'000'000})) {
    }
  }
};

TEST(SpeculatorWith, ControlsAnyStrategy) {
  const std::vector<Token> text = testing::make_stream(Stream::trace_like, 3000, 5);
  const auto cost = [](std::size_t k) { return 1 + 0.3 * static_cast<double>(k); };
  const CostOptions told{.curve = CostCurve::linear(0.3)};
  auto wrong = speculator_with(Certain(), told);
  EXPECT_GE(play(wrong, text, 500, cost).speedup, 0.99);
  Session uncontrolled{Certain()};
  EXPECT_LT(play(uncontrolled, text, 500, cost).speedup, 0.3) << "a session alone sends everything";
  auto both = speculator_with(UnionDrafter{NgramDrafter<>(), Certain()}, told);
  Speculator alone(CostCurve::linear(0.3));
  EXPECT_GE(play(both, text, 500, cost).speedup, 0.9 * play(alone, text, 500, cost).speedup);
  EXPECT_TRUE(both.control().options().calibrated);
  EXPECT_FALSE(wrong.control().options().calibrated);
  EXPECT_TRUE((Session<NgramDrafter<>, CostControl>().control().options().calibrated)) << "cannot be forgotten";
}

TEST(Speculator, NeverLosesWhateverTheText) {
  for (const Stream stream : testing::all_streams) {
    const std::vector<Token> text = testing::make_stream(stream, 3000, 5);
    for (const double slope : {0.0, 0.005, 0.02, 0.1, 0.3, 1.0}) {
      Speculator speculator(CostCurve::linear(slope));
      const Played played =
          play(speculator, text, 500, [&](std::size_t k) { return 1 + slope * static_cast<double>(k); });
      EXPECT_TRUE(played.exact);
      EXPECT_GE(played.speedup, 0.99) << testing::name(stream) << ", s = " << slope;
      EXPECT_LE(played.worst_loss, 10) << testing::name(stream) << ", s = " << slope;
    }
  }
}

TEST(Speculator, IsFasterWhereTextRepeats) {
  const std::vector<Token> text = testing::make_stream(Stream::trace_like, 4000, 5);
  const auto speedup = [&](double slope) {
    Speculator speculator(CostCurve::linear(slope));
    return play(speculator, text, 1000, [&](std::size_t k) { return 1 + slope * static_cast<double>(k); }).speedup;
  };
  EXPECT_GT(speedup(0), 1.8);
  EXPECT_GT(speedup(0.1), 1.3);
  EXPECT_GT(speedup(0.3), 1.1);
}

TEST(Speculator, WithoutACurveLearnsItFromTheTimesOfPasses) {
  const std::vector<Token> text = testing::make_stream(Stream::trace_like, 12'000, 5);
  const auto dear = [](std::size_t k) { return 1 + 0.5 * static_cast<double>(k); };
  Speculator told(CostCurve::linear(0.5));
  Speculator learns;
  Speculator ignorant;
  const double best = play(told, text, 1000, dear).speedup;
  EXPECT_GE(play(learns, text, 1000, dear, true).speedup, 0.97 * best);
  EXPECT_LT(play(ignorant, text, 1000, dear, false).speedup, 0.97 * best) << "or the test says nothing";
}

TEST(Speculator, KeepsItsGuardAgainstHostileStrategies) {
  const std::vector<Token> text = testing::make_stream(Stream::random_small, 6000, 5);
  for (const double slope : {0.02, 0.1, 0.3}) {
    Session<testing::HostileStrategy, CostControl> session(testing::HostileStrategy(3),
                                                           CostControl({.curve = CostCurve::linear(slope)}));
    const Played played = play(session, text, 100, [&](std::size_t k) { return 1 + slope * static_cast<double>(k); });
    EXPECT_TRUE(played.exact);
    EXPECT_GE(played.speedup, 0.99) << slope;
    EXPECT_LE(played.worst_loss, 10) << slope;
  }
}

TEST(Speculator, KeepsItsGuardWherePadRowsHaveNoPath) {
  // A wide pass is cheap and a narrow one expensive, and there are too few paths to pad a draft to the wide one.
  struct Wrong : archetype::Strategy {
    void propose(TokenSpan, Draft& draft) {
      for (Token token = 1000; token < 1003; ++token) draft.push({.token = token});
    }
  };
  for (const double wide : {90.0, 100.0, 101.0}) {
    const std::vector<CostPoint> points = {{1, 0, 1, 100}, {1, 0, 4, 178}, {1, 0, 11, wide}};
    Session<Wrong, CostControl> session(Wrong{},
                                        CostControl({.curve = *CostCurve::from_points(points), .calibrated = true}));
    Capabilities can;
    can.max_leaves = 3;
    can.allowed_widths = {4, 11};
    can.pad_token = 0;
    ASSERT_TRUE(session.begin(std::vector<Token>{1, 2, 3}, can));
    const Limits limits;
    double lost = 0;
    for (int i = 0; i < 1000; ++i) {
      session.propose(limits);
      const auto pass = session.plan();
      const std::size_t rows = pass->batch.size();
      lost += rows == 4 ? 0.78 : rows == 11 ? wide / 100 - 1 : 0;
      ASSERT_TRUE(session.resolve(pass->ticket, std::vector<Token>{7}));
      ASSERT_TRUE(session.commit(pass->ticket));
    }
    EXPECT_LE(lost, 10) << wide;
  }
}

TEST(Speculator, SaysWhyItDoesNotDraft) {
  const std::vector<Token> text = testing::make_stream(Stream::zipf, 3000, 5);
  Speculator speculator(CostCurve::linear(0.3));
  play(speculator, text, 500, [](std::size_t k) { return 1 + 0.3 * static_cast<double>(k); });
  const Statistics& counted = speculator.statistics();
  EXPECT_GT(counted.count(Cut::unlikely), counted.passes / 2);
  EXPECT_GT(counted.count(Cut::no_match), 0U) << "tokens that were never seen before";
}

TEST(Speculator, IsASessionToGenerateWithAndCanBeForked) {
  struct Engine {
    std::vector<Token> picks;
    const std::vector<Token>& verify(TokenSpan batch, std::size_t drafted) {
      picks.clear();
      for (const Token token : batch.last(drafted + 1)) picks.push_back((token + 1) % 10);
      return picks;
    }
    void commit(std::size_t) {}
  } engine;
  Speculator speculator;
  const std::vector<Token> prompt = {0, 1, 2};
  const auto generated = generate(speculator, engine, prompt, {.max_tokens = 60});
  ASSERT_TRUE(generated);
  EXPECT_GT(generated->statistics.mean_accepted_tokens(), 1.5);
  auto fork = speculator.fork();
  ASSERT_TRUE(fork);
  Speculator second(std::move(*fork));
  const Limits limits{.max_tokens = 90};
  const DraftView draft = second.propose(limits);
  ASSERT_FALSE(draft.empty());
  EXPECT_EQ(draft[0].token, 3);
  EXPECT_EQ(speculator.propose(limits).size(), draft.size());
}

/// Decodes a text without repetition in short sessions. Returns the number of drafted tokens, all of which are wrong.
std::size_t drafted_in_short_sessions(Speculator& speculator, std::size_t sessions) {
  const std::vector<Token> prompt = testing::make_stream(Stream::trace_like, 300, 5);
  const Limits limits{.max_tokens = 30};
  std::size_t drafted = 0;
  for (std::size_t i = 0; i < sessions; ++i) {
    if (!speculator.begin(prompt)) return 0;
    Token next = 1'000'000;
    for (speculator.propose(limits); !speculator.finished(); speculator.propose(limits)) {
      const auto pass = speculator.plan();
      drafted += pass->drafted;
      // A token that repeats makes drafts possible; after it comes a new one, so every draft is wrong.
      const Token pick = speculator.context().size() % 2 == 0 ? prompt[7] : next++;
      if (!speculator.resolve(pass->ticket, std::vector<Token>{pick}) || !speculator.commit(pass->ticket)) return 0;
    }
  }
  return drafted;
}

TEST(Speculator, DoesNotRenewItsLossBudgetWithEachSequence) {
  Speculator speculator(CostCurve::linear(0.5));
  const std::size_t first = drafted_in_short_sessions(speculator, 20);
  const std::size_t later = drafted_in_short_sessions(speculator, 200);
  EXPECT_GT(first, 0U);
  EXPECT_LE(first + later, 2 * (6 + 220 * 30 * 4 / 1000)) << "each drafted token costs half a plain pass";
}

TEST(Speculator, SharesTheLossBudgetOfItsTenant) {
  LossBudget one;
  LossBudget other;
  Speculator speculator(NgramOptions(), CostOptions{.curve = CostCurve::linear(0.5), .loss_budget = &one});
  EXPECT_EQ(&speculator.control().loss_budget(), &one);
  drafted_in_short_sessions(speculator, 100);
  EXPECT_GT(one.debt(), LossBudget::burst / 2);
  EXPECT_EQ(one.reserved(), 0) << "all sequences have ended";
  speculator.control().share_loss_budget(&other);
  EXPECT_EQ(other.debt(), 0);
  EXPECT_GT(drafted_in_short_sessions(speculator, 1), 0U) << "the budget of the next tenant is not spent";
  EXPECT_GT(other.debt(), 0);
}

TEST(Speculator, ReservesForAPassUntilItIsKnownWhatBecameOfIt) {
  std::vector<Token> prompt;
  for (Token i = 0; i < 60; ++i) prompt.push_back(i % 10);
  const Limits limits;
  const auto debt_after = [&](const std::function<void(std::optional<Speculator>&, const Pass&)>& act) {
    LossBudget budget;
    std::optional<Speculator> speculator(std::in_place, NgramOptions(),
                                         CostOptions{.curve = CostCurve::linear(0.1), .loss_budget = &budget});
    EXPECT_TRUE(speculator->begin(prompt));
    speculator->propose(limits);
    const auto pass = speculator->plan();
    EXPECT_NEAR(static_cast<double>(budget.reserved()), 0.1 * cost_one * static_cast<double>(pass->drafted), 1);
    EXPECT_GT(budget.reserved(), 0);
    act(speculator, *pass);
    EXPECT_EQ(budget.reserved(), 0);
    return budget.debt();
  };
  using Slot = std::optional<Speculator>;
  EXPECT_EQ(debt_after([](Slot& slot, const Pass& pass) { EXPECT_TRUE(slot->cancel(pass.ticket)); }), 0)
      << "a cancelled pass loses nothing";
  // Nobody reports what became of these passes, so they count as lost.
  EXPECT_GT(debt_after([](Slot& slot, const Pass&) { EXPECT_TRUE(slot->append(std::vector<Token>{0})); }), 0);
  EXPECT_GT(debt_after([&](Slot& slot, const Pass&) { EXPECT_TRUE(slot->begin(prompt)); }), 0);
  EXPECT_GT(debt_after([](Slot& slot, const Pass&) { slot.reset(); }), 0);
}

TEST(Speculator, HoldsNothingOfTheBudgetAfterTheEnd) {
  std::vector<Token> prompt;
  for (Token i = 0; i < 60; ++i) prompt.push_back(i % 10);
  const Limits limits;
  LossBudget budget;
  Speculator speculator(NgramOptions(), CostOptions{.curve = CostCurve::linear(0.1), .loss_budget = &budget});
  Capabilities can;
  can.rollback = Rollback::snapshot;
  for (const bool last : {false, true}) {
    ASSERT_TRUE(speculator.begin(prompt, can));
    speculator.propose(limits);
    const auto pass = speculator.plan();
    ASSERT_GT(pass->drafted, 2U);
    const auto stop = [&](TokenSpan, Token) { return last ? StopDecision::stop_after : StopDecision::proceed; };
    ASSERT_TRUE(speculator.resolve(pass->ticket, std::vector<Token>{0, 99}, stop));
    ASSERT_TRUE(speculator.commit(pass->ticket));
    EXPECT_EQ(budget.reserved() > 0, !last) << "a rejection makes the engine run tokens again";
  }
}

TEST(Speculator, TrustsItsDrafterAndTakesAPrior) {
  EXPECT_TRUE(Speculator().control().options().calibrated);
  CalibrationState prior;
  prior.all = 1 << 18;
  const Speculator speculator(NgramOptions{.prior = prior}, CostOptions{.max_nodes = 5});
  EXPECT_EQ(speculator.strategy().calibration().all, 1 << 18);
  EXPECT_EQ(speculator.control().options().max_nodes, 5U);
}

/// Returns the passes in which a session decodes the text after its first 10 tokens. Half way, a fork takes over.
std::size_t passes_of(Speculator& speculator, TokenSpan text) {
  const Limits limits{.max_tokens = text.size() - 80};
  if (!speculator.begin(text.first(10))) return 0;
  std::size_t passes = 0;
  for (speculator.propose(limits); !speculator.finished(); speculator.propose(limits), ++passes) {
    const auto pass = speculator.plan();
    const std::size_t before = speculator.context().size();
    if (!speculator.resolve(pass->ticket, testing::StreamPicks{text.subspan(before), pass->depths})) return 0;
    if (!speculator.commit(pass->ticket)) return 0;
    if (passes == 20) speculator = *speculator.fork();
  }
  const TokenSpan expected = text.subspan(10, speculator.output().size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), speculator.output().begin(), speculator.output().end()));
  return passes;
}

TEST(Speculator, DraftsFromNextTokensOfEarlierRequests) {
  std::vector<Token> text(480);  // no token repeats: there is nothing to copy from the context
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<Token>(i * 7919 % 32'003);
  auto table = NextTokens::make({.max_bytes = 1 << 18});
  ASSERT_TRUE(table);
  Speculator cold(CostCurve::linear(0.02));
  Speculator warm(NgramOptions{.next_tokens = &*table}, CostOptions{.curve = CostCurve::linear(0.02)});
  EXPECT_EQ(passes_of(cold, text), 400U);
  EXPECT_EQ(passes_of(warm, text), 400U) << "nothing has been counted yet";
  for (int request = 0; request < 3; ++request) table->add(text);
  EXPECT_LT(passes_of(warm, text), 100U);
}

/// The documented limit for a prompt of new tokens only. Sizes just after a growth are the worst.
constexpr std::size_t most_bytes_per_token = 80;
constexpr std::size_t fixed_bytes = 30'000;
static_assert(sizeof(Speculator) < 31 * 1024 && sizeof(NgramOptions) < 256, "docs/performance/memory.md");

TEST(SpeculatorMemory, TakesAtMostEightyBytesATokenOfAPromptInWhichNoneRepeats) {
  std::vector<Token> tokens(120'000);
  std::iota(tokens.begin(), tokens.end(), 0);
  double worst = 0;
  for (std::size_t size = 1; size <= tokens.size(); size += 1 + size / 8) {
    Speculator speculator;
    ASSERT_TRUE(speculator.begin(TokenSpan(tokens).first(size)));
    ASSERT_LE(speculator.memory_bytes(), most_bytes_per_token * size + fixed_bytes) << size;
    if (size > 10'000)
      worst = std::max(worst, static_cast<double>(speculator.memory_bytes()) / static_cast<double>(size));
  }
  EXPECT_GT(worst, 65) << "much better than documented: say so";
}
TEST(SpeculatorMemory, TakesAtMostEightyBytesATokenWhenNewTokensComeOneByOne) {
  Speculator speculator;
  ASSERT_TRUE(speculator.begin(std::vector<Token>{0}));
  double worst = 0;
  for (Token next = 1; next < 120'000; ++next) {
    ASSERT_TRUE(speculator.append(TokenSpan(&next, 1)));
    const auto size = static_cast<std::size_t>(next) + 1;
    ASSERT_LE(speculator.memory_bytes(), most_bytes_per_token * size + fixed_bytes) << size;
    if (size > 10'000)
      worst = std::max(worst, static_cast<double>(speculator.memory_bytes()) / static_cast<double>(size));
  }
  EXPECT_GT(worst, 65) << "much better than documented: say so";
}
TEST(SpeculatorMemory, TakesAtMostEightyBytesATokenWhenTheirOriginsAlternate) {
  for (const std::size_t first : {1U, 64U, 1'000U, 4'013U}) {
    Speculator speculator;
    Token next = 0;
    std::vector<Token> tokens(first);
    for (Token& token : tokens) token = next++;
    ASSERT_TRUE(speculator.begin(tokens));
    for (std::size_t size = first + 1; size < 25'000; ++size, ++next) {
      ASSERT_TRUE(speculator.append(TokenSpan(&next, 1), size % 2 == 0 ? Origin::output : Origin::prompt));
      ASSERT_LE(speculator.memory_bytes(), most_bytes_per_token * size + fixed_bytes) << size;
    }
  }
}

/// Returns the speedup over short dialogues about templated questions, each with a new speculator. The first tokens of
/// an answer repeat a name, the rest are fresh words.
double speed_of_short_answers(std::size_t shortest, std::size_t words, double slope) {
  testing::SplitMix random{shortest + words};
  const auto append = [&](std::vector<Token>& text, std::size_t count) {
    for (; count > 0; --count) text.push_back(static_cast<Token>(100 + random.below(1300)));
  };
  std::vector<std::vector<Token>> names(12);
  for (auto& name : names) append(name, 2);
  const auto append_name = [&](std::vector<Token>& text) {
    const auto& name = names[random.below(names.size())];
    text.insert(text.end(), name.begin(), name.end());
  };
  double tokens = 0;
  double spent = 0;
  for (int dialogue = 0; dialogue < 300; ++dialogue) {
    NgramDrafter<> drafter;
    CostControl control({.curve = CostCurve::linear(slope)});
    Session<NgramDrafter<>, CostControl> session(drafter, control);
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<Token> prompt = {1, 2, 3};
      append_name(prompt);
      append(prompt, 6);
      append_name(prompt);
      for (const Token token : {4, 2, 5}) prompt.push_back(token);
      std::vector<Token> answer;
      append_name(answer);
      append(answer, shortest + random.below(words));
      answer.push_back(9);
      if (!(turn == 0 ? session.begin(prompt) : session.append(prompt))) return 0;
      const Limits limits{.max_tokens = answer.size()};
      for (session.propose(limits); !session.finished(); session.propose(limits)) {
        const auto pass = session.plan();
        answer.resize(answer.size() + 64, 0);  // picks after the end
        const TokenSpan coming = TokenSpan(answer).subspan(session.output().size());
        if (!session.resolve(pass->ticket, testing::StreamPicks{coming, pass->depths})) return 0;
        if (!session.commit(pass->ticket)) return 0;
        spent += 1 + slope * static_cast<double>(pass->drafted);
      }
      tokens += static_cast<double>(session.output().size());
    }
  }
  return tokens / spent;
}

TEST(Speculator, DoesNotLoseInShortAnswers) {
  EXPECT_GE(speed_of_short_answers(8, 7, 0.02), 1);
  EXPECT_GE(speed_of_short_answers(18, 15, 0.02), 0.998);
  EXPECT_GE(speed_of_short_answers(50, 21, 0.02), 0.996);
}

}  // namespace
}  // namespace reprise::speculator_test
