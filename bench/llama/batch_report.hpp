// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>

#include "batch_compare.hpp"
#include "engine.hpp"
#include "inputs.hpp"

namespace reprise::llama {

/// The inputs of a report on batched runs.
struct BatchReport {
  const BatchComparison& comparison;
  std::span<const Request> requests;
  const Engine& engine;
  const BatchCompareSettings& settings;
  std::string strategy;
  std::string cost;  ///< as given on the command line
};

/// Writes text for people: a table for each number of sequences, with a line for each rule; then every difference.
void write_table(std::ostream& out, const BatchReport& report);
/// Writes JSON for programs: all values, session by session.
void write_json(std::ostream& out, const BatchReport& report);

}  // namespace reprise::llama
