// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "reprise/core/probability.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/candidates.hpp"
#include "reprise/evidence/next_token_evidence.hpp"
#include "reprise/index/next_token_counts.hpp"

namespace reprise::inline v0::detail {

/// The next-token counts at one position of a draft. Adds candidates and evidence from them.
class NextTokenSource {
 public:
  /// The maximum number of candidates that add() adds.
  static constexpr std::size_t most_added = NextTokenEvidence::orders * NextTokens::most;

  /// Reads the counts after `last`, and after `before_last` and `last` if there is a token before `last`.
  NextTokenSource(const NextTokenCounts& counts, std::optional<Token> before_last, Token last) noexcept
      : next_{before_last ? counts.next(*before_last, last) : NextTokens(), counts.next(last)} {}

  /// Sets the evidence of the counted tokens. A token without a candidate becomes one by `add_candidate(token)`, if a
  /// path of its share of the counts times `path` has a probability of at least `least`.
  template <class Candidates, class AddCandidate>
  void add(Candidates& candidates, Probability path, Probability least, AddCandidate&& add_candidate) const noexcept {
    for (std::size_t order = 0; order < next_.size(); ++order)
      for (const NextToken& next : next_[order].listed()) {
        const std::uint32_t total = next_[order].total();
        Candidate* candidate = candidates.find(next.token);
        if (candidate == nullptr && std::uint64_t{path.raw()} * next.count >= std::uint64_t{least.raw()} * total)
          candidate = &add_candidate(next.token);
        if (candidate != nullptr)
          candidate->evidence.next.classes[order] = NextTokenEvidence::counted(next.count, total);
      }
  }
  /// Completes the evidence of all candidates at this position. `stores_vote`: occurrences in datastores vote here.
  void complete(std::span<Candidate> candidates, bool stores_vote) const noexcept {
    for (std::size_t order = 0; order < next_.size(); ++order) {
      if (next_[order].total() == 0) continue;
      for (Candidate& candidate : candidates) {
        candidate.evidence.stores_vote = stores_vote;
        std::uint8_t& known = candidate.evidence.next.classes[order];
        if (known == NextTokenEvidence::unknown) known = NextTokenEvidence::absent;
      }
    }
  }

 private:
  std::array<NextTokens, NextTokenEvidence::orders> next_;
};

}  // namespace reprise::detail
