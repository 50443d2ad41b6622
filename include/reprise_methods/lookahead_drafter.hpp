// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/evidence/detail/hit_rate.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise_methods/detail/ngram_pool.hpp"

namespace reprise { inline namespace v0 {

/// Settings of LookaheadDrafter. With the defaults a draft has at most 30 nodes.
struct LookaheadOptions {
  std::size_t window = 5;      ///< W: number of columns of the lookahead branch, 1..16
  std::size_t ngram = 4;       ///< N: number of tokens in an n-gram, 2..8; a column grows to N - 1 rows
  std::size_t candidates = 5;  ///< G: maximum number of n-grams per pass, and in the pool per first token, 1..16
  /// Maximum number of n-grams in the pool; at least `candidates`. make() refuses more than 2^24 x candidates.
  std::size_t pool_ngrams = 2048;
  Probability min_path_probability = Probability::ratio(1, 500);  ///< DraftBudget can only raise it
  std::uint64_t key = IndexOptions{}.key;                         ///< see IndexOptions; also the seed of guesses
};

/// Lookahead decoding (Fu, Bailis, Stoica and Zhang 2024). While it decodes, the target itself also generates n-grams.
/// A pool stores them, and they are drafted when their first token is committed. This needs neither a second model nor
/// repetitive text, only passes with spare rows.
///
/// A draft has two parts:
///
///  * *Verification*: up to G n-grams from the pool that begin with the anchor, as ordinary nodes. Their probabilities
///    are learned separately by depth, by rank (most recently found first), and by whether the n-gram was found more
///    than once.
///  * *Lookahead*: W columns of auxiliary nodes, which are never committed. Column j holds up to N - 1 tokens. The
///    first token of a new column is a guess; each later token is the one that the target gave after the token before
///    it.
///
/// The first tokens of all columns form a chain from the anchor. Within a column, each token is the child of the token
/// below it. The mask and depths of this tree are those of lookahead decoding.
///
/// When the target reveals its token after the top of a column, the column appends that token. A full column also adds
/// its tokens and the new one to the pool, as one n-gram, and drops its bottom token. The window advances with the
/// committed tokens: by several columns if a pass commits several tokens. A new column begins with a guess: a token
/// from the context. Equal nodes share one row, except an ordinary node that is written after an equal auxiliary node.
///
/// The path probability of an auxiliary node is the measured worth of such rows: accepted tokens per auxiliary row
/// sent. So control evaluates both parts in the same unit.
///
/// Needs a TopKVerifier, or an engine that calls Session::report_top_k(). If the engine reveals no candidates in four
/// consecutive passes with lookahead rows, the drafter drafts no such rows. It drafts them again after begin(), or
/// after the engine has revealed candidates. If the engine verifies only chains, the draft is the best n-gram. If the
/// pool has none, the draft is the leading columns as far as they form a chain. They are ordinary nodes, which may even
/// be accepted (Jacobi decoding, Santilli et al. 2023). truncate() keeps the pool and the columns, because they hold
/// the target's answers to guesses, not text.
///
/// Cost of propose(): one pool lookup, and a few comparisons per node. Memory: 48 bytes per n-gram in the pool (61 KB
/// by default), plus 5 KB. Only begin() allocates. Without memory for the pool, only lookahead nodes are drafted.
/// Threads: one at a time; copies are independent.
class LookaheadDrafter {
 public:
  static constexpr std::size_t max_nodes = most_draft_nodes;  ///< maximum number of nodes in a draft

  LookaheadDrafter() noexcept : LookaheadDrafter(LookaheadOptions()) {}

