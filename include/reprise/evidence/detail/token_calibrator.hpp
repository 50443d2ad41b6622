// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/evidence/detail/next_token_evidence.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Where the occurrences that predict a token were found.
enum class EvidenceSource : std::uint8_t {
  context,  ///< only in the context; or nowhere, for a token that is merely frequent
  stores,   ///< only in datastores
  both,     ///< in the context and in at least one datastore
};

/// The evidence for one token at one position of a draft.
struct TokenEvidence {
  /// Sum of the votes of the occurrences that predict the token, or the weight of a candidate by frequency.
  VoteWeight votes = 0;
  VoteWeight strongest = 0;  ///< the largest of these votes
  int longest = -1;          ///< longest agreement among these occurrences; -1: none, it is a candidate by frequency
  int rival = -1;            ///< longest agreement of an occurrence that predicts a different token; -1: none
  int occurrences = 0;       ///< number of occurrences that predict the token
  std::uint64_t count = 0;   ///< number of times the token has occurred
  EvidenceSource source = EvidenceSource::context;
  bool stores_vote = false;     ///< occurrences in datastores vote at this position; set only if `next` is known
  NextTokenEvidence next = {};  ///< next-token counts and rankings
};

/// Turns the evidence for a token into a probability, and learns from outcomes.
///
/// The probability is the logistic function of a sum of log-odds (a generalised additive model). Three kinds of terms
/// are added:
///
///  - the token's share of the votes, as log-odds, mapped through a curve;
///  - built-in table values for the other evidence, fitted to recorded outputs (docs/decisions/0005);
///  - biases that are learned while decoding, by stochastic gradient descent on the log-loss.
///
/// Use learn() only for tokens at positions where the target has picked a token; see for_each_tested().
///
/// Cost: a dozen table reads per token, and 15 more with next-token evidence. It does not allocate. Size: 10 KB.
/// Threads: one at a time.
class TokenCalibrator {
 public:
  /// The evidence that all candidates at one position of the tree share.
  struct TreeContext {
    LogOdds shared = 0;  ///< the sum of the terms of this evidence, in log-odds
    std::uint8_t depth = 0;
    std::uint16_t previous = 0;
  };
  /// A probability, and the classes of evidence from which it was computed. learn() needs all of them.
  struct TrainingSample {
    Probability probability;
    std::uint8_t length = 0;
    std::uint8_t depth = 0;
    EvidenceSource source = EvidenceSource::context;
    NextTokenEvidence next = {};
    std::uint8_t group = 0;  ///< kind of the other evidence, as far as `next` is calibrated for it
    std::uint16_t previous = 0;
    std::uint16_t token = 0;
    std::uint16_t token_and_length = 0;
  };

  /// Accepts any state: values outside the bounds of learning are clamped to these bounds.
  explicit constexpr TokenCalibrator(const CalibrationState& state = {}) noexcept
      : state_(state), frequent_picked_(state.lessons != 0) {
    for_each_bias([](auto& bias) { adjust(bias, 0); }, state_);
    state_.recent = std::min<std::uint32_t>(state_.recent, most_recent);
  }

  /// Sets the size of the text for weigh(). A new session doubts the merely frequent tokens of a text of fewer than 160
  /// tokens until one of them is picked: short counts mean little.
  constexpr void set_text(std::size_t tokens) noexcept {
    constexpr LogOdds most = 2 * log_odds_one;  // for a factor of 7 in an empty text; see docs/decisions/0005
    constexpr std::size_t long_text = 160;
    const auto missing = static_cast<LogOdds>(long_text - std::min(tokens, long_text));
    doubt_ = frequent_picked_ ? 0 : most * missing / static_cast<LogOdds>(long_text);
  }

