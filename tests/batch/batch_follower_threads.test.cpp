// SPDX-License-Identifier: Apache-2.0
// Slots that read their ids and draft on several threads. ThreadSanitizer runs this test.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise_testing/random.hpp"
#include "support/streams.hpp"
#include "support/worker_threads.hpp"

namespace reprise::testing::batch_follower_threads_test {
namespace {

using Drafts = std::vector<std::vector<Token>>;
constexpr std::size_t slots = 12;
constexpr std::size_t passes = 60;

/// Decodes one text for each slot, and returns all drafts. Some slots pause or begin again. `for_each` divides the
/// work.
template <class ForEach>
Drafts drafts_of(const NgramOptions& options, ForEach&& for_each) {
  auto follower = BatchFollower<NgramDrafter<>>::make(slots, NgramDrafter<>(options)).value();
  const std::vector<Token> text = make_stream(Stream::trace_like, 4000, 3, 500);
  Random random(7);
  std::vector<std::size_t> sizes(slots, 200);
  Drafts all;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    std::vector<FollowedSlot> call;
    for (std::size_t i = 0; i < slots; ++i) {
      if (random.below(10) == 0) continue;
      if (random.below(40) == 0) sizes[i] = 1 + random.below(200);
      call.push_back({.slot = i, .ids = TokenSpan(text).subspan(i * 150, sizes[i])});
    }
    const auto drafts = follower.draft(call, std::chrono::milliseconds(pass), for_each).value();
    for (std::size_t k = 0; k < call.size(); ++k) {
      all.emplace_back(drafts[k].begin(), drafts[k].end());
      const TokenSpan next = TokenSpan(text).subspan(call[k].slot * 150 + sizes[call[k].slot]);
      std::size_t agreed = 0;
      while (agreed < drafts[k].size() && drafts[k][agreed] == next[agreed]) ++agreed;
      sizes[call[k].slot] += agreed + 1;
    }
  }
  return all;
}

struct Tables {
  HistoryStore store = HistoryStore::make({.max_bytes = 1 << 16}).value();
  NextTokens next_tokens = NextTokens::make({.max_bytes = 1 << 15, .rankings = true}).value();
  NgramOptions options() {
    NgramOptions made;
    made.stores = {store};
    made.next_tokens = &next_tokens;
    return made;
  }
  void learn(std::size_t begin) {
    const std::vector<Token> text = make_stream(Stream::trace_like, 4000, 3, 500);
    store.append(TokenSpan(text).subspan(begin, 50), Origin::output);
    next_tokens.add(TokenSpan(text).subspan(begin, 50));
    next_tokens.add(
        std::vector{NextTokens::RankedRow{Ranking::none, text[begin], Ranking(TokenSpan(text).subspan(begin + 1, 8))}});
  }
};

TEST(BatchFollowerThreads, DraftAsOneThreadDoes) {
  Tables tables;
  for (std::size_t i = 0; i < 3000; i += 50) tables.learn(i);
  const auto in_turn = [](std::size_t count, auto&& body) {
    for (std::size_t i = 0; i < count; ++i) body(i);
  };
  const auto backwards = [](std::size_t count, auto&& body) {
    while (count > 0) body(--count);
  };
  const Drafts expected = drafts_of(tables.options(), in_turn);
  std::size_t drafted = 0;
  for (const std::vector<Token>& draft : expected) drafted += draft.size();
  EXPECT_GT(drafted, 500U);
  EXPECT_EQ(drafts_of(tables.options(), backwards), expected);
  for (const std::size_t threads : {1U, 2U, 4U}) {
    WorkerThreads workers(threads);
    EXPECT_EQ(drafts_of(tables.options(), workers), expected) << threads << " threads";
  }
}

TEST(BatchFollowerThreads, ReadTablesThatAnotherThreadWrites) {
  Tables tables;
  std::atomic<bool> stops{false};
  std::thread writer([&] {
    for (std::size_t i = 0; !stops; i = (i + 50) % 3900) tables.learn(i);
  });
  WorkerThreads workers(3);
  EXPECT_FALSE(drafts_of(tables.options(), workers).empty());
  stops = true;
  writer.join();
}

}  // namespace
}  // namespace reprise::testing::batch_follower_threads_test
