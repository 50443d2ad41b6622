// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <utility>

#include "ceiling.hpp"
#include "in_parallel.hpp"
#include "input_error.hpp"

namespace reprise::replay {
namespace {

void check_categories(const Trace& trace) {
  for (const TraceSession& session : trace.sessions)
    if (session.category == all_categories)
      throw InputError(trace.path + ": session " + session.id +
                       ": category: \"all\" names the sum of all categories; with --by-category call it otherwise");
}

/// Replays all sessions of a trace.
std::vector<Counts> replay_trace(const Trace& trace, const AnyStrategy& strategy, const ReplaySetup& setup,
                                 std::size_t threads, Progress& progress) {
  std::vector<Counts> counts(trace.sessions.size());
  if (setup.control.kind == ControlKind::cost && setup.settings.cost_known == CostKnown::carried) {
    ReplayControl control = make_control(setup);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = replay_session(trace.sessions[i], strategy, setup, control);
      progress.step();
    }
    return counts;
  }
  in_parallel(trace.sessions.size(), threads, [&](std::size_t i) {
    counts[i] = replay_session(trace.sessions[i], strategy, setup);
    progress.step();
  });
  return counts;
}

/// The sums of a trace: of all sessions, and of each category in the order in which they first occur.
std::vector<std::pair<std::string, Counts>> sums(const Trace& trace, std::span<const Counts> counts, bool by_category) {
  std::vector<std::pair<std::string, Counts>> all = {{all_categories, {}}};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all.front().second += counts[i];
    if (!by_category) continue;
    const std::string& category = trace.sessions[i].category;
    auto sum = std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.first == category; });
    if (sum == all.end()) sum = all.insert(all.end(), {category, {}});
    sum->second += counts[i];
  }
  return all;
}

/// Sorts rows that came curve by curve, and the categories of every curve in the same order.
std::vector<Row> by_category(std::vector<Row> rows, std::size_t curves) {
  if (curves < 2) return rows;
  const std::size_t categories = rows.size() / curves;
  std::vector<Row> sorted;
  for (std::size_t category = 0; category < categories; ++category)
    for (std::size_t curve = 0; curve < curves; ++curve)
      sorted.push_back(std::move(rows[curve * categories + category]));
  return sorted;
}

/// The rows of one trace under one strategy and control.
std::vector<Row> replay_one(const Assignment& assignment, const Trace& trace, const StrategyRun& run,
                            const ControlSpec& control, Progress& progress) {
  const Row blank{trace.path, {}, run.spec, control, 0, {}};
  const bool weighed = blank.weighed();
  const std::size_t replays = weighed ? assignment.curves.size() : 1;
  std::vector<Row> rows;
  for (std::size_t replay = 0; replay < replays; ++replay) {
    const auto curves = weighed ? assignment.curves.subspan(replay, 1) : assignment.curves;
    progress.start(trace.path + "  " + run.spec + "  " + (weighed ? curves.front().spec() : control.text()),
                   trace.sessions.size());
    const auto counts = replay_trace(trace, run.strategy, {control, curves, assignment.settings, run.calibrated},
                                     assignment.threads, progress);
    for (const auto& [category, sum] : sums(trace, counts, assignment.by_category)) {
      for (std::size_t i = 0; i < curves.size(); ++i) {
        Row& row = rows.emplace_back(blank);
        row.category = category;
        row.curve = replay + i;
        row.counts = sum;
        row.counts.charges = {i < sum.charges.size() ? sum.charges[i] : Charge()};  // no sessions, no charges
      }
    }
  }
  return by_category(std::move(rows), replays);
}

/// The rows of what no copying drafter can beat; there is one best way for each curve.
std::vector<Row> find_ceiling(const Assignment& assignment, const Trace& trace, Progress& progress) {
  std::vector<Row> rows;
  for (std::size_t curve = 0; curve < assignment.curves.size(); ++curve) {
    progress.start(trace.path + "  " + ceiling_name + "  " + assignment.curves[curve].spec(), trace.sessions.size());
    std::vector<Counts> counts(trace.sessions.size());
    in_parallel(trace.sessions.size(), assignment.threads, [&](std::size_t i) {
      counts[i] = ceiling(trace.sessions[i], assignment.curves[curve], assignment.settings.max_nodes);
      progress.step();
    });
    for (const auto& [category, sum] : sums(trace, counts, assignment.by_category))
      rows.push_back({trace.path, category, ceiling_name, {ControlKind::cost, 0}, curve, sum});
  }
  return by_category(std::move(rows), assignment.curves.size());
}

}  // namespace

std::vector<Row> replay_all(const Assignment& assignment, Progress& progress) {
  if (assignment.by_category)
    for (const Trace& trace : assignment.traces) check_categories(trace);
  if (assignment.settings.cost_known == CostKnown::told)  // or it would be found out after minutes
    for (const StrategyRun& run : assignment.runs)
      for (const ControlSpec& control : assignment.controls)
        if (resolve(control, run.calibrated).kind == ControlKind::cost)
          for (const CostCurve& curve : assignment.curves) static_cast<void>(curve.for_control());
  std::vector<Row> rows;
  for (const Trace& trace : assignment.traces) {
    for (const StrategyRun& run : assignment.runs) {
      std::vector<ControlSpec> done;  // auto may be one that was asked for as well
      for (const ControlSpec& asked : assignment.controls) {
        const ControlSpec control = resolve(asked, run.calibrated);
        if (std::find(done.begin(), done.end(), control) != done.end()) continue;
        done.push_back(control);
        for (Row& row : replay_one(assignment, trace, run, control, progress)) rows.push_back(std::move(row));
      }
    }
    if (!assignment.ceiling) continue;
    for (Row& row : find_ceiling(assignment, trace, progress)) rows.push_back(std::move(row));
  }
  progress.clear();
  return rows;
}

}  // namespace reprise::replay
