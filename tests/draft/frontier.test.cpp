// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/best_first.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/streams.hpp"

namespace reprise::detail::frontier_test {
namespace {

struct Item {
  Probability path;
  int name = 0;
  friend bool operator==(const Item&, const Item&) = default;
};
Item item(std::uint32_t raw, int name) { return {Probability::from_raw(raw), name}; }

void sort(std::vector<Item>& items) {
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.path > b.path; });
}

template <std::size_t Most>
std::vector<Item> drained(Frontier<Item, Most>& frontier) {
  std::vector<Item> items;
  while (!frontier.empty()) items.push_back(frontier.pop());
  return items;
}

TEST(Frontier, IsEmptyAtFirst) {
  Frontier<Item, 4> frontier;
  EXPECT_TRUE(frontier.empty());
  frontier.reset(4);
  EXPECT_TRUE(frontier.empty());
  EXPECT_EQ(frontier.bar(), Probability::zero());
}

TEST(Frontier, TakesNothingWhenNothingIsWanted) {
  Frontier<Item, 2> frontier;
  frontier.reset(0);
  EXPECT_EQ(frontier.bar(), Probability::one());
  frontier.push(item(Probability::scale, 1));
  EXPECT_TRUE(frontier.empty());
  frontier.reset(1);
  frontier.push(item(1, 1));
  frontier.want_one_less();
  EXPECT_TRUE(frontier.empty());
  EXPECT_EQ(frontier.bar(), Probability::one());
}

TEST(Frontier, HoldsTheBestOfAllThatCame) {
  testing::SplitMix random(1);
  Frontier<Item, 64> frontier;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t wanted = random.below(65);
    const std::size_t values = random.between(1, 200);  // few values give many equal items
    frontier.reset(wanted);
    std::vector<Item> all;
    for (std::size_t i = random.below(300); i > 0; --i) {
      all.push_back(item(static_cast<std::uint32_t>(1 + random.below(values)), static_cast<int>(i)));
      frontier.push(all.back());
    }
    sort(all);
    all.resize(std::min(all.size(), wanted));
    const bool full = wanted == 0 || all.size() == wanted;
    ASSERT_EQ(frontier.bar(), !full ? Probability::zero() : wanted == 0 ? Probability::one() : all.back().path);
    ASSERT_EQ(drained(frontier), all);
  }
}

TEST(Frontier, IsASortedListCutToWhatIsWanted) {
  testing::SplitMix random(3);
  Frontier<Item, 16> frontier;
  for (int round = 0; round < 500; ++round) {
    std::size_t wanted = random.below(17);
    frontier.reset(wanted);
    std::vector<Item> list;
    for (int step = 0; step < 200; ++step) {
      switch (random.below(4)) {
        case 0:
          ASSERT_EQ(frontier.empty(), list.empty());
          if (list.empty()) break;
          ASSERT_EQ(frontier.pop(), list.front());
          list.erase(list.begin());
          break;
        case 1:
          if (wanted == 0 || !random.one_in(5)) break;
          frontier.want_one_less();
          list.resize(std::min(list.size(), --wanted));
          break;
        default:
          list.push_back(item(static_cast<std::uint32_t>(1 + random.below(30)), step));
          frontier.push(list.back());
          sort(list);
          list.resize(std::min(list.size(), wanted));
      }
    }
    ASSERT_EQ(drained(frontier), list);
  }
}

}  // namespace
}  // namespace reprise::detail::frontier_test
