// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0::detail {

/// Multiplies one factor per node along each path of a draft, to discount the claims of a strategy node by node. Holds
/// the products of at most `Most` sendable nodes (DraftControl, K3). It does not allocate, and it leaves its memory
/// uninitialised.
template <std::size_t Most>
class PathProducts {
 public:
  /// Returns the product of the factors on the path to sendable[n], in UnitScale. `factor` is that node's own factor,
  /// in UnitScale. Call it for n = 0, 1, 2, ... of one draft. In `sendable`, parents must precede their children.
  std::uint32_t extend(DraftView draft, std::span<const NodeIndex> sendable, std::size_t n,
                       std::uint32_t factor) noexcept {
    const NodeIndex parent = draft[static_cast<std::size_t>(sendable[n])].parent;
    std::size_t at = n;  // nearly always the previous node
    while (at > 0 && sendable[at - 1] != parent) --at;
    const std::uint64_t before = at == 0 ? static_cast<std::uint64_t>(UnitScale::one) : products_[at - 1];
    return products_[n] = static_cast<std::uint32_t>(UnitScale::multiply(before, std::uint64_t{factor}));
  }

 private:
  std::array<std::uint32_t, Most> products_;  // NOLINT(*-member-init): filled by extend()
};

}  // namespace reprise::detail
