// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise_testing/detail/answers.hpp"
#include "reprise_testing/detail/probe_text.hpp"
#include "reprise_testing/detail/row_effect.hpp"
#include "reprise_testing/report.hpp"

namespace reprise::testing::detail {

/// The passes of a run, as readable text.
class Trace {
 public:
  /// Adds a call. Plain passes in a row become one entry, with their number.
  void add(const std::string& call, bool plain = false) {
    plain_ = plain ? plain_ + 1 : 0;
    if (plain_ < 2) {
      if (!text_.empty()) text_ += ", ";
      last_ = text_.size();
    }
    const std::string passes = std::to_string(plain_) + (plain_ == 1 ? " plain pass" : " plain passes");
    text_.replace(last_, std::string::npos, plain ? passes : call);
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::size_t last_ = 0;
  std::size_t plain_ = 0;
};

/// Counts of how often an engine's first candidates agree with its picks and with each other.
struct RankCounts {
  std::size_t asked = 0;
  std::size_t picked = 0;   ///< times that the first candidate was the pick
  std::size_t known = 0;    ///< first candidates after drafted rows that can be compared with those of a plain pass
  std::size_t changed = 0;  ///< times among `known` that the first candidate differed from the plain pass's
};

/// Runs of an engine, each from its prompt to the last token. Compares each answer with plain decoding and writes the
/// findings.
template <class Make, class Fail>
class VerifierRuns {
 public:
  using Engine = std::remove_cvref_t<std::invoke_result_t<Make&, TokenSpan>>;
  static_assert(Verifier<Engine>, "make(prompt) has to give a verifier");
  static constexpr bool can_fail = !std::is_same_v<Fail, std::nullptr_t>;

  /// A run: the engine, the number of decoded tokens, and the number of committed tokens that the next pass must carry.
  struct Run {
    Engine engine;
    std::size_t position = 0;
    std::size_t pending = 1;
    Trace trace = {};
  };

  VerifierRuns(Make& make, TokenSpan prompt, const VerifierCheck& check, Fail& fail)
      : make_(make), prompt_(prompt), check_(check), fail_(fail), text_(prompt) {}

  [[nodiscard]] const VerifierCheck& check() const noexcept { return check_; }
  [[nodiscard]] const Capabilities& can() const noexcept { return can_; }
  [[nodiscard]] std::size_t prompt_size() const noexcept { return prompt_.size(); }
  [[nodiscard]] const RankCounts& ranks() const noexcept { return ranks_; }
  [[nodiscard]] Report& report() noexcept { return report_; }
  [[nodiscard]] Report::Finding& finding() noexcept { return report_.findings.back(); }
  [[nodiscard]] bool sends_trees() const noexcept { return TreeVerifier<Engine> && can_.max_leaves > 1; }
  void begin(const char* clause, const char* what) { report_.begin(clause, what); }
  void skip(const char* why) { report_.skip(why); }

  /// Returns a fresh engine, prefilled with all but the last `pending` tokens of the prompt.
  [[nodiscard]] Run start(std::size_t pending = 1) {
    return {make_(prompt_.first(prompt_.size() - pending + 1)), 0, pending};
  }

