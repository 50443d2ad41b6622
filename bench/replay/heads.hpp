// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_writer.hpp"
#include "common/progress.hpp"
#include "run.hpp"

namespace reprise::replay {

/// A way to decode with a draft head, a lookup, or both.
enum class HeadWay : std::uint8_t {
  lookup,     ///< the default drafter; the head never runs
  head,       ///< the head alone, as many tokens as pay in each pass
  choice,     ///< both, as HeadedSpeculator does: the head where it pays, then one chain
  tree,       ///< the same, then one tree of both drafts
  hindsight,  ///< the draft of the lookup or that of the head, whichever turns out to be better
};
inline constexpr std::array<std::string_view, 5> head_way_names = {"lookup", "head", "choice", "tree", "hindsight"};

/// The sums of one way.
struct HeadSums {
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;
  std::uint64_t head_passes = 0;  ///< passes in which the head has drafted
  double cost = 0;                ///< of the passes and of the head, in plain passes

  [[nodiscard]] double speedup() const { return cost == 0 ? 1 : static_cast<double>(tokens) / cost; }
};

/// All ways on one trace, with one cost of passes and one of the head.
struct HeadRow {
  std::string trace;
  std::size_t sessions = 0;
  std::size_t curve = 0;  ///< index of the curve
  double head_cost = 0;   ///< of a draft of the head, whatever its length, in plain passes
  bool trees = false;     ///< false: there is no HeadWay::tree, and all drafts are chains
  std::array<HeadSums, head_way_names.size()> ways = {};

  [[nodiscard]] bool has(HeadWay way) const { return trees || way != HeadWay::tree; }
  [[nodiscard]] const HeadSums& operator[](HeadWay way) const { return ways[static_cast<std::size_t>(way)]; }
};

/// Replays the sessions whose turns say where a draft head was right (Turn::head), beside the first strategy, which has
/// to be `ngram` over its default index. Rows: by trace, then by curve, then by cost of the head.
///
/// What is learned of the head and of costs continues from session to session, as in one engine; Kept says whether the
/// lookup keeps anything. No top-k rows are shown. The head drafts at most as many tokens as the longest accepted draft
/// of its trace. A head alone and the choice in hindsight have no loss budget.
///
/// Throws InputError: another strategy, no session with a head, a curve that control does not accept.
std::vector<HeadRow> replay_heads(const Assignment& assignment, std::span<const double> head_costs,
                                  tools::Progress& progress);

/// Writes a table for people.
void write_head_table(std::ostream& out, std::span<const HeadRow> rows, std::span<const CostCurve> curves);
/// Writes the member "heads" of an open object: one object for each row and way.
void write_heads(tools::JsonWriter& json, std::span<const HeadRow> rows, std::span<const CostCurve> curves);

}  // namespace reprise::replay
