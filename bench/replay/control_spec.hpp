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
  automatic,  ///< the control that the strategy's author would choose: StrategyInfo::control
  cost,       ///< reprise::CostControl: the drafts depend on the cost curve
  marginal,   ///< SendMarginal: likewise, but by a simple rule, and always with the true curve
  all,        ///< the whole draft, within the limits of the pass
  best,       ///< always the same number of best nodes
  hindsight,  ///< as far into the draft as the recording agrees; no real control can know that
};

/// A control as given on the command line: auto, cost, marginal, all, hindsight or best:K.
struct ControlSpec {
  ControlKind kind = ControlKind::automatic;
  std::size_t nodes = 0;  ///< the K of best:K

  [[nodiscard]] std::string text() const;
  /// True if the drafts depend on the cost curve.
  [[nodiscard]] bool weighs() const { return kind == ControlKind::cost || kind == ControlKind::marginal; }
  friend bool operator==(const ControlSpec&, const ControlSpec&) = default;
};

/// Reads a spec; `best:a..b` stands for each number from a to b. Throws InputError.
std::vector<ControlSpec> parse_control(std::string_view text);

/// The control that `spec` stands for, if `automatic` stands for `usual`.
inline ControlSpec resolve(ControlSpec spec, ControlKind usual) {
  if (spec.kind == ControlKind::automatic) spec.kind = usual;
  return spec;
}

}  // namespace reprise::replay