  /// Decodes one token per pass, and records the text. Returns false if there is nothing to decode or a call fails.
  bool decode_plainly() {
    Engine engine = make_(prompt_);
    if constexpr (VerifierWithCapabilities<Engine>) can_ = engine.capabilities();
    check_.tokens = std::min(check_.tokens, can_.max_context - std::min(can_.max_context, prompt_.size()));
    if (check_.tokens == 0) return false;
    begin("V2", "plain decoding");
    for (std::size_t p = 0; p < check_.tokens; ++p) {
      const std::string where = "() failed at token " + std::to_string(p);
      auto&& answer = engine.verify(text_.before(p, 1), 0);
      auto* picks = value_in(answer);
      if (picks == nullptr) return report_.note("verify" + where), false;
      const auto token = static_cast<Token>((*picks)[0]);
      if constexpr (MarginVerifier<Engine>) margins_.push_back(static_cast<double>(engine.margin(0)));
      if (!done([&] { return engine.commit(1); })) return report_.note("commit" + where), false;
      text_.push_back(token);
      ++finding().checks;
    }
    return true;
  }
  /// Checks, without drafts, that picks do not depend on the number of rows: each pass carries `rows` pending tokens.
  /// Sampled and constrained output is left out, because tokens that are run again advance neither sampler nor grammar.
  void compare_row_counts() {
    constexpr std::size_t real = 64;
    begin("V1-V2", "passes without a draft, with other numbers of rows");
    effect_.show_in_last_of(report_);
    if (check_.sampled || ConstrainedVerifier<Engine>)
      return skip("the state of a sampler or a grammar does not allow it");
    for (const std::size_t rows : row_counts())
      for (std::size_t offset = 0; offset < 2; ++offset) {
        Run run = start();
        const auto failed = effect_.counted(effect_.plain(), [&] {
          std::optional<Difference> failure;
          for (std::size_t p = 0; p < offset && !failure; ++p) failure = pass(run, {});
          for (; !failure && run.position + rows <= check_.tokens; failure = pass(run, {})) {
            run.position += rows - 1;
            run.pending = rows;
          }
          return failure;
        });
        if (failed) return report_.note(failed->message);
      }
    effect_.show(report_);
    if (finding().message.empty() && prompt_.size() < real)
      finding().message =
          "the prompt has " + std::to_string(prompt_.size()) +
          " tokens: pass a real one, a page of text. Kernels whose results depend on the number of rows "
          "often agree in contexts below " +
          std::to_string(real) + " tokens";
  }
  /// Notes a difference in the last finding, unless the engine shows as many without drafts. `again` repeats the run.
  template <class Again>
  void judge(const Difference& difference, const Again& again) {
    const std::size_t checks = finding().checks;
    if (difference.near_tie ||
        !effect_.excuses(report_, difference, again, [this](std::size_t rows) { measure(rows); }))
      report_.note(difference.message, difference.near_tie);
    finding().checks = checks;
  }
  /// Runs once, with the steps that `choose(p)` returns, and with `flag` set in each of them. Position p begins at 0,
  /// and advances by the tokens that the step can commit.
  template <class Choose>
  void repeat(Choose choose, bool Step::*flag = nullptr) {
    std::vector<Step> steps;
    for (std::size_t p = 0; p < check_.tokens;) {
      Step& step = steps.emplace_back(choose(p));
      step.position = p;
      if (flag != nullptr) step.*flag = true;
      p += step.drop ? 1 : std::min(step.right + 1, step.take);
    }
    attempt(steps);
  }
  /// Runs the steps, with `pending` tokens in the first pass. Repeats a failed run with only its last few steps, to
  /// report the shortest run that fails.
  void attempt(const std::vector<Step>& steps, std::size_t pending = 1) {
    std::size_t done = 0;
    auto difference = follow(steps, pending, done);
    if (!difference) return;
    const std::size_t checks = finding().checks;
    std::size_t unused = 0;
    const auto again = [&] { return follow(steps, pending, unused); };
    for (std::size_t last = 1; last < done; ++last) {
      unused = 0;
      const std::span<const Step> few = std::span(steps).subspan(done - last, last);
      const auto shorter = follow(few, pending, unused);
      if (!shorter || shorter->near_tie != difference->near_tie) continue;
      difference = shorter;
      break;
    }
    finding().checks = checks;
    unused = 0;
    judge(*difference, again);
  }
  /// Runs the passes of one step, adds them to the trace and advances the run. Returns the first difference, or nullopt
  /// if there is none.
  std::optional<Difference> pass(Run& run, Step step) {
    if (restores() && run.pending > can_.max_replay) step = without_draft(step);
    if (step.walk) step.tree = sends_trees();
    if (step.ask)
      if (auto difference = ask(run, step)) return difference;
    if (step.refuse)
      if (auto difference = complete(run, pass_of(run, step))) return difference;
    step.refuse = false;
    if (step.drop) {
      // The pass keeps nothing, so a difference can only come from the pass itself. Plain decoding continues after it.
      const Pass dropped = pass_of(run, step);
      run.trace.add(described(dropped));
      if (auto difference = read(run, dropped)) return difference;
      step = without_draft(step);
    }
    return complete(run, pass_of(run, step));
  }

 private:
  /// A pass of a run. `take` is the number of tokens that it commits.
  struct Pass {
    Step step;
    ProbeDraft draft;
    std::size_t take = 0;
    bool saves = false;
    [[nodiscard]] std::size_t drafted() const noexcept { return draft.parents.size(); }
  };

