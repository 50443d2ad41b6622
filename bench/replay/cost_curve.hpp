// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/capabilities.hpp"

namespace reprise::replay {

/// c = 1 + slope * drafted tokens.
struct LinearCost {
  double slope = 0;
};

/// Measured times of passes of one sequence: context -> rows -> nanoseconds. Linear between the rows that were
/// measured, the last slope beyond them (a falling one is read as flat); linear between contexts, the nearest one
/// outside.
class MeasuredCost {
 public:
  using Lines = std::map<std::size_t, std::map<std::size_t, double>>;

  /// `lines`: at least one context, each with a point for one row; times above zero.
  explicit MeasuredCost(Lines lines) : lines_(std::move(lines)) {}

  [[nodiscard]] double nanoseconds(std::size_t rows, std::size_t context) const;
  [[nodiscard]] const Lines& lines() const { return lines_; }

 private:
  Lines lines_;
};

/// The time of a pass by its shape, relative to a pass without a draft at the same context: 1 for plain decoding
/// whatever the curve, so that tokens / sum of c is the speedup against it. This is what is charged; what control
/// makes of the same curve is its own.
class CostCurve {
 public:
  /// Reads `linear:S`, or a curve file: {"version": 1, "base_ns": t, "points": [{"sequences", "context", "rows",
  /// "ns"}, ...]} with times in nanoseconds. base_ns is the time of a pass without a draft; it stands in at the
  /// contexts where no point says so itself. Points of several sequences are checked and not used: a replay runs
  /// one sequence at a time. A file that is given by its name alone is also looked for in `folders`. Throws
  /// InputError; `option` is what the spec was given for.
  static CostCurve parse(const std::string& spec, std::span<const std::filesystem::path> folders = {},
                         const std::string& option = "--cost");
  /// The text of such a file; `path` is for messages and is the name of the curve.
  static CostCurve parse_file(const std::string& path, std::string_view text);

  [[nodiscard]] const std::string& spec() const { return spec_; }
  /// The slope if this curve is linear:S, else null.
  [[nodiscard]] const LinearCost* linear() const { return std::get_if<LinearCost>(&cost_); }
  /// `shape` of one sequence; rows - 1 tokens of it are drafted.
  [[nodiscard]] double cost(const PassShape& shape) const;
  /// The same curve as control is told of it: in fixed point, made of the same points. Throws InputError when it
  /// has more of them than control takes.
  [[nodiscard]] reprise::CostCurve for_control() const;

 private:
  CostCurve(std::string spec, std::variant<LinearCost, MeasuredCost> cost)
      : spec_(std::move(spec)), cost_(std::move(cost)) {}

  std::string spec_;
  std::variant<LinearCost, MeasuredCost> cost_;
};

/// Whether `text` is meant as a curve file: a JSON object with the fields of one. They may hold anything.
bool looks_like_curve(std::string_view text);

/// The file that CostCurve::parse() reads for `spec`: as it was given, or that of this name in the first of `folders`
/// that has one.
std::string find_curve(const std::string& spec, std::span<const std::filesystem::path> folders);

}  // namespace reprise::replay