  /// Returns the evidence that all candidates at one position share. `depth`: 0 directly after the anchor. `previous`:
  /// the token before this position. `count`: the number of occurrences of `previous`.
  [[nodiscard]] constexpr TreeContext tree_context(std::size_t depth, Token previous,
                                                   std::uint64_t count) const noexcept {
    const std::size_t by_depth = std::min<std::size_t>(depth, CalibrationState::depth_classes - 1);
    const std::size_t by_previous = token_class(static_cast<std::uint32_t>(previous));
    const std::size_t eighth = UnitScale::floor(state_.recent * 8);  // below 8, because `recent` stays below one
    return {previous_count_values[magnitude(count)] + recent_values[eighth] + loaded(state_.all) +
                loaded(state_.by_depth[by_depth]) + loaded(state_.by_previous[by_previous]),
            static_cast<std::uint8_t>(by_depth), static_cast<std::uint16_t>(by_previous)};
  }

  /// Computes the probability that the target picks `token` at this position: the logistic function of a sum of
  /// log-odds. `total`: the sum of all votes of occurrences at this position, plus the weight of "something else".
  [[nodiscard]] constexpr TrainingSample weigh(Token token, const TokenEvidence& evidence, VoteWeight total,
                                               const TreeContext& at) const noexcept {
    const std::size_t length = agreement_class(evidence.longest);
    const std::size_t by_token = token_class(static_cast<std::uint32_t>(token));
    const std::size_t by_both = token_class(static_cast<std::uint32_t>(token) * 8 + static_cast<std::uint32_t>(length));
    const LogOdds built_in =
        curve(vote_of(evidence.votes, total)) + rivalry_values[length][agreement_class(evidence.rival)] +
        occurrence_values[occurrence_class(evidence.occurrences)] + count_values[magnitude(evidence.count)] +
        strongest_values[sixths_of(evidence)] - (is_frequent(length, evidence.next) ? doubt_ : 0);
    const LogOdds learned = loaded(state_.by_length[length]) + loaded(state_.by_token[by_token]) +
                            loaded(state_.by_token_and_length[by_both]);
    const LogOdds known = at.shared + built_in + learned;
    const std::size_t group = group_of(evidence);
    return {logistic(known + statistics(evidence.next, group, known)),
            static_cast<std::uint8_t>(length),
            at.depth,
            evidence.source,
            evidence.next,
            static_cast<std::uint8_t>(group),
            at.previous,
            static_cast<std::uint16_t>(by_token),
            static_cast<std::uint16_t>(by_both)};
  }

  /// Learns from one outcome. `picked`: true if the target picked the sample's token at its position.
  constexpr void learn(const TrainingSample& sample, bool picked) noexcept {
    const std::int32_t wanted = picked ? ErrorScale::one : 0;
    const std::int32_t error =
        wanted - static_cast<std::int32_t>(rescaled<ProbabilityScale, ErrorScale>(sample.probability.raw()));
    const std::int32_t step = rescaled<StepScale, BiasScale>(error * rate);
    if (picked && is_frequent(sample.length, sample.next)) frequent_picked_ = true;
    adjust(state_.all, step);
    adjust(state_.by_length[sample.length], step);
    if (sample.next.known())
      for (const std::uint8_t known : sample.next.classes)
        if (known != NextTokenEvidence::unknown) adjust(state_.by_next[sample.group][known], step);
    adjust(state_.by_depth[sample.depth], step);
    // Each single token is rare, so its bias must be learned faster.
    adjust(state_.by_previous[sample.previous], 6 * step);
    adjust(state_.by_token[sample.token], 12 * step);
    adjust(state_.by_token_and_length[sample.token_and_length], 12 * step);
    ++state_.lessons;
  }
  /// Updates CalibrationState::recent. `picked`: true if the target picked the most likely candidate directly after the
  /// anchor.
  constexpr void learn_recent(bool picked) noexcept {
    constexpr std::int32_t fifth = 13107;  // 0.2 in UnitScale: roughly the last five rounds dominate
    const auto recent = static_cast<std::int32_t>(state_.recent);
    state_.recent =
        static_cast<std::uint32_t>(recent + UnitScale::multiply((picked ? most_recent : 0) - recent, fifth));
  }

