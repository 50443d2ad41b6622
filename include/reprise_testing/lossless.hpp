// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/control.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise::testing {

/// Two runs and their first difference.
struct LosslessReport {
  /// The result of one run of compare_lossless().
  struct Run {
    std::vector<Token> output;
    std::vector<Token> streamed;  ///< all tokens that the streaming callback received, in order
    FinishReason finish = FinishReason::none;
    Statistics statistics;
    std::string error;  ///< message of the error that generate() returned; empty: none
  };

  Run plain;
  Run drafted;
  std::size_t position = 0;  ///< index of the first token that differs, in the output or the stream; 0 if none
  std::string message;       ///< describes the first difference; empty: the runs are identical

  [[nodiscard]] bool identical() const noexcept { return message.empty(); }
};

namespace detail {

/// Returns the token at `at` in angle brackets, with up to `around` tokens on either side.
inline std::string excerpt(TokenSpan tokens, std::size_t at, std::size_t around = 6) {
  const std::size_t first = at > around ? at - around : 0;
  std::string text = first > 0 ? "[... " : "[";
  for (std::size_t i = first; i < tokens.size() && i <= at + around; ++i) {
    if (i != first) text += ' ';
    const std::string token = std::to_string(tokens[i]);
    text += i == at ? '<' + token + '>' : token;
  }
  if (at >= tokens.size()) text += tokens.size() > first ? " <end>" : "<end>";
  if (at + around + 1 < tokens.size()) text += " ...";
  return text + ']';
}

/// Returns the index of the first difference, or the length of the shorter sequence if there is none.
inline std::size_t first_difference(TokenSpan a, TokenSpan b) noexcept {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

template <DraftStrategy Strategy, DraftControl Control, Verifier V, class Predicate>
LosslessReport::Run run_once(Strategy strategy, Control control, V&& verifier, TokenSpan prompt, const Limits& limits,
                             Predicate predicate) {
  LosslessReport::Run run;
  Session<Strategy, Control> session(std::move(strategy), std::move(control));
  const auto stream = [&](TokenSpan tokens) { run.streamed.insert(run.streamed.end(), tokens.begin(), tokens.end()); };
  auto generation = generate(session, verifier, prompt, limits, stream, predicate);
  if (!generation) {
    run.error = std::string(generation.error().message);
    return run;
  }
  run.output.assign(generation->tokens.begin(), generation->tokens.end());
  run.finish = generation->finish;
  run.statistics = generation->statistics;
  return run;
}

inline void compare(LosslessReport& report) {
  const auto differ = [&](const char* what, const std::vector<Token>& plain, const std::vector<Token>& drafted) {
    if (!report.message.empty() || plain == drafted) return;
    report.position = first_difference(plain, drafted);
    report.message = std::string(what) + " differs at token " + std::to_string(report.position) +
                     ": plain decoding gives " + excerpt(plain, report.position) + ", drafting gives " +
                     excerpt(drafted, report.position);
  };
  if (report.plain.error != report.drafted.error)
    report.message = "errors differ: plain decoding says \"" + report.plain.error + "\", drafting says \"" +
                     report.drafted.error + "\"";
  differ("the output", report.plain.output, report.drafted.output);
  if (report.message.empty() && report.plain.finish != report.drafted.finish)
    report.message = "the finish reason differs: plain decoding ends by " +
                     std::string(to_string(report.plain.finish)) + ", drafting by " +
                     std::string(to_string(report.drafted.finish)) + ", after the same " +
                     std::to_string(report.plain.output.size()) + " tokens";
  differ("the stream", report.plain.streamed, report.drafted.streamed);
  if (report.message.empty() && report.drafted.error.empty() && report.drafted.streamed != report.drafted.output) {
    report.position = first_difference(report.drafted.output, report.drafted.streamed);
    report.message = "the stream is not the output: they part at token " + std::to_string(report.position);
  }
}

}  // namespace detail

/// Decodes `prompt` twice, without and with `strategy`, and compares errors, output, finish reason and stream.
///
/// `make(prompt)` returns a verifier prefilled with all but the last token of the prompt. It returns either a fresh
/// verifier by value or a reference to an engine that it has reset. Samplers must start from the same seed. `control`
/// decides how much of a draft is sent. Drafts verified by rejection sampling (DistributionStrategy) preserve the
/// distribution, not the tokens: the comparison does not apply to them. Cost: two generations. Exceptions from the
/// verifier propagate.
template <DraftStrategy Strategy, class Make, class Predicate = NeverStop, DraftControl Control = SendAll>
LosslessReport compare_lossless(Make&& make, TokenSpan prompt, const Limits& limits, Strategy strategy,
                                Predicate predicate = Predicate(), Control control = Control()) {
  LosslessReport report;
  report.plain = detail::run_once(archetype::Strategy(), SendAll(), make(prompt), prompt, limits, predicate);
  report.drafted = detail::run_once(std::move(strategy), std::move(control), make(prompt), prompt, limits, predicate);
  detail::compare(report);
  return report;
}

}  // namespace reprise::testing
