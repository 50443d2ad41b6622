// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "common/in_parallel.hpp"
#include "common/input_error.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"

/// \file Sorts all suffixes of a text in ranges that fit into memory.

namespace reprise::indexing {

using reprise::detail::CorpusWord;
using reprise::detail::SuffixRecord;
using reprise::detail::SuffixSorter;
using reprise::detail::SuffixText;

/// The settings of a sort. Its result depends on `depth` alone.
struct SortSettings {
  std::size_t vocabulary = 0;  ///< all ids of the text are below
  std::size_t depth = 64;      ///< tokens that are compared
  std::size_t memory = 0;      ///< bytes for places, records and counts; the text is not counted
  std::size_t threads = 1;
  /// Called with the number of suffixes that were sorted since the last call, from any thread. May throw, to stop.
  std::function<void(std::size_t)> report = [](std::size_t) {};
};

/// The bytes that counts take, and the smallest number for places and records.
struct SortMemory {
  static constexpr std::size_t least_room = std::size_t{1} << 16;
  static std::size_t counts(const SortSettings& settings) {
    return 2 * sizeof(std::uint64_t) * (settings.vocabulary + 1) * settings.threads;
  }
};

/// Throws InputError if the memory is too small for any text.
inline void check_memory(const SortSettings& settings) {
  const std::size_t least = SortMemory::counts(settings) + SortMemory::least_room;
  if (settings.memory < least)
    throw tools::InputError("--memory " + std::to_string(settings.memory) + ": too few bytes; a vocabulary of " +
                            std::to_string(settings.vocabulary) + " ids and " + std::to_string(settings.threads) +
                            " threads need at least " + std::to_string(least));
}

/// The numbers of a finished sort.
struct SortCounts {
  std::uint64_t suffixes = 0;
  std::size_t ranges = 0;  ///< ranges that were sorted at once
  std::size_t passes = 0;  ///< times that the whole text was read
};

/// Sorts the suffixes of a text by their first `depth` tokens, then by place. `Place` holds every place of the text.
///
/// Method: one pass over the text counts the suffixes by first token. Neighbouring tokens form a range for as long as
/// their suffixes fit into memory. A further pass collects the places of a range, token by token, and the suffixes of
/// each token are sorted. The suffixes of a token that alone do not fit are counted by their next token, and so on.
/// Suffixes that agree in all `depth` tokens need no sort, because the order of the text is their order.
///
/// Memory: sizeof(Place) bytes for each suffix of a range, 32 bytes for each suffix of the largest `threads` tokens in
/// it, and 16 bytes for each token id and thread.
///
/// Cost of a suffix: its token is read twice in order, its place is written and read once, and its first key is one
/// cache miss. Each digit that tells it from its neighbours moves 16 bytes three times.
template <CorpusWord Word, class Place>
class RangeSort {
 public:
  RangeSort(SuffixText<Word> text, const SortSettings& settings) : text_(text), settings_(settings) {
    lanes_ = settings.vocabulary + 1;
    check_memory(settings);
    room_ = settings.memory - SortMemory::counts(settings);
  }

  /// Calls take(span of places) with all suffixes in order, part by part, from this thread.
  template <class Take>
  SortCounts sort(const Take& take) {
    counts_ = {};
    std::vector<Word> prefix;
    sort_all(prefix, take);
    return counts_;
  }

 private:
  using Counts = std::vector<std::vector<std::uint64_t>>;  // of each part of the text and each lane

  static constexpr std::size_t streamed = 4096;  // places that are taken at once without a sort

  /// The lane of a token: its id + 1, or 0 for a separator.
  static std::size_t lane_of(Word word) { return static_cast<Word>(word + 1); }

  [[nodiscard]] std::size_t part_begin(std::size_t part) const {
    return text_.size() / settings_.threads * part + std::min(part, text_.size() % settings_.threads);
  }

  /// Calls visit(place, lane) for each place of a part of the text where `prefix` stands; `lane` is that of the token
  /// after it. Without a prefix, leaves out the separators.
  template <class Visit>
  void for_each_place(const std::vector<Word>& prefix, std::size_t begin, std::size_t end, Visit visit) const {
    const std::size_t n = prefix.size();
    for (std::size_t at = begin; at < end; ++at) {
      if (n == 0) {
        if (const std::size_t lane = lane_of(text_.word(at)); lane != 0) visit(at, lane);
        continue;
      }
      if (text_.word(at) != prefix[0] || text_.size() - at <= n) continue;
      std::size_t same = 1;
      while (same < n && text_.word(at + same) == prefix[same]) ++same;
      if (same == n) visit(at, lane_of(text_.word(at + n)));
    }
  }

  Counts count(const std::vector<Word>& prefix) {
    Counts counts(settings_.threads);
    tools::in_parallel(settings_.threads, settings_.threads, [&](std::size_t part) {
      counts[part].assign(lanes_, 0);
      for_each_place(prefix, part_begin(part), part_begin(part + 1),
                     [&](std::size_t, std::size_t lane) { ++counts[part][lane]; });
    });
    ++counts_.passes;
    return counts;
  }

  /// Sorts all suffixes that begin with `prefix`.
  template <class Take>
  void sort_all(std::vector<Word>& prefix, const Take& take) {
    if (prefix.size() == settings_.depth)
      return take_in_order(
          prefix, [](std::size_t) { return true; }, take);
    Counts counts;
    std::size_t lane = 0;
    while (lane < lanes_) {
      if (counts.empty()) counts = count(prefix);
      const std::size_t end = range_end(counts, lane);
      if (end > lane) {
        sort_range(prefix, lane, end, counts, take);
        lane = end;
        continue;
      }
      // The suffixes of this token alone do not fit.
      counts = {};
      if (lane == 0) {
        take_in_order(
            prefix, [](std::size_t next) { return next == 0; }, take);
      } else {
        prefix.push_back(static_cast<Word>(lane - 1));
        sort_all(prefix, take);
        prefix.pop_back();
      }
      ++lane;
    }
  }

