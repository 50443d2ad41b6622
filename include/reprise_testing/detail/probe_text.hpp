// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing::detail {

/// One unusual pass of a check, and the draft that it sends.
struct Step {
  std::size_t right = 0;         ///< drafted tokens that agree with plain decoding
  std::size_t wrong = 0;         ///< drafted tokens after the right ones; the first of these disagrees
  std::size_t take = unlimited;  ///< commit at most this many tokens and read no more picks
  std::size_t siblings = 0;      ///< wrong siblings of each right token, and wrong tokens after the last one
  std::size_t tail = 0;          ///< tokens after each sibling, equal to those after the right token
  std::uint64_t order = 0;   ///< tree row order. 0: right path first; 1: right token last at each depth; else: mixed
  bool tree = false;         ///< use verify_tree() and commit_rows(), even for chains
  bool walk = false;         ///< use verify_and_walk()
  bool twice = false;        ///< first run the pass once without a commit
  bool fail = false;         ///< first make the pass fail once
  bool refuse = false;       ///< first read one pick and commit nothing, as if a stop predicate refused it
  bool drop = false;         ///< run and read the pass without a commit, then decode plainly instead
  bool save = false;         ///< call snapshot() first, even without a draft
  bool ask = false;          ///< call allowed() first
  bool reveal = false;       ///< read the candidates of all rows before the commit
  bool weigh = false;        ///< read probabilities instead of picks
  std::size_t position = 0;  ///< the number of decoded tokens when the step is run
};

/// Returns a step with a tree: `right` right tokens, each with `siblings` wrong siblings.
inline Step tree_step(std::size_t right, std::size_t siblings, std::size_t tail, std::uint64_t order) {
  return {.right = right, .siblings = siblings, .tail = tail, .order = order, .tree = true};
}

/// The tokens that the engine receives for a step, and the right ones among them.
struct ProbeDraft {
  std::vector<Token> batch;        ///< the pending tokens and the drafted ones
  std::vector<NodeIndex> parents;  ///< one for each drafted token
  /// The picks along the right path: 0, then 1 + row for each drafted row that holds a right token.
  std::vector<std::size_t> path = {0};
};

/// A difference from plain decoding, or a failed call.
struct Difference {
  std::string message;
  bool near_tie = false;
  bool is_pick = false;  ///< a pick differs, not a call failed
};

template <class List>
std::string listed(const List& values) {
  std::string text = "{";
  for (const auto value : values) {
    if (text.size() > 1) text += ' ';
    text += std::to_string(value);
  }
  return text + '}';
}

/// A prompt and its continuation by plain decoding. Makes drafts from them: chains and trees whose right and wrong
/// tokens are known.
class ProbeText {
 public:
  explicit ProbeText(TokenSpan prompt) : text_(prompt.begin(), prompt.end()), prompt_(prompt.size()) {}

  void push_back(Token token) { text_.push_back(token); }
  /// Returns the number of decoded tokens.
  [[nodiscard]] std::size_t size() const noexcept { return text_.size() - prompt_; }
  /// Returns the decoded token at position `p`.
  [[nodiscard]] Token operator[](std::size_t p) const noexcept { return text_[prompt_ + p]; }
  /// Returns the decoded tokens from `p` on, at most `most` of them.
  [[nodiscard]] TokenSpan from(std::size_t p, std::size_t most) const noexcept {
    return TokenSpan(text_).subspan(prompt_ + p, std::min(most, size() - p));
  }
  /// Returns the `pending` tokens before the decoded token at position `p`.
  [[nodiscard]] TokenSpan before(std::size_t p, std::size_t pending) const noexcept {
    return TokenSpan(text_).subspan(prompt_ + p - pending, pending);
  }
  [[nodiscard]] std::size_t prompt() const noexcept { return prompt_; }
  /// Returns the prompt and the tokens before the decoded token at position `p`, except the last `left_out` of them.
  [[nodiscard]] TokenSpan until(std::size_t p, std::size_t left_out) const noexcept {
    return TokenSpan(text_).first(prompt_ + p - left_out);
  }

