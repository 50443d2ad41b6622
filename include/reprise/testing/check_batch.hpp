// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/batch/packing.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/testing/detail/answers.hpp"
#include "reprise/testing/detail/probe_text.hpp"
#include "reprise/testing/detail/verifier_trace.hpp"
#include "reprise/testing/random.hpp"
#include "reprise/testing/report.hpp"

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
  bool leaves = false;     ///< cancelled, and the sequence never returns
};

template <class Make>
class BatchRuns {
  using Server = std::remove_cvref_t<std::invoke_result_t<Make&>>;
  static_assert(BatchServer<Server>, "make_server() has to give a BatchServer");

 public:
  BatchRuns(Make& make, std::span<const std::vector<Token>> prompts, const BatchCheck& check)
      : make_(make), check_(check) {
    for (const auto& prompt : prompts) texts_.emplace_back(prompt);
  }

  Report run() {
    begin("V2", "each sequence in passes of its own");
    if (!decode_plainly()) return std::move(report_);
    try_drafts();
    try_absence();
    try_leaving();
    if (check_.capabilities.max_leaves > 1) try_trees();
    try_all_mixed();
    return std::move(report_);
  }

 private:
  static BatchPart drafts(std::size_t right, std::size_t wrong) {
    BatchPart part;
    part.step.right = right;
    part.step.wrong = wrong;
    return part;
  }
  static BatchPart tree(std::size_t right, std::size_t siblings, std::size_t tail, std::uint64_t order) {
    BatchPart part = drafts(right, 0);
    part.step.siblings = siblings;
    part.step.tail = tail;
    part.step.order = order;
    return part;
  }
  static BatchPart absent(BatchPart part, bool is_absent) {
    part.absent = is_absent;
    return part;
  }
  void begin(const char* clause, const char* what) { report_.begin(clause, what); }
  void skip(const char* why) { report_.skip(why); }
  void note(const Difference& difference) { report_.note(difference.message, difference.near_tie); }

  void try_drafts() {
    const std::size_t k = check_.max_draft;
    begin("V2", "all sequences in a pass, without drafts");
    for (const std::uint64_t order : {0U, 1U, 2U}) attempt([](std::size_t, std::size_t) { return BatchPart{}; }, order);
    begin("V2", "right drafts of different lengths");
    for (const std::uint64_t order : {0U, 1U, 2U})
      attempt([&](std::size_t round, std::size_t s) { return drafts((round + s) % (k + 1), 0); }, order);
    begin("V4", "wrong drafts of some are rolled back");
    attempt([&](std::size_t round, std::size_t s) { return drafts(0, (round + s) % 3 == 0 ? k : 0); }, 0);
    attempt([&](std::size_t round, std::size_t s) { return drafts((round + s) % 3, (round * s) % 3); }, 2);
  }
  void try_absence() {
    begin("V2", "some sequences are not in the pass");
    attempt([&](std::size_t round, std::size_t s) { return absent(drafts(s % 3, 1), (round + s) % 3 == 0); }, 0);
    attempt([&](std::size_t round, std::size_t s) { return absent(drafts(s % 3, 1), round % texts_.size() != s); }, 0);
  }
  void try_leaving() {
    const std::size_t k = check_.max_draft;
    begin("V5", "a part that is never committed, then the same again");
    attempt(
        [&](std::size_t round, std::size_t s) {
          BatchPart part = drafts((round + s) % (k + 1), 1);
          part.cancelled = (round + s) % 4 == 0;
          return part;
        },
        0);
    begin("V5", "a sequence leaves, the others go on");
    if constexpr (requires(Server & server) { server.leave(std::size_t{}); })
      attempt(
          [&](std::size_t round, std::size_t s) {
            BatchPart part = drafts((round + s) % (k + 1), 1);
            part.leaves = round == 1 + s && s % 2 == 0 && s + 1 < texts_.size();
            part.cancelled = part.leaves;
            return part;
          },
          0);
    else
      skip("the server has no leave(sequence)");
  }
  void try_trees() {
    const std::size_t k = check_.max_draft;
    begin("V6", "trees of different forms");
    for (const std::uint64_t order : {0U, 1U, 2U})
      attempt([&](std::size_t round, std::size_t s) { return tree((round + s) % (k + 1), round % 3, s % 3, round); },
              order);
  }
  void try_all_mixed() {
    const std::size_t k = check_.max_draft;
    begin("V1-V8", "everything mixed");
    for (std::size_t i = 0; i < check_.mixed_runs; ++i)
      attempt(
          [&](std::size_t round, std::size_t s) {
            Random random(check_.seed ^ mix(round * 131 + s * 7 + i * 1009));
            BatchPart part = drafts(random.below(k + 1), random.below(k + 1));
            if (check_.capabilities.max_leaves > 1 && random.chance(40))
              part = tree(random.below(k + 1), random.below(3), random.below(3), random.below(9));
            if (random.chance(20)) part.step.take = 1 + random.below(k + 1);
            part.cancelled = random.chance(15);
            return absent(part, random.chance(20));
          },
          2 + i);
  }

