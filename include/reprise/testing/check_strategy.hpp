// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/testing/random.hpp"
#include "reprise/testing/report.hpp"

namespace reprise::testing {

/// How a strategy is checked.
struct StrategyCheck {
  std::vector<Token> text = {};  ///< what is committed in the runs; empty: a repetitive text made from the seed
  std::size_t prompt = 16;       ///< of it, the tokens that begin() is given
  std::size_t runs = 16;
  DraftBudget budget = {};
  bool expect_drafts = true;  ///< a strategy that never drafts anything is reported as skipped, not as exact
  /// Allocations of this program so far, from a counting operator new. Without it S3 is not checked for them.
  std::function<std::size_t()> allocations = {};
  std::uint64_t seed = 1;
};

namespace detail {

/// A draft that outlives the call that made it.
struct KeptDraft {
  std::vector<DraftNode> nodes;
  DraftKind kind = DraftKind::ordered;

  friend bool operator==(const KeptDraft& a, const KeptDraft& b) {
    return a.kind == b.kind && std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(),
                                          [](const DraftNode& x, const DraftNode& y) {
                                            return x.token == y.token && x.parent == y.parent &&
                                                   x.path_probability == y.path_probability &&
                                                   x.auxiliary == y.auxiliary;
                                          });
  }
  /// The same proposals, whatever is thought of them.
  [[nodiscard]] bool same_tokens(const KeptDraft& other) const {
    return std::equal(
        nodes.begin(), nodes.end(), other.nodes.begin(), other.nodes.end(),
        [](const DraftNode& x, const DraftNode& y) { return x.token == y.token && x.parent == y.parent; });
  }
  [[nodiscard]] std::string to_string() const {
    std::string text = "[";
    for (const DraftNode& node : nodes) {
      if (text.size() > 1) text += ' ';
      text += std::to_string(node.token);
      text += '<';
      text += std::to_string(node.parent);
    }
    text += ']';
    return text;
  }
};

template <class Make>
class StrategyRuns {
  using Strategy = std::remove_cvref_t<std::invoke_result_t<Make&>>;
  static_assert(DraftStrategy<Strategy>, "make() has to give a strategy");

 public:
  StrategyRuns(Make& make, const StrategyCheck& check) : make_(make), check_(check), random_(check.seed) {}

  Report run() {
    for (const auto& [clause, what] : clauses) report_.findings.push_back({clause, what, Verdict::exact, 0, 0, {}});
    for (std::size_t i = 0; i < check_.runs; ++i) one_run(i);
    if (!check_.allocations) skip(no_allocation, "no counter of allocations was given");
    if (check_.expect_drafts && !drafted_)
      for (std::size_t i = 0; i < clauses.size(); ++i) skip(i, "nothing was ever drafted");
    return std::move(report_);
  }

 private:
  enum Clause : std::size_t { forgets, well_formed, in_budget, no_allocation, repeatable, truncates, forks, pure };
  static constexpr std::array<std::pair<const char*, const char*>, 8> clauses = {{
      {"S1", "begin() forgets the sequence before"},
      {"S3", "parents first, probabilities in order"},
      {"S3", "the draft stays in its budget"},
      {"S3", "propose() does not allocate"},
      {"S4", "asked twice, the same draft"},
      {"S6", "truncate() is as if no more had been committed"},
      {"S7", "a copy goes on independently"},
      {"S8", "the same calls, the same drafts"},
  }};

  void skip(std::size_t clause, const char* why) {
    report_.findings[clause].verdict = Verdict::skipped;
    report_.findings[clause].message = why;
  }
  void expect(Clause clause, bool holds, const std::string& otherwise) {
    Finding& finding = report_.findings[clause];
    ++finding.checks;
    if (holds || finding.verdict == Verdict::wrong) return;
    finding.verdict = Verdict::wrong;
    finding.message = otherwise;
  }
  void expect_same(Clause clause, const KeptDraft& got, const KeptDraft& wanted, std::size_t at,
                   bool tokens_only = false) {
    expect(clause, tokens_only ? got.same_tokens(wanted) : got == wanted,
           "after " + std::to_string(at) + " tokens: " + got.to_string() + " where " + wanted.to_string() +
               " was expected (token<parent)");
  }

