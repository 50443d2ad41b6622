// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/detail/best_first.hpp"
#include "reprise/evidence/detail/hit_rate.hpp"

namespace reprise { inline namespace v0 {

/// Settings of TokenRecyclingDrafter.
struct TokenRecyclingOptions {
  std::size_t candidates = 8;  ///< maximum number of candidates stored per token, 1..16
  /// The number of tokens for which begin() allocates memory at once. 0: memory grows with the highest token seen.
  std::size_t vocabulary = 0;
  /// Memory limit of the matrix, in bytes. Nothing is learned about tokens whose row does not fit, nor about negative
  /// tokens.
  std::size_t max_bytes = std::size_t{32} << 20;
  Probability min_path_probability = Probability::ratio(1, 200);  ///< DraftBudget can only raise it
};

/// Drafts from the target's earlier rankings. For each token, the drafter remembers the candidates that the target
/// ranked highest when it last processed that token, even on a rejected path. Starting from the anchor, candidates of
/// candidates form a tree. The tree grows best first, so every prefix is the best smaller draft. Source: Token
/// Recycling (Luo et al. 2024), which fills one fixed tree. Here, the probability of each rank is learned separately
/// for depths 1, 2 and 3, and together for greater depths, from the target's picks.
///
/// If the engine reports Outcome::top_k (see TopKLearner), the drafter learns from it. Otherwise, the drafter learns
/// from the picks alone: the tokens that followed each token, latest first. begin() forgets all candidates. truncate()
/// forgets none, because they describe the target, not the text.
///
/// Cost of propose(): up to 16 table reads and a few moves in a short sorted list per node. Cost of feedback(): a copy
/// of the candidates. Memory: 4 x candidates + 1 bytes for each token up to the highest one seen, or up to a quarter
/// more, plus 4 KB. With 8 candidates, 128,000 tokens take 4.2 MB. Only begin() and observe() allocate. If memory runs
/// out, the drafter learns about fewer tokens. Threads: one at a time; copies are independent.
class TokenRecyclingDrafter {
 public:
  static constexpr std::size_t max_nodes = most_draft_nodes;  ///< maximum number of nodes in a draft
  static constexpr std::size_t most_candidates = 16;

  TokenRecyclingDrafter() noexcept : TokenRecyclingDrafter(TokenRecyclingOptions()) {}

  /// Returns a drafter with these settings. Errors: invalid_argument if candidates is out of range.
  static Result<TokenRecyclingDrafter> make(const TokenRecyclingOptions& options = {}) noexcept {
    if (options.candidates == 0 || options.candidates > most_candidates)
      return Error{ErrorCode::invalid_argument, "candidates has to be between 1 and 16", options.candidates,
                   std::clamp<std::size_t>(options.candidates, 1, most_candidates)};
    return TokenRecyclingDrafter(options);
  }

  void begin(TokenSpan context) noexcept {
    forget();
    if (options_.vocabulary > 0) grow(options_.vocabulary);
    observe(context, context.size(), Origin::prompt);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) noexcept {
    proposed_ = 0;
    for (const Token token : context.last(fresh)) want(token);
    if (wanted_ > rows()) grow(wanted_);
  }
  void truncate(TokenSpan, std::size_t) noexcept { proposed_ = 0; }

  void propose(TokenSpan context, Draft& draft) noexcept {
    proposed_ = 0;
    if (context.empty()) return;
    proposed_ = detail::grow_best_first(nodes_, draft, [&](NodeIndex parent, Frontier& frontier) noexcept {
      expand(context.back(), parent, draft, frontier);
    });
  }

