// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clock_spec.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"

namespace reprise::replay {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// The way in which control knows the cost of passes.
enum class CostKnown : std::uint8_t {
  told,     ///< it receives the curve
  learned,  ///< it receives the simulated time of each pass only; starts fresh in each session
  carried,  ///< the same, but it keeps its knowledge from session to session, as in one engine
  assumed,  ///< it receives neither the curve nor times: it assumes the costs of the prior
};

/// The state that sessions leave to later ones.
enum class Kept : std::uint8_t {
  session,      ///< nothing, not even learned state
  calibration,  ///< the calibration, if the strategy has one, and no tokens
  past,         ///< their tokens and the learned state, if the strategy has a memory for them
};

/// The settings shared by all runs of a replay. Their initial values let a drafter use all that a trace has; the tool
/// starts from two_functions().
struct ReplaySettings {
  std::size_t max_nodes = usual_draft_nodes;  ///< most drafted tokens of a pass; at most most_draft_nodes
  bool trees = true;                          ///< false: the best chain of each draft
  AllowedWidths widths = {};                  ///< row counts of passes with a draft; empty: any
  CostKnown cost_known = CostKnown::told;
  std::string cost_prior = {};  ///< the name of `prior`, as given; empty: nothing is assumed
  CostPrior prior = {};         ///< the costs that control assumes at first; unused if the curve is told
  double noise = 0.1;           ///< of pass times if the curve is learned: standard deviation over mean
  std::uint64_t seed = 1;       ///< of the noise
  Outliers outliers = {};
  std::optional<Slowdown> slowdown = {};
  std::optional<Poison> poison = {};
  Kept kept = Kept::session;
  std::size_t memory_bytes = std::size_t{64} << 20;     ///< upper limit of a HistoryStore
  std::size_t next_token_bytes = std::size_t{4} << 20;  ///< likewise of each part of NextTokens; 0: no table
  std::string corpora = {};                             ///< the paths of the corpora that drafters read; empty: none
  std::vector<Token> eos = {};  ///< tokens that end a generation: nothing is drafted after them; empty: none is known
  bool top_k = true;            ///< show the top-k rows of the trace to strategies that want them
};

/// The settings of an engine with only verify() and commit(), which are the defaults of the library and of the tool:
/// drafts are chains, and the target shows no rankings.
inline ReplaySettings two_functions() {
  ReplaySettings settings;
  settings.trees = false;
  settings.top_k = false;
  return settings;
}

constexpr std::string_view name(CostKnown known) {
  if (known == CostKnown::assumed) return "assumed";
  return known == CostKnown::told ? "told" : known == CostKnown::learned ? "learned" : "carried";
}
/// Returns true if control receives the times of passes.
constexpr bool timed(CostKnown known) { return known == CostKnown::learned || known == CostKnown::carried; }
constexpr std::string_view name(Kept kept) {
  return kept == Kept::session ? "session" : kept == Kept::calibration ? "calibration" : "past";
}
constexpr std::string_view shape_name(bool trees) { return trees ? "tree" : "chain"; }

}  // namespace reprise::replay
