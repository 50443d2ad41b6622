// SPDX-License-Identifier: Apache-2.0
#include "control_spec.hpp"

#include <cstdint>
#include <optional>

#include "common/input_error.hpp"
#include "common/number.hpp"
#include "replay_settings.hpp"

namespace reprise::replay {

std::string ControlSpec::text() const {
  switch (kind) {
    case ControlKind::automatic:
      return "auto";
    case ControlKind::cost:
      return "cost";
    case ControlKind::marginal:
      return "marginal";
    case ControlKind::all:
      return "all";
    case ControlKind::hindsight:
      return "hindsight";
    case ControlKind::best:
      break;
  }
  return "best:" + std::to_string(nodes);
}

std::vector<ControlSpec> parse_control(std::string_view text) {
  for (const ControlKind kind :
       {ControlKind::automatic, ControlKind::cost, ControlKind::marginal, ControlKind::all, ControlKind::hindsight})
    if (const ControlSpec spec{kind, 0}; spec.text() == text) return {spec};
  const std::string given = "--control " + std::string(text) + ": ";
  constexpr std::string_view best = "best:";
  if (text.substr(0, best.size()) != best)
    throw tools::InputError(given + "the choices are auto, cost, marginal, all, hindsight and best:K");
  const std::string_view range = text.substr(best.size());
  const std::size_t dots = range.find("..");
  const auto number = [&](std::string_view digits) {
    const auto value = tools::parse_integer(digits);
    if (!value || *value < 0 || *value > static_cast<std::int64_t>(most_draft_nodes))
      throw tools::InputError(given + "K in best:K is a number of drafted tokens from 0 to " +
                              std::to_string(most_draft_nodes) + ", or a range of them, as in best:0..15");
    return static_cast<std::size_t>(*value);
  };
  const std::size_t first = number(range.substr(0, dots));
  const std::size_t last = dots == std::string_view::npos ? first : number(range.substr(dots + 2));
  if (first > last) throw tools::InputError(given + "the range runs backwards");
  std::vector<ControlSpec> specs;
  for (std::size_t nodes = first; nodes <= last; ++nodes) specs.push_back({ControlKind::best, nodes});
  return specs;
}

}  // namespace reprise::replay
