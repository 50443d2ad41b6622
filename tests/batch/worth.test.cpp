// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "reprise/batch/detail/offered_nodes.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::detail::worth_test {
namespace {

TEST(Worth, OfAClassIsAPowerOfTwo) {
  for (std::size_t c = 0; c < worth_classes; ++c)
    EXPECT_NEAR(worth_of_class[c], 65536 * std::exp2(-static_cast<double>(c) / 32), 1.5) << c;
}

TEST(Worth, IsTheProbabilityOverTheTokensOfTheSequence) {
  testing::Random random(3);
  for (int round = 0; round < 20000; ++round) {
    const auto path = static_cast<std::uint32_t>(1 + random.below(1U << 30));
    const std::uint64_t sum = random.below(10 << 16);
    const double p = path / 1073741824.0;
    const double exact = p / (1 + static_cast<double>(sum) / 65536 + p / 2);
    const std::size_t c = worth_class(path, sum, 0);
    if (c == worth_classes) {
      ASSERT_LT(exact, std::exp2(-10.9));
    } else {
      ASSERT_NEAR(std::log2(worth_of_class[c] / 65536.0 / exact), 0.0, 2.6 / 32);
    }
  }
  EXPECT_EQ(worth_class(0, 0, 0), worth_classes);
  EXPECT_GT(worth_class(1 << 29, 0, 3 << 16), worth_class(1 << 29, 0, 0)) << "the divisor has a least value";
}

TEST(Worth, ClassBelowIsTheFirstThatIsWorthLess) {
  for (std::int64_t value = 40; value < 65536; value += 7) {
    const std::size_t c = class_below(value);
    ASSERT_LT(worth_of_class[c], static_cast<double>(value) * 1.05) << value;
    ASSERT_GT(worth_of_class[c - 1], static_cast<double>(value) * 0.95) << value;
  }
  EXPECT_EQ(class_below(0), worth_classes);
  EXPECT_EQ(class_below(1 << 20), 1U);
}

}  // namespace
}  // namespace reprise::detail::worth_test
