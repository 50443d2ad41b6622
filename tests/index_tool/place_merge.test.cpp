// SPDX-License-Identifier: Apache-2.0
#include "index/place_merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::indexing::place_merge_test {
namespace {

using reprise::detail::SuffixRecord;
using reprise::detail::SuffixSorter;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class Word>
class PlaceMerge : public ::testing::Test {
 protected:
  using Text = std::vector<Word>;
  static constexpr Word separator = SuffixText<Word>::separator;

  /// A text with its sorted places as bytes.
  struct Part {
    Text text;
    std::vector<std::byte> places;
    std::size_t place_bytes;
  };

  static SuffixText<Word> view(const Text& text) { return SuffixText<Word>(std::as_bytes(std::span(text))); }

  static std::vector<std::uint64_t> sorted(const Text& text, std::size_t depth) {
    std::vector<SuffixRecord> records;
    for (std::size_t at = 0; at < text.size(); ++at)
      if (text[at] != separator) records.push_back({0, at});
    std::vector<SuffixRecord> scratch(records.size());
    SuffixSorter<Word>(view(text), depth, scratch).sort(records, 0);
    std::vector<std::uint64_t> places;
    for (const SuffixRecord& record : records) places.push_back(record.place);
    return places;
  }

  static Part part(Text text, std::size_t depth, std::size_t place_bytes) {
    Part made{std::move(text), {}, place_bytes};
    for (const std::uint64_t place : sorted(made.text, depth))
      for (std::size_t i = 0; i < place_bytes; ++i)
        made.places.push_back(static_cast<std::byte>(place >> (8 * i) & 255));
    return made;
  }

  static void add_document(Text& text, testing::Random& random, std::size_t alphabet) {
    for (std::size_t left = 1 + random.below(90); left > 0; --left)
      text.push_back(static_cast<Word>(random.below(alphabet)));
    text.push_back(separator);
  }

  static std::vector<std::uint64_t> merged(const std::vector<MergeSource<Word>>& sources, std::size_t depth) {
    std::vector<std::uint64_t> places;
    merge_places<Word>(
        sources, depth,
        [&](std::span<const std::uint64_t> next) { places.insert(places.end(), next.begin(), next.end()); },
        [](std::size_t) {});
    return places;
  }
};

using MergedWords = ::testing::Types<std::uint16_t, std::uint32_t>;
TYPED_TEST_SUITE(PlaceMerge, MergedWords);

TYPED_TEST(PlaceMerge, EqualsASortOfTheWholeText) {
  testing::Random random(1);
  for (int round = 0; round < 60; ++round) {
    const std::size_t depth = round % 2 == 0 ? 64 : 1 + random.below(20);
    const std::size_t alphabet = 1 + random.below(round % 3 == 0 ? 2 : 200);
    typename TestFixture::Text whole;
    std::vector<typename TestFixture::Part> parts;
    std::vector<std::vector<KeptText>> kept;
    for (std::size_t i = 0; i < 1 + random.below(6); ++i) {
      typename TestFixture::Text text;
      kept.emplace_back();
      for (std::size_t j = 0; j < random.below(6); ++j) {
        const std::size_t begin = text.size();
        if (!parts.empty() && random.chance(30))
          text.insert(text.end(), parts[0].text.begin(), parts[0].text.end());  // equal suffixes in several sources
        else
          this->add_document(text, random, alphabet);
        if (random.chance(30)) continue;
        kept.back().push_back({begin, text.size(), whole.size()});
        whole.insert(whole.end(), text.begin() + static_cast<std::ptrdiff_t>(begin), text.end());
      }
      parts.push_back(this->part(text, depth, random.chance(50) ? 4 : 5));
    }
    std::vector<MergeSource<TypeParam>> sources;
    for (std::size_t i = 0; i < parts.size(); ++i)
      sources.push_back({this->view(parts[i].text), parts[i].places, parts[i].place_bytes, kept[i], "part"});
    ASSERT_EQ(this->merged(sources, depth), this->sorted(whole, depth)) << "round " << round;
  }
}

TYPED_TEST(PlaceMerge, RefusesPlacesAfterTheEnd) {
  const typename TestFixture::Text text = {1, TestFixture::separator};
  const std::vector<std::byte> places = {std::byte{2}, std::byte{0}, std::byte{0}, std::byte{0}};
  EXPECT_THAT(([&] {
                this->merged({{this->view(text), places, 4, {{0, 2, 0}}, "a.corpus"}}, 64);
              }),
              ThrowsMessage<tools::InputError>(
                  HasSubstr("a.corpus: is damaged: suffix 0 has the place 2 after the end of the text")));
}

}  // namespace
}  // namespace reprise::indexing::place_merge_test
