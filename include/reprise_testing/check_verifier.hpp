// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise_testing/detail/answers.hpp"
#include "reprise_testing/detail/probe_text.hpp"
#include "reprise_testing/detail/verifier_runs.hpp"
#include "reprise_testing/random.hpp"
#include "reprise_testing/report.hpp"

namespace reprise::testing {

namespace detail {

void check_several_pending(auto& runs) {
  runs.begin("V1", "several pending tokens");
  const std::size_t most = std::min<std::size_t>({runs.prompt_size(), runs.can().max_rows, 4});
  if (most < 2) return runs.skip("the prompt, or a pass, is too short for it");
  for (std::size_t pending = 2; pending <= most; ++pending) runs.attempt({{.right = 1, .wrong = 1}}, pending);
}

template <class Runs>
void check_truncate(Runs& runs) {
  runs.begin("V1", "truncate(), then the same again");
  if constexpr (!TruncatableVerifier<typename Runs::Engine>) {
    runs.skip("the verifier has no truncate()");
  } else if (runs.check().sampled) {
    runs.skip("truncate() does not restore the sampler");
  } else {
    const auto go_back = [&](auto& run, std::size_t to) {
      const std::size_t size = runs.prompt_size() + to;
      const std::size_t keep = std::min(size - 1, runs.prompt_size() + run.position - run.pending);
      const std::string call = "truncate(" + std::to_string(keep) + ')';
      if (!done([&] { return run.engine.truncate(keep); })) runs.report().note(call + " failed");
      run.trace.add(call);
      run.position = to;
      run.pending = size - keep;
    };
    const auto decode = [&] {
      auto run = runs.start();
      std::optional<Difference> difference;
      const auto go_on = [&](const Step& step) {
        while (!difference && run.position < runs.check().tokens) difference = runs.pass(run, step);
      };
      for (const std::size_t to : {std::size_t{0}, runs.check().tokens / 2}) {
        if (difference) break;
        run.trace = {};
        go_on({.right = 2, .wrong = 1});
        go_back(run, to);
        go_on({});
        go_back(run, 0);
      }
      return difference;
    };
    if (const auto difference = decode()) runs.judge(*difference, decode);
  }
}

/// Checks picks of passes without a draft, then V1 to V5 with chains, then several pending tokens and truncate().
template <class Runs>
void check_chains(Runs& runs) {
  const std::size_t k = runs.check().max_draft;
  const char* const rolls_back = runs.can().rollback == Rollback::snapshot ? "V10" : "V4";
  runs.begin("V2", "plain decoding again");
  runs.attempt({});
  runs.compare_row_counts();
  runs.begin("V2", "right drafts");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t) { return Step{n}; });
  runs.begin(rolls_back, "wrong drafts are rolled back");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t) { return Step{0, n}; });
  runs.begin(rolls_back, "half-right drafts");
  for (std::size_t n = 2; n <= k; ++n) runs.repeat([&](std::size_t) { return Step{n / 2, n - n / 2}; });
  runs.begin(rolls_back, "a pass without draft just after an accepting one");
  bool draft = false;
  for (const std::size_t wrong : {0U, 2U})
    runs.repeat([&](std::size_t) { return (draft = !draft) ? Step{std::max<std::size_t>(k / 2, 1), wrong} : Step{}; });
  runs.begin(rolls_back, "the first pick refused, nothing committed");
  if (runs.check().sampled)
    runs.skip("a sampler does not draw the refused pick again");
  else
    runs.repeat([](std::size_t p) { return Step{p % 3, p % 2}; }, &Step::refuse);
  runs.begin("V3", "part of the picks read, part of the draft kept");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t) { return Step{k, 0, n}; });
  runs.begin("V5", "a void pass, then the same again");
  runs.repeat([&](std::size_t p) { return Step{p % (k + 1), p % 3}; }, &Step::twice);
  runs.begin("V5", "a failed pass, then the same again");
  if constexpr (!Runs::can_fail)
    runs.skip(
        "no fail_next(verifier) was given: pass a function, after the settings, that makes the next verify() fail");
  else
    runs.repeat([](std::size_t p) { return Step{.right = p % 3, .wrong = 1, .fail = p % 2 == 0}; });
  check_several_pending(runs);
  check_truncate(runs);
}

