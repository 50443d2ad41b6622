// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/testing/random.hpp"
#include "reprise/testing/report.hpp"
#include "reprise/testing/verifier_probe.hpp"

namespace reprise::testing {

/// How a verifier is checked.
struct VerifierCheck {
  std::size_t tokens = 32;     ///< decoded in each run
  std::size_t max_draft = 4;   ///< longest draft tried
  std::size_t mixed_runs = 8;  ///< runs in which everything is mixed at random
  double epsilon = 0;          ///< a pick whose margin is at most this is a near tie (MarginVerifier)
  bool sampled = false;        ///< the picks come from a sampler whose state truncate() does not bring back
  std::uint64_t seed = 1;
};

namespace detail {

/// The runs of check_verifier(), clause by clause.
template <class Make, class Fail>
class VerifierRuns {
  using Engine = std::remove_cvref_t<std::invoke_result_t<Make&, TokenSpan>>;
  static_assert(Verifier<Engine>, "make(prompt) has to give a verifier");

 public:
  VerifierRuns(Make& make, TokenSpan prompt, const VerifierCheck& check, Fail& fail)
      : make_(make), prompt_(prompt), check_(check), probe_(prompt, check.tokens, check.epsilon, fail) {}

  Report run() {
    const std::size_t k = check_.max_draft;
    begin("V2", "plain decoding");
    Engine plain = make_(prompt_);
    if (const auto difference = probe_.decode_plainly(plain)) {
      note(*difference);
      return std::move(report_);
    }
    report_.findings.back().checks = probe_.take_checks();
    begin("V2", "plain decoding again");
    attempt({});
    begin("V2", "right drafts");
    for (std::size_t n = 1; n <= k; ++n) repeat([&](std::size_t p) { return Step{p, n}; });
    begin("V4", "wrong drafts are rolled back");
    for (std::size_t n = 1; n <= k; ++n) repeat([&](std::size_t p) { return Step{p, 0, n}; });
    begin("V4", "half-right drafts");
    for (std::size_t n = 2; n <= k; ++n) repeat([&](std::size_t p) { return Step{p, n / 2, n - n / 2}; });
    begin("V4", "a pass without draft just after an accepting one");
    bool draft = false;
    for (const std::size_t wrong : {std::size_t{0}, std::size_t{2}})
      repeat([&](std::size_t p) {
        return (draft = !draft) ? Step{p, std::max<std::size_t>(k / 2, 1), wrong} : Step{p};
      });
    begin("V4", "the first pick refused, nothing committed");
    if (check_.sampled)
      skip("a sampler does not draw the refused pick again");
    else
      repeat([&](std::size_t p) { return Step{p, p % 3, p % 2, unlimited, false, false, true}; });
    begin("V3", "part of the picks read, part of the draft kept");
    for (std::size_t n = 1; n <= k; ++n) repeat([&](std::size_t p) { return Step{p, k, 0, n}; });
    begin("V5", "a void pass, then the same again");
    repeat([&](std::size_t p) { return Step{p, p % (k + 1), p % 3, unlimited, true}; });
    begin("V5", "a failed pass, then the same again");
    if constexpr (std::is_same_v<Fail, NeverFail>)
      skip("no way to make the engine fail was given");
    else
      repeat([&](std::size_t p) { return Step{p, p % 3, 1, unlimited, false, p % 2 == 0}; });
    begin("V1", "several pending tokens");
    several_pending();
    begin("V1", "truncate(), then the same again");
    truncate_and_again();
    begin("V1-V5", "everything mixed");
    Random random(check_.seed);
    for (std::size_t i = 0; i < check_.mixed_runs; ++i)
      repeat([&](std::size_t p) {
        Step step{p, random.below(k + 1), random.below(k + 1)};
        if (random.chance(20)) step.take = 1 + random.below(k + 1);
        step.twice = random.chance(20);
        return step;
      });
    return std::move(report_);
  }

 private:
  void begin(const char* clause, const char* what) {
    report_.findings.push_back({clause, what, Verdict::exact, 0, 0, {}});
  }
  void skip(const char* why) {
    report_.findings.back().verdict = Verdict::skipped;
    report_.findings.back().message = why;
  }
  void note(const Difference& difference) {
    Finding& finding = report_.findings.back();
    const Verdict verdict = difference.near_tie ? Verdict::near_tie : Verdict::wrong;
    if (verdict > finding.verdict) finding.message = difference.message;
    finding.verdict = std::max(finding.verdict, verdict);
    finding.near_ties += difference.near_tie ? 1 : 0;
  }

