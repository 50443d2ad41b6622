// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <algorithm>

#include "common/in_parallel.hpp"
#include "past.hpp"

namespace reprise::replay {
namespace {

/// The strategy for a session without a past. State of its own goes into `own`.
AnyStrategy strategy_alone(const StrategyRun& run, Past& own) {
  // A new table zeroes megabytes. That happens here, outside the measured drafting time.
  return run.remembers == Remembers::ngrams ? run.with_past(own) : run.strategy;
}

ReplaySetup setup_of(const Job& job, const ReplaySettings& settings) {
  ReplaySetup setup = {job.control, job.curves, settings, job.run.calibrated(), job.watcher};
  setup.settings.max_nodes = job.max_nodes(settings);
  return setup;
}

}  // namespace

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

std::vector<Job> jobs_of(const Assignment& assignment, const Trace& trace, const StrategyRun& run) {
  std::vector<Job> jobs;
  std::vector<ControlSpec> done;  // `auto` may resolve to a control that was given too
  for (const ControlSpec& asked : assignment.controls) {
    const ControlSpec control = resolve(asked, run.usual);
    if (std::find(done.begin(), done.end(), control) != done.end()) continue;
    done.push_back(control);
    if (control.weighs())
      for (std::size_t curve = 0; curve < assignment.curves.size(); ++curve)
        jobs.push_back({trace, run, control, assignment.curves.subspan(curve, 1), curve});
    else
      jobs.push_back({trace, run, control, assignment.curves});
  }
  return jobs;
}

std::vector<Counts> replay_chained(const Assignment& assignment, Job& job, tools::Progress& progress) {
  const ReplaySettings& settings = assignment.settings;
  const ReplaySetup setup = setup_of(job, settings);
  const bool remembers = job.remembers(settings);
  Past past;
  if (remembers && job.run.remembers == Remembers::sequences)
    give_room(past, settings.kept == Kept::past ? settings.memory_bytes : 0, settings.next_token_bytes, settings.top_k);
  if (!assignment.snapshot_in.bytes.empty()) load(past, assignment.snapshot_in);
  ReplayControl control = make_control(setup);
  StreamPosition stream;
  for (const TraceSession& session : job.trace.sessions) stream.all_tokens += tokens_of(session);
  std::vector<Counts> counts;
  for (const TraceSession& session : job.trace.sessions) {
    if (settings.cost_known != CostKnown::carried) {
      control = make_control(setup);
      stream = {tokens_of(session)};
    }
    Past own;
    AnyStrategy strategy = remembers ? job.run.with_past(past) : strategy_alone(job.run, own);
    counts.push_back(replay_session(session, strategy, setup, control, stream));
    counts.back().peak_bytes += own.memory_bytes();
    if (remembers && job.run.remembers == Remembers::sequences) leave(past, session, strategy);
    if (remembers && job.run.remembers == Remembers::strategy) past.strategy = strategy;
    progress.step();
  }
  job.sums = sums(job.trace, counts, assignment.by_category);
  job.memory_bytes = past.memory_bytes();
  if (assignment.snapshot_out != nullptr) *assignment.snapshot_out = save(past, assignment.snapshot_in.fingerprint);
  return counts;
}

std::vector<Counts> replay_freely(const Assignment& assignment, Job& job, tools::Progress& progress) {
  const ReplaySetup setup = setup_of(job, assignment.settings);
  std::vector<Counts> counts(job.trace.sessions.size());
  tools::in_parallel(counts.size(), assignment.threads, [&](std::size_t i) {
    Past own;
    counts[i] = replay_session(job.trace.sessions[i], strategy_alone(job.run, own), setup);
    counts[i].peak_bytes += own.memory_bytes();
    progress.step();
  });
  job.sums = sums(job.trace, counts, assignment.by_category);
  return counts;
}

CurveWatcher curve_watcher(const Assignment& assignment, const Job& job, const CostCurve& curve) {
  const auto& sessions = job.trace.sessions;
  const auto longest =
      std::max_element(sessions.begin(), sessions.end(),
                       [](const TraceSession& a, const TraceSession& b) { return tokens_of(a) < tokens_of(b); });
  const bool carried = assignment.settings.cost_known == CostKnown::carried;
  return {curve, job.max_nodes(assignment.settings), make_control(setup_of(job, assignment.settings)),
          carried || longest == sessions.end() ? nullptr : &*longest};
}

}  // namespace reprise::replay
