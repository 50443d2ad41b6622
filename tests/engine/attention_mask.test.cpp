// SPDX-License-Identifier: Apache-2.0
#include "reprise/engine/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::attention_mask_test {
namespace {

using ::testing::ElementsAre;
using Parents = std::vector<NodeIndex>;

/// A pass as an attention mask describes it.
struct Shape {
  Parents parents;
  std::size_t pending = 1;
  std::size_t cached = 0;

  [[nodiscard]] std::size_t rows() const { return pending + parents.size(); }
  /// True if row `i` sees column `j`, written straight from the contract.
  [[nodiscard]] bool sees(std::size_t i, std::size_t j) const {
    if (j < cached) return true;
    const std::size_t other = j - cached;
    if (other >= rows()) return false;
    if (other == i) return true;
    if (i < pending) return other < i;
    if (other < pending) return true;
    for (NodeIndex up = parents[i - pending]; up != anchor_parent; up = parents[static_cast<std::size_t>(up)])
      if (static_cast<std::size_t>(up) == other - pending) return true;
    return false;
  }
};

Shape random_shape(testing::Random& random, std::size_t most_drafted, std::size_t most_cached) {
  Shape shape{{}, random.below(4), random.below(3) == 0 ? 0 : random.below(most_cached + 1)};
  const std::size_t drafted = random.below(most_drafted);
  for (std::size_t row = 0; row < drafted; ++row)
    shape.parents.push_back(static_cast<NodeIndex>(random.below(row + 1)) - 1);
  return shape;
}

template <class Cell>
std::vector<Cell> naive(const Shape& shape, std::size_t stride, Cell seen, Cell hidden) {
  std::vector<Cell> mask;
  for (std::size_t i = 0; i < shape.rows(); ++i)
    for (std::size_t j = 0; j < stride; ++j) mask.push_back(shape.sees(i, j) ? seen : hidden);
  return mask;
}

TEST(AttentionMask, IsTheOneOfItsComment) {
  std::vector<std::uint8_t> mask(24, 7);
  attention_mask<std::uint8_t>(Parents{-1, -1, 0}, 1, 2, 6, mask);
  EXPECT_THAT(mask, ElementsAre(1, 1, 1, 0, 0, 0,  //
                                1, 1, 1, 1, 0, 0,  //
                                1, 1, 1, 0, 1, 0,  //
                                1, 1, 1, 1, 0, 1));
}

TEST(AttentionMask, TakesTheCellsThatItIsGiven) {
  std::vector<std::uint16_t> half(6, 7);  // 16-bit floats by their bits
  attention_mask<std::uint16_t>(Parents{-1}, 1, 1, 3, half, {.seen = 0, .hidden = 0xfc00});
  EXPECT_THAT(half, ElementsAre(0, 0, 0xfc00, 0, 0, 0));
  const auto flags = std::make_unique<bool[]>(6);
  attention_mask<bool>(Parents{-1}, 1, 1, 3, std::span<bool>(flags.get(), 6));
  EXPECT_THAT(std::span<const bool>(flags.get(), 6), ElementsAre(true, true, false, true, true, true));
}

TEST(AttentionMask, IsThatOfTheContractForAnyTreeCacheAndStride) {
  testing::Random random(1);
  for (std::size_t round = 0; round < 300; ++round) {
    const Shape shape = random_shape(random, 40, 200);
    const std::size_t stride = shape.cached + shape.rows() + random.below(70);
    constexpr float none = -std::numeric_limits<float>::infinity();
    // One cell more than needed, which must stay unwritten.
    std::vector<std::uint8_t> bytes(shape.rows() * stride + 1, 7);
    std::vector<float> floats(bytes.size(), 7);
    attention_mask<std::uint8_t>(shape.parents, shape.pending, shape.cached, stride, bytes);
    attention_mask<float>(shape.parents, shape.pending, shape.cached, stride, floats);
    ASSERT_EQ(bytes.back(), 7);
    ASSERT_EQ(floats.back(), 7);
    bytes.pop_back();
    floats.pop_back();
    ASSERT_EQ(bytes, naive<std::uint8_t>(shape, stride, 1, 0));
    ASSERT_EQ(floats, naive<float>(shape, stride, 0, none));
  }
}

TEST(AttentionMask, InBitsIsTheSame) {
  testing::Random random(2);
  for (std::size_t round = 0; round < 300; ++round) {
    const Shape shape = random_shape(random, 40, 200);
    const std::size_t stride = mask_words(shape.cached + shape.rows()) + random.below(2);
    std::vector<std::uint64_t> bits(shape.rows() * stride + 1, 0x5555);
    attention_mask_bits(shape.parents, shape.pending, shape.cached, stride, bits);
    ASSERT_EQ(bits.back(), 0x5555U);
    for (std::size_t i = 0; i < shape.rows(); ++i)
      for (std::size_t j = 0; j < 64 * stride; ++j)
        ASSERT_EQ((bits[i * stride + j / 64] >> (j % 64) & 1) != 0, shape.sees(i, j)) << i << ' ' << j;
  }
}

TEST(AttentionMask, OfNothingIsEmpty) {
  attention_mask<float>({}, 0, 0, 0, {});
  attention_mask_bits({}, 0, 0, 0, {});
  attention_mask<float>({}, 0, 5, 5, {});
  attention_mask_bits({}, 0, 5, 1, {});
}

}  // namespace
}  // namespace reprise::attention_mask_test
