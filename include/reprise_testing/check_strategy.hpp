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
#include "reprise_testing/detail/lent_copy.hpp"
#include "reprise_testing/random.hpp"
#include "reprise_testing/report.hpp"

namespace reprise::testing {

/// The settings of check_strategy().
struct StrategyCheck {
  std::vector<Token> text = {};  ///< the committed tokens; empty: a repetitive text made from the seed
  std::size_t prompt = 16;       ///< leading tokens of `text` that begin() receives; 0 counts as 1
  std::size_t runs = 16;
  DraftBudget budget = {};
  bool expect_drafts = true;  ///< report a strategy that never drafts as skipped, not as exact
  /// Returns the number of allocations of this program so far, from a counting operator new. If it is not set, S3 is
  /// checked for malformed nodes only.
  std::function<std::size_t()> allocations = {};
  std::uint64_t seed = 1;
};

namespace detail {

/// A copy of a draft that outlives the call of propose().
struct KeptDraft {
  std::vector<DraftNode> nodes;
  DraftKind kind = DraftKind::ordered;

  /// Returns true if both propose the same tokens with the same parents and, unless `tokens_only`, with the same
  /// probabilities. With `tokens_only`, two sampled drafts need not have the same tokens (S10).
  [[nodiscard]] bool same(const KeptDraft& other, bool tokens_only) const {
    const bool sampled = kind == DraftKind::sampled && other.kind == DraftKind::sampled;
    if (tokens_only && sampled) return nodes.empty() == other.nodes.empty();
    const auto equal = [&](const DraftNode& x, const DraftNode& y) {
      const bool rest = x.path_probability == y.path_probability && x.auxiliary == y.auxiliary;
      return x.token == y.token && x.parent == y.parent && (tokens_only || rest);
    };
    return (tokens_only || kind == other.kind) &&
           std::equal(nodes.begin(), nodes.end(), other.nodes.begin(), other.nodes.end(), equal);
  }
  [[nodiscard]] std::string to_string() const {
    std::string text = "[";
    for (const DraftNode& node : nodes) {
      if (text.size() > 1) text += ' ';
      text += std::to_string(node.token) + '<' + std::to_string(node.parent);
    }
    return text + ']';
  }
};

template <class Make>
class StrategyRuns {
  using Strategy = std::remove_cvref_t<std::invoke_result_t<Make&>>;
  static_assert(DraftStrategy<Strategy>, "make() has to give a strategy");

 public:
  StrategyRuns(Make& make, const StrategyCheck& check) : make_(make), check_(check), random_(check.seed) {}

  Report run() {
    for (const auto& [clause, what] : clauses) report_.begin(clause, what);
    for (std::size_t i = 0; i < check_.runs; ++i) one_run(i);
    if (!check_.allocations) skip(no_allocation, "no counter of allocations was given");
    if (check_.expect_drafts && !drafted_)
      for (std::size_t i = 0; i < report_.findings.size(); ++i)
        skip(i, "nothing was ever drafted: set StrategyCheck::text to a text that the strategy can draft from");
    if (has_drawn_)
      expect(draws_anew, has_drawn_anew_ || repeats_ > 1e-9, "a round drew the tokens of an earlier round each time");
    else
      report_.findings.pop_back();
    if constexpr (!RebasableStrategy<Strategy>) report_.findings.erase(report_.findings.begin() + rebases);
    return std::move(report_);
  }

 private:
  enum Clause : std::size_t {
    forgets,
    well_formed,
    no_allocation,
    repeatable,
    truncates,
    forks,
    pure,
    no_span,
    rebases,
    draws_anew
  };
  static constexpr std::array<std::pair<const char*, const char*>, 10> clauses = {{
      {"S1", "begin() forgets the sequence before"},
      {"S3", "no malformed node is pushed"},
      {"S3", "propose() does not allocate"},
      {"S4", "asked twice, the same draft"},
      {"S6", "truncate() is as if no more had been committed"},
      {"S7", "a copy goes on independently"},
      {"S8", "the same calls, the same drafts"},
      {"S8", "no span of the context is kept"},
      {"S9", "rebase() to the same context changes nothing"},
      {"S10", "a round does not use the random numbers of an earlier one"},
  }};