  /// Returns the row counts of compare_row_counts(): those of short drafts, of the longest chain, and of a wide tree.
  [[nodiscard]] std::vector<std::size_t> row_counts() const {
    std::vector<std::size_t> counts;
    for (std::size_t rows = 2; rows <= check_.max_draft + 1; ++rows) counts.push_back(rows);
    counts.insert(counts.end(), {2 * check_.max_draft + 1, 4 * check_.max_draft + 1});
    std::erase_if(counts, [&](std::size_t rows) { return rows > std::min(can_.max_rows, check_.tokens); });
    return counts;
  }
  /// Compares the picks of all positions in passes of `rows` pending tokens and no draft, each in a fresh engine.
  void measure(std::size_t rows) {
    if (ConstrainedVerifier<Engine> || rows > can_.max_rows) return;
    for (std::size_t p = 0; p < (check_.sampled ? 1 : check_.tokens); ++p) {
      if (rows > prompt_.size() + p) continue;
      Run run{make_(text_.until(p, rows - 1)), p, rows};
      static_cast<void>(effect_.counted(effect_.plain(), [&] { return pass(run, {}); }));
    }
  }
  [[nodiscard]] bool restores() const noexcept {
    return CheckpointVerifier<Engine> && can_.rollback == Rollback::snapshot;
  }
  static Step without_draft(Step step) {
    step.right = step.wrong = step.siblings = 0;
    return step;
  }
  [[nodiscard]] Pass pass_of(const Run& run, const Step& step) const {
    Pass pass{step, text_.draft(step, run.position, run.pending, can_)};
    if (!step.refuse) pass.take = std::min({step.take, pass.draft.path.size(), check_.tokens - run.position});
    // restore() needs a snapshot.
    pass.saves = (restores() && (pass.drafted() > 0 || step.twice || step.refuse)) || step.save;
    return pass;
  }
  static std::string called(const Step& step) {
    return step.walk ? "verify_and_walk" : step.tree ? "verify_tree" : "verify";
  }
  static std::string described(const Pass& pass, const std::string& end = {}) {
    std::string text = (pass.saves ? "snapshot(), " : "") + called(pass.step) + '(' + listed(pass.draft.batch) + ", " +
                       std::to_string(pass.drafted());
    if (pass.step.walk || pass.step.tree) text += ", parents " + listed(pass.draft.parents);
    return text + (end.empty() ? ")" : ") and " + end);
  }

  /// Runs the steps and returns the first difference, or nullopt if there is none. Increases `done` by the number of
  /// steps taken or passed over.
  std::optional<Difference> follow(std::span<const Step> steps, std::size_t pending, std::size_t& done) {
    Run run = start(pending);
    while (run.position < check_.tokens) {
      // An engine with fewer rows per pass needs more passes to reach a position.
      while (done < steps.size() && steps[done].position < run.position) ++done;
      const bool special = done < steps.size() && steps[done].position == run.position;
      // Reading probabilities does not advance a sampler.
      const Step plain{.weigh = !steps.empty() && steps.front().weigh};
      if (auto difference = pass(run, special ? steps[done++] : plain)) return difference;
    }
    return {};
  }
  /// Runs the pass until the engine has kept its rows, and advances the run. If nothing is committed, the engine rolls
  /// back the whole pass, except that an engine without snapshots keeps the pending tokens before the anchor.
  std::optional<Difference> complete(Run& run, const Pass& pass) {
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row + 1 < run.pending + pass.take; ++row)
      rows.push_back(row < run.pending ? row : run.pending - 1 + pass.draft.path[row - run.pending + 1]);
    const bool restored = restores() && rows.size() < pass.draft.batch.size();
    std::string end = "commit(" + std::to_string(rows.size()) + ')';
    if (pass.step.tree) end = "commit_rows(" + listed(rows) + ')';
    if (restored) end = "restore(" + std::to_string(pass.take) + ')';
    const bool plain =
        pass.draft.batch.size() == 1 && pass.take == 1 && !pass.saves && !pass.step.twice && !pass.step.fail;
    run.trace.add(described(pass, end), plain);
    if (pass.step.fail) provoke(run, pass);
    if (pass.step.twice)
      if (auto difference = read(run, pass, " (the void run)")) return difference;
    if (auto difference = read(run, pass)) return difference;
    if (pass.step.reveal) rank(run, pass.draft);
    if (!finish(run.engine, pass, rows, restored)) return Difference{end + " failed after " + run.trace.text()};
    run.pending = restored ? run.pending + pass.take : 1;
    run.position += pass.take;
    return {};
  }
  /// Ends a pass. Returns false if the engine returns an error.
  static bool finish(Engine& engine, const Pass& pass, std::span<const std::size_t> rows, bool restored) {
    if constexpr (CheckpointVerifier<Engine>)
      if (restored) return done([&] { return engine.restore(pass.take); });
    if constexpr (TreeVerifier<Engine>)
      if (pass.step.tree) return done([&] { return engine.commit_rows(rows); });
    return done([&] { return engine.commit(rows.size()); });
  }
  /// Makes the engine fail while it runs the pass.
  void provoke(Run& run, const Pass& pass) {
    if constexpr (can_fail) {
      fail_(run.engine);
#if defined(__cpp_exceptions)
      try {
        static_cast<void>(read(run, pass));
      } catch (...) {
      }
#else
      static_cast<void>(read(run, pass));
#endif
    }
  }

