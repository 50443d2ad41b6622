// SPDX-License-Identifier: Apache-2.0
#include "seeds.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/in_parallel.hpp"
#include "common/input_error.hpp"
#include "job.hpp"

namespace reprise::replay {
namespace {

std::uint64_t tokens_of(const Trace& trace) {
  std::uint64_t tokens = 0;
  for (const TraceSession& session : trace.sessions) tokens += tokens_of(session);
  return tokens;
}

/// The value of told / other for the costs of the same tokens; 1 if there were none.
double ratio_to_told(double told, double other) { return other == 0 ? 1.0 : told / other; }

/// One run of a cell: told, or learned with one seed.
class Run : public CurveWatcher {
 public:
  Run(const Assignment& assignment, const Job& cell)
      : CurveWatcher(curve_watcher(assignment, cell, cell.curves.front())),
        assignment_(assignment),
        job_(cell),
        cost_(tokens_of(cell.trace)) {}

  void replay(tools::Progress& progress) {
    job_.watcher = this;
    for (const Counts& counts : replay_chained(assignment_, job_, progress))
      (counts.tokens >= SeedRun::long_tokens ? long_cost_ : short_cost_) += cost_of(counts);
  }
  void passed(const Passed& pass) override {
    CurveWatcher::passed(pass);
    cost_.add(pass.cost, pass.committed);
  }

  [[nodiscard]] const std::vector<std::pair<std::string, Counts>>& sums() const { return job_.sums; }
  [[nodiscard]] const StreamCost& cost() const { return cost_; }
  [[nodiscard]] std::uint64_t seed() const { return assignment_.settings.seed; }
  [[nodiscard]] double long_cost() const { return long_cost_; }    ///< of sessions of SeedRun::long_tokens or more
  [[nodiscard]] double short_cost() const { return short_cost_; }  ///< of the others
  /// Without sessions there are no charges.
  static double cost_of(const Counts& counts) { return counts.charges.empty() ? 0 : counts.charges.front().cost; }

