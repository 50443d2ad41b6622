// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/evidence/detail/hit_rate.hpp"
#include "reprise_methods/repetition_gate.hpp"
#include "reprise_methods/token_table.hpp"

namespace reprise { inline namespace v0 {

/// Settings of TokenTableDrafter. The presets below have the settings of other systems.
struct TokenTableDrafterOptions {
  /// Minimum number of consecutive tokens that the table must know; with fewer, nothing is drafted. It applies even if
  /// the budget of the draft is smaller. Values above max_draft count as max_draft.
  std::size_t min_draft = 1;
  std::size_t max_draft = 32;  ///< upper bound on drafted tokens; Limits::draft and Session's max_draft_nodes apply too
  /// The table into which the drafter writes the tokens that it observes, usually the table that it reads. Only one
  /// thread may write to a table: see Threads. nullptr: the caller calls TokenTable::learn().
  TokenTable* learn_into = nullptr;
  /// Observed tokens are learned in batches. A batch is learned as soon as more than this many tokens have been
  /// observed from the start of the first unlearned n-gram on. begin() learns at once.
  std::size_t learn_gap = 0;
  /// If true, the last token of the context is learned one token later, and nothing is drafted until n tokens precede
  /// it.
  bool without_anchor = false;
  /// After this many consecutive poor rounds, nothing is drafted for `rest_rounds` rounds. After such a rest, one more
  /// poor round starts another. 0: never rests. A round is poor if less than `poor_share` of its sent tokens are
  /// accepted. By default, this means that none is accepted: control already decides how many tokens are worth their
  /// rows. Rounds in which control requests no draft also count towards the rest, because they advance the text too.
  std::uint32_t poor_rounds = 5;
  Probability poor_share = Probability::ratio(1, 64);
  std::uint32_t rest_rounds = 8;
};

/// Drafts a chain by repeated lookups in a TokenTable: it finds the token after the last n tokens, appends it, and
/// repeats. Sources: llama.cpp's ngram-mod (PR 19164) and mlx-lm's PR 1297.
///
/// Writers: many sequences share one table, and a table has one writer. By default, the drafter therefore only reads.
/// The engine calls TokenTable::learn(context, size at the last call) when a request ends, or occasionally while it
/// runs. An engine with one thread for all sequences may let the drafters write (learn_into).
///
/// A run of poor rounds affects only its own sequence. The two systems above empty the table for all sequences after
/// three to five poor rounds of one sequence. There, a sequence that drafts badly, even on purpose, deletes the entries
/// of all others. Here, such a sequence pauses drafting for a while (Cut::throttled), and stale entries are overwritten
/// over time.
///
/// Probabilities are learned from the target's picks: separately for depths 1, 2 and 3, and together for greater
/// depths. Control can thus decide how much to send.
///
/// Drafts also depend on the text of other sequences in the table. S1, S4, S6, S7 and S8 therefore hold only while
/// nobody writes to the table. If several ranks must draft the same tokens, their tables need the same key and must
/// learn the same text in the same round. Otherwise, let one rank draft for all.
///
/// Cost of propose(): n hashes, plus one cache line of the table per token. Up to min_draft tokens are looked up even
/// if the draft refuses them, unless its budget is 0. Memory: that of the table; the drafter allocates nothing.
/// Threads: one at a time; copies are independent. Any number of drafters may read a table while one thread writes to
/// it. With learn_into, the drafter's thread is that thread. The table must outlive the drafters.
class TokenTableDrafter {
 public:
  /// `table`: if null, nothing is drafted.
  explicit TokenTableDrafter(const TokenTable* table, const TokenTableDrafterOptions& options = {}) noexcept
      : table_(table), options_(options) {
    rates_.fill(guess);
  }

