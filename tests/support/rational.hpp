// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ostream>
#include <stdexcept>

namespace reprise::testing {

/// An exact, reduced fraction for proofs without rounding. Throws on overflow of 64 bits, so a result is never wrong.
class Rational {
 public:
  constexpr Rational() = default;
  constexpr explicit Rational(std::int64_t whole) : numerator_(whole) {}
  constexpr Rational(std::int64_t numerator, std::int64_t denominator) {
    if (denominator <= 0) throw std::domain_error("Rational: the denominator has to be positive");
    const std::int64_t common = std::gcd(numerator, denominator);
    numerator_ = numerator / common;
    denominator_ = denominator / common;
  }

  [[nodiscard]] constexpr std::int64_t numerator() const { return numerator_; }
  [[nodiscard]] constexpr std::int64_t denominator() const { return denominator_; }
  [[nodiscard]] double to_double() const { return static_cast<double>(numerator_) / static_cast<double>(denominator_); }

  friend constexpr Rational operator-(Rational a) { return {-a.numerator_, a.denominator_}; }
  friend constexpr Rational operator+(Rational a, Rational b) {
    const std::int64_t common = std::gcd(a.denominator_, b.denominator_);
    const std::int64_t of_a = times(a.numerator_, b.denominator_ / common);
    const std::int64_t of_b = times(b.numerator_, a.denominator_ / common);
    if (of_b > 0 ? of_a > most - of_b : of_a < -most - of_b) throw std::overflow_error("Rational: sum");
    return {of_a + of_b, times(a.denominator_ / common, b.denominator_)};
  }
  friend constexpr Rational operator-(Rational a, Rational b) { return a + -b; }
  friend constexpr Rational operator*(Rational a, Rational b) {
    const std::int64_t left = std::gcd(a.numerator_, b.denominator_);
    const std::int64_t right = std::gcd(b.numerator_, a.denominator_);
    return {times(a.numerator_ / left, b.numerator_ / right), times(a.denominator_ / right, b.denominator_ / left)};
  }
  friend constexpr Rational operator/(Rational a, Rational b) {
    if (b.numerator_ == 0) throw std::domain_error("Rational: division by zero");
    const bool negative = b.numerator_ < 0;
    return a * Rational(negative ? -b.denominator_ : b.denominator_, negative ? -b.numerator_ : b.numerator_);
  }
  friend constexpr bool operator==(Rational a, Rational b) = default;
  friend constexpr std::strong_ordering operator<=>(Rational a, Rational b) { return (a - b).numerator_ <=> 0; }
  friend std::ostream& operator<<(std::ostream& out, Rational a) {
    return out << a.numerator_ << '/' << a.denominator_;
  }

 private:
  static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t times(std::int64_t a, std::int64_t b) {
    const std::int64_t size = b < 0 ? -b : b;
    if (size != 0 && (a > most / size || a < -(most / size))) throw std::overflow_error("Rational: product");
    return a * b;
  }

  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
};

}  // namespace reprise::testing
