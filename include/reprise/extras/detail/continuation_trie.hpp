// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/buffer.hpp"
#include "reprise/core/datastore.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0::detail {

/// A node of a trie of continuations that has been selected.
struct SelectedNode {
  Token token = 0;
  NodeIndex parent = anchor_parent;  ///< an earlier selected node, or the anchor
  std::uint32_t count = 0;           ///< number of continuations that begin with this path
  std::size_t depth = 0;             ///< tokens on the path
};

/// The limits of ContinuationTrie::select().
struct SelectionLimits {
  std::size_t nodes = 0;
  std::size_t depth = 0;
  bool chain = false;
};

/// The tokens that follow the longest matches of a suffix in a datastore, as a trie with counts.
///
/// The continuations are sorted, so a node of the trie is a range of them. A child never has a higher count than its
/// parent. Hence a best-first search from the root finds the most frequent nodes without building the trie.
///
/// Only prepare() and copying allocate. If memory runs out, the object retrieves nothing until the next prepare().
class ContinuationTrie {
 public:
  /// Allocates memory for `places` continuations of `length` tokens, unless it is there already.
  void prepare(std::size_t places, std::size_t length) noexcept {
    length_ = length;
    const bool made = matches_.resize(places, {}) && order_.resize(places, {}) && frontier_.resize(places, {}) &&
                      tokens_.resize(places * length, 0);
    if (!made) release();
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return matches_.memory_bytes() + order_.memory_bytes() + frontier_.memory_bytes() + tokens_.memory_bytes();
  }

  /// Retrieves the continuations of the longest suffix that `store` finds. Returns the length of that suffix. Returns 0
  /// and retrieves nothing if it is shorter than `least` tokens.
  std::size_t retrieve(const DatastoreRef& store, TokenSpan suffix, std::size_t least) noexcept {
    count_ = 0;
    const std::span<StoreMatch> matches{matches_.data(), places()};
    if (matches.empty() || store.empty() || suffix.empty()) return 0;
    const std::size_t found = std::min(store.find(suffix, matches), matches.size());
    const auto length_of = [&](const StoreMatch& match) {
      return std::min(static_cast<std::size_t>(std::countr_one(match.agreements)), suffix.size());
    };
    std::size_t longest = 0;
    for (const StoreMatch& match : matches.first(found)) longest = std::max(longest, length_of(match));
    if (longest == 0 || longest < least) return 0;
    for (const StoreMatch& match : matches.first(found))
      if (length_of(match) == longest) read(store, match.next);
    std::sort(order_.begin(), order_.begin() + count_, [&](const Continuation& a, const Continuation& b) {
      const TokenSpan x = tokens_of(a);
      const TokenSpan y = tokens_of(b);
      const auto [i, j] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
      if (i == x.end() || j == y.end()) return x.size() != y.size() ? x.size() < y.size() : a.index < b.index;
      return *i < *j;
    });
    return longest;
  }
  /// Returns the number of continuations.
  [[nodiscard]] std::uint32_t size() const noexcept { return count_; }

  /// Writes the nodes with the highest counts to `out`, parents before their children, and returns their number. Among
  /// equal counts, smaller depths come first; then the node whose continuation the store has listed first. A chain
  /// follows the first of the children in this order.
  std::size_t select(const SelectionLimits& limits, std::span<SelectedNode> out) noexcept {
    const std::size_t most = std::min(limits.nodes, out.size());
    std::size_t waiting = 0;  // ranges in the heap `frontier_`; they do not overlap, so they fit
    expand({0, count_, 0, 0, anchor_parent}, limits, waiting);
    std::size_t selected = 0;
    while (selected < most && waiting > 0) {
      std::pop_heap(frontier_.begin(), frontier_.begin() + static_cast<std::ptrdiff_t>(waiting), is_worse);
      const Range best = frontier_[--waiting];
      out[selected] = {tokens_of(order_[best.begin])[best.depth - 1], best.parent, best.end - best.begin, best.depth};
      expand({best.begin, best.end, 0, best.depth, static_cast<NodeIndex>(selected++)}, limits, waiting);
    }
    return selected;
  }

 private:
  /// A continuation: its place in the store's list, and its number of tokens.
  struct Continuation {
    std::uint32_t index = 0;
    std::uint32_t size = 0;
  };
  /// A node: the sorted continuations that begin with the same `depth` tokens.
  struct Range {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t first = 0;  // the smallest Continuation::index
    std::uint32_t depth = 0;
    NodeIndex parent = anchor_parent;
  };
  static bool is_worse(const Range& a, const Range& b) noexcept {
    if (a.end - a.begin != b.end - b.begin) return a.end - a.begin < b.end - b.begin;
    return a.depth != b.depth ? a.depth > b.depth : a.first > b.first;
  }

  /// Returns the number of continuations for which there is memory. A copy that ran out of memory may have less.
  [[nodiscard]] std::size_t places() const noexcept {
    const std::size_t runs = length_ == 0 ? 0 : tokens_.size() / length_;
    return std::min({matches_.size(), order_.size(), frontier_.size(), runs});
  }
  [[nodiscard]] TokenSpan tokens_of(const Continuation& continuation) const noexcept {
    return {tokens_.data() + continuation.index * length_, continuation.size};
  }
  void release() noexcept {
    matches_.release();
    order_.release();
    frontier_.release();
    tokens_.release();
  }

  /// Appends the continuation at `place`. It is empty if the text ends there.
  void read(const DatastoreRef& store, StorePlace place) noexcept {
    const std::span<Token> out{tokens_.data() + count_ * length_, length_};
    std::size_t size = 0;
    while (size < out.size() && place != no_place) {
      const StoreRun run = store.read(place, out.subspan(size));
      if (run.size == 0) break;
      size += std::min(run.size, out.size() - size);
      place = run.next;
    }
    order_[count_] = {count_, static_cast<std::uint32_t>(size)};
    ++count_;
  }
  /// Adds the children of `node` to the heap; for a chain, only the best one.
  void expand(const Range& node, const SelectionLimits& limits, std::size_t& waiting) noexcept {
    if (node.depth == std::min(limits.depth, length_)) return;
    const std::size_t before = waiting;
    for (std::uint32_t begin = node.begin; begin < node.end;) {
      const TokenSpan tokens = tokens_of(order_[begin]);
      Range child = {begin, begin + 1, order_[begin].index, node.depth + 1, node.parent};
      if (tokens.size() == node.depth) {  // ends here; such continuations come first
        begin = child.end;
        continue;
      }
      for (; child.end < node.end && tokens_of(order_[child.end])[node.depth] == tokens[node.depth]; ++child.end)
        child.first = std::min(child.first, order_[child.end].index);
      begin = child.end;
      if (!limits.chain || waiting == before)
        frontier_[waiting++] = child;
      else if (is_worse(frontier_[before], child))
        frontier_[before] = child;
      if (!limits.chain)
        std::push_heap(frontier_.begin(), frontier_.begin() + static_cast<std::ptrdiff_t>(waiting), is_worse);
    }
  }

  Buffer<StoreMatch> matches_;
  Buffer<Continuation> order_;  // sorted by tokens, then by index
  Buffer<Range> frontier_;
  Buffer<Token> tokens_;  // of continuation i: `length_` tokens from i * length_ on
  std::size_t length_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace reprise::detail