  void begin(TokenSpan context) noexcept {
    next_ = 0;
    rates_.fill(guess);
    poor_ = 0;
    rest_ = 0;
    learn(context, 0);
  }
  void observe(TokenSpan context, std::size_t, Origin) noexcept { learn(context, options_.learn_gap); }
  void truncate(TokenSpan context, std::size_t size) noexcept { forget(std::min(size, context.size())); }
  /// Keeps the probabilities learned from the target. With `learn_into`, learns the tokens of `context` from the first
  /// difference on.
  void rebase(TokenSpan before, TokenSpan context) noexcept {
    forget(static_cast<std::size_t>(std::mismatch(before.begin(), before.end(), context.begin(), context.end()).first -
                                    before.begin()));
    learn(context, options_.learn_gap);
  }

  void propose(TokenSpan context, Draft& draft) const noexcept {
    if (rest_ > 0) return draft.hold_back();
    const std::size_t unlearned = options_.without_anchor ? 1 : 0;
    if (table_ == nullptr || context.size() < table_->ngram() + unlearned) return;
    // The draft would refuse further tokens, but each skipped lookup saves a cache miss in the table.
    const std::size_t most = std::min({options_.max_draft, draft.budget().max_nodes, draft.budget().max_depth});
    const TokenSpan end = context.last(table_->ngram());
    if (most == 0 || std::any_of(end.begin(), end.end(), [&](Token token) {
          return !in_vocabulary(token, draft.budget().vocabulary);  // a match does not cross such a token
        }))
      return;
    const std::size_t least = std::min(options_.min_draft, options_.max_draft);
    const std::size_t n = table_->ngram();
    detail::CyclicHash hash = table_->hash(context);
    std::array<Token, TokenTable::largest_ngram> last;  // NOLINT(*-member-init): the last n, oldest at known % n
    std::copy(context.end() - static_cast<std::ptrdiff_t>(n), context.end(), last.begin());
    Probability path = Probability::one();
    bool open = true;       // false once the draft has refused a token
    std::size_t known = 0;  // consecutive tokens that the table knows
    for (; known < least || (open && known < most); ++known) {
      const std::optional<Token> token = table_->find(hash);
      if (!token) break;
      path = path * rates_[std::min(known, depths - 1)].probability();
      open = open && known < most &&
             draft.extend({.token = *token,
                           .path_probability = path,
                           .match_length = static_cast<std::uint16_t>(n),
                           .source = DraftSource::store});
      table_->advance(hash, *token, std::exchange(last[known % n], *token));
    }
    if (known == 0 || known >= least) return;
    draft.truncate(0);
    draft.leave_out();
  }

  void feedback(TokenSpan, const Outcome& outcome) noexcept {
    if (rest_ > 0) --rest_;
    for_each_tested(outcome, [&](std::size_t i, bool hit) { rates_[std::min(i, depths - 1)].learn(hit); });
    const auto ours = [&](NodeIndex i) {
      return outcome.draft[static_cast<std::size_t>(i)].source != DraftSource::padding;
    };
    const auto sent = std::count_if(outcome.sent.begin(), outcome.sent.end(), ours);
    if (sent == 0 || options_.poor_rounds == 0) return;
    const auto accepted = std::count_if(outcome.accepted.begin(), outcome.accepted.end(), ours);
    const bool poor = Probability::ratio(static_cast<std::uint32_t>(accepted), static_cast<std::uint32_t>(sent)) <
                      options_.poor_share;
    poor_ = poor ? std::min(poor_ + 1, options_.poor_rounds)
                 : 0;  // a rest does not reset it, so one more poor round is enough after a rest
    if (poor_ >= options_.poor_rounds) rest_ = options_.rest_rounds;
  }

  [[nodiscard]] const TokenTableDrafterOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] const TokenTable* table() const noexcept { return table_; }
  /// Returns 0: the table is not counted.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return 0; }

 private:
  static constexpr std::size_t depths = 4;
  static constexpr detail::HitRate guess{Probability::ratio(7, 8)};  // until something is learned

