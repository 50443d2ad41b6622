// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <span>

#include "common/json_writer.hpp"
#include "replay.hpp"
#include "replay_settings.hpp"
#include "reprise/core/token.hpp"

namespace reprise::replay {

/// Writes the members "version" and "results" of an open object. Calls write(row) for the members of each result.
template <class Row, class Write>
void write_results(tools::JsonWriter& json, std::span<const Row> rows, Write&& write) {
  json.member("version", version_string).key("results").begin_array();
  for (const Row& row : rows) {
    json.new_line().begin_object();
    write(row);
    json.end();
  }
  json.new_line().end();
}

/// Writes {"version", "results": [...]}, one result per row of a Report or a SeedReport.
template <class AnyReport>
void write_json(std::ostream& out, const AnyReport& report) {
  tools::JsonWriter json(out);
  json.begin_object();
  write_results(json, report);
  json.end();
  out << "\n";
}

/// Writes the members "top_k" and "top_k_rows", if some trace has top-k rows (`there`).
void write_top_k(tools::JsonWriter& json, bool there, const ReplaySettings& settings, const Counts& counts);

}  // namespace reprise::replay
