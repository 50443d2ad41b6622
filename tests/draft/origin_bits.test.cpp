// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/origin_bits.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/streams.hpp"

namespace reprise::detail::origin_bits_test {
namespace {

TEST(OriginBits, CostOneBitForEachToken) {
  OriginBits bits;
  ASSERT_TRUE(bits.reserve(10'000));
  const std::size_t bytes = bits.memory_bytes();
  EXPECT_EQ(bytes, 157 * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < 10'000; ++i) bits.append(1, i % 2 == 0 ? Origin::output : Origin::prompt);
  EXPECT_EQ(bits.memory_bytes(), bytes);
}

TEST(OriginBits, AreThoseOfAVectorWhateverIsAppendedAndTruncated) {
  testing::SplitMix random(1);
  for (int round = 0; round < 300; ++round) {
    OriginBits bits;
    ASSERT_EQ(bits.of(0), Origin::prompt) << "before anything is known";
    std::vector<Origin> model;
    for (int step = 0; step < 40; ++step) {
      if (random.one_in(4)) {
        const std::size_t size = random.one_in(8) ? 0 : random.below(model.size() + 1);
        bits.truncate(size);
        model.resize(size);
      } else if (random.one_in(40)) {
        bits.clear();
        model.clear();
      } else {
        const Origin origin = random.one_in(2) ? Origin::prompt : Origin::output;
        const std::size_t count = random.one_in(4) ? random.between(60, 200) : random.between(1, 6);
        bits.append(count, origin);
        model.resize(model.size() + count, origin);
      }
      for (std::size_t i = 0; i < model.size(); ++i) ASSERT_EQ(bits.of(i), model[i]) << "at " << i;
    }
  }
}

}  // namespace
}  // namespace reprise::detail::origin_bits_test