  /// Returns a drafter with these settings. Errors: invalid_argument if window, ngram, candidates or pool_ngrams is out
  /// of range.
  static Result<LookaheadDrafter> make(const LookaheadOptions& options = {}) noexcept {
    const auto refuse = [](const char* why, std::uint64_t value, std::uint64_t limit) {
      return Error{ErrorCode::invalid_argument, why, value, limit};
    };
    if (options.window == 0 || options.window > most_columns)
      return refuse("window has to be between 1 and 16", options.window,
                    std::clamp<std::size_t>(options.window, 1, most_columns));
    if (options.ngram < 2 || options.ngram > most_levels + 1)
      return refuse("ngram has to be between 2 and 8", options.ngram,
                    std::clamp<std::size_t>(options.ngram, 2, most_levels + 1));
    if (options.candidates == 0 || options.candidates > detail::NgramPool::most_ways)
      return refuse("candidates has to be between 1 and 16", options.candidates,
                    std::clamp<std::size_t>(options.candidates, 1, detail::NgramPool::most_ways));
    if (options.pool_ngrams < options.candidates)
      return refuse("pool_ngrams has no room for the n-grams of one token: give it at least as many as candidates",
                    options.pool_ngrams, options.candidates);
    if (const std::size_t most = detail::NgramPool::most_places * options.candidates; options.pool_ngrams > most)
      return refuse("pool_ngrams is above the limit: pass at most 2^24 times candidates", options.pool_ngrams, most);
    return LookaheadDrafter(options);
  }

  void begin(TokenSpan) noexcept {
    forget();
    pool_.prepare();
  }
  void observe(TokenSpan, std::size_t, Origin) noexcept { proposed_ = 0; }
  void truncate(TokenSpan, std::size_t) noexcept { proposed_ = 0; }

  void propose(TokenSpan context, Draft& draft) noexcept {
    proposed_ = 0;
    tops_.fill(anchor_parent);
    if (context.empty()) return;
    const Probability least = std::max(options_.min_path_probability, draft.budget().min_path_probability);
    collect(context.back(), least, draft);
    // A chain cannot hold both parts.
    const Probability worth = draft.chain() ? Probability::zero() : this->worth();
    std::size_t written = 0;
    for (; written < found_ && found_at(written).path >= worth; ++written) write(written, draft);
    if ((draft.chain() ? written == 0 : worth >= least) && unrevealed_ < patience) look_ahead(context, draft);
    for (; written < found_; ++written) write(written, draft);
  }

  void feedback(TokenSpan context, const Outcome& outcome) noexcept {
    for_each_tested(outcome, [&](std::size_t i, bool picked) {
      if (i < proposed_ && !nodes_[i].auxiliary) rates_[nodes_[i].lesson].learn(picked);
    });
    const auto rows =
        static_cast<std::uint64_t>(std::count_if(outcome.sent.begin(), outcome.sent.end(), [&](NodeIndex node) {
          return static_cast<std::size_t>(node) < proposed_ && nodes_[static_cast<std::size_t>(node)].auxiliary;
        }));
    rows_ += detail::UnitScale::from(rows) - rows_ / memory;
    accepted_ += detail::UnitScale::from(std::uint64_t{outcome.accepted.size()}) - accepted_ / memory;
    if (!outcome.top_k.empty())
      unrevealed_ = 0;
    else if (rows > 0 && unrevealed_ < patience)
      ++unrevealed_;
    if (!context.empty())
      for (std::size_t j = options_.window; j-- > 0;)  // last column first: each moves to the position of the next
        for (const Outcome::RankedToken& candidate : outcome.top_k)
          if (tops_[j] != anchor_parent && candidate.after == tops_[j] && candidate.rank == 0) {
            grow(context, j, candidate.token);
            break;
          }
    tops_.fill(anchor_parent);
    proposed_ = 0;
  }

  /// Returns 1, for the target's first choice. See TopKLearner.
  [[nodiscard]] std::size_t top_k_wanted() const noexcept { return 1; }
  [[nodiscard]] const LookaheadOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  /// Returns the estimated worth of an auxiliary row, in accepted tokens.
  [[nodiscard]] Probability worth() const noexcept {
    // The prior is equivalent to 64 rows, each worth an eighth of a token.
    const std::uint64_t guess = detail::UnitScale::from(std::uint64_t{memory});
    return Probability::from_raw(static_cast<std::uint32_t>(std::min<std::uint64_t>(
        detail::ProbabilityScale::divide(accepted_ + guess / 8, rows_ + guess), Probability::scale)));
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return pool_.memory_bytes(); }

 private:
  static constexpr std::size_t most_levels = detail::NgramPool::most_following;
  static constexpr std::size_t most_columns = 16;
  static constexpr std::size_t most_found = detail::NgramPool::most_ways * most_levels;
  static constexpr std::uint32_t memory = 64;  // rounds over which the worth of a row is averaged
  static constexpr std::uint32_t patience = 4;
  static constexpr std::size_t rank_classes = 4;
  static constexpr std::size_t depth_classes = 3;