  void skip(std::size_t clause, const char* why) {
    if (report_.findings[clause].verdict == Verdict::wrong) return;
    report_.findings[clause].verdict = Verdict::skipped;
    report_.findings[clause].message = why;
  }
  void expect(Clause clause, bool holds, const std::string& otherwise) {
    Report::Finding& finding = report_.findings[clause];
    ++finding.checks;
    if (holds || finding.verdict == Verdict::wrong) return;
    finding.verdict = Verdict::wrong;
    finding.message = otherwise;
  }
  void expect_same(Clause clause, const KeptDraft& got, const KeptDraft& wanted, std::size_t at,
                   bool tokens_only = false) {
    const bool redrawn = clause == rebases && got.kind == DraftKind::sampled;
    expect(clause, got.same(wanted, tokens_only || redrawn),
           "after " + std::to_string(at) + " tokens: " + got.to_string() + " where " + wanted.to_string() +
               " was expected (token<parent)");
  }

  std::vector<Token> text(std::size_t run) {
    if (!check_.text.empty()) return check_.text;
    std::vector<Token> made;
    const std::size_t vocabulary = 2 + run % 5;
    while (made.size() < check_.prompt + 80) {
      // Lookups can draft from copies of earlier passages, each followed by a random token.
      const std::size_t from = random_.below(made.size() + 1);
      const std::size_t end = std::min(made.size(), from + random_.below(12));
      for (std::size_t i = from; i < end; ++i) made.push_back(Token{made[i]});
      made.push_back(static_cast<Token>(random_.below(vocabulary)));
    }
    return made;
  }

  /// A strategy and the context that each call lends to it.
  struct Lent {
    Strategy strategy;
    std::vector<Token> context = {};
    bool moves = true;  ///< true: each call receives a copy, which is overwritten after the call
  };
  /// Calls `call(context)` with the context of `to`, or with a copy of it.
  template <class Call>
  void lend(const Lent& to, Call&& call) {
    if (to.moves)
      lender_.lend(to.context, call);
    else
      call(TokenSpan(to.context));
  }
  void begin(Lent& to, TokenSpan context) {
    to.context.assign(context.begin(), context.end());
    lend(to, [&](TokenSpan lent) { to.strategy.begin(lent); });
  }
  void observe(Lent& to, TokenSpan fresh) {
    to.context.insert(to.context.end(), fresh.begin(), fresh.end());
    lend(to, [&](TokenSpan lent) { to.strategy.observe(lent, fresh.size(), Origin::output); });
  }
  void truncate(Lent& to, std::size_t size) {
    lend(to, [&](TokenSpan lent) { to.strategy.truncate(lent, size); });
    to.context.resize(size);
  }
  KeptDraft propose(Lent& from, const DraftBudget& budget) {
    std::vector<DraftNode> storage(std::min<std::size_t>(budget.max_nodes, 4096));
    Draft draft(storage, budget);
    std::size_t allocated = 0;
    lend(from, [&](TokenSpan lent) {
      const std::size_t before = check_.allocations ? check_.allocations() : 0;
      from.strategy.propose(lent, draft);
      allocated = (check_.allocations ? check_.allocations() : 0) - before;
    });
    expect(no_allocation, allocated == 0, std::to_string(allocated) + " allocations in one propose()");
    KeptDraft kept{{draft.view().begin(), draft.view().end()}, draft.view().kind()};
    expect(well_formed, !draft.malformed(),
           "after " + std::to_string(from.context.size()) +
               " tokens: a node was refused for its parent, its order or because it repeats another; the nodes that "
               "were taken are " +
               kept.to_string() + " (token<parent)");
    drafted_ = drafted_ || !kept.nodes.empty();
    return kept;
  }

