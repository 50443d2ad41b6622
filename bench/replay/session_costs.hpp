// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "job.hpp"
#include "page_figures.hpp"
#include "run.hpp"

namespace reprise::replay {

/// Collects the costs of all sessions of a replay under its first curve, whatever the order of its jobs.
class SessionCosts : public ReplayObserver {
 public:
  explicit SessionCosts(std::span<const Trace> traces) : traces_(traces) {
    std::size_t sessions = 0;
    for (const Trace& trace : traces) {
      first_.push_back(sessions);
      sessions += trace.sessions.size();
    }
    costs.resize(sessions);
    ceiling.resize(sessions);
  }
  void replayed(const Job& job, std::span<const Counts> counts) override {
    put(costs, job.trace, counts);
    for (const Counts& one : counts)
      if (fault.empty() && !one.fault.empty()) fault = job.trace.path + ": " + one.fault;
  }
  void bounded(const Trace& trace, std::size_t, std::span<const Counts> counts) override {
    put(ceiling, trace, counts);
  }

  std::vector<SessionCost> costs;
  std::vector<SessionCost> ceiling;
  std::string fault;  ///< the first difference from a recording; empty: none

 private:
  void put(std::vector<SessionCost>& to, const Trace& trace, std::span<const Counts> counts) {
    const std::size_t first = first_[static_cast<std::size_t>(&trace - traces_.data())];
    for (std::size_t i = 0; i < counts.size(); ++i) to[first + i] = {counts[i].tokens, counts[i].charges.front().cost};
  }

  std::span<const Trace> traces_;
  std::vector<std::size_t> first_;  // index of the first session of each trace
};

}  // namespace reprise::replay
