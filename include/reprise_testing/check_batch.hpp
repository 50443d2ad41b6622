// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/batch/packing.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise_testing/detail/answers.hpp"
#include "reprise_testing/detail/probe_text.hpp"
#include "reprise_testing/detail/row_effect.hpp"
#include "reprise_testing/random.hpp"
#include "reprise_testing/report.hpp"

namespace reprise::testing {

/// An engine that packs many sequences into a pass, as check_batch() calls it. verify(passes) runs one pass. Each
/// element of `passes` is the part of one sequence, and can be given to BatchPacker::add() unchanged. verify() returns
/// the picks, or a Result of them: `answer[k][i]` is the token after row (anchor + i) of passes[k]. commit(sequence,
/// rows) keeps these rows of the sequence's part; rows are counted from the start of the part. commit() may return a
/// Result<void>. Rows that are not committed become void when the next pass starts. Two functions are optional.
/// leave(sequence) removes the sequence for good. margin(k, i) returns the margin of answer[k][i]; see MarginVerifier.
template <class S>
concept BatchServer = requires(S& server, std::span<const SequencePass> passes, std::size_t sequence,
                               std::span<const std::size_t> rows,
                               reprise::detail::unwrap_t<decltype(server.verify(passes))> answer) {
  { answer[sequence][sequence] } -> std::convertible_to<Token>;
  server.commit(sequence, rows);
};

/// The settings of check_batch().
struct BatchCheck {
  std::size_t tokens = 24;  ///< tokens to decode per sequence in each run
  /// A drafted chain has up to about this many right tokens, and up to about as many wrong ones. Trees can have more
  /// nodes.
  std::size_t max_draft = 4;
  std::size_t mixed_runs = 8;        ///< runs that mix variations at random
  Capabilities capabilities = {};    ///< limits of each sequence's drafts; rollback is trim or per_row
  std::size_t max_rows = unlimited;  ///< maximum rows of a pass; each sequence in it still sends at least one
  double epsilon = 0;                ///< a difference is a near tie if the pick's margin is at most this
  std::uint64_t seed = 1;
};

namespace detail {

/// The part of one sequence in a round.
struct BatchPart {
  Step step = {};
  bool absent = false;     ///< the sequence is not in this pass
  bool cancelled = false;  ///< the sequence's rows in this pass are never committed
  bool leaves = false;     ///< the sequence never returns
};

template <class Make>
class BatchRuns {
  using Server = std::remove_cvref_t<std::invoke_result_t<Make&>>;
  static_assert(BatchServer<Server>, "make_server() has to give a BatchServer");
  static constexpr bool can_leave = requires(Server & server) { server.leave(std::size_t{}); };

 public:
  BatchRuns(Make& make, std::span<const std::vector<Token>> prompts, const BatchCheck& check)
      : make_(make), check_(check) {
    for (const auto& prompt : prompts) texts_.emplace_back(prompt);
  }