  void feedback(TokenSpan context, const Outcome& outcome) noexcept {
    for_each_tested(outcome, [&](std::size_t i, bool picked) {
      if (i < proposed_ && nodes_[i].parent != anchor_parent) rate(nodes_[i].depth - 1U, nodes_[i].rank).learn(picked);
    });
    proposed_ = 0;
    if (context.empty()) return;
    const Token anchor = context.back();
    // Learns from all candidates of the anchor, proposed or not: learning only from proposed ones would never correct
    // pessimism.
    const std::optional<Token> first = committed_token(outcome, 0);
    const TokenSpan known = top_k(anchor);
    for (std::size_t rank = 0; first && rank < known.size(); ++rank) rate(0, rank).learn(known[rank] == *first);

    // Learns from the picks, because some verifiers reveal no candidates.
    Token before = anchor;
    for (std::size_t i = 0; const std::optional<Token> token = committed_token(outcome, i); ++i) {
      put_first(before, *token);
      before = *token;
    }
    // Rows off the accepted path are written first. If a token occurs on and off the path, its row on the path
    // overwrites the other.
    for (const bool accepted : {false, true})
      for (std::size_t i = 0; i < outcome.top_k.size(); ++i) {
        const Outcome::RankedToken& candidate = outcome.top_k[i];
        if (on_path(outcome, candidate.after) != accepted) continue;
        if (candidate.after == anchor_parent)
          put(anchor, candidate);
        else if (candidate.after >= 0 && static_cast<std::size_t>(candidate.after) < outcome.draft.size())
          put(outcome.draft[static_cast<std::size_t>(candidate.after)].token, candidate);
      }
  }

  /// Returns the number of candidates per token. See TopKLearner.
  [[nodiscard]] std::size_t top_k_wanted() const noexcept { return options_.candidates; }
  /// Returns the candidates known to follow `token`, likeliest first, or latest first if learned from picks. The span
  /// is valid until the drafter changes.
  [[nodiscard]] TokenSpan top_k(Token token) const noexcept REPRISE_LIFETIMEBOUND {
    if (!has_row(token)) return {};
    const auto row = static_cast<std::size_t>(token);
    return {matrix_.data() + row * options_.candidates, known_[row]};
  }
  [[nodiscard]] const TokenRecyclingOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  /// Returns the number of rows of the matrix, which holds tokens 0 ... rows() - 1.
  [[nodiscard]] std::size_t rows() const noexcept { return known_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return matrix_.memory_bytes() + known_.memory_bytes(); }

 private:
  static constexpr std::size_t depth_classes = 4;
  struct Node {
    Probability path;
    Token token = 0;
    NodeIndex parent = anchor_parent;
    std::uint16_t depth = 0;  // 1: directly after the anchor
    std::uint8_t rank = 0;

    [[nodiscard]] DraftNode node() const noexcept {
      return {.token = token, .parent = parent, .path_probability = path, .source = DraftSource::target};
    }
  };
  using Frontier = detail::Frontier<Node, max_nodes>;

  /// Requires valid settings.
  explicit TokenRecyclingDrafter(const TokenRecyclingOptions& options) noexcept : options_(options) { forget(); }

  [[nodiscard]] detail::HitRate& rate(std::size_t depth, std::size_t rank) noexcept {
    return rates_[std::min(depth, depth_classes - 1)][rank];
  }
  void forget() noexcept {
    matrix_.clear();
    known_.clear();
    // Initial guesses until something is learned: a typical probability of the first choice, and a tail like that of
    // word frequencies.
    for (auto& rates : rates_)
      for (std::size_t rank = 0; rank < most_candidates; ++rank)
        rates[rank] = detail::HitRate(Probability::ratio(2, static_cast<std::uint32_t>(5 * (rank + 1) * (rank + 1))));
    wanted_ = 0;
    proposed_ = 0;
  }

