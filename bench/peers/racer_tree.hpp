// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "peers/ngram_trie.hpp"
#include "peers/rank_matrix.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise::peers {

/// A draft tree in which paths with equal tokens are one path. Its root is the anchor.
class MergedPaths {
 public:
  static constexpr std::size_t most = 63;
  static constexpr NodeIndex full = -2;  ///< no room for the node

  /// `limit`: the largest number of nodes, at most `most`.
  explicit MergedPaths(std::size_t limit) noexcept : limit_(limit) { REPRISE_EXPECTS(limit <= most); }

  /// Returns the child of `node.parent` with the same token. Adds the node if there is none. Returns `full` if there is
  /// no room for it.
  NodeIndex child(const DraftNode& node) noexcept {
    for (std::size_t i = 0; i < size_; ++i)
      if (nodes_[i].parent == node.parent && nodes_[i].token == node.token) return static_cast<NodeIndex>(i);
    if (size_ == limit_) return full;
    nodes_[size_] = node;
    return static_cast<NodeIndex>(size_++);
  }
  [[nodiscard]] bool is_full() const noexcept { return size_ == limit_; }
  /// Pushes the nodes level by level. A node's children are in order of their addition.
  void write(Draft& draft) const noexcept {
    std::array<NodeIndex, most + 1> order;   // NOLINT(*-member-init): filled up to `listed`
    std::array<NodeIndex, most + 1> pushed;  // NOLINT(*-member-init): the index of each listed node in the draft
    std::size_t listed = 0;
    order[listed] = pushed[listed] = anchor_parent;
    ++listed;
    for (std::size_t parent = 0; parent < listed; ++parent)
      for (std::size_t i = 0; i < size_; ++i) {
        if (nodes_[i].parent != order[parent]) continue;
        DraftNode node = nodes_[i];
        node.parent = pushed[parent];
        if (!draft.push(node)) continue;
        order[listed] = static_cast<NodeIndex>(i);
        pushed[listed++] = static_cast<NodeIndex>(draft.size()) - 1;
      }
  }

 private:
  std::size_t limit_;
  std::size_t size_ = 0;
  std::array<DraftNode, most> nodes_;
};

/// RACER's retrieval tree: the most frequent nodes of a trie among those that continue a suffix of the text. The
/// suffixes are themselves nodes ("borders"). A border stands for the anchor, and counts as a chosen node too.
class RetrievedNodes {
 public:
  static constexpr std::size_t most = MergedPaths::most + 1;

  struct Chosen {
    NgramTrie::Index node = NgramTrie::none;
    std::uint32_t border = 0;  ///< the number of its border, from the longest suffix on
    std::size_t parent = 0;    ///< the chosen node before it on its path; unused for a border
    std::uint32_t match_length = 0;
    bool is_border = false;
  };

  /// Chooses at most `wanted` nodes: higher counts first, then smaller depths in the trie, then longer suffixes, then
  /// nodes made earlier. If `chain`, only the longest suffix counts, and only the best child of each node.
  /// `longest`: the length of the trie's n-grams.
  RetrievedNodes(const NgramTrie& trie, TokenSpan context, std::size_t longest, std::size_t wanted, bool chain) noexcept
      : trie_(trie), wanted_(wanted) {
    REPRISE_EXPECTS(wanted <= most);
    std::uint32_t border = 0;
    for_each_border(trie, context, longest, [&](NgramTrie::Index node) noexcept {
      if (chain && border > 0) return;
      offer({.node = node, .border = border++, .match_length = trie[node].depth, .is_border = true});
    });
    while (waiting_ > 0 && size_ < wanted_) {
      chosen_[size_] = queue_[0];
      std::copy(queue_.begin() + 1, queue_.begin() + static_cast<std::ptrdiff_t>(waiting_--), queue_.begin());
      expand(size_++, chain);
    }
  }

