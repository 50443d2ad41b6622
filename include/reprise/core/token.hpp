// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/fixed_point.hpp"

namespace reprise { inline namespace v0 {

/// The version of these headers (semantic versioning). CMakeLists.txt reads the project version from this file.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;
inline constexpr std::string_view version_string = "0.1.0";

/// A vocabulary id. Any 32-bit value is legal, including negative ones: the library compares and hashes tokens. It
/// checks the range before it uses a token as an array index.
using Token = std::int32_t;

/// Returns true if `token` is one of 0 ... vocabulary - 1. Other ids are placeholders, such as those of images.
[[nodiscard]] constexpr bool in_vocabulary(Token token, std::uint32_t vocabulary) noexcept {
  return static_cast<std::uint32_t>(token) < vocabulary;
}

/// A read-only view of tokens. Unless documented otherwise, a returned view is valid until the object that returned it
/// changes or is destroyed.
using TokenSpan = std::span<const Token>;

/// The origin of committed tokens.
enum class Origin : std::uint8_t {
  prompt,  ///< given by the caller: system prompt, user turn, tool result
  output,  ///< picked by the target
};

/// "No limit", for limits of type std::size_t. It has a name so that no ordinary number has a second meaning.
inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

/// A length of time in whole nanoseconds. Every std::chrono::duration of integers that is exact in nanoseconds converts
/// to it, and it converts to std::chrono::nanoseconds. A type of its own, because <chrono> takes longer to compile than
/// the core's other standard headers together.
class Duration {
 public:
  constexpr Duration() noexcept = default;
  constexpr explicit Duration(std::int64_t nanoseconds) noexcept : nanoseconds_(nanoseconds) {}
  template <class Chrono>
  requires requires(const Chrono& time) {
    requires std::numeric_limits<decltype(time.count())>::is_integer;
    requires std::int64_t { 1'000'000'000 }
    % Chrono::period::den == 0;
  }
  constexpr Duration(const Chrono& time) noexcept  // NOLINT(google-explicit-constructor): exact
      : nanoseconds_(static_cast<std::int64_t>(time.count()) *
                     (1'000'000'000 / Chrono::period::den * Chrono::period::num)) {}

  template <class Chrono>
  requires(std::numeric_limits<typename Chrono::rep>::is_integer&& Chrono::period::num == 1 &&
           Chrono::period::den == 1'000'000'000) constexpr
  operator Chrono() const noexcept {  // NOLINT(google-explicit-constructor): exact
    return Chrono(static_cast<typename Chrono::rep>(nanoseconds_));
  }

  /// Returns the nanoseconds.
  [[nodiscard]] constexpr std::int64_t count() const noexcept { return nanoseconds_; }

  friend constexpr bool operator==(Duration, Duration) noexcept = default;
  friend constexpr auto operator<=>(Duration, Duration) noexcept = default;

 private:
  std::int64_t nanoseconds_ = 0;
};

/// A probability in fixed point: 2^30 represents one. Drafts depend on integers only, so they are
/// the same with every compiler and optimisation level, even with -ffast-math. Tensor-parallel ranks hang if they draft
/// different tokens.
class Probability {
 public:
  static constexpr std::uint32_t scale = detail::ProbabilityScale::one;

  constexpr Probability() noexcept = default;
  static constexpr Probability one() noexcept { return from_raw(scale); }
  static constexpr Probability zero() noexcept { return from_raw(0); }
  /// Returns the probability raw / 2^30, clamped to one.
  static constexpr Probability from_raw(std::uint32_t raw) noexcept {
    Probability p;
    p.raw_ = std::min(raw, scale);
    return p;
  }
  /// Returns part / whole, clamped to one and rounded down. Returns zero if `whole` is 0.
  static constexpr Probability ratio(std::uint32_t part, std::uint32_t whole) noexcept {
    return whole == 0 ? zero()
                      : from_raw(static_cast<std::uint32_t>(std::uint64_t{std::min(part, whole)} * scale / whole));
  }

  [[nodiscard]] constexpr std::uint32_t raw() const noexcept { return raw_; }
  /// Returns the probability as a number in [0, 1]. It is for display and reports: no decision of the library uses it.
  [[nodiscard]] constexpr double to_double() const noexcept { return static_cast<double>(raw_) / scale; }

  friend constexpr Probability operator*(Probability a, Probability b) noexcept {
    return from_raw(static_cast<std::uint32_t>(detail::ProbabilityScale::multiply(std::uint64_t{a.raw_}, b.raw_)));
  }
  // Declared, because nvcc before 13.3 does not define the one that operator<=> implies.
  friend constexpr bool operator==(Probability, Probability) noexcept = default;
  friend constexpr auto operator<=>(Probability, Probability) noexcept = default;

 private:
  std::uint32_t raw_ = 0;
};

}}  // namespace reprise
