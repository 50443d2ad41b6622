// SPDX-License-Identifier: Apache-2.0
// How much of the rolling-hash index one append moves to larger memory. The entries are counted; nothing is timed.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/index/detail/column.hpp"
#include "reprise/index/detail/ngram_chain.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "support/streams.hpp"

namespace reprise::growth_steps_test {

/// The memory of one table or array.
struct Memory {
  std::size_t room = 0;
  std::size_t larger_room = 0;  ///< where the entries move; 0: they do not move
  std::size_t moved = 0;        ///< the entries that have moved
};
constexpr std::size_t chains = 3;
using State = std::array<Memory, 2 * chains + 1>;  // the tables, the links and the tokens

// Gives the test the private state of the moves. An explicit instantiation may name private members.
Memory of(const detail::Column<Token>& column);
Memory of(const detail::Column<Position>& column);
Memory of(const detail::NgramChain& chain);
const detail::Column<Position>& links_of(const detail::NgramChain& chain);
using Chains = std::array<detail::NgramChain, NgramOrders::capacity>;
const Chains& chains_of(const RollingHashIndex& index);
const detail::Column<Token>& tokens_of(const RollingHashIndex& index);

template <class Column, auto Current, auto Larger>
struct ColumnState {
  friend Memory of(const Column& column) {
    return {(column.*Current).capacity(), (column.*Larger).capacity(), (column.*Larger).size()};
  }
};
template struct ColumnState<detail::Column<Token>, &detail::Column<Token>::current_, &detail::Column<Token>::larger_>;
template struct ColumnState<detail::Column<Position>, &detail::Column<Position>::current_,
                            &detail::Column<Position>::larger_>;
template <auto Larger, auto Previous>
struct ChainState {
  friend Memory of(const detail::NgramChain& chain) {
    return {chain.table().slots(), (chain.*Larger).table.slots(), (chain.*Larger).size};
  }
  friend const detail::Column<Position>& links_of(const detail::NgramChain& chain) { return chain.*Previous; }
};
template struct ChainState<&detail::NgramChain::larger_, &detail::NgramChain::previous_>;
template <auto Members, auto Tokens>
struct IndexState {
  friend const Chains& chains_of(const RollingHashIndex& index) { return index.*Members; }
  friend const detail::Column<Token>& tokens_of(const RollingHashIndex& index) { return index.*Tokens; }
};
template struct IndexState<&RollingHashIndex::chains_, &RollingHashIndex::tokens_>;

namespace {

using testing::make_stream;
using testing::SplitMix;
using testing::Stream;

State state_of(const RollingHashIndex& index) {
  State state;
  for (std::size_t i = 0; i < chains; ++i) {
    state[i] = of(chains_of(index)[i]);
    state[chains + i] = of(links_of(chains_of(index)[i]));
  }
  state.back() = of(tokens_of(index));
  return state;
}

/// Returns how many of `size` entries have moved between two states.
std::size_t moved(const Memory& before, const Memory& after, std::size_t size) {
  if (after.room == before.room) return after.moved - std::min(after.moved, before.moved);
  if (after.room == before.larger_room) return size - std::min(size, before.moved);
  return size;  // in one step
}

/// The most entries that one append of one token has moved.
struct Most {
  std::size_t of_tables = 0;
  std::size_t of_arrays = 0;

  void append(RollingHashIndex& index, Token token) {
    const State before = state_of(index);
    const std::size_t size = index.tokens().size();
    index.append({&token, 1});
    const State after = state_of(index);
    std::size_t tables = 0;
    std::size_t arrays = 0;
    for (std::size_t i = 0; i < after.size(); ++i) (i < chains ? tables : arrays) += moved(before[i], after[i], size);
    of_tables = std::max(of_tables, tables);
    of_arrays = std::max(of_arrays, arrays);
  }
};

/// Text in which known tokens, pairs and sequences of 4 tokens recur at random, for random times.
class Text {
 public:
  Text(std::uint64_t seed, std::size_t known) : random_(seed), known_(known) {}
  Token next() {
    if (random_.one_in(300)) new_in_100_ = random_.one_in(2) ? 100 : random_.below(100);
    if (random_.below(100) < new_in_100_) return fresh_++;
    return static_cast<Token>(random_.below(known_));
  }

 private:
  SplitMix random_;
  std::size_t known_;
  std::size_t new_in_100_ = 100;
  Token fresh_ = 1 << 20;
};

// At 60,000 tokens. The share depends on the part of a table that is free, and not on its size.
constexpr std::size_t most_entries = 3000;

Most most_moved(std::uint64_t seed, std::size_t most_tokens) {
  SplitMix random(seed);
  Text text(seed, random.one_in(2) ? 50 : 20'000);
  RollingHashIndex index(IndexOptions{.orders = {1, 2, 4}});
  Most most;
  const auto append = [&](std::size_t count) {
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = text.next();
    index.append(tokens);
  };
  const bool cuts = random.one_in(4);
  for (append(random.between(4000, 12'000)); index.tokens().size() < most_tokens;) {
    const std::size_t kind = random.below(100);
    if (kind < 10) append(random.between(2, 32));
    if (kind == 10 && random.one_in(4)) append(random.between(33, 500));
    if (kind > 10 && kind < 16) index.truncate(index.tokens().size() - random.below(random.one_in(20) ? 1000 : 60));
    if (cuts && random.one_in(3000)) index.truncate(index.tokens().size() - random.below(index.tokens().size() / 2));
    for (std::size_t i = random.below(40); i-- > 0;) most.append(index, text.next());
  }
  return most;
}

TEST(GrowthSteps, OneTokenMovesFewEntriesInAnyOrderOfAppendsAndCuts) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Most most = most_moved(seed, 60'000);
    EXPECT_LE(most.of_tables, most_entries) << seed;
    EXPECT_LE(most.of_arrays, 3 * most_entries) << seed;
    EXPECT_GT(most.of_tables, 100U) << "nothing has moved: " << seed;
  }
}

}  // namespace
}  // namespace reprise::growth_steps_test
