// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A tiny target and a tiny drafter as tables of exact probabilities, with a real session between them. Every
/// random decision is taken in every way. The result is the exact distribution of the output.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/engine/rejection.hpp"
#include "reprise/loop/session.hpp"
#include "reprise_testing/random.hpp"
#include "support/branches.hpp"
#include "support/rational.hpp"

namespace reprise::testing {

/// Probabilities of tokens 0, 1, ... after every pair of last tokens.
class ExactModel {
 public:
  ExactModel(std::size_t vocabulary, std::int64_t parts, Random& random) : vocabulary_(vocabulary) {
    for (std::size_t i = 0; i < vocabulary * vocabulary; ++i) rows_.push_back(row(parts, random));
  }
  [[nodiscard]] std::span<const Rational> after(TokenSpan context) const {
    const auto at = [&](std::size_t back) {
      return context.size() < back ? 0 : static_cast<std::size_t>(context[context.size() - back]);
    };
    return rows_[at(1) * vocabulary_ + at(2)];
  }
  [[nodiscard]] std::size_t vocabulary() const { return vocabulary_; }

 private:
  /// Returns `parts` equal parts, distributed randomly over the tokens. Often some tokens get none, sometimes one gets
  /// all.
  [[nodiscard]] std::vector<Rational> row(std::int64_t parts, Random& random) const {
    std::vector<std::int64_t> given(vocabulary_);
    const std::size_t eligible = random.chance(70) ? vocabulary_ : 1 + random.below(vocabulary_);
    const std::size_t first = random.below(vocabulary_);
    for (std::int64_t part = 0; part < parts; ++part) ++given[(first + random.below(eligible)) % vocabulary_];
    std::vector<Rational> probabilities;
    for (const std::int64_t number : given) probabilities.emplace_back(number, parts);
    return probabilities;
  }

  std::size_t vocabulary_;
  std::vector<std::vector<Rational>> rows_;
};

/// The behaviour of a world's drafter, and the way its drafts are verified. Two settings are mistakes that bias the
/// output.
struct ExactDrafting {
  std::size_t length = 2;
  bool ends_at_zero = false;        ///< token 0 ends a draft, as an EOS token would
  bool by_agreement = false;        ///< drafts are verified by agreement with draws from the target
  bool states_own_token = false;    ///< a mistake: states q(x) of the drawn token after drawing it
  bool states_other_table = false;  ///< a mistake: shows another distribution than the one it drew from
};

/// A target, a drafter, and the probability that the drafter states in each context before it draws the next token.
struct ExactWorld {
  ExactModel target;
  ExactModel drafter;
  std::vector<std::uint32_t> stated;  ///< in sixteenths
  ExactDrafting drafting;

  ExactWorld(std::size_t vocabulary, std::int64_t parts, ExactDrafting how, std::uint64_t seed)
      : ExactWorld(vocabulary, parts, how, Random(mix(seed))) {}

  [[nodiscard]] Probability stated_after(TokenSpan context) const {
    const std::size_t last = context.empty() ? 0 : static_cast<std::size_t>(context.back());
    return Probability::from_raw(stated[(last + 3 * context.size()) % stated.size()] * (Probability::scale / 16));
  }

 private:
  ExactWorld(std::size_t vocabulary, std::int64_t parts, ExactDrafting how, Random random)
      : target(vocabulary, parts, random), drafter(vocabulary, parts, random), drafting(how) {
    for (std::size_t i = 0; i < 7; ++i) stated.push_back(static_cast<std::uint32_t>(1 + random.below(16)));
  }
};

/// A strategy that draws its drafts from a distribution of its own.
class SampledStrategy : public archetype::Strategy {
 public:
  SampledStrategy(const ExactWorld& world, Branches& branches) : world_(&world), branches_(&branches) {}

  void propose(TokenSpan context, Draft& draft) {
    draft.clear(DraftKind::sampled);
    const DraftBudget& budget = draft.budget();
    std::vector<Token> text(context.begin(), context.end());
    Probability path = Probability::one();
    const ExactDrafting& how = world_->drafting;
    for (std::size_t i = 0; i < std::min({how.length, budget.max_nodes, budget.max_depth}); ++i) {
      path = path * world_->stated_after(text);
      if (path < budget.min_path_probability) return;
      const std::span<const Rational> q = world_->drafter.after(text);
      distributions_[i] = how.states_other_table ? world_->drafter.after(context) : q;
      const std::size_t token = *branches_->draw(q.size(), [&](std::size_t t) { return q[t]; });
      text.push_back(static_cast<Token>(token));
      Probability says = path;
      if (how.states_own_token)
        says = Probability::ratio(static_cast<std::uint32_t>(q[token].numerator()),
                                  static_cast<std::uint32_t>(q[token].denominator()));
      draft.extend({.token = text.back(), .path_probability = says, .source = DraftSource::model});
      if (how.ends_at_zero && token == 0) return;
    }
  }
  [[nodiscard]] std::span<const Rational> distribution(NodeIndex node) const {
    return distributions_[static_cast<std::size_t>(node)];
  }

