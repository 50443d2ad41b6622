// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/control.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/loop/session.hpp"
#include "support/scripted_verifier.hpp"
#include "support/world.hpp"

namespace reprise::testing {

/// The classic faults of speculative decoding, most of them found in a published system.
enum class Fault : std::uint8_t {
  none,
  first_token_unverified,        ///< the first drafted token is always committed
  bonus_off_by_one,              ///< the token after the accepted path is read one row too early
  eos_ignored_inside_block,      ///< EOS counts only as the last token of a pass
  stop_sequence_across_edge,     ///< misses a stop sequence that began in an earlier pass
  limit_overrun,                 ///< the token limit is checked between passes only
  rollback_one_short,            ///< a rejected row stays in the cache
  rollback_one_long,             ///< an accepted row is dropped from the cache
  drafter_stale_after_truncate,  ///< the drafter does not learn of a truncation
  drafter_stale_after_begin,     ///< the drafter does not learn of a new sequence
  state_not_restored,            ///< the engine rolls back late, and never before a pass without draft
  picks_read_too_far,            ///< reads picks after the disagreement, so the sampler advances
  hash_collision_is_a_match,     ///< takes equal hashes for equal tokens
  bonus_dropped,                 ///< no bonus token when the whole draft is accepted
  wrong_child_followed,          ///< always continues at the first child of a tree node
  kept_rows_off_the_path,        ///< of a tree, keeps the first rows instead of those of the path
  auxiliary_accepted,            ///< commits an auxiliary node if it agrees
  restore_forgotten,             ///< does not restore a state that cannot be cut
  replay_forgotten,              ///< restores it, but does not run the accepted tokens again
  constraint_ignored,            ///< sends tokens that a grammar refuses
};
inline constexpr std::size_t fault_count = 20;

/// A small loop with the interface of Session and one optional fault. Without a fault it keeps every property.
template <DraftStrategy Strategy>
class FaultySession {
 public:
  FaultySession(Strategy strategy, Fault fault) : strategy_(std::move(strategy)), fault_(fault) {}