  /// One run, with the steps that `choose` gives from the first token to the last.
  template <class Choose>
  void repeat(Choose choose) {
    std::vector<Step> steps;
    for (std::size_t p = 0; p < check_.tokens;) {
      steps.push_back(choose(p));
      p += std::max<std::size_t>(1, std::min(steps.back().right + 1, steps.back().take));
    }
    attempt(steps);
  }
  /// Runs the steps; what fails is tried again with only the last few of them, for the shortest way to see it.
  void attempt(const std::vector<Step>& steps) {
    std::size_t done = 0;
    auto difference = follow(steps, done);
    report_.findings.back().checks += probe_.take_checks();
    if (!difference) return;
    for (std::size_t last = 1; last < done; ++last) {
      std::size_t unused = 0;
      const std::vector<Step> few(steps.begin() + static_cast<std::ptrdiff_t>(done - last),
                                  steps.begin() + static_cast<std::ptrdiff_t>(done));
      const auto shorter = follow(few, unused);
      if (!shorter || shorter->near_tie != difference->near_tie) continue;
      difference = shorter;
      break;
    }
    static_cast<void>(probe_.take_checks());
    note(*difference);
  }
  /// `done`: the steps that were taken.
  std::optional<Difference> follow(const std::vector<Step>& steps, std::size_t& done) {
    Engine engine = make_(prompt_);
    Trace trace;
    for (std::size_t p = 0; p < check_.tokens;) {
      // An engine that takes fewer rows gets there later.
      while (done < steps.size() && steps[done].position < p) ++done;
      const bool special = done < steps.size() && steps[done].position == p;
      if (auto difference = probe_.pass(engine, special ? steps[done++] : Step{p}, 1, p, trace)) return difference;
    }
    return {};
  }

  void several_pending() {
    for (std::size_t pending = 2; pending <= std::min<std::size_t>(prompt_.size(), 4); ++pending) {
      Engine engine = make_(prompt_.first(prompt_.size() - pending + 1));
      if (!probe_.fits(engine, pending)) break;
      std::size_t p = 0;
      Trace trace;
      auto difference = probe_.pass(engine, Step{0, 1, 1}, pending, p, trace);
      while (!difference && p < check_.tokens) difference = probe_.pass(engine, Step{p}, 1, p, trace);
      if (difference) note(*difference);
    }
    report_.findings.back().checks = probe_.take_checks();
    if (report_.findings.back().checks == 0 && report_.findings.back().verdict == Verdict::exact)
      skip("the prompt, or a pass, is too short for it");
  }
  void truncate_and_again() {
    if constexpr (!TruncatableVerifier<Engine>) {
      skip("the verifier has no truncate()");
    } else if (check_.sampled) {
      skip("the sampler does not go back");
    } else {
      Engine engine = make_(prompt_);
      for (const std::size_t to : {std::size_t{0}, check_.tokens / 2}) {
        Trace trace;
        std::size_t p = 0;
        std::optional<Difference> difference;
        while (!difference && p < check_.tokens) difference = probe_.pass(engine, Step{p, 2, 1}, 1, p, trace);
        engine.truncate(prompt_.size() + to - 1);
        for (p = to; !difference && p < check_.tokens;) difference = probe_.pass(engine, Step{p}, 1, p, trace);
        engine.truncate(prompt_.size() - 1);
        if (difference) note({"around truncate(): " + difference->message, difference->near_tie});
      }
      report_.findings.back().checks = probe_.take_checks();
    }
  }

  Make& make_;
  TokenSpan prompt_;
  VerifierCheck check_;
  VerifierProbe<Engine, Fail> probe_;
  Report report_;
};

}  // namespace detail

/// Does a verifier agree with itself? Decodes `check.tokens` tokens one by one, then the same text again in many
/// other ways: with right, wrong and half-right drafts, with passes that are run twice, read in part or made to fail,
/// and compares each pick. The report says so clause by clause, with the shortest run that shows a difference.
///
/// `make(prompt)` gives a fresh verifier, by value, prefilled with all but the last token of what it is given; a
/// sampler starts from the same state each time. `fail_next(verifier)`, where given, makes its next verify() fail.
/// The prompt has one token at least; give it four and more for all checks. A described engine's max_context is kept.
/// Cost: about (20 + mixed_runs) x tokens passes, and a few more when something is wrong.
template <class Make, class Fail = detail::NeverFail>
Report check_verifier(Make&& make, TokenSpan prompt, const VerifierCheck& check = {}, Fail&& fail_next = Fail()) {
  Report report;
  if (prompt.empty()) return report;
  VerifierCheck fitting = check;
  if constexpr (DescribedVerifier<std::remove_cvref_t<std::invoke_result_t<Make&, TokenSpan>>>) {
    const std::size_t most = Capabilities(make(prompt).capabilities()).max_context;
    fitting.tokens = std::min(fitting.tokens, most - std::min(most, prompt.size()));
  }
  if (fitting.tokens == 0) return report;
  return detail::VerifierRuns<std::remove_reference_t<Make>, std::remove_reference_t<Fail>>(make, prompt, fitting,
                                                                                            fail_next)
      .run();
}

}  // namespace reprise::testing
