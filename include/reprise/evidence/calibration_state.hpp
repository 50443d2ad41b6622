// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace reprise { inline namespace v0 {

/// The learned corrections for one target. It is a plain value of 10 KB: keep it after a sequence, and start the next
/// sequence with it. Biases are log-odds with 20 binary places; the biases of single tokens have 13. All-zero biases
/// leave the built-in tables unchanged.
struct CalibrationState {
  /// The size of a table of biases by token hash. Tokens with the same hash share a bias.
  static constexpr std::size_t token_classes = 1024;
  using TokenBiases = std::array<std::int16_t, token_classes>;
  static constexpr std::size_t length_classes = 7;
  static constexpr std::size_t depth_classes = 4;
  static constexpr std::size_t next_token_classes = 162;
  static constexpr std::size_t next_token_groups = 6;
  std::int32_t all = 0;                                  ///< bias for every token
  std::array<std::int32_t, length_classes> by_length{};  ///< biases by the longest agreement
  std::array<std::int32_t, depth_classes> by_depth{};    ///< biases by the depth in the draft
  /// Biases of next-token counts and rankings: by the other evidence for the token, and by their class.
  std::array<std::array<std::int32_t, next_token_classes>, next_token_groups> by_next{};
  TokenBiases by_previous{};          ///< biases by the previous token
  TokenBiases by_token{};             ///< biases by the token itself
  TokenBiases by_token_and_length{};  ///< biases by the token and the longest agreement
  /// Share of recent rounds in which the likeliest candidate after the anchor was right, with 16 binary places;
  /// initially 0.4.
  std::uint32_t recent = 26214;
  std::uint64_t lessons = 0;  ///< number of tokens learned from
  friend bool operator==(const CalibrationState&, const CalibrationState&) = default;
};

namespace detail {

/// Calls visit(x, y, ...) for the numbers at each index of one or more arrays of the same shape.
template <class Visit, class First, class... Others>
constexpr void visit_each(const Visit& visit, First& first, Others&... others) {
  if constexpr (std::is_integral_v<First>) {
    visit(first, others...);
  } else {
    for (std::size_t i = 0; i < first.size(); ++i) visit_each(visit, first[i], others[i]...);
  }
}
/// Calls visit(x, y, ...) for each bias of one or more states, in declaration order. Add a new field here and in
/// history_snapshot.hpp, where the size of the state is checked.
template <class Visit, class... States>
constexpr void for_each_bias(const Visit& visit, States&... states) {
  const auto each = [&](auto bias) { visit_each(visit, states.*bias...); };
  each(&CalibrationState::all);
  each(&CalibrationState::by_length);
  each(&CalibrationState::by_depth);
  each(&CalibrationState::by_next);
  each(&CalibrationState::by_previous);
  each(&CalibrationState::by_token);
  each(&CalibrationState::by_token_and_length);
}

}  // namespace detail

/// Returns the mean of two states, each weighted by its `lessons` (at least 1, at most 2^20). The `lessons` of the
/// result is the sum of both.
constexpr CalibrationState merge(const CalibrationState& a, const CalibrationState& b) noexcept {
  // Weights saturate at 2^20 lessons, which keeps the products below in range.
  const auto weigh = [](std::uint64_t lessons) {
    return static_cast<std::int64_t>(std::clamp<std::uint64_t>(lessons, 1, std::uint64_t{1} << 20));
  };
  const std::int64_t wa = weigh(a.lessons);
  const std::int64_t wb = weigh(b.lessons);
  const auto mean = [&]<class T>(T x, T y) { return static_cast<T>((x * wa + y * wb) / (wa + wb)); };
  CalibrationState both;
  detail::for_each_bias([&](auto& bias, auto x, auto y) { bias = mean(x, y); }, both, a, b);
  both.recent = mean(a.recent, b.recent);
  both.lessons = a.lessons + b.lessons;
  return both;
}

}}  // namespace reprise
