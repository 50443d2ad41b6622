// SPDX-License-Identifier: Apache-2.0
// A draft head beside the lookup: the text stays that of plain decoding, and whatever the head does, it loses at most
// 10 plain passes in 1,000. A head that has become good is used again.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "reprise/headed_speculator.hpp"
#include "reprise_testing/random.hpp"
#include "support/property_cases.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::testing::property_draft_head_test {
namespace {

struct World {
  double row = 0.02;
  double draft = 0.05;
  double token = 0;
  double late = 0;
  bool chain = false;
  bool learned = false;    ///< costs are learned from times
  unsigned repeats = 0;    ///< percent of the text that copies earlier text
  bool malformed = false;  ///< the head returns more tokens than asked for, or none
  std::size_t forced = 0;  ///< in passes before this one, the engine runs the head in any case
};

struct Passes {
  std::vector<std::int64_t> losses;  ///< of each pass, in UnitScale
  std::vector<bool> ran;             ///< whether the head ran
};

/// Returns a text in which a part of the tokens copies earlier ones.
std::vector<Token> text_of(Random& random, std::size_t size, unsigned repeats) {
  std::vector<Token> text;
  while (text.size() < size) {
    const std::size_t length = 4 + random.below(20);
    const bool copy = text.size() > 40 && random.chance(repeats);
    const std::size_t from = copy ? random.below(text.size() - 30) : 0;
    for (std::size_t i = 0; i < length; ++i)
      text.push_back(copy ? text[from + i] : static_cast<Token>(random.below(50'000)));
  }
  return text;
}

/// Decodes `passes` passes. `accuracy(pass)`: percent of the head's tokens that are right.
Passes decode(const World& world, std::uint64_t seed, std::size_t passes,
              const std::function<unsigned(std::size_t)>& accuracy) {
  Random random(mix(seed));
  const std::vector<Token> text = text_of(random, passes * 34 + 100, world.repeats);
  HeadedSpeculator session =
      world.learned
          ? HeadedSpeculator()
          : HeadedSpeculator(
                NgramOptions(), {.curve = CostCurve::linear(world.row)},
                HeadCost{.draft = to_cost(world.draft), .token = to_cost(world.token), .late = to_cost(world.late)});
  Capabilities able;
  able.max_leaves = world.chain ? 1 : unlimited;
  EXPECT_TRUE(session.begin(TokenSpan(text).first(50), able));
  const Limits limits;
  std::size_t late = 0;  // tokens that the head has not processed
  Passes made;
  while (made.losses.size() < passes) {
    const std::size_t at = session.context().size();
    if (made.losses.size() < world.forced) session.control().correct(session.control().loss_budget().debt());
    const std::size_t wanted = session.propose_lookup(limits);
    const bool forced = made.losses.size() < world.forced;
    const std::size_t asked = forced ? 8 : wanted;
    const std::size_t tokens = world.malformed && asked > 0 ? random.below(80) : asked;
    double head = 0;
    if (asked > 0) {
      head = world.draft + world.token * static_cast<double>(std::min(tokens, asked)) +
             world.late * static_cast<double>(late);
    }
    if (asked > 0) {
      std::vector<Token> drafted(text.begin() + static_cast<std::ptrdiff_t>(at),
                                 text.begin() + static_cast<std::ptrdiff_t>(at + tokens));
      for (Token& token : drafted)
        if (!random.chance(accuracy(made.losses.size()))) token = 60'000;
      const Duration time(static_cast<std::int64_t>(head * 1e7));
      if (forced) {
        session.control().head_ran(tokens, time);
        EXPECT_TRUE(session.strategy().set(drafted));
        session.propose(limits);
      } else {
        EXPECT_TRUE(session.add_head(drafted, limits, time));
      }
    }
    const Pass pass = session.plan().value();
    const auto pick = [&](std::size_t row) { return text[at + (row == 0 ? 0 : pass.depths[row - 1])]; };
    std::vector<Token> picks;
    for (std::size_t row = 0; row <= pass.drafted; ++row) picks.push_back(pick(row));
    const Decision decision = session.resolve(pass.ticket, picks).value();
    const double cost = 1 + world.row * static_cast<double>(pass.drafted);
    EXPECT_TRUE(session.commit(pass.ticket, Duration(static_cast<std::int64_t>(cost * 1e7))));
    const std::size_t committed = session.context().size() - at;
    late = asked > 0 ? 0 : late + committed;
    made.losses.push_back(static_cast<std::int64_t>((cost + head - static_cast<double>(committed)) * 65536));
    made.ran.push_back(asked > 0);
    static_cast<void>(decision);
  }
  EXPECT_TRUE(std::ranges::equal(session.context(), TokenSpan(text).first(session.context().size())));
  return made;
}

std::size_t runs(const Passes& passes, std::size_t from, std::size_t to) {
  return static_cast<std::size_t>(std::count(passes.ran.begin() + static_cast<std::ptrdiff_t>(from),
                                             passes.ran.begin() + static_cast<std::ptrdiff_t>(to), true));
}

World random_world(Random& random) {
  World world;
  world.row = static_cast<double>(random.below(30)) / 100;
  world.draft = static_cast<double>(1 + random.below(60)) / 100;
  world.token = random.chance(50) ? static_cast<double>(random.below(10)) / 100 : 0;
  world.late = random.chance(50) ? static_cast<double>(random.below(5)) / 100 : 0;
  world.chain = random.chance(50);
  world.repeats = static_cast<unsigned>(random.below(100));
  return world;
}

TEST(DraftHead, LosesAtMostTenPassesInAThousandWhateverItDoes) {
  for (std::uint64_t i = 0; i < property_cases(2000); ++i) {
    const std::uint64_t seed = property_seed() + i;
    SCOPED_TRACE(run_again(seed));
    Random random(mix(seed));
    World world = random_world(random);
    world.malformed = random.chance(20);
    // Phases of some length in which the head is good, bad or worthless.
    const std::size_t phase = 20 + random.below(700);
    const auto accuracy = [=](std::size_t pass) { return static_cast<unsigned>(mix(seed + pass / phase) % 4 * 30); };
    const Passes made = decode(world, seed, 2500, accuracy);
    EXPECT_LE(worst_window(made.losses), LossBudget::most_lost);
  }
}
// A head that is good is used, however bad it was before, and a bad one is not.
TEST(DraftHead, IsUsedAgainAfterItWasBad) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    World world;
    world.chain = seed % 2 == 0;
    world.learned = seed % 3 == 0;
    const auto accuracy = [](std::size_t pass) { return pass < 1500 ? 80U : pass < 4000 ? 0U : 80U; };
    const Passes made = decode(world, seed, 12'000, accuracy);
    EXPECT_GT(runs(made, 500, 1500), 900U);
    EXPECT_LT(runs(made, 2500, 3500), 100U);
    EXPECT_GT(runs(made, 11'000, 12'000), 900U);
  }
}
// The same if the engine has run a worthless head for long, so that everything learned of it is as bad as can be.
TEST(DraftHead, IsUsedAgainFromTheWorstState) {
  for (const bool learned : {false, true}) {
    World world;
    world.learned = learned;
    world.forced = 3000;
    const Passes made = decode(world, 7, 16'000, [](std::size_t pass) { return pass < 3000 ? 0U : 80U; });
    EXPECT_GT(runs(made, 15'000, 16'000), 900U) << (learned ? "learned" : "told");
  }
}
TEST(DraftHead, LeavesATextThatTheLookupCopiesToTheLookup) {
  World world;
  world.draft = 0.5;
  world.repeats = 97;
  const Passes made = decode(world, 5, 3000, [](std::size_t) { return 70U; });
  EXPECT_LT(runs(made, 1000, 3000), 1400U);
  world.repeats = 0;
  const Passes other = decode(world, 5, 3000, [](std::size_t) { return 70U; });
  EXPECT_GT(runs(other, 1000, 3000), 1900U);
}

}  // namespace
}  // namespace reprise::testing::property_draft_head_test
