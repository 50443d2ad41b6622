// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/candidates.hpp"
#include "reprise/evidence/detail/next_token_evidence.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/next_tokens.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The rows that the target has shown to one drafter: its latest ranking after each token, and after each two tokens.
/// Also the rankings that picked the last two tokens, without the tokens said since.
///
/// Rows are kept in a table of fixed size, in which a new row replaces the row with the same hash. No row is kept
/// before the first reserve(). A copy that finds no memory starts without rows.
class ShownRows {
 public:
  /// Number of rankings before the last token that are kept.
  static constexpr std::size_t lags = 2;

  /// Returns the index of a row in a table of `rows` rows. `before_last`: Ranking::none for one token. The hash needs
  /// no key: contexts with the same place only replace each other's rows.
  [[nodiscard]] static constexpr std::size_t place_of(Token before_last, Token last, std::size_t rows) noexcept {
    const std::uint64_t context =
        std::uint64_t{static_cast<std::uint32_t>(before_last)} << 32 | static_cast<std::uint32_t>(last);
    return static_cast<std::size_t>((spread(context) >> 32) * rows >> 32);
  }

  /// `bytes`: upper bound on the memory.
  explicit ShownRows(std::size_t bytes) noexcept : capacity_(bytes / sizeof(NextTokens::RankedRow)) {}

  /// Allocates the memory. Without memory, rows are not kept.
  void reserve() noexcept {
    if (rows_.empty() && rows_.reserve(capacity_)) static_cast<void>(rows_.resize(capacity_, NextTokens::RankedRow()));
  }
  /// Forgets all rows.
  void clear() noexcept {
    std::fill(rows_.begin(), rows_.end(), NextTokens::RankedRow());
    forget_lags();
    any_ = false;
  }
  /// Forgets the rankings that picked the last tokens, because these tokens were removed.
  void forget_lags() noexcept {
    lags_.fill(Ranking());
    lags_end_ = 0;
  }

  /// True if a row has been shown since clear(), even if there was no memory for it.
  [[nodiscard]] bool any() const noexcept { return any_; }
  [[nodiscard]] std::span<const NextTokens::RankedRow> rows() const noexcept { return {rows_.data(), rows_.size()}; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return rows_.memory_bytes(); }

  /// Returns the latest ranking after these tokens, or null. `before_last`: Ranking::none for one token.
  [[nodiscard]] const Ranking* after(Token before_last, Token last) const noexcept {
    if (rows_.empty() || last < 0) return nullptr;
    const NextTokens::RankedRow& row = rows_[place_of(before_last, last)];
    return row.last == last && row.before_last == before_last ? &row.ranking : nullptr;
  }
  /// Returns the ranking of the row that picked the last token (0) or the token before it (1). Tokens said since are
  /// left out. Empty if unknown.
  [[nodiscard]] const Ranking& lag(std::size_t i) const noexcept { return lags_[i]; }
  /// True if these rankings picked the last tokens of this text. A committed pick that a predicate refused is not in
  /// the text, so its ranking does not belong to it.
  [[nodiscard]] bool lags_belong_to(TokenSpan text) const noexcept {
    return any_ && lags_end_ == text.size() && lags_end_ != 0 && text.back() == lags_last_;
  }
  /// Returns the size of the text whose last tokens these rankings picked.
  [[nodiscard]] std::size_t lags_end() const noexcept { return lags_end_; }

  /// Keeps a ranking after `last`, and after `before_last` and `last` if there is a token before `last`. Contexts with
  /// a negative token are not kept.
  void keep(std::optional<Token> before_last, Token last, const Ranking& ranking) noexcept {
    if (ranking.empty()) return;
    any_ = true;
    if (rows_.empty() || last < 0) return;
    rows_[place_of(Ranking::none, last)] = {Ranking::none, last, ranking};
    if (before_last && *before_last >= 0) rows_[place_of(*before_last, last)] = {*before_last, last, ranking};
  }

