// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "reprise/core/control.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// The control of a random world. It decides well, badly or at random, always as a pure function of its arguments, and
/// checks the calls that it gets (K1, K2, K4).
class WorldControl {
 public:
  enum class Kind : std::uint8_t {
    send_all,
    padding,  ///< sends all, and pads to the next allowed width
    shy,      ///< asks for little and sends less
    garbage,  ///< returns random values
  };

  explicit WorldControl(Kind kind = Kind::send_all, std::uint64_t seed = 1) : kind_(kind), seed_(seed) {}

  void begin() {
    learned_ = 0;
    time_.reset();
  }
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits& room) const {
    Random random(seed_ ^ room.plain.context << 8 ^ room.plain.rows);
    DraftBudget budget = asked;
    if (kind_ == Kind::shy) budget.max_nodes = random.below(budget.max_nodes + 1);
    if (kind_ == Kind::garbage) {
      budget.max_nodes = number(random);
      budget.max_depth = number(random);
      budget.max_leaves = number(random);
      budget.shape = random.chance(50) ? DraftShape::tree : DraftShape::chain;
    }
    return budget;
  }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable, const PassLimits& room) const {
    Random random(seed_ ^ room.plain.context << 8 ^ room.nodes);
    for (std::size_t i = 0; i < sendable.size(); ++i)
      if (sendable[i] < 0 || static_cast<std::size_t>(sendable[i]) >= draft.size() ||
          (i > 0 && sendable[i] <= sendable[i - 1]))
        breached_ = "K3: what can be sent is not in the order of the draft";
    switch (kind_) {
      case Kind::padding: {
        const std::size_t most = std::min(sendable.size(), room.nodes);
        if (room.padded)
          for (const std::size_t width : room.widths)
            if (width >= room.plain.rows + most && width - room.plain.rows <= room.nodes)
              return {most, width - room.plain.rows - most, Cut::none};
        return SendAll().choose(draft, sendable, room);
      }
      case Kind::shy:
        return {random.below(std::min(sendable.size(), room.nodes) + 1), 0, Cut::unlikely};
      case Kind::garbage:
        return {number(random), number(random), static_cast<Cut>(random.below(256))};
      default:
        return SendAll().choose(draft, sendable, room);
    }
  }
  void learn(const Outcome& outcome, const PassReport& report) {
    ++learned_;
    time_ = report.time;
    if (report.sent.rows != report.plain.rows + outcome.sent.size() || report.sent.context != report.plain.context ||
        report.plain.sequences != 1 || outcome.accepted.size() > report.committed ||
        outcome.accepted.size() + 1 < report.committed)
      breached_ = "K4: the report is not about this pass";
  }

  /// Passes since begin().
  [[nodiscard]] std::size_t learned() const { return learned_; }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> time() const { return time_; }
  [[nodiscard]] const std::string& breached() const { return breached_; }

 private:
  static std::size_t number(Random& random) {
    return random.chance(20) ? unlimited - random.below(3) : random.below(24);
  }

  Kind kind_;
  std::uint64_t seed_;
  std::size_t learned_ = 0;
  std::optional<std::chrono::nanoseconds> time_;
  mutable std::string breached_;
};
static_assert(DraftControl<WorldControl>);

}  // namespace reprise::testing
