// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/evidence/hit_rate.hpp"
#include "reprise/extras/token_table.hpp"

namespace reprise::inline v0 {

/// Settings of TokenTableDrafter. presets.hpp has those of other systems.
struct TokenTableDrafterOptions {
  /// Where the table knows fewer tokens in a row, nothing is drafted, however many there is room for; a table that
  /// knows max_draft knows enough.
  std::size_t min_draft = 1;
  std::size_t max_draft = 32;  ///< most tokens drafted; Limits::draft and Session's max_draft_nodes hold too
  /// The drafter writes what it observes, usually into the table that it reads. For one thread alone: see Threads.
  /// nullptr: the caller writes, with TokenTable::learn().
  TokenTable* learn_into = nullptr;
  /// N-grams of observed tokens are learned together, as soon as the tokens from the first of them on are more than
  /// this many. begin() learns at once.
  std::size_t learn_gap = 0;
  /// The last token of the context is learned one token later, and nothing is drafted until an n-gram lies before it.
  bool without_anchor = false;
  /// After so many rounds in a row in which less than `poor_share` of what was sent was accepted, nothing is drafted
  /// for `rest_rounds` rounds, and after another poor round again. 0: it never rests. Rounds in which control did not
  /// ask pass the rest as others do: the text goes on in them. By default rounds count as poor in which nothing was
  /// accepted: how long a draft is worth its rows is for control to say.
  std::uint32_t poor_rounds = 5;
  Probability poor_share = Probability::ratio(1, 64);
  std::uint32_t rest_rounds = 8;
};

/// Drafts a chain by asking a TokenTable again and again: what follows the last n tokens, then what follows the last n
/// with that one, and so on. (llama.cpp's ngram-mod, PR 19164; mlx-lm's PR 1297.)
///
/// Who writes: many sequences share one table, and a table has one writer. So the drafter only reads, and the engine
/// calls TokenTable::learn(context, what it learned before) where and when it likes: when a request ends, or now and
/// then while it runs. An engine that has one thread for all may let the drafters write (learn_into).
///
/// A bad streak concerns the sequence that has it. The two systems above empty the table for everybody after three to
/// five poor rounds of one sequence, and whoever drafts badly, or wants to, costs all others their memory. Here such a
/// sequence stops asking for a while (Cut::throttled), and what is stale in the table goes by being overwritten.
///
/// Probabilities are those of the next token at depths 1, 2, 3 and beyond, learned from what the target picks, so that
/// control can decide how much is sent.
///
/// As memory goes, what other sequences have written is drafted from as well: S1, S6, S7 and S8 hold as long as nobody
/// writes to the table. Engines in which several ranks draft the same need tables with the same key that learn the same
/// at the same round, or one rank that drafts for all.
///
/// Cost of propose: n hashes, and one cache line of the table for each token, min_draft of them at least where the
/// table knows so many. Memory: the table's; the drafter allocates nothing. Threads: one at a time; copies are
/// independent. Any number of drafters may read a table while one thread writes to it; with learn_into a drafter is
/// that writer. The table has to outlive them.
class TokenTableDrafter {
 public:
  /// Without a table it drafts nothing.
  explicit TokenTableDrafter(const TokenTable* table, const TokenTableDrafterOptions& options = {}) noexcept
      : table_(table), options_(options) {}

  void begin(TokenSpan context) noexcept {
    next_ = 0;
    rates_ = initial_rates();
    poor_ = 0;
    rest_ = 0;
    learn(context, 0);
  }
  void observe(TokenSpan context, std::size_t, Origin) noexcept { learn(context, options_.learn_gap); }
  void truncate(TokenSpan context, std::size_t size) noexcept { forget(std::min(size, context.size())); }
  /// Keeps what was learned from the target, and learns the tokens after the first that differs.
  void rebase(TokenSpan before, TokenSpan context) noexcept {
    forget(static_cast<std::size_t>(std::mismatch(before.begin(), before.end(), context.begin(), context.end()).first -
                                    before.begin()));
    learn(context, options_.learn_gap);
  }

  void propose(TokenSpan context, Draft& draft) const noexcept {
    if (rest_ > 0) return draft.hold_back();
    const std::size_t unlearned = options_.without_anchor ? 1 : 0;
    if (table_ == nullptr || context.size() < table_->ngram() + unlearned) return;
    // The draft refuses more by itself; each token not asked for saves a cache miss in the table.
    const std::size_t most = std::min({options_.max_draft, draft.budget().max_nodes, draft.budget().max_depth});
    if (most == 0) return;
    const std::size_t least = std::min(options_.min_draft, options_.max_draft);
    const std::size_t n = table_->ngram();
    detail::CyclicHash hash = table_->hash(context);
    std::array<Token, TokenTable::largest_ngram> last;  // NOLINT(*-member-init): the n that decide, the oldest at i % n
    std::copy(context.end() - static_cast<std::ptrdiff_t>(n), context.end(), last.begin());
    Probability path = Probability::one();
    bool open = true;       // the draft has refused nothing
    std::size_t known = 0;  // tokens in a row
    for (; known < least || (open && known < most); ++known) {
      const std::optional<Token> token = table_->find(hash);
      if (!token) break;
      path = path * rates_[std::min(known, depths - 1)].probability();
      open = open && known < most &&
             draft.extend({.token = *token,
                           .path_probability = path,
                           .match_length = static_cast<std::uint16_t>(n),
                           .source = DraftSource::history});
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
    poor_ = poor ? poor_ + 1 : 0;  // not by a rest: another poor round is enough then
    if (poor_ >= options_.poor_rounds) rest_ = options_.rest_rounds;
  }

  [[nodiscard]] const TokenTableDrafterOptions& options() const noexcept { return options_; }
  [[nodiscard]] const TokenTable* table() const noexcept { return table_; }
  /// Without the table: nothing.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return 0; }

 private:
  static constexpr std::size_t depths = 4;
  static constexpr std::array<HitRate, depths> initial_rates() noexcept {
    constexpr HitRate guess(Probability::ratio(7, 8));  // only until something was learned
    return {guess, guess, guess, guess};
  }

  /// Only the first `size` tokens are as they were learned.
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
  std::size_t next_ = 0;  // where the first n-gram begins that was not learned
  std::array<HitRate, depths> rates_ = initial_rates();
  std::uint32_t poor_ = 0;  // poor rounds in a row
  std::uint32_t rest_ = 0;
};

static_assert(RebasableStrategy<TokenTableDrafter> && MeasurableStrategy<TokenTableDrafter>);

}  // namespace reprise
