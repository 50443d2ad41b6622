// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/datastore.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A node of a trie of continuations that has been selected.
struct SelectedNode {
  Token token = 0;
  NodeIndex parent = anchor_parent;  ///< an earlier selected node, or the anchor
  std::uint32_t count = 0;           ///< number of continuations that begin with this path
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
    if (!made) *this = ContinuationTrie();
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
  /// equal counts, smaller depths come first; then the node whose continuation the store has listed first. `draft`: its
  /// budget limits the depth. If it is a chain, only the first of the children in this order is followed.
  std::size_t select(const Draft& draft, std::span<SelectedNode> out) noexcept {
    std::size_t waiting = 0;  // ranges in the heap `frontier_`; they do not overlap, so they fit
    expand({0, count_, 0, 0, anchor_parent}, draft, waiting);
    std::size_t selected = 0;
    while (selected < out.size() && waiting > 0) {
      std::pop_heap(frontier_.begin(), frontier_.begin() + static_cast<std::ptrdiff_t>(waiting), is_worse);
      const Range best = frontier_[--waiting];
      out[selected] = {tokens_of(order_[best.begin])[best.depth - 1], best.parent, best.end - best.begin};
      expand({best.begin, best.end, 0, best.depth, static_cast<NodeIndex>(selected++)}, draft, waiting);
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
  void expand(const Range& node, const Draft& draft, std::size_t& waiting) noexcept {
    if (node.depth == std::min(draft.budget().max_depth, length_)) return;
    const bool chain = draft.chain();
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
      if (!chain || waiting == before)
        frontier_[waiting++] = child;
      else if (is_worse(frontier_[before], child))
        frontier_[before] = child;
      if (!chain) std::push_heap(frontier_.begin(), frontier_.begin() + static_cast<std::ptrdiff_t>(waiting), is_worse);
    }
  }

  detail::Buffer<StoreMatch> matches_;
  detail::Buffer<Continuation> order_;  // sorted by tokens, then by index
  detail::Buffer<Range> frontier_;
  detail::Buffer<Token> tokens_;  // of continuation i: `length_` tokens from i * length_ on
  std::size_t length_ = 0;
  std::uint32_t count_ = 0;
};

}}}  // namespace reprise::detail

namespace reprise { inline namespace v0 {

/// Settings of RestDrafter. The defaults are those of the authors.
struct RestOptions {
  DatastoreRef store = {};        ///< the text to draft from; without a store, nothing is drafted
  std::size_t max_ngram = 16;     ///< longest suffix looked up, 1..32
  std::size_t min_ngram = 2;      ///< shortest suffix looked up, 1..max_ngram; a shorter context is looked up whole
  std::size_t places = 5'000;     ///< most places of the store for one draft, 1..65,536
  std::size_t continuation = 10;  ///< most tokens read at a place, 1..64; the greatest depth of a draft
  std::size_t nodes = 64;         ///< most nodes of a draft, 1..64
  /// If false, the `nodes` most frequent nodes are the draft (paper). If true, they are cut as in the authors'
  /// repository; see RestDrafter.
  bool cut = false;
};

/// REST with the rules of its authors, for comparisons. Sources: the paper (He et al., NAACL 2024, arXiv 2311.08252)
/// and the authors' repository, github.com/FasterDecoding/REST, commit 50a5fc1. There, DraftRetriever/src/lib.rs has
/// the search and the tree, and rest/model/utils.py has the lengths of the suffixes. No code is copied.
///
/// The rule of a draft:
///
///  * The last 16 tokens, with the anchor, are looked up in a datastore. If they are not found, the last 15 tokens are,
///    and so on, down to 2.
///  * The 10 tokens at each of up to 5,000 places that are found make a trie. Each node counts the places whose tokens
///    begin with its path.
///  * The 64 nodes with the highest counts are the draft. Equal counts: smaller depth first, then the first place in
///    the order of the store.
///  * RestOptions::cut adds a step of the repository. Each of the 64 nodes costs the number of different tokens on its
///    path. The node with the highest cost is removed, and so on, until the sum of the costs is at most 64. So two
///    chains of 10 tokens, 20 nodes with a sum of 110, are cut to 15 nodes. Equal costs: the node chosen last first.
///
/// Nothing is learned, and the context itself is not a part of the datastore. A node states its share of the places as
/// its probability. Send the drafts whole (SendAll), as the authors do.
///
/// Differences from the repository:
///
///  * Datastore::find() chooses the places. The authors take the first 5,000 of a suffix array, which are those with
///    the smallest next tokens. A store of this library returns fewer places, see its find(). HistoryStore looks up at
///    most 8 tokens; the longest of its matches is not always the longest in its text.
///  * A continuation ends with its text. In the authors' datastore, it runs into the next document.
///  * If nothing is found, nothing is drafted. The authors draft token 100.
///  * The repository breaks ties by the order of a hash table, which changes from run to run. It then also drafts
///    missing parents of its nodes, and reports an error if the draft becomes too large.
///
/// Cost of propose(): one find(), one read() for each place, a sort of the continuations, and a best-first search. The
/// place of an accepted token is not touched (D3), because the authors' datastore never changes. Memory: 84 bytes for
/// each of RestOptions::places, or 420 kB, with 10 tokens at each. Only begin() allocates. If memory runs out, nothing
/// is drafted until the next begin(). Threads: one at a time; copies are independent and share the store.
class RestDrafter {
 public:
  static constexpr std::size_t max_nodes = most_draft_nodes;  ///< maximum number of nodes in a draft

