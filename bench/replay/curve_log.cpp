// SPDX-License-Identifier: Apache-2.0
#include "curve_log.hpp"

#include <algorithm>
#include <cmath>

#include "reprise/core/limits.hpp"

namespace reprise::replay {

std::size_t CurvePoint::worst_rows(const RowCounts& counted) const {
  std::size_t worst = 1;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (counted.common(i + 1) && std::abs(rows[i].error()) > std::abs(rows[worst - 1].error())) worst = i + 1;
  return worst;
}

void CurveLog::begin(const LearnedCurve& learned, std::size_t context) {
  constexpr std::uint64_t first = 64;
  points_.clear();
  passes_ = 0;
  next_ = first;
  last_.reset();
  points_.push_back(point(learned, context));
}

void CurveLog::add(const Passed& pass) {
  if (pass.learned == nullptr) return;
  ++passes_;
  if (passes_ != next_) {
    last_ = *pass.learned;
    last_context_ = pass.shape.context;
    return;
  }
  next_ *= 2;
  last_.reset();
  points_.push_back(point(*pass.learned, pass.shape.context));
}

std::vector<CurvePoint> CurveLog::points() const {
  std::vector<CurvePoint> all = points_;
  if (last_) all.push_back(point(*last_, last_context_));
  return all;
}

CurvePoint CurveLog::point(const LearnedCurve& learned, std::size_t context) const {
  CurvePoint now{passes_, context, {}};
  for (std::size_t rows = 1; rows <= most_rows_; ++rows)
    now.rows.push_back({static_cast<double>(learned.cost(rows)) / cost_one,
                        actual_->cost({1, rows, context}) / actual_->toll(), learned.uncertain(rows)});
  return now;
}

void CurveWatcher::began(const TraceSession& session) {
  logs_ = fresh_.learned() != nullptr && (logged_ == nullptr || logged_ == &session);
  if (!logs_ || begun_) return;
  begun_ = true;
  log_.begin(*fresh_.learned(), session.turns.empty() ? 0 : session.turns.front().prompt.size());
}

void CurveWatcher::passed(const Passed& pass) {
  rows_.add(pass.shape.rows);
  if (logs_) log_.add(pass);
}

}  // namespace reprise::replay