  /// Pushes the candidates after `parent` onto the frontier.
  void expand(Token anchor, NodeIndex parent, Draft& draft, Frontier& frontier) noexcept {
    const bool first = parent == anchor_parent;
    const Node before =
        first ? Node{.path = Probability::one(), .token = anchor} : nodes_[static_cast<std::size_t>(parent)];
    const Probability least = std::max(options_.min_path_probability, draft.budget().min_path_probability);
    const TokenSpan known = top_k(before.token);
    for (std::size_t rank = 0; rank < known.size(); ++rank) {
      const Probability reached = before.path * rate(before.depth, rank).probability();
      if (reached < least || reached <= frontier.bar()) continue;
      // A verifier may reveal a token twice.
      if (std::find(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(rank), known[rank]) !=
          known.begin() + static_cast<std::ptrdiff_t>(rank))
        continue;
      frontier.push({reached, known[rank], parent, static_cast<std::uint16_t>(before.depth + 1),
                     static_cast<std::uint8_t>(rank)});
    }
    if (first && frontier.empty() && !known.empty()) draft.leave_out();
  }

  [[nodiscard]] static bool on_path(const Outcome& outcome, NodeIndex node) noexcept {
    return node == anchor_parent ||
           std::find(outcome.accepted.begin(), outcome.accepted.end(), node) != outcome.accepted.end();
  }

  [[nodiscard]] bool has_row(Token token) const noexcept {
    return token >= 0 && static_cast<std::size_t>(token) < rows();
  }
  [[nodiscard]] std::size_t most_rows() const noexcept {
    return options_.max_bytes / (options_.candidates * sizeof(Token) + 1);
  }
  void want(Token token) noexcept {
    if (token >= 0 && static_cast<std::size_t>(token) < most_rows())
      wanted_ = std::max(wanted_, static_cast<std::size_t>(token) + 1);
  }
  /// Writes a candidate to the row of `token`. Rank 0 clears the row first. A candidate that is out of rank order is
  /// ignored.
  void put(Token token, const Outcome::RankedToken& candidate) noexcept {
    want(token);
    if (!has_row(token) || candidate.rank >= options_.candidates) return;
    const auto row = static_cast<std::size_t>(token);
    if (candidate.rank == 0) known_[row] = 0;
    if (candidate.rank != known_[row]) return;
    matrix_[row * options_.candidates + known_[row]++] = candidate.token;
    want(candidate.token);
  }
  void put_first(Token token, Token next) noexcept {
    want(token);
    if (!has_row(token)) return;
    const auto row = static_cast<std::size_t>(token);
    Token* const first = matrix_.data() + row * options_.candidates;
    Token* end = std::find(first, first + known_[row], next);
    if (end == first + known_[row]) {
      if (known_[row] < options_.candidates)
        ++known_[row];
      else
        --end;
    }
    std::copy_backward(first, end, end + 1);
    *first = next;
  }
  /// Allocates rows for `wanted` tokens, or for as many as the byte limit allows. Grows by at least a quarter if
  /// possible, so that growth is rare.
  void grow(std::size_t wanted) noexcept {
    const std::size_t most = most_rows();
    wanted = std::min(wanted, most);
    if (wanted <= rows()) return;
    const std::size_t generous = std::min(most, std::max(wanted, rows() + rows() / 4));
    for (const std::size_t size : {generous, wanted}) {
      if (!matrix_.reserve(size * options_.candidates) || !known_.reserve(size)) continue;
      static_cast<void>(matrix_.resize(size * options_.candidates, 0));
      static_cast<void>(known_.resize(size, 0));
      return;
    }
  }

  TokenRecyclingOptions options_;
  detail::Buffer<Token> matrix_;
  detail::Buffer<std::uint8_t> known_;  // number of candidates in each row
  std::size_t wanted_ = 0;              // number of rows needed: the highest token seen + 1
  std::array<std::array<detail::HitRate, most_candidates>, depth_classes> rates_;

  // The current draft, and the facts about it that feedback() needs.
  std::array<Node, max_nodes> nodes_;
  std::size_t proposed_ = 0;
};

static_assert(TopKLearner<TokenRecyclingDrafter> && MeasurableStrategy<TokenRecyclingDrafter>);

}}  // namespace reprise