  [[nodiscard]] constexpr const CalibrationState& state() const noexcept { return state_; }

 private:
  // The built-in tables: fitted log-odds in LogOddsScale. Each comment names the axis and the bins.

  /// By magnitude() of the count of the previous token: 0, 1-2, 3-6, 7-14, 15-30, ... , 2,047 and more.
  static constexpr std::array<std::int16_t, 12> previous_count_values = {0,   93,  39, -16, -47, -31,
                                                                         -65, -36, 61, -41, 0,   0};
  /// By CalibrationState::recent, in eighths.
  static constexpr std::array<std::int16_t, 8> recent_values = {-82, -55, -24, -9, 19, 27, 29, 52};
  /// By occurrence_class() of the number of occurrences that predict the token: 0-1, 2, 3, 4-5, 6-8, 9-16, more.
  static constexpr std::array<std::int16_t, 7> occurrence_values = {-325, -165, -48, 100, 212, 161, 22};
  /// By magnitude() of the count of the token itself.
  static constexpr std::array<std::int16_t, 12> count_values = {0, 23, 81, 131, 124, 140, 78, -78, -291, -246, -3, 0};
  /// By the strongest occurrence's share of the votes for the token, in sixths.
  static constexpr std::array<std::int16_t, 6> strongest_values = {-136, -152, -50, 29, 118, 148};
  /// Rows: agreement_class() of the longest agreement for the token. Columns: agreement_class() of the longest
  /// agreement for a rival.
  static constexpr std::array<std::array<std::int16_t, 7>, 7> rivalry_values = {{
      {{44, -69, -92, -19, -1, 0, 0}},
      {{261, 67, 49, 45, 58, 55, 59}},
      {{222, 131, -67, -100, -107, -141, -82}},
      {{189, 137, 45, -85, -150, -185, -102}},
      {{124, 92, 97, 82, -127, -185, -151}},
      {{43, 22, 86, 52, -34, -120, -217}},
      {{42, -23, -7, 4, 111, 27, -122}},
  }};
  /// By the log-odds of the vote: knots at -6, -5, ..., 6, with linear interpolation.
  static constexpr std::array<std::int16_t, 13> curve_values = {-1604, -1205, -1083, -797, -499, -238, -19,
                                                                207,   448,   672,   868,  1094, 1438};

  using ErrorScale = Fixed<15>;                              // scale of the error of a probability
  using RateScale = Fixed<11>;                               // scale of `rate`
  using StepScale = Fixed<15 + 11>;                          // scale of their product
  static constexpr std::int32_t rate = 41;                   // 0.02 in log-odds for an error of one
  static constexpr std::int32_t limit = BiasScale::from(3);  // largest absolute bias
  static constexpr std::int32_t most_recent = UnitScale::one - 1;

  /// Returns a bias in LogOddsScale, the scale of the sums.
  static constexpr LogOdds loaded(std::int32_t bias) noexcept { return rescaled<BiasScale, LogOddsScale>(bias); }
  static constexpr LogOdds loaded(std::int16_t bias) noexcept { return rescaled<SmallBiasScale, LogOddsScale>(bias); }

