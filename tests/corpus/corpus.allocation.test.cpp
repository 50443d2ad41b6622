// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "reprise_corpus/corpus_store.hpp"
#include "reprise_corpus/corpus_writer.hpp"
#include "reprise_corpus/verify_corpus.hpp"
#include "reprise_testing/random.hpp"
#include "support/allocation_counter.hpp"
#include "support/corpora.hpp"

namespace reprise::corpus_allocation_test {
namespace {

using testing::AllocationWatch;

TEST(CorpusMemory, IsNotAskedForByReaders) {
  testing::Random random(1);
  const auto documents = testing::random_documents(random, 50, 100, 5);
  const auto bytes = testing::corpus_of(documents, 10);
  const AllocationWatch watch;
  const CorpusStore store = CorpusStore::open(bytes).value();
  EXPECT_TRUE(verify_corpus(bytes));
  std::array<StoreMatch, 12> matches;
  std::array<Token, 40> tokens;
  std::array<CorpusStore::NextToken, 8> next;
  for (const auto& document : documents) {
    const std::size_t count = store.find(document, matches);
    for (const StoreMatch& match : std::span(matches).first(count)) {
      EXPECT_GT(store.read(match.next, tokens).size, 0U);
      store.touch(match.next);
    }
    EXPECT_GT(store.continuations(TokenSpan(document).first(1), next).total, 0U);
  }
  EXPECT_EQ(watch.allocations(), 0U);
}

}  // namespace
}  // namespace reprise::corpus_allocation_test
