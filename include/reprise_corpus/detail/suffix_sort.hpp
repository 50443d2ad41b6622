// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/prefetch.hpp"
#include "reprise/history/detail/byte_format.hpp"

/// \file Sorts places of a text by the tokens that follow. The order is that of a corpus: the first `depth` tokens
/// decide, a text that ends earlier comes first, and equal places keep their order in the text.

namespace reprise { inline namespace v0 { namespace detail {

/// A word of the text of a corpus: 16 or 32 bits. The largest value is the separator after each document.
template <class W>
concept CorpusWord = std::same_as<W, std::uint16_t> || std::same_as<W, std::uint32_t>;

/// A view of the text of a corpus: words with the lowest byte first, in memory of any alignment.
template <CorpusWord Word>
class SuffixText {
 public:
  /// The number of tokens in a key.
  static constexpr std::size_t lanes = sizeof(std::uint64_t) / sizeof(Word);
  static constexpr Word separator = std::numeric_limits<Word>::max();

  explicit constexpr SuffixText(std::span<const std::byte> bytes) noexcept
      : data_(bytes.data()), size_(bytes.size() / sizeof(Word)) {}

  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Word word(std::uint64_t at) const noexcept { return load_little<Word>(data_ + at * sizeof(Word)); }
  /// Returns the words from `at` on that fill 64 bits, the first in the lowest bits. Requires that the text has them.
  [[nodiscard]] std::uint64_t bits(std::uint64_t at) const noexcept {
    return load_little<std::uint64_t>(data_ + at * sizeof(Word));
  }
  /// Prefetches the word at `at`, if the text has it.
  void prefetch(std::uint64_t at) const noexcept {
    if (at < size_) reprise::detail::prefetch(data_ + at * sizeof(Word));
  }

  /// Returns the next `lanes` tokens from `at`, the first in the highest bits. Keys compare like the tokens: each token
  /// counts one more than its id, and 0 stands for the end of the document or of the text, and for all that follows it.
  [[nodiscard]] std::uint64_t key(std::uint64_t at) const noexcept {
    std::uint64_t bits = 0;
    if (at + lanes <= size_) {
      bits = std::rotl(this->bits(at), 32);
      if constexpr (sizeof(Word) == 2) bits = (bits & 0xffff0000ffff0000) >> 16 | (bits & 0x0000ffff0000ffff) << 16;
    } else {
      for (std::size_t lane = 0; lane < lanes; ++lane)
        bits = bits << lane_bits | (at + lane < size_ ? word(at + lane) : separator);
    }
    return until_end(counted_from_one(bits));
  }
  /// Returns a mask of the first `left` tokens of a key; of all tokens if it has fewer. Requires left > 0.
  static constexpr std::uint64_t mask(std::size_t left) noexcept {
    constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    return left >= lanes ? all : ~(all >> (lane_bits * left));
  }
  /// Returns the highest bit of each lane that is 0.
  static constexpr std::uint64_t zero_lanes(std::uint64_t bits) noexcept {
    return ~(((bits & ~highest_bits) + ~highest_bits) | bits) & highest_bits;
  }

 private:
  static constexpr std::size_t lane_bits = 8 * sizeof(Word);
  static constexpr std::uint64_t lowest_bits = sizeof(Word) == 2 ? 0x0001000100010001 : 0x0000000100000001;
  static constexpr std::uint64_t highest_bits = lowest_bits << (lane_bits - 1);

  /// Adds 1 to each lane; the separator becomes 0.
  static constexpr std::uint64_t counted_from_one(std::uint64_t bits) noexcept {
    return ((bits & ~highest_bits) + lowest_bits) ^ (bits & highest_bits);
  }
  /// Clears all lanes after the first lane that is 0.
  static constexpr std::uint64_t until_end(std::uint64_t bits) noexcept {
    const std::uint64_t zeros = zero_lanes(bits);
    if (zeros == 0) return bits;
    const auto kept = static_cast<std::size_t>(std::countl_zero(zeros)) / lane_bits * lane_bits;
    return kept == 0 ? 0 : bits >> (64 - kept) << (64 - kept);
  }

