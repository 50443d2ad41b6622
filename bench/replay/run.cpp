// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <utility>

#include "ceiling.hpp"
#include "common/in_parallel.hpp"
#include "common/input_error.hpp"

namespace reprise::replay {
namespace {

void check_categories(const Trace& trace) {
  for (const TraceSession& session : trace.sessions)
    if (session.category == all_categories)
      throw tools::InputError(
          trace.path + ": session " + session.id +
          ": category: \"all\" names the sum of all categories; rename it, or leave out --by-category");
}

/// The sums of a trace: all sessions first, then each category in order of first occurrence.
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

/// One replay of all sessions of a trace.
struct Job {
  const Trace& trace;
  const StrategyRun& run;
  ControlSpec control;
  std::span<const CostCurve> curves;  ///< curves to charge its passes under
  std::size_t first_curve = 0;        ///< index of the first of them among all curves
  std::vector<std::pair<std::string, Counts>> sums = {};
  std::uint64_t memory_bytes = 0;

  [[nodiscard]] bool weighed() const { return control.kind == ControlKind::cost; }
  [[nodiscard]] bool remembers(const ReplaySettings& settings) const {
    return settings.kept == Kept::past && run.remembers != Remembers::nothing;
  }
  /// True if its sessions must run one after the other.
  [[nodiscard]] bool chained(const ReplaySettings& settings) const {
    return remembers(settings) || (weighed() && settings.cost_known == CostKnown::carried);
  }
  [[nodiscard]] std::string text() const {
    return trace.path + "  " + run.spec + "  " + (weighed() ? curves.front().spec() : control.text());
  }
};

/// The jobs of a trace with a strategy, in the order of their rows: one per control, or per curve of it.
std::vector<Job> jobs_of(const Assignment& assignment, const Trace& trace, const StrategyRun& run) {
  std::vector<Job> jobs;
  std::vector<ControlSpec> done;  // `auto` may resolve to a control that was given too
  for (const ControlSpec& asked : assignment.controls) {
    const ControlSpec control = resolve(asked, run.calibrated);
    if (std::find(done.begin(), done.end(), control) != done.end()) continue;
    done.push_back(control);
    if (control.kind == ControlKind::cost)
      for (std::size_t curve = 0; curve < assignment.curves.size(); ++curve)
        jobs.push_back({trace, run, control, assignment.curves.subspan(curve, 1), curve});
    else
      jobs.push_back({trace, run, control, assignment.curves});
  }
  return jobs;
}

/// The strategy for a session without a past. State of its own goes into `own`.
AnyStrategy strategy_alone(const StrategyRun& run, Past& own) {
  // A new table zeroes megabytes. That happens here, outside the measured drafting time.
  return run.remembers == Remembers::ngrams ? run.with_past(own) : run.strategy;
}

/// Replays the sessions of a job one after the other. Each starts with the state that the one before left.
void replay_chained(const Assignment& assignment, Job& job, tools::Progress& progress) {
  const ReplaySettings& settings = assignment.settings;
  const ReplaySetup setup = {job.control, job.curves, settings, job.run.calibrated};
  const bool remembers = job.remembers(settings);
  Past past;
  if (remembers && job.run.remembers == Remembers::sequences) give_room(past, settings.memory_bytes);
  if (!assignment.snapshot_in.bytes.empty()) load(past, assignment.snapshot_in);
  ReplayControl control = make_control(setup);
  std::vector<Counts> counts;
  for (const TraceSession& session : job.trace.sessions) {
    if (settings.cost_known != CostKnown::carried) control = make_control(setup);
    Past own;
    AnyStrategy strategy = remembers ? job.run.with_past(past) : strategy_alone(job.run, own);
    counts.push_back(replay_session(session, strategy, setup, control));
    counts.back().peak_bytes += own.memory_bytes();
    if (remembers && job.run.remembers == Remembers::sequences) leave(past, session, strategy);
    progress.step();
  }
  job.sums = sums(job.trace, counts, assignment.by_category);
  job.memory_bytes = past.memory_bytes();
  if (assignment.snapshot_out != nullptr) *assignment.snapshot_out = save(past, assignment.snapshot_in.fingerprint);
}

/// Replays independent sessions in parallel.
void replay_freely(const Assignment& assignment, Job& job, tools::Progress& progress) {
  const ReplaySetup setup = {job.control, job.curves, assignment.settings, job.run.calibrated};
  std::vector<Counts> counts(job.trace.sessions.size());
  tools::in_parallel(counts.size(), assignment.threads, [&](std::size_t i) {
    Past own;
    counts[i] = replay_session(job.trace.sessions[i], strategy_alone(job.run, own), setup);
    counts[i].peak_bytes += own.memory_bytes();
    progress.step();
  });
  job.sums = sums(job.trace, counts, assignment.by_category);
}

/// Runs all jobs and fills in their counts. Jobs with chained sessions run in parallel with each other.
void replay(const Assignment& assignment, std::vector<Job>& jobs, tools::Progress& progress) {
  std::vector<Job*> chained;
  std::size_t sessions = 0;
  for (Job& job : jobs) {
    if (!job.chained(assignment.settings)) continue;
    chained.push_back(&job);
    sessions += job.trace.sessions.size();
  }
  const bool beside = assignment.threads > 1 && chained.size() > 1;
  if (beside) progress.start(std::to_string(chained.size()) + " replays beside each other", sessions);
  tools::in_parallel(chained.size(), assignment.threads, [&](std::size_t i) {
    if (!beside) progress.start(chained[i]->text(), chained[i]->trace.sessions.size());
    replay_chained(assignment, *chained[i], progress);
  });
  for (Job& job : jobs) {
    if (job.chained(assignment.settings)) continue;
    progress.start(job.text(), job.trace.sessions.size());
    replay_freely(assignment, job, progress);
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
        row.kept = job.remembers(assignment.settings) ? Kept::past : Kept::session;
        row.memory_bytes = job.memory_bytes;
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
    for (const auto& [category, sum] : sums(trace, counts, assignment.by_category))
      rows.push_back({trace.path, category, ceiling_name, {ControlKind::cost, 0}, curve, sum, Kept::session, 0});
  }
  return by_category(std::move(rows), assignment.curves.size());
}

}  // namespace

std::vector<Row> replay_all(const Assignment& assignment, tools::Progress& progress) {
  if (assignment.by_category)
    for (const Trace& trace : assignment.traces) check_categories(trace);
  if (assignment.settings.cost_known == CostKnown::told)  // report a bad curve now, not after minutes
    for (const StrategyRun& run : assignment.runs)
      for (const ControlSpec& control : assignment.controls)
        if (resolve(control, run.calibrated).kind == ControlKind::cost)
          for (const CostCurve& curve : assignment.curves) static_cast<void>(curve.for_control());
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
