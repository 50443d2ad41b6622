// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reprise::testing {

/// exact: as the contract says, every time. near_tie: it differed, but only where the engine's own scores of two
/// tokens lie within the epsilon that the user declared. wrong: it differed. skipped: could not be looked at.
enum class Verdict : std::uint8_t { exact, skipped, near_tie, wrong };

inline const char* to_string(Verdict verdict) noexcept {
  constexpr const char* names[] = {"exact", "skipped", "near tie", "WRONG"};
  return names[static_cast<std::size_t>(verdict)];
}

/// What was found of one clause of a contract.
struct Finding {
  std::string clause;  ///< as numbered in core/verifier.hpp or core/strategy.hpp
  std::string what;    ///< what was tried
  Verdict verdict = Verdict::skipped;
  std::size_t checks = 0;     ///< comparisons made
  std::size_t near_ties = 0;  ///< of these, differences within epsilon
  std::string message;        ///< the first difference and how to see it again, or why it was skipped
};

/// The findings of a conformance check, in the order in which they were made.
struct Report {
  std::vector<Finding> findings;

  /// A new finding, of which nothing is wrong yet.
  void begin(const char* clause, const char* what) { findings.push_back({clause, what, Verdict::exact, 0, 0, {}}); }
  /// The last finding could not be looked at.
  void skip(const char* why) {
    findings.back().verdict = Verdict::skipped;
    findings.back().message = why;
  }
  /// A difference, of the last finding: the first of the worst is told.
  void note(const std::string& difference, bool near_tie) {
    Finding& finding = findings.back();
    const Verdict verdict = near_tie ? Verdict::near_tie : Verdict::wrong;
    if (verdict > finding.verdict) finding.message = difference;
    finding.verdict = std::max(finding.verdict, verdict);
    finding.near_ties += near_tie ? 1 : 0;
  }
  /// The worst verdict; a clause that was skipped does not count. `skipped` when nothing at all was checked.
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
  /// Nothing was wrong. Near ties pass: they are for the reader to judge.
  [[nodiscard]] bool passed() const noexcept { return verdict() == Verdict::exact || verdict() == Verdict::near_tie; }
  /// The first finding of that clause; null when there is none.
  [[nodiscard]] const Finding* find(const std::string& what) const noexcept {
    const auto at = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.what == what; });
    return at == findings.end() ? nullptr : &*at;
  }
  /// A table for people: one line per finding, and below it what went wrong.
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

}  // namespace reprise::testing
