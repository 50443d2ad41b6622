// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/testing/detail/answers.hpp"
#include "reprise/testing/detail/probe_text.hpp"
#include "reprise/testing/detail/verifier_trace.hpp"

namespace reprise::testing::detail {

/// The progress of a run: the number of decoded tokens, and the number of committed tokens that the next pass must
/// carry.
struct Place {
  std::size_t position = 0;
  std::size_t pending = 1;
};

/// Counts of how often an engine's first candidates agree with its picks and with each other.
struct RankCounts {
  std::size_t asked = 0;
  std::size_t picked = 0;   ///< times that the first candidate was the pick
  std::size_t known = 0;    ///< first candidates after drafted rows that can be compared with those of a plain pass
  std::size_t changed = 0;  ///< times among `known` that the first candidate differed from the plain pass's
};

template <class Engine>
Capabilities described(const Engine& engine) {
  Capabilities can;
  if constexpr (VerifierWithCapabilities<Engine>) can = engine.capabilities();
  return can;
}

/// Runs the passes of an engine, one step at a time, and compares the answers with plain decoding.
template <class Engine, class Fail>
class VerifierProbe {
 public:
  /// `tokens`: number of tokens to decode; `epsilon` and `tolerance`: see VerifierCheck.
  VerifierProbe(TokenSpan prompt, std::size_t tokens, double epsilon, double tolerance, Fail& fail)
      : text_(prompt), tokens_(tokens), epsilon_(epsilon), tolerance_(tolerance), fail_(fail) {}

  /// Decodes one token per pass, and records the text. The engine is prefilled with all but the last token of the
  /// prompt. Returns a difference if a call fails.
  std::optional<Difference> decode_plainly(Engine& engine) {
    for (std::size_t p = 0; p < tokens_; ++p) {
      const TokenSpan anchor = text_.before(p, 1);
      auto&& answer = engine.verify(anchor, 0);
      if (!succeeded(answer)) return Difference{"verify() failed at token " + std::to_string(p)};
      const auto token = static_cast<Token>(unwrapped(answer)[0]);
      if constexpr (MarginVerifier<Engine>) margins_.push_back(static_cast<double>(engine.margin(0)));
      if (!done([&] { return engine.commit(1); })) return Difference{"commit(1) failed at token " + std::to_string(p)};
      text_.push_back(token);
      ++checks_;
    }
    return {};
  }

  /// Runs the passes of one step, adds them to `trace` and advances `place`. Returns the first difference, or nullopt
  /// if there is none.
  std::optional<Difference> pass(Engine& engine, Step step, Place& place, Trace& trace) {
    const Capabilities can = described(engine);
    const bool restores = CheckpointVerifier<Engine> && can.rollback == Rollback::snapshot;
    if (restores && place.pending > can.max_replay) step = without_draft(step);
    if (step.ask)
      if (auto difference = ask(engine, step, place, trace.text())) return difference;
    ProbeDraft draft = text_.draft(step, place.position, place.pending, can);
    if (step.refuse)
      if (auto difference = refuse(engine, step, draft, place, trace)) return difference;
    bool saves = (restores && (!draft.tokens.empty() || step.twice)) || step.save;  // restore() needs a snapshot
    if (step.drop) {
      // The pass keeps nothing, so a difference can only come from the pass itself. Plain decoding continues after it.
      trace.add(call(step, saves, ""), batch(draft, place), draft);
      if (auto difference = read(engine, step, draft, place, saves, trace.text())) return difference;
      step = without_draft(step);
      draft = {};
      saves = false;
    }
    const std::size_t take =
        std::max<std::size_t>(1, std::min({step.take, draft.path.size() + 1, tokens_ - place.position}));
    const std::size_t keep = place.pending + take - 1;
    const bool restored = restores && keep < place.pending + draft.tokens.size();
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < place.pending; ++row) rows.push_back(row);
    for (std::size_t i = 0; i + 1 < take; ++i) rows.push_back(place.pending + draft.path[i]);
    std::string end = "commit(" + std::to_string(keep) + ')';
    if (step.tree) end = "commit_rows(" + listed(std::span<const std::size_t>(rows)) + ')';
    if (restored) end = "restore(" + std::to_string(take) + ')';
    const bool plain = draft.tokens.empty() && place.pending == 1 && !saves;
    if (plain && !step.twice && !step.fail)
      trace.add_plain();
    else
      trace.add(call(step, saves, end), batch(draft, place), draft);

