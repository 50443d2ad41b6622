// SPDX-License-Identifier: Apache-2.0
#include "cost_curve.hpp"

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/json.hpp"
#include "common/number.hpp"
#include "common/text.hpp"
#include "json_reader.hpp"

namespace reprise::replay {
namespace {

/// Reads a curve file; errors name the file. The points of several sequences go to `batches`.
MeasuredCost read_curve(const std::string& path, std::string_view text, std::map<std::size_t, MeasuredCost>& batches,
                        double& toll) {
  const JsonReader file(path);
  const tools::Json json = file.object(tools::without_byte_order_mark(text));
  if (json.find("points") == nullptr && json.find("pass_times") != nullptr)
    throw tools::InputError(path + " is a recording of pass times, not a cost curve; give it with --pass-times");
  if (file.count(json, "", "version") != 1) file.fail("version: only curves of version 1 can be read");
  const double base = file.time(file.member(json, "", "base_ns"), "base_ns");
  if (json.find("plain_ns") != nullptr) toll = base / file.time(file.member(json, "", "plain_ns"), "plain_ns");
  const tools::Json::Array& points = file.array(json, "", "points");

  std::map<std::size_t, MeasuredCost::Lines> by_sequences;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const tools::Json& point = points[i];
    const std::string at = "points[" + std::to_string(i) + "].";
    const std::size_t sequences = file.count(point, at, "sequences");
    const std::size_t rows = file.count(point, at, "rows");
    const std::size_t context = file.count(point, at, "context");
    if (sequences == 0) file.fail(at + "sequences: has to be at least 1");
    if (rows < sequences) file.fail(at + "rows: a pass has at least one row for each sequence");
    if (!by_sequences[sequences][context].emplace(rows, file.time(file.member(point, at, "ns"), at + "ns")).second)
      file.fail(at + "rows: an earlier point has the same sequences, context and rows");
  }
  MeasuredCost::Lines lines = std::move(by_sequences[1]);
  if (lines.empty()) file.fail("points: none with \"sequences\": 1; a replay runs one sequence at a time");
  for (auto& line : lines) line.second.emplace(1, base);
  by_sequences.erase(1);
  for (auto& [sequences, measured] : by_sequences) batches.emplace(sequences, std::move(measured));
  return MeasuredCost(std::move(lines));
}

}  // namespace

double CostCurve::cost(const PassShape& shape) const { return toll_ * relative(shape); }

double CostCurve::relative(const PassShape& shape) const {
  if (const LinearCost* linear = this->linear()) return 1 + linear->slope * static_cast<double>(shape.rows - 1);
  const auto& measured = std::get<MeasuredCost>(cost_);
  return measured.nanoseconds(shape.rows, shape.context) / measured.nanoseconds(1, shape.context);
}

double CostCurve::batch_cost(const PassShape& shape) const {
  const auto above = batches_.upper_bound(shape.sequences);
  if (above == batches_.begin()) return relative({1, shape.rows, shape.context});
  const auto& one = std::get<MeasuredCost>(cost_);
  return std::prev(above)->second.nanoseconds(shape.rows, shape.context) / one.nanoseconds(1, shape.context);
}

CostCurve CostCurve::parse_file(const std::string& path, std::string_view text) {
  std::map<std::size_t, MeasuredCost> batches;
  double toll = 1;
  CostCurve curve(path, read_curve(path, text, batches, toll));
  curve.toll_ = toll;
  curve.batches_ = std::move(batches);
  return curve;
}

CostCurve CostCurve::from_pass_times(const std::string& path) {
  std::ifstream in = tools::open_input(path, "a recording of pass times");
  std::ostringstream text;
  text << in.rdbuf();
  const auto times = std::make_shared<const PassTimes>(PassTimes::parse(path, text.str()));
  CostCurve curve(path, times->medians());
  curve.pass_times_ = times;
  return curve;
}

reprise::CostCurve CostCurve::for_control() const { return with_points({}); }
reprise::CostCurve CostCurve::for_planner() const {
  std::vector<CostPoint> points;
  for (const auto& [sequences, measured] : batches_)
    for (const auto& [context, line] : measured.lines())
      for (const auto& [rows, ns] : line) points.push_back({sequences, context, rows, ns});
  return with_points(std::move(points));
}

reprise::CostCurve CostCurve::with_points(std::vector<CostPoint> points) const {
  if (const LinearCost* linear = this->linear()) return reprise::CostCurve::linear(linear->slope);
  for (const auto& [context, line] : std::get<MeasuredCost>(cost_).lines())
    for (const auto& [rows, ns] : line) points.push_back({1, context, rows, ns});
  auto curve = reprise::CostCurve::from_points(points);
  if (!curve) throw tools::InputError(spec_ + ": " + std::string(curve.error().message));
  return *curve;
}

bool looks_like_curve(std::string_view text) {
  tools::Json json;
  return !tools::parse_json(text, json) && json.object() != nullptr && json.find("base_ns") != nullptr &&
         json.find("points") != nullptr;
}

std::string find_curve(const std::string& spec, std::span<const std::filesystem::path> folders) {
  const std::filesystem::path path = spec;
  if (path.has_parent_path() || std::ifstream(path)) return spec;
  for (const std::filesystem::path& folder : folders)
    if (std::ifstream(folder / path)) return (folder / path).string();
  return spec;
}

CostCurve CostCurve::parse(const std::string& spec, std::span<const std::filesystem::path> folders,
                           const std::string& option) {
  const std::string given = option + " " + spec + ": ";
  constexpr std::string_view linear = "linear:";
  if (spec.compare(0, linear.size(), linear) == 0) {
    const auto slope = tools::parse_real(std::string_view(spec).substr(linear.size()));
    if (!slope || !(*slope >= 0 && *slope <= 65536))
      throw tools::InputError(
          given + "S in linear:S is the cost of one drafted token, a number from 0 to 65536, as in " + "linear:0.02");
    return CostCurve(spec, LinearCost{*slope});
  }
  if (const auto number = tools::parse_real(spec); number && *number >= 0 && *number <= 65536)
    throw tools::InputError(given + "a number alone is no curve; if each drafted token adds " + spec +
                            " of a plain pass, give " + option + " linear:" + spec);
  if (spec.size() < 5 || spec.compare(spec.size() - 5, 5, ".json") != 0)
    throw tools::InputError(given + "there is no such curve; the choices are linear:S (c = 1 + S x drafted, as in " +
                            "linear:0.02) and FILE.json (measured times)");
  std::ifstream in(find_curve(spec, folders), std::ios::binary);
  if (!in) throw tools::InputError(given + "cannot be opened; is the path right?");
  std::ostringstream text;
  text << in.rdbuf();
  return parse_file(spec, text.str());
}

}  // namespace reprise::replay