  /// Runs the pass and compares the picks that are read. `remark` ends the message of a difference.
  std::optional<Difference> read(Run& run, const Pass& pass, const char* remark = "") {
    const std::size_t checks = finding().checks;
    auto difference = verify(run, pass);
    if (difference) difference->message += " in the last pass of: " + run.trace.text() + remark;
    if (effect_.counts() == nullptr || (difference && !difference->is_pick)) return difference;
    effect_.counts()->add(pass.draft.batch.size(), finding().checks - checks, difference);
    return {};
  }
  std::optional<Difference> verify(Run& run, const Pass& pass) {
    const TokenSpan batch = pass.draft.batch;
    const std::span<const NodeIndex> parents = pass.draft.parents;
    const auto judge = [&](auto&& answer) -> std::optional<Difference> {
      auto* picks = value_in(answer);
      if (picks == nullptr) return Difference{called(pass.step) + "() failed"};
      return compare(run, *picks, pass);
    };
    if constexpr (CheckpointVerifier<Engine>)
      if (pass.saves && !done([&] { return run.engine.snapshot(); })) return Difference{"snapshot() failed"};
    if constexpr (SelfWalkingVerifier<Engine>)
      if (pass.step.walk) return judge(run.engine.verify_and_walk(batch, parents.size(), parents));
    if constexpr (TreeVerifier<Engine>)
      if (pass.step.tree) return judge(run.engine.verify_tree(batch, parents.size(), parents));
    return judge(run.engine.verify(batch, parents.size()));
  }
  template <class P>
  std::optional<Difference> compare(Run& run, P& picks, const Pass& pass) {
    if constexpr (std::is_same_v<std::remove_const_t<P>, Accepted>)
      return compare_walk(run, picks, pass);
    else
      return compare_picks(run, picks, pass);
  }
  template <class P>
  std::optional<Difference> compare_picks(Run& run, P& picks, const Pass& pass) {
    for (std::size_t d = 0; d < std::max<std::size_t>(1, pass.take); ++d) {
      const std::size_t i = pass.draft.path[d];
      if (pass.step.weigh) {
        if (auto difference = weigh(run.engine, i, run.position + d, pass)) return difference;
        continue;
      }
      if constexpr (requires { picks.size(); })
        if (i >= picks.size()) return Difference{"the span of picks ends before the first disagreement"};
      const std::string where = "picks[" + std::to_string(i) + ']';
      if (auto difference = compare_token(run.engine, static_cast<Token>(picks[i]), i, run.position + d, where))
        return difference;
    }
    return {};
  }
  std::optional<Difference> compare_walk(Run& run, const Accepted& walked, const Pass& pass) {
    const std::vector<std::size_t>& path = pass.draft.path;
    if (walked.rows.size() != walked.tokens.size()) return Difference{"the walk must return one row for each token"};
    for (std::size_t d = 0; d < std::min(walked.tokens.size(), path.size()); ++d) {
      const std::string place = '[' + std::to_string(d) + ']';
      const std::size_t row = run.pending - 1 + path[d];
      if (auto difference = compare_token(run.engine, walked.tokens[d], path[d], run.position + d, "tokens" + place))
        return difference;
      if (walked.rows[d] != row)
        return Difference{"rows" + place + " is " + std::to_string(walked.rows[d]) +
                          ", the token was picked after row " + std::to_string(row) + " of the batch"};
    }
    if (walked.tokens.size() != path.size())
      return Difference{"the walk gives " + std::to_string(walked.tokens.size()) + " tokens, not the " +
                        std::to_string(path.size() - 1) + " that agree and one more,"};
    return {};
  }
  /// Compares the token that the engine gave at position `p`, in pick `i`.
  std::optional<Difference> compare_token(const Engine& engine, Token got, std::size_t i, std::size_t p,
                                          const std::string& where) {
    ++finding().checks;
    if (got == text_[p]) return {};
    std::string message = "token " + std::to_string(p) + " is " + std::to_string(got) + ", plain decoding gives " +
                          std::to_string(text_[p]);
    bool near_tie = false;
    if constexpr (MarginVerifier<Engine>) {
      const double margin = std::min(margins_[p], static_cast<double>(engine.margin(i)));
      message += " (margin " + std::to_string(margin) + ')';
      near_tie = margin <= check_.epsilon;
    }
    return Difference{message + ": " + where, near_tie, true};
  }
  /// Checks that a distribution is valid, and compares it with the one that a plain pass showed at the same position.
  /// Records the distribution of the first plain pass there.
  std::optional<Difference> weigh(Engine& engine, std::size_t i, std::size_t p, const Pass& pass) {
    if constexpr (DistributionVerifier<Engine>) {
      const std::span<const float> weights = engine.probabilities(i);
      const std::string where = ": probabilities(" + std::to_string(i) + ')';
      double sum = 0;
      for (const float weight : weights) {
        if (!(weight >= 0)) return Difference{"a weight is negative or not a number" + where};
        sum += static_cast<double>(weight);
      }
      ++finding().checks;
      if (!(std::abs(sum - 1) <= check_.tolerance))
        return Difference{"the weights add up to " + std::to_string(sum) + where};
      auto& known = weights_[p];
      if (known.empty() && pass.drafted() == 0) known.assign(weights.begin(), weights.end());
      if (known.empty()) return {};
      double apart = known.size() == weights.size() ? 0 : 2;
      for (std::size_t t = 0; t < std::min(known.size(), weights.size()); ++t)
        apart += std::abs(static_cast<double>(known[t]) - static_cast<double>(weights[t]));
      if (apart > 2 * check_.tolerance)
        return Difference{"the distribution of token " + std::to_string(p) + " is " + std::to_string(apart / 2) +
                          " away from that of plain decoding" + where};
    }
    return {};
  }
  /// Reads the candidates of all rows, last row first, and updates the RankCounts.
  void rank(Run& run, const ProbeDraft& draft) {
    if constexpr (TopKVerifier<Engine>) {
      for (std::size_t i = draft.parents.size() + 1; i-- > 0;) {
        const TokenSpan best = run.engine.top_k(i);
        const auto on_path = std::find(draft.path.begin(), draft.path.end(), i);
        if (best.empty() || on_path == draft.path.end()) continue;
        const std::size_t p = run.position + static_cast<std::size_t>(on_path - draft.path.begin());
        ++finding().checks;
        ++ranks_.asked;
        ranks_.picked += best[0] == text_[p] ? 1 : 0;
        if (draft.parents.empty()) first_.emplace(p, best[0]);
        const auto known = first_.find(p);
        if (i == 0 || known == first_.end()) continue;
        ++ranks_.known;
        ranks_.changed += known->second == best[0] ? 0 : 1;
      }
    }
  }
  /// Checks that allowed() allows the tokens that plain decoding picks, and that equal calls return equal numbers.
  std::optional<Difference> ask(Run& run, const Step& step) {
    if constexpr (ConstrainedVerifier<Engine>) {
      const TokenSpan right = text_.from(run.position, step.right + 1);
      std::vector<Token> path(right.begin(), right.end());
      const std::string when = run.trace.text().empty() ? " at the start" : " after " + run.trace.text();
      const auto allowed = [&] { return static_cast<std::size_t>(run.engine.allowed(TokenSpan(path))); };
      const std::size_t all = allowed();
      ++finding().checks;
      if (all != path.size())
        return Difference{"allowed(" + listed(path) + ") is " + std::to_string(all) +
                          ", but plain decoding picks all of it" + when};
      path.push_back(*text_.unlike(run.position + path.size()));
      const std::size_t more = allowed();
      if (more < all || more > path.size() || more != allowed())
        return Difference{"allowed(" + listed(path) + ") is " + std::to_string(more) +
                          ", then something else, or not between " + std::to_string(all) + " and " +
                          std::to_string(path.size()) + when};
    }
    return {};
  }

  Make& make_;
  TokenSpan prompt_;
  VerifierCheck check_;
  Fail& fail_;
  Capabilities can_;
  ProbeText text_;
  Report report_;
  std::vector<double> margins_;  // of the picks of plain decoding
  RowEffect effect_;
  RankCounts ranks_;
  std::map<std::size_t, Token> first_;                 // first candidates of plain passes, by position
  std::map<std::size_t, std::vector<float>> weights_;  // distributions of plain passes, by position
};

}  // namespace reprise::testing::detail
