// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "common/json_writer.hpp"
#include "compare.hpp"
#include "engine.hpp"
#include "replay/replay_settings.hpp"

namespace reprise::llama {

/// The inputs of a comparison report.
struct CompareReport {
  std::span<const StrategyPairs> strategies;
  const Engine& engine;
  const Settings& settings;
  std::string cost;        ///< cost curve of the control, as given on the command line
  std::string cost_model;  ///< the curve of the predictions; empty: there are none
  std::size_t repeat = 1;
  double epsilon = 0;
  replay::Kept kept = replay::Kept::session;
  std::size_t filled_with = 0;  ///< sessions that filled the memories before the measured ones

  /// The worst verdict of all sessions.
  [[nodiscard]] Verdict verdict() const;
  /// A description of the check of the texts.
  [[nodiscard]] std::string checked() const;
};

/// Writes one line about a difference of the session `id`.
void write_difference(std::ostream& out, const std::string& id, const Difference& difference, const Engine& engine);
void write(tools::JsonWriter& json, const Difference& difference);
/// Writes the sampling settings as members of an object.
void write(tools::JsonWriter& json, const Sampling& sampling);

/// Writes text for people: a table per strategy, by category and in total, then every difference and the verdict.
void write_table(std::ostream& out, const CompareReport& report);
/// Writes JSON for programs: all values, session by session.
void write_json(std::ostream& out, const CompareReport& report);

}  // namespace reprise::llama