  RestDrafter() noexcept : RestDrafter(RestOptions()) {}

  /// Returns a drafter with these settings. Errors: invalid_argument if a number is out of range.
  static Result<RestDrafter> make(const RestOptions& options = {}) noexcept {
    if (options.max_ngram == 0 || options.max_ngram > most_ngram)
      return refuse("max_ngram has to be between 1 and 32", options.max_ngram, most_ngram);
    if (options.min_ngram == 0 || options.min_ngram > options.max_ngram)
      return refuse("min_ngram has to be between 1 and max_ngram", options.min_ngram, options.max_ngram);
    if (options.places == 0 || options.places > most_places)
      return refuse("places has to be between 1 and 65,536", options.places, most_places);
    if (options.continuation == 0 || options.continuation > most_continuation)
      return refuse("continuation has to be between 1 and 64", options.continuation, most_continuation);
    if (options.nodes == 0 || options.nodes > max_nodes)
      return refuse("nodes has to be between 1 and 64", options.nodes, max_nodes);
    return RestDrafter(options);
  }

  void begin(TokenSpan) noexcept {
    if (!options_.store.empty()) trie_.prepare(options_.places, options_.continuation);
  }
  void observe(TokenSpan, std::size_t, Origin) noexcept {}
  void feedback(TokenSpan, const Outcome&) noexcept {}
  void truncate(TokenSpan, std::size_t) noexcept {}

  void propose(TokenSpan context, Draft& draft) noexcept {
    TokenSpan suffix = context.last(std::min(options_.max_ngram, context.size()));
    const auto placeholder = std::find_if(suffix.rbegin(), suffix.rend(), [&](Token token) {
      return !in_vocabulary(token, draft.budget().vocabulary);  // a match does not cross such a token
    });
    suffix = suffix.last(static_cast<std::size_t>(placeholder - suffix.rbegin()));
    if (suffix.empty()) return;
    const std::size_t length = trie_.retrieve(options_.store, suffix, std::min(options_.min_ngram, suffix.size()));
    if (length == 0) return;
    const std::size_t nodes = std::min(options_.nodes, draft.budget().max_nodes);
    std::array<detail::SelectedNode, max_nodes> memory;
    const std::size_t selected = trie_.select(draft, std::span(memory).first(nodes));
    std::array<bool, max_nodes> kept;
    kept.fill(true);
    if (options_.cut) cut(std::span(memory).first(selected), nodes, kept);

    std::array<NodeIndex, max_nodes> written;
    written.fill(refused);
    for (std::size_t i = 0; i < selected; ++i) {
      const NodeIndex parent =
          memory[i].parent == anchor_parent ? anchor_parent : written[static_cast<std::size_t>(memory[i].parent)];
      if (!kept[i] || parent == refused) continue;
      const bool pushed = draft.push({memory[i].token, parent, Probability::ratio(memory[i].count, trie_.size()),
                                      static_cast<std::uint16_t>(length), DraftSource::store});
      if (pushed) written[i] = static_cast<NodeIndex>(draft.size() - 1);
    }
  }

  [[nodiscard]] const RestOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return trie_.memory_bytes(); }

 private:
  static constexpr std::size_t most_ngram = 32;  // bits of StoreMatch::agreements
  static constexpr std::size_t most_places = 65'536;
  static constexpr std::size_t most_continuation = 64;
  static constexpr NodeIndex refused = -2;

  /// Requires valid settings.
  explicit RestDrafter(const RestOptions& options) noexcept : options_(options) {}

  static Error refuse(const char* message, std::size_t value, std::size_t most) noexcept {
    return {ErrorCode::invalid_argument, message, value, std::clamp<std::size_t>(value, 1, most)};
  }

  /// Clears `kept` for the nodes with the most different tokens on their paths, until the sum of these numbers is at
  /// most `budget`. A child has at least the cost of its parent and comes later, so it is removed first.
  static void cut(std::span<const detail::SelectedNode> nodes, std::size_t budget,
                  std::array<bool, max_nodes>& kept) noexcept {
    std::array<std::size_t, max_nodes> costs{};
    std::size_t sum = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      bool repeated = false;
      for (NodeIndex node = nodes[i].parent; node != anchor_parent; node = nodes[static_cast<std::size_t>(node)].parent)
        repeated = repeated || nodes[static_cast<std::size_t>(node)].token == nodes[i].token;
      const NodeIndex parent = nodes[i].parent;
      costs[i] = (parent == anchor_parent ? 0 : costs[static_cast<std::size_t>(parent)]) + (repeated ? 0 : 1);
      sum += costs[i];
    }
    while (sum > budget) {
      std::size_t worst = 0;
      for (std::size_t i = 0; i < nodes.size(); ++i)
        if (kept[i] && (!kept[worst] || costs[i] >= costs[worst])) worst = i;
      kept[worst] = false;
      sum -= costs[worst];
    }
  }

  RestOptions options_;
  detail::ContinuationTrie trie_;
};

static_assert(MeasurableStrategy<RestDrafter>);

}}  // namespace reprise
