// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "measured_cost.hpp"
#include "pass_times.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/core/limits.hpp"

namespace reprise::replay {

/// c = 1 + slope * drafted tokens.
struct LinearCost {
  double slope = 0;
};

/// The time of a pass by its shape, relative to a pass without a draft at the same context, times the toll of having a
/// drafter. Plain decoding costs 1 under every curve, so tokens / sum of c is the speedup. Passes are charged by this
/// class; control computes its own curve from the same points.
class CostCurve {
 public:
  /// Reads `linear:S`, or a curve file: {"version": 1, "base_ns": t, "points": [{"sequences", "context", "rows", "ns"},
  /// ...]} with times in nanoseconds. base_ns is the time of a pass without a draft, used for contexts that have no
  /// such point. "plain_ns" may be there, too: the time of a pass of the engine when it has no drafter at all. A
  /// replay does not use points of several sequences, because it runs one sequence at a time. A file
  /// given by name alone is also looked up in `folders`. Throws InputError; `option` is the option that the spec
  /// belongs to.
  static CostCurve parse(const std::string& spec, std::span<const std::filesystem::path> folders = {},
                         const std::string& option = "--cost");
  /// Reads the text of such a file. `path` is the name of the curve, also in messages.
  static CostCurve parse_file(const std::string& path, std::string_view text);
  /// The curve of the medians of a recording of pass times; see PassTimes. `path` is its name. Throws InputError.
  static CostCurve from_pass_times(const std::string& path);

  [[nodiscard]] const std::string& spec() const { return spec_; }
  /// The slope if this curve is linear:S, else null.
  [[nodiscard]] const LinearCost* linear() const { return std::get_if<LinearCost>(&cost_); }
  /// The recording that this curve was computed from; null for other curves.
  [[nodiscard]] const PassTimes* pass_times() const { return pass_times_.get(); }
  /// The time of a pass without a draft, relative to that of an engine without a drafter: base_ns / plain_ns, or 1.
  [[nodiscard]] double toll() const { return toll_; }
  /// The cost of a pass of one sequence; rows - 1 of its rows are drafted.
  [[nodiscard]] double cost(const PassShape& shape) const;
  /// The time of a pass of any number of sequences, relative to a pass of one row at the same context. The points of
  /// the next smaller measured number of sequences apply. linear:S is 1 + S x (rows - 1).
  [[nodiscard]] double batch_cost(const PassShape& shape) const;
  /// The same curve for control: in fixed point, from the same points. Throws InputError if it has more points than
  /// control accepts.
  [[nodiscard]] reprise::CostCurve for_control() const;
  /// The same for a planner of several sequences: also from the points of several sequences.
  [[nodiscard]] reprise::CostCurve for_planner() const;

 private:
  CostCurve(std::string spec, std::variant<LinearCost, MeasuredCost> cost)
      : spec_(std::move(spec)), cost_(std::move(cost)) {}
  [[nodiscard]] double relative(const PassShape& shape) const;
  [[nodiscard]] reprise::CostCurve with_points(std::vector<CostPoint> points) const;

  std::string spec_;
  std::variant<LinearCost, MeasuredCost> cost_;
  double toll_ = 1;
  std::map<std::size_t, MeasuredCost> batches_;  // by the number of sequences, from 2 on
  std::shared_ptr<const PassTimes> pass_times_ = {};
};

/// True if `text` is a JSON object with the fields of a curve file. Their values are not checked.
bool looks_like_curve(std::string_view text);

/// The path of the file that CostCurve::parse() reads for `spec`: `spec` itself, or the file of that name in the first
/// of `folders` that has one.
std::string find_curve(const std::string& spec, std::span<const std::filesystem::path> folders);

}  // namespace reprise::replay
