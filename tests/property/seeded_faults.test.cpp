// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/testing/random.hpp"
#include "support/choices.hpp"
#include "support/faulty_loop.hpp"
#include "support/world.hpp"

// Classic faults, each in an otherwise correct loop. A property that misses them proves nothing about the real loop.
namespace reprise::testing::seeded_faults_test {
namespace {

constexpr std::uint64_t cases = 1'000;

/// Matches must agree with the tokens. Returns whether they do, over one random stream.
bool matches_are_exact(Random random, bool faulty) {
  XorIndex index(faulty);
  for (std::size_t i = 0; i < 40; ++i) {
    const auto token = static_cast<Token>(random.below(4));
    index.append(std::array{token});
    std::array<Match, 8> found;
    const std::size_t count = index.find(MatchLimits{2, 6, 8, MatchLimits::Order::most_recent}, found);
    for (std::size_t m = 0; m < count; ++m)
      if (found[m].length != reprise::detail::agreement(index.tokens(), found[m].end, index.tokens().size(), 6))
        return false;
  }
  return true;
}

/// Returns the first case in which `property` is violated, or `cases`.
std::uint64_t caught_at(Fault fault, Property property) {
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    Choices choices(seed);
    const Breaches breaches = World<FaultyKit>(choices, FaultyKit{fault}).run();
    if (!breaches[static_cast<std::size_t>(property)].empty()) return seed;
  }
  return cases;
}

struct Seeded {
  Fault fault;
  Property caught_by;
  const char* name;
};

class SeededFaults : public ::testing::TestWithParam<Seeded> {};

TEST_P(SeededFaults, AreCaughtWithinAThousandCases) {
  const std::uint64_t at = caught_at(GetParam().fault, GetParam().caught_by);
  EXPECT_LT(at, cases);
  RecordProperty("caught_at_case", static_cast<int>(at));
}

INSTANTIATE_TEST_SUITE_P(
    Classic, SeededFaults,
    ::testing::Values(Seeded{Fault::first_token_unverified, Property::lossless, "FirstTokenUnverified"},
                      Seeded{Fault::bonus_off_by_one, Property::lossless, "BonusOffByOne"},
                      Seeded{Fault::eos_ignored_inside_block, Property::lossless, "EosIgnoredInsideBlock"},
                      Seeded{Fault::stop_sequence_across_edge, Property::lossless, "StopSequenceAcrossEdge"},
                      Seeded{Fault::limit_overrun, Property::lossless, "LimitOverrun"},
                      Seeded{Fault::rollback_one_short, Property::lossless, "RollbackOneShort"},
                      Seeded{Fault::rollback_one_long, Property::lossless, "RollbackOneLong"},
                      Seeded{Fault::drafter_stale_after_truncate, Property::strategy, "DrafterStaleAfterTruncate"},
                      Seeded{Fault::drafter_stale_after_begin, Property::strategy, "DrafterStaleAfterBegin"},
                      Seeded{Fault::state_not_restored, Property::lossless, "StateNotRestored"},
                      Seeded{Fault::picks_read_too_far, Property::verifier, "PicksReadTooFar"},
                      Seeded{Fault::bonus_dropped, Property::progress, "BonusDropped"},
                      Seeded{Fault::wrong_child_followed, Property::lossless, "WrongChildFollowed"},
                      Seeded{Fault::kept_rows_off_the_path, Property::lossless, "KeptRowsOffThePath"},
                      Seeded{Fault::auxiliary_accepted, Property::progress, "AuxiliaryAccepted"},
                      Seeded{Fault::restore_forgotten, Property::lossless, "RestoreForgotten"},
                      Seeded{Fault::replay_forgotten, Property::lossless, "ReplayForgotten"},
                      Seeded{Fault::constraint_ignored, Property::bounds, "ConstraintIgnored"}),
    [](const auto& seeded) { return std::string(seeded.param.name); });

TEST(SeededFaults, AHashCollisionTakenAsAMatchIsCaughtWithinAThousandCases) {
  std::uint64_t seed = 0;
  while (seed < cases && matches_are_exact(Random(seed), true)) ++seed;
  EXPECT_LT(seed, cases);
  for (seed = 0; seed < cases; ++seed) ASSERT_TRUE(matches_are_exact(Random(seed), false)) << "seed " << seed;
}

TEST(SeededFaults, PicksReadTooFarAlsoChangeASampledOutput) {
  EXPECT_LT(caught_at(Fault::picks_read_too_far, Property::lossless), cases);
}

TEST(SeededFaults, ADroppedBonusNeverChangesTheOutput) {
  EXPECT_EQ(caught_at(Fault::bonus_dropped, Property::lossless), cases);
}

TEST(SeededFaults, TheSameLoopWithoutAFaultKeepsEveryProperty) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(describe(World<FaultyKit>(choices, FaultyKit{}).run()), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace reprise::testing::seeded_faults_test
