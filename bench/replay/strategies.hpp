// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/any_strategy.hpp"
#include "control_spec.hpp"
#include "past.hpp"
#include "replay_settings.hpp"
#include "reprise/core/datastore.hpp"
#include "spec.hpp"

namespace reprise::replay {

/// A setting of a strategy: a whole number within bounds, or one of a few words.
struct KeyInfo {
  std::string_view name;
  std::string_view default_value;
  std::string_view meaning;
  std::int64_t least = 0;  ///< for numbers
  std::int64_t most = 0;
  std::vector<std::string_view> words = {};  ///< empty: the value is a number
  std::string_view no_number = {};           ///< a word accepted instead of a number; empty: none
};

/// The checked values of all keys of one strategy, defaults included.
class Settings {
 public:
  void set(std::string_view key, std::string value) { values_[key] = std::move(value); }
  [[nodiscard]] std::string_view word(std::string_view key) const { return values_.at(key); }
  [[nodiscard]] std::int64_t number(std::string_view key) const;

  /// Datastores that the strategy reads in addition to its past. They must outlive the strategy.
  std::vector<DatastoreRef> stores;

 private:
  std::map<std::string_view, std::string> values_;
};

/// The state that a strategy can keep from session to session.
enum class Remembers : std::uint8_t {
  nothing,
  sequences,  ///< a HistoryStore and a calibration: Past::memory and Past::calibration
  ngrams,     ///< a TokenTable: Past::table
  strategy,   ///< the strategy itself, whose begin() keeps its knowledge: Past::strategy
};

/// A strategy that can be chosen by name.
struct StrategyInfo {
  std::string_view name;
  std::string_view meaning;
  std::vector<KeyInfo> keys;
  ControlKind control;  ///< the control that `automatic` stands for; `cost`: its probabilities are calibrated
  /// Makes the strategy. The past of earlier sessions may be null and must outlive the strategy. Throws InputError if
  /// values contradict each other.
  AnyStrategy (*make)(const Settings&, Past*);
  Remembers remembers = Remembers::nothing;
  std::size_t max_nodes = usual_draft_nodes;  ///< most nodes of its drafts
};

/// All strategies.
std::span<const StrategyInfo> strategies();

/// The strategy used by default: the one that the library recommends.
inline constexpr std::string_view default_strategy = "ngram";

/// One run: a strategy that is copied for each session.
struct StrategyRun {
  std::string spec;  ///< as given, with one value in place of a range
  AnyStrategy strategy;
  ControlKind usual = ControlKind::all;  ///< the control that `automatic` stands for
  Remembers remembers = Remembers::nothing;
  /// Most nodes of its drafts. A published method of a fixed size has more than other strategies.
  std::size_t max_nodes = usual_draft_nodes;
  /// Makes the strategy for the next session. A table that the past lacks is made immediately, not when the session
  /// begins.
  std::function<AnyStrategy(Past&)> with_past = {};

  /// True if its probabilities are calibrated.
  [[nodiscard]] bool calibrated() const { return usual == ControlKind::cost; }
};

/// The runs of a spec: one, unless it has ranges. Strategies that read datastores (Remembers::sequences) also read
/// `stores`, which must outlive the runs. Throws InputError that lists the strategies.
std::vector<StrategyRun> make_runs(std::string_view spec, std::span<const DatastoreRef> stores = {});

}  // namespace reprise::replay
