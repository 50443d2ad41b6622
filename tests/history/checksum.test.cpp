// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/detail/byte_format.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "reprise/history/snapshot.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::detail::checksum_test {
namespace {

constexpr std::uint64_t crc64_of(const char* text, std::size_t size) {
  std::array<std::byte, 16> bytes{};
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(text[i]);
  return crc64(std::span<const std::byte>(bytes).first(size));
}
static_assert(crc64_of("123456789", 9) == 0x995dc9bbdf1939fa, "the check value of CRC-64/XZ");
static_assert(crc64_of("", 0) == 0);

template <class T>
constexpr bool comes_back(T value) {
  std::array<std::byte, sizeof(T) + 1> bytes{};
  store_little(value, bytes.data() + 1);
  return load_little<T>(bytes.data() + 1) == value && bytes[0] == std::byte{0} &&
         bytes[1] == static_cast<std::byte>(static_cast<std::uint64_t>(value) & 255);
}
static_assert(comes_back<std::uint8_t>(255) && comes_back<std::int8_t>(-1));
static_assert(comes_back<std::int16_t>(-2) && comes_back<std::uint16_t>(0x1234));
static_assert(comes_back(std::numeric_limits<std::int32_t>::min()) && comes_back<std::uint32_t>(0x89abcdef));
static_assert(comes_back(std::numeric_limits<std::int64_t>::min()) && comes_back<std::uint64_t>(0x0123456789abcdef));

std::vector<std::byte> random_bytes(std::size_t size) {
  testing::Random random(size);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() & 255);
  return bytes;
}

TEST(Checksum, IsThatOfTheBitsOneByOneAtEveryLengthAndAddress) {
  const std::vector<std::byte> bytes = random_bytes(64);
  for (std::size_t begin = 0; begin < 9; ++begin)
    for (std::size_t size = 0; begin + size <= bytes.size(); ++size) {
      const auto part = std::span(bytes).subspan(begin, size);
      std::uint64_t crc = ~std::uint64_t{0};
      for (const std::byte byte : part) {
        crc ^= std::to_integer<std::uint64_t>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xc96c5795d7870f42 : 0);
      }
      ASSERT_EQ(crc64(part), ~crc) << begin << " " << size;
    }
}

TEST(Checksum, FindsEveryPairOfWrongBitsOfAShortSection) {
  std::vector<std::byte> bytes = random_bytes(40);
  const std::uint64_t right = crc64(bytes);
  const auto flip = [&](std::size_t bit) { bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8)); };
  for (std::size_t first = 0; first < bytes.size() * 8; ++first) {
    flip(first);
    ASSERT_NE(crc64(bytes), right) << first;
    for (std::size_t second = first + 1; second < bytes.size() * 8; ++second) {
      flip(second);
      ASSERT_NE(crc64(bytes), right) << first << " " << second;
      flip(second);
    }
    flip(first);
  }
}

TEST(Checksum, TellsZerosByTheirNumber) {
  const std::vector<std::byte> zeros(100);
  for (std::size_t size = 1; size < zeros.size(); ++size)
    ASSERT_NE(crc64(std::span(zeros).first(size)), crc64(std::span(zeros).first(size - 1)));
}

}  // namespace
}  // namespace reprise::detail::checksum_test
