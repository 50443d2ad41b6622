// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "page_figures.hpp"
#include "run.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// How much faster the same sessions are after a change: the ratio of two speedups.
struct Change {
  double ratio = 1;                       ///< 1: as fast as before
  std::optional<Interval> interval = {};  ///< nullopt: too few sessions
  /// The change is faster, beyond noise, and by enough to be worth a setting and the memory that it adds.
  [[nodiscard]] bool pays(std::uint64_t added_bytes = 0) const {
    return interval && interval->low > 1 && ratio >= 1 + least_gain(added_bytes);
  }

  /// The gain that is worth a setting that adds this much memory: 0.005, and 0.0005 for each MiB. A MiB is 0.05% of
  /// 2 GiB, which a small quantised model takes with its cache: such an engine gets at least as large a share of speed
  /// as it gives of memory.
  static constexpr double least_gain(std::uint64_t added_bytes = 0) {
    return 0.005 + 0.0005 * static_cast<double>(added_bytes) / (1 << 20);
  }
};

/// Compares two replays of the same sessions. The interval holds 99%: about ten changes are judged for one advice, so
/// with 95% every second advice would name a change that is noise. It comes from a paired bootstrap over sessions: both
/// costs of a session are drawn together. Deterministic. There is no interval for fewer than fewest_sessions sessions
/// with tokens.
Change change(std::span<const SessionCost> before, std::span<const SessionCost> after);
inline constexpr std::size_t fewest_sessions = 8;

/// The drafters that an advice compares.
enum class Drafter : std::uint8_t {
  ngram,         ///< NgramDrafter<RollingHashIndex>, as in Speculator
  suffix_array,  ///< NgramDrafter<SuffixArrayIndex>
  copy,          ///< PromptLookupDrafter, with drafts sized by the same control; reads no history
};

/// The settings that an advice is about. The initial values are the defaults of the library.
struct AdvisedSettings {
  bool trees = false;             ///< the engine verifies trees (Capabilities::max_leaves)
  std::size_t history_bytes = 0;  ///< of a HistoryStore with next-token counts; 0: none
  Drafter drafter = Drafter::ngram;
  std::size_t max_nodes = usual_draft_nodes;
  bool graph_widths = false;  ///< passes have only graph_widths() rows

  bool operator==(const AdvisedSettings&) const = default;
};

/// The row counts of an engine that captures few graphs, for the question about widths.
AllowedWidths graph_widths();
/// The same as text: "1, 2, 4".
std::string graph_widths_text();

/// One setting that was tried.
struct Tried {
  std::string question;  ///< as in "trees"
  std::string setting;   ///< as in "16 MiB of history"
  AdvisedSettings settings;
  double speedup = 0;
  Change change;                   ///< against the choice before this question
  std::uint64_t memory_bytes = 0;  ///< of the state kept between sessions, at the end
  std::uint64_t added_bytes = 0;   ///< of it, beyond that of the choice before this question
  bool chosen = false;
};

/// An advice, with all that was tried for it, in order.
struct Advice {
  AdvisedSettings settings;
  std::size_t sessions = 0;  ///< with tokens
  std::uint64_t tokens = 0;
  std::uint64_t memory_bytes = 0;  ///< of the state kept between sessions with these settings
  double default_speedup = 0;      ///< of the defaults, against plain decoding
  Change against_plain;            ///< the defaults against plain decoding
  double toll = 1;                 ///< of the curve
  double speedup = 0;              ///< of `settings`
  Change against_default;          ///< `settings` against the defaults
  std::vector<Tried> tried;
  std::string fault;  ///< the first difference from a recording; empty: none

  [[nodiscard]] bool leave_as_is() const { return settings == AdvisedSettings(); }
};

/// Replays the traces of `assignment` with one setting changed at a time, and keeps each change that pays for the
/// memory that it adds and is faster than plain decoding. `assignment` has one curve; its runs, controls, snapshots and
/// observer are not used. `stores`: datastores that every drafter reads.
///
/// Questions, in this order: trees or chains, a history and its bytes, the drafter, the most drafted nodes, few widths
/// of passes. A larger history must pay against a smaller one, for the memory that it adds to it. Widths are never
/// advised: their line says what they would cost an engine that captures graphs.
///
/// Cost: twelve replays. Throws InputError as replay_all() does.
Advice advise(const Assignment& assignment, std::span<const DatastoreRef> stores, tools::Progress& progress);

/// The inputs of the report of an advice.
struct AdviceReport {
  const Advice& advice;
  const CostCurve& curve;
  ReplaySettings settings = {};  ///< of the assignment
  TracePart part = TracePart::all;
  bool top_k = false;  ///< the drafters were shown top-k rows
};
void write_table(std::ostream& out, const AdviceReport& report);
/// Writes the advised settings as C++ to paste.
void write_code(std::ostream& out, const AdviceReport& report);
/// Writes the advice in one or two sentences, with a newline at the end of each.
void write_summary(std::ostream& out, const Advice& advice);

/// The cells of a line of the table.
struct TriedText {
  std::string change;    ///< "+5.1%"
  std::string interval;  ///< "+4.2% to +6.0%"; empty: too few sessions
  std::string memory;    ///< "9.0 MiB"; empty: none
  std::string verdict;   ///< "use it"
};
TriedText text_of(const Tried& tried, const Advice& advice);

}  // namespace reprise::replay
