// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"
#include "reprise_testing/random.hpp"
#include "support/choices.hpp"
#include "support/hostile_strategy.hpp"
#include "support/naive_index.hpp"
#include "support/oracle_strategy.hpp"
#include "support/random_rows.hpp"
#include "support/scripted_verifier.hpp"
#include "support/witness.hpp"
#include "support/world_control.hpp"

namespace reprise::testing {

/// A scripted engine whose rows of likeliest tokens can be lies: other tokens, negative or huge ones, repetitions, any
/// number of them. Its picks are true.
class LyingEngine : public ScriptedVerifier {
 public:
  /// `percent`: share of the rows that are lies.
  explicit LyingEngine(const ScriptedOptions& options, TokenSpan prompt = {}, std::size_t percent = 0)
      : ScriptedVerifier(options, prompt), percent_(percent), choices_(mix(options.seed)) {}

  TokenSpan top_k(std::size_t i) {
    const TokenSpan honest = ScriptedVerifier::top_k(i);
    if (!choices_.chance(percent_)) return honest;
    lie_ = random_ranking(choices_, honest);
    return lie_;
  }

 private:
  std::size_t percent_;
  Choices choices_;
  std::vector<Token> lie_;
};

/// The properties of every world.
enum class Property : std::uint8_t {
  lossless,    ///< output, finish reason and settled stream equal plain decoding
  verifier,    ///< V1 to V11, as the scripted verifier checks them
  strategy,    ///< S1 to S6, as the witness checks them
  progress,    ///< a pass commits the agreed path and one token more, unless a stop rule ends it
  bounds,      ///< a pass stays within every limit
  statistics,  ///< the counts agree with the events
  calls,       ///< correct calls succeed, wrong ones are refused
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

/// The events that worlds have met, to see that they vary.
struct Coverage {
  std::array<std::uint64_t, finish_reason_count> finishes{};
  Statistics statistics;
  std::uint64_t trees = 0;      ///< passes whose draft branches, driven by hand
  std::uint64_t restores = 0;   ///< passes after which a state was restored
  std::uint64_t replayed = 0;   ///< drafted passes with several pending tokens, of engines that restore
  std::uint64_t auxiliary = 0;  ///< auxiliary rows in passes driven by hand
  std::uint64_t revealed = 0;   ///< top-k tokens that strategies received

  Coverage& operator+=(const Coverage& other) {
    for (std::size_t i = 0; i < finishes.size(); ++i) finishes[i] += other.finishes[i];
    statistics += other.statistics;
    trees += other.trees;
    restores += other.restores;
    replayed += other.replayed;
    auxiliary += other.auxiliary;
    revealed += other.revealed;
    return *this;
  }
};

/// A stop predicate that is a pure function of its arguments.
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

using WorldStrategy = Witness<OneOf<NoDrafter, OracleStrategy, HostileStrategy, PromptLookupDrafter<RollingHashIndex>,
                                    PromptLookupDrafter<SuffixArrayIndex>, PromptLookupDrafter<NaiveIndex>,
                                    NgramDrafter<>, UnionDrafter<NgramDrafter<>, PromptLookupDrafter<>>>>;

/// Returns a span, like an engine that computes all picks in one kernel. Verifies chains only.
struct SpanEngine {
  ScriptedVerifier& inner;
  Result<TokenSpan> verify(TokenSpan batch, std::size_t drafted) {
    auto lazy = inner.verify(batch, drafted);
    if (!lazy) return lazy.error();
    return inner.greedy_picks();
  }
  Result<void> commit(std::size_t keep) { return inner.commit(keep); }
  void snapshot() { inner.snapshot(); }
  Result<void> restore(std::size_t committed) { return inner.restore(committed); }
};

/// The same with trees.
struct TreeSpanEngine : SpanEngine {
  Result<TokenSpan> verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    auto lazy = inner.verify_tree(batch, drafted, parents);
    if (!lazy) return lazy.error();
    return inner.greedy_picks();
  }
  Result<void> commit_rows(std::span<const std::size_t> rows) { return inner.commit_rows(rows); }
};
static_assert(!TreeVerifier<SpanEngine> && TreeVerifier<TreeSpanEngine>);

/// Walks drafts on its device.
struct SelfWalkingEngine : TreeSpanEngine {
  Result<Accepted> verify_and_walk(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    auto lazy = inner.verify_tree(batch, drafted, parents);
    if (!lazy) return lazy.error();
    return inner.walk_draft();
  }
};
static_assert(SelfWalkingVerifier<SelfWalkingEngine>);

/// The way a world is driven, and the faults in it.
enum class Mode : std::uint8_t { lazy, span, accepted, generate, generate_with_faults };

/// The settings of a world: small numbers, so that all combinations occur.
class WorldSettings {
 protected:
  explicit WorldSettings(Choices& choices) : choices_(choices) { invent(); }

