// SPDX-License-Identifier: Apache-2.0
#include "clock_spec.hpp"

#include "common/input_error.hpp"
#include "common/number.hpp"
#include "common/text.hpp"

namespace reprise::replay {

std::string Outliers::text() const { return std::to_string(percent) + ":" + tools::shortest(factor); }

std::string Slowdown::text() const {
  return tools::shortest(factor) + "@" + (passes ? std::to_string(*passes) : std::string("middle"));
}

Outliers parse_outliers(std::string_view text, const std::string& option) {
  const std::size_t colon = text.find(':');
  const auto percent = tools::parse_unsigned(text.substr(0, colon));
  const auto factor = tools::parse_real(colon == text.npos ? "" : text.substr(colon + 1));
  if (!percent || *percent > 50 || !factor || *factor < 1 || *factor > 1000)
    throw tools::InputError(option + " " + std::string(text) +
                            ": expected PERCENT:FACTOR, a whole number from 0 to 50 and a number from 1 to 1000, as " +
                            "in 1:10");
  return {static_cast<std::size_t>(*percent), *factor};
}

Slowdown parse_slowdown(std::string_view text, const std::string& option) {
  constexpr std::uint64_t most_passes = std::uint64_t{1} << 53;
  const std::size_t at = text.find('@');
  const auto factor = tools::parse_real(text.substr(0, at));
  const std::string_view place = at == text.npos ? "" : text.substr(at + 1);
  const auto passes = tools::parse_unsigned(place);
  if (!factor || *factor < 0.01 || *factor > 100 || (place != "middle" && (!passes || *passes > most_passes)))
    throw tools::InputError(option + " " + std::string(text) +
                            ": expected FACTOR@PASS or FACTOR@middle, with a factor from 0.01 to 100, as in 2@1000");
  return {*factor, passes};
}

}  // namespace reprise::replay
