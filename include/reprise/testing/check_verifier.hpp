// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/testing/detail/answers.hpp"
#include "reprise/testing/detail/check_refinements.hpp"
#include "reprise/testing/detail/verifier_runs.hpp"
#include "reprise/testing/random.hpp"
#include "reprise/testing/report.hpp"

namespace reprise::testing {

namespace detail {

template <class Runs>
void check_several_pending(Runs& runs) {
  runs.begin("V1", "several pending tokens");
  for (std::size_t pending = 2; pending <= std::min<std::size_t>(runs.prompt().size(), 4); ++pending) {
    auto engine = runs.make(runs.prompt().first(runs.prompt().size() - pending + 1));
    if (pending > described(engine).max_rows) break;
    Place place{0, pending};
    Trace trace;
    Step first;
    first.right = first.wrong = 1;
    auto difference = runs.probe().pass(engine, first, place, trace);
    while (!difference && place.position < runs.check().tokens)
      difference = runs.probe().pass(engine, Step{place.position}, place, trace);
    if (difference) runs.note(*difference);
  }
  runs.count_checks();
  if (runs.finding().checks == 0 && runs.finding().verdict == Verdict::exact)
    runs.skip("the prompt, or a pass, is too short for it");
}

template <class Runs>
void check_truncate(Runs& runs) {
  runs.begin("V1", "truncate(), then the same again");
  if constexpr (!TruncatableVerifier<typename Runs::Engine>) {
    runs.skip("the verifier has no truncate()");
  } else if (runs.check().sampled) {
    runs.skip("truncate() does not restore the sampler");
  } else {
    auto engine = runs.make(runs.prompt());
    Place place;
    std::optional<Difference> refused;
    const auto go_back = [&](std::size_t to) {
      const std::size_t cached = runs.prompt().size() + place.position - place.pending;
      const std::size_t keep = std::min(cached, runs.prompt().size() + to - 1);
      if (!done([&] { return engine.truncate(keep); }))
        refused = Difference{"truncate(" + std::to_string(keep) + ") failed"};
      place = {to, runs.prompt().size() + to - keep};
    };
    for (const std::size_t to : {std::size_t{0}, runs.check().tokens / 2}) {
      Trace trace;
      std::optional<Difference> difference;
      while (!difference && place.position < runs.check().tokens)
        difference = runs.probe().pass(engine, Step{place.position, 2, 1}, place, trace);
      go_back(to);
      while (!difference && place.position < runs.check().tokens)
        difference = runs.probe().pass(engine, Step{place.position}, place, trace);
      go_back(0);
      if (difference) runs.note({"around truncate(): " + difference->message, difference->near_tie});
    }
    if (refused) runs.note(*refused);
    runs.count_checks();
  }
}

/// Checks V1 to V5 with chains, then several pending tokens and truncate().
template <class Runs, class Fail>
void check_chains(Runs& runs, const Capabilities& can, const Fail&) {
  const std::size_t k = runs.check().max_draft;
  const char* const rolls_back = can.rollback == Rollback::snapshot ? "V10" : "V4";
  runs.begin("V2", "plain decoding again");
  runs.attempt({});
  runs.begin("V2", "right drafts");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t p) { return Step{p, n}; });
  runs.begin(rolls_back, "wrong drafts are rolled back");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t p) { return Step{p, 0, n}; });
  runs.begin(rolls_back, "half-right drafts");
  for (std::size_t n = 2; n <= k; ++n) runs.repeat([&](std::size_t p) { return Step{p, n / 2, n - n / 2}; });
  runs.begin(rolls_back, "a pass without draft just after an accepting one");
  bool draft = false;
  for (const std::size_t wrong : {std::size_t{0}, std::size_t{2}})
    runs.repeat([&](std::size_t p) {
      return (draft = !draft) ? Step{p, std::max<std::size_t>(k / 2, 1), wrong} : Step{p};
    });
  runs.begin(rolls_back, "the first pick refused, nothing committed");
  if (runs.check().sampled)
    runs.skip("a sampler does not draw the refused pick again");
  else
    runs.repeat([&](std::size_t p) { return Step{p, p % 3, p % 2, unlimited, false, false, true}; });
  runs.begin("V3", "part of the picks read, part of the draft kept");
  for (std::size_t n = 1; n <= k; ++n) runs.repeat([&](std::size_t p) { return Step{p, k, 0, n}; });
  runs.begin("V5", "a void pass, then the same again");
  runs.repeat([&](std::size_t p) { return Step{p, p % (k + 1), p % 3, unlimited, true}; });
  runs.begin("V5", "a failed pass, then the same again");
  if constexpr (std::is_same_v<Fail, NeverFail>)
    runs.skip(
        "no fail_next(verifier) was given: pass a function, after the settings, that makes the next verify() fail");
  else
    runs.repeat([&](std::size_t p) { return Step{p, p % 3, 1, unlimited, false, p % 2 == 0}; });
  check_several_pending(runs);
  check_truncate(runs);
}

