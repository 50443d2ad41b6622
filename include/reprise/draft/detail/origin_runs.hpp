// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "reprise/core/buffer.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise::inline v0::detail {

/// The origins of the tokens of a sequence, stored as runs, because a conversation has few runs. If there is no memory
/// for a new run, the last run is extended.
class OriginRuns {
 public:
  void clear() noexcept { runs_.clear(); }
  [[nodiscard]] bool reserve(std::size_t runs) noexcept { return runs_.reserve(runs); }
  /// Sets the origin of all tokens from position `begin` on. Precondition: `begin` is not before the last run.
  void append(std::size_t begin, Origin origin) noexcept {
    if (!runs_.empty() && runs_[runs_.size() - 1].origin == origin) return;
    if (runs_.reserve_extra(1)) runs_.push_reserved({static_cast<Position>(begin), origin});
  }
  /// Copies the origins of the positions [begin, end) of `other` to the positions from `at` on.
  void append(std::size_t at, const OriginRuns& other, std::size_t begin, std::size_t end) noexcept {
    if (begin >= end) return;
    append(at, other.of(begin));
    for (const Run& run : other.runs_)
      if (run.begin > begin && run.begin < end) append(at + (run.begin - begin), run.origin);
  }
  void truncate(std::size_t size) noexcept {
    while (!runs_.empty() && runs_[runs_.size() - 1].begin >= size) runs_.truncate(runs_.size() - 1);
  }
  [[nodiscard]] Origin of(std::size_t position) const noexcept {
    const auto after = std::upper_bound(runs_.begin(), runs_.end(), position,
                                        [](std::size_t at, const Run& run) { return at < run.begin; });
    return after == runs_.begin() ? Origin::prompt : (after - 1)->origin;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return runs_.memory_bytes(); }

 private:
  struct Run {
    Position begin = 0;
    Origin origin = Origin::prompt;
  };
  Buffer<Run> runs_;
};

}  // namespace reprise::detail
