// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compare.hpp"
#include "generate.hpp"
#include "replay/pass_record.hpp"
#include "replay/pass_tally.hpp"
#include "replay/reliability.hpp"
#include "replay/trace.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::llama {

/// The passes of many runs: their drafts, and their measured times.
class PassNotes {
 public:
  /// A pass of the current session.
  struct Timed {
    double ns = 0;
    std::size_t committed = 0;
  };

  /// The next passes belong to another run of a session.
  void begin() { position_ = 0; }
  /// Removes the passes that session() returns.
  void begin_session() { session_.clear(); }
  void add(const Outcome& outcome, const PassReport& report);

  /// Costs are in nanoseconds.
  [[nodiscard]] const replay::PassSums& sums() const { return sums_; }
  [[nodiscard]] const replay::Reliability& reliability() const { return reliability_; }
  [[nodiscard]] std::span<const Timed> session() const { return session_; }

  /// The passes with the same number of rows.
  struct Width {
    std::vector<double> ns;
    std::uint64_t context = 0;  ///< the sum over the passes

    [[nodiscard]] double median() const;
    [[nodiscard]] std::size_t mean_context() const { return static_cast<std::size_t>(context / ns.size()); }
  };
  [[nodiscard]] const std::map<std::size_t, Width>& widths() const { return widths_; }
  /// The median time of all passes in nanoseconds; 0 without passes.
  [[nodiscard]] double median() const;

 private:
  replay::PassSums sums_;
  replay::Reliability reliability_;
  std::map<std::size_t, Width> widths_;  // by rows
  std::vector<Timed> session_;
  std::uint64_t position_ = 0;  // output tokens of the run before the pass
};

/// What a page shows about a comparison beyond its sums: the passes of plain decoding and of the first strategy.
class CompareNotes {
 public:
  /// `asked`: ids of sessions whose passes are kept in any case.
  explicit CompareNotes(std::vector<std::string> asked) : asked_(std::move(asked)) {}
  CompareNotes(const CompareNotes&) = delete;  // the recorder refers to it
  CompareNotes& operator=(const CompareNotes&) = delete;

  void begin_session(const Request& request);
  /// Returns the watch of a run. `lane`: 0 for plain decoding, 1 for the first strategy; others are not watched.
  Watch watch(std::size_t lane);
  /// The run that watch() was for has ended.
  void ran(std::size_t lane, const RequestRun& run);
  void end_session();

  [[nodiscard]] const PassNotes& plain() const { return plain_; }
  [[nodiscard]] const PassNotes& drafted() const { return drafted_; }
  /// Of each session, in the order of the comparison: its repetitions without and with the first strategy.
  [[nodiscard]] const std::vector<std::vector<TimedSession>>& repetitions() const { return repetitions_; }
  /// Of each session: the largest loss of any run of at most LossWindow::passes passes, in plain tokens.
  [[nodiscard]] const std::vector<double>& worst_losses() const { return worst_losses_; }
  /// The passes of the first repetition; for at most `most_recorded` sessions, and for the asked ones.
  [[nodiscard]] const std::deque<replay::ShownSession>& recorded() const { return recorded_; }

  static constexpr std::size_t most_recorded = 1000;
  static constexpr std::size_t most_shown = 24;

 private:
  std::vector<std::string> asked_;
  PassNotes plain_;
  PassNotes drafted_;
  std::vector<std::vector<TimedSession>> repetitions_;
  std::vector<double> worst_losses_;
  std::deque<replay::ShownSession> recorded_;
  std::deque<replay::TraceSession> texts_;  // of `recorded_`
  std::vector<TimedSession> now_;           // the repetitions of the current session; each lane fills its part
  std::size_t runs_[2] = {0, 0};            // of the current session, by lane
  bool records_ = false;                    // the current session is recorded
  replay::PassRecorder recorder_{[this](const replay::TraceSession&) { return &recorded_.back(); },
                                 2'000'000 / most_shown};
};

}  // namespace reprise::llama
