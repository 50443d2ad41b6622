// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/result.hpp"
#include "reprise/history/snapshot.hpp"

/// \file Saves learned pass costs as a section of a snapshot, and loads them. docs/formats.md documents every byte.
///
/// Costs belong to an engine on a machine, not to a tenant. They are loaded only by load_costs(): load_history() skips
/// them. Pass times can carry a little information about texts, so share saved
/// costs only among users who may observe each other's pass times.

namespace reprise::inline v0 {

/// The maximum length in bytes of the name of an engine in a snapshot.
inline constexpr std::size_t most_engine_name_bytes = 100;

/// Returns the length in bytes of the contents of a section of kind `costs`, for snapshot_bytes().
[[nodiscard]] inline std::size_t cost_bytes(const CostPrior& prior, std::string_view engine) noexcept {
  constexpr std::size_t counts = 2;  // the length of the name, and the number of costs
  return counts + engine.size() + prior.size() * (sizeof(std::uint8_t) + sizeof(Cost));
}

/// Writes costs as a section of kind `costs`, whose contents are cost_bytes() long. `prior`: usually
/// LearnedCurve::prior(). `engine`: any name of the engine, the model and the machine, for example "llama.cpp Q4_0,
/// 8 threads, host 7". load_costs() returns the costs only if it is given the same name.
///
/// Error: invalid_argument if the name is longer than
/// most_engine_name_bytes (`value`: its length, `limit`: the longest); nothing is written then. Cost: one put() for
/// each number and each byte of the name.
[[nodiscard]] inline Result<void> save_costs(const CostPrior& prior, std::string_view engine,
                                             SnapshotWriter& writer) noexcept {
  if (engine.size() > most_engine_name_bytes)
    return Error{ErrorCode::invalid_argument, "the name of the engine is too long for a snapshot: shorten it",
                 engine.size(), most_engine_name_bytes};
  writer.begin_section(SectionKind::costs);
  writer.put(static_cast<std::uint8_t>(engine.size()));
  for (const char byte : engine) writer.put(static_cast<std::uint8_t>(byte));
  writer.put(static_cast<std::uint8_t>(prior.size()));
  for (std::size_t rows = CostPrior::least_rows; rows <= CostPrior::most_rows; ++rows) {
    if (!prior.assumes(rows)) continue;
    writer.put(static_cast<std::uint8_t>(rows));
    writer.put(prior.cost(rows));
  }
  return {};
}

namespace detail {

/// The contents of a section of kind `costs`.
struct StoredCosts {
  std::string_view engine;
  CostPrior prior;
};

/// Reads the contents of a section of kind `costs`. The returned name is a view of the section. Error: snapshot_forged
/// if they break a rule of the format. `value`: the offset in the section of the name, of the number of costs or of the
/// cost that is wrong; `limit`: the section's kind.
[[nodiscard]] inline Result<StoredCosts> read_costs(SnapshotReader::Cursor section) noexcept {
  const auto forged = [](std::size_t at) { return forged_section(at, SectionKind::costs); };
  StoredCosts stored;
  const auto length = section.take<std::uint8_t>();
  if (!length || *length > most_engine_name_bytes) return forged(0);
  const auto engine = section.take_bytes(*length);
  if (!engine) return forged(section.offset());
  stored.engine = {reinterpret_cast<const char*>(engine->data()), engine->size()};
  const std::size_t counted = section.offset();
  const auto count = section.take<std::uint8_t>();
  if (!count || section.left() != *count * (sizeof(std::uint8_t) + sizeof(Cost))) return forged(counted);
  std::size_t last = CostPrior::least_rows - 1;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::size_t at = section.offset();
    const std::size_t rows = *section.take<std::uint8_t>();
    const Cost cost = *section.take<Cost>();
    if (rows <= last || rows > CostPrior::most_rows) return forged(at);
    if (cost < CostPrior::least_cost || cost > CostPrior::most_cost) return forged(at);
    stored.prior.assume(rows, cost);
    last = rows;
  }
  return stored;
}

}  // namespace detail

/// Returns the costs in a snapshot, for CostOptions::prior. `engine`: the name that they must have. Errors:
///
///  * no_such_section: the snapshot has no section of kind `costs`.
///  * snapshot_forged: the contents of this section break a rule of the format.
///  * other_engine: the costs were saved with another name.
///
/// A forged section with valid contents can only cost speed: costs decide how much is drafted, not which tokens are
/// committed. Measured times correct wrong costs. Cost: a pass over the section; no allocation.
[[nodiscard]] inline Result<CostPrior> load_costs(const SnapshotReader& reader, std::string_view engine) noexcept {
  const auto section = reader.section(SectionKind::costs);
  if (!section)
    return Error{ErrorCode::no_such_section,
                 "the snapshot has no pass costs: give one to which save_costs() has written, or begin without costs"};
  const auto stored = detail::read_costs(*section);
  if (!stored) return stored.error();
  if (stored->engine != engine)
    return Error{ErrorCode::other_engine,
                 "the pass costs of the snapshot belong to another engine: give the name that they were saved with, or "
                 "begin without costs"};
  return stored->prior;
}

}  // namespace reprise
