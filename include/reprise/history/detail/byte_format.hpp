// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

/// \file Numbers in the bytes of snapshots and corpora, and the checksums of snapshots.

namespace reprise { inline namespace v0 { namespace detail {

/// Returns the number stored at `from`, lowest byte first, on every machine. The address need not be aligned.
template <std::integral T>
constexpr T load_little(const std::byte* from) noexcept {
  T value = 0;
  if (std::endian::native == std::endian::little && !std::is_constant_evaluated()) {
    std::memcpy(&value, from, sizeof(T));
  } else {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
    value = static_cast<T>(static_cast<std::make_unsigned_t<T>>(bits));
  }
  return value;
}

template <std::integral T>
constexpr void store_little(T value, std::byte* to) noexcept {
  const auto bits = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(bits >> (8 * i) & 255);
}

/// One table for each of the eight bytes processed in a step ("slicing by 8", Kounavis and Berry 2005).
inline constexpr auto crc64_tables = [] {
  constexpr std::uint64_t polynomial = 0xc96c5795d7870f42;  // the polynomial of ECMA-182, lowest bit first
  std::array<std::array<std::uint64_t, 256>, 8> tables{};
  for (std::size_t i = 0; i < 256; ++i) {
    std::uint64_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0);
    tables[0][i] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k)
    for (std::size_t i = 0; i < 256; ++i) tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
  return tables;
}();

/// Returns the CRC-64/XZ of the bytes. It detects every single wrong bit and all errors within 64 consecutive bits,
/// however long the data is. Other damage goes undetected in one case out of 2^64. CRC-32C would guarantee no more for
/// these sizes (its Hamming distance of 4 ends at 256 MiB) and would miss one damaged section in 2^32. The checksum is
/// not a signature: anyone who can write the bytes can write the checksum.
///
/// Cost: a pass over the bytes, eight at a time; tables of 16 KB.
constexpr std::uint64_t crc64(std::span<const std::byte> bytes) noexcept {
  std::uint64_t crc = ~std::uint64_t{0};
  std::size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    const std::uint64_t word = crc ^ load_little<std::uint64_t>(bytes.data() + at);
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= crc64_tables[7 - i][word >> (8 * i) & 255];
  }
  for (; at < bytes.size(); ++at)
    crc = crc >> 8 ^ crc64_tables[0][(crc ^ std::to_integer<std::uint64_t>(bytes[at])) & 255];
  return ~crc;
}

/// The constants of the format.
struct SnapshotFormat {
  /// The first byte is not ASCII, and the line endings reveal a transfer in text mode. Modelled on the PNG signature.
  static constexpr std::array<std::uint8_t, 8> magic = {0x93, 'R', 'P', 'S', '\r', '\n', 0x1a, '\n'};
  static constexpr std::uint32_t byte_order = 0x01020304;
  static constexpr std::uint32_t version = 1;
  static constexpr std::size_t header_bytes = 48;
  static constexpr std::size_t section_header_bytes = 28;
  /// The maximum number of sections, small enough for comparing all pairs.
  static constexpr std::size_t most_sections = 64;
};

}}}  // namespace reprise::detail