 private:
  Assignment assignment_;
  Job job_;
  StreamCost cost_;
  double long_cost_ = 0;
  double short_cost_ = 0;
};

/// A trace, strategy, control and curve: told first, then each seed.
std::vector<Run> runs_of(const Assignment& assignment, const Job& cell, std::size_t seeds) {
  Assignment one = assignment;
  one.snapshot_out = nullptr;
  std::vector<Run> runs;
  one.settings.cost_known = CostKnown::told;
  runs.emplace_back(one, cell);
  one.settings.cost_known = assignment.settings.cost_known;
  for (std::size_t i = 0; i < seeds; ++i, ++one.settings.seed) runs.emplace_back(one, cell);
  return runs;
}

/// The result of a run for all sessions and for one category of sums().
SeedRun result_of(const Run& told, const Run& learned, std::size_t category) {
  const Counts& counts = learned.sums()[category].second;
  const double cost = Run::cost_of(counts);
  SeedRun run;
  run.seed = learned.seed();
  run.speedup = cost == 0 ? 1 : static_cast<double>(counts.tokens) / cost;
  run.ratio = ratio_to_told(Run::cost_of(told.sums()[category].second), cost);
  if (category != 0) return run;
  run.last_quarter = ratio_to_told(told.cost().last_quarter(), learned.cost().last_quarter());
  if (learned.long_cost() != 0) run.long_ratio = told.long_cost() / learned.long_cost();
  if (learned.short_cost() != 0) run.short_ratio = told.short_cost() / learned.short_cost();
  run.curve = learned.learned();
  return run;
}

std::vector<SeedRow> rows_of(const Assignment& assignment, const Job& cell, const std::vector<Run>& runs) {
  std::vector<SeedRow> rows;
  const Run& told = runs.front();
  for (std::size_t i = 0; i < told.sums().size(); ++i) {
    SeedRow& row = rows.emplace_back();
    row.trace = cell.trace.path;
    row.strategy = cell.run.spec;
    row.control = cell.control;
    row.curve = cell.first_curve;
    row.kept = cell.remembers(assignment.settings) ? assignment.settings.kept : Kept::session;
    row.told_rows = told.rows();
    std::tie(row.category, row.told) = told.sums()[i];
    if (row.told.charges.empty()) row.told.charges.resize(1);
    for (std::size_t r = 1; r < runs.size(); ++r) {
      if (row.told.fault.empty()) row.told.fault = runs[r].sums()[i].second.fault;
      row.runs.push_back(result_of(told, runs[r], i));
    }
  }
  return rows;
}

/// Sorts the rows of the cells by trace and then by category, as replay_all() does.
std::vector<SeedRow> sorted(std::vector<std::vector<SeedRow>> cells) {
  std::vector<SeedRow> rows;
  for (std::size_t first = 0, end = 0; first < cells.size(); first = end) {
    const auto same = [&](std::size_t i) {
      return i < cells.size() && cells[i].front().trace == cells[first].front().trace &&
             cells[i].size() == cells[first].size();
    };
    for (end = first + 1; same(end);) ++end;
    for (std::size_t category = 0; category < cells[first].size(); ++category)
      for (std::size_t i = first; i < end; ++i) rows.push_back(std::move(cells[i][category]));
  }
  return rows;
}

/// The cells in the order of their rows. Throws InputError for a control that does not weigh costs.
std::vector<Job> cells_of(const Assignment& assignment) {
  std::vector<Job> cells;
  for (const Trace& trace : assignment.traces)
    for (const StrategyRun& run : assignment.runs)
      for (Job& job : jobs_of(assignment, trace, run)) {
        if (job.control.kind != ControlKind::cost)
          throw tools::InputError(
              "--seeds: the drafts of " + run.spec + " under --control " + job.control.text() +
              " do not depend on pass times, so all seeds give the same result; give --control cost");
        cells.push_back(std::move(job));
      }
  return cells;
}

}  // namespace

void StreamCost::add(double cost, std::size_t committed) {
  const std::uint64_t before = tokens_;
  tokens_ += committed;
  if (tokens_ <= border_ || committed == 0) return;
  const std::uint64_t late = tokens_ - std::max(before, border_);
  last_quarter_ += cost * static_cast<double>(late) / static_cast<double>(committed);
}

double SeedRow::told_speedup() const {
  const double cost = told.charges.front().cost;
  return cost == 0 ? 1 : static_cast<double>(told.tokens) / cost;
}
double SeedRow::mean(double SeedRun::*value) const {
  double sum = 0;
  for (const SeedRun& run : runs) sum += run.*value;
  return sum / static_cast<double>(runs.size());
}
double SeedRow::lowest(double SeedRun::*value) const {
  double least = runs.front().*value;
  for (const SeedRun& run : runs) least = std::min(least, run.*value);
  return least;
}
const SeedRun& SeedRow::worst() const {
  return *std::min_element(runs.begin(), runs.end(),
                           [](const SeedRun& a, const SeedRun& b) { return a.ratio < b.ratio; });
}
std::vector<std::uint64_t> SeedRow::weak_seeds() const {
  std::vector<std::uint64_t> seeds;
  for (const SeedRun& run : runs)
    if (run.weak()) seeds.push_back(run.seed);
  return seeds;
}

std::vector<SeedRow> replay_seeds(const Assignment& assignment, std::size_t seeds, tools::Progress& progress) {
  check_categories(assignment);
  check_curves(assignment);
  const std::vector<Job> cells = cells_of(assignment);
  std::vector<std::vector<Run>> runs;
  std::size_t sessions = 0;
  for (const Job& cell : cells) {
    runs.push_back(runs_of(assignment, cell, seeds));
    sessions += cell.trace.sessions.size() * (seeds + 1);
  }
  progress.start(std::to_string(cells.size() * (seeds + 1)) + " replays", sessions);
  tools::in_parallel(cells.size() * (seeds + 1), assignment.threads,
                     [&](std::size_t i) { runs[i / (seeds + 1)][i % (seeds + 1)].replay(progress); });
  progress.clear();
  std::vector<std::vector<SeedRow>> rows;
  for (std::size_t i = 0; i < cells.size(); ++i) rows.push_back(rows_of(assignment, cells[i], runs[i]));
  return sorted(std::move(rows));
}

}  // namespace reprise::replay
