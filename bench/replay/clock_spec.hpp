// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reprise_testing/random.hpp"

namespace reprise::replay {

/// Simulated passes that take much longer than others, because something else ran on the machine.
struct Outliers {
  std::size_t percent = 1;  ///< of the passes
  double factor = 10;       ///< times as long

  /// The spec: PERCENT:FACTOR.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Outliers&, const Outliers&) = default;
};

/// A change of the speed of the machine. Costs do not change, because a plain pass becomes slower too.
struct Slowdown {
  double factor = 1;                         ///< later passes take so many times as long
  std::optional<std::uint64_t> passes = {};  ///< passes at the first speed; nullopt: half of the tokens

  /// The spec: FACTOR@PASS or FACTOR@middle.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

/// Pass times that are wrong during some passes, and right otherwise. Costs do not change.
struct Poison {
  enum class Mode : std::uint8_t { random, drafts_dear, plain_cheap, drafts_free, first_slow, slow_machine, missing };
  Mode mode = Mode::random;
  std::uint64_t passes = 0;  ///< the first ones, or with slow_machine those after half of the tokens

  /// The spec: MODE:PASSES.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Poison&, const Poison&) = default;
};

/// Read a spec. `option` begins the message of the InputError that they throw.
Outliers parse_outliers(std::string_view text, const std::string& option = "--outliers");
Slowdown parse_slowdown(std::string_view text, const std::string& option = "--slowdown");
Poison parse_poison(std::string_view text, const std::string& option = "--poison");

/// The place of a replay in the stream of its control. The stream is all sessions if the control carries its knowledge
/// from one to the next, otherwise one session.
struct StreamPosition {
  std::uint64_t all_tokens = 0;      ///< tokens that passes commit, in the whole stream
  std::uint64_t passes = 0;          ///< so far
  std::uint64_t tokens = 0;          ///< so far
  std::uint64_t late = 0;            ///< passes after half of the tokens, so far; only counted with Poison
  std::set<std::size_t> timed = {};  ///< row counts of passes so far; likewise

  /// The factor of the time of the next pass.
  [[nodiscard]] double factor(const std::optional<Slowdown>& slowdown) const {
    if (!slowdown) return 1;
    const bool begun = slowdown->passes ? passes >= *slowdown->passes : tokens >= all_tokens / 2;
    return begun ? slowdown->factor : 1;
  }
  /// The factor of the time that is reported for the next pass, of `rows` rows; nullopt: none is reported. Call it once
  /// for each pass.
  [[nodiscard]] std::optional<double> poisoned(const std::optional<Poison>& poison, std::size_t rows, bool drafted,
                                               testing::Random& random);
};

}  // namespace reprise::replay
