// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// Each number k makes the k-th, 2k-th, ... call of its kind fail. 0: no call fails.
struct ScriptedFaults {
  std::uint64_t verify_every = 0;
  std::uint64_t pick_every = 0;    ///< with as_errors, counted but not thrown: a pick cannot return an Error
  std::uint64_t commit_every = 0;  ///< restore() counts as a commit
  bool as_errors = false;          ///< return an Error instead of throwing; always true without exceptions
};

/// The settings of a ScriptedVerifier.
struct ScriptedOptions {
  std::uint64_t seed = 1;
  std::size_t order = 2;   ///< number of tokens at the end of the cache that determine the next token
  Token vocabulary = 100;  ///< the default model, a hash of the last tokens, picks 0 ... vocabulary - 1
  /// Replaces the default model: returns the token after the last `order` tokens (fewer at the start). Empty: the
  /// default model.
  std::function<Token(TokenSpan)> table = {};
  /// Returns true if a token may follow the last `order` tokens, as in a grammar. Empty: every token may follow. Picks
  /// ignore the rule where it refuses every token.
  std::function<bool(TokenSpan, Token)> rule = {};
  std::size_t revealed = 4;   ///< maximum number of tokens that top_k() returns
  bool sampled = false;       ///< draw from a few candidates, with a random stream that each pick advances
  std::uint32_t penalty = 0;  ///< penalty of a sampled token per occurrence in the last 8 picks; 256 is strong
  Capabilities capabilities = {};
  ScriptedFaults faults = {};
  /// Returns the virtual duration of a pass, in any unit. counters().time is the sum over all passes that did not fail.
  /// pass_time() returns the duration of the last such pass as nanoseconds.
  std::function<std::uint64_t(const PassShape&)> latency = {};
  bool may_stop_before = false;  ///< a predicate may refuse a pick, so one more pick may be read than is committed
};

/// Counts of the calls that a ScriptedVerifier has served. Failed calls count too, except verify_tree() with parents
/// that do not form a tree.
struct ScriptedCounters {
  std::uint64_t verifies = 0;
  std::uint64_t rows = 0;
  std::uint64_t picks = 0;
  std::uint64_t commits = 0;  ///< commits and restores
  std::uint64_t restores = 0;
  std::uint64_t faults = 0;
  std::uint64_t time = 0;  ///< total duration of the passes that did not fail; see ScriptedOptions::latency
};

#if defined(__cpp_exceptions)
/// The exception that a scripted fault throws.
struct ScriptedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
#endif

/// The model of a ScriptedVerifier: the end of a text determines the ranking of the vocabulary after it.
class ScriptedModel {
 public:
  /// The state that drawing a token changes.
  struct Sampler {
    std::uint64_t random = 0;
    std::array<Token, 8> recent{};
    std::size_t picks = 0;
  };

  explicit ScriptedModel(ScriptedOptions options) : options_(std::move(options)) {}

  [[nodiscard]] const ScriptedOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool allows(TokenSpan context, Token next) const {
    return !options_.rule || options_.rule(end_of(context), next);
  }
  /// Returns the token that a greedy model picks after `context`.
  [[nodiscard]] Token greedy(TokenSpan context) const {
    const TokenSpan end = end_of(context);
    const Token first = first_choice(end);
    return allows(end, first) ? first : ranked(context, 1).front();
  }
  /// Returns up to `most` tokens after `context` that the rule allows, likeliest first. If there would be none, returns
  /// the model's first choice alone.
  [[nodiscard]] std::vector<Token> ranked(TokenSpan context, std::size_t most) const {
    const TokenSpan end = end_of(context);
    const Token first = first_choice(end);
    const auto size = static_cast<std::uint64_t>(std::max<Token>(options_.vocabulary, 1));
    std::uint64_t step = size < 3 ? 1 : 1 + hash(end, 1) % (size - 1);
    while (std::gcd(step, size) != 1) ++step;  // coprime, so that every token has one rank
    std::vector<Token> tokens;
    for (std::uint64_t rank = 0; rank < size && tokens.size() < most; ++rank) {
      const auto from = static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) % size;
      const Token token = rank == 0 ? first : static_cast<Token>((from + rank * step) % size);
      if (allows(end, token)) tokens.push_back(token);
    }
    if (tokens.empty()) tokens.push_back(first);
    return tokens;
  }
  /// Draws the token after `context` and adds it to the sampler's picks. Penalties apply to the sampler's last 8 picks
  /// only.
  [[nodiscard]] Token sample(TokenSpan context, Sampler& sampler) const {
    const std::vector<Token> choices = ranked(context, 4);
    const std::uint64_t noise = mix(sampler.random++);
    const auto recent = sampler.recent.begin();
    const auto recent_end = recent + static_cast<std::ptrdiff_t>(std::min<std::size_t>(sampler.picks, 8));
    Token best = 0;
    std::int64_t best_score = 0;
    for (std::size_t rank = 0; rank < choices.size(); ++rank) {
      const std::int64_t score =
          static_cast<std::int64_t>((noise >> (16 * rank)) % 1024) - static_cast<std::int64_t>(rank * 64) -
          static_cast<std::int64_t>(options_.penalty) * std::count(recent, recent_end, choices[rank]);
      if (rank == 0 || score > best_score) {
        best = choices[rank];
        best_score = score;
      }
    }
    sampler.recent[sampler.picks++ % sampler.recent.size()] = best;
    return best;
  }
  /// Writes a distribution over the vocabulary after `context`. It covers up to four tokens, the likeliest that the
  /// rule allows. Each is half as likely as the one before it. Penalties do not apply.
  void weigh(TokenSpan context, std::vector<float>& probabilities) const {
    const std::vector<Token> choices = ranked(context, 4);
    probabilities.assign(static_cast<std::size_t>(std::max<Token>(options_.vocabulary, 1)), 0);
    const auto all = static_cast<float>((1U << choices.size()) - 1);
    for (std::size_t rank = 0; rank < choices.size(); ++rank)
      if (choices[rank] >= 0 && choices[rank] < options_.vocabulary)
        probabilities[static_cast<std::size_t>(choices[rank])] =
            static_cast<float>(1U << (choices.size() - 1 - rank)) / all;
  }

 private:
  [[nodiscard]] TokenSpan end_of(TokenSpan context) const {
    return context.last(std::min(options_.order, context.size()));
  }
  [[nodiscard]] std::uint64_t hash(TokenSpan end, std::uint64_t salt) const {
    std::uint64_t hash = mix(options_.seed + (salt << 32));
    for (const Token token : end) hash = mix(hash ^ static_cast<std::uint32_t>(token));
    return hash;
  }
  [[nodiscard]] Token first_choice(TokenSpan end) const {
    if (options_.table) return options_.table(end);
    return static_cast<Token>(hash(end, 0) % static_cast<std::uint64_t>(std::max<Token>(options_.vocabulary, 1)));
  }

  ScriptedOptions options_;
};

}  // namespace reprise::testing