template <class Runs>
void check_mixed(Runs& runs) {
  using Engine = typename Runs::Engine;
  const std::size_t k = runs.check().max_draft;
  runs.begin("V1-V5", "everything mixed");
  Random random(runs.check().seed);
  for (std::size_t i = 0; i < runs.check().mixed_runs; ++i)
    runs.repeat([&](std::size_t p) {
      Step step{p, random.below(k + 1), random.below(k + 1)};
      if (random.chance(20)) step.take = 1 + random.below(k + 1);
      step.twice = random.chance(20);
      step.drop = random.chance(5);
      step.ask = ConstrainedVerifier<Engine> && random.chance(20);
      step.reveal = TopKVerifier<Engine> && random.chance(20);
      return step;
    });
}

template <class Runs, class Fail>
Report check_all(Runs runs, const Fail& fail) {
  using Engine = typename Runs::Engine;
  runs.begin("V2", "plain decoding");
  Engine plain = runs.make(runs.prompt());
  if (const auto difference = runs.probe().decode_plainly(plain)) {
    runs.note(*difference);
    return runs.take_report();
  }
  runs.count_checks();
  const Capabilities can = described(plain);
  if (can.rollback == Rollback::none || (can.rollback == Rollback::snapshot && !CheckpointVerifier<Engine>)) {
    runs.begin("V10", "rows can be given back");
    runs.note({can.rollback == Rollback::none
                   ? "Capabilities::rollback is none: no draft can be tried, and no session begins with it"
                   : "Capabilities::rollback is snapshot, but there is no snapshot() and restore(committed)"});
    return runs.take_report();
  }
  check_chains(runs, can, fail);
  check_checkpoints(runs, can);
  check_trees(runs, can);
  check_walks(runs, can);
  check_ranks(runs);
  check_distributions(runs, can);
  check_constraints(runs);
  check_mixed(runs);
  return runs.take_report();
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
/// must have at least one token; the check of several pending tokens needs two and uses up to four. Prompt and output
/// together should have at least three different tokens, because wrong drafts are made of them. If there is nothing to
/// decode, the report is empty. Decoding continues past stop tokens. Passes stay within the engine's capabilities.
///
/// Cost: about (20 + mixed_runs) x tokens passes, or three times as many with all refinements. Each difference costs up
/// to `tokens` further runs.
template <class Make, class Fail = NeverFail>
Report check_verifier(Make&& make, TokenSpan prompt, const VerifierCheck& check = {}, Fail&& fail_next = Fail()) {
  using Engine = std::remove_cvref_t<std::invoke_result_t<Make&, TokenSpan>>;
  Report report;
  if (prompt.empty()) return report;
  VerifierCheck fitting = check;
  if constexpr (VerifierWithCapabilities<Engine>) {
    const std::size_t most = detail::described(make(prompt)).max_context;
    fitting.tokens = std::min(fitting.tokens, most - std::min(most, prompt.size()));
  }
  if (fitting.tokens == 0) return report;
  using Runs = detail::VerifierRuns<std::remove_reference_t<Make>, std::remove_reference_t<Fail>>;
  return detail::check_all(Runs(make, prompt, fitting, fail_next), fail_next);
}

}  // namespace reprise::testing