  Token token() { return static_cast<Token>(choices_.below(vocabulary_)); }
  std::vector<Token> tokens(std::size_t count) {
    std::vector<Token> made(count);
    for (Token& t : made) t = token();
    return made;
  }
  void new_limits() {
    limits_.max_tokens = choices_.chance(90) ? choices_.between(1, 40) : choices_.below(2);
    limits_.max_context = choices_.chance(20) ? choices_.between(1, 60) : unlimited;
    limits_.max_rows = choices_.chance(20) ? choices_.between(1, 8) : unlimited;
    limits_.draft.max_nodes = choices_.below(13);
    limits_.draft.max_depth = choices_.chance(20) ? choices_.below(6) : unlimited;
    limits_.draft.max_leaves = choices_.chance(20) ? choices_.below(5) : unlimited;
    limits_.draft.shape = choices_.chance(20) ? DraftShape::chain : DraftShape::tree;
  }
  WorldControl control() {
    const auto kind =
        choices_.chance(50) ? WorldControl::Kind::send_all : static_cast<WorldControl::Kind>(choices_.between(1, 3));
    return WorldControl(kind, choices_.below(1U << 16));
  }
  /// `truth`: see OracleStrategy.
  WorldStrategy strategy(const std::vector<Token>& truth) {
    constexpr std::array<std::size_t, 5> shares = {0, 30, 70, 95, 100};
    PromptLookupOptions ngram;
    ngram.max_ngram = 4;
    const auto kind = choices_.below(11);
    const std::uint64_t seed = choices_.below(1U << 16);
    OracleOptions oracle{shares[choices_.below(5)], choices_.below(13), options_.vocabulary, seed,
                         choices_.chance(30),       choices_.chance(30)};
    switch (kind) {
      case 0:
        return WorldStrategy(NoDrafter());
      case 1:
        return WorldStrategy(HostileStrategy(seed, options_.vocabulary));
      case 2:
        return WorldStrategy(PromptLookupDrafter<RollingHashIndex>::make(ngram).value());
      case 6:
        return WorldStrategy(PromptLookupDrafter<SuffixArrayIndex>::make(ngram).value());
      case 7:
        return WorldStrategy(PromptLookupDrafter<NaiveIndex>::make(ngram).value());
      case 8:
      case 9:
        return WorldStrategy(NgramDrafter<>(ngrams()));
      case 10:
        return WorldStrategy(UnionDrafter(NgramDrafter<>(ngrams()), PromptLookupDrafter<>()));
      default:
        return WorldStrategy(OracleStrategy(truth, oracle));
    }
  }

  Choices& choices_;
  std::size_t vocabulary_ = 2;
  ScriptedOptions options_;
  Limits limits_;
  WorldPredicate predicate_;
  Mode mode_ = Mode::lazy;
  std::size_t trouble_ = 0;  ///< percent of the rounds that are disturbed

 private:
  /// A drafter with little memory for rows, so that worlds are quick and rows replace each other.
  NgramOptions ngrams() {
    NgramOptions options;
    options.row_bytes = 40 * choices_.below(60);
    if (choices_.chance(20)) options.top_k = choices_.below(9);
    if (choices_.chance(30)) options.min_path_probability = Probability::ratio(1, 1'000'000);
    return options;
  }
  void invent() {
    vocabulary_ = choices_.between(2, 8);
    options_.vocabulary = static_cast<Token>(vocabulary_);
    options_.order = choices_.between(1, 4);
    options_.seed = choices_.below(1U << 16);
    options_.sampled = choices_.chance(30);
    options_.penalty = options_.sampled ? static_cast<std::uint32_t>(choices_.below(3) * 200) : 0;
    if (choices_.chance(70)) limits_.eos = tokens(choices_.between(1, 2));
    if (choices_.chance(20)) limits_.stop_ids = tokens(1);
    if (choices_.chance(40))
      for (std::size_t i = choices_.between(1, 3); i > 0; --i)
        limits_.stop_sequences.push_back(tokens(choices_.chance(3) ? choices_.below(50) : choices_.between(1, 3)));
    if (choices_.chance(25))
      predicate_ = {choices_.chance(50) ? StopDecision::stop_before : StopDecision::stop_after, choices_.below(1000),
                    choices_.between(2, 40)};
    options_.may_stop_before = predicate_.decision == StopDecision::stop_before;
    Capabilities& can = options_.capabilities;
    if (choices_.chance(25)) can.max_rows = choices_.between(1, 6);
    if (choices_.chance(25)) can.max_context = choices_.between(13, 50);
    if (choices_.chance(15)) can.max_depth = choices_.below(5);
    if (choices_.chance(50)) can.max_leaves = choices_.between(2, 6);
    if (choices_.chance(15)) can.max_rollback = choices_.below(5);
    if (choices_.chance(20))
      for (std::size_t i = choices_.between(1, 3); i > 0; --i) can.allowed_widths.add(choices_.between(1, 10));
    if (choices_.chance(40)) can.pad_token = choices_.chance(80) ? token() : -7;
    if (choices_.chance(40)) can.rollback = choices_.chance(75) ? Rollback::snapshot : Rollback::per_row;
    if (choices_.chance(50)) can.max_replay = choices_.between(1, 6);
    if (choices_.chance(30))  // one token is not allowed next, all others are
      options_.rule = [size = vocabulary_, seed = options_.seed](TokenSpan end, Token next) {
        const auto last = end.empty() ? 0U : static_cast<std::uint32_t>(end.back());
        return static_cast<std::uint64_t>(next) != mix(seed + last) % size;
      };
    if (choices_.chance(50)) options_.latency = [](const PassShape& shape) { return 100 + shape.rows; };
    new_limits();
    mode_ = static_cast<Mode>(choices_.below(5));
    if (options_.sampled && (mode_ == Mode::span || mode_ == Mode::accepted)) mode_ = Mode::lazy;
    trouble_ = choices_.chance(50) ? 10 : 0;
    if (mode_ == Mode::generate_with_faults) {
      options_.faults.verify_every = choices_.chance(60) ? choices_.between(2, 7) : 0;
      options_.faults.commit_every = choices_.chance(60) ? choices_.between(2, 7) : 0;
      options_.faults.pick_every = choices_.chance(60) ? choices_.between(18, 40) : 0;
      options_.faults.as_errors = choices_.chance(30);
      if (options_.faults.as_errors) options_.faults.pick_every = 0;
    }
  }
};

}  // namespace reprise::testing
