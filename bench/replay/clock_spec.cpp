// SPDX-License-Identifier: Apache-2.0
#include "clock_spec.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "common/input_error.hpp"
#include "common/number.hpp"
#include "common/text.hpp"

namespace reprise::replay {
namespace {

constexpr std::uint64_t most_passes = std::uint64_t{1} << 53;
/// In the order of Poison::Mode.
constexpr std::array<std::string_view, 7> poison_names = {"random",     "drafts-dear",  "plain-cheap", "drafts-free",
                                                          "first-slow", "slow-machine", "missing"};

/// A number from 1 to `most`, whose logarithm is about uniform. It is the same on every machine: std::pow might not be.
double log_uniform(double most, testing::Random& random) {
  double factor = 1;
  for (int i = 0; i < 16; ++i) {
    most = std::sqrt(most);
    if (random.chance(50)) factor *= most;
  }
  return factor;
}

}  // namespace

std::string Outliers::text() const { return std::to_string(percent) + ":" + tools::shortest(factor); }

std::string Slowdown::text() const {
  return tools::shortest(factor) + "@" + (passes ? std::to_string(*passes) : std::string("middle"));
}

std::string Poison::text() const {
  return std::string(poison_names[static_cast<std::size_t>(mode)]) + ":" + std::to_string(passes);
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
  const std::size_t at = text.find('@');
  const auto factor = tools::parse_real(text.substr(0, at));
  const std::string_view place = at == text.npos ? "" : text.substr(at + 1);
  const auto passes = tools::parse_unsigned(place);
  if (!factor || *factor < 0.01 || *factor > 100 || (place != "middle" && (!passes || *passes > most_passes)))
    throw tools::InputError(option + " " + std::string(text) +
                            ": expected FACTOR@PASS or FACTOR@middle, with a factor from 0.01 to 100, as in 2@1000");
  return {*factor, passes};
}

Poison parse_poison(std::string_view text, const std::string& option) {
  const std::size_t colon = text.find(':');
  const auto* const mode = std::find(poison_names.begin(), poison_names.end(), text.substr(0, colon));
  const auto passes = tools::parse_unsigned(colon == text.npos ? "" : text.substr(colon + 1));
  if (mode == poison_names.end() || !passes || *passes == 0 || *passes > most_passes) {
    std::string modes;
    for (const std::string_view name : poison_names)
      modes += (modes.empty() ? "" : name == poison_names.back() ? " or " : ", ") + std::string(name);
    throw tools::InputError(option + " " + std::string(text) + ": expected MODE:PASSES, where MODE is " + modes +
                            ", and PASSES is a number of passes, as in random:200");
  }
  return {static_cast<Poison::Mode>(mode - poison_names.begin()), *passes};
}

std::optional<double> StreamPosition::poisoned(const std::optional<Poison>& poison, std::size_t rows, bool drafted,
                                               testing::Random& random) {
  using Mode = Poison::Mode;
  if (!poison) return 1;
  const bool first_of_rows = timed.insert(rows).second;
  if (poison->mode == Mode::slow_machine ? tokens < all_tokens / 2 || late++ >= poison->passes
                                         : passes >= poison->passes)
    return 1;
  switch (poison->mode) {
    case Mode::random:
      return log_uniform(10'000, random) / 100;
    case Mode::drafts_dear:
      return drafted ? 30 : 1;
    case Mode::plain_cheap:
      return drafted ? 1 : 0.02;
    case Mode::drafts_free:
      return drafted ? 0.05 : 5;
    case Mode::first_slow:
      return first_of_rows ? 30 * log_uniform(10, random) : 1;
    case Mode::slow_machine:
      return 3;
    case Mode::missing:
      break;
  }
  return std::nullopt;
}

}  // namespace reprise::replay
