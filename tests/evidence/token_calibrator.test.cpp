// SPDX-License-Identifier: Apache-2.0
#include "reprise/evidence/detail/token_calibrator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "support/streams.hpp"

namespace reprise::detail::token_calibrator_test {
namespace {

using Lesson = TokenCalibrator::TrainingSample;

constexpr std::int32_t most_bias = 3 << 20;
constexpr int most_token_bias = 3 << 13;
constexpr std::array token_tables = {&CalibrationState::by_previous, &CalibrationState::by_token,
                                     &CalibrationState::by_token_and_length};

/// Evidence of one occurrence with this many votes.
TokenEvidence occurrence(VoteWeight votes, int longest = 4) {
  return {.votes = votes, .strongest = votes, .longest = longest, .occurrences = 1, .count = 3};
}
/// The token is 7 and the one before it 5, unless given.
struct Where {
  std::size_t depth = 0;
  std::uint64_t count = 3;
  Token token = 7;
  Token previous = 5;
};
constexpr Lesson weigh(const TokenCalibrator& calibration, const TokenEvidence& evidence, VoteWeight total,
                       const Where& at = {}) {
  return calibration.weigh(at.token, evidence, total, calibration.tree_context(at.depth, at.previous, at.count));
}

constexpr CalibrationState taught() {
  TokenCalibrator calibration;
  for (int i = 0; i < 20; ++i) {
    const TokenEvidence evidence = {.votes = 70'000, .strongest = 70'000, .longest = 3, .occurrences = 1, .count = 9};
    const Lesson lesson = weigh(calibration, evidence, 2 * weight_one, {.depth = 1});
    calibration.learn(lesson, i % 4 != 0);
    calibration.learn_recent(i % 4 != 0);
  }
  return calibration.state();
}
static_assert(taught().lessons == 20 && taught().all > 0 && taught() == taught(), "learns at compile time too");
static_assert(merge(taught(), taught()).lessons == 40);
static_assert(std::is_trivially_copyable_v<CalibrationState> && sizeof(TokenCalibrator) < 10'400);

void expect_bounded(const CalibrationState& state) {
  EXPECT_LE(std::abs(state.all), most_bias);
  for (const std::int32_t bias : state.by_length) EXPECT_LE(std::abs(bias), most_bias);
  for (const std::int32_t bias : state.by_depth) EXPECT_LE(std::abs(bias), most_bias);
  for (const auto table : token_tables)
    for (const int bias : state.*table) ASSERT_LE(std::abs(bias), most_token_bias);
  EXPECT_LE(state.recent, 65535U);
}

/// Random evidence within a drafter's range: at most the votes of eight occurrences.
struct Place {
  TokenEvidence token;
  VoteWeight total = 0;
  Where at;
};
Place random_place(testing::SplitMix& random) {
  Place place;
  const auto any = [&](std::uint64_t below) {
    return static_cast<VoteWeight>((random.next() >> random.below(40)) % below);
  };
  place.token.votes = 1 + any((1U << 28) - 2);
  place.token.strongest = random.one_in(2) ? place.token.votes : 1 + any(place.token.votes);
  place.token.longest = static_cast<int>(random.below(80)) - 1;
  place.token.rival = static_cast<int>(random.below(80)) - 1;
  place.token.occurrences = static_cast<int>(random.below(40));
  place.token.count = random.next() >> random.below(64);
  place.token.source = static_cast<EvidenceSource>(random.below(3));
  place.total = std::min<VoteWeight>(place.token.votes + weight_one + any(1U << 27), 1U << 28);
  place.at = {random.below(70), random.next() >> random.below(64), static_cast<Token>(random.below(1U << 31)),
              -static_cast<Token>(random.below(1U << 31))};
  return place;
}

// --- Probabilities ---

TEST(TokenCalibrator, NeverSaysNeverAndNeverSaysCertainly) {
  testing::SplitMix random(1);
  const TokenCalibrator calibration;
  for (int i = 0; i < 100'000; ++i) {
    const Place at = random_place(random);
    const Lesson lesson = weigh(calibration, at.token, at.total, at.at);
    ASSERT_GE(lesson.probability.raw(), Probability::scale >> 15);
    ASSERT_LT(lesson.probability, Probability::ratio(999, 1000));
  }
}

TEST(TokenCalibrator, GivesMoreForMoreVotes) {
  const TokenCalibrator calibration;
  for (const std::size_t depth : {0U, 1U, 5U, 40U})
    for (const int longest : {-1, 0, 3, 20}) {
      Probability before = Probability::zero();
      for (VoteWeight votes = 1; votes < 1U << 27; votes += votes / 64 + 1) {
        const Probability now =
            weigh(calibration, occurrence(votes, longest), weight_one + votes, {.depth = depth}).probability;
        ASSERT_GE(now, before) << votes << " votes, depth " << depth;
        before = now;
      }
      EXPECT_GT(before, Probability::ratio(1, 2));
    }
}

TEST(TokenCalibrator, TakesEvidenceWithoutVotes) {
  EXPECT_GT(weigh(TokenCalibrator(), {}, 0).probability, Probability::zero());
  EXPECT_GT(weigh(TokenCalibrator(), {}, weight_one).probability, Probability::zero());
  EXPECT_GT(weigh(TokenCalibrator(), occurrence(100), 100).probability, Probability::zero()) << "nothing against it";
}

TEST(TokenCalibrator, DoubtsMerelyFrequentTokensOfAShortTextUntilOneIsPicked) {
  const TokenEvidence frequent = {.votes = 9'000, .strongest = 9'000, .count = 3};
  const VoteWeight total = 2 * weight_one;
  TokenCalibrator cold;
  TokenCalibrator usual;
  const auto doubt = [&](std::size_t tokens) {  // as a factor of the probability
    cold.set_text(tokens);
    EXPECT_EQ(weigh(cold, occurrence(9'000), total).probability, weigh(usual, occurrence(9'000), total).probability);
    return static_cast<double>(weigh(usual, frequent, total).probability.raw()) /
           static_cast<double>(weigh(cold, frequent, total).probability.raw());
  };
  EXPECT_GT(doubt(0), 5);
  EXPECT_GT(doubt(80), 2);
  EXPECT_LT(doubt(80), 3);
  EXPECT_EQ(doubt(160), 1);
  EXPECT_EQ(doubt(1 << 20), 1);

  const auto learn = [&](const Lesson& lesson, bool picked) {
    cold.learn(lesson, picked);
    usual.learn(lesson, picked);
  };
  learn(weigh(cold, occurrence(9'000), total), true);
  EXPECT_GT(doubt(0), 5) << "an occurrence predicted the token";
  learn(weigh(cold, frequent, total), false);
  EXPECT_GT(doubt(0), 5) << "not picked";
  learn(weigh(cold, frequent, total), true);
  EXPECT_EQ(doubt(0), 1);

  TokenCalibrator carried(usual.state());
  carried.set_text(0);
  EXPECT_EQ(weigh(carried, frequent, total).probability, weigh(usual, frequent, total).probability) << "has lessons";
}

// --- Learning ---

TEST(TokenCalibrator, ConvergesToTheRateOfTheSource) {
  for (const double rate : {0.02, 0.1, 0.3, 0.5, 0.8, 0.95})
    for (const VoteWeight votes : {VoteWeight{500}, weight_one / 4, weight_one, 20 * weight_one}) {
      testing::SplitMix random(3);
      TokenCalibrator calibration;
      const auto taught = [&] {
        const Lesson lesson = weigh(calibration, occurrence(votes), weight_one + votes);
        calibration.learn(lesson, random.unit() < rate);
        return lesson.probability.to_double();
      };
      for (int i = 0; i < 2000; ++i) taught();
      double sum = 0;
      for (int i = 0; i < 4000; ++i) sum += taught();
      EXPECT_NEAR(sum / 4000, rate, 0.03) << votes << " votes";
    }
}

TEST(TokenCalibrator, HasASmallCalibrationErrorOnAMixtureOfSources) {
  // Each kind of evidence has a rate of its own that differs from the tables.
  struct Source {
    VoteWeight votes;
    int longest;
    std::size_t depth;
    double rate;
  };
  constexpr std::array<Source, 6> sources = {{{3000, 1, 0, 0.2},
                                              {40'000, 2, 1, 0.25},
                                              {100'000, 4, 0, 0.4},
                                              {300'000, 7, 2, 0.5},
                                              {600'000, 12, 3, 0.9},
                                              {4'000'000, 30, 1, 0.7}}};
  testing::SplitMix random(4);
  TokenCalibrator calibration;
  const auto any_token = [&] {
    const std::size_t vocabulary = std::size_t{1} << random.between(4, 15);  // few frequent tokens, many rare ones
    return static_cast<Token>(random.below(vocabulary));
  };
  std::array<double, 10> said{};
  std::array<double, 10> seen{};
  constexpr int first = 6000;
  constexpr int counted = 20'000;
  for (int i = 0; i < first + counted; ++i) {
    const Source& source = sources[random.below(sources.size())];
    const Lesson lesson = weigh(calibration, occurrence(source.votes, source.longest), weight_one + source.votes,
                                {.depth = source.depth, .token = any_token(), .previous = any_token()});
    const bool picked = random.unit() < source.rate;
    calibration.learn(lesson, picked);
    if (i < first) continue;
    const double p = lesson.probability.to_double();
    const auto bin = static_cast<std::size_t>(p * 10);
    said[bin] += p;
    seen[bin] += picked ? 1 : 0;
  }
  double error = 0;
  for (std::size_t bin = 0; bin < said.size(); ++bin) error += std::abs(said[bin] - seen[bin]);
  EXPECT_LE(error / counted, 0.04) << "biases of single tokens learn fast, and swing";
}

TEST(TokenCalibrator, KeepsItsBiasesBoundedWhateverIsLearned) {
  testing::SplitMix random(6);
  for (int stream = 0; stream < 6; ++stream) {
    TokenCalibrator calibration;
    for (int i = 0; i < 20'000; ++i) {
      const Place at = random_place(random);
      Lesson lesson = weigh(calibration, at.token, at.total, at.at);
      bool picked = random.one_in(2);
      if (stream == 0) picked = true;
      if (stream == 1) picked = false;
      if (stream == 2) picked = lesson.probability < Probability::ratio(1, 2);  // always the less likely outcome
      if (stream == 3) picked = at.token.votes < at.total / 2;                  // votes are always wrong
      if (stream == 4) picked = i / 5000 % 2 == 0;
      if (stream == 5) lesson.probability = picked ? Probability::zero() : Probability::one();
      calibration.learn(lesson, picked);
      calibration.learn_recent(picked);
    }
    SCOPED_TRACE(stream);
    expect_bounded(calibration.state());
  }
}

TEST(TokenCalibrator, LearnsSafelyFromAnyState) {
  // A state may come from a file, so any values are possible.
  testing::SplitMix random(7);
  const auto any = [&] {
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
    const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(random.next()));
    return random.one_in(3) ? most : random.one_in(2) ? least : number;
  };
  for (int round = 0; round < 40; ++round) {
    CalibrationState state;
    state.all = any();
    for (std::int32_t& bias : state.by_length) bias = any();
    for (std::int32_t& bias : state.by_depth) bias = any();
    for (const auto table : token_tables)
      for (std::int16_t& bias : state.*table) bias = static_cast<std::int16_t>(any());
    state.recent = static_cast<std::uint32_t>(any());
    state.lessons = random.next();
    TokenCalibrator calibration(merge(state, state));
    for (int i = 0; i < 50; ++i) {
      const Place at = random_place(random);
      const Lesson lesson = weigh(calibration, at.token, at.total, at.at);
      ASSERT_GT(lesson.probability, Probability::zero());
      calibration.learn(lesson, random.one_in(2));
      calibration.learn_recent(random.one_in(2));
    }
  }
}

TEST(TokenCalibratorRecent, IsTheShareOfLateHits) {
  for (const std::size_t percent : {5U, 50U, 90U}) {
    testing::SplitMix random(8);
    TokenCalibrator calibration;
    double sum = 0;
    for (int i = 0; i < 4000; ++i) {
      calibration.learn_recent(random.below(100) < percent);
      if (i >= 100) sum += calibration.state().recent;
    }
    EXPECT_NEAR(sum / 3900 / 65536, static_cast<double>(percent) / 100, 0.03);
  }
}

// --- Merging two states ---

CalibrationState random_state(testing::SplitMix& random, std::uint64_t lessons) {
  const auto bias = [&](std::int32_t most) {
    return static_cast<std::int32_t>(random.below(2 * static_cast<std::size_t>(most) + 1)) - most;
  };
  CalibrationState state;
  state.all = bias(most_bias);
  for (std::int32_t& value : state.by_length) value = bias(most_bias);
  for (std::int32_t& value : state.by_depth) value = bias(most_bias);
  for (const auto table : token_tables)
    for (std::int16_t& value : state.*table) value = static_cast<std::int16_t>(bias(most_token_bias));
  state.recent = static_cast<std::uint32_t>(random.below(65536));
  state.lessons = lessons;
  return state;
}

TEST(TokenCalibratorMerge, IsTheMeanWeighedByLessons) {
  CalibrationState a;
  CalibrationState b;
  a.all = 400;
  b.all = 800;
  a.by_length[3] = -100;
  b.by_depth[2] = 40;
  a.by_token[17] = 80;
  b.by_token_and_length[1023] = -400;
  a.recent = 0;
  b.recent = 40'000;
  a.lessons = 300;
  b.lessons = 100;
  const CalibrationState both = merge(a, b);
  EXPECT_EQ(both.all, 500);
  EXPECT_EQ(both.by_length[3], -75);
  EXPECT_EQ(both.by_depth[2], 10);
  EXPECT_EQ(both.by_token[17], 60);
  EXPECT_EQ(both.by_token_and_length[1023], -100);
  EXPECT_EQ(both.recent, 10'000U);
  EXPECT_EQ(both.lessons, 400U);
}

TEST(TokenCalibratorMerge, DoesNotDependOnTheOrder) {
  testing::SplitMix random(9);
  for (int i = 0; i < 50; ++i) {
    const CalibrationState a = random_state(random, random.next() >> random.below(64));
    const CalibrationState b = random_state(random, random.next() >> random.below(64));
    ASSERT_EQ(merge(a, b), merge(b, a));
    expect_bounded(merge(a, b));
  }
}

}  // namespace
}  // namespace reprise::detail::token_calibrator_test