  /// Calls `visit` with the trie's node for each suffix of `context` that the trie contains, longest first. Suffixes of
  /// one token do not count.
  template <class Visit>
  static void for_each_border(const NgramTrie& trie, TokenSpan context, std::size_t longest, Visit visit) noexcept {
    for (std::size_t length = std::min(longest, context.size()); length >= 2; --length)
      if (const NgramTrie::Index node = trie.find(context.last(length)); node != NgramTrie::none) visit(node);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Adds the chosen paths to `paths`. Returns the last node added, or the anchor if there is none.
  NodeIndex add_to(MergedPaths& paths) const noexcept {
    std::array<NodeIndex, most> at;  // NOLINT(*-member-init): filled as far as it is read
    NodeIndex last = anchor_parent;
    for (std::size_t i = 0; i < size_; ++i) {
      const Chosen& chosen = chosen_[i];
      last = at[i] = chosen.is_border ? anchor_parent
                                      : paths.child({.token = trie_[chosen.node].token,
                                                     .parent = at[chosen.parent],
                                                     .match_length = static_cast<std::uint16_t>(chosen.match_length),
                                                     .source = DraftSource::context});
    }
    return last;
  }
  /// Returns the token of the last chosen node, or `anchor` if none is chosen.
  [[nodiscard]] Token last_token(Token anchor) const noexcept {
    return size_ == 0 ? anchor : trie_[chosen_[size_ - 1].node].token;
  }

 private:
  [[nodiscard]] bool better(const Chosen& a, const Chosen& b) const noexcept {
    const NgramTrie::Node& x = trie_[a.node];
    const NgramTrie::Node& y = trie_[b.node];
    if (x.count != y.count) return x.count > y.count;
    if (x.depth != y.depth) return x.depth < y.depth;
    return a.border != b.border ? a.border < b.border : x.made < y.made;
  }
  /// Puts a node into the queue, which keeps as many of the best as can still be chosen.
  void offer(const Chosen& node) noexcept {
    if (waiting_ == wanted_ - size_) {
      if (waiting_ == 0 || !better(node, queue_[waiting_ - 1])) return;
      --waiting_;
    }
    std::size_t at = waiting_++;
    for (; at > 0 && better(node, queue_[at - 1]); --at) queue_[at] = queue_[at - 1];
    queue_[at] = node;
  }
  /// Offers the children of a chosen node: all, or only the best one.
  void expand(std::size_t parent, bool best_only) noexcept {
    Chosen best;
    for (NgramTrie::Index child = trie_[chosen_[parent].node].first_child; child != NgramTrie::none;
         child = trie_[child].next_sibling) {
      const Chosen node{.node = child,
                        .border = chosen_[parent].border,
                        .parent = parent,
                        .match_length = chosen_[parent].match_length};
      if (!best_only)
        offer(node);
      else if (best.node == NgramTrie::none || better(node, best))
        best = node;
    }
    if (best.node != NgramTrie::none) offer(best);
  }

  const NgramTrie& trie_;
  std::size_t wanted_;
  std::size_t size_ = 0;
  std::size_t waiting_ = 0;
  std::array<Chosen, most> chosen_;
  std::array<Chosen, most> queue_;  // best first
};

/// RACER's logits tree: grown breadth first from rows of a matrix, with fewer children for lower ranks.
class LogitsTree {
 public:
  static constexpr std::size_t most = MergedPaths::most + 1;

  /// Grows a tree of at most `nodes` nodes with its root, which is `token`. The root has up to 8 children. The child of
  /// rank r of a node with b children has up to b / 2^(r + 1) children, but at least one. If that node is a child of
  /// the root, it is b / 2^r. A chain has one child per node.
  LogitsTree(const RankMatrix& matrix, Token token, std::size_t nodes, bool chain) noexcept {
    REPRISE_EXPECTS(nodes <= most);
    if (nodes == 0) return;
    nodes_[size_++] = {.token = token, .children = chain ? 1 : RankMatrix::ranks};
    for (std::size_t parent = 0; parent < size_ && size_ < nodes; ++parent) {
      const Node above = nodes_[parent];
      nodes_[parent].is_leaf = false;
      std::size_t children = above.depth == 1 ? above.children : above.children / 2;
      for (std::size_t rank = 0; rank < above.children && size_ < nodes; ++rank, children /= 2)
        nodes_[size_++] = {.token = matrix.row(above.token)[rank],
                           .parent = parent,
                           .children = std::max<std::size_t>(1, children),
                           .depth = above.depth + 1};
    }
  }

  /// Adds the paths to the leaves, in breadth-first order of the leaves, until `paths` is full. The root is `at`.
  void add_to(MergedPaths& paths, NodeIndex at) noexcept {
    for (std::size_t i = 0; i < size_; ++i) nodes_[i].added = i == 0 ? at : MergedPaths::full;
    for (std::size_t leaf = 1; leaf < size_; ++leaf)
      if (nodes_[leaf].is_leaf && !add_path(paths, leaf)) return;
  }

 private:
  struct Node {
    Token token = 0;
    std::size_t parent = 0;
    std::size_t children = 0;  // the largest number of children
    std::size_t depth = 0;
    bool is_leaf = true;
    NodeIndex added = MergedPaths::full;
  };

  /// Returns false if there is no room for the whole path.
  bool add_path(MergedPaths& paths, std::size_t leaf) noexcept {
    std::array<std::size_t, most> path;  // NOLINT(*-member-init): filled up to `length`
    std::size_t length = 0;
    for (std::size_t i = leaf; nodes_[i].added == MergedPaths::full; i = nodes_[i].parent) path[length++] = i;
    while (length > 0) {
      Node& node = nodes_[path[--length]];
      node.added =
          paths.child({.token = node.token, .parent = nodes_[node.parent].added, .source = DraftSource::target});
      if (node.added == MergedPaths::full) return false;
    }
    return true;
  }

  std::size_t size_ = 0;
  std::array<Node, most> nodes_;
};

}  // namespace reprise::peers
