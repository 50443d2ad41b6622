// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <type_traits>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/shown_rows.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/evidence/detail/next_token_evidence.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"
#include "reprise/index/next_tokens.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A set of voters: bit i represents voter i of Voters.
using VoterSet = std::uint64_t;

/// A token that may follow a node of the draft.
struct Candidate {
  Token token = 0;
  VoterSet voters = 0;  ///< the voters that predict this token
  TokenEvidence evidence;
};

/// The tokens that may follow one node, each with its evidence. Sources add tokens in any order; of equally probable
/// tokens, the one added first wins.
///
/// Use it as a local variable that is filled and read once. Its storage stays uninitialised, so unused elements cost
/// nothing.
template <std::size_t Most>
class Candidates {
 public:
  Candidates() noexcept = default;
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;
  ~Candidates() = default;

  /// Returns the candidate for this token; adds one without evidence if there is none yet.
  [[nodiscard]] Candidate& of(Token token) noexcept {
    const std::size_t at = find(token, size_);
    return at == size_ ? add(token) : begin()[at];
  }
  /// Returns the candidate for this token, or null. Valid until the next one is added.
  [[nodiscard]] Candidate* find(Token token) noexcept {
    const std::size_t at = find(token, size_);
    return at == size_ ? nullptr : begin() + at;
  }
  /// True if this token is among the first `count` candidates.
  [[nodiscard]] bool contains(Token token, std::size_t count) noexcept { return find(token, count) != count; }
  /// Adds a candidate without evidence. Preconditions: this token has no candidate yet; there are fewer than `Most`
  /// candidates.
  Candidate& add(Token token) noexcept {
    REPRISE_EXPECTS(size_ < Most);
    seen_[word_of(token)] |= bit_of(token);
    Candidate& candidate = *::new (static_cast<void*>(begin() + size_++)) Candidate;
    candidate.token = token;
    return candidate;
  }
  /// Returns all candidates so far, in the order in which they were added. Valid until the next one is added.
  [[nodiscard]] std::span<Candidate> all() noexcept { return {begin(), size_}; }
  /// Returns true if `path`, followed by a token without votes, has a probability above 1/20.
  [[nodiscard]] bool leave_room(Probability path) const noexcept {
    using Product = Fixed<ProbabilityScale::bits + UnitScale::bits>;  // the scale of path x weight
    return rescaled<ProbabilityScale, Product>(std::uint64_t{path.raw()}) * 20 >
           rescaled<UnitScale, Product>(std::uint64_t{total});
  }

  VoteWeight total = weight_one;  ///< sum of the voters' votes, plus the weight of "something else"
  int longest = -1;               ///< the longest agreement of a voter, in tokens; -1: no votes

 private:
  static_assert(std::is_trivially_destructible_v<Candidate>);
  [[nodiscard]] Candidate* begin() noexcept { return reinterpret_cast<Candidate*>(storage_); }
  // The place of a token in `seen_`.
  static constexpr std::size_t word_of(Token token) noexcept { return static_cast<std::uint32_t>(token) / 64 % 4; }
  static constexpr std::uint64_t bit_of(Token token) noexcept {
    return std::uint64_t{1} << static_cast<std::uint32_t>(token) % 64;
  }
  // A plain loop: there are rarely more than a few candidates, and for so few the unrolled std::find_if() is slower.
  [[nodiscard]] std::size_t find(Token token, std::size_t count) noexcept {
    if ((seen_[word_of(token)] & bit_of(token)) == 0) return count;
    const Candidate* const known = begin();
    std::size_t i = 0;
    while (i < count && known[i].token != token) ++i;
    return i;
  }

  std::size_t size_ = 0;
  std::array<std::uint64_t, 4>
      seen_{};  // a bit for each token by its last eight bits: most new tokens are not searched
  alignas(Candidate) std::byte storage_[Most * sizeof(Candidate)];
};

