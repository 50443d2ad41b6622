// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "support/rational.hpp"

namespace reprise::testing {

/// Enumerates all outcomes of a random experiment, each with its exact probability. Run the experiment once, and again
/// while next() returns true. Decisions of probability zero are skipped.
///
///     Branches branches;
///     do { run the experiment; sum[result] += branches.probability(); } while (branches.next());
///
/// chance() and draw() are the functions that RejectionPicks requires.
class Branches {
 public:
  template <class Weight>
  std::optional<std::size_t> draw(std::size_t size, Weight&& weight) {
    Rational total;
    std::vector<std::size_t> possible;
    for (std::size_t i = 0; i < size; ++i) {
      const Rational one = weight(i);
      if (!(one > Rational())) continue;
      possible.push_back(i);
      total = total + one;
    }
    if (possible.empty()) return {};
    const std::size_t taken = possible[take(possible.size())];
    probability_ = probability_ * (weight(taken) / total);
    return taken;
  }
  bool chance(Rational part, Rational whole) {
    const Rational yes = part < whole ? part / whole : Rational(1);
    return draw(2, [&](std::size_t i) { return i == 0 ? yes : Rational(1) - yes; }) == std::size_t{0};
  }

  [[nodiscard]] Rational probability() const { return probability_; }

  /// Advances to the next outcome. Returns false after the last.
  bool next() {
    while (!steps_.empty() && steps_.back().taken + 1 == steps_.back().count) steps_.pop_back();
    probability_ = Rational(1);
    at_ = 0;
    if (steps_.empty()) return false;
    ++steps_.back().taken;
    return true;
  }

 private:
  struct Step {
    std::size_t taken;
    std::size_t count;
  };

  std::size_t take(std::size_t count) {
    if (at_ == steps_.size()) steps_.push_back({0, count});
    return steps_[at_++].taken;
  }

  std::vector<Step> steps_;
  std::size_t at_ = 0;
  Rational probability_{1};
};

}  // namespace reprise::testing
