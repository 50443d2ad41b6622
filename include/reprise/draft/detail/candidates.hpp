// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "reprise/core/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/match_weight.hpp"
#include "reprise/evidence/token_calibrator.hpp"

namespace reprise::inline v0::detail {

/// A set of the places that vote on a draft, by their index.
using VoterSet = std::uint64_t;

/// A token that may follow a node of the draft.
struct Candidate {
  Token token = 0;
  VoterSet voters = 0;  ///< the places that this token follows
  TokenEvidence evidence;
};

/// The tokens that may follow one node, each with all that is known of it. Sources add to it in any order; the order
/// in which tokens came in decides between equal probabilities.
///
/// A local variable that is filled and read once: nothing is set up beforehand, so an unused place costs nothing.
template <std::size_t Most>
class Candidates {
 public:
  Candidates() noexcept = default;
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;
  ~Candidates() = default;

  /// The candidate for this token, a new one without evidence if there is none yet.
  [[nodiscard]] Candidate& of(Token token) noexcept {
    const std::size_t at = find(token, size_);
    return at == size_ ? add(token) : begin()[at];
  }
  /// True if one of the first `count` is this token.
  [[nodiscard]] bool contains(Token token, std::size_t count) noexcept { return find(token, count) != count; }
  /// A new one without evidence. Precondition: there is none for this token.
  Candidate& add(Token token) noexcept {
    REPRISE_EXPECTS(size_ < Most);
    Candidate& candidate = *std::construct_at(begin() + size_++);
    candidate.token = token;
    return candidate;
  }
  /// Those so far, in the order in which they came in. Valid until the next one comes.
  [[nodiscard]] std::span<Candidate> all() noexcept { return {begin(), size_}; }

  VoteWeight total = weight_one;  ///< of all votes, and of "something else"
  int longest = -1;               ///< the longest agreement of a vote; -1: there is none

 private:
  static_assert(std::is_trivially_destructible_v<Candidate>);
  [[nodiscard]] Candidate* begin() noexcept { return reinterpret_cast<Candidate*>(storage_); }
  // A plain loop: there are seldom more than a few, which std::find_if() spends more on unrolling than on looking.
  [[nodiscard]] std::size_t find(Token token, std::size_t count) noexcept {
    const Candidate* const known = begin();
    std::size_t i = 0;
    while (i < count && known[i].token != token) ++i;
    return i;
  }

  std::size_t size_ = 0;
  alignas(Candidate) std::byte storage_[Most * sizeof(Candidate)];
};

}  // namespace reprise::detail
