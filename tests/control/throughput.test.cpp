// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/throughput.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace reprise {
namespace {

TEST(Throughput, BeginsALittleAbovePlainDecoding) {
  EXPECT_NEAR(static_cast<double>(Throughput().rate()) / rate_one, 1.3, 1e-4);
}

TEST(Throughput, BecomesThatOfThePasses) {
  Throughput throughput;
  for (int i = 0; i < 500; ++i) throughput.add(i % 2 == 0 ? 5 : 1, i % 2 == 0 ? 2 * cost_one : cost_one);
  EXPECT_NEAR(static_cast<double>(throughput.rate()) / rate_one, 2, 0.05) << "six tokens in three plain passes";
}

TEST(Throughput, IsNeverBelowPlainDecoding) {
  Throughput throughput;
  for (int i = 0; i < 100; ++i) throughput.add(0, 100 * std::int64_t{cost_one});
  EXPECT_EQ(throughput.rate(), rate_one);
}

TEST(Throughput, TakesAnyNumbers) {
  Throughput throughput;
  for (int i = 0; i < 1000; ++i) throughput.add(static_cast<std::size_t>(-1), 0);
  EXPECT_GT(throughput.rate(), rate_one);
  for (int i = 0; i < 3000; ++i) throughput.add(1, ~Cost{0});
  EXPECT_EQ(throughput.rate(), rate_one);
}

}  // namespace
}  // namespace reprise