  /// Marks the n-grams that contain tokens from `size` on as unlearned, because these tokens have changed.
  void forget(std::size_t size) noexcept {
    if (options_.learn_into != nullptr)
      next_ = std::min(next_, size - std::min<std::size_t>(size, options_.learn_into->ngram()));
  }
  void learn(TokenSpan context, std::size_t gap) noexcept {
    if (options_.learn_into == nullptr) return;
    const std::size_t n = options_.learn_into->ngram();
    const std::size_t end = context.size() - std::min<std::size_t>(context.size(), options_.without_anchor ? 1 : 0);
    if (end <= n || end <= next_ + gap) return;
    options_.learn_into->learn(context.first(end), next_ + n);
    next_ = end - n;
  }

  const TokenTable* table_;
  TokenTableDrafterOptions options_;
  std::size_t next_ = 0;  // position at which the first unlearned n-gram begins
  std::array<detail::HitRate, depths> rates_;
  std::uint32_t poor_ = 0;  // consecutive poor rounds
  std::uint32_t rest_ = 0;
};

static_assert(RebasableStrategy<TokenTableDrafter> && MeasurableStrategy<TokenTableDrafter>);

}}  // namespace reprise

namespace reprise { inline namespace v0 { namespace presets {

// The tables of the other systems have three faults that TokenTable does not have:
//
//  * They return tokens of other n-grams if hashes collide, with a probability that grows as they fill.
//  * They remove the entries of all sequences when a quarter of their places is used, or after a few poor rounds of one
//    sequence.
//  * Writers can target the entries of other writers.
//
// Until one of these faults occurs there, the drafts are the same, token for token. The first draft is made after
// begin() with the prompt and after the first output token.

/// Returns the table settings of llama.cpp's ngram-mod (PR 19164; --spec-ngram-mod-n-match), with its 16 MiB.
/// TokenTable holds two million n-grams in them; the original resets at one million.
inline TokenTableOptions llama_cpp_mod_table(std::uint32_t n = 24) noexcept { return {.ngram = n}; }

/// Returns the drafter settings of llama.cpp's ngram-mod (--spec-ngram-mod-n-min, --spec-ngram-mod-n-max). Chains
/// shorter than n_min tokens are dropped. The prompt is learned at once, the output in batches, and the anchor one
/// token later. A sequence rests after five consecutive rounds with less than a quarter of the sent tokens accepted.
/// The original resets its table instead (as first published: after three rounds below a half). By default,
/// Limits::draft cuts each draft to 32 nodes, and Session to 64: raise them to n_max.
inline TokenTableDrafterOptions llama_cpp_mod(TokenTable* learn_into, std::size_t n_min = 48,
                                              std::size_t n_max = 64) noexcept {
  TokenTableDrafterOptions options;
  options.min_draft = n_min;
  options.max_draft = n_max;
  options.learn_into = learn_into;
  options.learn_gap = 32;
  options.without_anchor = true;
  options.poor_rounds = 5;
  options.poor_share = Probability::ratio(1, 4);
  return options;
}

/// Returns the table settings of mlx-lm's ngram-mod (PR 1297; --ngram-size).
inline TokenTableOptions mlx_lm_mod_table(std::uint32_t n = 16) noexcept { return {.ngram = n}; }

/// Returns the drafter settings of mlx-lm's ngram-mod (--num-draft-tokens). Chains have no minimum length, and the
/// anchor is learned with the other tokens. A sequence rests after three consecutive rounds with less than half of the
/// sent tokens accepted. The original resets its table instead.
inline TokenTableDrafterOptions mlx_lm_mod(TokenTable* learn_into, std::size_t draft_length = 3) noexcept {
  TokenTableDrafterOptions options;
  options.max_draft = draft_length;
  options.learn_into = learn_into;
  options.learn_gap = 32;
  options.poor_rounds = 3;
  options.poor_share = Probability::ratio(1, 2);
  return options;
}

/// Returns the settings of mlx-lm's adaptive gate (PR 1297), which precedes all its lookups. It allows no drafts for
/// prompts in which fewer than 2% of the 3-grams occurred before. true corresponds to
/// disable_adaptive_gate of a request in mlx-lm.
inline RepetitionGateOptions mlx_lm_gate() noexcept { return {}; }

}}}  // namespace reprise::presets