  /// Runs one round as the loop does, and returns its draft. Accepts the first path of the draft as far as it agrees
  /// with `committed`. The last committed token is the bonus token.
  KeptDraft round(Lent& with, TokenSpan committed) {
    KeptDraft draft = propose(with, check_.budget);
    std::vector<NodeIndex> path;
    for (std::size_t i = 0; i < draft.nodes.size(); ++i)
      if (draft.nodes[i].parent == (path.empty() ? anchor_parent : path.back()))
        path.push_back(static_cast<NodeIndex>(i));
    std::size_t agreed = 0;
    while (agreed < path.size() && agreed + 1 < committed.size() &&
           draft.nodes[static_cast<std::size_t>(path[agreed])].token == committed[agreed])
      ++agreed;
    const Outcome outcome{
        DraftView(draft.nodes, draft.kind), path, std::span(path).first(agreed), committed.back(), Cut::none, {}};
    lend(with, [&](TokenSpan lent) { with.strategy.feedback(lent, outcome); });
    observe(with, committed);
    return draft;
  }
  Lent fed(TokenSpan tokens, bool moves = true) {
    Lent made{make_(), {}, moves};
    made.context.reserve(longest_);
    const std::size_t prompt = std::clamp<std::size_t>(check_.prompt, 1, tokens.size());
    begin(made, tokens.first(prompt));
    if (tokens.size() > prompt) observe(made, tokens.subspan(prompt));
    return made;
  }

