// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Decoding without text, for tests of control: drafts whose probabilities are right (or not), and passes whose
/// cost is a formula.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/control.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// An engine: the cost of a pass by its rows, in plain passes.
struct SimulatedEngine {
  std::string name;
  std::function<double(std::size_t)> cost;
};

inline double moe_cost(std::size_t rows) {
  constexpr std::array<double, 4> measured = {1, 3.06, 3.49, 3.89};
  return rows <= 4 ? measured[rows - 1] : 3.89 + (5.11 - 3.89) / 4 * static_cast<double>(rows - 4);
}

inline std::vector<SimulatedEngine> simulated_engines() {
  std::vector<SimulatedEngine> engines;
  for (const double s : {0.0, 0.005, 0.02, 0.05, 0.1, 0.3})
    engines.push_back(
        {"linear " + std::to_string(s), [s](std::size_t rows) { return 1 + s * static_cast<double>(rows - 1); }});
  engines.push_back({"step at 8", [](std::size_t rows) { return rows <= 8 ? 1.0 : 2.1; }});
  engines.push_back({"mixture of experts", moe_cost});
  return engines;
}

/// Returns the time of a pass of this cost. A plain pass takes 10 ms. The noise is about normal, with a deviation of a
/// tenth, and one pass in a hundred takes ten times as long.
inline std::chrono::nanoseconds noisy_time(double cost, Random& random, double drift = 1) {
  double noise = 0;
  for (int i = 0; i < 12; ++i) noise += static_cast<double>(random.below(1 << 20)) / (1 << 20);
  const double slow = random.below(100) == 0 ? 10 : 1;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(1e7 * cost * drift * slow * (1 + 0.1 * (noise - 6))));
}

/// A text in stretches: nothing to draft, guesses, phrases, copies. At every place the drafter predicts one token, and
/// is right as often as it claims.
class SimulatedText {
 public:
  explicit SimulatedText(std::uint64_t seed, std::size_t tokens) {
    Random random(mix(seed));
    const auto unit = [&] { return static_cast<double>(random.below(1 << 20)) / (1 << 20); };
    constexpr std::array<double, 4> likely = {0, 0.35, 0.75, 0.96};
    std::size_t stretch = 0;
    for (std::size_t i = 0; i < tokens; ++i) {
      if (random.below(stretch == 3 ? 60 : 20) == 0) stretch = random.below(4);
      const double probability = std::min(0.995, likely[stretch] * (0.8 + 0.4 * unit()));
      places_.push_back({probability, unit() < probability});
    }
  }

  /// Returns a chain of at most budget.max_nodes tokens after the first `at`.
  DraftView propose(std::size_t at, const DraftBudget& budget) {
    nodes_.clear();
    right_ = 0;
    double path = 1;
    for (std::size_t i = 0; i < budget.max_nodes && at + i < places_.size(); ++i) {
      path *= places_[at + i].probability;
      const Probability node = Probability::from_raw(static_cast<std::uint32_t>(path * Probability::scale));
      if (path == 0 || node < budget.min_path_probability) break;
      if (right_ == i && places_[at + i].right) ++right_;
      nodes_.push_back({static_cast<Token>(i), static_cast<NodeIndex>(i) - 1, node});
    }
    return {nodes_, DraftKind::ordered};
  }
  /// Number of tokens of the last proposal that the target agrees with.
  [[nodiscard]] std::size_t right() const { return right_; }
  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  struct Place {
    double probability;
    bool right;
  };
  std::vector<Place> places_;
  std::vector<DraftNode> nodes_;
  std::size_t right_ = 0;
};

/// Returns the largest loss of any window of at most 1,000 consecutive passes from `first` on.
template <class Loss>
Loss worst_window(const std::vector<Loss>& losses, std::size_t first = 0) {
  struct Sum {
    std::size_t passes;
    Loss sum;
  };
  std::deque<Sum> least;  // sums that can still be the minimum, increasing
  Loss sum = 0;
  Loss worst = 0;
  for (std::size_t i = first; i < losses.size(); ++i) {
    while (!least.empty() && least.back().sum >= sum) least.pop_back();
    least.push_back({i, sum});
    if (least.front().passes + 1000 <= i) least.pop_front();
    sum += losses[i];
    worst = std::max(worst, sum - least.front().sum);
  }
  return worst;
}

