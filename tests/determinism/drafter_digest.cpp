// SPDX-License-Identifier: Apache-2.0
// Drafts over fixed texts, with feedback and truncations, folded into one number. Every compiler must print the same
// number at every optimisation level and with -ffast-math. Otherwise engines that decode one sequence on several
// devices could draft differently and hang. After an intended change of the policy, the printed number is the new
// constant.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/testing/random.hpp"

namespace {

using reprise::Token;
using reprise::testing::mix;
using reprise::testing::Random;

constexpr std::uint64_t expected = 0xbec040ccd656f5ed;

class Digest {
 public:
  void add(std::uint64_t value) { state_ = mix(state_ ^ value); }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 1;
};

/// Few frequent tokens, many rare ones, and copies of earlier stretches with occasional edits.
std::vector<Token> text(std::size_t size, std::size_t vocabulary, Random& random) {
  const auto fresh = [&] {
    return static_cast<Token>(std::min({random.below(vocabulary), random.below(vocabulary), random.below(vocabulary)}));
  };
  std::vector<Token> tokens;
  while (tokens.size() < size) {
    for (std::size_t i = random.below(30); i > 0; --i) tokens.push_back(fresh());
    std::size_t from = random.below(tokens.size() + 1);
    for (std::size_t i = random.below(80); i > 0 && from < tokens.size(); --i) {
      const std::size_t edit = random.below(40);
      if (edit == 1) from = std::min(tokens.size() - 1, from + random.below(8));
      const Token copied = edit == 0 ? fresh() : tokens[from];
      tokens.push_back(copied);
      if (edit != 2) ++from;
    }
  }
  tokens.resize(size);
  return tokens;
}

/// Decodes the text with a target that picks exactly this text. Folds every draft and the learned calibration into the
/// digest.
template <class Index>
void decode(const std::vector<Token>& tokens, reprise::DraftShape shape, Random& random, Digest& digest) {
  reprise::NgramDrafter<Index> drafter;
  std::vector<reprise::DraftNode> storage(64);
  std::vector<reprise::NodeIndex> accepted;
  std::size_t at = 200;
  const auto context = [&](std::size_t size) { return reprise::TokenSpan(tokens).first(size); };
  drafter.begin(context(at));
  while (at < tokens.size()) {
    reprise::DraftBudget budget;
    budget.shape = shape;
    budget.max_nodes = 1 + random.below(40);
    if (random.below(5) == 0) budget.max_leaves = 1 + random.below(4);
    reprise::Draft draft(storage, budget);
    drafter.propose(context(at), draft);
    for (const reprise::DraftNode& node : draft.view()) {
      digest.add(static_cast<std::uint32_t>(node.token));
      digest.add(static_cast<std::uint32_t>(node.parent));
      digest.add(node.path_probability.raw());
      digest.add(node.match_length);
    }
    digest.add(draft.size());
    // The path of the draft that the text takes.
    accepted.clear();
    reprise::NodeIndex parent = reprise::anchor_parent;
    for (std::size_t i = 0; i < draft.size() && at + accepted.size() + 1 < tokens.size(); ++i) {
      if (draft[i].parent != parent || draft[i].token != tokens[at + accepted.size()]) continue;
      parent = static_cast<reprise::NodeIndex>(i);
      accepted.push_back(parent);
    }
    drafter.feedback(context(at), {draft.view(), {}, accepted, tokens[at + accepted.size()], reprise::Cut::none, {}});
    at += accepted.size() + 1;
    drafter.observe(context(at), accepted.size() + 1, reprise::Origin::output);
    if (random.below(60) == 0) {
      const std::size_t before = at;
      at -= random.below(100);
      drafter.truncate(context(before), at);
    }
  }
  const reprise::CalibrationState& learned = drafter.calibration();
  digest.add(learned.lessons);
  digest.add(learned.recent);
  digest.add(static_cast<std::uint32_t>(learned.all));
  digest.add(static_cast<std::uint32_t>(learned.slope));
  for (const std::int32_t bias : learned.by_length) digest.add(static_cast<std::uint32_t>(bias));
  for (const std::int32_t bias : learned.by_depth) digest.add(static_cast<std::uint32_t>(bias));
}

}  // namespace

int main() {
  Random random(2024);
  Digest digest;
  for (const std::size_t vocabulary : {3U, 20U, 400U, 20'000U})
    for (const reprise::DraftShape shape : {reprise::DraftShape::chain, reprise::DraftShape::tree}) {
      const std::vector<Token> tokens = text(2000, vocabulary, random);
      decode<reprise::RollingHashIndex>(tokens, shape, random, digest);
      decode<reprise::SuffixArrayIndex>(tokens, shape, random, digest);
    }
  std::printf("0x%016llx, expected 0x%016llx\n", static_cast<unsigned long long>(digest.value()),
              static_cast<unsigned long long>(expected));
  return digest.value() == expected ? 0 : 1;
}