  /// Keeps the rows of a pass. `context` ends with the anchor. Rows of the committed path are kept last: of two rows
  /// after the same tokens, only the later one stays. Nodes from index 64 on are ignored, and so are ranks
  /// from Ranking::most on and negative tokens.
  void learn(TokenSpan context, const Outcome& outcome) noexcept {
    if (outcome.top_k.empty() || context.empty()) return forget_lags();
    std::array<Ranking, most_nodes + 1> rows;  // of the pass; row 0: after the anchor
    const auto row_of = [](NodeIndex node) { return static_cast<std::size_t>(std::int64_t{node} + 1); };
    for (const Outcome::RankedToken& shown : outcome.top_k)
      if (row_of(shown.after) < rows.size() && shown.rank < Ranking::most && shown.token >= 0)
        rows[row_of(shown.after)].tokens[shown.rank] = shown.token;
    const auto token_of = [&](NodeIndex i) -> std::optional<Token> {
      if (i == anchor_parent) return context.back();
      const auto at = static_cast<std::size_t>(i);
      return at < outcome.draft.size() ? std::optional(outcome.draft[at].token) : std::nullopt;
    };
    const auto before = [&](NodeIndex node) -> std::optional<Token> {
      if (node != anchor_parent) return token_of(outcome.draft[static_cast<std::size_t>(node)].parent);
      return context.size() < 2 ? std::nullopt : std::optional(context[context.size() - 2]);
    };
    const auto keep_row = [&](NodeIndex node) { keep(before(node), *token_of(node), rows[row_of(node)]); };
    const std::size_t nodes = std::min(outcome.draft.size(), most_nodes);
    for (std::size_t i = 0; i < nodes; ++i) keep_row(static_cast<NodeIndex>(i));
    keep_row(anchor_parent);
    for (const NodeIndex node : outcome.accepted)
      if (static_cast<std::size_t>(node) < nodes) keep_row(node);

    if (lags_end_ != context.size()) forget_lags();
    lags_end_ = context.size();
    NodeIndex node = anchor_parent;
    for (std::size_t i = 0; const std::optional<Token> token = committed_token(outcome, i); ++i) {
      ++lags_end_;
      lags_last_ = *token;
      lags_[1] = lags_[0];
      lags_[0] = row_of(node) < rows.size() ? rows[row_of(node)] : Ranking();
      for (Ranking& ranking : lags_) std::replace(ranking.tokens.begin(), ranking.tokens.end(), *token, Ranking::none);
      if (i < outcome.accepted.size()) node = outcome.accepted[i];
    }
  }

 private:
  static constexpr std::size_t most_nodes = most_draft_nodes;

  [[nodiscard]] std::size_t place_of(Token before_last, Token last) const noexcept {
    return place_of(before_last, last, rows_.size());
  }

  std::size_t capacity_;
  Buffer<NextTokens::RankedRow> rows_;
  std::array<Ranking, lags> lags_;
  std::size_t lags_end_ = 0;
  Token lags_last_ = Ranking::none;
  bool any_ = false;
};

/// The sources of next tokens that a drafter has, besides occurrences in texts.
struct NextTokenSources {
  const NextTokens* table = nullptr;  ///< of earlier sequences; null: none
  const ShownRows* shown = nullptr;   ///< rows of this sequence; null: none
  bool has_lags = false;              ///< ShownRows::lag() belongs to the end of the text
  bool rankings = true;               ///< read the rankings of the table
  [[nodiscard]] bool none() const noexcept { return table == nullptr && shown == nullptr; }
};

/// The lists of next tokens at one position of a draft: counts and rankings. Adds candidates and evidence from them.
class NextTokenLists {
 public:
  /// The maximum number of candidates that add() adds.
  static constexpr std::size_t most_added = NextTokenEvidence::sources * Ranking::most;

  /// True if lists are worth reading at a position with this path probability. Otherwise, only a token with a
  /// probability above 1/2 could be drafted.
  [[nodiscard]] static bool worth_reading(Probability path, Probability least) noexcept {
    return std::uint64_t{path.raw()} >= 2 * std::uint64_t{least.raw()};
  }
  /// Prefetches the lines of the table after `last`, and those after `before_last` and `last` if there is a token
  /// before `last`. `depth`: the number of tokens of the draft before this position.
  NextTokenLists(const NextTokenSources& from, std::optional<Token> before_last, Token last, std::size_t depth) noexcept
      : reads_rankings_(from.rankings) {
    if (from.table != nullptr) {
      if (before_last) contexts_[0] = from.table->after(*before_last, last);
      contexts_[1] = from.table->after(last);
      for (const NextTokens::Context& context : contexts_) context.prefetch();
    }
    if (from.shown == nullptr) return;
    if (before_last && *before_last >= 0) ranked_[0] = from.shown->after(*before_last, last);  // negative: none
    ranked_[1] = from.shown->after(Ranking::none, last);
    if (from.has_lags && depth < 2) {
      const Ranking& before = from.shown->lag(0);
      if (!before.empty()) ranked_[depth == 0 ? 2 : 4] = &before;
      if (depth == 0 && !from.shown->lag(1).empty()) ranked_[3] = &from.shown->lag(1);
    }
  }
  NextTokenLists(const NextTokenLists&) = delete;  // lists can refer to copies in this object
  NextTokenLists& operator=(const NextTokenLists&) = delete;
  ~NextTokenLists() = default;