/// The result of a simulated session.
struct Simulated {
  std::size_t tokens = 0;
  double cost = 0;
  std::vector<double> losses;  // of each pass, in plain passes

  [[nodiscard]] double throughput() const { return static_cast<double>(tokens) / cost; }
  [[nodiscard]] double worst_window(std::size_t first = 0) const { return testing::worst_window(losses, first); }
};

/// Runs one pass in which the target agrees with `right` tokens of the draft. Returns the choice.
template <DraftControl Control>
DraftChoice run_pass(Control& control, DraftView draft, std::size_t right, PassLimits room,
                     const std::function<double(std::size_t)>& cost, Simulated& simulated,
                     std::optional<std::chrono::nanoseconds> time = {}) {
  std::vector<NodeIndex> sendable(draft.size());
  for (std::size_t i = 0; i < sendable.size(); ++i) sendable[i] = static_cast<NodeIndex>(i);
  const DraftChoice choice = control.choose(draft, sendable, room);
  const std::size_t accepted = std::min(right, choice.nodes);
  const std::span<const NodeIndex> sent = std::span(sendable).first(choice.nodes);
  // If the next drafted token was also right, it is the pick after the path.
  const Token pick = accepted < std::min(right, draft.size()) ? draft[accepted].token : Token{-1};
  const Outcome outcome{draft, sent, sent.first(accepted), pick, choice.cut, {}};
  PassReport report{room.plain, room.plain, accepted + 1, time};
  report.sent.rows += choice.nodes + choice.padding;
  control.learn(outcome, report);
  const double more = cost(report.sent.rows) - cost(room.plain.rows);
  simulated.tokens += accepted + 1;
  simulated.cost += cost(report.sent.rows);
  simulated.losses.push_back(more - static_cast<double>(accepted));
  return choice;
}

/// The context of a session that began with 1,000 tokens.
inline std::size_t growing_context(std::size_t tokens) { return 1000 + tokens; }

/// Runs a session over a whole text. `time_of(simulated, rows)` returns the reported time of the next pass.
/// `context_of(tokens)` returns its context after so many tokens of output.
template <DraftControl Control, class TimeOf, class ContextOf = std::size_t(std::size_t)>
Simulated simulate_with(Control& control, const SimulatedEngine& engine, SimulatedText& text, TimeOf&& time_of,
                        ContextOf&& context_of = growing_context) {
  Simulated simulated;
  while (simulated.tokens < text.size()) {
    PassLimits room;
    room.plain.context = context_of(simulated.tokens);
    const DraftView draft = text.propose(simulated.tokens, control.budget({.max_nodes = 32}, room));
    std::vector<NodeIndex> sendable(draft.size());
    for (std::size_t k = 0; k < sendable.size(); ++k) sendable[k] = static_cast<NodeIndex>(k);
    const std::optional<std::chrono::nanoseconds> time =
        time_of(std::as_const(simulated), 1 + control.choose(draft, sendable, room).nodes);
    run_pass(control, draft, text.right(), room, engine.cost, simulated, time);
  }
  return simulated;
}
/// Runs a session over a whole text. Reports times if `timed`.
template <DraftControl Control>
Simulated simulate(Control& control, const SimulatedEngine& engine, SimulatedText& text, bool timed) {
  Random noise(text.size());
  return simulate_with(control, engine, text, [&](const Simulated& simulated, std::size_t rows) {
    const double drift = 1 + 1e-5 * static_cast<double>(simulated.tokens);  // attention
    return timed ? std::optional(noisy_time(engine.cost(rows), noise, drift)) : std::nullopt;
  });
}

/// Sends a fixed number of nodes.
struct FixedLength : SendAll {
  std::size_t length = 0;
  [[nodiscard]] DraftBudget budget(DraftBudget asked, const PassLimits&) const {
    asked.max_nodes = length;
    return asked;
  }
};

}  // namespace reprise::testing
