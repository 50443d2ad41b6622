// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/testing/random.hpp"

namespace reprise::replay {

/// The result of one session under one cost curve.
struct SessionCost {
  std::uint64_t tokens = 0;
  double cost = 0;  ///< in passes without a draft

  SessionCost& operator+=(const SessionCost& other);
  /// Returns tokens / cost, as the table does; 1 if the session has no tokens.
  [[nodiscard]] double speedup() const;
};

/// The result of one session that can be added to others, such as SessionCost. Its speedup is a ratio, so that of a sum
/// is a ratio of sums.
template <class S>
concept SessionResult = std::copyable<S> && requires(S& into, const S& from) {
  into += from;
  { from.speedup() } -> std::same_as<double>;
  { from.tokens } -> std::convertible_to<std::uint64_t>;
};
static_assert(SessionResult<SessionCost>);

/// Returns the sum of `sessions`, in their order.
template <SessionResult S>
S sum(std::span<const S> sessions) {
  S all;
  for (const S& session : sessions) all += session;
  return all;
}
template <SessionResult S>
S sum(const std::vector<S>& sessions) {
  return sum(std::span<const S>(sessions));
}

struct Interval {
  double low = 0;
  double high = 0;
};

/// Returns the interval that leaves out the share `tail` of the values at each end. `values` is not empty.
Interval between_tails(std::vector<double> values, double tail);

/// Returns the 95% interval of the speedup over sessions: the percentile bootstrap (Efron 1979). Each resample draws as
/// many sessions as there are, with replacement, and its speedup is a ratio of sums. Sessions without tokens count as
/// sessions. Deterministic. Returns nullopt for fewer than two sessions.
///
/// Cost: bootstrap_draws draws; 2,000 resamples, or fewer if there are more than 2,000 sessions, but at least 200.
template <SessionResult S = SessionCost>
std::optional<Interval> bootstrap(std::span<const S> sessions);
template <SessionResult S>
std::optional<Interval> bootstrap(const std::vector<S>& sessions) {
  return bootstrap(std::span<const S>(sessions));
}
inline constexpr std::size_t bootstrap_draws = 4'000'000;

/// Sessions with something in common, such as a category.
struct Group {
  std::string name;
  std::vector<std::size_t> sessions;  ///< their indices
};

/// Groups the sessions by name, in order of first occurrence. If there are more than `most` names, the names with the
/// fewest tokens are folded into a last group, whose name counts them; `folded` is the number of folded names.
struct Groups {
  std::vector<Group> groups;
  std::size_t folded = 0;
};
Groups group_by(std::span<const std::string> names, std::span<const std::uint64_t> tokens, std::size_t most);

/// Returns the indices of the worst, the median and the best session of `group` by speedup; fewer if it has fewer
/// sessions with tokens. The earlier session wins a tie.
template <SessionResult S>
std::vector<std::size_t> worst_median_best(std::span<const S> sessions, const Group& group);
template <SessionResult S>
std::vector<std::size_t> worst_median_best(const std::vector<S>& sessions, const Group& group) {
  return worst_median_best(std::span<const S>(sessions), group);
}

/// Returns the index of the session with the lowest speedup; nullopt if no session has tokens.
template <SessionResult S>
std::optional<std::size_t> worst_session(std::span<const S> sessions) {
  std::optional<std::size_t> at;
  for (std::size_t i = 0; i < sessions.size(); ++i)
    if (sessions[i].tokens != 0 && (!at || sessions[i].speedup() < sessions[*at].speedup())) at = i;
  return at;
}

template <SessionResult S>
std::optional<Interval> bootstrap(std::span<const S> sessions) {
  constexpr std::size_t fewest = 200;
  constexpr std::size_t most = 2000;
  if (sessions.size() < 2) return std::nullopt;
  const std::size_t resamples = std::clamp(bootstrap_draws / sessions.size(), fewest, most);
  testing::Random random(1);
  std::vector<double> speedups;
  speedups.reserve(resamples);
  for (std::size_t i = 0; i < resamples; ++i) {
    S drawn;
    for (std::size_t j = 0; j < sessions.size(); ++j) drawn += sessions[random.below(sessions.size())];
    speedups.push_back(drawn.speedup());
  }
  return between_tails(std::move(speedups), 0.025);
}

template <SessionResult S>
std::vector<std::size_t> worst_median_best(std::span<const S> sessions, const Group& group) {
  std::vector<std::size_t> order;
  for (const std::size_t i : group.sessions)
    if (sessions[i].tokens != 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sessions[a].speedup() < sessions[b].speedup(); });
  if (order.size() <= 3) return order;
  return {order.front(), order[order.size() / 2], order.back()};
}

}  // namespace reprise::replay
