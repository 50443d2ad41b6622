// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/testing/detail/verifier_runs.hpp"
#include "reprise/testing/random.hpp"
#include "reprise/testing/report.hpp"

/// \file The checks of check_verifier() for the clauses after V5, one refinement at a time. The report has no finding
/// for a refinement that the engine does not model.
namespace reprise::testing::detail {

/// Returns a step with a tree: `right` right tokens, each with `siblings` wrong siblings.
inline Step tree_step(std::size_t p, std::size_t right, std::size_t siblings, std::size_t tail, std::uint64_t order) {
  Step step;
  step.position = p;
  step.right = right;
  step.siblings = siblings;
  step.tail = tail;
  step.order = order;
  step.tree = true;
  return step;
}

/// Returns the step with `drop` set, so that a difference can only come from its pass.
inline Step dropped(Step step) {
  step.drop = true;
  return step;
}

/// Checks V6 with trees that are run, read and dropped.
template <class Runs>
void check_dropped_trees(Runs& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V6", "the right path among wrong siblings");
  for (std::size_t siblings = 1; siblings <= 2; ++siblings)
    for (std::size_t order = 0; order <= 1; ++order)
      runs.repeat([&](std::size_t p) { return dropped(tree_step(p, 1 + p % k, siblings, p % 3, order)); });
  runs.begin("V6", "the same trees with their rows in other orders");
  for (std::size_t order = 2; order <= 5; ++order)
    runs.repeat([&](std::size_t p) { return dropped(tree_step(p, 1 + p % k, 2, p % 3, order + 7 * p)); });
  runs.begin("V6", "deep and wide trees");
  runs.repeat([&](std::size_t p) { return dropped(tree_step(p, 2 * k, 1, 2 * k, 1)); });
  runs.repeat([&](std::size_t p) { return dropped(tree_step(p, 1, 8, 1, 1)); });
}
/// Checks V8 and V5 with trees from which a path is kept.
template <class Runs>
void check_kept_paths(Runs& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V8", "a path in the middle of a tree is kept");
  for (std::size_t order = 0; order <= 3; ++order)
    runs.repeat([&](std::size_t p) { return tree_step(p, 1 + p % k, 2, p % 3, order); });
  runs.begin("V8", "a part of the path is kept");
  for (std::size_t n = 1; n <= k; ++n)
    runs.repeat([&](std::size_t p) {
      Step step = tree_step(p, k, 1, 1, 1 + p % 2);
      step.take = n;
      return step;
    });
  runs.begin("V8", "a pass without draft just after a tree");
  bool draft = false;
  runs.repeat([&](std::size_t p) { return (draft = !draft) ? tree_step(p, p % (k + 1), 2, 1, 1) : Step{p}; });
  runs.begin("V5", "a void tree, then the same again");
  runs.repeat([&](std::size_t p) {
    Step step = tree_step(p, p % (k + 1), 1, 1, 1);
    step.twice = true;
    return step;
  });
}
/// Checks V6 to V8 (trees).
template <class Runs>
void check_trees(Runs& runs, const Capabilities& can) {
  if constexpr (TreeVerifier<typename Runs::Engine>) {
    const std::size_t k = runs.check().max_draft;
    runs.begin("V7", "chains by way of the tree functions");
    if (can.max_leaves <= 1) return runs.skip("Capabilities::max_leaves is 1: no tree is ever sent");
    for (const std::size_t wrong : {std::size_t{0}, std::size_t{2}})
      runs.repeat([&](std::size_t p) {
        Step step{p, p % (k + 1), wrong};
        step.tree = true;
        return step;
      });
    check_dropped_trees(runs);
    check_kept_paths(runs);
    runs.begin("V6-V8", "trees and chains mixed");
    Random random(runs.check().seed + 1);
    for (std::size_t i = 0; i < runs.check().mixed_runs; ++i)
      runs.repeat([&](std::size_t p) {
        Step step = tree_step(p, random.below(k + 1), random.below(4), random.below(4), random.below(100));
        if (random.chance(30)) step.wrong = random.below(3);
        if (random.chance(20)) step.take = 1 + random.below(k + 1);
        step.twice = random.chance(10);
        step.tree = step.siblings > 0 || random.chance(50);
        return step;
      });
  }
}

/// Checks V10 (checkpoints).
template <class Runs>
void check_checkpoints(Runs& runs, const Capabilities& can) {
  if constexpr (CheckpointVerifier<typename Runs::Engine>) {
    const std::size_t k = runs.check().max_draft;
    runs.begin("V10", "restored after a part of a draft was accepted");
    if (can.rollback != Rollback::snapshot) return runs.skip("Capabilities::rollback is not snapshot");
    // Two plain passes follow each step, so that a wrong restore shows before the next one.
    for (std::size_t n = 2; n <= k; ++n) {
      std::size_t turn = 0;
      runs.repeat([&](std::size_t p) { return turn++ % 3 == 0 ? Step{p, n / 2, n - n / 2} : Step{p}; });
    }
    runs.begin("V10", "a pass without draft just after one that was restored");
    bool draft = false;
    for (std::size_t right = 0; right < k; ++right)
      runs.repeat([&](std::size_t p) { return (draft = !draft) ? Step{p, right, 1} : Step{p}; });
    runs.begin("V10", "restored again and again");
    for (const std::size_t right : {0U, 1U}) runs.repeat([&](std::size_t p) { return Step{p, right, 1}; });
    runs.begin("V10", "saved and kept, then saved and restored");
    std::size_t turn = 0;
    runs.repeat([&](std::size_t p) {
      Step step{p, turn % 3 == 0 ? 0 : k / 2, turn % 3 == 2 ? std::size_t{2} : 0};
      step.save = turn++ % 3 == 0;
      return step;
    });
    runs.begin("V10", "a void pass after a restore");
    runs.repeat([&](std::size_t p) { return Step{p, p % 2, 1, unlimited, p % 2 == 0}; });
  }
}

/// Checks V13 (walks).
template <class Runs>
void check_walks(Runs& runs, const Capabilities& can) {
  if constexpr (SelfWalkingVerifier<typename Runs::Engine>) {
    const std::size_t k = runs.check().max_draft;
    const bool trees = TreeVerifier<typename Runs::Engine> && can.max_leaves > 1;
    const auto walked = [&](Step step) {
      step.walk = true;
      step.tree = trees;
      return step;
    };
    runs.begin("V13", "walks of right, wrong and half-right chains");
    for (std::size_t right = 0; right <= k; ++right)
      runs.repeat([&](std::size_t p) { return walked(Step{p, right, p % 3}); });
    runs.begin("V13", "walks of trees");
    if (trees)
      for (std::uint64_t order = 0; order <= 3; ++order)
        runs.repeat([&](std::size_t p) { return walked(tree_step(p, p % (k + 1), 2, p % 3, order)); });
    else
      runs.skip("no tree is ever sent");
    runs.begin("V13", "a stop inside the path that was walked");
    if (runs.check().sampled)
      runs.skip("a sampler may have drawn for the whole path");
    else
      for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t p) { return walked(Step{p, k, 0, n}); });
    runs.begin("V13", "a void walk, then the same again");
    runs.repeat([&](std::size_t p) { return walked(Step{p, p % (k + 1), 1, unlimited, true}); });
  }
}