 private:
  const ExactWorld* world_;
  Branches* branches_;
  std::array<std::span<const Rational>, 8> distributions_;
};
static_assert(DraftStrategy<SampledStrategy>);

using ExactDistribution = std::map<std::vector<Token>, Rational>;

/// Adds the distribution of plain decoding's output.
inline void add_plain(const ExactModel& target, std::vector<Token>& context, std::size_t tokens, Rational probability,
                      ExactDistribution& sum) {
  if (tokens == 0) {
    sum[context] = probability;
    return;
  }
  const std::span<const Rational> p = target.after(context);
  for (std::size_t token = 0; token < p.size(); ++token) {
    if (p[token] == Rational()) continue;
    context.push_back(static_cast<Token>(token));
    add_plain(target, context, tokens - 1, probability * p[token], sum);
    context.pop_back();
  }
}

/// Counts over all branches of a run, so that tests can see that it was not trivial.
struct ExactCoverage {
  std::size_t runs = 0;
  std::array<std::size_t, 9> sent{};  ///< passes by number of drafted tokens, pad rows not counted
  std::size_t accepted = 0;
  std::size_t rejected = 0;
};

/// Returns the distribution of the first `tokens` output tokens of a session with this control. time(rows) is the time
/// of a pass, for controls that learn.
template <class Control, class Time>
ExactDistribution decode_exactly(const ExactWorld& world, const Control& control, const Capabilities& capabilities,
                                 std::size_t tokens, ExactCoverage& coverage, Time time) {
  const std::vector<Token> prompt = {0};
  Limits limits;
  limits.max_tokens = tokens;
  ExactDistribution sum;
  Branches branches;
  do {
    ++coverage.runs;
    Session<SampledStrategy, Control> session(SampledStrategy(world, branches), control, 4);
    if (!session.begin(prompt, capabilities)) return {};
    while (true) {
      const DraftView draft = session.propose(limits);
      if (session.finished()) break;
      const auto pass = session.plan();
      const TokenSpan sent = pass->batch.last(pass->drafted).first(std::min(pass->drafted, draft.size()));
      ++coverage.sent[sent.size()];
      std::vector<Token> text;
      RejectionPicks picks(
          sent,
          [&](std::size_t i) {
            text.assign(session.context().begin(), session.context().end());
            const TokenSpan before = pass->batch.last(pass->drafted).first(i);
            text.insert(text.end(), before.begin(), before.end());
            return world.target.after(text);
          },
          [&](std::size_t i) {
            if (world.drafting.by_agreement) return std::span<const Rational>();
            return session.strategy().distribution(static_cast<NodeIndex>(i));
          },
          branches);
      const auto decision = session.resolve(pass->ticket, picks);
      const auto accepted = static_cast<std::size_t>(
          std::count_if(decision->tokens.begin(), decision->tokens.end(), [](const auto& t) { return t.drafted; }));
      coverage.accepted += accepted;
      coverage.rejected += accepted < sent.size() ? 1 : 0;
      static_cast<void>(session.commit(pass->ticket, time(pass->batch.size())));
    }
    std::vector<Token> text(session.context().begin(), session.context().end());
    Rational& so_far = sum[text];
    so_far = so_far + branches.probability();
  } while (branches.next());
  return sum;
}
template <class Control>
ExactDistribution decode_exactly(const ExactWorld& world, const Control& control, const Capabilities& capabilities,
                                 std::size_t tokens, ExactCoverage& coverage) {
  return decode_exactly(world, control, capabilities, tokens, coverage,
                        [](std::size_t) { return std::optional<std::chrono::nanoseconds>(); });
}

/// Returns the exact distance of two distributions: half the sum of absolute differences. Zero means equal.
inline Rational distance(const ExactDistribution& a, const ExactDistribution& b) {
  ExactDistribution difference = a;
  for (const auto& [text, probability] : b) difference[text] = difference[text] - probability;
  Rational sum;
  for (const auto& [text, probability] : difference)
    sum = sum + (probability < Rational() ? -probability : probability);
  return sum / Rational(2);
}

}  // namespace reprise::testing
