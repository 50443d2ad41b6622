// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise_testing/random.hpp"
#include "support/scripted_model.hpp"
#include "support/scripted_rows.hpp"

namespace reprise::testing {

/// A deterministic engine for tests, with every refinement of Verifier except margins and the walk
/// (SelfWalkingScriptedVerifier). Its greedy picks depend only on its own cache, so a wrong rollback shows in the
/// output. Its sampler (random stream, repetition penalty) advances when a pick is read, so reading too many picks
/// shows as well. violations() lists the caller's violations of clauses V1 to V12 and of the Capabilities.
///
/// With Capabilities::rollback == Rollback::snapshot, commit() cannot cut the cache: a pass is kept whole or restored.
/// A scripted fault occurs halfway: in verify() after half of the rows are written, and in commit() and restore() after
/// the cache is cut. A fault in a pick occurs before the token is drawn. The next verify() undoes a void pass,
/// including its effect on the sampler (V5). A copy is an independent engine. Threads: one at a time.
class ScriptedVerifier {
 public:
  /// Picks that are computed when they are read. Valid until commit(), restore() or the next verify().
  class LazyPicks {
   public:
    LazyPicks(ScriptedVerifier& verifier, std::uint64_t pass) noexcept : verifier_(&verifier), pass_(pass) {}
    Token operator[](std::size_t i) const { return verifier_->pick(pass_, i); }

   private:
    ScriptedVerifier* verifier_;
    std::uint64_t pass_;
  };

  explicit ScriptedVerifier(ScriptedOptions options = {}) : model_(std::move(options)) {
    sampler_.random = this->options().seed;
  }
  /// Makes an engine prefilled with all but the last token of `prompt`, as a session expects it.
  ScriptedVerifier(ScriptedOptions options, TokenSpan prompt) : ScriptedVerifier(std::move(options)) {
    if (prompt.empty()) return;
    prefill(prompt.first(prompt.size() - 1));
    behind_ = std::vector<Token>{prompt.back()};
  }

  /// Appends to the cache tokens that this engine did not pick, for example a prompt or a user turn.
  void prefill(TokenSpan tokens) {
    discard_void_pass();
    for (const Token token : tokens) cache_.push_back(token);
    behind_.reset();
  }

  Result<LazyPicks> verify(TokenSpan batch, std::size_t drafted) {
    rows_.set_chain(drafted < batch.size() ? drafted : 0);
    return run(batch, drafted, false);
  }
  Result<LazyPicks> verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    const bool sound = rows_.set_tree(parents, drafted);
    expect(sound, "V6: each drafted row has a parent, and it comes before it");
    if (!sound) return Error{ErrorCode::verifier_failed, "the parents do not form a tree"};
    return run(batch, drafted, true);
  }

