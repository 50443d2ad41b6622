// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "ceiling.hpp"
#include "common/in_parallel.hpp"
#include "common/input_error.hpp"
#include "job.hpp"

namespace reprise::replay {
namespace {

/// Sorts rows by category and then by curve. They arrive curve by curve, each with the same order of categories.
std::vector<Row> by_category(std::vector<Row> rows, std::size_t curves) {
  if (curves < 2) return rows;
  const std::size_t categories = rows.size() / curves;
  std::vector<Row> sorted;
  for (std::size_t category = 0; category < categories; ++category)
    for (std::size_t curve = 0; curve < curves; ++curve)
      sorted.push_back(std::move(rows[curve * categories + category]));
  return sorted;
}

/// Runs all jobs and fills in their counts. Jobs with chained sessions run in parallel with each other.
void replay(const Assignment& assignment, std::vector<Job>& jobs, tools::Progress& progress) {
  std::vector<Job*> chained;
  std::vector<Job*> free;
  std::size_t sessions = 0;
  std::mutex observing;
  const auto observed = [&](const Job& job, std::span<const Counts> counts) {
    const std::lock_guard lock(observing);
    if (assignment.observer != nullptr) assignment.observer->replayed(job, counts);
  };
  for (Job& job : jobs) {
    if (assignment.observer != nullptr) job.watcher = assignment.observer->watcher(job);
    if (!job.chained(assignment.settings) && job.watcher == nullptr) {
      free.push_back(&job);
      continue;
    }
    chained.push_back(&job);
    sessions += job.trace.sessions.size();
  }
  const bool beside = assignment.threads > 1 && chained.size() > 1;
  if (beside) progress.start(std::to_string(chained.size()) + " replays beside each other", sessions);
  tools::in_parallel(chained.size(), assignment.threads, [&](std::size_t i) {
    if (!beside) progress.start(chained[i]->text(), chained[i]->trace.sessions.size());
    observed(*chained[i], replay_chained(assignment, *chained[i], progress));
  });
  for (Job* job : free) {
    progress.start(job->text(), job->trace.sessions.size());
    observed(*job, replay_freely(assignment, *job, progress));
  }
}

/// The rows of the jobs of one trace, strategy and control.
std::vector<Row> rows_of(const Assignment& assignment, std::span<const Job> jobs) {
  std::vector<Row> rows;
  for (const Job& job : jobs) {
    for (const auto& [category, sum] : job.sums) {
      for (std::size_t i = 0; i < job.curves.size(); ++i) {
        Row& row = rows.emplace_back();
        row.trace = job.trace.path;
        row.category = category;
        row.strategy = job.run.spec;
        row.control = job.control;
        row.curve = job.first_curve + i;
        row.counts = sum;
        row.counts.charges = {i < sum.charges.size() ? sum.charges[i]
                                                     : Charge()};  // without sessions there are no charges
        row.kept = job.remembers(assignment.settings) ? assignment.settings.kept : Kept::session;
        row.memory_bytes = job.memory_bytes;
        row.max_nodes = job.max_nodes(assignment.settings);
        row.reads_corpora = job.run.remembers == Remembers::sequences;
      }
    }
  }
  return by_category(std::move(rows), jobs.size());
}

/// The rows of the ceiling, one optimum per curve.
std::vector<Row> find_ceiling(const Assignment& assignment, const Trace& trace, tools::Progress& progress) {
  std::vector<Row> rows;
  for (std::size_t curve = 0; curve < assignment.curves.size(); ++curve) {
    progress.start(trace.path + "  " + ceiling_name + "  " + assignment.curves[curve].spec(), trace.sessions.size());
    std::vector<Counts> counts(trace.sessions.size());
    tools::in_parallel(trace.sessions.size(), assignment.threads, [&](std::size_t i) {
      counts[i] = ceiling(trace.sessions[i], assignment.curves[curve], assignment.settings.max_nodes);
      progress.step();
    });
    if (assignment.observer != nullptr) assignment.observer->bounded(trace, curve, counts);
    for (const auto& [category, sum] : sums(trace, counts, assignment.by_category))
      rows.push_back({trace.path,
                      category,
                      ceiling_name,
                      {ControlKind::cost, 0},
                      curve,
                      sum,
                      Kept::session,
                      0,
                      assignment.settings.max_nodes});
  }
  return by_category(std::move(rows), assignment.curves.size());
}

}  // namespace

void check_categories(const Assignment& assignment) {
  if (!assignment.by_category) return;
  for (const Trace& trace : assignment.traces)
    for (const TraceSession& session : trace.sessions)
      if (session.category == all_categories)
        throw tools::InputError(
            trace.path + ": session " + session.id +
            ": category: \"all\" names the sum of all categories; rename it, or leave out --by-category");
}

void check_curves(const Assignment& assignment) {
  for (const StrategyRun& run : assignment.runs)
    for (const ControlSpec& control : assignment.controls)
      if (resolve(control, run.usual).weighs())
        for (const CostCurve& curve : assignment.curves) static_cast<void>(curve.for_control());
}

std::vector<Row> replay_all(const Assignment& assignment, tools::Progress& progress) {
  check_categories(assignment);
  // Reports a bad curve now, not after minutes.
  if (assignment.settings.cost_known == CostKnown::told) check_curves(assignment);
  std::vector<Job> jobs;
  for (const Trace& trace : assignment.traces)
    for (const StrategyRun& run : assignment.runs)
      for (Job& job : jobs_of(assignment, trace, run)) jobs.push_back(std::move(job));
  replay(assignment, jobs, progress);

  std::vector<Row> rows;
  auto job = jobs.begin();
  for (const Trace& trace : assignment.traces) {
    while (job != jobs.end() && &job->trace == &trace) {
      const auto end = std::find_if(job, jobs.end(), [&](const Job& other) {
        return &other.trace != &trace || &other.run != &job->run || other.control != job->control;
      });
      for (Row& row : rows_of(assignment, {job, end})) rows.push_back(std::move(row));
      job = end;
    }
    if (!assignment.ceiling) continue;
    for (Row& row : find_ceiling(assignment, trace, progress)) rows.push_back(std::move(row));
  }
  progress.clear();
  return rows;
}

std::size_t replays(const Assignment& assignment) {
  std::size_t count = 0;
  for (const Trace& trace : assignment.traces)
    for (const StrategyRun& run : assignment.runs) count += jobs_of(assignment, trace, run).size();
  return count;
}

}  // namespace reprise::replay
