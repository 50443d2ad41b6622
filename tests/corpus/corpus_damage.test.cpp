// SPDX-License-Identifier: Apache-2.0
// Corpora that are truncated, damaged or forged: reading stays within the bytes, and verify_corpus() finds the fault.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reprise_corpus/corpus_store.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/verify_corpus.hpp"
#include "reprise_testing/random.hpp"
#include "support/committed_inputs.hpp"
#include "support/corpora.hpp"

namespace reprise::corpus_damage_test {
namespace {

using detail::CorpusHeader;
using detail::CorpusSection;
using testing::corpus_of;
using testing::CorpusBytes;
using testing::read_any_corpus;
using testing::repair_checksums;
using Tokens = std::vector<Token>;

const Tokens context = {2, 1, 0, 2, 1, 0, 0, 1, 2, 2};

/// Returns the offset of a section.
std::size_t offset_of(const CorpusBytes& bytes, CorpusSection section) {
  return static_cast<std::size_t>(layout_of(detail::decode(bytes).value())[section].offset);
}
/// Returns every offset in the corpus; of a large section of starts, only some.
std::vector<std::size_t> tested_offsets(const CorpusBytes& bytes) {
  const std::size_t starts = offset_of(bytes, CorpusSection::starts);
  const std::size_t fences = offset_of(bytes, CorpusSection::fences);
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at < bytes.size();) {
    offsets.push_back(at);
    at += fences - starts > 1000 && at > starts + 100 && at + 20'000 < fences ? 9'973 : 1;
    if (fences - starts > 1000 && at + 19'900 > fences && at < fences - 100) at = fences - 100;
  }
  return offsets;
}
/// Writes a header with its checksum.
void put_header(CorpusBytes& bytes, const CorpusHeader& header) {
  const auto encoded = encode(header);
  std::copy(encoded.begin(), encoded.end(), bytes.begin());
}

TEST(CorpusDamage, EveryTruncationIsRefused) {
  for (const CorpusBytes& whole : testing::forged_corpora()) {
    ASSERT_EQ(read_any_corpus(whole, context), "");
    ASSERT_TRUE(verify_corpus(whole));
    for (const std::size_t size : tested_offsets(whole)) {
      const CorpusBytes bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const auto store = CorpusStore::open(bytes);
      ASSERT_FALSE(store) << size;
      EXPECT_EQ(store.error().code, ErrorCode::corpus_truncated);
      EXPECT_EQ(store.error().value, size);
      EXPECT_EQ(store.error().limit, size < 256 ? 256 : whole.size());
      EXPECT_FALSE(verify_corpus(bytes));
    }
  }
}

TEST(CorpusDamage, BytesAfterTheEndAreRefused) {
  CorpusBytes bytes = testing::forged_corpora()[0];
  const std::size_t size = bytes.size();
  bytes.push_back(std::byte{0});
  EXPECT_EQ(CorpusStore::open(bytes).error().code, ErrorCode::corpus_damaged);
  EXPECT_EQ(CorpusStore::open(bytes).error().value, size);
}

TEST(CorpusDamage, EveryWrongBitIsFound) {
  for (const CorpusBytes& whole : testing::forged_corpora()) {
    CorpusBytes bytes = whole;
    for (const std::size_t at : tested_offsets(whole)) {
      const auto bit = static_cast<std::byte>(1 << at % 8);
      bytes[at] ^= bit;
      EXPECT_EQ(CorpusStore::open(bytes).has_value(), at >= 256) << at;
      ASSERT_FALSE(verify_corpus(bytes)) << at;
      if (at % 5 == 0) {
        ASSERT_EQ(read_any_corpus(bytes, context), "") << at;
      }
      bytes[at] ^= bit;
    }
  }
}

TEST(CorpusDamage, EveryForgedByteIsReadSafely) {
  for (const CorpusBytes& whole : testing::forged_corpora()) {
    CorpusBytes bytes = whole;
    for (const std::size_t at : tested_offsets(whole)) {
      bytes[at] = ~bytes[at];
      // A checksum of the body reads all of a large corpus, and only the one of the header decides if a corpus opens.
      if (at >= 256 && whole.size() > 100'000 && at % 7 != 0) {
        ASSERT_EQ(read_any_corpus(bytes, context), "") << at;
        bytes[at] = ~bytes[at];
        continue;
      }
      repair_checksums(bytes);
      const auto verified = verify_corpus(bytes);
      // The fingerprint and the bytes of a name may be anything; the depth may be greater than all documents.
      const std::size_t names = offset_of(whole, CorpusSection::names);
      const bool may_be_anything =
          (at >= 36 && at < 48) || (at >= names && at < offset_of(whole, CorpusSection::places));
      if (!may_be_anything && (at < 72 || at >= 248)) {
        EXPECT_TRUE(!verified || at >= 248) << at;
      }
      ASSERT_EQ(read_any_corpus(bytes, context), "") << at;
      bytes = whole;
    }
  }
}

/// A change of one section, and the words that the error must contain.
struct Forgery {
  const char* error;
  std::function<void(CorpusBytes&)> change;
};

TEST(CorpusDamage, VerifyNamesTheFault) {
  // Places: document 1 at 0 to 4, its separator at 5, document 2 at 6 and 7, its separator at 8.
  const CorpusBytes whole = corpus_of({{1, 2, 1, 2, 3}, {1, 2}}, 10);
  ASSERT_TRUE(verify_corpus(whole));
  const auto at = [&](CorpusSection section, std::size_t byte) { return offset_of(whole, section) + byte; };
  const auto swap_numbers = [](CorpusBytes& bytes, std::size_t a, std::size_t size) {
    std::swap_ranges(bytes.begin() + std::ptrdiff_t(a), bytes.begin() + std::ptrdiff_t(a + size),
                     bytes.begin() + std::ptrdiff_t(a + size));
  };
  const auto tokens = at(CorpusSection::tokens, 0);
  const std::vector<Forgery> forgeries = {
      {"outside of its vocabulary", [&](auto& bytes) { bytes[tokens] = std::byte{10}; }},
      {"does not end with a separator", [&](auto& bytes) { bytes[tokens + 10] = std::byte{1}; }},
      {"outside of its vocabulary", [&](auto& bytes) { bytes[tokens + 2] = bytes[tokens + 3] = std::byte{255}; }},
      {"no tokens or lies outside", [&](auto& bytes) { bytes[at(CorpusSection::documents, 8)] = std::byte{1}; }},
      {"does not begin at 0", [&](auto& bytes) { bytes[at(CorpusSection::documents, 0)] = std::byte{1}; }},
      {"no tokens or lies outside", [&](auto& bytes) { bytes[at(CorpusSection::documents, 16)] = std::byte{10}; }},
      {"does not end at the end",
       [&](auto& bytes) {
         bytes[at(CorpusSection::documents, 16)] = std::byte{8};
         bytes[tokens + 14] = bytes[tokens + 15] = std::byte{255};
       }},
      {"name of a document", [&](auto& bytes) { bytes[at(CorpusSection::names, 8)] = std::byte{5}; }},
      {"do not rise", [&](auto& bytes) { bytes[at(CorpusSection::starts, 24)] = std::byte{1}; }},
      {"do not rise", [&](auto& bytes) { bytes[at(CorpusSection::starts, 80)] = std::byte{8}; }},
      {"another first token", [&](auto& bytes) { bytes[at(CorpusSection::starts, 16)] = std::byte{2}; }},
      {"another first token", [&](auto& bytes) { bytes[at(CorpusSection::places, 0)] = std::byte{1}; }},
      {"another first token", [&](auto& bytes) { bytes[at(CorpusSection::places, 3)] = std::byte{255}; }},
      {"wrong order", [&](auto& bytes) { swap_numbers(bytes, at(CorpusSection::places, 4), 4); }},
      {"wrong order", [&](auto& bytes) { bytes[at(CorpusSection::places, 4)] = bytes[at(CorpusSection::places, 0)]; }},
      {"a fence", [&](auto& bytes) { bytes[at(CorpusSection::fences, 1)] ^= std::byte{1}; }},
  };
  for (const Forgery& forgery : forgeries) {
    CorpusBytes bytes = whole;
    forgery.change(bytes);
    const auto damaged = verify_corpus(bytes);
    ASSERT_FALSE(damaged) << forgery.error;
    EXPECT_EQ(damaged.error().code, ErrorCode::corpus_damaged);
    repair_checksums(bytes);
    const auto forged = verify_corpus(bytes);
    ASSERT_FALSE(forged) << forgery.error;
    EXPECT_EQ(forged.error().code, ErrorCode::corpus_forged);
    EXPECT_NE(forged.error().message.find(forgery.error), std::string::npos) << forged.error().message;
  }
}

TEST(CorpusDamage, ForgedHeadersAreRefused) {
  const CorpusBytes whole = corpus_of({{1, 2, 1, 2, 3}, {1, 2}}, 10);
  const CorpusHeader good = detail::decode(whole).value();
  const std::vector<std::function<void(CorpusHeader&)>> changes = {
      [](auto& header) { header.token_bytes = 4; },
      [](auto& header) { header.token_bytes = 0; },
      [](auto& header) { header.place_bytes = 8; },
      [](auto& header) { header.vocabulary = 0; },
      [](auto& header) { header.vocabulary = 0x10000; },
      [](auto& header) { header.vocabulary = 0x80000000; },
      [](auto& header) { header.depth = 31; },
      [](auto& header) { header.depth = 0x10000; },
      [](auto& header) { header.words = std::uint64_t{1} << 40; },
      [](auto& header) { header.words = ~std::uint64_t{0}; },
      [](auto& header) { header.documents = header.words / 2 + 1; },
      [](auto& header) { header.documents = 0; },
      [](auto& header) { header.documents = ~std::uint64_t{0}; },
      [](auto& header) { header.name_bytes = ~std::uint64_t{0}; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CorpusHeader header = good;
    changes[i](header);
    CorpusBytes bytes = whole;
    put_header(bytes, header);
    EXPECT_EQ(CorpusStore::open(bytes).error().code, ErrorCode::corpus_forged) << i;
  }
  CorpusHeader longer = good;
  longer.words = (std::uint64_t{1} << 40) - 1;
  longer.place_bytes = 5;
  CorpusBytes bytes = whole;
  put_header(bytes, longer);
  EXPECT_EQ(CorpusStore::open(bytes).error().code, ErrorCode::corpus_truncated);
  EXPECT_EQ(CorpusStore::open(bytes).error().limit, layout_of(longer).file_bytes);
}

TEST(CorpusDamage, RefusesOtherVersionsReservedBytesAndOtherOffsets) {
  const CorpusBytes whole = corpus_of({{1, 2}}, 10);
  const auto changed = [&](std::size_t at, int value) {
    CorpusBytes bytes = whole;
    bytes[at] = static_cast<std::byte>(value);
    const std::span<const std::byte> checked = std::span<const std::byte>(bytes).first(248);
    detail::store_little(detail::Xxh64::of(checked), &bytes[248]);
    return CorpusStore::open(bytes).error();
  };
  EXPECT_EQ(changed(0, 'R').code, ErrorCode::not_a_corpus);
  EXPECT_EQ(changed(8, 2).code, ErrorCode::newer_version);
  EXPECT_EQ(changed(8, 2).value, 2U);
  EXPECT_EQ(changed(8, 0).code, ErrorCode::corpus_forged);
  EXPECT_EQ(changed(12, 128).code, ErrorCode::corpus_forged);
  EXPECT_EQ(changed(16, 1).code, ErrorCode::corpus_forged);
  EXPECT_EQ(changed(72, 1).code, ErrorCode::corpus_forged);   // the offset of the tokens
  EXPECT_EQ(changed(80, 1).code, ErrorCode::corpus_forged);   // the bytes of the tokens
  EXPECT_EQ(changed(216, 1).code, ErrorCode::corpus_forged);  // reserved
  EXPECT_EQ(changed(247, 1).code, ErrorCode::corpus_forged);  // reserved
}

TEST(CorpusDamage, OfTheInputsOfTheFuzzerIsReadSafely) {
  for (const auto& input : testing::committed_inputs("corpus"))
    ASSERT_EQ(testing::read_any_corpora(std::as_bytes(std::span(input.bytes))), "") << input.name;
}

}  // namespace
}  // namespace reprise::corpus_damage_test
