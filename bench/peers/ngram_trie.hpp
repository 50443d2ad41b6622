// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::peers {

/// A trie of n-grams with a fixed number of nodes. Each node counts the n-grams that pass through it. If no node is
/// free, the least recently used leaf is evicted; using a node uses its ancestors too.
///
/// Cost: add() and find() look up one hash bucket for each token. Memory: 56 bytes per node. Only prepare() allocates.
/// Without memory, nothing is stored or found. Threads: one at a time; copies are independent.
class NgramTrie {
 public:
  using Index = std::uint32_t;
  static constexpr Index root = 0;
  static constexpr Index none = std::numeric_limits<Index>::max();

  struct Node {
    Token token = 0;
    std::uint32_t count = 0;  ///< number of n-grams added through this node since it was made
    std::uint64_t made = 0;   ///< serial number: nodes made earlier have lower ones
    Index parent = none;
    Index first_child = none;  ///< the child made last
    Index next_sibling = none;
    Index previous_sibling = none;
    Index bucket = none;  ///< the first node of the hash bucket with this node's number; unrelated to the node
    Index next_in_bucket = none;
    Index older = none;  ///< the node used before this one
    Index newer = none;
    std::uint32_t depth = 0;
  };

  /// `nodes`: the number of nodes with the root. Requires that it exceeds the length of each n-gram by at least 2.
  explicit NgramTrie(std::size_t nodes) noexcept : most_(nodes) {}

  /// Allocates the memory, unless it is allocated already. Keeps the contents.
  void prepare() noexcept {
    if (!usable() && nodes_.reserve(most_)) clear();
  }
  /// Removes all n-grams. Allocates nothing after prepare().
  void clear() noexcept {
    nodes_.clear();
    if (nodes_.capacity() < most_) return;
    static_cast<void>(nodes_.resize(most_, Node{}));
    used_ = 1;
    newest_ = oldest_ = none;
    made_ = 0;
  }
  /// Adds an n-gram, and uses its nodes.
  void add(TokenSpan ngram) noexcept {
    if (!usable()) return;
    REPRISE_EXPECTS(ngram.size() + 2 <= most_);
    Index at = root;
    for (const Token token : ngram) {
      Index child = find_child(at, token);
      if (child == none)
        child = make(at, token);
      else
        move_to_front(child);
      ++nodes_[child].count;
      at = child;
    }
    use(at);
  }
  /// Marks a node and its ancestors as used, the ancestors last. Hence the least recently used node is a leaf.
  void use(Index node) noexcept {
    for (; node != root; node = nodes_[node].parent) move_to_front(node);
  }
  /// Returns the node at the end of `path`, or `none`.
  [[nodiscard]] Index find(TokenSpan path) const noexcept {
    if (!usable()) return none;
    Index at = root;
    for (std::size_t i = 0; i < path.size() && at != none; ++i) at = find_child(at, path[i]);
    return at;
  }
  [[nodiscard]] const Node& operator[](Index node) const noexcept { return nodes_[node]; }
  /// Returns the number of nodes in use, with the root; 0 without memory.
  [[nodiscard]] std::size_t size() const noexcept { return usable() ? used_ : 0; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return nodes_.memory_bytes(); }

 private:
  /// False before prepare(), and in a copy that ran out of memory.
  [[nodiscard]] bool usable() const noexcept { return nodes_.size() == most_; }

  [[nodiscard]] std::size_t bucket_of(Index parent, Token token) const noexcept {
    constexpr std::uint64_t tokens = std::uint64_t{1} << 32;  // the number of token values
    return static_cast<std::size_t>(testing::mix(parent * tokens + static_cast<std::uint32_t>(token)) % most_);
  }
  [[nodiscard]] Index find_child(Index parent, Token token) const noexcept {
    Index at = nodes_[bucket_of(parent, token)].bucket;
    while (at != none && (nodes_[at].parent != parent || nodes_[at].token != token)) at = nodes_[at].next_in_bucket;
    return at;
  }
  Index make(Index parent, Token token) noexcept {
    const Index at = used_ < most_ ? static_cast<Index>(used_++) : evicted();
    Node& node = nodes_[at];
    node = Node{.token = token, .made = ++made_, .parent = parent, .bucket = node.bucket};
    node.depth = nodes_[parent].depth + 1;
    node.next_sibling = nodes_[parent].first_child;
    if (node.next_sibling != none) nodes_[node.next_sibling].previous_sibling = at;
    nodes_[parent].first_child = at;
    Index& bucket = nodes_[bucket_of(parent, token)].bucket;
    node.next_in_bucket = bucket;
    bucket = at;
    push_front(at);
    return at;
  }
  /// Removes the least recently used node and returns its index.
  Index evicted() noexcept {
    const Index at = oldest_;
    Node& node = nodes_[at];
    REPRISE_EXPECTS(node.first_child == none);
    unlink(at);
    (node.previous_sibling == none ? nodes_[node.parent].first_child : nodes_[node.previous_sibling].next_sibling) =
        node.next_sibling;
    if (node.next_sibling != none) nodes_[node.next_sibling].previous_sibling = node.previous_sibling;
    Index* link = &nodes_[bucket_of(node.parent, node.token)].bucket;
    while (*link != at) link = &nodes_[*link].next_in_bucket;
    *link = node.next_in_bucket;
    return at;
  }

  void move_to_front(Index at) noexcept {
    if (at == newest_) return;
    unlink(at);
    push_front(at);
  }
  void unlink(Index at) noexcept {
    const Node& node = nodes_[at];
    (node.newer == none ? newest_ : nodes_[node.newer].older) = node.older;
    (node.older == none ? oldest_ : nodes_[node.older].newer) = node.newer;
  }
  void push_front(Index at) noexcept {
    nodes_[at].newer = none;
    nodes_[at].older = newest_;
    (newest_ == none ? oldest_ : nodes_[newest_].newer) = at;
    newest_ = at;
  }

  std::size_t most_;
  std::size_t used_ = 1;  // the root is in use
  std::uint64_t made_ = 0;
  Index newest_ = none;
  Index oldest_ = none;
  detail::Buffer<Node> nodes_;
};

}  // namespace reprise::peers