/// Checks V11 (candidates). Candidates need not be exact, so they break the clause only if most first candidates after
/// drafted rows differ from those of plain passes.
template <class Runs>
void check_ranks(Runs& runs) {
  if constexpr (TopKVerifier<typename Runs::Engine>) {
    const std::size_t k = runs.check().max_draft;
    const auto revealed = [](Step step) {
      step.reveal = true;
      return step;
    };
    runs.begin("V11", "asking for candidates changes nothing");
    runs.repeat([&](std::size_t p) { return revealed(Step{p}); });
    runs.repeat([&](std::size_t p) { return revealed(Step{p, p % (k + 1), p % 3}); });
    runs.begin("V11", "candidates are those of their row");
    runs.repeat([&](std::size_t p) { return revealed(Step{p, k}); });
    const RankCounts& counts = runs.probe().ranks();
    if (counts.known == 0) return runs.skip("top_k() returned no candidates");
    if (2 * counts.changed > counts.known)
      runs.note({"the first candidate after a drafted row is mostly another one than without the draft: " +
                 std::to_string(counts.changed) + " of " + std::to_string(counts.known) + " times"});
    runs.inform("the first candidate was the pick " + std::to_string(counts.picked) + " of " +
                std::to_string(counts.asked) + " times");
  }
}

/// Checks V12 (distributions).
template <class Runs>
void check_distributions(Runs& runs, const Capabilities& can) {
  if constexpr (DistributionVerifier<typename Runs::Engine>) {
    const std::size_t k = runs.check().max_draft;
    const auto weighed = [](Step step) {
      step.weigh = true;
      return step;
    };
    runs.begin("V12", "weights add up to one");
    runs.repeat([&](std::size_t p) { return weighed(Step{p}); });
    runs.begin("V12", "the same distributions with a draft");
    for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t p) { return weighed(Step{p, n, p % 3}); });
    if constexpr (TreeVerifier<typename Runs::Engine>)
      if (can.max_leaves > 1) runs.repeat([&](std::size_t p) { return weighed(tree_step(p, 1 + p % k, 1, 1, 1)); });
    runs.begin("V12", "random numbers lie in [0, 1)");
    auto engine = runs.make(runs.prompt());
    double least = 1;
    double most = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      const auto number = static_cast<double>(engine.uniform());
      if (!(number >= 0 && number < 1)) return runs.note({"uniform() gave " + std::to_string(number)});
      least = std::min(least, number);
      most = std::max(most, number);
    }
    runs.count_checks(1000);
    // For 1000 independent numbers the probability of this is below 1e-45.
    if (least > 0.1 || most < 0.9)
      runs.note({"1000 numbers lie between " + std::to_string(least) + " and " + std::to_string(most)});
  }
}

/// Checks V14 (constraints).
template <class Runs>
void check_constraints(Runs& runs) {
  if constexpr (ConstrainedVerifier<typename Runs::Engine>) {
    const std::size_t k = runs.check().max_draft;
    const auto asked = [](Step step) {
      step.ask = true;
      return step;
    };
    runs.begin("V14", "tokens that plain decoding picks are allowed");
    for (const std::size_t right : {std::size_t{0}, k})
      runs.repeat([&](std::size_t p) { return asked(Step{p, right}); });
    runs.begin("V14", "also after passes with rejected tokens");
    for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t p) { return asked(Step{p, n / 2, n - n / 2}); });
  }
}

}  // namespace reprise::testing::detail
