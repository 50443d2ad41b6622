// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/datastore.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/probability.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/extras/detail/continuation_trie.hpp"

namespace reprise::inline v0 {

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
  static constexpr std::size_t max_nodes = 64;  ///< maximum number of nodes in a draft

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
    const TokenSpan suffix = context.last(std::min(options_.max_ngram, context.size()));
    const std::size_t length = trie_.retrieve(options_.store, suffix, std::min(options_.min_ngram, suffix.size()));
    if (length == 0) return;
    const std::size_t nodes = std::min(options_.nodes, draft.budget().max_nodes);
    std::array<detail::SelectedNode, max_nodes> memory;
    const std::size_t selected = trie_.select({nodes, draft.budget().max_depth, draft.chain()}, memory);
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
                                      static_cast<std::uint16_t>(length), DraftSource::history});
      if (pushed) written[i] = static_cast<NodeIndex>(draft.size() - 1);
    }
  }

  [[nodiscard]] const RestOptions& options() const noexcept { return options_; }
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

}  // namespace reprise