/// Checks V10 (checkpoints).
void check_checkpoints(auto& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V10", "restored after a part of a draft was accepted");
  if (runs.can().rollback != Rollback::snapshot) return runs.skip("Capabilities::rollback is not snapshot");
  // Two plain passes follow each step, so that a wrong restore shows before the next one.
  for (std::size_t n = 2; n <= k; ++n) {
    std::size_t turn = 0;
    runs.repeat([&](std::size_t) { return turn++ % 3 == 0 ? Step{n / 2, n - n / 2} : Step{}; });
  }
  runs.begin("V10", "a pass without draft just after one that was restored");
  bool draft = false;
  for (std::size_t right = 0; right < k; ++right)
    runs.repeat([&](std::size_t) { return (draft = !draft) ? Step{right, 1} : Step{}; });
  runs.begin("V10", "restored again and again");
  for (const std::size_t right : {0U, 1U}) runs.repeat([&](std::size_t) { return Step{right, 1}; });
  runs.begin("V10", "saved and kept, then saved and restored");
  std::size_t turn = 0;
  runs.repeat([&](std::size_t) {
    const std::size_t third = turn++ % 3;
    return Step{.right = third == 0 ? 0 : k / 2, .wrong = third == 2 ? 2U : 0U, .save = third == 0};
  });
  runs.begin("V10", "a void pass after a restore");
  runs.repeat([](std::size_t p) { return Step{.right = p % 2, .wrong = 1, .twice = p % 2 == 0}; });
}

/// Checks V6 with trees that are run, read and dropped.
void check_dropped_trees(auto& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V6", "the right path among wrong siblings");
  for (std::size_t siblings = 1; siblings <= 2; ++siblings)
    for (std::size_t order = 0; order <= 1; ++order)
      runs.repeat([&](std::size_t p) { return tree_step(1 + p % k, siblings, p % 3, order); }, &Step::drop);
  runs.begin("V6", "the same trees with their rows in other orders");
  for (std::size_t order = 2; order <= 5; ++order)
    runs.repeat([&](std::size_t p) { return tree_step(1 + p % k, 2, p % 3, order + 7 * p); }, &Step::drop);
  runs.begin("V6", "deep and wide trees");
  runs.repeat([&](std::size_t) { return tree_step(2 * k, 1, 2 * k, 1); }, &Step::drop);
  runs.repeat([&](std::size_t) { return tree_step(1, 8, 1, 1); }, &Step::drop);
}
/// Checks V8 and V5 with trees from which a path is kept.
void check_kept_paths(auto& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V8", "a path in the middle of a tree is kept");
  for (std::size_t order = 0; order <= 3; ++order)
    runs.repeat([&](std::size_t p) { return tree_step(1 + p % k, 2, p % 3, order); });
  runs.begin("V8", "a part of the path is kept");
  for (std::size_t n = 1; n <= k; ++n)
    runs.repeat([&](std::size_t p) {
      Step step = tree_step(k, 1, 1, 1 + p % 2);
      step.take = n;
      return step;
    });
  runs.begin("V8", "a pass without draft just after a tree");
  bool draft = false;
  runs.repeat([&](std::size_t p) { return (draft = !draft) ? tree_step(p % (k + 1), 2, 1, 1) : Step{}; });
  runs.begin("V5", "a void tree, then the same again");
  runs.repeat([&](std::size_t p) { return tree_step(p % (k + 1), 1, 1, 1); }, &Step::twice);
}
/// Checks V6 to V8 (trees).
void check_trees(auto& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V7", "chains by way of the tree functions");
  if (runs.can().max_leaves <= 1) return runs.skip("Capabilities::max_leaves is 1: no tree is ever sent");
  for (const std::size_t wrong : {0U, 2U})
    runs.repeat([&](std::size_t p) { return Step{p % (k + 1), wrong}; }, &Step::tree);
  check_dropped_trees(runs);
  check_kept_paths(runs);
  runs.begin("V6-V8", "trees and chains mixed");
  Random random(runs.check().seed + 1);
  for (std::size_t i = 0; i < runs.check().mixed_runs; ++i)
    runs.repeat([&](std::size_t) {
      Step step = tree_step(random.below(k + 1), random.below(4), random.below(4), random.below(100));
      if (random.chance(30)) step.wrong = random.below(3);
      if (random.chance(20)) step.take = 1 + random.below(k + 1);
      step.twice = random.chance(10);
      step.tree = step.siblings > 0 || random.chance(50);
      return step;
    });
}

