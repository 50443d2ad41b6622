// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reprise::replay {

/// The result of one session under one cost curve.
struct SessionCost {
  std::uint64_t tokens = 0;
  double cost = 0;  ///< in passes without a draft

  SessionCost& operator+=(const SessionCost& other);
  /// Returns tokens / cost, as the table does; 1 if the session has no tokens.
  [[nodiscard]] double speedup() const;
};

/// Returns the sum of `sessions`, in their order.
SessionCost sum(std::span<const SessionCost> sessions);

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
std::optional<Interval> bootstrap(std::span<const SessionCost> sessions);
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
std::vector<std::size_t> worst_median_best(std::span<const SessionCost> sessions, const Group& group);

}  // namespace reprise::replay