  std::vector<Token> text(std::size_t run) {
    if (!check_.text.empty()) return check_.text;
    std::vector<Token> made;
    const std::size_t vocabulary = 2 + run % 5;
    while (made.size() < check_.prompt + 80) {
      // Copies of earlier stretches with something new between: what lookups live on.
      const std::size_t from = random_.below(made.size() + 1);
      const std::size_t end = std::min(made.size(), from + random_.below(12));
      for (std::size_t i = from; i < end; ++i) made.push_back(Token{made[i]});
      made.push_back(static_cast<Token>(random_.below(vocabulary)));
    }
    return made;
  }
  KeptDraft propose(Strategy& strategy, const DraftBudget& budget) {
    std::vector<DraftNode> storage(std::min<std::size_t>(budget.max_nodes, 4096) + 4);
    Draft draft(storage);
    const std::size_t before = check_.allocations ? check_.allocations() : 0;
    strategy.propose(budget, draft);
    const std::size_t after = check_.allocations ? check_.allocations() : 0;
    expect(no_allocation, before == after, std::to_string(after - before) + " allocations in one propose()");
    KeptDraft kept{{draft.view().begin(), draft.view().end()}, draft.view().kind()};
    drafted_ = drafted_ || !kept.nodes.empty();
    check_shape(kept, budget);
    return kept;
  }
  void check_shape(const KeptDraft& draft, const DraftBudget& budget) {
    std::vector<std::size_t> depth(draft.nodes.size(), 0);
    std::vector<std::size_t> children(draft.nodes.size() + 1, 0);
    bool parents_first = true;
    bool ordered = true;
    for (std::size_t i = 0; i < draft.nodes.size(); ++i) {
      const NodeIndex parent = draft.nodes[i].parent;
      if (parent < anchor_parent || parent >= static_cast<NodeIndex>(i)) {
        parents_first = false;
        break;
      }
      depth[i] = 1 + (parent == anchor_parent ? 0 : depth[static_cast<std::size_t>(parent)]);
      ++children[parent == anchor_parent ? 0 : static_cast<std::size_t>(parent) + 1];
      ordered = ordered && (i == 0 || draft.kind == DraftKind::sampled ||
                            draft.nodes[i].path_probability <= draft.nodes[i - 1].path_probability);
    }
    expect(well_formed, parents_first, "a node comes before its parent: " + draft.to_string());
    expect(well_formed, ordered, "path probabilities rise in " + draft.to_string());
    if (!parents_first) return;
    const auto leaves = static_cast<std::size_t>(std::count(children.begin() + 1, children.end(), std::size_t{0}));
    const bool chain = std::all_of(children.begin(), children.end(), [](std::size_t n) { return n <= 1; });
    expect(in_budget, draft.nodes.size() <= budget.max_nodes, "more nodes than max_nodes: " + draft.to_string());
    expect(in_budget, std::all_of(depth.begin(), depth.end(), [&](std::size_t d) { return d <= budget.max_depth; }),
           "deeper than max_depth: " + draft.to_string());
    expect(in_budget, leaves <= budget.max_leaves, "more paths than max_leaves: " + draft.to_string());
    expect(in_budget, chain || budget.shape == DraftShape::tree,
           "a tree where a chain was asked for: " + draft.to_string());
  }

  /// One round as a loop drives it: `committed` tokens follow, of which the draft may have foreseen the first.
  KeptDraft round(Strategy& strategy, TokenSpan committed) {
    KeptDraft draft = propose(strategy, check_.budget);
    std::vector<NodeIndex> path;
    for (std::size_t i = 0; i < draft.nodes.size(); ++i)
      if (draft.nodes[i].parent == (path.empty() ? anchor_parent : path.back()))
        path.push_back(static_cast<NodeIndex>(i));
    std::size_t agreed = 0;
    while (agreed < path.size() && agreed + 1 < committed.size() &&
           draft.nodes[static_cast<std::size_t>(path[agreed])].token == committed[agreed])
      ++agreed;
    strategy.feedback(Outcome{
        DraftView(draft.nodes, draft.kind), path, std::span(path).first(agreed), committed.back(), Cut::none, {}});
    strategy.observe(committed, Origin::output);
    return draft;
  }
  Strategy fed(TokenSpan tokens) {
    Strategy strategy = make_();
    const std::size_t prompt = std::min(check_.prompt, tokens.size());
    strategy.begin(tokens.first(prompt));
    if (tokens.size() > prompt) strategy.observe(tokens.subspan(prompt), Origin::output);
    return strategy;
  }