    if (step.fail) provoke(engine, draft, place, saves);
    step.take = take;
    if (step.twice)
      if (auto difference = read(engine, step, draft, place, saves, trace.text() + " (the void run)"))
        return difference;
    if (auto difference = read(engine, step, draft, place, saves, trace.text())) return difference;
    if (step.reveal) rank(engine, draft, place);
    if (!finish(engine, step, rows, restored, take)) return Difference{end + " failed after " + trace.text()};
    place.pending = restored ? place.pending + take : 1;
    place.position += take;
    return {};
  }

  /// Returns the number of comparisons since the last call, and resets it to 0.
  std::size_t take_checks() noexcept { return std::exchange(checks_, 0); }
  [[nodiscard]] const RankCounts& ranks() const noexcept { return counts_; }
  [[nodiscard]] const ProbeText& text() const noexcept { return text_; }

 private:
  static Step without_draft(Step step) {
    step.right = step.wrong = step.siblings = 0;
    return step;
  }
  static ProbeCall call(const Step& step, bool saves, std::string end) {
    return {step.walk   ? "verify_and_walk"
            : step.tree ? "verify_tree"
                        : "verify",
            step.walk || step.tree, saves, std::move(end)};
  }
  [[nodiscard]] std::vector<Token> batch(const ProbeDraft& draft, const Place& place) const {
    const TokenSpan pending = text_.before(place.position, place.pending);
    std::vector<Token> batch(pending.begin(), pending.end());
    batch.insert(batch.end(), draft.tokens.begin(), draft.tokens.end());
    return batch;
  }

