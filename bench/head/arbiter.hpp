// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace reprise::head {

inline constexpr std::size_t most_head_tokens = 20;

/// The costs of a pass, in plain passes.
struct Costs {
  double row = 0;         ///< of each drafted row
  double head_pass = 0;   ///< of the head's draft, whatever its length
  double head_token = 0;  ///< of each token that the head drafts
  [[nodiscard]] double pass(std::size_t rows) const { return 1 + row * static_cast<double>(rows); }
  [[nodiscard]] double draft(std::size_t tokens) const {
    return tokens == 0 ? 0 : head_pass + head_token * static_cast<double>(tokens);
  }
};

/// The lookup's expected accepted tokens in a pass, as one of a few classes. The head's acceptance depends on them:
/// text that the lookup finds is easy for the head too.
inline constexpr std::size_t classes = 5;
inline std::size_t class_of(double expected) {
  constexpr std::array<double, classes - 1> bounds = {0.5, 1, 2, 4};
  return static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), expected) - bounds.begin());
}

/// The acceptance of the head's tokens over all requests so far, by class of the pass and by depth. It starts high, so
/// that the head is tried in each class: as if 10 tokens had been tested, and 8 of them accepted.
class HeadRates {
 public:
  [[nodiscard]] double rate(std::size_t kind, std::size_t depth) const {
    return (accepted_[kind][depth] + 8) / (tested_[kind][depth] + 10);
  }
  void learn(std::size_t kind, std::size_t depth, bool accepted) {
    tested_[kind][depth] += 1;
    accepted_[kind][depth] += accepted ? 1 : 0;
  }

 private:
  using Counts = std::array<std::array<double, most_head_tokens>, classes>;
  Counts tested_{};
  Counts accepted_{};
};

/// Predicts the head's acceptance in one request: HeadRates, plus the recent difference of this request from them. The
/// difference is an exponential mean over the tested tokens. It fades with each pass, also with those without the head,
/// so that a head that was unlucky is tried again.
class HeadForecast {
 public:
  explicit HeadForecast(HeadRates& rates) : rates_(&rates) {}

  /// Begins a pass, given the lookup's expected accepted tokens.
  void begin(double expected) { class_ = class_of(expected); }
  /// Returns the probability that a token is accepted if all before it are. `depth` counts from 0.
  [[nodiscard]] double rate(std::size_t depth) const {
    constexpr double prior = 8;  // tested tokens
    return std::clamp(rates_->rate(class_, depth) + difference_ / (tested_ + prior), 0.01, 0.99);
  }
  /// Ends a pass. Learns from it if the head drafted: tokens after the first rejected one were not tested.
  void learn(std::size_t drafted, std::size_t accepted) {
    constexpr double fading = 0.9;
    difference_ *= fading;
    tested_ *= fading;
    for (std::size_t depth = 0; depth < std::min(drafted, accepted + 1); ++depth) {
      const bool hit = depth < accepted;
      difference_ += (hit ? 1 : 0) - rates_->rate(class_, depth);
      tested_ += 1;
      rates_->learn(class_, depth, hit);
    }
  }

 private:
  HeadRates* rates_;
  std::size_t class_ = 0;
  double difference_ = 0;
  double tested_ = 0;
};

/// Tokens per plain pass over about the last 50 passes, the head's drafting included. The first value is the mean of
/// earlier requests.
class Rate {
 public:
  [[nodiscard]] double operator()() const { return std::max(1.0, tokens_ / cost_); }
  void add(std::size_t tokens, double cost) {
    constexpr double kept = 1 - 1.0 / 50;
    tokens_ = tokens_ * kept + static_cast<double>(tokens);
    cost_ = cost_ * kept + cost;
  }
  /// Keeps the value, with the weight of a few passes.
  void restart() {
    constexpr double weight = 10;
    tokens_ *= weight / cost_;
    cost_ = weight;
  }

 private:
  double tokens_ = 13;
  double cost_ = 10;
};

/// A draft of the head, before it is made. `value`: expected tokens of the pass, minus the tokens that its cost would
/// give otherwise.
struct HeadDraft {
  std::size_t tokens = 0;
  double value = 0;
};

/// The value of a pass, at `rate` tokens per plain pass.
inline double value(double accepted, double cost, double rate) { return 1 + accepted - rate * cost; }

/// Returns the length with the highest value, from 0 to `most`.
inline HeadDraft best_head_draft(const HeadForecast& forecast, const Costs& costs, double rate, std::size_t most) {
  HeadDraft best{0, value(0, costs.pass(0), rate)};
  double path = 1;
  double sum = 0;
  for (std::size_t tokens = 1; tokens <= most; ++tokens) {
    path *= forecast.rate(tokens - 1);
    sum += path;
    const double worth = value(sum, costs.pass(tokens) + costs.draft(tokens), rate);
    if (worth > best.value) best = {tokens, worth};
  }
  return best;
}

}  // namespace reprise::head
