// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/fixed_point.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/evidence/hit_rate.hpp"
#include "reprise/extras/detail/ngram_pool.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/token_hash.hpp"

namespace reprise::inline v0 {

/// Settings of LookaheadDrafter. With the defaults a draft has at most 30 nodes.
struct LookaheadOptions {
  std::size_t window = 5;          ///< W: columns of the lookahead branch, 1..16
  std::size_t ngram = 4;           ///< N: tokens of an n-gram, 2..8; a column grows to N - 1 rows
  std::size_t candidates = 5;      ///< G: n-grams verified in a pass, and kept for each first token, 1..16
  std::size_t pool_ngrams = 2048;  ///< n-grams that the pool keeps, at most; at least `candidates`. More than
                                   ///< 2^24 x candidates have no effect
  Probability min_path_probability = Probability::ratio(1, 500);  ///< DraftBudget can only ask for more
  std::uint64_t key = IndexOptions{}.key;                         ///< see IndexOptions; also of the first guesses
};

/// Lookahead decoding (Fu, Bailis, Stoica and Zhang 2024): n-grams that the target itself comes up with, beside the
/// text it is writing, are kept in a pool and drafted where their first token is committed. Needs neither a second
/// model nor a text that repeats, but a target with rows to spare.
///
/// A draft has two parts. *Verification*: up to G n-grams of the pool that begin with the anchor, as ordinary nodes;
/// how likely they are is learned by depth, by rank (the last one found first) and by whether one was found more than
/// once. *Lookahead*: W columns of auxiliary nodes, which are never committed. Column j holds up to N - 1 tokens: its
/// first one is guessed, each further one is what the target said behind the one before. First tokens form a chain from
/// the anchor, and each other one follows that below it in its own column: a tree whose mask and depths are those of
/// lookahead decoding. What the target reveals behind the top of a column makes it grow; from a full one it gives an
/// n-gram to the pool, and the bottom token drops out. The window moves on with what is committed, over several columns
/// at once where several tokens are; new ones begin with a guess, a token of the context. Nodes that fall together are
/// one row.
///
/// The path probability of auxiliary nodes is what a row of them has been worth so far: accepted tokens for each
/// auxiliary row sent. So control weighs both parts in one currency.
///
/// Needs a TopKVerifier that checks trees, or an engine that calls Session::report_top_k(). After four passes with
/// lookahead rows that revealed nothing it drafts none until begin(). For engines that check chains only, the draft is
/// the best n-gram; where there is none, the first columns that form a chain, as ordinary nodes, which may even be
/// right (Jacobi decoding, Santilli et al. 2023). truncate() keeps the pool and the columns: they hold what the target
/// said about guesses, not text.
///
/// Cost of propose: one look into the pool and some comparisons for each node. Memory: 48 bytes for each n-gram of the
/// pool (61 KB by default), and 5 KB. Only begin() allocates; without memory for the pool it drafts lookahead alone.
/// Threads: one at a time; copies are independent.
class LookaheadDrafter {
 public:
  static constexpr std::size_t max_nodes = 64;  ///< of a draft

  LookaheadDrafter() noexcept : LookaheadDrafter(LookaheadOptions()) {}

  /// A drafter with these settings. Errors: invalid_argument if window, ngram or candidates is out of range, or if
  /// pool_ngrams is less than candidates.
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
    // A chain has no room for both parts.
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
    rows_ += UnitScale::from(rows) - rows_ / memory;
    accepted_ += UnitScale::from(std::uint64_t{outcome.accepted.size()}) - accepted_ / memory;
    if (!outcome.top_k.empty())
      unrevealed_ = 0;
    else if (rows > 0 && unrevealed_ < patience)
      ++unrevealed_;
    if (!context.empty())
      for (std::size_t j = options_.window; j-- > 0;)  // a column moves to where the next one was
        for (const RankedToken& candidate : outcome.top_k)
          if (tops_[j] != anchor_parent && candidate.after == tops_[j] && candidate.rank == 0) {
            grow(context, j, candidate.token);
            break;
          }
    tops_.fill(anchor_parent);
    proposed_ = 0;
  }

