// SPDX-License-Identifier: Apache-2.0
#include "cost_curve.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "common/input_error.hpp"
#include "common/json.hpp"
#include "common/number.hpp"

namespace reprise::replay {
namespace {

double between(double low, double high, double share) { return low + (high - low) * share; }

double at_rows(const std::map<std::size_t, double>& line, std::size_t rows) {
  const auto above = line.lower_bound(rows);
  if (above == line.begin()) return above->second;
  const auto below = std::prev(above);
  if (above != line.end())
    return between(below->second, above->second,
                   static_cast<double>(rows - below->first) / static_cast<double>(above->first - below->first));
  if (below == line.begin()) return below->second;
  const auto before = std::prev(below);
  const double slope = (below->second - before->second) / static_cast<double>(below->first - before->first);
  return below->second + std::max(slope, 0.0) * static_cast<double>(rows - below->first);
}

/// Reads a curve file; errors name the file.
class FileReader {
 public:
  explicit FileReader(const std::string& path) : path_(path) {}

  MeasuredCost curve(std::string_view text) const {
    tools::Json json;
    if (const auto error = tools::parse_json(text, json))
      throw tools::InputError(path_ + ":" + std::to_string(error->line) + ": column " + std::to_string(error->column) +
                              ": " + error->message);
    if (json.object() == nullptr) fail("expected an object, found " + std::string(json.kind()));
    if (count(json, "", "version") != 1) fail("version: only curves of version 1 can be read");
    const double base = time(json, "", "base_ns");
    const tools::Json& points = member(json, "", "points");
    if (points.array() == nullptr) fail("points: expected an array, found " + std::string(points.kind()));

    std::map<std::size_t, MeasuredCost::Lines> by_sequences;
    for (std::size_t i = 0; i < points.array()->size(); ++i) {
      const tools::Json& point = (*points.array())[i];
      const std::string at = "points[" + std::to_string(i) + "].";
      const std::size_t sequences = count(point, at, "sequences");
      const std::size_t rows = count(point, at, "rows");
      const std::size_t context = count(point, at, "context");
      if (sequences == 0) fail(at + "sequences: has to be at least 1");
      if (rows < sequences) fail(at + "rows: a pass has at least one row for each sequence");
      if (!by_sequences[sequences][context].emplace(rows, time(point, at, "ns")).second)
        fail(at + "rows: an earlier point has the same sequences, context and rows");
    }
    MeasuredCost::Lines lines = std::move(by_sequences[1]);
    if (lines.empty()) fail("points: none with \"sequences\": 1; a replay runs one sequence at a time");
    for (auto& line : lines) line.second.emplace(1, base);
    return MeasuredCost(std::move(lines));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw tools::InputError(path_ + ": " + what); }

  const tools::Json& member(const tools::Json& json, const std::string& at, const std::string& key) const {
    const tools::Json* found = json.find(key);
    if (found == nullptr) fail(at + key + ": missing");
    return *found;
  }
  std::size_t count(const tools::Json& json, const std::string& at, const std::string& key) const {
    const tools::Json::Number* number = member(json, at, key).number();
    if (number == nullptr || !number->integer || *number->integer < 0)
      fail(at + key + ": expected a whole number that is not negative");
    return static_cast<std::size_t>(*number->integer);
  }
  double time(const tools::Json& json, const std::string& at, const std::string& key) const {
    const tools::Json::Number* number = member(json, at, key).number();
    if (number == nullptr || !(number->value > 0)) fail(at + key + ": expected a time in nanoseconds, above 0");
    return number->value;
  }

  const std::string& path_;
};

}  // namespace

double MeasuredCost::nanoseconds(std::size_t rows, std::size_t context) const {
  const auto above = lines_.lower_bound(context);
  if (above == lines_.begin()) return at_rows(above->second, rows);
  const auto below = std::prev(above);
  if (above == lines_.end()) return at_rows(below->second, rows);
  return between(at_rows(below->second, rows), at_rows(above->second, rows),
                 static_cast<double>(context - below->first) / static_cast<double>(above->first - below->first));
}

double CostCurve::cost(const PassShape& shape) const {
  if (const LinearCost* linear = this->linear()) return 1 + linear->slope * static_cast<double>(shape.rows - 1);
  const auto& measured = std::get<MeasuredCost>(cost_);
  return measured.nanoseconds(shape.rows, shape.context) / measured.nanoseconds(1, shape.context);
}

CostCurve CostCurve::parse_file(const std::string& path, std::string_view text) {
  return CostCurve(path, FileReader(path).curve(text));
}

reprise::CostCurve CostCurve::for_control() const {
  if (const LinearCost* linear = this->linear()) return reprise::CostCurve::linear(linear->slope);
  std::vector<CostPoint> points;
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
    if (!slope || *slope < 0)
      throw tools::InputError(given + "S in linear:S is the cost of one drafted token, a number that is not " +
                              "negative, as in linear:0.02");
    return CostCurve(spec, LinearCost{*slope});
  }
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
