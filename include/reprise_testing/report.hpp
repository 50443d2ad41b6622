// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/contract.hpp"

namespace reprise::testing {

/// The verdict of one finding, or of a report. exact: every comparison agreed. near_tie: some comparisons differed, but
/// only where the engine's scores of two tokens lie within the epsilon that the user declared. wrong: a comparison
/// differed and was not a near tie, or the contract was broken in another way. skipped: the clause could not be
/// checked.
enum class Verdict : std::uint8_t { exact, skipped, near_tie, wrong };

inline const char* to_string(Verdict verdict) noexcept {
  constexpr const char* names[] = {"exact", "skipped", "near tie", "WRONG"};
  return names[static_cast<std::size_t>(verdict)];
}

/// The findings of a conformance check, in the order of the checks.
struct Report {
  /// The result for one clause of a contract.
  struct Finding {
    std::string clause;  ///< clause, or range of clauses, in core/verifier.hpp or core/strategy.hpp
    std::string what;    ///< the situation that was tried
    Verdict verdict = Verdict::skipped;
    std::size_t checks = 0;     ///< number of comparisons
    std::size_t near_ties = 0;  ///< number of differences within epsilon; each of them ends its run
    std::string message;        ///< the first of the worst differences, why the clause was skipped, or a remark
  };

  std::vector<Finding> findings;

  /// Adds a finding, which is exact until a difference is noted.
  void begin(const char* clause, const char* what) { findings.push_back({clause, what, Verdict::exact, 0, 0, {}}); }
  /// Marks the last finding as skipped.
  void skip(const char* why) {
    findings.back().verdict = Verdict::skipped;
    findings.back().message = why;
  }
  /// Adds a difference to the last finding. The finding keeps the message of the first difference of the worst kind.
  void note(const std::string& difference, bool near_tie = false) { note(findings.back(), difference, near_tie); }
  static void note(Finding& finding, const std::string& difference, bool near_tie) {
    const Verdict verdict = near_tie ? Verdict::near_tie : Verdict::wrong;
    if (verdict > finding.verdict) finding.message = difference;
    finding.verdict = std::max(finding.verdict, verdict);
    finding.near_ties += near_tie ? 1 : 0;
  }
  /// Marks the last finding as skipped, unless a worse difference was noted: the clause is not to blame for this one.
  void excuse(const std::string& difference) {
    Finding& finding = findings.back();
    if (finding.verdict == Verdict::exact) finding.message = difference;
    finding.verdict = std::max(finding.verdict, Verdict::skipped);
  }
  /// Returns the worst verdict, ignoring skipped clauses. Returns `skipped` if nothing was checked.
  [[nodiscard]] Verdict verdict() const noexcept {
    bool any = false;
    Verdict worst = Verdict::exact;
    for (const Finding& finding : findings) {
      if (finding.verdict == Verdict::skipped) continue;
      any = true;
      worst = std::max(worst, finding.verdict);
    }
    return any ? worst : Verdict::skipped;
  }
  /// Returns true if something was checked and nothing was wrong. Near ties pass; the reader judges them.
  [[nodiscard]] bool passed() const noexcept { return verdict() == Verdict::exact || verdict() == Verdict::near_tie; }
  /// Returns the first finding with that `what`; nullptr if there is none.
  [[nodiscard]] const Finding* find(const std::string& what) const noexcept REPRISE_LIFETIMEBOUND {
    const auto at = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.what == what; });
    return at == findings.end() ? nullptr : &*at;
  }
  /// Returns a readable text: the verdict, then one line per finding, with the finding's message below.
  [[nodiscard]] std::string to_string() const {
    std::string text = std::string("verdict: ") + testing::to_string(verdict()) + '\n';
    for (const Finding& finding : findings) {
      text += "  " + finding.clause + "  " + finding.what + ": " + testing::to_string(finding.verdict) + " (" +
              std::to_string(finding.checks) + " checks";
      if (finding.near_ties > 0) text += ", " + std::to_string(finding.near_ties) + " near ties";
      text += ")\n";
      if (!finding.message.empty()) text += "      " + finding.message + '\n';
    }
    return text;
  }
};

/// The settings of check_verifier().
struct VerifierCheck {
  std::size_t tokens = 32;  ///< tokens to decode in each run
  /// A drafted chain has up to about this many right tokens, and up to about as many wrong ones. Trees can have more
  /// nodes.
  std::size_t max_draft = 4;
  std::size_t mixed_runs = 8;  ///< runs that mix variations at random; for trees, the same number in addition
  double epsilon = 0;          ///< a difference is a near tie if the pick's margin (MarginVerifier) is at most this
  /// Maximum total variation distance between distributions with and without draft. The sum of a distribution's weights
  /// may differ from 1 by as much.
  double tolerance = 1e-3;
  bool sampled = false;  ///< picks come from a sampler whose state truncate() does not restore
  std::uint64_t seed = 1;
};

}  // namespace reprise::testing