/// A node of the draft of NgramDrafter, or a candidate for one.
struct NgramNode {
  Probability path;
  Token token = 0;
  NodeIndex parent = anchor_parent;
  std::uint8_t depth = 0;    // 1: directly after the anchor; at most max_nodes
  bool only_ranked = false;  // listed by a ranking, predicted by no voter; requery() may add voters later
  std::uint16_t length = 0;
  std::uint16_t count = 0;  // of the token in the context; 65,535: at least so many
  VoterSet voters = 0;
  TokenCalibrator::TrainingSample sample;

  [[nodiscard]] DraftNode node() const noexcept {
    return {.token = token,
            .parent = parent,
            .path_probability = path,
            .match_length = length,
            .source = sample.source == EvidenceSource::stores ? DraftSource::store : DraftSource::context};
  }
};

/// Returns the voters for the first accepted token. A place that votes for a later one has voted for the first. If
/// nothing was sent, returns the voters for the target's token, so that a place can help while control sends no drafts.
[[nodiscard]] inline VoterSet helpful_voters(std::span<const NgramNode> nodes, const Outcome& outcome) noexcept {
  if (!outcome.accepted.empty()) {
    const auto first = static_cast<std::size_t>(outcome.accepted.front());
    return first < nodes.size() ? nodes[first].voters : 0;
  }
  if (!outcome.sent.empty()) return 0;
  for (const NgramNode& node : nodes)
    if (node.parent == anchor_parent && outcome.pick == node.token) return node.voters;
  return 0;
}

/// The position after `parent`, for which candidates are collected.
struct NgramPlace {
  NodeIndex parent = anchor_parent;
  std::size_t depth = 0;  // tokens of the draft before this position
  Probability path;
  VoterSet voters = 0;
  Token before = 0;
  std::uint64_t count = 0;  // of `before` in the context; TokenCalibrator does not tell counts above 65,535 apart
};

/// Returns the node for a candidate at `place`. `sample`: its probability, from which `path` was computed.
[[nodiscard]] inline NgramNode node_of(const Candidate& candidate, const NgramPlace& place, Probability path,
                                       const TokenCalibrator::TrainingSample& sample) noexcept {
  const auto two_bytes = [](auto number) {
    return static_cast<std::uint16_t>(std::clamp<decltype(number)>(number, 0, 65535));
  };
  return {.path = path,
          .token = candidate.token,
          .parent = place.parent,
          .depth = static_cast<std::uint8_t>(place.depth + 1),
          .only_ranked = candidate.voters == 0 && candidate.evidence.next.ranked(),
          .length = two_bytes(candidate.evidence.longest),
          .count = two_bytes(candidate.evidence.count),
          .voters = candidate.voters,
          .sample = sample};
}

/// The sources of next tokens that a drafter has, besides occurrences in texts.
struct NextTokenSources {
  const NextTokenCounts* counts = nullptr;  ///< null: none
  const RankedRows* carried = nullptr;      ///< rows of earlier sequences; null: none
  const ShownRows* shown = nullptr;         ///< rows of this sequence; null: none
  bool has_lags = false;                    ///< ShownRows::lag() belongs to the end of the text
  [[nodiscard]] bool none() const noexcept { return counts == nullptr && carried == nullptr && shown == nullptr; }
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
  /// Prefetches the lines of the tables of past sequences that the constructor reads. It mostly waits for them.
  static void prefetch(const NextTokenSources& from, std::optional<Token> before_last, Token last) noexcept {
    const auto prefetch_in = [&](const auto& table) {
      table.prefetch(last);
      if (before_last) table.prefetch(*before_last, last);
    };
    if (from.counts != nullptr) prefetch_in(*from.counts);
    if (from.carried != nullptr) prefetch_in(*from.carried);
  }
  /// Reads the lists after `last`, and those after `before_last` and `last` if there is a token before `last`. `depth`:
  /// the number of tokens of the draft before this position.
  NextTokenLists(const NextTokenSources& from, std::optional<Token> before_last, Token last,
                 std::size_t depth) noexcept {
    if (from.counts != nullptr) {
      if (before_last) counted_[0] = from.counts->next(*before_last, last);
      counted_[1] = from.counts->next(last);
    }
    if (before_last && *before_last >= 0) read_ranking(from, *before_last, last, 0);  // negative: Ranking::none
    read_ranking(from, Ranking::none, last, 1);
    if (from.has_lags && depth < 2) {
      const Ranking& before = from.shown->lag(0);
      if (!before.empty()) ranked_[depth == 0 ? 2 : 4] = &before;
      if (depth == 0 && !from.shown->lag(1).empty()) ranked_[3] = &from.shown->lag(1);
    }
  }
  NextTokenLists(const NextTokenLists&) = delete;  // lists can refer to copies in this object
  NextTokenLists& operator=(const NextTokenLists&) = delete;
  ~NextTokenLists() = default;