  const std::byte* data_;
  std::size_t size_;
};

/// A place with the key that sorts it.
struct SuffixRecord {
  std::uint64_t key = 0;
  std::uint64_t place = 0;
};

/// Sorts records by the text at their places: most significant digit first, one key of 8 bytes at a time (Bentley and
/// Sedgewick 1997; Kärkkäinen and Rantala 2008). Only records with equal keys load the next key. Every step is stable,
/// so that equal suffixes keep the order in which they came.
///
/// Cost for n records: each key is loaded once, which is at most one cache miss, and moved at most 2 x 8 times. Equal
/// suffixes cost O(n x depth / lanes), because a key that all records share moves nothing. The stack holds at most
/// 8 x depth / lanes small frames.
template <CorpusWord Word>
class SuffixSorter {
 public:
  /// `scratch` has room for the largest span given to sort().
  SuffixSorter(SuffixText<Word> text, std::size_t depth, std::span<SuffixRecord> scratch) noexcept
      : text_(text), depth_(depth), scratch_(scratch) {}

  /// Sorts records whose suffixes agree in their first `known` < depth tokens. Their places rise; their keys are not
  /// read.
  void sort(std::span<SuffixRecord> records, std::size_t known) noexcept {
    REPRISE_EXPECTS(records.size() <= scratch_.size() && known < depth_);
    load(records, known);
    sort_loaded(records, known);
  }

 private:
  using Records = std::span<SuffixRecord>;
  static constexpr std::size_t lanes = SuffixText<Word>::lanes;
  static constexpr std::size_t few = 32;  // records that are sorted by insertion
  static constexpr int digit_bits = 8;

  /// Loads the keys of the tokens from `known` on. Tokens from `depth` on count as 0.
  void load(Records records, std::size_t known) const noexcept {
    constexpr std::size_t ahead = 16;
    const std::uint64_t mask = SuffixText<Word>::mask(depth_ - known);
    const std::size_t size = records.size();
    for (std::size_t i = 0; i < std::min(ahead, size); ++i) text_.prefetch(records[i].place + known);
    for (std::size_t i = 0; i < size; ++i) {
      if (i + ahead < size) text_.prefetch(records[i + ahead].place + known);
      records[i].key = text_.key(records[i].place + known) & mask;
    }
  }

  /// Sorts records by their keys, and those with equal keys by the tokens after these.
  void sort_loaded(Records records, std::size_t known) noexcept {
    if (records.size() < 2) return;
    if (records.size() <= few) {
      insert(records);
      return for_each_run(
          records, [](std::uint64_t key) { return key; }, [&](Records equal) { deepen(equal, known); });
    }
    std::uint64_t differences = 0;
    for (const SuffixRecord& record : records) differences |= record.key ^ records[0].key;
    if (differences == 0) return deepen(records, known);
    const int shift = std::max(64 - std::countl_zero(differences) - digit_bits, 0);
    distribute(records, shift);
    for_each_run(
        records, [shift](std::uint64_t key) { return key >> shift; }, [&](Records part) { sort_loaded(part, known); });
  }

  /// Sorts records that agree in their keys, unless the document or the depth ends there.
  void deepen(Records records, std::size_t known) noexcept {
    constexpr std::uint64_t last_lane = std::numeric_limits<Word>::max();
    if (known + lanes >= depth_ || (records[0].key & last_lane) == 0) return;
    load(records, known + lanes);
    sort_loaded(records, known + lanes);
  }

  /// Calls visit(run) for each run of at least two neighbours that agree in part_of(key).
  template <class PartOf, class Visit>
  static void for_each_run(Records records, PartOf part_of, Visit visit) noexcept {
    for (std::size_t from = 0, to = 0; from < records.size(); from = to) {
      const std::uint64_t part = part_of(records[from].key);
      for (to = from + 1; to < records.size() && part_of(records[to].key) == part;) ++to;
      if (to - from > 1) visit(records.subspan(from, to - from));
    }
  }

  static void insert(Records records) noexcept {
    for (std::size_t i = 1; i < records.size(); ++i) {
      const SuffixRecord entering = records[i];
      std::size_t at = i;
      for (; at > 0 && records[at - 1].key > entering.key; --at) records[at] = records[at - 1];
      records[at] = entering;
    }
  }

  /// Sorts records by the digit of their keys at `shift`. All bits above that digit are equal.
  void distribute(Records records, int shift) noexcept {
    constexpr std::uint64_t mask = (std::uint64_t{1} << digit_bits) - 1;
    std::array<std::size_t, std::size_t{1} << digit_bits> begins{};
    for (const SuffixRecord& record : records) ++begins[record.key >> shift & mask];
    std::size_t sum = 0;
    for (std::size_t& begin : begins) sum += std::exchange(begin, sum);
    for (const SuffixRecord& record : records) scratch_[begins[record.key >> shift & mask]++] = record;
    std::copy_n(scratch_.begin(), records.size(), records.begin());
  }

  SuffixText<Word> text_;
  std::size_t depth_;
  Records scratch_;
};

}}}  // namespace reprise::detail