  struct Column {
    std::size_t place = 0;   // position of the column's first token in the sequence
    std::size_t height = 0;  // number of tokens; 0: the target has not yet seen the first one
    std::array<Token, most_levels> tokens{};
  };
  /// A token in the tree of the n-grams that begin with the anchor. N-grams with a common prefix share its tokens.
  struct Found {
    Probability path;
    Token token = 0;
    std::int16_t parent = -1;  // index in the tree; -1: the anchor
    std::uint8_t lesson = 0;
    NodeIndex node = anchor_parent;  // the node of this token in the draft
  };
  /// The facts about a node of the draft that feedback() needs.
  struct Node {
    std::uint8_t lesson = 0;
    bool auxiliary = false;  // part of the lookahead; a chain holds it as an ordinary node
  };

  /// Requires valid settings.
  explicit LookaheadDrafter(const LookaheadOptions& options) noexcept
      : options_(options), pool_(options_.ngram - 1, options_.candidates, options_.pool_ngrams, options_.key) {
    forget();
  }
  static std::size_t lesson_of(std::size_t depth, std::size_t rank, bool again) noexcept {
    return (std::min(depth, depth_classes - 1) * rank_classes + std::min(rank, rank_classes - 1)) * 2 + (again ? 1 : 0);
  }
  void forget() noexcept {
    // Initial guesses, until something is learned.
    for (std::size_t depth = 0; depth < depth_classes; ++depth)
      for (std::size_t rank = 0; rank < rank_classes; ++rank)
        for (const bool again : {false, true})
          rates_[lesson_of(depth, rank, again)] = detail::HitRate(
              depth > 0 ? Probability::ratio(1, 2)
                        : Probability::ratio(again ? 2 : 1, static_cast<std::uint32_t>(4 * (rank + 1))));
    rows_ = accepted_ = 0;
    unrevealed_ = 0;
    proposed_ = 0;
    columns_.fill({});
  }
  /// Returns the slot of the column at a position. Columns are stored by their position in the sequence, not in the
  /// window, so a sequence that is rolled back can find them again.
  [[nodiscard]] Column& slot(std::size_t place) noexcept { return columns_[place % columns_.size()]; }
  [[nodiscard]] Column column(std::size_t place) noexcept {
    const Column& known = slot(place);
    if (known.height > 0 && known.place == place) return known;
    return {.place = place};
  }
  /// Returns the guessed first token of a new column: a token from the context, chosen by a hash of the position.
  [[nodiscard]] Token guess(TokenSpan context, std::uint64_t place) const noexcept {
    const std::uint64_t random = detail::spread(options_.key ^ (place * 0x9e3779b97f4a7c15));
    return context[static_cast<std::size_t>(random % context.size())];
  }
  /// Appends the target's token `next` to column j and moves the column one position forward, because a pass commits at
  /// least one token. A full column drops its first token. A column that is still growing keeps its first token at the
  /// new position: that token is only a guess.
  void grow(TokenSpan context, std::size_t j, Token next) noexcept {
    Column grown = column(context.size() + j);
    slot(grown.place) = {};
    if (grown.height == 0) grown.tokens[grown.height++] = guess(context, grown.place);
    ++grown.place;
    if (grown.height < options_.ngram - 1) {
      grown.tokens[grown.height++] = next;
    } else {
      const Token first = grown.tokens[0];
      std::copy(grown.tokens.begin() + 1, grown.tokens.end(), grown.tokens.begin());
      grown.tokens[grown.height - 1] = next;
      pool_.add(first, TokenSpan(grown.tokens).first(grown.height));
    }
    slot(grown.place) = grown;
  }

