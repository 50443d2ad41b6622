// SPDX-License-Identifier: Apache-2.0
#include "ceiling.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

namespace reprise::replay {
namespace {

/// The text of a session so far. Finds the longest part of the coming tokens that can be copied from it.
class Said {
 public:
  void add(Token token) {
    if (!text_.empty()) pairs_[pair(text_.back(), token)].push_back(text_.size() - 1);
    tokens_[token] = text_.size();
    text_.push_back(token);
  }
  [[nodiscard]] std::size_t size() const { return text_.size(); }

  /// The length of the longest copy that starts inside the text and agrees with `coming`. A copy that runs past the end
  /// of the text continues in `coming`.
  [[nodiscard]] std::size_t longest_copy(TokenSpan coming) const {
    if (coming.empty() || !tokens_.contains(coming[0])) return 0;
    const auto at = [&](std::size_t i) { return i < text_.size() ? text_[i] : coming[i - text_.size()]; };
    std::size_t longest = 1;
    if (coming.size() < 2) return longest;
    if (text_.back() == coming[0] && coming[0] == coming[1]) {  // the pair across the end of the text
      while (longest < coming.size() && coming[longest] == coming[0]) ++longest;
    }
    const auto found = pairs_.find(pair(coming[0], coming[1]));
    if (found == pairs_.end()) return longest;
    for (auto from = found->second.rbegin(); from != found->second.rend() && longest < coming.size(); ++from) {
      std::size_t length = 2;
      while (length < coming.size() && at(*from + length) == coming[length]) ++length;
      longest = std::max(longest, length);
    }
    return longest;
  }

 private:
  static std::uint64_t pair(Token a, Token b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }

  std::vector<Token> text_;
  std::unordered_map<Token, std::size_t> tokens_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> pairs_;  // start positions of each pair
};

/// The cheapest way through the recorded tokens after the first of a turn; `context` tokens come before them.
void play(std::span<const std::size_t> copies, std::size_t context, const CostCurve& curve, Counts& counts) {
  const std::size_t n = copies.size();
  std::vector<double> least(n + 1, 0);  // cost from here to the end
  std::vector<std::size_t> draft(n, 0);
  for (std::size_t i = n; i-- > 0;) {
    least[i] = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k <= std::min(copies[i], n - i - 1); ++k) {
      const double cost = curve.cost({1, k + 1, context + i}) + least[i + k + 1];
      if (cost >= least[i]) continue;
      least[i] = cost;
      draft[i] = k;
    }
  }
  counts.tokens += n;
  counts.charges.front().cost += least[0];
  for (std::size_t i = 0; i < n; i += draft[i] + 1) {
    ++counts.passes;
    counts.drafted += draft[i];
    counts.accepted += draft[i];
  }
}

}  // namespace

Counts ceiling(const TraceSession& recorded, const CostCurve& curve, std::size_t max_nodes) {
  Counts counts;
  counts.sessions = 1;
  counts.charges.resize(1);
  Said said;
  for (const Turn& turn : recorded.turns) {
    ++counts.turns;
    for (const Token token : turn.prompt) said.add(token);
    if (turn.output.empty()) continue;
    said.add(turn.output.front());  // free, from the prefill
    const TokenSpan coming = TokenSpan(turn.output).subspan(1);
    const std::size_t context = said.size();
    std::vector<std::size_t> copies;
    for (std::size_t i = 0; i < coming.size(); ++i) {
      copies.push_back(said.longest_copy(coming.subspan(i, std::min(max_nodes, coming.size() - i))));
      said.add(coming[i]);
    }
    play(copies, context, curve, counts);
  }
  return counts;
}

}  // namespace reprise::replay
