// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"

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

}}}  // namespace reprise::detail