  bool decode_plainly() {
    for (std::size_t s = 0; s < texts_.size(); ++s) {
      Server server = make_();
      for (std::size_t p = 0; p < check_.tokens; ++p) {
        const SequencePass alone{s, texts_[s].before(p, 1), 0, {}, texts_[s].prompt() + p};
        auto&& answer = server.verify(std::span(&alone, 1));
        if (!succeeded(answer)) return note({"verify() failed"}), false;
        const auto token = static_cast<Token>(unwrapped(answer)[0][0]);
        const std::size_t row = 0;
        if (!keep(server, s, std::span(&row, 1))) return note({"commit() failed"}), false;
        texts_[s].push_back(token);
        ++report_.findings.back().checks;
      }
    }
    return true;
  }

  /// Runs all sequences. Repeats a failed run with one sequence, then with pairs, to report one or two sequences that
  /// fail without the others.
  template <class Choose>
  void attempt(const Choose& choose, std::uint64_t order) {
    std::vector<bool> present(texts_.size(), true);
    std::size_t failed = 0;
    auto difference = follow(choose, order, present, failed, report_.findings.back().checks);
    if (!difference) return;
    std::size_t unused = 0;
    const std::size_t first = failed;
    for (std::size_t other = 0; other < texts_.size(); ++other) {  // alone first, then in pairs
      const std::size_t with = other == 0 ? first : other - 1 < first ? other - 1 : other;
      present.assign(texts_.size(), false);
      present[first] = present[with] = true;
      const auto smaller = follow(choose, order, present, unused, unused);
      if (!smaller || smaller->near_tie != difference->near_tie) continue;
      difference = smaller;
      break;
    }
    note(*difference);
  }
  /// A run, and the progress of each sequence in it.
  struct Progress {
    Server server;
    std::vector<std::size_t> places;  ///< number of decoded tokens per sequence
    std::vector<bool> left;           ///< sequences that have left
    std::string before = {};          ///< the last pass and the rows kept from it, as text
  };
  /// A pass over some of the sequences.
  struct Packed {
    std::vector<std::size_t> sequences = {};
    std::vector<ProbeDraft> drafts = {};
    std::vector<std::vector<Token>> batches = {};
    std::vector<SequencePass> passes = {};  ///< views of the vectors above
    std::string text = {};
  };