  Result<void> begin(TokenSpan context, const Capabilities& capabilities, std::size_t cached) {
    capabilities_ = capabilities;
    context_.assign(context.begin(), context.end());
    cached_ = cached;
    restart();
    if (fault_ != Fault::drafter_stale_after_begin || !begun_) strategy_.begin(context_);
    begun_ = true;
    return {};
  }
  Result<void> append(TokenSpan tokens) {
    context_.insert(context_.end(), tokens.begin(), tokens.end());
    cached_ = context_.size() - 1;
    restart();
    strategy_.observe(context_, tokens.size(), Origin::prompt);
    return {};
  }
  Result<void> truncate(std::size_t size) {
    finish_ = FinishReason::none;
    trim_ = 0;
    output_begin_ = std::min(output_begin_, size);
    if (fault_ != Fault::drafter_stale_after_truncate) strategy_.truncate(context_, size);
    context_.resize(size);
    cached_ = std::min(cached_, size - 1);
    return {};
  }
  DraftView propose(const Limits& limits) {
    limits_ = &limits;
    DraftBudget budget = limits.draft;
    budget.max_leaves = reprise::detail::max_leaves(limits, capabilities_, DraftShape::tree);
    Draft draft(nodes_, budget);
    if (finish_ == FinishReason::none && output_size() >= limits.max_tokens) finish_ = FinishReason::max_tokens;
    if (finish_ == FinishReason::none && context_.size() >= max_context()) finish_ = FinishReason::context_full;
    if (!finished()) strategy_.propose(context_, draft);
    constraints_.clear();
    return draft_ = draft.view();
  }
  template <class Allowed>
  void constrain(Allowed&& allowed) {
    if (fault_ == Fault::constraint_ignored) return;
    constraints_.resize(draft_.size());
    std::array<Token, 16> path{};
    reprise::detail::constrain(draft_, allowed, constraints_, std::span(path).first(draft_.size()));
  }
  Result<Pass> plan(std::size_t nodes = unlimited) {
    const std::size_t pending = context_.size() - cached_;
    const std::size_t context_left = max_context() - context_.size() - 1;
    const std::size_t tokens_left =
        fault_ != Fault::limit_overrun ? limits_->max_tokens - output_size() - 1 : unlimited;
    const reprise::detail::SelectedNodes found = reprise::detail::select_nodes(
        draft_, std::min({capabilities_.max_depth, limits_->draft.max_depth, context_left, tokens_left}),
        {nodes_of_, parents_, depths_}, constraints_);
    std::size_t rows = std::min(limits_->max_rows, capabilities_.max_rows) - pending;
    if (restores() && pending > capabilities_.max_replay) rows = 0;
    drafted_ = widest({PassShape{1, pending, 0}, unlimited, capabilities_.allowed_widths.values()},
                      std::min({found.nodes, nodes, capabilities_.max_rollback, rows, context_left}));
    batch_.assign(context_.begin() + static_cast<std::ptrdiff_t>(cached_), context_.end());
    for (std::size_t i = 0; i < drafted_; ++i) batch_.push_back(draft_[static_cast<std::size_t>(nodes_of_[i])].token);
    return Pass{.batch = batch_,
                .pending = pending,
                .drafted = drafted_,
                .padding = 0,
                .parents = std::span(parents_).first(drafted_),
                .depths = std::span(depths_).first(drafted_),
                .nodes = std::span(nodes_of_).first(drafted_),
                .kind = DraftKind::ordered,
                .shape = {1, batch_.size(), context_.size()},
                .ticket = {}};
  }
  template <Picks P, class Predicate>
  Result<Decision> resolve(Ticket, P&& picks, Predicate&& predicate) {
    const std::size_t anchor = context_.size() - cached_ - 1;
    std::vector<Token> output(context_.begin() + static_cast<std::ptrdiff_t>(output_begin_), context_.end());
    const std::size_t before = output.size();
    committed_.clear();
    path_.clear();
    walked_ = {};
    std::size_t last = 0;  // the row whose pick comes next, counted from the anchor's
    for (std::size_t i = 0; walked_.reason == FinishReason::none; ++i) {
      const std::size_t first = child(last, {});
      const bool bonus = first == 0;
      if (fault_ == Fault::bonus_dropped && bonus && i > 0) break;
      Token next = picks[last];
      if (fault_ == Fault::first_token_unverified && i == 0 && !bonus) next = batch_[anchor + first];
      std::size_t follows = child(last, next);
      const bool agrees = follows != 0;
      if (fault_ == Fault::picks_read_too_far && !agrees && !bonus) static_cast<void>(picks[first]);
      if (fault_ == Fault::bonus_off_by_one && !agrees && i > 0) next = committed_.back().token;
      if (fault_ == Fault::wrong_child_followed && agrees) follows = first;
      const StopDecision said = predicate(TokenSpan(output), next);
      if (said == StopDecision::stop_before) {
        walked_.reason = FinishReason::predicate;
        break;
      }
      const TokenSpan seen = fault_ == Fault::stop_sequence_across_edge ? TokenSpan(output).subspan(before) : output;
      walked_ = reprise::detail::check_stop(*limits_, seen, next);
      if (fault_ == Fault::eos_ignored_inside_block && agrees && walked_.reason == FinishReason::eos) walked_ = {};
      output.push_back(next);
      committed_.push_back({next, anchor + last, agrees});
      if (agrees) path_.push_back(nodes_of_[follows - 1]);
      if (walked_.reason == FinishReason::none && said == StopDecision::stop_after)
        walked_.reason = FinishReason::predicate;
      const bool full = output.size() >= limits_->max_tokens && fault_ != Fault::limit_overrun;
      if (walked_.reason == FinishReason::none && full) walked_.reason = FinishReason::max_tokens;
      if (walked_.reason == FinishReason::none && context_.size() + committed_.size() >= max_context())
        walked_.reason = FinishReason::context_full;
      if (!agrees) break;
      last = follows;
    }
    keep_ = anchor + committed_.size();
    rows_.clear();
    for (std::size_t row = 0; row < anchor; ++row) rows_.push_back(row);
    for (const CommittedToken& token : committed_) rows_.push_back(token.row);
    if (fault_ == Fault::rollback_one_short && !rows_.empty() && rows_.back() + 1 < batch_.size())
      rows_.push_back(rows_.back() + 1);
    if (fault_ == Fault::rollback_one_long && keep_ > anchor + 1) rows_.pop_back();
    if (fault_ == Fault::kept_rows_off_the_path)
      for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = i;
    restore_ = restores() && keep_ < batch_.size();
    return Decision{.tokens = committed_,
                    .rows = rows_,
                    .keep = rows_.size(),
                    .restore = restore_,
                    .accepted = path_.size(),
                    .finish = walked_.reason};
  }
  Result<void> commit(Ticket) {
    const std::size_t before = context_.size();
    if (!restore_ || fault_ == Fault::replay_forgotten) cached_ += keep_;
    for (const CommittedToken& token : committed_) context_.push_back(token.token);
    finish_ = walked_.reason;
    trim_ = walked_.trim;
    const TokenSpan context = context_;
    strategy_.feedback(context.first(before), {draft_, std::span(nodes_of_).first(drafted_), path_, {}, Cut::none, {}});
    strategy_.observe(context, context.size() - before, Origin::output);
    return {};
  }

