// SPDX-License-Identifier: Apache-2.0
#include "page_collect.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "common/input_error.hpp"
#include "job.hpp"
#include "session_costs.hpp"

namespace reprise::replay {
namespace {

/// The bytes that the passes of all shown sessions may take on a page.
constexpr std::size_t shown_bytes = 2'000'000;

}  // namespace

PageCollector::PageCollector(const Assignment& assignment, std::span<const std::string> asked, std::size_t threads)
    : assignment_(assignment), tallies_(assignment.traces.size()) {
  assignment_.threads = threads;
  assignment_.snapshot_out = nullptr;
  assignment_.observer = nullptr;
  data_.traces = assignment.traces;
  data_.main = main_curve(assignment.curves.size());
  for (std::size_t t = 0; t < assignment.traces.size(); ++t) {
    first_.push_back(data_.sessions.size());
    for (const TraceSession& session : assignment.traces[t].sessions) data_.sessions.push_back({&session, t});
  }
  data_.worst_losses.resize(data_.sessions.size());
  for (const std::string& id : asked) {
    const auto at = std::find_if(data_.sessions.begin(), data_.sessions.end(),
                                 [&](const PageSession& session) { return session.session->id == id; });
    if (at == data_.sessions.end())
      throw tools::InputError("--report-session " + id + ": no session of the traces has this id");
    const auto index = static_cast<std::size_t>(at - data_.sessions.begin());
    if (std::find(asked_.begin(), asked_.end(), index) == asked_.end()) asked_.push_back(index);
  }
  if (asked_.size() > most_shown)
    throw tools::InputError("--report-session: at most " + std::to_string(most_shown) + " sessions can be shown");
  // The lines in the order of the results, whatever the order of the replays.
  for (const StrategyRun& run : assignment.runs)
    for (const Job& job : jobs_of(assignment, assignment.traces.front(), run)) {
      if (!data_.lines.empty() && data_.lines.back().run == &run && data_.lines.back().control == job.control) continue;
      data_.lines.push_back({&run, job.control, std::vector<SessionCost>(data_.sessions.size())});
    }
}

std::size_t PageCollector::first_session(const Trace& trace) const {
  return first_[static_cast<std::size_t>(&trace - data_.traces.data())];
}

bool PageCollector::has_main_curve(const Job& job) const {
  return data_.main >= job.first_curve && data_.main < job.first_curve + job.curves.size();
}

bool PageCollector::is_main(const Job& job) const {
  return &job.run == data_.lines.front().run && job.control == data_.lines.front().control && has_main_curve(job);
}

PassWatcher* PageCollector::watcher(const Job& job) {
  if (!is_main(job)) return nullptr;
  auto& tally = tallies_[static_cast<std::size_t>(&job.trace - data_.traces.data())];
  const CostCurve& curve = assignment_.curves[data_.main];
  tally = std::make_unique<PassTally>(curve, curve_watcher(assignment_, job, curve));
  return tally.get();
}

void PageCollector::replayed(const Job& job, std::span<const Counts> counts) {
  if (!has_main_curve(job)) return;
  const std::size_t first = first_session(job.trace);
  const auto charge = [&](const Counts& of) { return of.charges[data_.main - job.first_curve]; };
  for (PageLine& line : data_.lines) {
    if (line.run != &job.run || line.control != job.control) continue;
    for (std::size_t i = 0; i < counts.size(); ++i) line.costs[first + i] = {counts[i].tokens, charge(counts[i]).cost};
  }
  if (!is_main(job)) return;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    data_.worst_losses[first + i] = charge(counts[i]).worst_loss;
    if (data_.fault.empty()) data_.fault = counts[i].fault;
  }
}

void PageCollector::beside(tools::Progress& progress) {
  const ControlSpec hindsight[] = {{ControlKind::hindsight, 0}};
  Assignment one = assignment_;
  one.runs = assignment_.runs.first(1);
  one.controls = hindsight;
  one.curves = assignment_.curves.subspan(data_.main, 1);
  one.by_category = false;
  one.ceiling = true;
  SessionCosts costs(data_.traces);
  one.observer = &costs;
  static_cast<void>(replay_all(one, progress));
  data_.hindsight = std::move(costs.costs);
  data_.ceiling = std::move(costs.ceiling);
}

