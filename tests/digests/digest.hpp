// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <ios>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "reprise/reprise.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// The numbers of one cell: a line of digests.txt.
struct Digest {
  static constexpr std::array columns = {"cell", "drafts", "lengths", "learned", "passes", "drafted", "accepted"};

  std::string cell;
  std::uint64_t drafts = 0;   ///< hash of the nodes of every draft
  std::uint64_t lengths = 0;  ///< hash of the number of drafted rows of every pass
  std::uint64_t learned = 0;  ///< hash of costs, rates, debts and saved bytes
  std::size_t passes = 0;
  std::size_t drafted = 0;
  std::size_t accepted = 0;

  template <class T>
  static void note(std::uint64_t& hash, T value) {
    hash = mix(hash ^ static_cast<std::uint64_t>(value));
  }
  template <class Items>
  static void note_all(std::uint64_t& hash, const Items& items) {
    note(hash, items.size());
    for (const auto item : items) note(hash, item);
  }
  void note_draft(DraftView draft) {
    note(drafts, draft.size());
    for (const DraftNode& node : draft) {
      note(drafts, node.token);
      note(drafts, node.parent);
      note(drafts, node.path_probability.raw());
      note(drafts, node.match_length);
      note(drafts, node.source);
    }
  }
  /// Notes the learned costs of 1 to 65 rows.
  void note_curve(const LearnedCurve& curve) {
    std::array<Cost, LearnedCurve::most_rows + 1> costs;
    curve.costs(1, costs);
    note_all(learned, costs);
  }
  /// Counts a pass of one sequence.
  void count(std::size_t rows, std::size_t agreed) {
    note(lengths, rows);
    ++passes;
    drafted += rows;
    accepted += agreed;
  }
  [[nodiscard]] std::string line() const {
    std::ostringstream text;
    text << cell << std::hex << std::setfill('0');
    for (const std::uint64_t hash : {drafts, lengths, learned}) text << ' ' << std::setw(16) << hash;
    text << std::dec << ' ' << passes << ' ' << drafted << ' ' << accepted;
    return text.str();
  }
};

/// Returns costs with steps, for one sequence and for eight, at two contexts. The times are whole numbers of
/// nanoseconds, so that the curve is the same on every machine.
inline CostCurve stepped_curve() {
  std::vector<CostPoint> points;
  for (const std::size_t sequences : {1U, 8U})
    for (const std::size_t context : {0U, 1500U})
      for (const std::size_t more : {0U, 1U, 7U, 8U, 31U, 63U}) {
        const std::size_t steps = (more > 0 ? 10'000U : 0U) + (more > 7 ? 60'000U : 0U);
        const std::size_t time = 1'000'000 + 100 * context * sequences + 20'000 * more + steps;
        points.push_back({sequences, context, sequences + more, static_cast<double>(time)});
      }
  return CostCurve::from_points(points).value();
}

/// Simulated times of the passes of one engine. They have noise, a few are three times as long, and a few are missing.
/// After every 400 passes, the engine becomes slower or faster.
class SimulatedTimes {
 public:
  std::optional<std::chrono::nanoseconds> next(const PassShape& shape) {
    const std::int64_t slow = passes_++ / 400 % 2 == 0 ? 2 : 3;
    const auto percent = static_cast<std::int64_t>(random_.chance(2) ? 300 : 90 + random_.below(21));
    if (random_.chance(2)) return std::nullopt;
    return std::chrono::nanoseconds(curve_.cost(shape) * percent * slow / 2);
  }

 private:
  CostCurve curve_ = stepped_curve();
  Random random_{1};
  std::size_t passes_ = 0;
};

}  // namespace reprise::testing
