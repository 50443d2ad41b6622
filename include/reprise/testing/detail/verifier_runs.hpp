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
#include "reprise/testing/detail/verifier_probe.hpp"
#include "reprise/testing/detail/verifier_trace.hpp"
#include "reprise/testing/report.hpp"

namespace reprise::testing {

namespace detail {

/// Runs of an engine, each from its prompt to the last token, and their findings.
template <class Make, class Fail>
class VerifierRuns {
 public:
  using Engine = std::remove_cvref_t<std::invoke_result_t<Make&, TokenSpan>>;
  static_assert(Verifier<Engine>, "make(prompt) has to give a verifier");

  VerifierRuns(Make& make, TokenSpan prompt, const VerifierCheck& check, Fail& fail)
      : make_(make),
        prompt_(prompt),
        check_(check),
        probe_(prompt, check.tokens, check.epsilon, check.tolerance, fail) {}

  [[nodiscard]] const VerifierCheck& check() const noexcept { return check_; }
  [[nodiscard]] TokenSpan prompt() const noexcept { return prompt_; }
  [[nodiscard]] Engine make(TokenSpan prompt) { return make_(prompt); }
  [[nodiscard]] VerifierProbe<Engine, Fail>& probe() noexcept { return probe_; }
  [[nodiscard]] Report take_report() noexcept { return std::move(report_); }

  void begin(const char* clause, const char* what) { report_.begin(clause, what); }
  void skip(const char* why) { report_.skip(why); }
  void note(const Difference& difference) { report_.note(difference.message, difference.near_tie); }
  /// Adds a remark to the last finding, unless it has a message. The verdict does not change.
  void inform(std::string message) {
    if (report_.findings.back().message.empty()) report_.findings.back().message = std::move(message);
  }
  void count_checks(std::size_t further = 0) { report_.findings.back().checks += probe_.take_checks() + further; }
  [[nodiscard]] const Report::Finding& finding() const noexcept { return report_.findings.back(); }

  /// Runs once, with the steps that `choose(p)` returns. Position p begins at 0, and advances by the tokens that the
  /// step can commit.
  template <class Choose>
  void repeat(Choose choose) {
    std::vector<Step> steps;
    for (std::size_t p = 0; p < check_.tokens;) {
      steps.push_back(choose(p));
      const std::size_t most = steps.back().drop ? 1 : std::min(steps.back().right + 1, steps.back().take);
      p += std::max<std::size_t>(1, most);
    }
    attempt(steps);
  }
  /// Runs the steps. Repeats a failed run with only its last few steps, to report the shortest run that fails.
  void attempt(const std::vector<Step>& steps) {
    std::size_t done = 0;
    auto difference = follow(steps, done);
    count_checks();
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

 private:
  /// Runs the steps and returns the first difference, or nullopt if there is none. Increases `done` by the number of
  /// steps taken or passed over.
  std::optional<Difference> follow(const std::vector<Step>& steps, std::size_t& done) {
    Engine engine = make_(prompt_);
    Trace trace;
    Place place;
    while (place.position < check_.tokens) {
      // An engine with fewer rows per pass needs more passes to reach a position.
      while (done < steps.size() && steps[done].position < place.position) ++done;
      const bool special = done < steps.size() && steps[done].position == place.position;
      Step plain;
      plain.position = place.position;
      plain.weigh = !steps.empty() && steps.front().weigh;  // reading probabilities does not advance a sampler
      if (auto difference = probe_.pass(engine, special ? steps[done++] : plain, place, trace)) return difference;
    }
    return {};
  }

  Make& make_;
  TokenSpan prompt_;
  VerifierCheck check_;
  VerifierProbe<Engine, Fail> probe_;
  Report report_;
};

}  // namespace detail
}  // namespace reprise::testing
