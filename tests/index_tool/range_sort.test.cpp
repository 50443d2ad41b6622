// SPDX-License-Identifier: Apache-2.0
#include "index/range_sort.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::indexing::range_sort_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using RangeText = std::vector<std::uint16_t>;
constexpr std::uint16_t range_separator = 0xffff;

/// The bytes of counts, and `room` bytes for places and records.
std::size_t memory_of(std::size_t vocabulary, std::size_t threads, std::size_t room) {
  return 16 * (vocabulary + 1) * threads + room;
}

struct SortedRanges {
  std::vector<std::uint64_t> places;
  SortCounts counts;
  std::size_t reported = 0;
};

template <class Place>
SortedRanges sorted_in_ranges(const RangeText& text, const SortSettings& settings) {
  SortedRanges result;
  std::atomic<std::size_t> reported{0};
  SortSettings reporting = settings;
  reporting.report = [&](std::size_t count) { reported += count; };
  RangeSort<std::uint16_t, Place> sort(SuffixText<std::uint16_t>(std::as_bytes(std::span(text))), reporting);
  result.counts = sort.sort(
      [&](std::span<const Place> places) { result.places.insert(result.places.end(), places.begin(), places.end()); });
  result.reported = reported;
  return result;
}

/// The places of all suffixes, sorted with all of the memory that a simple sort needs.
std::vector<std::uint64_t> sorted_at_once(const RangeText& text, std::size_t depth) {
  std::vector<SuffixRecord> records;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] != range_separator) records.push_back({0, at});
  std::vector<SuffixRecord> scratch(records.size());
  SuffixSorter<std::uint16_t>(SuffixText<std::uint16_t>(std::as_bytes(std::span(text))), depth, scratch)
      .sort(records, 0);
  std::vector<std::uint64_t> places;
  for (const SuffixRecord& record : records) places.push_back(record.place);
  return places;
}

RangeText random_documents(std::size_t tokens, std::size_t alphabet, std::size_t longest, std::uint64_t seed) {
  testing::Random random(seed);
  RangeText text;
  while (text.size() < tokens) {
    for (std::size_t left = 1 + random.below(longest); left > 0; --left)
      text.push_back(static_cast<std::uint16_t>(random.below(alphabet)));
    text.push_back(range_separator);
  }
  return text;
}

/// Expects the same order for every memory, number of threads and type of places.
void expect_sorted(const RangeText& text, std::size_t vocabulary, std::size_t depth = 64) {
  const auto order = sorted_at_once(text, depth);
  for (const std::size_t threads : {1U, 2U, 5U})
    for (const std::size_t room : {std::size_t{1} << 16, std::size_t{1} << 19, std::size_t{1} << 30}) {
      const SortSettings settings = {vocabulary, depth, memory_of(vocabulary, threads, room), threads};
      const SortedRanges small = sorted_in_ranges<std::uint32_t>(text, settings);
      ASSERT_EQ(small.places, order) << threads << " threads, " << room << " bytes";
      EXPECT_EQ(small.counts.suffixes, order.size());
      EXPECT_EQ(small.reported, order.size());
      ASSERT_EQ(sorted_in_ranges<std::uint64_t>(text, settings).places, order)
          << threads << " threads, " << room << " bytes";
    }
}

TEST(RangeSort, DoesNotDependOnMemoryOrThreads) { expect_sorted(random_documents(20'000, 500, 300, 1), 500); }
TEST(RangeSort, SplitsTokensThatDoNotFit) { expect_sorted(random_documents(20'000, 2, 300, 2), 2); }
TEST(RangeSort, SortsToASmallDepth) { expect_sorted(random_documents(20'000, 3, 90, 3), 3, 5); }
TEST(RangeSort, SortsTextOfOneToken) {
  RangeText text(15'000, 0);
  text.back() = range_separator;
  expect_sorted(text, 1);
}
TEST(RangeSort, SortsManyDocumentsOfOneToken) { expect_sorted(random_documents(20'000, 1, 1, 4), 1); }
TEST(RangeSort, SortsManyDocumentsOfTheDepth) {
  RangeText text;
  for (int i = 0; i < 4000; ++i) text.insert(text.end(), {0, 0, 0, range_separator});
  expect_sorted(text, 1, 3);
}
TEST(RangeSort, SortsRepeatedDocuments) {
  const RangeText document = random_documents(200, 50, 400, 5);
  RangeText text;
  for (int copy = 0; copy < 90; ++copy) text.insert(text.end(), document.begin(), document.end());
  expect_sorted(text, 50);
}
TEST(RangeSort, SortsTheIdsOfAWholeVocabulary) {
  RangeText text;
  for (std::size_t id = 0; id < 0xffff; ++id) text.push_back(static_cast<std::uint16_t>(0xfffe - id));
  text.push_back(range_separator);
  expect_sorted(text, 0xffff);
}
TEST(RangeSort, SortsNothing) { expect_sorted({}, 10); }

TEST(RangeSort, UsesAsManyRangesAsItNeeds) {
  const RangeText text = random_documents(20'000, 500, 300, 6);
  EXPECT_EQ(sorted_in_ranges<std::uint32_t>(text, {500, 64, memory_of(500, 1, 1 << 30), 1}).counts.ranges, 1U);
  const auto ranges = sorted_in_ranges<std::uint32_t>(text, {500, 64, memory_of(500, 1, 1 << 16), 1}).counts.ranges;
  EXPECT_GE(ranges, 2U);
  EXPECT_LE(ranges, 3U) << "80,000 bytes of places in 65,536 bytes of memory";
}

TEST(RangeSort, RefusesTooLittleMemory) {
  const RangeText text = {1, range_separator};
  EXPECT_THAT(([&] {
                sorted_in_ranges<std::uint32_t>(text, {1000, 64, 4096, 2});
              }),
              ThrowsMessage<tools::InputError>(HasSubstr("--memory 4096: too few bytes; a vocabulary of 1000 ids and 2 "
                                                         "threads need at least 97568")));
}

TEST(RangeSort, StopsWhenTheReportThrows) {
  const RangeText text = random_documents(20'000, 500, 300, 7);
  SortSettings settings = {500, 64, std::size_t{1} << 30, 2};
  settings.report = [](std::size_t) { throw std::runtime_error("stop"); };
  RangeSort<std::uint16_t, std::uint32_t> sort(SuffixText<std::uint16_t>(std::as_bytes(std::span(text))), settings);
  EXPECT_THROW(sort.sort([](std::span<const std::uint32_t>) {}), std::runtime_error);
}

}  // namespace
}  // namespace reprise::indexing::range_sort_test