  /// See TopKLearner: the target's first choice.
  [[nodiscard]] std::size_t top_k_wanted() const noexcept { return 1; }
  [[nodiscard]] const LookaheadOptions& options() const noexcept { return options_; }
  /// What an auxiliary row is thought to be worth: tokens accepted later.
  [[nodiscard]] Probability worth() const noexcept {
    const std::uint64_t guess = UnitScale::from(std::uint64_t{memory});  // as if so many rows had given an eighth of it
    return Probability::from_raw(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(ProbabilityScale::divide(accepted_ + guess / 8, rows_ + guess), Probability::scale)));
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return pool_.memory_bytes(); }

 private:
  static constexpr std::size_t most_levels = detail::NgramPool::most_following;
  static constexpr std::size_t most_columns = 16;
  static constexpr std::size_t most_found = detail::NgramPool::most_ways * most_levels;
  static constexpr std::uint32_t memory = 64;  // rounds that count for what a row is worth
  static constexpr std::uint32_t patience = 4;
  static constexpr std::size_t rank_classes = 4;
  static constexpr std::size_t depth_classes = 3;

  struct Column {
    std::size_t place = 0;   // in the sequence, of its first token
    std::size_t height = 0;  // 0: not even its first token has been seen by the target
    std::array<Token, most_levels> tokens{};
  };
  /// A token of the n-grams that begin with the anchor: a tree, in which they share what they begin with.
  struct Found {
    Probability path;
    Token token = 0;
    std::int16_t parent = -1;  // of these; -1: the anchor
    std::uint8_t lesson = 0;
    NodeIndex node = anchor_parent;  // where it was written
  };
  /// Of a node of the draft.
  struct Node {
    std::uint8_t lesson = 0;
    bool auxiliary = false;  // of the lookahead part; in a chain it is written as an ordinary node
  };

  /// The settings are right.
  explicit LookaheadDrafter(const LookaheadOptions& options) noexcept
      : options_(options), pool_(options_.ngram - 1, options_.candidates, options_.pool_ngrams, options_.key) {
    forget();
  }
  static std::size_t lesson_of(std::size_t depth, std::size_t rank, bool again) noexcept {
    return (std::min(depth, depth_classes - 1) * rank_classes + std::min(rank, rank_classes - 1)) * 2 + (again ? 1 : 0);
  }
  void forget() noexcept {
    // Only until something was learned.
    for (std::size_t depth = 0; depth < depth_classes; ++depth)
      for (std::size_t rank = 0; rank < rank_classes; ++rank)
        for (const bool again : {false, true})
          rates_[lesson_of(depth, rank, again)] =
              HitRate(depth > 0 ? Probability::ratio(1, 2)
                                : Probability::ratio(again ? 2 : 1, static_cast<std::uint32_t>(4 * (rank + 1))));
    rows_ = accepted_ = 0;
    unrevealed_ = 0;
    proposed_ = 0;
    columns_.fill({});
  }
  /// Columns stay where they are in the sequence while the window moves on over them; so a sequence that goes back
  /// finds them again.
  [[nodiscard]] Column& slot(std::size_t place) noexcept { return columns_[place % columns_.size()]; }
  [[nodiscard]] Column column(std::size_t place) noexcept {
    const Column& known = slot(place);
    if (known.height > 0 && known.place == place) return known;
    return {.place = place};
  }
  /// The first token of a column of which nothing is known: one of the context, by the place that it stands for.
  [[nodiscard]] Token guess(TokenSpan context, std::uint64_t place) const noexcept {
    const std::uint64_t random = detail::spread(options_.key ^ (place * 0x9e3779b97f4a7c15));
    return context[static_cast<std::size_t>(random % context.size())];
  }
  /// The pass commits one token at least, so what was column j stands at the next place from now on. A full column is
  /// there by itself, without its first token; one that grows is a guess in any case.
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
  /// The n-grams of the pool as one tree, and its tokens by path probability, parents first.
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
      if (parent == anchor_parent) return;  // it was left out
    }
    const NodeIndex node = add(found.token, parent, found.path, found.lesson, false, draft);
    found.node = node;
  }
  void look_ahead(TokenSpan context, Draft& draft) noexcept {
    const Probability worth = this->worth();
    const std::size_t most = std::min(max_nodes, draft.budget().max_nodes);
    NodeIndex bottom = anchor_parent;
    for (std::size_t j = 0; j < options_.window; ++j) {
      Column column = this->column(context.size() + j);
      if (column.height == 0) column.tokens[column.height++] = guess(context, column.place);
      // All of a column or nothing: without its top it reveals nothing.
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
  /// Writes a node, or finds the one that is there already. anchor_parent: it was refused.
  NodeIndex add(Token token, NodeIndex parent, Probability path, std::uint8_t lesson, bool auxiliary,
                Draft& draft) noexcept {
    for (std::size_t i = 0; i < proposed_; ++i)
      if (draft[i].parent == parent && draft[i].token == token && (auxiliary || !nodes_[i].auxiliary))
        return static_cast<NodeIndex>(i);
    if (proposed_ == max_nodes || !draft.push({.token = token,
                                               .parent = parent,
                                               .path_probability = path,
                                               .source = DraftSource::lookahead,
                                               .auxiliary = auxiliary && !draft.chain()}))
      return anchor_parent;
    nodes_[proposed_] = {lesson, auxiliary};
    return static_cast<NodeIndex>(proposed_++);
  }

  LookaheadOptions options_;
  detail::NgramPool pool_;
  std::array<Column, 2 * most_columns> columns_;  // by place
  std::array<HitRate, depth_classes * rank_classes * 2> rates_;
  std::uint64_t rows_ = 0;      // auxiliary rows sent of late, of UnitScale
  std::uint64_t accepted_ = 0;  // tokens accepted of late, of UnitScale
  std::uint32_t unrevealed_ = 0;

  // The draft being made, and what feedback() has to know of it.
  std::array<Found, most_found> tree_;
  std::array<std::uint8_t, most_found> order_;
  std::size_t found_ = 0;
  std::array<Node, max_nodes> nodes_;
  std::size_t proposed_ = 0;
  std::array<NodeIndex, most_columns> tops_;  // the node at the top of each column; anchor_parent: none
};

static_assert(TopKLearner<LookaheadDrafter> && MeasurableStrategy<LookaheadDrafter>);

}  // namespace reprise
