// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/input_error.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"

/// \file Merges the sorted places of several texts.

namespace reprise::indexing {

using reprise::detail::CorpusWord;
using reprise::detail::SuffixText;

/// A part of a text that the merged text has too, and its place there.
struct KeptText {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t merged = 0;
};

/// A text with all its places in order, as a file holds them.
template <CorpusWord Word>
struct MergeSource {
  SuffixText<Word> text;
  std::span<const std::byte> places;  ///< place_bytes for each, lowest byte first
  std::size_t place_bytes = 4;
  std::vector<KeptText> kept;  ///< rising, without overlaps
  std::string path;            ///< for messages
};

/// The remaining places of a source, read in blocks, so that the cache misses of a block overlap.
template <CorpusWord Word>
class MergeCursor {
 public:
  explicit MergeCursor(const MergeSource<Word>& source) : source_(&source) { fill(); }

  [[nodiscard]] bool done() const { return at_ == size_; }
  [[nodiscard]] std::uint64_t key() const { return block_[at_].key; }
  [[nodiscard]] std::uint64_t merged() const { return block_[at_].merged; }
  void advance() {
    if (++at_ == size_) fill();
  }

  /// True if the next suffix of this source sorts before that of `other`. Equal ones: if `wins_ties`.
  [[nodiscard]] bool before(const MergeCursor& other, std::size_t depth, bool wins_ties) const {
    constexpr std::size_t lanes = SuffixText<Word>::lanes;
    std::uint64_t one = key();
    std::uint64_t two = other.key();
    for (std::size_t known = 0;; known += lanes) {
      if (known != 0) {
        one = source_->text.key(block_[at_].place + known);
        two = other.source_->text.key(other.block_[other.at_].place + known);
      }
      if (depth - known < lanes) {
        const std::size_t dropped = 8 * sizeof(Word) * (lanes - (depth - known));
        one >>= dropped;
        two >>= dropped;
      }
      if (one != two) return one < two;
      constexpr std::uint64_t last_lane = static_cast<Word>(~Word{0});
      if (depth - known <= lanes || (one & last_lane) == 0) return wins_ties;
    }
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::uint64_t merged = 0;
    std::size_t place = 0;
  };

  void fill() {
    at_ = size_ = 0;
    const std::size_t bytes = source_->place_bytes;
    while (size_ == 0 && next_ < source_->places.size()) {
      for (; size_ < block_.size() && next_ < source_->places.size(); next_ += bytes) {
        std::uint64_t place = 0;
        for (std::size_t i = 0; i < bytes; ++i)
          place |= std::to_integer<std::uint64_t>(source_->places[next_ + i]) << (8 * i);
        if (place >= source_->text.size())
          throw tools::InputError(source_->path + ": is damaged: suffix " + std::to_string(next_ / bytes) +
                                  " has the place " + std::to_string(place) + " after the end of the text");
        Entry& entry = block_[size_];
        entry.place = static_cast<std::size_t>(place);
        if (!keep(entry)) continue;
        source_->text.prefetch(entry.place);
        ++size_;
      }
      for (std::size_t i = 0; i < size_; ++i) block_[i].key = source_->text.key(block_[i].place);
    }
  }

  /// Sets the merged place. Returns false if the merged text leaves the place out.
  bool keep(Entry& entry) const {
    const auto after = std::upper_bound(source_->kept.begin(), source_->kept.end(), entry.place,
                                        [](std::uint64_t place, const KeptText& part) { return place < part.begin; });
    if (after == source_->kept.begin()) return false;
    const KeptText& part = *std::prev(after);
    entry.merged = part.merged + (entry.place - part.begin);
    return entry.place < part.end;
  }

  const MergeSource<Word>* source_;
  std::size_t next_ = 0;  // in the bytes of the places
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::array<Entry, 64> block_;
};

/// Calls take(span of places) with the places of the merged text in order: by the first `depth` tokens, then by source,
/// then by place. Calls report(suffixes) now and then, which may throw to stop. Returns the number of places.
///
/// Method: a heap of the next suffix of each source. Cost of a suffix: one cache miss for its text, which overlaps with
/// others, and log2(sources) comparisons of 8 bytes; equal suffixes compare all `depth` tokens.
template <CorpusWord Word, class Take>
std::uint64_t merge_places(const std::vector<MergeSource<Word>>& sources, std::size_t depth, const Take& take,
                           const std::function<void(std::size_t)>& report) {
  std::vector<MergeCursor<Word>> cursors;
  for (const auto& source : sources) cursors.emplace_back(source);
  std::vector<std::size_t> heap;  // cursors with suffixes left; none sorts before its parent
  const auto before = [&](std::size_t a, std::size_t b) { return cursors[a].before(cursors[b], depth, a < b); };
  const auto sift = [&](std::size_t at) {
    for (std::size_t child = 2 * at + 1; child < heap.size(); child = 2 * at + 1) {
      if (child + 1 < heap.size() && before(heap[child + 1], heap[child])) ++child;
      if (!before(heap[child], heap[at])) return;
      std::swap(heap[child], heap[at]);
      at = child;
    }
  };
  for (std::size_t i = 0; i < cursors.size(); ++i)
    if (!cursors[i].done()) heap.push_back(i);
  for (std::size_t at = heap.size() / 2; at-- > 0;) sift(at);

  std::vector<std::uint64_t> places;
  std::uint64_t count = 0;
  const auto flush = [&] {
    take(std::span<const std::uint64_t>(places));
    report(places.size());
    count += places.size();
    places.clear();
  };
  while (!heap.empty()) {
    MergeCursor<Word>& next = cursors[heap[0]];
    places.push_back(next.merged());
    if (places.size() == 4096) flush();
    next.advance();
    if (next.done()) {
      heap[0] = heap.back();
      heap.pop_back();
    }
    sift(0);
  }
  flush();
  return count;
}

}  // namespace reprise::indexing
