// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::replay {

/// The rule that decides how much of a draft is sent.
enum class ControlKind : std::uint8_t {
  automatic,  ///< `cost` if the strategy's probabilities are learned, else `all`
  cost,       ///< reprise::CostControl: the drafts depend on the cost curve
  all,        ///< the whole draft, within the limits of the pass
  best,       ///< always the same number of best nodes
  hindsight,  ///< as far into the draft as the recording agrees; no real control can know that
};

/// A control as given on the command line: auto, cost, all, hindsight or best:K.
struct ControlSpec {
  ControlKind kind = ControlKind::automatic;
  std::size_t nodes = 0;  ///< the K of best:K

  [[nodiscard]] std::string text() const;
  friend bool operator==(const ControlSpec&, const ControlSpec&) = default;
};

/// Reads a spec; `best:a..b` stands for each number from a to b. Throws InputError.
std::vector<ControlSpec> parse_control(std::string_view text);

/// The control that `spec` stands for, with or without learned probabilities.
ControlSpec resolve(ControlSpec spec, bool calibrated);

}  // namespace reprise::replay
