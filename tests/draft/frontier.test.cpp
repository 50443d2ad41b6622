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

TEST(Frontier, IsASortedListCutToWhatIsWanted) {
  testing::SplitMix random(3);
  Frontier<Item, 64> frontier;
  for (int round = 0; round < 500; ++round) {
    std::size_t wanted = random.below(65);
    frontier.reset(wanted);
    std::vector<Item> list;
    for (int step = 0; step < 200; ++step) {
      const Probability bar = wanted == 0            ? Probability::one()
                              : list.size() < wanted ? Probability::zero()
                                                     : list.back().path;
      ASSERT_EQ(frontier.bar(), bar);
      ASSERT_EQ(frontier.empty(), list.empty());
      switch (random.below(4)) {
        case 0:
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
