// SPDX-License-Identifier: Apache-2.0
// A draft head beside the lookups of a batch. Each text stays that of plain decoding. Passes and runs of the head
// together lose at most 10 plain passes in 1,000. The head runs for the slots where it pays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/detail/headed_drafter.hpp"
#include "reprise_testing/random.hpp"
#include "support/property_cases.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::testing::property_batch_heads_test {
namespace {

using Follower = BatchFollower<detail::HeadedDrafter<>>;

struct World {
  std::size_t slots = 4;
  double row = 0.01;
  HeadCost head = {.draft = to_cost(0.1)};
  bool learned = false;
  bool malformed = false;  ///< the head returns more tokens than asked for, or none
  bool lazy = false;       ///< at times the head does not run although it is asked for
};

struct Passes {
  std::vector<std::int64_t> losses;      ///< of each pass, in UnitScale
  std::vector<std::vector<bool>> asked;  ///< for each pass and slot, whether the head was asked for
};

double in_passes(Cost cost) { return static_cast<double>(cost) / static_cast<double>(cost_one); }

/// Decodes `passes` passes. `accuracy(pass, slot)`: percent of the head's tokens that are right.
Passes decode(const World& world, std::uint64_t seed, std::size_t passes,
              const std::function<unsigned(std::size_t, std::size_t)>& accuracy) {
  Random random(mix(seed));
  BatchOptions options;
  if (!world.learned) options.curve = CostCurve::linear(world.row), options.head = world.head;
  auto follower = Follower::make(world.slots, detail::HeadedDrafter<>(), std::move(options)).value();
  std::vector<std::vector<Token>> ids(world.slots, std::vector<Token>(1, 0));
  Duration now{1};
  std::vector<std::size_t> late(world.slots, 0);  // tokens that the head has not processed
  Passes made;
  while (made.losses.size() < passes) {
    std::vector<FollowedSlot> call;
    for (std::size_t i = 0; i < world.slots; ++i) {
      if (ids[i].size() > 2000) {  // another request
        follower.forget(i);
        EXPECT_TRUE(follower.assign(i, NgramDrafter<>()));
        ids[i].assign(1, static_cast<Token>(random.below(1000)));
        late[i] = 0;
      }
      call.push_back({.slot = i, .ids = ids[i]});
    }
    const auto asked = follower.propose_lookup(call, now).value();
    const bool lazy = world.lazy && random.chance(20);
    made.asked.emplace_back();
    std::size_t longest = 0;
    std::size_t all = 0;
    std::size_t all_late = 0;
    // The text of a slot: the next token is its last one plus one, or a random one that only the engine knows.
    std::vector<std::vector<Token>> texts;
    std::vector<bool> ran(world.slots, false);
    for (std::size_t i = 0; i < world.slots; ++i) {
      made.asked.back().push_back(asked[i] > 0);
      std::vector<Token> text;
      for (std::size_t k = 0; k < 70; ++k) text.push_back(static_cast<Token>(random.below(50'000)));
      std::vector<Token> drafted(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(asked[i]));
      for (Token& token : drafted)
        if (!random.chance(accuracy(made.losses.size(), i))) token = 60'000;
      if (world.malformed) drafted.resize(random.below(70), 60'000);
      texts.push_back(text);
      if (asked[i] == 0 || lazy) continue;
      longest = std::max(longest, asked[i]);
      all += asked[i];
      all_late += std::exchange(late[i], 0);
      ran[i] = true;
      EXPECT_TRUE(follower.add_head(i, drafted));
    }
    const double head = all == 0
                            ? 0
                            : in_passes(world.head.draft) + in_passes(world.head.token) * static_cast<double>(longest) +
                                  in_passes(world.head.row) * static_cast<double>(all) +
                                  in_passes(world.head.late) * static_cast<double>(all_late);
    const Duration took(static_cast<std::int64_t>(head * 1e7));
    const auto drafts = follower.draft_proposed(all == 0 ? std::optional<Duration>() : took);
    std::size_t rows = 0;
    std::size_t committed = 0;
    for (std::size_t i = 0; i < world.slots; ++i) {
      rows += drafts[i].size();
      std::size_t accepted = 0;
      while (accepted < drafts[i].size() && drafts[i][accepted] == texts[i][accepted]) ++accepted;
      committed += accepted + 1;
      if (!ran[i]) late[i] += accepted + 1;
      ids[i].insert(ids[i].end(), texts[i].begin(), texts[i].begin() + static_cast<std::ptrdiff_t>(accepted + 1));
    }
    const double cost = 1 + world.row * static_cast<double>(rows);
    now = Duration(now.count() + took.count() + static_cast<std::int64_t>(cost * 1e7));
    const double saved = static_cast<double>(committed) / static_cast<double>(world.slots);
    made.losses.push_back(static_cast<std::int64_t>((cost + head - saved) * 65536));
  }
  return made;
}

/// Returns the share of the passes from `from` on in which the head was asked for in slot `slot`.
double share(const Passes& passes, std::size_t slot, std::size_t from) {
  std::size_t count = 0;
  for (std::size_t i = from; i < passes.asked.size(); ++i) count += passes.asked[i][slot] ? 1 : 0;
  return static_cast<double>(count) / static_cast<double>(passes.asked.size() - from);
}

TEST(BatchHeads, LoseAtMostTenPassesInAThousandWhateverTheHeadDoes) {
  for (std::uint64_t i = 0; i < property_cases(200); ++i) {
    const std::uint64_t seed = property_seed() + i;
    SCOPED_TRACE(run_again(seed));
    Random random(mix(seed));
    World world;
    world.slots = 1 + random.below(6);
    world.row = static_cast<double>(random.below(20)) / 100;
    world.head = {.draft = to_cost(static_cast<double>(1 + random.below(60)) / 100),
                  .token = to_cost(static_cast<double>(random.below(5)) / 100),
                  .row = to_cost(static_cast<double>(random.below(3)) / 100),
                  .late = to_cost(static_cast<double>(random.below(3)) / 50)};
    world.malformed = random.chance(20);
    world.lazy = random.chance(20);
    const std::size_t phase = 20 + random.below(700);
    const auto accuracy = [=](std::size_t pass, std::size_t slot) {
      return static_cast<unsigned>(mix(seed + pass / phase + slot) % 4 * 30);
    };
    EXPECT_LE(worst_window(decode(world, seed, 2500, accuracy).losses), LossBudget::most_lost);
  }
}
TEST(BatchHeads, RunForTheSlotsWhereTheyPayIfEachSlotCosts) {
  for (const bool learned : {false, true}) {
    SCOPED_TRACE(learned ? "learned" : "told");
    World world;
    world.learned = learned;
    world.head = {.row = to_cost(0.04)};
    const Passes made = decode(world, 1, 3000, [](std::size_t, std::size_t slot) { return slot < 2 ? 90U : 0U; });
    EXPECT_GT(share(made, 0, 1000), 0.7);
    EXPECT_GT(share(made, 1, 1000), 0.7);
    EXPECT_LT(share(made, 2, 1000), 0.1);
    EXPECT_LT(share(made, 3, 1000), 0.1);
    const Passes last = decode(world, 1, 3000, [](std::size_t, std::size_t slot) { return slot == 3 ? 90U : 0U; });
    EXPECT_GT(share(last, 3, 1000), 0.7) << "whatever the number of the slot";
    world.slots = 8;
    world.head = {.row = to_cost(0.06)};
    const Passes few = decode(world, 2, 3000, [](std::size_t, std::size_t slot) { return slot == 5 ? 95U : 0U; });
    EXPECT_GT(share(few, 5, 1000), 0.7) << "one of many, although a run for all is dear";
  }
}
TEST(BatchHeads, RunForAllOrNoneIfAllCostAsMuchAsOne) {
  World world;
  world.slots = 8;
  world.head = {.draft = to_cost(0.5)};
  const Passes good = decode(world, 1, 3000, [](std::size_t, std::size_t) { return 80U; });
  for (std::size_t slot = 0; slot < 8; ++slot) EXPECT_GT(share(good, slot, 1000), 0.9);
  const Passes one = decode(world, 1, 3000, [](std::size_t, std::size_t slot) { return slot == 0 ? 80U : 0U; });
  EXPECT_LT(share(one, 0, 1000), 0.2) << "one slot of eight is not worth half a pass";
}
TEST(BatchHeads, AreUsedAgainAfterTheyWereBad) {
  for (const bool learned : {false, true}) {
    SCOPED_TRACE(learned ? "learned" : "told");
    World world;
    world.learned = learned;
    const Passes made =
        decode(world, 3, 12'000, [](std::size_t pass, std::size_t) { return pass < 1500 || pass > 4000 ? 80U : 0U; });
    EXPECT_GT(share(made, 0, 11'000), 0.9);
  }
}

}  // namespace
}  // namespace reprise::testing::property_batch_heads_test
