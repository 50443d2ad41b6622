// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "past.hpp"
#include "reprise/draft/any_strategy.hpp"
#include "spec.hpp"

namespace reprise::replay {

/// A setting of a strategy: a whole number between two bounds, or one of a few words.
struct KeyInfo {
  std::string_view name;
  std::string_view default_value;
  std::string_view meaning;
  std::int64_t least = 0;  ///< bounds are for numbers
  std::int64_t most = 0;
  std::vector<std::string_view> words = {};  ///< none: a number
  std::string_view no_number = {};           ///< a word that stands for "no number"; empty: there is none
};

/// The values of all keys of one strategy, checked, defaults filled in.
class Settings {
 public:
  void set(std::string_view key, std::string value) { values_[key] = std::move(value); }
  [[nodiscard]] std::string_view word(std::string_view key) const { return values_.at(key); }
  [[nodiscard]] std::int64_t number(std::string_view key) const;

 private:
  std::map<std::string_view, std::string> values_;
};

/// What a strategy can keep from session to session.
enum class Remembers : std::uint8_t {
  nothing,
  sequences,  ///< a HistoryStore of them, and what was learned about the target: Past::memory and Past::calibration
  ngrams,     ///< a TokenTable: Past::table
};

/// A strategy that can be asked for by name.
struct StrategyInfo {
  std::string_view name;
  std::string_view meaning;
  std::vector<KeyInfo> keys;
  bool calibrated;  ///< its probabilities are learned, so that costs can be weighed against them
  /// With the past of earlier sessions, which outlives it, or nullptr. Throws InputError when the values do not go
  /// together.
  AnyStrategy (*make)(const Settings&, Past*);
  Remembers remembers = Remembers::nothing;
};

/// All there are.
std::span<const StrategyInfo> strategies();

/// What is run when no strategy is asked for: what the library recommends.
inline constexpr std::string_view default_strategy = "ngram";

/// One run: a strategy to copy for each session.
struct StrategyRun {
  std::string spec;  ///< as given, a range replaced by one of its values
  AnyStrategy strategy;
  bool calibrated = false;
  Remembers remembers = Remembers::nothing;
  /// The strategy for the next session. A table that the past has not yet is made at once, not when the session begins.
  std::function<AnyStrategy(Past&)> with_past = {};
};

/// The runs that a spec asks for, one unless it has ranges. Throws InputError that lists what exists.
std::vector<StrategyRun> make_runs(std::string_view spec);

}  // namespace reprise::replay
