// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/batch/packing.hpp"

namespace reprise {

/// A hash of everything that was packed for a pass, and of all passes before if their digest is handed in.
///
/// Tensor-parallel ranks that draft for themselves have to run the same batch, or their collectives wait for each other
/// for ever. Drafts and plans are pure functions of tokens, settings, seeds and the times that were handed in, so they
/// agree, unless the ranks were told different things. To find that out at the step where it happens:
///
///   digest = batch_digest(packer.batch(), digest);
///   // let the ranks exchange it (8 bytes: the least and the greatest of all must be equal); if they differ, stop
///
/// Where that is too dear in every step, compare every hundredth: a difference stays. The value is the same on every
/// machine and compiler; it is no cryptographic hash. Cost: about 2 ns a row.
[[nodiscard]] inline std::uint64_t batch_digest(const PackedBatch& batch, std::uint64_t before = 0) noexcept {
  std::uint64_t hash = before ^ 0x9E3779B97F4A7C15;
  const auto add = [&](std::uint64_t value) {
    // The finalizer of MurmurHash3 (Appleby), one round for each value.
    hash = (hash ^ value) * 0xFF51AFD7ED558CCD;
    hash ^= hash >> 32;
  };
  const auto pair = [](std::int32_t high, std::int32_t low) {
    return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
  };
  add(batch.rows());
  add(batch.offsets.size());
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    add(pair(batch.tokens[row], batch.positions[row]));
    add(pair(batch.sequences[row], batch.parents[row] * 2 + batch.wants_logits[row]));
  }
  for (const std::uint32_t offset : batch.offsets) add(offset);
  add(0xC4CEB9FE1A85EC53);
  return hash;
}

}  // namespace reprise
