// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <span>
#include <string>

#include "compare.hpp"
#include "engine.hpp"

namespace reprise::llama {

/// What a comparison is reported with.
struct CompareReport {
  std::span<const StrategyPairs> strategies;
  const Engine& engine;
  const Settings& settings;
  std::string cost;        ///< as control was told
  std::string cost_model;  ///< that predictions were made under; empty: there are none
  std::size_t repeat = 1;
  double epsilon = 0;

  /// The worst of all sessions.
  [[nodiscard]] Verdict verdict() const;
};

/// For people: a table for each strategy, by category and in all; then every difference, and the verdict.
void write_table(std::ostream& out, const CompareReport& report);
/// For programs: all of it, each session by itself.
void write_json(std::ostream& out, const CompareReport& report);

}  // namespace reprise::llama