  Result<void> commit(std::size_t keep) {
    std::vector<std::size_t> rows(std::min(keep, cache_.size() + 1));  // a `keep` that is too large stays too large
    for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = row;
    return commit_rows(rows);
  }
  Result<void> commit_rows(std::span<const std::size_t> rows) {
    ++counters_.commits;
    const std::size_t keep = rows.size();
    bool legal = open_ && keep + 1 >= rows_.pending;
    for (std::size_t i = 0; legal && i < keep; ++i)
      legal = rows[i] < cache_.size() - rows_.base && (i == 0 || rows[i - 1] < rows[i]);
    expect(legal, "V4: commit() follows a verify() and keeps pending - 1 rows at least and the batch at most");
    const bool whole = !legal || !restores() || keep == cache_.size() - rows_.base;
    expect(whole, "V10: a state that cannot be cut is kept whole, or restored");
    if (!legal || !whole) return Error{ErrorCode::verifier_failed, "the commit does not match the last pass"};
    const std::size_t committed = keep + 1 - rows_.pending;
    check_reads(committed);
    // If stop_before refuses the first pick, the anchor is rolled back too. Rollback limits do not count that row.
    expect(cache_.size() - rows_.base - std::max(keep, rows_.pending) <= options().capabilities.max_rollback,
           "Capabilities::max_rollback was exceeded");
    expect(is_read_path(rows), "V8: the rows that are kept are not those of the path that was read");
    for (std::size_t i = 0; i < keep; ++i) cache_[rows_.base + i] = cache_[rows_.base + rows[i]];
    cache_.resize(rows_.base + keep);
    if (strikes(options().faults.commit_every, counters_.commits)) return fail("scripted fault in commit");
    if (committed == 0)
      behind_.reset();
    else
      behind_.emplace(1, path_[committed - 1]);
    close(committed);
    return {};
  }
  /// Saves the state of the cache before the next pass, for restore().
  void snapshot() {
    discard_void_pass();
    saved_rows_ = cache_.size();
    saved_ = true;
  }
  Result<void> restore(std::size_t committed) {
    ++counters_.commits;
    ++counters_.restores;
    const bool legal = open_ && pass_saved_;
    expect(legal, "V10: restore() follows a verify() that a snapshot() came before");
    if (!legal) return Error{ErrorCode::verifier_failed, "restore() without a snapshot to go back to"};
    expect(rows_.pending + committed <= cache_.size() - rows_.base,
           "V10: a pass that is kept whole is committed, not restored");
    check_reads(committed);
    std::vector<Token> behind(cache_.begin() + static_cast<std::ptrdiff_t>(rows_.base),
                              cache_.begin() + static_cast<std::ptrdiff_t>(rows_.base + rows_.pending));
    cache_.resize(saved_rows_);
    if (strikes(options().faults.commit_every, counters_.commits)) return fail("scripted fault in restore");
    behind.insert(behind.end(), path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(committed));
    behind_ = std::move(behind);
    close(committed);
    return {};
  }
  /// Returns the virtual duration of the last pass; see ScriptedOptions::latency.
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(last_time_));
  }

  /// Returns the likeliest tokens after row (anchor + i), at most ScriptedOptions::revealed, likeliest first. Returns
  /// none if no pass is open or if the row does not exist.
  TokenSpan top_k(std::size_t i) {
    const bool inside = open_ && i <= rows_.parents.size();
    expect(inside, "V11: candidates are those of a row of a pass that is open");
    ranked_.clear();
    if (inside && options().revealed > 0) ranked_ = model_.ranked(seen_by(i), options().revealed);
    return ranked_;
  }
  /// Returns the distribution after row (anchor + i), which the caller reads instead of the pick. See
  /// ScriptedModel::weigh().
  std::span<const float> probabilities(std::size_t i) {
    drawn_elsewhere_ = true;
    if (!read(i)) return {};
    path_.push_back(-1);
    model_.weigh(seen_by(i), probabilities_);
    return probabilities_;
  }
  double uniform() { return static_cast<double>(mix(sampler_.random++) >> 11) / 9007199254740992.0; }
  /// Returns the number of leading tokens of `path` that ScriptedOptions::rule allows. Returns path.size() if there is
  /// no rule, or while the last committed tokens are unknown: for example after prefill() or truncate(), until the next
  /// commit.
  [[nodiscard]] std::size_t allowed(TokenSpan path) const {
    if (!options().rule || !behind_) return path.size();
    const std::size_t rows = open_ ? rows_.base : cache_.size();
    std::vector<Token> text(cache_.begin() + static_cast<std::ptrdiff_t>(rows - std::min(rows, options().order)),
                            cache_.begin() + static_cast<std::ptrdiff_t>(rows));
    text.insert(text.end(), behind_->begin(), behind_->end());
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (!model_.allows(text, path[i])) return i;
      text.push_back(path[i]);
    }
    return path.size();
  }

  /// Truncates the cache to `rows` rows and restores the sampler to its state before the pick after row `next_row`, if
  /// that pick was made. By default, `next_row` is `rows`, which is right for one pending token.
  void truncate(std::size_t rows, std::optional<std::size_t> next_row = {}) {
    lose_cache(rows);
    const std::size_t row = next_row.value_or(rows);
    if (row >= history_.size()) return;
    sampler_ = history_[row];
    history_.resize(row);
  }
  /// Drops the cache after the first `rows` rows, as preemption does. The sampler keeps its state.
  void lose_cache(std::size_t rows) {
    discard_void_pass();
    cache_.resize(std::min(rows, cache_.size()));
    behind_.reset();
  }

  /// Returns the token that a greedy model picks after `context`.
  [[nodiscard]] Token greedy(TokenSpan context) const { return model_.greedy(context); }
  /// Returns the greedy picks of the open pass at once, like engines that return a span. For a chain, these are the
  /// picks up to and including the first that disagrees; for a tree, all picks. The span is valid until the next
  /// verify().
  [[nodiscard]] TokenSpan greedy_picks() {
    // The accepted path consists of these tokens, whichever rows were drafted.
    all_at_once_ = true;
    path_.clear();
    for (std::vector<Token> text = seen_by(0); path_.size() <= rows_.parents.size(); text.push_back(path_.back()))
      path_.push_back(greedy(text));
    all_picks_.clear();
    for (std::size_t row = 0; row <= rows_.parents.size(); ++row) {
      all_picks_.push_back(greedy(seen_by(row)));
      if (!tree_ && child_of(row, all_picks_.back()) == 0) break;
    }
    return all_picks_;
  }
  /// Walks the open pass at once, as engines do on the device, and returns the accepted path and the pick that ends it.
  /// commit() and restore() then reset the sampler to its state after the last committed token. The result is valid
  /// until the next verify().
  [[nodiscard]] Accepted walk_draft() {
    all_at_once_ = true;
    path_.clear();
    walked_rows_.clear();
    for (std::size_t row = 0; walked_rows_.empty() || row != 0; row = child_of(row, path_.back())) {
      walked_rows_.push_back(rows_.pending - 1 + row);
      if (options().sampled) remember(row);
      path_.push_back(options().sampled ? model_.sample(seen_by(row), sampler_) : greedy(seen_by(row)));
    }
    return {walked_rows_, path_};
  }

  [[nodiscard]] Capabilities capabilities() const { return options().capabilities; }
  [[nodiscard]] TokenSpan cache() const noexcept { return cache_; }
  [[nodiscard]] const ScriptedCounters& counters() const noexcept { return counters_; }
  /// Returns the caller's violations of V1 to V12 and of the Capabilities, in order; empty if there are none.
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }

 private:
  using Sampler = ScriptedModel::Sampler;

  [[nodiscard]] const ScriptedOptions& options() const noexcept { return model_.options(); }
  [[nodiscard]] bool restores() const noexcept { return options().capabilities.rollback == Rollback::snapshot; }
  void expect(bool holds, const char* sentence) {
    if (!holds) violations_.emplace_back(sentence);
  }
  Result<LazyPicks> run(TokenSpan batch, std::size_t drafted, bool tree) {
    discard_void_pass();
    ++counters_.verifies;
    counters_.rows += batch.size();
    const bool rows_fit = !batch.empty() && drafted < batch.size();
    expect(rows_fit, "V1: a batch holds at least the anchor before its draft");
    if (!rows_fit) return Error{ErrorCode::verifier_failed, "a batch without an anchor"};
    rows_.base = cache_.size();
    rows_.pending = batch.size() - drafted;
    if (behind_)
      expect(behind_->size() <= rows_.pending && std::equal(behind_->begin(), behind_->end(), batch.begin()),
             "V1: the batch does not continue the cache");
    check_capabilities(batch.size(), drafted);
    pass_saved_ = std::exchange(saved_, false);
    expect(!restores() || drafted == 0 || pass_saved_, "V10: verify() has a draft, but no snapshot() before it");

    before_ = sampler_;
    path_.clear();
    reads_.clear();
    tree_ = tree;
    agrees_ = true;
    all_at_once_ = false;
    drawn_elsewhere_ = false;
    open_ = true;
    ++pass_;
    if (strikes(options().faults.verify_every, counters_.verifies)) {
      cache_.insert(cache_.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2));
      return fail("scripted fault in verify");
    }
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    last_time_ = options().latency ? options().latency(PassShape{1, batch.size(), rows_.base + rows_.pending}) : 0;
    counters_.time += last_time_;
    return LazyPicks(*this, pass_);
  }
  void discard_void_pass() {
    if (!open_) return;
    cache_.resize(rows_.base);
    sampler_ = before_;
    history_.resize(std::min(history_.size(), rows_.base + rows_.pending - 1));
    open_ = false;
  }
  void close(std::size_t committed) {
    if (drawn_elsewhere_) behind_.reset();  // the caller drew the tokens, so they are unknown here
    if (all_at_once_ && options().sampled && committed < path_.size()) {
      sampler_ = history_[rows_.base + rows_.pending - 1 + committed];
      history_.resize(rows_.base + rows_.pending - 1 + committed);
    }
    open_ = false;
  }

  void check_capabilities(std::size_t rows, std::size_t drafted) {
    const Capabilities& can = options().capabilities;
    const auto widths = can.allowed_widths.values();
    expect(rows <= can.max_rows, "Capabilities::max_rows was exceeded");
    expect(rows_.deepest() <= can.max_depth, "Capabilities::max_depth was exceeded");
    expect(rows_.leaves() <= std::max<std::size_t>(can.max_leaves, 1), "Capabilities::max_leaves was exceeded");
    expect(cache_.size() + rows < can.max_context, "Capabilities::max_context was exceeded");
    expect(drafted == 0 || widths.empty() || std::find(widths.begin(), widths.end(), rows) != widths.end(),
           "Capabilities::allowed_widths has no such width");
    expect(!restores() || drafted == 0 || rows - drafted <= can.max_replay, "Capabilities::max_replay was exceeded");
  }
  void check_reads(std::size_t committed) {
    expect(all_at_once_ || path_.size() <= committed + (options().may_stop_before ? 1 : 0),
           "V3: a pick was read after the token that ended generation");
    if (path_.size() >= committed) return;
    expect(false, "V4: more tokens were committed than there were picks");
    path_.resize(committed);
  }
  /// Returns true if `rows` are the first pending rows, followed by the first drafted rows of the path that was read.
  [[nodiscard]] bool is_read_path(std::span<const std::size_t> rows) const {
    for (std::size_t i = 0; i < std::min(rows.size(), rows_.pending); ++i)
      if (rows[i] != i) return false;
    for (std::size_t i = rows_.pending; i < rows.size(); ++i) {
      const NodeIndex parent = i == rows_.pending ? anchor_parent : static_cast<NodeIndex>(rows[i - 1] - rows_.pending);
      if (rows_.parents[rows[i] - rows_.pending] != parent) return false;
      const std::size_t at = i - rows_.pending;
      if (!drawn_elsewhere_ && (at >= path_.size() || cache_[rows_.base + rows[i]] != path_[at])) return false;
      if (!all_at_once_ && (at + 1 >= reads_.size() || reads_[at + 1] != rows[i] - rows_.pending + 1)) return false;
    }
    return true;
  }
  [[nodiscard]] std::vector<Token> seen_by(std::size_t row) const {
    return rows_.seen_by(cache_, row, options().order);
  }
  [[nodiscard]] std::size_t child_of(std::size_t row, Token token) const { return rows_.child_of(cache_, row, token); }

  Token pick(std::uint64_t pass, std::size_t i) {
    ++counters_.picks;
    expect(open_ && pass == pass_, "V3: a pick was read from a pass that is over");
    if (!read(i)) return 0;
    if (strikes(options().faults.pick_every, counters_.picks)) static_cast<void>(fail("scripted fault in a pick"));
    const std::vector<Token> seen = seen_by(i);
    path_.push_back(options().sampled ? model_.sample(seen, sampler_) : greedy(seen));
    agrees_ = agrees_ && child_of(i, path_.back()) != 0;
    return path_.back();
  }
  /// Records that the pick or the distribution after row (anchor + i) is read, and checks that this is allowed. Returns
  /// false if there is no such row.
  bool read(std::size_t i) {
    const bool inside = i <= rows_.parents.size();
    expect(inside, "V3: a pick was read past the end of the batch");
    if (!inside) return false;
    const bool first = reads_.empty();
    expect(first ? i == 0 : i > reads_.back(), "V3: picks are read in order, each once");
    expect(agrees_, "V3: a pick was read after the first that disagrees");
    expect(first || i == 0 || !agrees_ ||
               (rows_.parent(i) == reads_.back() && (drawn_elsewhere_ || rows_.token(cache_, i) == path_.back())),
           "V7: a pick was read off the path of those before it");
    reads_.push_back(i);
    remember(i);
    return true;
  }
  void remember(std::size_t i) {
    const std::size_t row =
        rows_.base + rows_.pending + rows_.depth(i);  // tokens up to and including the row before the pick
    history_.resize(row - 1, sampler_);
    history_.push_back(sampler_);
  }
  static bool strikes(std::uint64_t every, std::uint64_t count) noexcept { return every != 0 && count % every == 0; }
  Error fail(const char* sentence) {
    ++counters_.faults;
#if defined(__cpp_exceptions)
    if (!options().faults.as_errors) throw ScriptedFault(sentence);
#endif
    return Error{ErrorCode::verifier_failed, sentence};
  }

  ScriptedModel model_;
  std::vector<Token> cache_;
  std::optional<std::vector<Token>> behind_;  // committed tokens after the end of the cache, if known
  Sampler sampler_;
  Sampler before_;                // the sampler's state before the open pass
  std::vector<Sampler> history_;  // the sampler's state before the pick after each row
  std::size_t saved_rows_ = 0;
  bool saved_ = false;  // set by snapshot(), cleared by the next pass
  ScriptedCounters counters_;
  std::vector<std::string> violations_;

  // State of the last pass.
  ScriptedRows rows_;
  std::vector<std::size_t> reads_;  // rows whose picks were read; the anchor is row 0
  std::vector<Token> path_;         // the picks that were read, or the path that was walked at once
  std::vector<std::size_t> walked_rows_;
  std::vector<Token> all_picks_;
  std::vector<Token> ranked_;
  std::vector<float> probabilities_;
  std::uint64_t pass_ = 0;
  std::uint64_t last_time_ = 0;
  bool pass_saved_ = false;
  bool tree_ = false;
  bool agrees_ = true;
  bool all_at_once_ = false;
  bool drawn_elsewhere_ = false;
  bool open_ = false;
};