  Report run() {
    report_.begin("V2", "each sequence in passes of its own");
    if (decode_plainly()) {
      try_drafts();
      try_absence();
      if (trees()) try_trees();
      try_all_mixed();
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool trees() const noexcept { return check_.capabilities.max_leaves > 1; }

  void try_drafts() {
    const std::size_t k = check_.max_draft;
    report_.begin("V2", "all sequences in a pass, without drafts");
    effect_.show_in_last_of(report_);
    for (const std::uint64_t order : {0U, 1U, 2U}) attempt(order, [](std::size_t, std::size_t) { return BatchPart{}; });
    report_.begin("V2", "right drafts of different lengths");
    for (const std::uint64_t order : {0U, 1U, 2U})
      attempt(order, [&](std::size_t round, std::size_t s) { return BatchPart{{(round + s) % (k + 1)}}; });
    report_.begin("V4", "wrong drafts of some are rolled back");
    attempt(0, [&](std::size_t round, std::size_t s) { return BatchPart{{0, (round + s) % 3 == 0 ? k : 0}}; });
    attempt(2, [&](std::size_t round, std::size_t s) { return BatchPart{{(round + s) % 3, (round * s) % 3}}; });
  }
  void try_absence() {
    const std::size_t k = check_.max_draft;
    report_.begin("V2", "some sequences are not in the pass");
    attempt(0, [&](std::size_t round, std::size_t s) { return BatchPart{{s % 3, 1}, (round + s) % 3 == 0}; });
    attempt(0, [&](std::size_t round, std::size_t s) { return BatchPart{{s % 3, 1}, round % texts_.size() != s}; });
    report_.begin("V5", "a part that is never committed, then the same again");
    attempt(0, [&](std::size_t round, std::size_t s) {
      return BatchPart{.step = {(round + s) % (k + 1), 1}, .cancelled = (round + s) % 4 == 0};
    });
    report_.begin("V5", "a sequence leaves, the others go on");
    if constexpr (!can_leave) return report_.skip("the server has no leave(sequence)");
    attempt(0, [&](std::size_t round, std::size_t s) {
      const bool leaves = round == 1 + s && s % 2 == 0 && s + 1 < texts_.size();
      return BatchPart{.step = {(round + s) % (k + 1), 1}, .leaves = leaves};
    });
  }
  void try_trees() {
    const std::size_t k = check_.max_draft;
    report_.begin("V6", "trees of different forms");
    for (const std::uint64_t order : {0U, 1U, 2U})
      attempt(order, [&](std::size_t round, std::size_t s) {
        return BatchPart{tree_step((round + s) % (k + 1), round % 3, s % 3, round)};
      });
  }
  void try_all_mixed() {
    const std::size_t k = check_.max_draft;
    report_.begin("V1-V8", "everything mixed");
    for (std::size_t i = 0; i < check_.mixed_runs; ++i)
      attempt(2 + i, [&](std::size_t round, std::size_t s) {
        Random random(check_.seed ^ mix(round * 131 + s * 7 + i * 1009));
        BatchPart part{{random.below(k + 1), random.below(k + 1)}};
        if (trees() && random.chance(40))
          part.step = tree_step(random.below(k + 1), random.below(3), random.below(3), random.below(9));
        if (random.chance(20)) part.step.take = 1 + random.below(k + 1);
        part.cancelled = random.chance(15);
        part.absent = random.chance(20);
        return part;
      });
  }

  /// Runs a pass of the `rows` tokens of a sequence before its position `p`, alone and without a draft. Returns its
  /// pick, or notes a call that failed.
  std::optional<Token> pass_alone(Server& server, std::size_t s, std::size_t p, std::size_t rows) {
    const SequencePass alone{s, texts_[s].before(p, rows), 0, {}, texts_[s].prompt() + p};
    auto&& answer = server.verify(std::span(&alone, 1));
    auto* picks = value_in(answer);
    if (picks == nullptr) return report_.note("verify() failed"), std::nullopt;
    const auto token = static_cast<Token>((*picks)[0][0]);
    std::vector<std::size_t> kept(rows);
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    if (!keep(server, s, kept)) return report_.note("commit() failed"), std::nullopt;
    return token;
  }
  bool decode_plainly() {
    for (std::size_t s = 0; s < texts_.size(); ++s) {
      Server server = make_();
      for (std::size_t p = 0; p < check_.tokens; ++p) {
        const auto token = pass_alone(server, s, p, 1);
        if (!token) return false;
        texts_[s].push_back(*token);
        ++report_.findings.back().checks;
      }
    }
    return true;
  }

  /// Runs all sequences, with the parts that `choose(round, sequence)` returns. Repeats a failed run with one sequence,
  /// then with pairs, to report one or two sequences that fail without the others.
  template <class Choose>
  void attempt(std::uint64_t order, const Choose& choose) {
    std::vector<bool> present(texts_.size(), true);
    std::size_t first = 0;
    auto difference = follow(choose, order, present, first, report_.findings.back().checks);
    if (!difference) return;
    std::size_t unused = 0;
    const auto again = [&] { return follow(choose, order, present, unused, unused); };
    if (!difference->near_tie &&
        effect_.excuses(report_, *difference, again, [this](std::size_t rows) { measure(rows); }))
      return;
    for (std::size_t other = 0; other < texts_.size(); ++other) {  // alone first, then in pairs
      const std::size_t with = other == 0 ? first : other - 1 < first ? other - 1 : other;
      present.assign(texts_.size(), false);
      present[first] = present[with] = true;
      const auto smaller = follow(choose, order, present, unused, unused);
      if (!smaller || smaller->near_tie != difference->near_tie) continue;
      difference = smaller;
      break;
    }
    report_.note(difference->message, difference->near_tie);
  }
  /// Compares picks of each sequence in passes of `rows` of its tokens, alone and without a draft.
  void measure(std::size_t rows) {
    if (rows > std::min(check_.max_rows, check_.capabilities.max_rows)) return;
    for (std::size_t s = 0; s < texts_.size(); ++s)
      for (std::size_t offset = 0; offset < rows && offset + rows <= check_.tokens; ++offset) {
        Server server = make_();
        for (std::size_t p = 0; p < offset; ++p)
          if (!pass_alone(server, s, p, 1)) return;
        for (std::size_t p = offset + rows - 1; p < check_.tokens; p += rows) {
          const auto token = pass_alone(server, s, p, rows);
          if (!token) return;
          std::optional<Difference> difference;
          if (*token != texts_[s][p])
            difference = Difference{differs(s, p, *token) + "a pass of " + std::to_string(rows) +
                                        " tokens of the sequence alone, without a draft",
                                    near_tie(server, 0, 0), true};
          effect_.plain().add(rows, 1, difference);
        }
      }
  }
  [[nodiscard]] std::string differs(std::size_t s, std::size_t p, Token got) const {
    return "token " + std::to_string(p) + " of sequence " + std::to_string(s) + " is " + std::to_string(got) +
           ", alone it is " + std::to_string(texts_[s][p]) + ": ";
  }
  /// A run of the server.
  struct Progress {
    Server server;
    std::vector<std::size_t> decoded;  ///< tokens per sequence; a sequence with all of them takes no further part
    std::string after = {};            ///< the last pass and the rows kept from it, as text
  };
  /// The part of one sequence in a pass.
  struct Packed {
    std::size_t sequence;
    BatchPart part;
    ProbeDraft draft;
  };

  /// Runs the `present` sequences. Returns the first difference, or nullopt if there is none. If a pick differs, writes
  /// the number of the pick's sequence to `failed`.
  template <class Choose>
  std::optional<Difference> follow(const Choose& choose, std::uint64_t order, const std::vector<bool>& present,
                                   std::size_t& failed, std::size_t& checks) {
    Progress run{make_(), std::vector<std::size_t>(texts_.size())};
    for (std::size_t round = 0; round < 4 * check_.tokens; ++round) {
      std::vector<Packed> packed;
      for (std::size_t s = 0; s < texts_.size(); ++s)
        if (present[s] && run.decoded[s] < check_.tokens)
          if (const BatchPart part = choose(round, s); !part.absent) packed.push_back({s, part, {}});
      if (packed.empty()) continue;
      shuffle(packed, order, round);
      add_drafts(packed, run.decoded);
      if (auto difference = run_pass(run, packed, round, failed, checks)) return difference;
    }
    return {};
  }
  /// Adds the drafts of a pass. Cuts drafts once the rows of the pass are used up.
  void add_drafts(std::vector<Packed>& packed, const std::vector<std::size_t>& decoded) const {
    std::size_t spare = check_.max_rows - std::min(check_.max_rows, packed.size());
    for (Packed& one : packed) {
      Capabilities can = check_.capabilities;
      can.max_rows = std::min(can.max_rows, spare + 1);
      one.draft = texts_[one.sequence].draft(one.part.step, decoded[one.sequence], 1, can);
      spare -= one.draft.parents.size();
    }
  }
  [[nodiscard]] std::string described(const std::vector<Packed>& packed) const {
    std::string text = "verify([";
    for (const Packed& one : packed) {
      text += (&one == packed.data() ? "" : "; ") + std::to_string(one.sequence) + ": " + listed(one.draft.batch) +
              ", " + std::to_string(one.draft.parents.size());
      if (trees() && !one.draft.parents.empty()) text += ", parents " + listed(one.draft.parents);
    }
    return text + "])";
  }
  /// Runs the pass, compares its picks and commits its parts, except those that are cancelled. Returns the first
  /// difference, or nullopt if there is none.
  std::optional<Difference> run_pass(Progress& run, const std::vector<Packed>& packed, std::size_t round,
                                     std::size_t& failed, std::size_t& checks) {
    std::vector<SequencePass> passes;
    for (const auto& [s, part, draft] : packed)
      passes.push_back({s, draft.batch, draft.parents.size(), draft.parents, texts_[s].prompt() + run.decoded[s]});
    const std::string call = described(packed);
    const std::string trace = call + " in round " + std::to_string(round) + run.after;
    auto&& answer = run.server.verify(passes);
    auto* picks = value_in(answer);
    if (picks == nullptr) return Difference{"verify() failed: " + trace};
    run.after = ", after " + call;
    std::size_t total = 0;
    for (const SequencePass& one : passes) total += one.batch.size();
    for (std::size_t k = 0; k < packed.size(); ++k) {
      const auto& [s, part, draft] = packed[k];
      const std::size_t take = std::min({part.step.take, draft.path.size(), check_.tokens - run.decoded[s]});
      const auto rows = std::span(draft.path).first(take);
      std::optional<Difference> difference;
      for (std::size_t d = 0; d < take && !difference; ++d) {
        const auto got = static_cast<Token>((*picks)[k][rows[d]]);
        const std::size_t p = run.decoded[s] + d;
        ++checks;
        if (effect_.counts() != nullptr && got == texts_[s][p]) effect_.counts()->add(total, 1, {});
        if (got == texts_[s][p]) continue;
        failed = s;
        difference = Difference{
            differs(s, p, got) + "picks[" + std::to_string(k) + "][" + std::to_string(rows[d]) + "] of " + trace,
            near_tie(run.server, k, rows[d]), true};
      }
      if (difference && effect_.counts() == nullptr) return difference;
      if (difference) effect_.counts()->add(total, 1, difference);
      if constexpr (can_leave)
        if (part.leaves) run.server.leave(s);
      if (part.leaves) run.decoded[s] = check_.tokens;
      if (part.leaves || part.cancelled) continue;
      run.after += " keeps " + std::to_string(s) + ": " + listed(rows);
      if (!keep(run.server, s, rows)) return Difference{"commit(" + std::to_string(s) + ") failed after " + trace};
      run.decoded[s] += take;
    }
    return {};
  }
  /// Reorders the parts. Order 0: unchanged; 1: reversed; any other number: shuffled, with the order and the round as
  /// the seed.
  static void shuffle(std::vector<Packed>& packed, std::uint64_t order, std::size_t round) {
    if (order == 1) std::reverse(packed.begin(), packed.end());
    if (order < 2) return;
    Random random(mix(order) ^ round);
    for (std::size_t i = packed.size(); i > 1; --i) std::swap(packed[i - 1], packed[random.below(i)]);
  }
  [[nodiscard]] bool near_tie([[maybe_unused]] const Server& server, [[maybe_unused]] std::size_t k,
                              [[maybe_unused]] std::size_t i) const {
    if constexpr (requires { server.margin(k, i); })
      return static_cast<double>(server.margin(k, i)) <= check_.epsilon;
    else
      return false;
  }
  static bool keep(Server& server, std::size_t sequence, std::span<const std::size_t> rows) {
    return done([&] { return server.commit(sequence, rows); });
  }

  Make& make_;
  BatchCheck check_;
  std::vector<ProbeText> texts_;
  Report report_;
  RowEffect effect_;
};

}  // namespace detail

/// Checks that an engine that packs many sequences into a pass gives each sequence the same tokens as when the sequence
/// runs alone. Decodes each prompt in its own passes, then all prompts together in many ways, and compares each pick.
/// The ways are different orders, absent sequences, drafts of different lengths and shapes, parts that are never
/// committed, and sequences that leave. Each finding of the report names its clause in core/verifier.hpp. It shows the
/// first of its worst differences, with only one or two sequences if these suffice.
///
/// `make_server()` returns a fresh server, by value, in which every prompt is prefilled except its last token. Each
/// prompt must have at least one token. Otherwise, or if there is nothing to decode, the report is empty. Decoding must
/// be greedy. Snapshots are not tried here: check_verifier() checks them for a single sequence. Cost: about (12 +
/// mixed_runs + number of prompts) x tokens passes.
template <class Make>
Report check_batch(Make&& make_server, std::span<const std::vector<Token>> prompts, const BatchCheck& check = {}) {
  const bool empty = std::any_of(prompts.begin(), prompts.end(), [](const auto& prompt) { return prompt.empty(); });
  if (empty || prompts.empty() || check.tokens == 0) return {};
  return detail::BatchRuns<std::remove_reference_t<Make>>(make_server, prompts, check).run();
}

}  // namespace reprise::testing
