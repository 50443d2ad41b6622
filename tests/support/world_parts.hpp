// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/none.hpp"
#include "reprise/index/naive.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"
#include "reprise/testing/hostile_strategy.hpp"
#include "reprise/testing/random.hpp"
#include "reprise/testing/scripted_verifier.hpp"
#include "support/oracle_strategy.hpp"
#include "support/witness.hpp"

namespace reprise::testing {

/// What has to hold in every world. A fault is expected to break one of them by name.
enum class Property : std::uint8_t {
  lossless,    ///< output, finish reason and settled stream are those of plain decoding
  verifier,    ///< V1 to V5, as the scripted verifier sees them
  strategy,    ///< S1 to S6, as the witness sees them
  progress,    ///< a pass commits the agreed path and one token more, unless a stop rule ends it
  bounds,      ///< a pass stays within every limit
  statistics,  ///< counts agree with what happened
  calls,       ///< right calls are answered, wrong ones refused
};
inline constexpr std::size_t property_count = 7;
inline constexpr std::array<const char*, property_count> property_names = {
    "lossless", "verifier", "strategy", "progress", "bounds", "statistics", "calls"};

/// The first breach of each property; empty: none.
using Breaches = std::array<std::string, property_count>;

inline std::string describe(const Breaches& breaches) {
  std::string text;
  for (std::size_t i = 0; i < property_count; ++i)
    if (!breaches[i].empty()) text += std::string(property_names[i]) + ": " + breaches[i] + '\n';
  return text;
}

/// What worlds have been through, to see that they are not all alike.
struct Coverage {
  std::array<std::uint64_t, finish_reason_count> finishes{};
  Statistics statistics;

  Coverage& operator+=(const Coverage& other) {
    for (std::size_t i = 0; i < finishes.size(); ++i) finishes[i] += other.finishes[i];
    statistics += other.statistics;
    return *this;
  }
};

/// A stop predicate that is a pure function of what it is asked.
struct WorldPredicate {
  StopDecision decision = StopDecision::proceed;
  std::uint64_t seed = 0;
  std::uint64_t period = 16;

  StopDecision operator()(TokenSpan output, Token next) const {
    const std::uint64_t last = output.empty() ? 77 : static_cast<std::uint32_t>(output.back());
    const bool stops = mix(seed ^ (output.size() << 20) ^ (last << 8) ^ static_cast<std::uint32_t>(next)) % period == 0;
    return stops ? decision : StopDecision::proceed;
  }
};

using WorldStrategy = Witness<OneOf<NoDraft, OracleStrategy, HostileStrategy, NgramDrafter<RollingHashIndex>,
                                    NgramDrafter<SuffixArrayIndex>, NgramDrafter<NaiveIndex>>>;

/// The loop and the engine under test.
struct RealKit {
  using Session = reprise::Session<WorldStrategy>;
  using Engine = ScriptedVerifier;
  static constexpr bool complete = true;  ///< has cancel, fork, cache_lost and generate()
  [[nodiscard]] Session session(WorldStrategy strategy) const { return Session(std::move(strategy), 16); }
  [[nodiscard]] Engine engine(const ScriptedOptions& options) const { return Engine(options); }
};

/// Answers with a span, as an engine does that computes all picks in one kernel.
struct SpanEngine {
  ScriptedVerifier& inner;
  Result<TokenSpan> verify(TokenSpan batch, std::size_t drafted) {
    auto lazy = inner.verify(batch, drafted);
    if (!lazy) return lazy.error();
    return inner.greedy_picks();
  }
  Result<void> commit(std::size_t keep) { return inner.commit(keep); }
};

}  // namespace reprise::testing
