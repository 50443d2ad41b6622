// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reprise::replay {

/// Most tokens drafted in one pass.
inline constexpr std::size_t most_drafted_nodes = 32;

/// How control knows what passes cost.
enum class CostKnown : std::uint8_t {
  told,     ///< it is given the curve
  learned,  ///< it is given the measured time of each pass, and nothing else; anew in each session
  carried,  ///< likewise, and what it has learned is kept from session to session, as one engine would
};

/// What sessions leave behind for the next ones.
enum class Kept : std::uint8_t {
  session,  ///< nothing, what was learned included
  past,     ///< their tokens and what was learned, where the strategy has a memory for them
};

/// What is the same for all runs of a replay.
struct ReplaySettings {
  std::size_t max_nodes = most_drafted_nodes;  ///< drafted tokens in a pass, at most
  bool trees = true;                           ///< false: the best chain of each draft
  CostKnown cost_known = CostKnown::told;
  double noise = 0.1;      ///< of pass times when the curve is learned: standard deviation over mean
  std::uint64_t seed = 1;  ///< of that noise
  Kept kept = Kept::session;
  std::size_t memory_bytes = std::size_t{64} << 20;  ///< ceiling of a HistoryStore
};

constexpr std::string_view name(CostKnown known) {
  return known == CostKnown::told ? "told" : known == CostKnown::learned ? "learned" : "carried";
}
constexpr std::string_view name(Kept kept) { return kept == Kept::session ? "session" : "past"; }
constexpr std::string_view shape_name(bool trees) { return trees ? "tree" : "chain"; }

}  // namespace reprise::replay
