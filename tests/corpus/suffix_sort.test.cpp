// SPDX-License-Identifier: Apache-2.0
#include "reprise_corpus/detail/suffix_sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise/history/detail/byte_format.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::detail::suffix_sort_test {
namespace {

template <class Word>
class SuffixSort : public ::testing::Test {
 protected:
  using Text = std::vector<Word>;
  static constexpr Word separator = SuffixText<Word>::separator;

  /// The words as a file has them: little-endian on every machine.
  static std::vector<std::byte> bytes(const Text& text) {
    std::vector<std::byte> stored(text.size() * sizeof(Word));
    for (std::size_t at = 0; at < text.size(); ++at) store_little(text[at], stored.data() + at * sizeof(Word));
    return stored;
  }

  /// The order that the format defines, one token at a time.
  static bool naive_before(const Text& text, std::size_t a, std::size_t b, std::size_t depth) {
    for (std::size_t i = 0; i < depth; ++i) {
      const Word left = text[a + i];
      const Word right = text[b + i];
      if (left == separator || right == separator) {
        if (left != right) return left == separator;
        break;
      }
      if (left != right) return left < right;
    }
    return a < b;
  }

  static std::vector<std::size_t> naive(const Text& text, std::size_t depth) {
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at < text.size(); ++at)
      if (text[at] != separator) places.push_back(at);
    std::sort(places.begin(), places.end(),
              [&](std::size_t a, std::size_t b) { return naive_before(text, a, b, depth); });
    return places;
  }

  static std::vector<std::size_t> sorted(const Text& text, std::size_t depth) {
    std::vector<SuffixRecord> records;
    for (std::size_t at = 0; at < text.size(); ++at)
      if (text[at] != separator) records.push_back({0, at});
    std::vector<SuffixRecord> scratch(records.size());
    const std::vector<std::byte> stored = bytes(text);
    SuffixSorter<Word>(SuffixText<Word>(stored), depth, scratch).sort(records, 0);
    std::vector<std::size_t> places;
    for (const SuffixRecord& record : records) places.push_back(static_cast<std::size_t>(record.place));
    return places;
  }

  /// Documents of random tokens. Every second one repeats a part of the text so far.
  static Text documents(testing::Random& random, std::size_t alphabet, std::size_t count, std::size_t longest) {
    Text text;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t length = 1 + random.below(longest);
      const std::size_t from = random.below(text.size());
      const bool repeats = !text.empty() && random.chance(50);
      for (std::size_t j = 0; j < length; ++j) {
        const Word copied = repeats ? text[from + j % (text.size() - from)] : separator;
        text.push_back(copied != separator ? copied : token(random, alphabet));
      }
      text.push_back(separator);
    }
    return text;
  }

  /// Ids from both ends of the range, so that keys with high bits occur.
  static Word token(testing::Random& random, std::size_t alphabet) {
    const auto id = static_cast<Word>(random.below(alphabet));
    return random.chance(20) ? static_cast<Word>(separator - 1 - id) : id;
  }
};

using Words = ::testing::Types<std::uint16_t, std::uint32_t>;
TYPED_TEST_SUITE(SuffixSort, Words);

TYPED_TEST(SuffixSort, AgreesWithComparisonsOfTokens) {
  testing::Random random(1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t alphabet = 1 + random.below(round % 3 == 0 ? 3 : 300);
    const auto text = this->documents(random, alphabet, 1 + random.below(12), 1 + random.below(200));
    const std::size_t depth = round % 2 == 0 ? 64 : 1 + random.below(70);
    ASSERT_EQ(this->sorted(text, depth), this->naive(text, depth)) << "round " << round << ", depth " << depth;
  }
}

TYPED_TEST(SuffixSort, OrdersTextOfOneToken) {
  const typename TestFixture::Text text = [&] {
    typename TestFixture::Text made(5000, TypeParam{7});
    made[1000] = made.back() = TestFixture::separator;
    return made;
  }();
  EXPECT_EQ(this->sorted(text, 64), this->naive(text, 64));
}

TYPED_TEST(SuffixSort, KeepsTheOrderOfRepeatedDocuments) {
  testing::Random random(2);
  const auto document = this->documents(random, 50, 1, 300);
  typename TestFixture::Text text;
  for (int copy = 0; copy < 40; ++copy) text.insert(text.end(), document.begin(), document.end());
  EXPECT_EQ(this->sorted(text, 64), this->naive(text, 64));
}

TYPED_TEST(SuffixSort, StartsAfterKnownTokens) {
  testing::Random random(3);
  const auto text = this->documents(random, 2, 20, 100);
  const TypeParam first = 1;
  std::vector<SuffixRecord> records;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] == first) records.push_back({99, at});
  std::vector<SuffixRecord> scratch(records.size());
  const auto stored = this->bytes(text);
  SuffixSorter<TypeParam>(SuffixText<TypeParam>(stored), 64, scratch).sort(records, 1);
  auto expected = this->naive(text, 64);
  std::erase_if(expected, [&](std::size_t at) { return text[at] != first; });
  ASSERT_EQ(records.size(), expected.size());
  for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].place, expected[i]) << i;
}

TYPED_TEST(SuffixSort, KeysCompareLikeTokens) {
  testing::Random random(4);
  for (int round = 0; round < 2000; ++round) {
    const auto text = this->documents(random, 1 + random.below(3), 4, 5);
    const auto stored = this->bytes(text);
    const SuffixText<TypeParam> view(stored);
    const std::size_t a = random.below(text.size());
    const std::size_t b = random.below(text.size());
    const std::size_t lanes = SuffixText<TypeParam>::lanes;
    if (view.key(a) != view.key(b)) {
      ASSERT_EQ(view.key(a) < view.key(b), this->naive_before(text, a, b, lanes)) << "round " << round;
    }
  }
}

TYPED_TEST(SuffixSort, ReadsWordsAtAnyAddress) {
  testing::Random random(5);
  const auto text = this->documents(random, 9, 3, 20);
  const auto stored = this->bytes(text);
  std::vector<std::byte> shifted(stored.size() + 1);
  std::copy(stored.begin(), stored.end(), shifted.begin() + 1);
  const SuffixText<TypeParam> view(std::span<const std::byte>(shifted).subspan(1));
  for (std::size_t at = 0; at < text.size(); ++at) {
    EXPECT_EQ(view.word(at), text[at]);
    EXPECT_EQ(view.key(at), SuffixText<TypeParam>(stored).key(at));
  }
}

}  // namespace
}  // namespace reprise::detail::suffix_sort_test