void PageCollector::choose_shown() {
  std::vector<std::size_t> chosen = asked_;
  std::vector<std::string> names;
  std::vector<std::uint64_t> tokens;
  for (std::size_t i = 0; i < data_.sessions.size(); ++i) {
    names.push_back(data_.session(i).category);
    tokens.push_back(data_.main_costs()[i].tokens);
  }
  for (const Group& group : group_by(names, tokens, most_shown / 3).groups)
    for (const std::size_t i : worst_median_best(data_.main_costs(), group))
      if (chosen.size() < most_shown && std::find(chosen.begin(), chosen.end(), i) == chosen.end()) chosen.push_back(i);
  for (const std::size_t i : chosen) data_.shown.push_back({i, &data_.session(i), {}, true});
}

void PageCollector::replay_shown(tools::Progress& progress) {
  const ControlSpec controls[] = {data_.lines.front().control};
  Assignment one = assignment_;
  one.runs = assignment_.runs.first(1);
  one.controls = controls;
  one.curves = assignment_.curves.subspan(data_.main, 1);
  one.by_category = false;
  for (std::size_t t = 0; t < data_.traces.size(); ++t) {
    std::vector<ShownSession*> wanted;
    for (ShownSession& shown : data_.shown)
      if (data_.sessions[shown.index].trace == t) wanted.push_back(&shown);
    if (wanted.empty()) continue;
    // Sessions that depend on each other are all replayed again; otherwise the shown ones are enough.
    const Trace& trace = data_.traces[t];
    const bool chained = jobs_of(one, trace, one.runs.front()).front().chained(one.settings);
    Trace some{trace.path, {}};
    for (const ShownSession* shown : wanted) some.sessions.push_back(*shown->session);
    std::unordered_map<const TraceSession*, ShownSession*> records;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      records.emplace(chained ? wanted[i]->session : &some.sessions[i], wanted[i]);
    PassRecorder recorder(
        [&](const TraceSession& session) {
          const auto at = records.find(&session);
          return at == records.end() ? nullptr : at->second;
        },
        shown_bytes / data_.shown.size());
    Job job = jobs_of(one, chained ? trace : some, one.runs.front()).front();
    job.watcher = &recorder;
    progress.start("the sessions to show: " + job.text(), job.trace.sessions.size());
    replay_chained(one, job, progress);
  }
}

void PageCollector::advise(std::span<const DatastoreRef> stores, tools::Progress& progress) {
  std::vector<std::size_t> with_tokens;
  for (std::size_t i = 0; i < data_.sessions.size(); ++i)
    if (data_.main_costs()[i].tokens != 0) with_tokens.push_back(i);
  data_.advice.sessions = with_tokens.size();
  if (with_tokens.size() < fewest_sessions) return;
  const std::uint64_t tokens = sum(data_.main_costs()).tokens;
  data_.advised_every = static_cast<std::size_t>(
      std::min<std::uint64_t>((tokens + advised_tokens - 1) / advised_tokens, with_tokens.size() / fewest_sessions));
  std::vector<Trace> some;
  std::size_t trace = data_.traces.size();  // of the last trace in `some`
  for (std::size_t i = 0; i < with_tokens.size(); i += data_.advised_every) {
    const PageSession& session = data_.sessions[with_tokens[i]];
    if (session.trace != trace) some.push_back({data_.traces[session.trace].path, {}});
    trace = session.trace;
    some.back().sessions.push_back(*session.session);
  }
  Assignment one = assignment_;
  one.traces = some;
  one.curves = assignment_.curves.subspan(data_.main, 1);
  data_.advice = replay::advise(one, stores, progress);
}

PageData PageCollector::finish(std::span<const DatastoreRef> stores, tools::Progress& progress) {
  for (std::size_t t = 0; t < tallies_.size(); ++t) {
    if (tallies_[t] == nullptr) continue;
    data_.passes += tallies_[t]->sums();
    // One learned curve is shown: that of the first trace.
    if (t != 0 || !timed(assignment_.settings.cost_known)) continue;
    data_.learned = tallies_[t]->learned();
    data_.rows = tallies_[t]->rows();
  }
  beside(progress);
  choose_shown();
  replay_shown(progress);
  advise(stores, progress);
  progress.clear();
  return std::move(data_);
}

}  // namespace reprise::replay
