// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cost_curve.hpp"
#include "pass_watcher.hpp"
#include "replay_control.hpp"
#include "reprise/control/cost_control.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The passes of a replay by their number of rows.
class RowCounts {
 public:
  void add(std::size_t rows) {
    ++passes_;
    if (rows < counts_.size()) ++counts_[rows];
  }
  /// True if at least one pass in 100 had this number of rows.
  [[nodiscard]] bool common(std::size_t rows) const {
    return rows < counts_.size() && counts_[rows] != 0 && counts_[rows] * 100 >= passes_;
  }

 private:
  std::array<std::uint64_t, LearnedCurve::most_rows + 1> counts_{};
  std::uint64_t passes_ = 0;
};

/// The learned curve after a number of passes. Costs are relative to a plain pass.
struct CurvePoint {
  struct Row {
    double learned = 1;
    double actual = 1;       ///< at the context of the last pass
    bool uncertain = false;  ///< the control says so; see LearnedCurve::uncertain()

    [[nodiscard]] double error() const { return learned / actual - 1; }
  };
  std::uint64_t passes = 0;
  std::size_t context = 0;
  std::vector<Row> rows;  ///< from 1 row on

  /// The row count with the largest relative error among those of `counted`; 1 if there is none, with an error of 0.
  [[nodiscard]] std::size_t worst_rows(const RowCounts& counted) const;
};

/// Records a learned curve before the first pass, after 64, 128, 256, ... passes, and after the last one.
class CurveLog {
 public:
  /// `actual`: the true curve, which outlives the log. The curve is recorded for 1 to `most_rows` rows.
  CurveLog(const CostCurve& actual, std::size_t most_rows) : actual_(&actual), most_rows_(most_rows) {}

  /// Starts with a curve that has seen no pass. `context`: the length of the first context.
  void begin(const LearnedCurve& learned, std::size_t context);
  void add(const Passed& pass);
  /// The points so far, with one after the last pass.
  [[nodiscard]] std::vector<CurvePoint> points() const;
  [[nodiscard]] std::uint64_t passes() const { return passes_; }

 private:
  [[nodiscard]] CurvePoint point(const LearnedCurve& learned, std::size_t context) const;

  const CostCurve* actual_;
  std::size_t most_rows_;
  std::vector<CurvePoint> points_;
  std::optional<LearnedCurve> last_;
  std::size_t last_context_ = 0;
  std::uint64_t passes_ = 0;
  std::uint64_t next_ = 0;
};

/// Records the curve that the control of a replay learns, and counts its passes by their rows.
class CurveWatcher : public PassWatcher {
 public:
  /// `curve`: the true curve, which outlives the watcher. `fresh`: the control at the start. `logged`: the session
  /// whose learned curve is recorded; null: the stream of all.
  CurveWatcher(const CostCurve& curve, std::size_t max_nodes, const ReplayControl& fresh, const TraceSession* logged)
      : fresh_(fresh), logged_(logged), log_(curve, max_nodes + 1) {}

  void began(const TraceSession& session) override;
  void passed(const Passed& pass) override;

  /// The learned curve over the passes; empty if control learns none.
  [[nodiscard]] std::vector<CurvePoint> learned() const { return log_.points(); }
  [[nodiscard]] const RowCounts& rows() const { return rows_; }

 private:
  ReplayControl fresh_;
  const TraceSession* logged_;
  CurveLog log_;
  RowCounts rows_;
  bool logs_ = false;  // the present session is recorded
  bool begun_ = false;
};

}  // namespace reprise::replay
