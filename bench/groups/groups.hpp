// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/cost_curve.hpp"
#include "replay/trace.hpp"

namespace reprise::groups {

/// Recorded answers to one prompt.
using Group = std::vector<const replay::TraceSession*>;

/// Splits sessions into groups: consecutive sessions with the same first prompt, at most `answers` each. Sessions with
/// several turns or without a token to draft are left out.
std::vector<Group> groups_of(std::span<const replay::Trace> traces, std::size_t answers);

/// The texts that drafts are copied from.
enum class Sharing : std::uint8_t {
  plain,    ///< nothing is drafted
  none,     ///< the answer's own context
  ended,    ///< and answers that have ended
  running,  ///< and answers to the same prompt that run in the same batch
};

/// Which answers run together.
enum class Order : std::uint8_t {
  single,  ///< one after the other
  batch,   ///< those of a group, until all have ended
  stream,  ///< as many as a group has; an answer that has ended makes room for the next one
};

struct Setup {
  std::size_t answers = 8;  ///< of a group, and places in a batch
  Order order = Order::batch;
  Sharing sharing = Sharing::running;
  const replay::CostCurve* curve = nullptr;  ///< time of a pass, by CostCurve::batch_cost(); told to the planner
  /// Only answers with at least this share of the most remaining tokens draft. The simulation knows how many remain,
  /// which an engine can only estimate. 0: all draft.
  double least_remaining = 0;
};

struct Counts {
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;
  std::uint64_t drafted = 0;
  double cost = 0;  ///< until all answers have ended; unit: the time of a pass of one row
};

/// Decodes all groups in order, with one BatchFollower. The prompt and the first token of each answer are free. Groups
/// of the same prompt get an engine each, so that none draws on another one.
Counts run(std::span<const Group> groups, const Setup& setup);

}  // namespace reprise::groups