  /// Runs the `present` sequences. Returns the first difference, or nullopt if there is none. If a pick differs, writes
  /// the number of the pick's sequence to `failed`.
  template <class Choose>
  std::optional<Difference> follow(const Choose& choose, std::uint64_t order, const std::vector<bool>& present,
                                   std::size_t& failed, std::size_t& checks) {
    Progress run{make_(), std::vector<std::size_t>(texts_.size(), 0), std::vector<bool>(texts_.size(), false)};
    for (std::size_t round = 0; round < 4 * check_.tokens; ++round) {
      std::vector<std::size_t> sequences;
      for (std::size_t s = 0; s < texts_.size(); ++s)
        if (present[s] && !run.left[s] && run.places[s] < check_.tokens && !choose(round, s).absent)
          sequences.push_back(s);
      if (sequences.empty()) continue;
      shuffle(sequences, order, round);
      const auto chosen = [&](std::size_t s) { return choose(round, s); };
      const Packed packed = pack(std::move(sequences), chosen, run.places);
      const std::string trace = "verify([" + packed.text + "]) in round " + std::to_string(round) +
                                (run.before.empty() ? "" : ", after verify([" + run.before + "])");
      if (auto difference = run_pass(run, packed, chosen, trace, failed, checks)) return difference;
    }
    return {};
  }
  /// Returns a pass with the drafts of these sequences. Cuts drafts once the rows of the pass are used up.
  template <class Chosen>
  Packed pack(std::vector<std::size_t> sequences, const Chosen& chosen, const std::vector<std::size_t>& places) const {
    Packed packed{std::move(sequences)};
    std::size_t spare = check_.max_rows - std::min(check_.max_rows, packed.sequences.size());
    for (const std::size_t s : packed.sequences) {
      Capabilities can = check_.capabilities;
      can.max_rows = std::min(can.max_rows, spare == unlimited ? unlimited : spare + 1);
      const ProbeDraft& draft = packed.drafts.emplace_back(texts_[s].draft(chosen(s).step, places[s], 1, can));
      if (spare != unlimited) spare -= draft.tokens.size();
      const TokenSpan anchor = texts_[s].before(places[s], 1);
      packed.batches.emplace_back(anchor.begin(), anchor.end());
      packed.batches.back().insert(packed.batches.back().end(), draft.tokens.begin(), draft.tokens.end());
    }
    for (std::size_t k = 0; k < packed.sequences.size(); ++k) {
      const std::size_t s = packed.sequences[k];
      const ProbeDraft& draft = packed.drafts[k];
      packed.passes.push_back(
          {s, packed.batches[k], draft.tokens.size(), draft.parents, texts_[s].prompt() + places[s]});
      packed.text += (k == 0 ? "" : "; ") + std::to_string(s) + ": " + listed(TokenSpan(packed.batches[k])) + ", " +
                     std::to_string(draft.tokens.size());
      if (check_.capabilities.max_leaves > 1 && !draft.parents.empty())
        packed.text += ", parents " + listed(std::span<const NodeIndex>(draft.parents));
    }
    return packed;
  }
  /// Runs the pass, compares its picks and commits its parts, except those that are cancelled. Returns the first
  /// difference, or nullopt if there is none.
  template <class Chosen>
  std::optional<Difference> run_pass(Progress& run, const Packed& packed, const Chosen& chosen,
                                     const std::string& trace, std::size_t& failed, std::size_t& checks) {
    auto&& answer = run.server.verify(packed.passes);
    if (!succeeded(answer)) return Difference{"verify() failed: " + trace};
    auto&& picks = unwrapped(answer);
    run.before = packed.text;
    for (std::size_t k = 0; k < packed.sequences.size(); ++k) {
      const std::size_t s = packed.sequences[k];
      const BatchPart part = chosen(s);
      const std::vector<std::size_t>& path = packed.drafts[k].path;
      const std::size_t take =
          std::max<std::size_t>(1, std::min({part.step.take, path.size() + 1, check_.tokens - run.places[s]}));
      std::vector<std::size_t> rows = {0};
      for (std::size_t d = 0; d < take; ++d) {
        const std::size_t i = d == 0 ? 0 : 1 + path[d - 1];
        if (d > 0) rows.push_back(i);
        const auto got = static_cast<Token>(picks[k][i]);
        const std::size_t place = run.places[s] + d;
        ++checks;
        if (got == texts_[s][place]) continue;
        failed = s;
        return Difference{"token " + std::to_string(place) + " of sequence " + std::to_string(s) + " is " +
                              std::to_string(got) + ", alone it is " + std::to_string(texts_[s][place]) + ": picks[" +
                              std::to_string(k) + "][" + std::to_string(i) + "] of " + trace,
                          near_tie(run.server, k, i)};
      }
      if (part.leaves) {
        run.left[s] = true;
        if constexpr (requires { run.server.leave(s); }) run.server.leave(s);
      }
      if (part.cancelled) continue;
      run.before += " keeps " + std::to_string(s) + ": " + listed(std::span<const std::size_t>(rows));
      if (!keep(run.server, s, rows)) return Difference{"commit(" + std::to_string(s) + ") failed after " + trace};
      run.places[s] += take;
    }
    return {};
  }
  /// Reorders the sequences. Order 0: unchanged; 1: reversed; any other number: shuffled, with the order and the round
  /// as the seed.
  static void shuffle(std::vector<std::size_t>& sequences, std::uint64_t order, std::size_t round) {
    if (order == 1) std::reverse(sequences.begin(), sequences.end());
    if (order < 2) return;
    Random random(mix(order) ^ round);
    for (std::size_t i = sequences.size(); i > 1; --i) std::swap(sequences[i - 1], sequences[random.below(i)]);
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