  [[nodiscard]] Found& found_at(std::size_t rank) noexcept { return tree_[order_[rank]]; }
  /// Collects the anchor's n-grams from the pool into one tree. Orders its tokens by path probability, parents first.
  void collect(Token anchor, Probability least, Draft& draft) noexcept {
    found_ = 0;
    std::size_t made = 0;
    std::array<const detail::NgramPool::Ngram*, detail::NgramPool::most_ways> ngrams{};
    const std::size_t count = pool_.find(anchor, std::span(ngrams).first(options_.candidates));
    for (std::size_t rank = 0; rank < count; ++rank) {
      std::int16_t parent = -1;
      Probability path = Probability::one();
      for (std::size_t depth = 0; depth + 1 < options_.ngram; ++depth) {
        const Token token = ngrams[rank]->following[depth];
        std::size_t at = 0;
        while (at < made && (tree_[at].parent != parent || tree_[at].token != token)) ++at;
        if (at == made) {
          const std::size_t lesson = lesson_of(depth, rank, ngrams[rank]->times > 1);
          path = path * rates_[lesson].probability();
          if (path < least) {
            draft.leave_out();
            break;
          }
          tree_[made++] = {path, token, parent, static_cast<std::uint8_t>(lesson), anchor_parent};
          std::size_t place = found_++;
          for (; place > 0 && found_at(place - 1).path < path; --place) order_[place] = order_[place - 1];
          order_[place] = static_cast<std::uint8_t>(at);
        }
        path = tree_[at].path;
        parent = static_cast<std::int16_t>(at);
      }
    }
  }
  void write(std::size_t rank, Draft& draft) noexcept {
    Found& found = found_at(rank);
    NodeIndex parent = anchor_parent;
    if (found.parent >= 0) {
      parent = tree_[static_cast<std::size_t>(found.parent)].node;
      if (parent == anchor_parent) return;  // the parent was left out
    }
    found.node = add(found.token, parent, found.path, found.lesson, false, draft);
  }
  void look_ahead(TokenSpan context, Draft& draft) noexcept {
    const Probability worth = this->worth();
    const std::size_t most = std::min(max_nodes, draft.budget().max_nodes);
    NodeIndex bottom = anchor_parent;
    for (std::size_t j = 0; j < options_.window; ++j) {
      Column column = this->column(context.size() + j);
      if (column.height == 0) column.tokens[column.height++] = guess(context, column.place);
      // Writes whole columns only: without its top, a column reveals nothing.
      if (j + column.height > draft.budget().max_depth || proposed_ + column.height > most) return;
      NodeIndex top = bottom;
      for (std::size_t level = 0; level < column.height; ++level) {
        top = add(column.tokens[level], top, worth, 0, true, draft);
        if (top == anchor_parent) return;
        if (level == 0) bottom = top;
      }
      tops_[j] = top;
    }
  }
  /// Writes a node, or finds an equal one, and returns its index. Returns anchor_parent if the draft refuses the node.
  NodeIndex add(Token token, NodeIndex parent, Probability path, std::uint8_t lesson, bool auxiliary,
                Draft& draft) noexcept {
    for (std::size_t i = 0; i < proposed_; ++i)
      if (draft[i].parent == parent && draft[i].token == token && (auxiliary || !nodes_[i].auxiliary))
        return static_cast<NodeIndex>(i);
    if (proposed_ == max_nodes || !draft.push({.token = token,
                                               .parent = parent,
                                               .path_probability = path,
                                               .source = DraftSource::target,
                                               .auxiliary = auxiliary && !draft.chain()}))
      return anchor_parent;
    nodes_[proposed_] = {lesson, auxiliary};
    return static_cast<NodeIndex>(proposed_++);
  }

  LookaheadOptions options_;
  detail::NgramPool pool_;
  std::array<Column, 2 * most_columns> columns_;  // indexed by position modulo their number
  std::array<detail::HitRate, depth_classes * rank_classes * 2> rates_;
  std::uint64_t rows_ = 0;      // recent auxiliary rows sent, in UnitScale
  std::uint64_t accepted_ = 0;  // recent accepted tokens, in UnitScale
  std::uint32_t unrevealed_ = 0;

  // The current draft, and the facts about it that feedback() needs.
  std::array<Found, most_found> tree_;
  std::array<std::uint8_t, most_found> order_;
  std::size_t found_ = 0;
  std::array<Node, max_nodes> nodes_;
  std::size_t proposed_ = 0;
  std::array<NodeIndex, most_columns> tops_;  // the node at the top of each column; anchor_parent: none
};

static_assert(TopKLearner<LookaheadDrafter> && MeasurableStrategy<LookaheadDrafter>);

}}  // namespace reprise