  /// The end of the largest range of lanes from `begin` on that fits into memory.
  [[nodiscard]] std::size_t range_end(const Counts& counts, std::size_t begin) const {
    std::vector<std::uint64_t> largest(settings_.threads, 0);  // falling
    std::uint64_t places = 0;
    for (std::size_t lane = begin; lane < lanes_; ++lane) {
      std::uint64_t size = 0;
      for (const auto& part : counts) size += part[lane];
      places += size;
      for (std::uint64_t& other : largest)
        if (size > other) std::swap(size, other);
      const std::uint64_t records = std::accumulate(largest.begin(), largest.end(), std::uint64_t{0});
      if (places * sizeof(Place) + records * 2 * sizeof(SuffixRecord) > room_) return lane;
    }
    return lanes_;
  }

  /// Collects and sorts the suffixes that begin with `prefix` and a token of these lanes.
  template <class Take>
  void sort_range(const std::vector<Word>& prefix, std::size_t begin, std::size_t end, const Counts& counts,
                  const Take& take) {
    std::vector<std::size_t> bounds = {0};  // of the places of each lane
    for (std::size_t lane = begin; lane < end; ++lane) {
      std::uint64_t size = 0;
      for (const auto& part : counts) size += part[lane];
      bounds.push_back(bounds.back() + static_cast<std::size_t>(size));
    }
    if (bounds.back() == 0) return;
    const auto places = std::make_unique_for_overwrite<Place[]>(bounds.back());
    collect(prefix, begin, bounds, counts, places.get());
    sort_lanes(prefix, begin, bounds, places.get());
    take(std::span<const Place>(places.get(), bounds.back()));
    counts_.suffixes += bounds.back();
    ++counts_.ranges;
  }

  void collect(const std::vector<Word>& prefix, std::size_t begin, const std::vector<std::size_t>& bounds,
               const Counts& counts, Place* places) {
    const std::size_t lanes = bounds.size() - 1;
    Counts next(counts.size());
    for (auto& part : next) part.assign(lanes, 0);
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint64_t at = bounds[i];
      for (std::size_t part = 0; part < counts.size(); ++part) {
        next[part][i] = at;
        at += counts[part][begin + i];
      }
    }
    tools::in_parallel(settings_.threads, settings_.threads, [&](std::size_t part) {
      for_each_place(prefix, part_begin(part), part_begin(part + 1), [&](std::size_t at, std::size_t lane) {
        if (lane - begin < lanes) places[next[part][lane - begin]++] = static_cast<Place>(at);
      });
    });
    ++counts_.passes;
  }

  /// Sorts the places of each lane, the largest lanes first, so that threads end at about the same time.
  void sort_lanes(const std::vector<Word>& prefix, std::size_t begin, const std::vector<std::size_t>& bounds,
                  Place* places) {
    std::vector<std::size_t> order(bounds.size() - 1);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto size_of = [&](std::size_t i) { return bounds[i + 1] - bounds[i]; };
    std::erase_if(order, [&](std::size_t i) { return size_of(i) == 0; });
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : a < b; });
    const std::size_t known = prefix.size() + 1;
    std::atomic<std::size_t> taken{0};
    tools::in_parallel(settings_.threads, settings_.threads, [&](std::size_t) {
      std::unique_ptr<SuffixRecord[]> records;  // the first lane is the largest of this thread
      std::size_t room = 0;
      std::size_t unreported = 0;
      for (std::size_t i = taken++; i < order.size(); i = taken++) {
        const std::size_t size = size_of(order[i]);
        const bool ends = begin + order[i] == 0 || known == settings_.depth;
        if (size > 1 && !ends) {
          if (room == 0) records = std::make_unique_for_overwrite<SuffixRecord[]>(2 * (room = size));
          sort_places({places + bounds[order[i]], size}, known, {records.get(), 2 * room});
        }
        unreported += size;
        if (unreported >= streamed) settings_.report(std::exchange(unreported, 0));
      }
      settings_.report(unreported);
    });
  }

  void sort_places(std::span<Place> places, std::size_t known, std::span<SuffixRecord> room) const {
    const auto records = room.first(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) records[i].place = places[i];
    SuffixSorter<Word>(text_, settings_.depth, room.subspan(room.size() / 2)).sort(records, known);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<Place>(records[i].place);
  }

  /// Takes the places where `prefix` stands before a token of a lane with wanted(lane), without a sort.
  template <class Wanted, class Take>
  void take_in_order(const std::vector<Word>& prefix, Wanted wanted, const Take& take) {
    std::vector<Place> places;
    const auto flush = [&] {
      take(std::span<const Place>(places));
      settings_.report(places.size());
      counts_.suffixes += places.size();
      places.clear();
    };
    for_each_place(prefix, 0, text_.size(), [&](std::size_t at, std::size_t lane) {
      if (!wanted(lane)) return;
      places.push_back(static_cast<Place>(at));
      if (places.size() == streamed) flush();
    });
    flush();
    ++counts_.passes;
  }

  SuffixText<Word> text_;
  SortSettings settings_;
  std::size_t lanes_ = 0;
  std::size_t room_ = 0;
  SortCounts counts_;
};

}  // namespace reprise::indexing
