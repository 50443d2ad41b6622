// SPDX-License-Identifier: Apache-2.0
#include "page_figures.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace reprise::replay {

SessionCost& SessionCost::operator+=(const SessionCost& other) {
  tokens += other.tokens;
  cost += other.cost;
  return *this;
}

double SessionCost::speedup() const {
  if (tokens == 0) return 1;
  return cost == 0 ? 0 : static_cast<double>(tokens) / cost;
}

Interval between_tails(std::vector<double> values, double tail) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return {values[static_cast<std::size_t>(std::floor(tail * last))],
          values[static_cast<std::size_t>(std::ceil((1 - tail) * last))]};
}

Groups group_by(std::span<const std::string> names, std::span<const std::uint64_t> tokens, std::size_t most) {
  Groups all;
  std::unordered_map<std::string, std::size_t> index;
  std::vector<std::uint64_t> sums;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [at, added] = index.try_emplace(names[i], all.groups.size());
    if (added) {
      all.groups.push_back({names[i], {}});
      sums.push_back(0);
    }
    all.groups[at->second].sessions.push_back(i);
    sums[at->second] += tokens[i];
  }
  if (all.groups.size() <= most) return all;
  std::vector<std::size_t> order(all.groups.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most));
  Groups kept;
  kept.folded = order.size() - most;
  Group rest{std::to_string(kept.folded) + (kept.folded == 1 ? " other" : " others"), {}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    Group& group = all.groups[order[i]];
    if (i < most)
      kept.groups.push_back(std::move(group));
    else
      rest.sessions.insert(rest.sessions.end(), group.sessions.begin(), group.sessions.end());
  }
  std::sort(rest.sessions.begin(), rest.sessions.end());
  kept.groups.push_back(std::move(rest));
  return kept;
}

}  // namespace reprise::replay
