// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "common/files.hpp"
#include "common/json_writer.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "engine_error.hpp"
#include "profile.hpp"

namespace reprise::llama {
namespace {

using tools::decimal;

bool same_line(const ProfilePoint& a, const ProfilePoint& b) {
  return a.sequences == b.sequences && a.context == b.context;
}

std::string whole(double ns) { return std::to_string(std::llround(ns)); }

/// The member of a recording of pass times, if times were kept.
void write_times(tools::JsonWriter& json, const Profile& profile) {
  if (std::ranges::all_of(profile.points, [](const ProfilePoint& point) { return point.times.empty(); })) return;
  json.new_line(1).key("pass_times").begin_array();
  for (const ProfilePoint& point : profile.points) {
    if (point.times.empty()) continue;
    json.new_line(2).begin_object().member("context", point.context).member("rows", point.rows);
    json.key("ns").begin_array();
    for (const double ns : point.times) json.raw(whole(ns));
    json.end().end();
  }
  json.end();
}

}  // namespace

void write_profile_json(std::ostream& out, const Profile& profile, const ProfileFacts& facts) {
  tools::JsonWriter json(out);
  json.begin_object().member("version", 1).raw_member("base_ns", whole(profile.points.front().ns));
  json.key("points").begin_array();
  for (const ProfilePoint& point : profile.points) {
    json.new_line(2).begin_object().member("sequences", point.sequences).member("context", point.context);
    json.member("rows", point.rows).raw_member("ns", whole(point.ns)).raw_member("low_ns", whole(point.low_ns));
    json.raw_member("high_ns", whole(point.high_ns)).end();
  }
  json.end();
  write_times(json, profile);
  json.new_line(1).member("hardware", facts.hardware).new_line(1).member("model", facts.model);
  json.new_line(1).member("library", facts.library).new_line(1).member("threads", facts.threads);
  json.new_line(1).member("date", facts.date).new_line(1).member("command", facts.command).end();
  out << "\n";
}

void write_profile_table(std::ostream& out, const Profile& profile) {
  constexpr double longest_bar = 50;
  const tools::Table table(out, {{4}, {6}, {11}, {8}, {8}});
  double most = 1;
  for (std::size_t i = 0, plain = 0; i < profile.points.size(); ++i) {
    if (!same_line(profile.points[i], profile.points[plain])) plain = i;
    most = std::max(most, profile.points[i].ns / profile.points[plain].ns);
  }
  for (std::size_t i = 0, plain = 0; i < profile.points.size(); ++i) {
    const ProfilePoint& point = profile.points[i];
    if (i == 0 || !same_line(point, profile.points[plain])) {
      plain = i;
      out << (i == 0 ? "" : "\n") << point.sequences << (point.sequences == 1 ? " sequence" : " sequences")
          << ", context " << point.context << ": c(k), the time of a pass with k drafted tokens"
          << (point.sequences == 1 ? "" : " each") << " in plain passes\n";
      table.line({"k", "rows", "ms", "spread", "c(k)"});
    }
    const double cost = point.ns / profile.points[plain].ns;
    // Half of the repetitions lie within this percentage of the median.
    const double spread = 100 * std::max(point.high_ns - point.ns, point.ns - point.low_ns) / point.ns;
    const auto bar = static_cast<std::size_t>(std::lround(longest_bar * cost / most));
    table.line({std::to_string(point.rows / point.sequences - 1), std::to_string(point.rows),
                decimal(point.ns / 1e6, 3), decimal(spread, 1) + "%", decimal(cost, 2)},
               "  " + std::string(bar, '#'));
  }
  for (const std::string& line : profile.left_out) out << line << "\n";
}

std::string hardware_text(std::istream& cpuinfo) {
  std::string name;
  std::size_t processors = 0;
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, line.find_first_of(" \t:", line.starts_with("model name") ? 10 : 0));
    if (key == "processor") ++processors;
    if (key == "model name" && name.empty() && line.size() > colon + 2) name = line.substr(colon + 2);
  }
  if (name.empty()) return "unknown";
  return name + ", " + std::to_string(processors) + (processors == 1 ? " processor" : " processors");
}

std::string hardware_text() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  return hardware_text(cpuinfo);
}

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
  return text.data();
}

void run_profile(Passes& passes, const ProfileSettings& settings, const ProfileFacts& facts, const std::string& path,
                 std::ostream& out, tools::Progress& progress) {
  namespace fs = std::filesystem;
  // Writes beside the file, then renames: after a full disk or an interrupt the old curve is still there. Devices are
  // written in place, and a link stays a link.
  std::error_code error;
  const fs::path target = fs::exists(path, error) ? fs::canonical(path, error) : fs::path(path);
  const bool in_place = fs::exists(target, error) && !fs::is_regular_file(target, error);
  const fs::path written = in_place ? target : fs::path(target.string() + ".part");
  for (const fs::path& file : {target, written})
    tools::check_writable(file.string(), "--profile " + path + ": " + file.string());

  const Profile profile = measure_profile(passes, settings, progress);
  write_profile_table(out, profile);
  std::ostringstream text;
  write_profile_json(text, profile, facts);
  std::ofstream file(written, std::ios::binary | std::ios::trunc);
  file << text.str();
  file.close();
  error.clear();
  if (file && !in_place) fs::rename(written, target, error);
  if (file && !error) return;
  if (!in_place) fs::remove(written, error);
  throw EngineError("--profile " + path + ": could not be written; is the disk full?");
}

}  // namespace reprise::llama
