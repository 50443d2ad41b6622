// SPDX-License-Identifier: Apache-2.0
#include "spec.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/input_error.hpp"
#include "common/number.hpp"

namespace reprise::replay {
namespace {

constexpr std::size_t most_runs = 1000;

[[noreturn]] void fail(std::string_view spec, const std::string& what) {
  throw tools::InputError("--strategy " + std::string(spec) + ": " + what);
}

/// The values that `value` stands for: itself, or the numbers of a range.
std::vector<std::string> values(std::string_view spec, const std::string& key, std::string_view value) {
  const std::size_t dots = value.find("..");
  if (dots == std::string_view::npos) return {std::string(value)};
  const auto first = tools::parse_integer(value.substr(0, dots));
  const auto last = tools::parse_integer(value.substr(dots + 2));
  if (!first || !last) fail(spec, key + "=" + std::string(value) + ": a range is two whole numbers, as in k=0..15");
  if (*first > *last) fail(spec, key + "=" + std::string(value) + ": the range runs backwards");
  // Unsigned, because the difference of two 64-bit numbers may not fit a signed one.
  if (static_cast<std::uint64_t>(*last) - static_cast<std::uint64_t>(*first) >= most_runs)
    fail(spec, key + "=" + std::string(value) + ": more than 1000 runs");
  std::vector<std::string> all;
  for (std::int64_t i = *first;; ++i) {
    all.push_back(std::to_string(i));
    if (i == *last) return all;
  }
}

}  // namespace

std::string Spec::text() const {
  std::string text = name;
  char separator = ':';
  for (const auto& [key, value] : settings) {
    text += separator + key + "=" + value;
    separator = ',';
  }
  return text;
}

std::vector<Spec> parse_spec(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::vector<Spec> specs{{std::string(text.substr(0, colon)), {}}};
  if (specs.front().name.empty()) fail(text, "a name is missing; the grammar is name[:key=value,...]");
  if (colon == std::string_view::npos) return specs;

  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view setting = rest.substr(0, comma);
    const std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == setting.size())
      fail(text, std::string("'").append(setting) + "' is not key=value; the grammar is name[:key=value,...]");
    const std::string key(setting.substr(0, equals));
    for (const auto& earlier : specs.front().settings)
      if (earlier.first == key) fail(text, "the key " + key + " is given twice");

    std::vector<Spec> longer;
    const auto all = values(text, key, setting.substr(equals + 1));
    if (specs.size() * all.size() > most_runs) fail(text, "more than 1000 runs");
    for (const Spec& spec : specs) {
      for (const std::string& value : all) {
        longer.push_back(spec);
        longer.back().settings.emplace_back(key, value);
      }
    }
    specs = std::move(longer);
    if (comma == std::string_view::npos) return specs;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace reprise::replay
