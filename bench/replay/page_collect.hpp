// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "page_data.hpp"
#include "pass_tally.hpp"
#include "run.hpp"

namespace reprise::replay {

/// Collects the data of a page during a replay. Set it as the observer of the assignment, and call finish() after the
/// replay.
class PageCollector : public ReplayObserver {
 public:
  /// `assignment` outlives the collector. `asked`: ids of sessions to show. Throws InputError for an id that no session
  /// has, or more than most_shown ids. `threads`: for the replays of finish(), whose times are not shown.
  PageCollector(const Assignment& assignment, std::span<const std::string> asked, std::size_t threads);

  PassWatcher* watcher(const Job& job) override;
  void replayed(const Job& job, std::span<const Counts> counts) override;

  /// Replays the main run in hindsight, computes the ceiling, replays the shown sessions, and asks for an advice under
  /// the main curve. `stores`: datastores that its drafters read. Call it once.
  PageData finish(std::span<const DatastoreRef> stores, tools::Progress& progress);

  /// Output tokens that the advice replays; of more, it takes every second session, every third, and so on. Twelve
  /// replays of all of a large recording would take several times as long as the rest of the page.
  static constexpr std::uint64_t advised_tokens = 100'000;
  /// Most sessions whose text is shown.
  static constexpr std::size_t most_shown = 24;

 private:
  [[nodiscard]] std::size_t first_session(const Trace& trace) const;
  [[nodiscard]] bool has_main_curve(const Job& job) const;
  [[nodiscard]] bool is_main(const Job& job) const;
  void beside(tools::Progress& progress);
  void choose_shown();
  void replay_shown(tools::Progress& progress);
  void advise(std::span<const DatastoreRef> stores, tools::Progress& progress);

  Assignment assignment_;
  PageData data_;
  std::vector<std::size_t> first_;                   // index of the first session of each trace
  std::vector<std::unique_ptr<PassTally>> tallies_;  // of the main run, by trace
  std::vector<std::size_t> asked_;
};

/// The curve that a page is about: the middle one, as for the bars of the table.
constexpr std::size_t main_curve(std::size_t curves) { return (curves - 1) / 2; }

}  // namespace reprise::replay