/// Checks V13 (walks).
template <class Runs>
void check_walks(Runs& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V13", "walks of right, wrong and half-right chains");
  for (std::size_t right = 0; right <= k; ++right)
    runs.repeat([&](std::size_t p) { return Step{right, p % 3}; }, &Step::walk);
  runs.begin("V13", "walks of trees");
  if (!runs.sends_trees()) runs.skip("no tree is ever sent");
  for (std::uint64_t order = 0; order <= 3 && runs.sends_trees(); ++order)
    runs.repeat([&](std::size_t p) { return tree_step(p % (k + 1), 2, p % 3, order); }, &Step::walk);
  runs.begin("V13", "a stop inside the path that was walked");
  if (runs.check().sampled) runs.skip("a sampler may have drawn for the whole path");
  for (std::size_t n = 1; n <= k && !runs.check().sampled; ++n)
    runs.repeat([&](std::size_t) { return Step{k, 0, n}; }, &Step::walk);
  runs.begin("V13", "a void walk, then the same again");
  runs.repeat([&](std::size_t p) { return Step{.right = p % (k + 1), .wrong = 1, .twice = true}; }, &Step::walk);
}

/// Checks V11 (candidates). Candidates need not be exact, so they break the clause only if most first candidates after
/// drafted rows differ from those of plain passes.
void check_ranks(auto& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V11", "asking for candidates changes nothing");
  runs.repeat([](std::size_t) { return Step{}; }, &Step::reveal);
  runs.repeat([&](std::size_t p) { return Step{p % (k + 1), p % 3}; }, &Step::reveal);
  runs.begin("V11", "candidates are those of their row");
  runs.repeat([&](std::size_t) { return Step{k}; }, &Step::reveal);
  const RankCounts& counts = runs.ranks();
  if (counts.known == 0) return runs.skip("top_k() returned no candidates");
  if (2 * counts.changed > counts.known)
    runs.report().note("the first candidate after a drafted row is mostly another one than without the draft: " +
                       std::to_string(counts.changed) + " of " + std::to_string(counts.known) + " times");
  if (runs.finding().message.empty())
    runs.finding().message = "the first candidate was the pick " + std::to_string(counts.picked) + " of " +
                             std::to_string(counts.asked) + " times";
}

/// Checks V12 (distributions).
void check_distributions(auto& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V12", "weights add up to one");
  runs.repeat([](std::size_t) { return Step{}; }, &Step::weigh);
  runs.begin("V12", "the same distributions with a draft");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t p) { return Step{n, p % 3}; }, &Step::weigh);
  if (runs.sends_trees()) runs.repeat([&](std::size_t p) { return tree_step(1 + p % k, 1, 1, 1); }, &Step::weigh);
  runs.begin("V12", "random numbers lie in [0, 1)");
  auto run = runs.start();
  double least = 1;
  double most = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    const auto number = static_cast<double>(run.engine.uniform());
    if (!(number >= 0 && number < 1)) return runs.report().note("uniform() gave " + std::to_string(number));
    least = std::min(least, number);
    most = std::max(most, number);
  }
  runs.finding().checks += 1000;
  // For 1000 independent numbers the probability of this is below 1e-45.
  if (least > 0.1 || most < 0.9)
    runs.report().note("1000 numbers lie between " + std::to_string(least) + " and " + std::to_string(most));
}

