// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

#include "reprise/core/token.hpp"
#include "reprise/draft/model_drafter.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// A small language model for tests: the last two tokens of its cache determine the next. Its cache is an array, so
/// feeding it never allocates. It can be made to fail.
class ToyModel {
 public:
  static constexpr std::size_t most_tokens = 1024;
  static constexpr std::size_t most_vocabulary = 32;
  enum class Fault { none, empty, throws };

  explicit ToyModel(std::size_t vocabulary = 8, std::uint64_t seed = 1) noexcept
      : vocabulary_(vocabulary), seed_(seed) {}

  std::span<const float> feed(TokenSpan tokens) {
    ++feeds;
    fed += tokens.size();
    sound = sound && !tokens.empty() && size_ + tokens.size() <= most_tokens;
    if (!sound) return {};
    const bool fails = fail_at != 0 && feeds == fail_at;
    // A fault occurs half-way.
    const TokenSpan taken = fails ? tokens.first((tokens.size() + 1) / 2) : tokens;
    std::copy(taken.begin(), taken.end(), cache_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += taken.size();
    if (fails && fault == Fault::empty) return {};
#if defined(__cpp_exceptions)
    if (fails && fault == Fault::throws) throw std::runtime_error("a fault of the toy model");
#endif
    distribution_ = after(cache());
    return std::span(distribution_).first(vocabulary_);
  }
  void truncate(std::size_t size) noexcept {
    ++truncations;
    sound = sound && size <= size_;
    size_ = std::min(size, size_);
  }
  [[nodiscard]] std::size_t vocabulary() const noexcept { return vocabulary_; }

  [[nodiscard]] TokenSpan cache() const noexcept { return TokenSpan(cache_).first(size_); }
  /// Returns its distribution after any tokens.
  [[nodiscard]] std::array<float, most_vocabulary> after(TokenSpan tokens) const noexcept {
    std::uint64_t hash = mix(seed_);
    for (const Token token : tokens.last(std::min<std::size_t>(tokens.size(), 2)))
      hash = mix(hash ^ static_cast<std::uint32_t>(token));
    std::array<std::uint64_t, most_vocabulary> weights{};
    std::uint64_t total = 0;
    for (std::size_t token = 0; token < vocabulary_; ++token) {
      const std::uint64_t x = 1 + mix(hash + token) % 30;
      total += weights[token] = x * x * x * x;
    }
    std::array<float, most_vocabulary> distribution{};
    for (std::size_t token = 0; token < vocabulary_; ++token)
      distribution[token] = static_cast<float>(static_cast<double>(weights[token]) / static_cast<double>(total));
    return distribution;
  }
  [[nodiscard]] Token likeliest(TokenSpan tokens) const noexcept {
    const auto distribution = after(tokens);
    return static_cast<Token>(std::max_element(distribution.begin(), distribution.end()) - distribution.begin());
  }

  std::size_t feeds = 0;        ///< calls of feed()
  std::size_t fed = 0;          ///< tokens in them
  std::size_t truncations = 0;  ///< calls of truncate()
  std::size_t fail_at = 0;      ///< the feed() that fails, from 1 on; 0: none
  Fault fault = Fault::none;
  bool sound = true;  ///< no call fed nothing or too much, or cut beyond the size

 private:
  std::size_t vocabulary_;
  std::uint64_t seed_;
  std::array<Token, most_tokens> cache_{};
  std::size_t size_ = 0;
  std::array<float, most_vocabulary> distribution_{};
};
static_assert(DraftModel<ToyModel>);

}  // namespace reprise::testing
