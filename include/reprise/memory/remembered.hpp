// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise {

/// Names a remembered sequence, so that it can be removed. Several may share a name.
using SequenceName = std::uint64_t;

/// What a memory has done since it was made or cleared.
struct MemoryCounts {
  std::uint64_t stored = 0;      ///< tokens that were stored
  std::uint64_t duplicates = 0;  ///< tokens that were not, because they were there
  std::uint64_t refused = 0;     ///< tokens below 0, or at or beyond MemoryOptions::vocabulary
  std::uint64_t evicted = 0;     ///< tokens that gave way to others
  std::uint64_t spared = 0;      ///< segments that were next to give way, and had been of use
  std::uint64_t removed = 0;     ///< tokens that remove() took out
  friend bool operator==(const MemoryCounts&, const MemoryCounts&) = default;
};

/// A place in a memory that ends like a text does.
template <class Place>
struct BasicMemoryMatch {
  Place next = 0;                ///< where it goes on
  std::uint32_t agreements = 0;  ///< bit i: the token i + 1 places back agrees
  friend bool operator==(const BasicMemoryMatch&, const BasicMemoryMatch&) = default;
};

/// Text that a memory holds in one run: from where it begins, or what is left of it does, to where it breaks off.
template <class Place>
struct BasicMemoryPiece {
  SequenceName sequence = 0;
  Place first = 0;       ///< the place of its first token
  std::size_t size = 0;  ///< tokens
  friend bool operator==(const BasicMemoryPiece&, const BasicMemoryPiece&) = default;
};

}  // namespace reprise