  /// Reads one pick and commits no token. Rolls back the whole pass, except that an engine without snapshots keeps the
  /// pending tokens before the anchor.
  std::optional<Difference> refuse(Engine& engine, const Step& step, const ProbeDraft& draft, Place& place,
                                   Trace& trace) {
    const bool restores = CheckpointVerifier<Engine> && described(engine).rollback == Rollback::snapshot;
    Step first = step;
    first.take = 1;
    const std::string end = restores ? "restore(0)" : "commit(" + std::to_string(place.pending - 1) + ')';
    trace.add(call(step, restores, end), batch(draft, place), draft);
    if (auto difference = read(engine, first, draft, place, restores, trace.text())) return difference;
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row + 1 < place.pending; ++row) rows.push_back(row);
    if (!finish(engine, step, rows, restores, 0)) return Difference{end + " failed after " + trace.text()};
    if (!restores) place.pending = 1;
    return {};
  }
  /// Runs the pass and compares the picks that are read.
  std::optional<Difference> read(Engine& engine, const Step& step, const ProbeDraft& draft, const Place& place,
                                 bool saves, const std::string& trace) {
    if constexpr (CheckpointVerifier<Engine>)
      if (saves && !done([&] { return engine.snapshot(); })) return Difference{"snapshot() failed in " + trace};
    const std::vector<Token> rows = batch(draft, place);
    if constexpr (SelfWalkingVerifier<Engine>)
      if (step.walk) {
        auto&& answer = engine.verify_and_walk(rows, draft.tokens.size(), draft.parents);
        if (!succeeded(answer)) return Difference{"verify_and_walk() failed in " + trace};
        return compare_walk(engine, unwrapped(answer), draft, place, trace);
      }
    if constexpr (TreeVerifier<Engine>)
      if (step.tree) {
        auto&& answer = engine.verify_tree(rows, draft.tokens.size(), draft.parents);
        if (!succeeded(answer)) return Difference{"verify_tree() failed in " + trace};
        return compare(engine, unwrapped(answer), step, draft, place, trace);
      }
    auto&& answer = engine.verify(rows, draft.tokens.size());
    if (!succeeded(answer)) return Difference{"verify() failed in " + trace};
    return compare(engine, unwrapped(answer), step, draft, place, trace);
  }
  template <class P>
  std::optional<Difference> compare(Engine& engine, P&& picks, const Step& step, const ProbeDraft& draft,
                                    const Place& place, const std::string& trace) {
    const std::size_t reads = std::min({step.take, draft.path.size() + 1, tokens_ - place.position});
    for (std::size_t d = 0; d < reads; ++d) {
      const std::size_t i = d == 0 ? 0 : 1 + draft.path[d - 1];
      if (step.weigh) {
        if (auto difference = weigh(engine, i, place.position + d, draft, trace)) return difference;
        continue;
      }
      if constexpr (requires { picks.size(); })
        if (i >= picks.size()) return Difference{"the span of picks ends before the first disagreement in " + trace};
      if (auto difference = compare_token(engine, static_cast<Token>(picks[i]), i, place.position + d,
                                          "picks[" + std::to_string(i) + ']', trace))
        return difference;
    }
    return {};
  }
  std::optional<Difference> compare_walk(Engine& engine, const Accepted& walked, const ProbeDraft& draft,
                                         const Place& place, const std::string& trace) {
    if (walked.rows.size() != walked.tokens.size())
      return Difference{"the walk must return one row for each token: " + trace};
    for (std::size_t d = 0; d < std::min(walked.tokens.size(), draft.path.size() + 1); ++d) {
      const std::size_t i = d == 0 ? 0 : 1 + draft.path[d - 1];
      const std::string where = "tokens[" + std::to_string(d) + ']';
      if (auto difference = compare_token(engine, walked.tokens[d], i, place.position + d, where, trace))
        return difference;
      if (walked.rows[d] != place.pending - 1 + i)
        return Difference{"rows[" + std::to_string(d) + "] is " + std::to_string(walked.rows[d]) +
                          ", the token was picked after row " + std::to_string(place.pending - 1 + i) +
                          " of the batch: " + trace};
    }
    if (walked.tokens.size() != draft.path.size() + 1)
      return Difference{"the walk gives " + std::to_string(walked.tokens.size()) + " tokens, not the " +
                        std::to_string(draft.path.size()) + " that agree and one more: " + trace};
    return {};
  }
  std::optional<Difference> compare_token(Engine& engine, Token got, std::size_t i, std::size_t p,
                                          const std::string& where, const std::string& trace) {
    const Token wanted = text_[p];
    ++checks_;
    if (got == wanted) return {};
    double margin = margins_.empty() ? 0 : margins_[p];
    if constexpr (MarginVerifier<Engine>) margin = std::min(margin, static_cast<double>(engine.margin(i)));
    std::string message = "token " + std::to_string(p) + " is " + std::to_string(got) + ", plain decoding gives " +
                          std::to_string(wanted) + ": " + where + " of " + trace;
    if (MarginVerifier<Engine>) message += "; margin " + std::to_string(margin);
    return Difference{std::move(message), MarginVerifier<Engine> && margin <= epsilon_};
  }
  /// Checks that a distribution is valid, and compares it with the one that a plain pass showed at the same position.
  /// Records the distribution of the first plain pass there.
  std::optional<Difference> weigh(Engine& engine, std::size_t i, std::size_t p, const ProbeDraft& draft,
                                  const std::string& trace) {
    if constexpr (DistributionVerifier<Engine>) {
      const std::span<const float> weights = engine.probabilities(i);
      const std::string where = "probabilities(" + std::to_string(i) + ") of " + trace;
      double sum = 0;
      for (const float weight : weights) {
        if (!(weight >= 0)) return Difference{"a weight is negative or not a number: " + where};
        sum += static_cast<double>(weight);
      }
      ++checks_;
      if (!(std::abs(sum - 1) <= tolerance_))
        return Difference{"the weights add up to " + std::to_string(sum) + ": " + where};
      auto& known = weights_[p];
      if (known.empty() && draft.tokens.empty()) known.assign(weights.begin(), weights.end());
      if (known.empty()) return {};
      double apart = known.size() == weights.size() ? 0 : 2;
      for (std::size_t t = 0; t < std::min(known.size(), weights.size()); ++t)
        apart += std::abs(static_cast<double>(known[t]) - static_cast<double>(weights[t]));
      if (apart > 2 * tolerance_)
        return Difference{"the distribution of token " + std::to_string(p) + " is " + std::to_string(apart / 2) +
                          " away from that of plain decoding: " + where};
    }
    return {};
  }
  /// Reads the candidates of all rows, last row first, and updates the RankCounts.
  void rank(Engine& engine, const ProbeDraft& draft, const Place& place) {
    if constexpr (TopKVerifier<Engine>) {
      for (std::size_t i = draft.tokens.size() + 1; i-- > 0;) {
        const TokenSpan best = engine.top_k(i);
        const auto on_path = std::find(draft.path.begin(), draft.path.end(), i - 1);
        if (best.empty() || (i > 0 && on_path == draft.path.end())) continue;
        const std::size_t p =
            place.position + (i == 0 ? 0 : static_cast<std::size_t>(on_path - draft.path.begin()) + 1);
        ++checks_;
        ++counts_.asked;
        counts_.picked += best[0] == text_[p] ? 1 : 0;
        if (draft.tokens.empty()) first_.emplace(p, best[0]);
        const auto known = first_.find(p);
        if (i == 0 || known == first_.end()) continue;
        ++counts_.known;
        counts_.changed += known->second == best[0] ? 0 : 1;
      }
    }
  }
  /// Checks that allowed() allows the tokens that plain decoding picks, and that equal calls return equal numbers.
  std::optional<Difference> ask(Engine& engine, const Step& step, const Place& place, const std::string& trace) {
    if constexpr (ConstrainedVerifier<Engine>) {
      const TokenSpan right = text_.from(place.position, step.right + 1);
      std::vector<Token> path(right.begin(), right.end());
      const std::string behind = trace.empty() ? " at the start" : " after " + trace;
      const auto allowed = [&] { return static_cast<std::size_t>(engine.allowed(TokenSpan(path))); };
      const std::size_t all = allowed();
      ++checks_;
      if (all != path.size())
        return Difference{"allowed(" + listed(TokenSpan(path)) + ") is " + std::to_string(all) +
                          ", but plain decoding picks all of it" + behind};
      path.push_back(*text_.unlike(place.position + path.size()));
      const std::size_t more = allowed();
      if (more < all || more > path.size() || more != allowed())
        return Difference{"allowed(" + listed(TokenSpan(path)) + ") is " + std::to_string(more) +
                          ", then something else, or not between " + std::to_string(all) + " and " +
                          std::to_string(path.size()) + behind};
    }
    return {};
  }
  void provoke(Engine& engine, const ProbeDraft& draft, const Place& place, bool saves) {
    if constexpr (!std::is_same_v<Fail, NeverFail>) {
      fail_(engine);
      const std::vector<Token> rows = batch(draft, place);
      const auto run = [&] {
        if constexpr (CheckpointVerifier<Engine>)
          if (saves) static_cast<void>(done([&] { return engine.snapshot(); }));
        static_cast<void>(engine.verify(rows, draft.tokens.size()));
      };
#if defined(__cpp_exceptions)
      try {
        run();
      } catch (...) {
      }
#else
      run();
#endif
    }
  }
  /// Ends a pass. Returns false if the engine returns an error.
  static bool finish(Engine& engine, const Step& step, const std::vector<std::size_t>& rows, bool restored,
                     std::size_t committed) {
    if constexpr (CheckpointVerifier<Engine>)
      if (restored) return done([&] { return engine.restore(committed); });
    if constexpr (TreeVerifier<Engine>)
      if (step.tree) return done([&] { return engine.commit_rows(std::span<const std::size_t>(rows)); });
    return done([&] { return engine.commit(rows.size()); });
  }

  ProbeText text_;
  std::vector<double> margins_;
  std::size_t tokens_;
  double epsilon_;
  double tolerance_;
  Fail& fail_;
  std::size_t checks_ = 0;
  RankCounts counts_;
  std::map<std::size_t, Token> first_;                 // first candidates of plain passes, by position
  std::map<std::size_t, std::vector<float>> weights_;  // distributions of plain passes, by position
};

}  // namespace reprise::testing::detail