  [[nodiscard]] bool finished() const { return finish_ != FinishReason::none; }
  [[nodiscard]] FinishReason finish_reason() const { return finish_; }
  [[nodiscard]] TokenSpan context() const { return context_; }
  [[nodiscard]] TokenSpan output() const { return context().subspan(output_begin_, output_size() - trim_); }
  [[nodiscard]] TokenSpan settled_output(const Limits& limits) const {
    return output().first(output().size() - (finished() ? 0 : held_back(limits, output())));
  }
  [[nodiscard]] std::size_t cached() const { return cached_; }
  [[nodiscard]] const Strategy& strategy() const { return strategy_; }

 private:
  void restart() {
    output_begin_ = context_.size();
    finish_ = FinishReason::none;
    trim_ = 0;
  }
  /// Returns the first drafted row, counted from 1, that follows row `parent` (with `token`, if given), or 0 if there
  /// is none.
  [[nodiscard]] std::size_t child(std::size_t parent, std::optional<Token> token) const {
    for (std::size_t row = 1; row <= drafted_; ++row)
      if (parents_[row - 1] + 1 == static_cast<NodeIndex>(parent) &&
          (fault_ == Fault::auxiliary_accepted || !draft_[static_cast<std::size_t>(nodes_of_[row - 1])].auxiliary) &&
          token.value_or(batch_[batch_.size() - drafted_ + row - 1]) == batch_[batch_.size() - drafted_ + row - 1])
        return row;
    return 0;
  }
  [[nodiscard]] std::size_t output_size() const { return context_.size() - output_begin_; }
  [[nodiscard]] bool restores() const { return capabilities_.rollback == Rollback::snapshot; }
  [[nodiscard]] std::size_t max_context() const { return std::min(limits_->max_context, capabilities_.max_context); }

  Strategy strategy_;
  Fault fault_;
  Capabilities capabilities_;
  std::vector<Token> context_;
  std::size_t cached_ = 0;
  std::size_t output_begin_ = 0;
  std::size_t trim_ = 0;
  FinishReason finish_ = FinishReason::none;
  bool begun_ = false;
  const Limits* limits_ = nullptr;
  std::array<DraftNode, 16> nodes_;
  std::array<NodeIndex, 16> nodes_of_{};  // the node of each row
  std::array<NodeIndex, 16> parents_{};
  std::array<std::uint32_t, 16> depths_{};
  DraftView draft_;
  std::vector<Token> batch_;
  std::size_t drafted_ = 0;
  std::vector<CommittedToken> committed_;
  std::vector<NodeIndex> path_;
  std::vector<std::size_t> rows_;
  std::vector<reprise::detail::Constraint> constraints_;
  std::size_t keep_ = 0;
  bool restore_ = false;
  reprise::detail::StopCheck walked_;
};

/// An engine that rolls back late. Rejected rows stay until the next pass, and the fault does not drop them before a
/// pass without a draft. So recurrent engines fail: they restore the state of the last draft only when the next draft
/// begins.
class LateRollbackEngine {
 public:
  LateRollbackEngine(const ScriptedOptions& options, Fault fault)
      : inner_(options), faulty_(fault == Fault::state_not_restored), keeps_(fault == Fault::restore_forgotten) {}

