// SPDX-License-Identifier: Apache-2.0
// CorpusStore compared with a scan of the text. corpus_damage.test.cpp reads damaged and forged corpora.
#include "reprise_corpus/corpus_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "reprise_corpus/corpus_writer.hpp"
#include "reprise_corpus/verify_corpus.hpp"
#include "reprise_testing/random.hpp"
#include "support/corpora.hpp"

namespace reprise::corpus_store_test {
namespace {

using testing::corpus_of;
using testing::CorpusBytes;
using testing::Documents;
using testing::Random;
using testing::random_documents;
using testing::ScannedCorpus;
using Tokens = std::vector<Token>;

constexpr std::size_t few = 32;  // a length with at most this many occurrences is read as a whole

/// A vocabulary with tokens of 2 bytes, or of 4 bytes.
std::uint32_t vocabulary_of(bool wide) { return wide ? 70'000 : 60'000; }

/// Returns a context: often a part of a document, with a few other tokens.
Tokens random_context(Random& random, const Documents& documents, std::size_t alphabet) {
  Tokens context;
  const std::size_t unrelated = random.below(4);
  for (std::size_t i = 0; i < unrelated; ++i) context.push_back(static_cast<Token>(random.below(alphabet)));
  if (!documents.empty() && random.chance(80)) {
    const Tokens& document = documents[random.below(documents.size())];
    const std::size_t begin = random.below(document.size());
    const std::size_t end = begin + random.below(document.size() - begin + 1);
    context.insert(context.end(), document.begin() + std::ptrdiff_t(begin), document.begin() + std::ptrdiff_t(end));
  }
  if (random.chance(20)) context.push_back(static_cast<Token>(random.below(alphabet)));
  return context;
}

/// Returns the least length with at most `few` occurrences, ends of documents included.
std::size_t least_rare_length(const ScannedCorpus& scanned, TokenSpan context) {
  const TokenSpan suffix = context.last(std::min<std::size_t>(context.size(), 32));
  for (std::size_t length = 1; length <= suffix.size(); ++length) {
    std::uint64_t count = 0;
    for (const auto& [token, times] : scanned.next_tokens(suffix.last(length))) count += times;
    if (count <= few) return length;
  }
  return suffix.size() + 1;
}

void check_find(const CorpusStore& store, const ScannedCorpus& scanned, TokenSpan context, std::size_t room) {
  std::vector<StoreMatch> out(room);
  const std::size_t count = store.find(context, out);
  ASSERT_LE(count, std::min(room, CorpusStore::most_matches));
  std::set<StorePlace> places;
  std::vector<std::size_t> lengths;
  for (const StoreMatch& match : std::span(out).first(count)) {
    EXPECT_TRUE(places.insert(match.next).second) << "a place occurs twice";
    ASSERT_GE(scanned.at(match.next), 0) << "no token follows";
    EXPECT_EQ(match.agreements, scanned.agreements(match.next, context));
    lengths.push_back(static_cast<std::size_t>(std::countr_one(match.agreements)));
  }
  // The longest matches are exactly those of a scan, and the others have the greatest length that is not rare.
  const std::vector<std::size_t> expected = scanned.match_lengths(context);
  const std::size_t rare = least_rare_length(scanned, context);
  const auto rare_count = static_cast<std::size_t>(
      std::count_if(expected.begin(), expected.end(), [&](std::size_t length) { return length >= rare; }));
  ASSERT_GE(count, std::min(rare_count, std::min(room, CorpusStore::most_matches)));
  for (std::size_t i = 0; i < count; ++i) {
    if (i < rare_count) {
      EXPECT_EQ(lengths[i], expected[i]);
    } else if (rare_count != 0) {
      EXPECT_EQ(lengths[i], rare - 1);
    } else {
      EXPECT_GE(lengths[i], rare - 1);
    }
  }
  if (room != 0) {
    EXPECT_EQ(count == 0, expected.empty());
  }
}

void check_counts(const CorpusStore& store, const ScannedCorpus& scanned, TokenSpan context, std::size_t room) {
  context = context.last(std::min<std::size_t>(context.size(), 32));
  std::vector<CorpusStore::NextToken> expected;
  CorpusStore::Continuations wanted;
  for (const auto& [token, count] : scanned.next_tokens(context)) {
    wanted.total += count;
    (token < 0 ? wanted.ended : wanted.distinct) += token < 0 ? count : 1;
    if (token >= 0) expected.push_back({token, count});
  }
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  expected.resize(std::min(expected.size(), room));
  wanted.size = expected.size();
  std::vector<CorpusStore::NextToken> out(room);
  EXPECT_EQ(store.continuations(context, out), wanted);
  out.resize(wanted.size);
  EXPECT_EQ(out, expected);
  EXPECT_EQ(store.count(context), wanted.total);
}

TEST(CorpusStore, AgreesWithAScanOfTheText) {
  Random random(1);
  for (int round = 0; round < 250; ++round) {
    const bool wide = random.chance(50);
    const std::size_t alphabet = round % 3 == 0 ? 1 + random.below(3) : 1 + random.below(40);
    const Documents documents = random_documents(random, random.below(30), 1 + random.below(80), alphabet);
    const CorpusBytes bytes = corpus_of(documents, vocabulary_of(wide), 7, random.chance(30));
    const auto verified = verify_corpus(bytes);
    ASSERT_TRUE(verified) << verified.error().message << ' ' << verified.error().value;
    const CorpusStore store = CorpusStore::open(bytes, {7, vocabulary_of(wide)}).value();
    const ScannedCorpus scanned(documents);
    for (int query = 0; query < 12; ++query) {
      const Tokens context = random_context(random, documents, alphabet + 1);
      SCOPED_TRACE(round * 100 + query);
      check_find(store, scanned, context, query == 0 ? 0 : query == 1 ? 50 : 1 + random.below(12));
      check_counts(store, scanned, context, random.below(6));
      if (HasFailure()) return;
    }
  }
}

TEST(CorpusStore, FindsEveryLengthOfAMatch) {
  Random random(2);
  Tokens text;
  for (int i = 0; i < 20'000; ++i) text.push_back(static_cast<Token>(random.below(2)));  // common up to length 9
  Tokens unique;
  for (int i = 0; i < 60; ++i) unique.push_back(static_cast<Token>(random.below(2)));
  Documents documents = {text};
  for (std::size_t length = 1; length <= 40; ++length) {
    documents.push_back({3});
    documents.back().insert(documents.back().end(), unique.end() - std::ptrdiff_t(length), unique.end());
    documents.back().push_back(4);
  }
  const CorpusBytes bytes = corpus_of(documents, 10);
  const CorpusStore store = CorpusStore::open(bytes).value();
  const ScannedCorpus scanned(documents);
  for (std::size_t size = 1; size <= unique.size(); ++size) {
    SCOPED_TRACE(size);
    check_find(store, scanned, TokenSpan(unique).last(size), 12);
  }
}

TEST(CorpusStore, SpreadsMatchesOverTheContinuations) {
  Documents documents;
  for (int i = 0; i < 1000; ++i) documents.push_back({5, i % 10 == 0 ? 7 : 6});
  for (int i = 0; i < 5000; ++i) documents.push_back({5});  // ends of documents are left out
  const CorpusBytes bytes = corpus_of(documents, 10);
  const CorpusStore store = CorpusStore::open(bytes).value();
  const ScannedCorpus scanned(documents);
  std::array<StoreMatch, 10> out;
  ASSERT_EQ(store.find(Tokens{5}, out), 10U);
  EXPECT_EQ(std::count_if(out.begin(), out.end(), [&](const auto& match) { return scanned.at(match.next) == 6; }), 9);
}

TEST(CorpusStore, ReadsUntilTheEndOfADocument) {
  const CorpusBytes bytes = corpus_of({{1, 2, 3}, {4}}, 10);
  const CorpusStore store = CorpusStore::open(bytes).value();
  Tokens out(2);
  EXPECT_EQ(store.read(0, out), (StoreRun{2, 2}));
  EXPECT_EQ(out, (Tokens{1, 2}));
  EXPECT_EQ(store.read(2, out), (StoreRun{1, no_place}));
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(store.read(2, std::span(out).first(1)), (StoreRun{1, no_place}));
  EXPECT_EQ(store.read(3, out), (StoreRun{0, no_place}));
  EXPECT_EQ(store.read(4, out), (StoreRun{1, no_place}));
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(store.read(0, {}), (StoreRun{0, 0}));
  for (const StorePlace place : {StorePlace{6}, StorePlace{1} << 40, no_place})
    EXPECT_EQ(store.read(place, out), (StoreRun{0, no_place}));
}

TEST(CorpusStore, FindsNothingForTokensOutsideOfTheVocabulary) {
  const CorpusBytes narrow = corpus_of({{1, 2, 9, 2}}, 10);
  const CorpusBytes wide = corpus_of({{1, 2, 9, 2}}, 100'000);
  for (const CorpusBytes& bytes : {narrow, wide}) {
    const CorpusStore store = CorpusStore::open(bytes).value();
    std::array<StoreMatch, 4> out;
    for (const Token token : {-1, 10, 0xffff, 0x10001, 100'000, 0x7fffffff}) {
      EXPECT_EQ(store.find(Tokens{1, token}, out), 0U);
      EXPECT_EQ(store.count(Tokens{token}), 0U);
      EXPECT_EQ(store.count(Tokens{token, 1}), 0U);
      ASSERT_EQ(store.find(Tokens{token, 1}, out), 1U);
      EXPECT_EQ(out[0], (StoreMatch{1, 1}));
    }
  }
}

TEST(CorpusStore, AnEmptyCorpusFindsNothing) {
  const CorpusBytes bytes = corpus_of({{}, {}}, 10);
  const CorpusStore none;
  for (const CorpusStore& store : {none, CorpusStore::open(bytes).value()}) {
    std::array<StoreMatch, 4> out;
    Tokens tokens(3);
    EXPECT_EQ(store.find(Tokens{1}, out), 0U);
    EXPECT_EQ(store.read(0, tokens), (StoreRun{0, no_place}));
    EXPECT_EQ(store.count({}), 0U);
    EXPECT_EQ(store.count(Tokens{1}), 0U);
    EXPECT_EQ(store.continuations({}, {}), CorpusStore::Continuations{});
    EXPECT_EQ(store.tokens(), 0U);
    EXPECT_EQ(store.documents(), 0U);
    EXPECT_EQ(store.document_of(0), 0U);
    EXPECT_EQ(store.document(0).name, "");
    store.touch(0);
  }
  EXPECT_TRUE(verify_corpus(bytes));
}

TEST(CorpusStore, NamesItsDocuments) {
  const CorpusBytes bytes = corpus_of({{1, 2}, {}, {3}, {4, 5, 6}}, 10);
  const CorpusStore store = CorpusStore::open(bytes).value();
  ASSERT_EQ(store.documents(), 3U);
  EXPECT_EQ(store.tokens(), 6U);
  EXPECT_EQ(store.bytes(), bytes.size());
  EXPECT_EQ(store.document(1).name, "d2");
  EXPECT_EQ(store.document(1).begin, 3U);
  EXPECT_EQ(store.document(1).end, 4U);
  EXPECT_EQ(store.document(3).name, "");
  const std::vector<std::uint64_t> expected = {0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3};
  for (StorePlace place = 0; place < expected.size(); ++place)
    EXPECT_EQ(store.document_of(place), expected[place]) << place;
}

TEST(CorpusStore, RefusesACorpusOfAnotherTokenizer) {
  const CorpusBytes bytes = corpus_of({{1}}, 10, 0xabc);
  EXPECT_TRUE(CorpusStore::open(bytes, {0xabc, 10}));
  const auto other_size = CorpusStore::open(bytes, {0xabc, 11});
  EXPECT_EQ(other_size.error().code, ErrorCode::other_vocabulary);
  EXPECT_EQ(other_size.error().value, 10U);
  EXPECT_EQ(other_size.error().limit, 11U);
  const auto other = CorpusStore::open(bytes, {0xabd, 10});
  EXPECT_EQ(other.error().code, ErrorCode::other_tokenizer);
  EXPECT_EQ(other.error().value, 0xabcU);
  EXPECT_EQ(other.error().limit, 0xabdU);
}

}  // namespace
}  // namespace reprise::corpus_store_test