  /// Sets the evidence of the listed tokens. A token without a candidate becomes one by `add_candidate(token)`, if a
  /// path of its rough probability times `path` has a probability of at least `least`. The rough probability of a
  /// counted token is a quarter of its share; that of a ranked token depends on its rank.
  template <class Candidates, class AddCandidate>
  void add(Candidates& candidates, Probability path, Probability least, AddCandidate&& add_candidate) const noexcept {
    const auto candidate_for = [&](Token token, std::uint64_t part, std::uint64_t whole) -> Candidate* {
      if (Candidate* const known = candidates.find(token); known != nullptr) return known;
      return path.raw() * part >= least.raw() * whole ? &add_candidate(token) : nullptr;
    };
    for (std::size_t i = 0; i < counted_.size(); ++i) {
      const CountClasses classes(counted_source(i), counted_[i].total());
      for (const NextTokenCounts::NextToken& next : counted_[i].listed())
        if (Candidate* const candidate = candidate_for(next.token, next.count, 4 * std::uint64_t{counted_[i].total()}))
          list(*candidate, counted_source(i), classes.of(next.count));
    }
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      if (ranked_[i] == nullptr) continue;
      const bool direct = i < 2;  // after the same tokens, not one or two tokens before
      for (std::size_t rank = 0; rank < Ranking::most; ++rank) {
        const Token token = ranked_[i]->tokens[rank];
        if (token == Ranking::none) continue;
        Candidate* const candidate = candidate_for(token, 1, direct ? 4 + 6 * rank : 10 + 10 * rank);
        if (candidate != nullptr && candidate->evidence.next.of(ranked_source(i)) == NextTokenEvidence::unknown)
          list(*candidate, ranked_source(i), NextTokenEvidence::ranked(ranked_source(i), rank, carried(i)));
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
  static constexpr std::size_t direct_lists = 2;  // the lists that can be carried
  using CountClasses = NextTokenEvidence::CountClasses;

  static constexpr NextTokenSource counted_source(std::size_t i) noexcept { return static_cast<NextTokenSource>(i); }
  static constexpr NextTokenSource ranked_source(std::size_t i) noexcept { return static_cast<NextTokenSource>(2 + i); }
  [[nodiscard]] bool carried(std::size_t i) const noexcept { return i < direct_lists && ranked_[i] == &carried_[i]; }

  void read_ranking(const NextTokenSources& from, Token before_last, Token last, std::size_t i) noexcept {
    if (from.shown != nullptr) ranked_[i] = from.shown->after(before_last, last);
    if (ranked_[i] != nullptr || from.carried == nullptr) return;
    carried_[i] = before_last == Ranking::none ? from.carried->after(last) : from.carried->after(before_last, last);
    if (!carried_[i].empty()) ranked_[i] = &carried_[i];
  }
  static void list(Candidate& candidate, NextTokenSource source, std::uint8_t known) noexcept {
    candidate.evidence.next.set(source, known);
    if (source <= NextTokenSource::ranked_after_one) candidate.evidence.next.listed = true;
  }

  std::array<NextTokenCounts::NextTokens, 2> counted_;  // after two tokens, after one
  std::array<const Ranking*, 5> ranked_{};              // in the order of NextTokenSource; null: none
  std::array<Ranking, direct_lists> carried_;           // copies, because other threads may write to the table
};

}}}  // namespace reprise::detail
