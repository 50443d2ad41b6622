// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/probability.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/candidates.hpp"
#include "reprise/draft/detail/shown_rows.hpp"
#include "reprise/evidence/next_token_evidence.hpp"
#include "reprise/index/next_token_counts.hpp"
#include "reprise/index/ranked_rows.hpp"

namespace reprise::inline v0::detail {

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

  /// Reads the lists after `last`, and those after `before_last` and `last` if there is a token before `last`. `depth`:
  /// the number of tokens of the draft before this position.
  NextTokenLists(const NextTokenSources& from, std::optional<Token> before_last, Token last,
                 std::size_t depth) noexcept {
    if (from.counts != nullptr) {
      if (before_last) counted_[0] = from.counts->next(*before_last, last);
      counted_[1] = from.counts->next(last);
    }
    if (before_last) read_ranking(from, *before_last, last, ranked_[0]);
    read_ranking(from, Ranking::none, last, ranked_[1]);
    if (from.has_lags) {
      if (depth == 0) {
        ranked_[2].ranking = from.shown->lag(0);
        ranked_[3].ranking = from.shown->lag(1);
      } else if (depth == 1) {
        ranked_[4].ranking = from.shown->lag(0);
      }
    }
    for (List& list : ranked_) list.known = list.known || !list.ranking.empty();
  }

  /// True if a list is not empty.
  [[nodiscard]] bool known() const noexcept { return has_counts() || ranked_known(0, ranked_.size()); }

  /// Sets the evidence of the listed tokens. A token without a candidate becomes one by `add_candidate(token)`, if a
  /// path of its rough share times `path` has a probability of at least `least`.
  template <class Candidates, class AddCandidate>
  void add(Candidates& candidates, Probability path, Probability least, AddCandidate&& add_candidate) const noexcept {
    const auto likely = [&](std::uint64_t part, std::uint64_t whole) {
      return std::uint64_t{path.raw()} * part >= std::uint64_t{least.raw()} * whole;
    };
    const auto candidate_for = [&](Token token, bool may_add) -> Candidate* {
      Candidate* const known = candidates.find(token);
      return known == nullptr && may_add ? &add_candidate(token) : known;
    };
    for (std::size_t i = 0; i < counted_.size(); ++i)
      for (const NextToken& next : counted_[i].listed()) {
        const std::uint32_t total = counted_[i].total();
        if (Candidate* const candidate = candidate_for(next.token, likely(next.count, total)))
          list(*candidate, counts_source(i), NextTokenEvidence::counted(counts_source(i), next.count, total));
      }
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      if (!ranked_[i].known) continue;
      for (std::size_t rank = 0; rank < Ranking::most; ++rank) {
        const Token token = ranked_[i].ranking.tokens[rank];
        if (token == Ranking::none) continue;
        const std::uint64_t rough = i < 2 ? 2 + 3 * rank : 10 + 10 * rank;
        Candidate* const candidate = candidate_for(token, likely(1, rough));
        if (candidate == nullptr) continue;
        const std::uint8_t known = NextTokenEvidence::ranked(ranked_source(i), rank, ranked_[i].carried);
        if (candidate->evidence.next.classes[std::size_t(ranked_source(i))] == NextTokenEvidence::unknown)
          list(*candidate, ranked_source(i), known);
      }
    }
  }
  /// Completes the evidence of all candidates at this position. `stores_vote`: occurrences in datastores vote here.
  void complete(std::span<Candidate> candidates, bool stores_vote) const noexcept {
    if (!known()) return;
    std::array<std::uint8_t, NextTokenEvidence::sources> absent{};
    for (std::size_t i = 0; i < counted_.size(); ++i)
      if (counted_[i].total() != 0) absent[i] = NextTokenEvidence::absent(counts_source(i));
    for (std::size_t i = 0; i < ranked_.size(); ++i)
      if (ranked_[i].known)
        absent[counted_.size() + i] = NextTokenEvidence::absent(ranked_source(i), ranked_[i].carried);
    const int kind = NextTokenEvidence::is_known | (has_counts() ? NextTokenEvidence::has_counts : 0) |
                     (ranked_known(0, 2) ? NextTokenEvidence::has_ranking : 0);
    for (Candidate& candidate : candidates) {
      NextTokenEvidence& next = candidate.evidence.next;
      candidate.evidence.stores_vote = stores_vote;
      next.kind = static_cast<std::uint8_t>(next.kind | kind);
      for (std::size_t i = 0; i < absent.size(); ++i)
        if (next.classes[i] == NextTokenEvidence::unknown) next.classes[i] = absent[i];
    }
  }

 private:
  struct List {
    Ranking ranking;
    bool known = false;
    bool carried = false;  // from an earlier sequence
  };
  static constexpr NextTokenSource counts_source(std::size_t i) noexcept { return static_cast<NextTokenSource>(i); }
  static constexpr NextTokenSource ranked_source(std::size_t i) noexcept { return static_cast<NextTokenSource>(2 + i); }

  static void read_ranking(const NextTokenSources& from, Token before_last, Token last, List& list) noexcept {
    const Ranking* const shown = from.shown == nullptr ? nullptr : from.shown->after(before_last, last);
    if (shown != nullptr) {
      list.ranking = *shown;
    } else if (from.carried != nullptr) {
      list.ranking = before_last == Ranking::none ? from.carried->after(last) : from.carried->after(before_last, last);
      list.carried = true;
    }
  }
  static void list(Candidate& candidate, NextTokenSource source, std::uint8_t known) noexcept {
    candidate.evidence.next.set(source, known);
    if (source <= NextTokenSource::ranked_after_one) candidate.evidence.next.kind |= NextTokenEvidence::listed;
  }
  [[nodiscard]] bool has_counts() const noexcept { return counted_[0].total() != 0 || counted_[1].total() != 0; }
  [[nodiscard]] bool ranked_known(std::size_t begin, std::size_t end) const noexcept {
    for (std::size_t i = begin; i < end; ++i)
      if (ranked_[i].known) return true;
    return false;
  }

  std::array<NextTokens, 2> counted_;  // after two tokens, after one
  std::array<List, 5> ranked_;         // in the order of NextTokenSource
};

}  // namespace reprise::detail
