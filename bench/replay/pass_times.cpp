// SPDX-License-Identifier: Apache-2.0
#include "pass_times.hpp"

#include <algorithm>
#include <iterator>

#include "common/input_error.hpp"
#include "common/json.hpp"
#include "json_reader.hpp"

namespace reprise::replay {
namespace {

double median(const std::vector<double>& ascending) {
  const std::size_t half = ascending.size() / 2;
  return ascending.size() % 2 == 1 ? ascending[half] : (ascending[half - 1] + ascending[half]) / 2;
}

/// The entry whose key is nearest to `key`; the smaller one of two.
template <class Map>
const typename Map::mapped_type& nearest(const Map& map, std::size_t key) {
  const auto above = map.lower_bound(key);
  if (above == map.begin()) return above->second;
  const auto below = std::prev(above);
  return above == map.end() || key - below->first <= above->first - key ? below->second : above->second;
}

}  // namespace

MeasuredCost PassTimes::medians_of(const Lists& lists) {
  MeasuredCost::Lines lines;
  for (const auto& [context, by_rows] : lists)
    for (const auto& [rows, times] : by_rows) lines[context][rows] = median(times);
  return MeasuredCost(std::move(lines));
}

double PassTimes::sample(const PassShape& shape, testing::Random& random) const {
  const std::vector<double>& times = nearest(nearest(lists_, shape.context), shape.rows);
  const double time = times[random.below(times.size())];
  const auto line = lists_.find(shape.context);
  if (line != lists_.end() && line->second.count(shape.rows) != 0) return time;
  return medians_.nanoseconds(shape.rows, shape.context) * (time / median(times));
}

PassTimes PassTimes::parse(const std::string& path, std::string_view text) {
  const JsonReader file(path);
  const tools::Json json = file.object(text);
  if (json.find("pass_times") == nullptr && json.find("base_ns") != nullptr)
    throw tools::InputError(path + " is a cost curve, not a recording of pass times; give it with --cost");
  if (file.count(json, "", "version") != 1) file.fail("version: only recordings of version 1 can be read");
  const tools::Json::Array& shapes = file.array(json, "", "pass_times");
  if (shapes.empty()) file.fail("pass_times: is empty; a recording has at least one shape");

  Lists lists;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string at = "pass_times[" + std::to_string(i) + "].";
    if (shapes[i].object() == nullptr)
      file.fail("pass_times[" + std::to_string(i) + "]: expected an object, found " + std::string(shapes[i].kind()));
    const std::size_t context = file.count(shapes[i], at, "context");
    const std::size_t rows = file.count(shapes[i], at, "rows");
    if (rows == 0) file.fail(at + "rows: a pass has at least one row");
    const tools::Json::Array& measured = file.array(shapes[i], at, "ns");
    if (measured.empty()) file.fail(at + "ns: is empty; give at least one time, or leave out the shape");
    std::vector<double> times;
    for (std::size_t j = 0; j < measured.size(); ++j)
      times.push_back(file.time(measured[j], at + "ns[" + std::to_string(j) + "]"));
    std::sort(times.begin(), times.end());
    if (!lists[context].emplace(rows, std::move(times)).second)
      file.fail(at + "rows: an earlier shape has the same context and rows; put all its times into one list");
  }
  for (const auto& [context, by_rows] : lists)
    if (by_rows.count(1) == 0)
      file.fail("pass_times: context " + std::to_string(context) +
                " has no times of 1 row; a cost is relative to a plain pass at the same context");
  return PassTimes(std::move(lists));
}

bool looks_like_pass_times(std::string_view text) {
  tools::Json json;
  return !tools::parse_json(text, json) && json.object() != nullptr && json.find("pass_times") != nullptr;
}

}  // namespace reprise::replay