  /// Returns the kind of the other evidence: 0 and 1: no occurrence predicts the token; 2 and 3: occurrences in the
  /// context do; 4: in stores only; 5: in both. The odd ones of 0 to 3: occurrences in stores predict other tokens.
  static constexpr std::size_t group_of(const TokenEvidence& evidence) noexcept {
    const std::size_t rivals = evidence.stores_vote ? 1 : 0;
    if (evidence.longest < 0) return rivals;
    if (evidence.source == EvidenceSource::context) return 2 + rivals;
    return evidence.source == EvidenceSource::both ? 5 : 4;
  }
  /// Returns the effect of next-token counts and rankings on log-odds of `known` from all other evidence, which is of
  /// the kind `group`: the built-in values and the learned biases.
  [[nodiscard]] constexpr LogOdds statistics(const NextTokenEvidence& next, std::size_t group,
                                             LogOdds known) const noexcept {
    if (!next.known()) return 0;
    LogOdds sum = LogOddsScale::multiply(LogOdds{next_token_slopes[group][next.kind()]}, std::min(known, log_odds_one));
    for (const std::uint8_t known_class : next.classes)
      sum += next_token_values[group][known_class] + loaded(state_.by_next[group][known_class]);
    return sum;
  }

  /// Returns true if a token is a candidate only because it is frequent. `length`: agreement_class() of its evidence.
  static constexpr bool is_frequent(std::size_t length, const NextTokenEvidence& next) noexcept {
    return length == 0 && !next.known();
  }
  static constexpr std::size_t magnitude(std::uint64_t count) noexcept {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(count + 1)) - 1, 11);
  }
  static constexpr std::array<std::uint8_t, 18> agreement_classes = {1, 1, 2, 3, 3, 4, 4, 4, 4,
                                                                     5, 5, 5, 5, 5, 5, 5, 5, 6};
  static constexpr std::size_t agreement_class(int length) noexcept {
    return length < 0 ? 0 : agreement_classes[static_cast<std::size_t>(std::min(length, 17))];
  }
  static constexpr std::array<std::uint8_t, 18> occurrence_classes = {0, 0, 1, 2, 3, 3, 4, 4, 4,
                                                                      5, 5, 5, 5, 5, 5, 5, 5, 6};
  static constexpr std::size_t occurrence_class(int occurrences) noexcept {
    return occurrence_classes[static_cast<std::size_t>(std::min(occurrences, 17))];
  }
  /// Returns a multiplicative hash (Knuth) in 0 ... 1,023: the top ten bits of the product.
  static constexpr std::size_t token_class(std::uint32_t token) noexcept { return token * 2654435769U >> (32 - 10); }

  /// Returns the log-odds of the vote, clamped to -6 ... just below 6.
  static constexpr LogOdds vote_of(VoteWeight votes, VoteWeight total) noexcept {
    return std::clamp(log_odds(votes, total > votes ? total - votes : 1), -6 * log_odds_one, 6 * log_odds_one - 1);
  }
  /// Returns the strongest occurrence's share of the votes for the token, in sixths: 0 ... 5. Votes are below 2^28, so
  /// the product fits in 32 bits.
  static constexpr std::size_t sixths_of(const TokenEvidence& evidence) noexcept {
    return evidence.strongest >= evidence.votes ? 5 : std::min<VoteWeight>(evidence.strongest * 6 / evidence.votes, 5);
  }
  /// Returns the log-odds of the vote, mapped through `curve_values`.
  static constexpr LogOdds curve(LogOdds vote) noexcept {
    const LogOdds shifted = vote + 6 * log_odds_one;
    const auto knot = static_cast<std::size_t>(LogOddsScale::floor(shifted));
    return LogOddsScale::between<std::int32_t>(curve_values[knot], curve_values[knot + 1],
                                               LogOddsScale::fraction(shifted));
  }
  static constexpr void adjust(std::int32_t& bias, std::int32_t step) noexcept {
    bias = std::clamp(bias + step, -limit, limit);
  }
  static constexpr void adjust(std::int16_t& bias, std::int32_t step) noexcept {
    constexpr std::int32_t most = rescaled<BiasScale, SmallBiasScale>(limit);
    bias = static_cast<std::int16_t>(std::clamp(bias + rounded<BiasScale, SmallBiasScale>(step), -most, most));
  }

  CalibrationState state_;
  LogOdds doubt_ = 0;     // see set_text()
  bool frequent_picked_;  // a merely frequent token, by the target
};

}}}  // namespace reprise::detail
