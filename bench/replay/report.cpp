// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json.hpp"
#include "options.hpp"
#include "reprise/core/version.hpp"

namespace reprise::replay {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0.0 : part / whole; }
double ratio(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

struct Field {
  std::string_view name;
  std::string value;
  bool text = false;
};

/// Shortest spelling that reads back as the same number.
std::string number(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return {buffer, end};
}

/// The one list of fields, for both formats.
std::vector<Field> fields(const Row& row, const CostCurve& curve, std::size_t curve_index) {
  const Counts& counts = row.counts;
  const Ratios r = ratios(counts);
  return {{"trace", row.trace, true},
          {"category", row.category, true},
          {"strategy", row.strategy, true},
          {"cost", curve.spec(), true},
          {"memory", std::string(memory_kept), true},
          {"sessions", std::to_string(counts.sessions)},
          {"turns", std::to_string(counts.turns)},
          {"tokens", std::to_string(counts.tokens)},
          {"passes", std::to_string(counts.passes)},
          {"drafted", std::to_string(counts.drafted)},
          {"accepted", std::to_string(counts.accepted)},
          {"mat", number(r.mat)},
          {"acceptance_rate", number(r.acceptance_rate)},
          {"drafted_per_pass", number(r.drafted_per_pass)},
          {"ns_per_token", number(r.ns_per_token)},
          {"ns_per_propose", number(r.ns_per_propose)},
          {"max_propose_ns", std::to_string(counts.time.max_propose_ns)},
          {"peak_bytes", std::to_string(counts.peak_bytes)},
          {"speedup", number(speedup(counts, curve_index))},
          {"lossless", counts.lossless() ? "true" : "false"}};
}

template <class Visit>
void each_result(const Report& report, Visit&& visit) {
  for (const Row& row : report.rows)
    for (std::size_t i = 0; i < report.curves.size(); ++i) visit(fields(row, report.curves[i], i));
}

std::string quote_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

Ratios ratios(const Counts& counts) {
  return {ratio(counts.tokens, counts.passes), ratio(counts.accepted, counts.drafted),
          ratio(counts.drafted, counts.passes), ratio(counts.time.total_ns, counts.tokens),
          ratio(counts.time.propose_ns, counts.time.proposals)};
}

double speedup(const Counts& counts, std::size_t curve) {
  return counts.tokens == 0 ? 1.0 : ratio(static_cast<double>(counts.tokens), counts.cost[curve]);
}

std::string decimal(double value, int digits) {
  char buffer[400];  // the longest double has 309 digits before the point
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, digits);
  return {buffer, end};
}

void write_json(std::ostream& out, const Report& report) {
  out << "{\"version\": " << quote_json(version_string) << ", \"results\": [";
  std::string_view separator = "\n";
  each_result(report, [&](const std::vector<Field>& result) {
    out << separator << "{";
    for (const Field& field : result)
      out << (&field == &result.front() ? "\"" : ", \"") << field.name
          << "\": " << (field.text ? quote_json(field.value) : field.value);
    out << "}";
    separator = ",\n";
  });
  out << "\n]}\n";
}

void write_csv(std::ostream& out, const Report& report) {
  bool named = false;
  each_result(report, [&](const std::vector<Field>& result) {
    if (!std::exchange(named, true))
      for (const Field& field : result) out << (&field == &result.front() ? "" : ",") << field.name;
    out << "\r\n";
    for (const Field& field : result) out << (&field == &result.front() ? "" : ",") << quote_csv(field.value);
  });
  out << "\r\n";
}

}  // namespace reprise::replay