  /// Returns the draft of a step after `p` decoded tokens. Cuts it to the engine's capabilities, for a pass that also
  /// carries `pending` tokens.
  [[nodiscard]] ProbeDraft draft(const Step& step, std::size_t p, std::size_t pending, const Capabilities& can) const {
    std::vector<Node> nodes = proposed(step, p);
    put_in_order(nodes, step.order);
    std::size_t most = std::min({nodes.size(), can.max_rollback, can.max_rows - std::min(can.max_rows, pending)});
    most = std::min(most, can.max_context - std::min(can.max_context, prompt_ + p + 1));
    ProbeDraft draft;
    const TokenSpan first = before(p, pending);
    draft.batch.assign(first.begin(), first.end());
    std::vector<NodeIndex> rows(nodes.size(), anchor_parent);  // the drafted row of each node
    std::vector<std::size_t> depths;
    std::size_t leaves = 0;
    for (std::size_t i = 0; i < nodes.size() && draft.parents.size() < most; ++i) {
      const NodeIndex parent = nodes[i].parent == anchor_parent ? anchor_parent : rows[at(nodes[i].parent)];
      if (nodes[i].parent != anchor_parent && parent == anchor_parent) continue;
      const std::size_t depth = parent == anchor_parent ? 1 : depths[at(parent)] + 1;
      const bool extends = parent != anchor_parent &&
                           std::find(draft.parents.begin(), draft.parents.end(), parent) == draft.parents.end();
      if (depth > can.max_depth || (!extends && leaves >= std::max<std::size_t>(can.max_leaves, 1))) continue;
      rows[i] = static_cast<NodeIndex>(draft.parents.size());
      leaves += extends ? 0 : 1;
      draft.batch.push_back(nodes[i].token);
      draft.parents.push_back(parent);
      depths.push_back(depth);
      if (nodes[i].right) draft.path.push_back(draft.parents.size());
    }
    const std::size_t fitting =
        widest({PassShape{1, pending, 0}, unlimited, can.allowed_widths.values()}, draft.parents.size());
    draft.batch.resize(pending + fitting);
    draft.parents.resize(fitting);
    while (draft.path.back() > fitting) draft.path.pop_back();
    return draft;
  }

  /// Returns a token that differs from the one that plain decoding has at `p`. `n`, counted from 0, chooses among the
  /// distinct tokens of the text. Returns nullopt if n > 0 and the text has too few distinct tokens.
  [[nodiscard]] std::optional<Token> unlike(std::size_t p, std::size_t n = 0) const {
    std::vector<Token> found(1, p < size() ? (*this)[p] : text_.back());
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const Token token = text_[(prompt_ + p + i) % text_.size()];
      if (std::find(found.begin(), found.end(), token) != found.end()) continue;
      if (found.size() == n + 1) return token;
      found.push_back(token);
    }
    if (n == 0) return found[0] == 0 ? 1 : 0;
    return {};
  }

 private:
  struct Node {
    Token token = 0;
    NodeIndex parent = anchor_parent;
    bool right = false;
  };
  static std::size_t at(NodeIndex node) noexcept { return static_cast<std::size_t>(node); }

  [[nodiscard]] std::vector<Node> proposed(const Step& step, std::size_t p) const {
    // The pick after the text's last token is unknown, so that token is never drafted as a right one.
    const std::size_t right = std::min(step.right, size() - p - 1);
    std::vector<Node> nodes;
    NodeIndex last = anchor_parent;
    const auto push = [&](Token token, NodeIndex parent, bool is_right) {
      nodes.push_back({token, parent, is_right});
      return static_cast<NodeIndex>(nodes.size() - 1);
    };
    for (std::size_t d = 0; d <= right; ++d) {
      for (std::size_t n = 0; n < step.siblings; ++n) {
        const auto token = unlike(p + d, n);
        if (!token) break;
        NodeIndex end = push(*token, last, false);
        for (std::size_t t = 1; t <= step.tail && p + d + t < size(); ++t) end = push((*this)[p + d + t], end, false);
      }
      if (d < right) last = push((*this)[p + d], last, true);
    }
    if (step.siblings == 0)
      for (std::size_t i = right; i < step.right + step.wrong; ++i) last = push(*unlike(p + i), last, false);
    return nodes;
  }
  /// Reorders the nodes as Step::order specifies. Parents stay before their children.
  static void put_in_order(std::vector<Node>& nodes, std::uint64_t order) {
    if (order == 1) return;
    Random random(order);
    std::vector<NodeIndex> moved(nodes.size(), anchor_parent);
    std::vector<Node> ordered;
    while (ordered.size() < nodes.size()) {
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const bool waits = nodes[i].parent != anchor_parent && moved[at(nodes[i].parent)] == anchor_parent;
        if (moved[i] == anchor_parent && !waits) ready.push_back(i);
      }
      std::size_t next = ready[order == 0 ? 0 : random.below(ready.size())];
      if (order == 0)
        for (const std::size_t i : ready)
          if (nodes[i].right) next = i;
      Node node = nodes[next];
      if (node.parent != anchor_parent) node.parent = moved[at(node.parent)];
      moved[next] = static_cast<NodeIndex>(ordered.size());
      ordered.push_back(node);
    }
    nodes = std::move(ordered);
  }

  std::vector<Token> text_;
  std::size_t prompt_;
};

}  // namespace reprise::testing::detail