  void one_run(std::size_t run) {
    const std::vector<Token> made = text(run);
    const TokenSpan all = made;
    std::vector<Token> other = text(run + 1);
    std::reverse(other.begin(), other.end());
    longest_ = std::max(all.size(), other.size()) + 8;
    lender_ = LentCopy(longest_);
    const std::size_t prompt = std::clamp<std::size_t>(check_.prompt, 1, all.size());
    Lent one = fed(all.first(prompt));
    Lent twin = fed(all.first(prompt));
    Lent steady = fed(all.first(prompt), false);
    Lent again = fed(other);  // has decoded a different sequence before
    if constexpr (RebasableStrategy<Strategy>) leave_by_rebase(again, all);
    begin(again, all.first(prompt));
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
      if constexpr (DistributionStrategy<Strategy>) draw_again(one, all[at]);
      const KeptDraft draft = round(one, all.subspan(at, n));
      expect_same(pure, round(twin, all.subspan(at, n)), draft, at);
      expect_same(no_span, draft, round(steady, all.subspan(at, n)), at);
      expect_same(forgets, round(again, all.subspan(at, n)), draft, at, true);
      at += n;
      if (random_.chance(25)) go_back(all, at);
      if constexpr (RebasableStrategy<Strategy>)
        if (random_.chance(25)) rebase_in_place(one, all.subspan(at));
    }
  }
  /// Draws again after a round whose token is removed. The chance that all such draws repeat the first token is known
  /// from the distributions.
  void draw_again(Lent with, Token token) {
    const KeptDraft before = propose(with, check_.budget);
    if (before.kind != DraftKind::sampled || before.nodes.empty()) return;
    const std::span<const float> drawn_from = with.strategy.distribution(0);
    double repeat = 0;
    for (const float weight : drawn_from) repeat += static_cast<double>(weight) * static_cast<double>(weight);
    static_cast<void>(round(with, {&token, 1}));
    truncate(with, with.context.size() - 1);
    const KeptDraft after = propose(with, check_.budget);
    if (drawn_from.empty() || after.nodes.empty()) return;
    has_drawn_ = true;
    repeats_ *= repeat;
    has_drawn_anew_ = has_drawn_anew_ || after.nodes[0].token != before.nodes[0].token;
  }
  /// Checks that an original and its copies do not affect each other.
  void fork(Lent& from, TokenSpan all, std::size_t at) {
    const KeptDraft before = propose(from, check_.budget);
    Lent copy = from;
    expect_same(forks, propose(copy, check_.budget), before, at);
    const std::array<Token, 3> astray = {all[0], all[at - 1], -7};
    observe(copy, astray);
    expect_same(forks, propose(from, check_.budget), before, at);
    truncate(copy, at);
    expect_same(forks, propose(copy, check_.budget), before, at, true);
    Lent second = from;
    copy = second;
    begin(second, astray);
    expect_same(forks, propose(copy, check_.budget), before, at);
  }
  /// Checks that a truncated strategy drafts like a fresh one that saw only the remaining tokens. Neither strategy
  /// receives feedback, because knowledge from feedback may survive truncate().
  void go_back(TokenSpan all, std::size_t at) {
    const std::size_t to = 1 + random_.below(at);
    Lent cut{make_()};
    begin(cut, all.first(at));
    static_cast<void>(propose(cut, check_.budget));
    truncate(cut, to);
    Lent fresh{make_()};
    begin(fresh, all.first(to));
    expect_same(truncates, propose(cut, check_.budget), propose(fresh, check_.budget), to, true);
    const TokenSpan more = all.subspan(to, std::min<std::size_t>(all.size() - to, 3));
    observe(cut, more);
    observe(fresh, more);
    expect_same(truncates, propose(cut, check_.budget), propose(fresh, check_.budget), to + more.size(), true);
  }
  void rebase(Lent& to, TokenSpan context) {
    const std::vector<Token> before = std::exchange(to.context, {context.begin(), context.end()});
    // Both spans must move, so a second lender lends `before`.
    LentCopy second(before.size());
    second.lend(before, [&](TokenSpan old) { lend(to, [&](TokenSpan lent) { to.strategy.rebase(old, lent); }); });
  }
  /// Checks that a copy rebased to its own context drafts like the original, before and after further tokens.
  void rebase_in_place(Lent& from, TokenSpan more) {
    const std::size_t at = from.context.size();
    Lent same = from;
    Lent copy = from;
    rebase(copy, from.context);
    expect_same(rebases, propose(copy, check_.budget), propose(same, check_.budget), at);
    more = more.first(std::min<std::size_t>(more.size(), 3));
    if (more.empty()) return;
    observe(copy, more);
    observe(same, more);
    expect_same(rebases, propose(copy, check_.budget), propose(same, check_.budget), at + more.size());
  }
  /// Rebases to a different context, truncates it and adds a token. begin() must forget that context too.
  void leave_by_rebase(Lent& with, TokenSpan all) {
    rebase(with, all.subspan(all.size() / 3));
    const std::size_t size = with.context.size();
    truncate(with, size - size / 2);
    observe(with, all.last(1));
    expect_same(repeatable, propose(with, check_.budget), propose(with, check_.budget), with.context.size());
  }

  Make& make_;
  StrategyCheck check_;
  Random random_;
  Report report_;
  LentCopy lender_;
  std::size_t longest_ = 0;  // upper bound on the tokens of a context in this run
  bool drafted_ = false;
  bool has_drawn_ = false;
  bool has_drawn_anew_ = false;
  double repeats_ = 1;  // the chance of drawing each token again
};

}  // namespace detail

/// Checks clauses S1, S3, S4 and S6 to S10 as far as a caller can observe them; S2 and S5 bind the caller. S9 is
/// checked only for a RebasableStrategy, and S10 for the sampled drafts of a DistributionStrategy. `make()` returns a
/// fresh strategy each time, with the same settings and the same seed. Where knowledge from feedback may remain (S1,
/// S6, and S7 after truncate()), the check compares only the tokens and parents of drafts. Elsewhere, it also compares
/// probabilities. Each call lends the context at a different address from the previous call, and overwrites the lent
/// tokens afterwards. Only one strategy, for comparison, keeps its context in place. Budgets need no check, because the
/// draft refuses nodes that exceed them. Cost: about runs x 100 rounds with the default text.
template <class Make>
Report check_strategy(Make&& make, const StrategyCheck& check = {}) {
  return detail::StrategyRuns<std::remove_reference_t<Make>>(make, check).run();
}

}  // namespace reprise::testing
