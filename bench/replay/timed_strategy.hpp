// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "reliability.hpp"
#include "reprise/core/strategy.hpp"
#include "thread_clock.hpp"

namespace reprise::replay {

/// The time spent in a strategy, by ThreadClock.
struct DraftingTime {
  std::uint64_t total_ns = 0;        ///< begin, observe, propose and feedback
  std::uint64_t propose_ns = 0;      ///< propose only
  std::uint64_t proposals = 0;       ///< number of its calls
  std::uint64_t max_propose_ns = 0;  ///< of the slowest call

  DraftingTime& operator+=(const DraftingTime& other) {
    total_ns += other.total_ns;
    propose_ns += other.propose_ns;
    proposals += other.proposals;
    max_propose_ns = std::max(max_propose_ns, other.max_propose_ns);
    return *this;
  }
};

/// Measures a strategy from outside: its time, because the library reads no clock, and the reliability of its
/// probabilities.
template <DraftStrategy S>
class TimedStrategy {
 public:
  // A template, because otherwise copying a TimedStrategy<AnyStrategy> would ask whether an AnyStrategy can be made
  // from it. The answer would depend on itself.
  template <std::same_as<S> T>
  explicit TimedStrategy(T strategy, std::function<void(const Outcome&)> tested = {})
      : strategy_(std::move(strategy)), tested_(std::move(tested)) {}

  void begin(TokenSpan tokens) {
    time_.total_ns += ThreadClock::time([&] { strategy_.begin(tokens); });
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    time_.total_ns += ThreadClock::time([&] { strategy_.observe(context, fresh, origin); });
  }
  void propose(TokenSpan context, Draft& draft) {
    const std::uint64_t ns = ThreadClock::time([&] { strategy_.propose(context, draft); });
    time_.total_ns += ns;
    time_.propose_ns += ns;
    time_.max_propose_ns = std::max(time_.max_propose_ns, ns);
    ++time_.proposals;
  }
  void feedback(TokenSpan context, const Outcome& outcome) {
    reliability_.record(outcome);
    if (tested_) tested_(outcome);
    time_.total_ns += ThreadClock::time([&] { strategy_.feedback(context, outcome); });
  }
  void truncate(TokenSpan context, std::size_t size) { strategy_.truncate(context, size); }

  [[nodiscard]] const S& strategy() const { return strategy_; }
  [[nodiscard]] const DraftingTime& time() const { return time_; }
  [[nodiscard]] const Reliability& reliability() const { return reliability_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    if constexpr (MeasurableStrategy<S>) return strategy_.memory_bytes();
    return 0;
  }

 private:
  S strategy_;
  std::function<void(const Outcome&)> tested_;  // sees each outcome before the strategy; may be empty
  DraftingTime time_;
  Reliability reliability_;
};

}  // namespace reprise::replay
