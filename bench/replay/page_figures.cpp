// SPDX-License-Identifier: Apache-2.0
#include "page_figures.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "reprise_testing/random.hpp"

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

SessionCost sum(std::span<const SessionCost> sessions) {
  SessionCost all;
  for (const SessionCost& session : sessions) all += session;
  return all;
}

Interval between_tails(std::vector<double> values, double tail) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return {values[static_cast<std::size_t>(std::floor(tail * last))],
          values[static_cast<std::size_t>(std::ceil((1 - tail) * last))]};
}

std::optional<Interval> bootstrap(std::span<const SessionCost> sessions) {
  constexpr std::size_t fewest = 200;
  constexpr std::size_t most = 2000;
  if (sessions.size() < 2) return std::nullopt;
  const std::size_t resamples = std::clamp(bootstrap_draws / sessions.size(), fewest, most);
  testing::Random random(1);
  std::vector<double> speedups;
  speedups.reserve(resamples);
  for (std::size_t i = 0; i < resamples; ++i) {
    SessionCost drawn;
    for (std::size_t j = 0; j < sessions.size(); ++j) drawn += sessions[random.below(sessions.size())];
    speedups.push_back(drawn.speedup());
  }
  return between_tails(std::move(speedups), 0.025);
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

std::vector<std::size_t> worst_median_best(std::span<const SessionCost> sessions, const Group& group) {
  std::vector<std::size_t> order;
  for (const std::size_t i : group.sessions)
    if (sessions[i].tokens != 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sessions[a].speedup() < sessions[b].speedup(); });
  if (order.size() <= 3) return order;
  return {order.front(), order[order.size() / 2], order.back()};
}

}  // namespace reprise::replay