  /// Reads the table, and sets the evidence of the listed tokens. A token without a candidate becomes one by
  /// `add_candidate(token)`, if a path of its rough probability times `path` has a probability of at least `least`. The
  /// rough probability of a counted token is a quarter of its share; that of a ranked token depends on its rank.
  template <class Candidates, class AddCandidate>
  void add(Candidates& candidates, Probability path, Probability least, AddCandidate&& add_candidate) noexcept {
    const auto list = [&](NextTokenSource source, Token token, std::uint8_t known, std::uint64_t part,
                          std::uint64_t whole) {
      Candidate* candidate = candidates.find(token);
      if (candidate == nullptr) {
        if (path.raw() * part < least.raw() * whole) return;
        candidate = &add_candidate(token);
      }
      NextTokenEvidence& next = candidate->evidence.next;
      if (next.of(source) != NextTokenEvidence::unknown) return;  // a token can be listed twice
      next.set(source, known);
      if (source <= NextTokenSource::ranked_after_one) next.listed = true;
    };
    for (std::size_t i = 0; i < contexts_.size(); ++i) {
      counted_[i] = contexts_[i].counts();
      const std::uint32_t total = counted_[i].total();
      const NextTokenEvidence::CountClasses classes(counted_source(i), total);
      for (const NextTokens::CountedToken& next : counted_[i].listed())
        list(counted_source(i), next.token, classes.of(next.count), next.count, 4 * std::uint64_t{total});
      if (ranked_[i] != nullptr || !reads_rankings_) continue;
      carried_[i] = contexts_[i].ranking();
      if (!carried_[i].empty()) ranked_[i] = &carried_[i];
    }
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      if (ranked_[i] == nullptr) continue;
      const bool direct = i < 2;  // after the same tokens, not one or two tokens before
      for (std::size_t rank = 0; rank < Ranking::most; ++rank) {
        const Token token = ranked_[i]->tokens[rank];
        if (token == Ranking::none) continue;
        list(ranked_source(i), token, NextTokenEvidence::ranked(ranked_source(i), rank, carried(i)), 1,
             direct ? 4 + 6 * rank : 10 + 10 * rank);
      }
    }
  }
  /// Completes the evidence of all candidates at this position. `stores_vote`: occurrences in datastores vote here.
  void complete(std::span<Candidate> candidates, bool stores_vote) const noexcept {
    NextTokenEvidence absent;
    for (std::size_t i = 0; i < counted_.size(); ++i)
      if (counted_[i].total() != 0) absent.set(counted_source(i), NextTokenEvidence::absent(counted_source(i)));
    for (std::size_t i = 0; i < ranked_.size(); ++i)
      if (ranked_[i] != nullptr) absent.set(ranked_source(i), NextTokenEvidence::absent(ranked_source(i), carried(i)));
    if (!absent.known()) return;
    for (Candidate& candidate : candidates) {
      candidate.evidence.stores_vote = stores_vote;
      candidate.evidence.next.complete(absent);
    }
  }

 private:
  static constexpr NextTokenSource counted_source(std::size_t i) noexcept { return static_cast<NextTokenSource>(i); }
  static constexpr NextTokenSource ranked_source(std::size_t i) noexcept { return static_cast<NextTokenSource>(2 + i); }
  [[nodiscard]] bool carried(std::size_t i) const noexcept { return i < carried_.size() && ranked_[i] == &carried_[i]; }

  bool reads_rankings_ = true;
  // Of the contexts of two tokens and of one token.
  std::array<NextTokens::Context, 2> contexts_;
  std::array<NextTokens::CountedTokens, 2> counted_;
  std::array<Ranking, 2> carried_;  // copies, because other threads may write to the table

  std::array<const Ranking*, 5> ranked_{};  // in the order of NextTokenSource; null: none
};

}}}  // namespace reprise::detail
