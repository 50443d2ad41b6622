// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

/// \file The parts of small models, in float32 and as plain as possible. Every sum is taken in the order of its terms,
/// so the same inputs give the same bits.
namespace reprise::testing {

using Vector = std::vector<float>;

/// Returns a number in [-1, 1).
inline float random_weight(Random& random) { return static_cast<float>(random.next() >> 40) / 8388608.0F - 1.0F; }

inline float dot(std::span<const float> a, std::span<const float> b) {
  const float* x = a.data();  // tests also run unoptimised
  const float* y = b.data();
  float sum = 0;
  for (std::size_t i = 0, n = a.size(); i < n; ++i) sum += x[i] * y[i];
  return sum;
}
inline void add(std::span<float> to, std::span<const float> more, float share = 1) {
  float* x = to.data();
  const float* y = more.data();
  for (std::size_t i = 0, n = to.size(); i < n; ++i) x[i] += share * y[i];
}

/// Fixed random weights of variance gain^2 / columns: at gain 1 a product is about as large as its input.
class Matrix {
 public:
  Matrix(std::size_t rows, std::size_t columns, Random& random, float gain = 1) : columns_(columns) {
    const float scale = gain * std::sqrt(3.0F / static_cast<float>(columns));
    values_.resize(rows * columns);
    for (float& value : values_) value = scale * random_weight(random);
  }
  [[nodiscard]] std::size_t rows() const noexcept { return values_.size() / columns_; }
  [[nodiscard]] std::span<const float> row(std::size_t i) const noexcept {
    return std::span(values_).subspan(i * columns_, columns_);
  }
  /// Returns the row of a token. Hostile drafts run too, so every token has a row: the vocabulary repeats.
  [[nodiscard]] std::span<const float> of(Token token) const noexcept {
    return row(static_cast<std::uint32_t>(token) % rows());
  }
  [[nodiscard]] Vector operator*(std::span<const float> x) const {
    Vector product(rows());
    for (std::size_t i = 0; i < product.size(); ++i) product[i] = dot(row(i), x);
    return product;
  }

 private:
  std::size_t columns_;
  std::vector<float> values_;
};

/// RMSNorm without weights (Zhang and Sennrich 2019).
inline Vector normalized(std::span<const float> x) {
  const float scale = 1 / std::sqrt(dot(x, x) / static_cast<float>(x.size()) + 1e-5F);
  Vector result(x.begin(), x.end());
  for (float& value : result) value *= scale;
  return result;
}

/// Rotates pairs of numbers by angles that grow with the position, the same in each head (RoPE, Su et al. 2021).
inline void rotate(std::span<float> heads, std::size_t head_size, std::size_t position) {
  for (std::size_t i = 0; i < heads.size(); i += 2) {
    const float exponent = static_cast<float>(i % head_size) / static_cast<float>(head_size);
    const float angle = static_cast<float>(position) * std::pow(1000.0F, -exponent);
    const float cosine = std::cos(angle);
    const float sine = std::sin(angle);
    const float first = heads[i];
    const float second = heads[i + 1];
    heads[i] = first * cosine - second * sine;
    heads[i + 1] = first * sine + second * cosine;
  }
}

/// Returns exp(x * factor), divided by the sum.
inline Vector softmax(std::span<const float> x, float factor = 1) {
  Vector result(x.begin(), x.end());
  const float most = *std::max_element(result.begin(), result.end());
  float sum = 0;
  for (float& value : result) sum += value = std::exp((value - most) * factor);
  for (float& value : result) value /= sum;
  return result;
}

inline float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

}  // namespace reprise::testing
