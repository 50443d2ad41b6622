// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::replay {

/// Who decides how much of a draft is sent.
enum class ControlKind : std::uint8_t {
  automatic,  ///< cost where the strategy's probabilities are learned, else all
  cost,       ///< reprise::CostControl: what is drafted depends on the cost curve
  all,        ///< all that is drafted, as long as there is room
  best,       ///< so many of the best nodes, always
  hindsight,  ///< as far into the draft as the recording agrees: more than any control can know
};

/// A control as it is asked for: auto, cost, all, hindsight or best:K.
struct ControlSpec {
  ControlKind kind = ControlKind::automatic;
  std::size_t nodes = 0;  ///< the K of best:K

  [[nodiscard]] std::string text() const;
  friend bool operator==(const ControlSpec&, const ControlSpec&) = default;
};

/// Reads a spec; `best:a..b` stands for every number from a to b. Throws InputError.
std::vector<ControlSpec> parse_control(std::string_view text);

/// What `spec` means for a strategy whose probabilities are, or are not, learned.
ControlSpec resolve(ControlSpec spec, bool calibrated);

}  // namespace reprise::replay
