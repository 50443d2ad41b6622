// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "compare_report.hpp"
#include "pass_notes.hpp"
#include "replay/cost_curve.hpp"
#include "reprise/control/learned_curve.hpp"

namespace reprise::llama {

/// The inputs of a page about a comparison. Its subject is the first strategy; the others stand beside it.
struct ComparePage {
  const CompareReport& report;
  const CompareNotes& notes;
  std::span<const std::string> asked;       ///< ids of sessions to show
  const replay::CostCurve* told = nullptr;  ///< the curve that control was told; null: it learns one, or uses none
  const LearnedCurve* learned = nullptr;    ///< the curve that control has learned; null: none

  [[nodiscard]] const StrategyPairs& main() const { return report.strategies.front(); }
};

/// The sections of the page as HTML. Each answers the question of its heading.
std::string gain_section(const ComparePage& page);
std::string where_section(const ComparePage& page);
std::string why_section(const ComparePage& page);
std::string trust_section(const ComparePage& page);

/// Returns the times of the sessions that the sum of all counts, that is, without repeated ones.
std::vector<TimedSession> timed_sessions(const StrategyPairs& strategy);

/// Writes the page. Categories, sessions and differences beyond a fixed number are folded.
void write_page(std::ostream& out, const ComparePage& page);

}  // namespace reprise::llama