/// Checks V14 (constraints).
void check_constraints(auto& runs) {
  const std::size_t k = runs.check().max_draft;
  runs.begin("V14", "tokens that plain decoding picks are allowed");
  for (const std::size_t right : {std::size_t{0}, k}) runs.repeat([&](std::size_t) { return Step{right}; }, &Step::ask);
  runs.begin("V14", "also after passes with rejected tokens");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t) { return Step{n / 2, n - n / 2}; }, &Step::ask);
}

template <class Runs>
void check_mixed(Runs& runs) {
  using Engine = typename Runs::Engine;
  const std::size_t k = runs.check().max_draft;
  runs.begin("V1-V5", "everything mixed");
  Random random(runs.check().seed);
  for (std::size_t i = 0; i < runs.check().mixed_runs; ++i)
    runs.repeat([&](std::size_t) {
      Step step{random.below(k + 1), random.below(k + 1)};
      if (random.chance(20)) step.take = 1 + random.below(k + 1);
      step.twice = random.chance(20);
      step.drop = random.chance(5);
      step.ask = ConstrainedVerifier<Engine> && random.chance(20);
      step.reveal = TopKVerifier<Engine> && random.chance(20);
      return step;
    });
}

/// Runs all checks. The report has no finding for a refinement that the engine does not model.
template <class Runs>
void check_all(Runs& runs) {
  using Engine = typename Runs::Engine;
  if (!runs.decode_plainly()) return;
  const Rollback rollback = runs.can().rollback;
  if (rollback == Rollback::none || (rollback == Rollback::snapshot && !CheckpointVerifier<Engine>)) {
    runs.begin("V10", "rows can be given back");
    return runs.report().note(
        rollback == Rollback::none
            ? "Capabilities::rollback is none: no draft can be tried, and no session begins with it"
            : "Capabilities::rollback is snapshot, but there is no snapshot() and restore(committed)");
  }
  check_chains(runs);
  if constexpr (CheckpointVerifier<Engine>) check_checkpoints(runs);
  if constexpr (TreeVerifier<Engine>) check_trees(runs);
  if constexpr (SelfWalkingVerifier<Engine>) check_walks(runs);
  if constexpr (TopKVerifier<Engine>) check_ranks(runs);
  if constexpr (DistributionVerifier<Engine>) check_distributions(runs);
  if constexpr (ConstrainedVerifier<Engine>) check_constraints(runs);
  check_mixed(runs);
}

}  // namespace detail

/// Checks that a verifier gives the same tokens however it is run. Decodes `check.tokens` tokens one by one, then the
/// same text in many other ways, and compares each pick. Drafts are right, wrong or half-right; passes are run twice,
/// read in part or made to fail. Also tries these refinements, if the verifier models them: truncate(), trees (V6-V8),
/// checkpoints (V10), candidates (V11), distributions (V12), its own walk (V13), and constraints (V14). Each finding of
/// the report names its clause. It shows the first of its worst differences, with a run that reproduces it, shortened
/// where possible. For engines that pack sequences, see check_batch().
///
/// `make(prompt)` returns a fresh verifier, by value, prefilled with all but the last token of `prompt`; a sampler
/// starts from the same state each time. `fail_next(verifier)` is optional and makes the next verify() fail. The prompt
/// must have at least one token; the check of several pending tokens needs two and uses up to four. Use a real prompt
/// of at least 64 tokens: kernels that depend on the number of rows often agree in shorter contexts. Prompt and output
/// together should have at least three different tokens, because wrong drafts are made of them. If there is nothing to
/// decode, the report is empty. Decoding continues past stop tokens. Passes stay within the engine's capabilities.
///
/// Cost: about (20 + mixed_runs) x tokens passes, or three times as many with all refinements. Each difference costs up
/// to `tokens` further runs.
template <class Make, class Fail = std::nullptr_t>
Report check_verifier(Make&& make, TokenSpan prompt, const VerifierCheck& check = {}, Fail&& fail_next = nullptr) {
  if (prompt.empty()) return {};
  detail::VerifierRuns<std::remove_reference_t<Make>, std::remove_reference_t<Fail>> runs(make, prompt, check,
                                                                                          fail_next);
  detail::check_all(runs);
  return std::move(runs.report());
}

}  // namespace reprise::testing