static_assert(VerifierWithCapabilities<ScriptedVerifier> && TruncatableVerifier<ScriptedVerifier> &&
              TreeVerifier<ScriptedVerifier> && TimedVerifier<ScriptedVerifier> &&
              CheckpointVerifier<ScriptedVerifier> && TopKVerifier<ScriptedVerifier> &&
              DistributionVerifier<ScriptedVerifier> && ConstrainedVerifier<ScriptedVerifier> &&
              !SelfWalkingVerifier<ScriptedVerifier>);

/// A ScriptedVerifier that walks the draft itself, as engines do on their device. It is a separate class, because
/// generate() calls verify_and_walk() for every pass if a verifier has it.
class SelfWalkingScriptedVerifier : public ScriptedVerifier {
 public:
  using ScriptedVerifier::ScriptedVerifier;
  explicit SelfWalkingScriptedVerifier(ScriptedVerifier engine) : ScriptedVerifier(std::move(engine)) {}

  Result<Accepted> verify_and_walk(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    if (const auto answer = verify_tree(batch, drafted, parents); !answer) return answer.error();
    return walk_draft();
  }
};

static_assert(SelfWalkingVerifier<SelfWalkingScriptedVerifier> && CheckpointVerifier<SelfWalkingScriptedVerifier>);

}  // namespace reprise::testing