  Result<ScriptedVerifier::LazyPicks> verify(TokenSpan batch, std::size_t drafted) {
    take(batch, drafted);
    return inner_.verify(batch, drafted);
  }
  Result<ScriptedVerifier::LazyPicks> verify_tree(TokenSpan batch, std::size_t drafted,
                                                  std::span<const NodeIndex> parents) {
    take(batch, drafted);
    return inner_.verify_tree(batch, drafted, parents);
  }
  Result<void> commit(std::size_t keep) {
    refused_.assign(batch_.begin() + static_cast<std::ptrdiff_t>(std::min(keep, batch_.size())), batch_.end());
    return inner_.commit(keep);
  }
  Result<void> commit_rows(std::span<const std::size_t> rows) {
    refused_.clear();
    for (std::size_t row = 0; row < batch_.size(); ++row)
      if (std::find(rows.begin(), rows.end(), row) == rows.end()) refused_.push_back(batch_[row]);
    return inner_.commit_rows(rows);
  }
  void snapshot() { inner_.snapshot(); }
  Result<void> restore(std::size_t committed) {
    refused_.clear();
    auto restored = inner_.restore(committed);
    if (keeps_) inner_.prefill(batch_);
    return restored;
  }
  [[nodiscard]] std::size_t allowed(TokenSpan path) const { return inner_.allowed(path); }
  void prefill(TokenSpan tokens) {
    inner_.prefill(tokens);
    refused_.clear();
  }
  void truncate(std::size_t rows, std::optional<std::size_t> next_row = {}) {
    inner_.truncate(rows, next_row);
    refused_.clear();
  }
  [[nodiscard]] Capabilities capabilities() const { return inner_.capabilities(); }
  [[nodiscard]] TokenSpan cache() const { return inner_.cache(); }
  [[nodiscard]] const std::vector<std::string>& violations() const { return inner_.violations(); }

 private:
  void take(TokenSpan batch, std::size_t drafted) {
    if (faulty_ && drafted == 0 && !refused_.empty()) inner_.prefill(refused_);
    batch_.assign(batch.begin(), batch.end());
    refused_.clear();
  }

  ScriptedVerifier inner_;
  bool faulty_;
  bool keeps_;
  std::vector<Token> batch_;
  std::vector<Token> refused_;
};

/// The faulty loop, for World.
struct FaultyKit {
  using Session = FaultySession<WorldStrategy>;
  using Engine = LateRollbackEngine;
  static constexpr bool complete = false;
  Fault fault = Fault::none;
  [[nodiscard]] Session session(WorldStrategy strategy) const { return Session(std::move(strategy), fault); }
  [[nodiscard]] Engine engine(const ScriptedOptions& options) const { return Engine(options, fault); }
};

/// An index that finds n-grams by the exclusive or of their tokens, as published systems have done. With the fault it
/// never compares the tokens, so every permutation of an n-gram is a match.
class XorIndex {
 public:
  explicit XorIndex(bool faulty) : faulty_(faulty) {}
  void append(TokenSpan tokens) { tokens_.insert(tokens_.end(), tokens.begin(), tokens.end()); }
  [[nodiscard]] TokenSpan tokens() const { return tokens_; }
  [[nodiscard]] std::size_t find(const MatchLimits& limits, std::span<Match> out) const {
    std::size_t found = 0;
    for (std::size_t end = tokens_.size();
         end-- > limits.shortest && found < std::min<std::size_t>(out.size(), limits.candidates);) {
      if (hash(end, limits.shortest) != hash(tokens_.size(), limits.shortest)) continue;
      const auto length = reprise::detail::agreement(tokens_, end, tokens_.size(), limits.longest);
      if (length < limits.shortest && !faulty_) continue;
      out[found++] = {static_cast<Position>(end), std::max(length, limits.shortest)};
    }
    return found;
  }

 private:
  [[nodiscard]] Token hash(std::size_t end, std::size_t n) const {
    Token hash = 0;
    for (std::size_t i = 1; i <= n && i <= end; ++i) hash ^= tokens_[end - i];
    return hash;
  }

  bool faulty_;
  std::vector<Token> tokens_;
};

}  // namespace reprise::testing