  void one_run(std::size_t run) {
    const std::vector<Token> made = text(run);
    const TokenSpan all = made;
    const std::size_t prompt = std::min(check_.prompt, all.size());
    Strategy one = fed(all.first(prompt));
    Strategy twin = fed(all.first(prompt));
    std::vector<Token> other = text(run + 1);
    std::reverse(other.begin(), other.end());
    Strategy again = fed(other);  // has lived through another sequence
    again.begin(all.first(prompt));
    for (std::size_t at = prompt; at < all.size();) {
      const std::size_t n = std::min(all.size() - at, 1 + random_.below(4));
      expect_same(repeatable, propose(one, check_.budget), propose(one, check_.budget), at);
      if (random_.chance(30)) {
        DraftBudget small = check_.budget;
        small.max_nodes = random_.below(4);
        small.max_depth = random_.below(4);
        static_cast<void>(propose(one, small));
      }
      if (random_.chance(25)) fork(one, all, at);
      const KeptDraft draft = round(one, all.subspan(at, n));
      expect_same(pure, round(twin, all.subspan(at, n)), draft, at);
      expect_same(forgets, round(again, all.subspan(at, n)), draft, at, true);
      at += n;
      if (random_.chance(25)) truncate(all, at);
    }
  }
  /// A copy that goes astray does not touch the one it was taken from.
  void fork(Strategy& strategy, TokenSpan all, std::size_t at) {
    const KeptDraft before = propose(strategy, check_.budget);
    Strategy copy = strategy;
    expect_same(forks, propose(copy, check_.budget), before, at);
    const std::array<Token, 3> astray = {all[0], all[at - 1], -7};
    copy.observe(astray, Origin::output);
    expect_same(forks, propose(strategy, check_.budget), before, at);
    copy.truncate(at);
    expect_same(forks, propose(copy, check_.budget), before, at, true);
    Strategy second = strategy;
    copy = second;
    second.begin(astray);
    expect_same(forks, propose(copy, check_.budget), before, at);
  }
  /// One that has seen more and went back drafts what a fresh one drafts that never saw more. Neither has had feedback:
  /// what was learned from it may stay.
  void truncate(TokenSpan all, std::size_t at) {
    const std::size_t to = 1 + random_.below(at);
    Strategy cut = make_();
    cut.begin(all.first(at));
    static_cast<void>(propose(cut, check_.budget));
    cut.truncate(to);
    Strategy fresh = make_();
    fresh.begin(all.first(to));
    expect_same(truncates, propose(cut, check_.budget), propose(fresh, check_.budget), to, true);
    const TokenSpan more = all.subspan(to, std::min<std::size_t>(all.size() - to, 3));
    cut.observe(more, Origin::output);
    fresh.observe(more, Origin::output);
    expect_same(truncates, propose(cut, check_.budget), propose(fresh, check_.budget), to + more.size(), true);
  }

  Make& make_;
  StrategyCheck check_;
  Random random_;
  Report report_;
  bool drafted_ = false;
};

}  // namespace detail

/// Does a strategy keep S1 to S8, as far as they can be seen from outside? `make()` gives a fresh one each time, with
/// the same settings and the same seed. Where a strategy may have learned from feedback (S1, S6) only tokens and
/// parents of drafts are compared, else probabilities too. Cost: about runs x 100 rounds.
template <class Make>
Report check_strategy(Make&& make, const StrategyCheck& check = {}) {
  return detail::StrategyRuns<std::remove_reference_t<Make>>(make, check).run();
}

}  // namespace reprise::testing
