// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/testing/random.hpp"

namespace reprise::testing {

/// Makes calls fail, to see what survives: the k-th, 2k-th, ... call of each kind; 0: none does.
struct ScriptedFaults {
  std::uint64_t verify_every = 0;
  std::uint64_t pick_every = 0;  ///< thrown only: reading a pick cannot answer with an Error
  std::uint64_t commit_every = 0;
  bool as_errors = false;  ///< answer with an Error instead of throwing; always so without exceptions
};

/// What a ScriptedVerifier is.
struct ScriptedOptions {
  std::uint64_t seed = 1;
  std::size_t order = 2;   ///< tokens at the end of the cache that decide the next one
  Token vocabulary = 100;  ///< the hashed model picks 0 ... vocabulary - 1
  /// The model, when it is not the hashed one: the token after the last `order` tokens (fewer at the start).
  std::function<Token(TokenSpan)> table = {};
  bool sampled = false;       ///< draw among a few candidates, from a random stream that each pick advances
  std::uint32_t penalty = 0;  ///< of a sampled token, for each time it is among the last 8 picks; 256 is strong
  Capabilities capabilities = {};
  ScriptedFaults faults = {};
  /// Virtual time of a pass, in any unit; summed up in counters().time, and pass_time() as nanoseconds.
  std::function<std::uint64_t(const PassShape&)> latency = {};
  bool may_stop_before = false;  ///< a predicate may refuse a pick: one more is read than is committed
};

/// What a ScriptedVerifier has done. A failed call counts as a call.
struct ScriptedCounters {
  std::uint64_t verifies = 0;
  std::uint64_t rows = 0;
  std::uint64_t picks = 0;
  std::uint64_t commits = 0;
  std::uint64_t faults = 0;
  std::uint64_t time = 0;
};

#if defined(__cpp_exceptions)
/// What a scripted fault throws.
struct ScriptedFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};
#endif

/// A deterministic engine for tests. It decides from its own cache and from nothing else, so a wrong rollback shows
/// in the output, and its sampler (random stream, repetition penalty) advances when a pick is read, so a pick read
/// too many shows as well. It watches the loop that drives it: violations() says which of V1 to V8 were broken.
///
/// A scripted fault strikes half-way: verify() after it has written some rows, commit() after it has cut some.
/// A void pass is undone at the next verify(), sampler included (V5). A copy is an engine of its own.
/// Threads: one at a time.
class ScriptedVerifier {
  struct Sampler {
    std::uint64_t random = 0;
    std::array<Token, 8> recent{};
    std::size_t picks = 0;
  };

 public:
  /// Picks that are computed when they are read. Valid until the next verify().
  class LazyPicks {
   public:
    LazyPicks(ScriptedVerifier& verifier, std::uint64_t pass) noexcept : verifier_(&verifier), pass_(pass) {}
    Token operator[](std::size_t i) const { return verifier_->pick(pass_, i); }

   private:
    ScriptedVerifier* verifier_;
    std::uint64_t pass_;
  };

  explicit ScriptedVerifier(ScriptedOptions options = {}) : options_(std::move(options)) {
    sampler_.random = options_.seed;
  }
  /// Prefilled with all but the last token of `prompt`, as a session expects it.
  ScriptedVerifier(ScriptedOptions options, TokenSpan prompt) : ScriptedVerifier(std::move(options)) {
    if (!prompt.empty()) prefill(prompt.first(prompt.size() - 1));
  }

  /// Appends tokens that nobody picked here: a prompt, a user turn.
  void prefill(TokenSpan tokens) {
    discard_void_pass();
    for (const Token token : tokens) cache_.push_back(token);
    expected_.reset();
  }

  Result<LazyPicks> verify(TokenSpan batch, std::size_t drafted) {
    parents_.resize(drafted < batch.size() ? drafted : 0);
    for (std::size_t row = 0; row < parents_.size(); ++row) parents_[row] = static_cast<NodeIndex>(row) - 1;
    return run(batch, drafted, false);
  }
  Result<LazyPicks> verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    bool sound = parents.size() == drafted;
    for (std::size_t row = 0; sound && row < drafted; ++row)
      sound = parents[row] >= anchor_parent && parents[row] < static_cast<NodeIndex>(row);
    expect(sound, "V6: each drafted row has a parent, and it comes before it");
    if (!sound) return Error{ErrorCode::verifier_failed, "a draft that is no tree"};
    parents_.assign(parents.begin(), parents.end());
    return run(batch, drafted, true);
  }

  Result<void> commit(std::size_t keep) {
    std::vector<std::size_t> rows(std::min(keep, cache_.size() + 1));  // too many stay too many
    for (std::size_t row = 0; row < rows.size(); ++row) rows[row] = row;
    return commit_rows(rows);
  }
  Result<void> commit_rows(std::span<const std::size_t> rows) {
    ++counters_.commits;
    const std::size_t keep = rows.size();
    bool legal = open_ && keep + 1 >= pending_;
    for (std::size_t i = 0; legal && i < keep; ++i)
      legal = rows[i] < cache_.size() - base_ && (i == 0 || rows[i - 1] < rows[i]);
    expect(legal, "V4: commit() follows a verify() and keeps pending - 1 rows at least and the batch at most");
    if (!legal) return Error{ErrorCode::verifier_failed, "a commit that fits no pass"};
    const std::size_t committed = keep + 1 - pending_;
    expect(all_at_once_ || last_picks_.size() >= committed, "V4: more tokens were committed than there were picks");
    expect(all_at_once_ || last_picks_.size() <= committed + (options_.may_stop_before ? 1 : 0),
           "V3: a pick was read after the token that ended generation");
    // stop_before on the first pick gives the anchor back too, which no rollback limit is about.
    expect(cache_.size() - base_ - std::max(keep, pending_) <= options_.capabilities.max_rollback,
           "Capabilities::max_rollback was exceeded");
    expect(is_read_path(rows), "V8: the rows that are kept are not those of the path that was read");
    for (std::size_t i = 0; i < keep; ++i) cache_[base_ + i] = cache_[base_ + rows[i]];
    cache_.resize(base_ + keep);
    if (strikes(options_.faults.commit_every, counters_.commits)) return fail("scripted fault in commit");
    expected_.reset();
    if (all_at_once_ && committed > 0) {
      for (std::size_t row = base_ + pending_; row < cache_.size(); ++row)
        expect(cache_[row] == greedy(TokenSpan(cache_).first(row)), "V4: a row was kept that was not picked");
      expected_ = greedy(cache_);
    } else if (committed > 0 && committed <= last_picks_.size()) {
      expected_ = last_picks_[committed - 1];
    }
    open_ = false;
    return {};
  }
  /// Virtual time of the last pass: ScriptedOptions::latency.
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(last_time_));
  }

  /// Goes back to `rows` rows of cache, sampler included. `next_row`: the row of the next pick, `rows` when a
  /// single token is pending as usual.
  void truncate(std::size_t rows, std::optional<std::size_t> next_row = {}) {
    discard_void_pass();
    cache_.resize(std::min(rows, cache_.size()));
    const std::size_t row = next_row.value_or(rows);
    if (row < history_.size()) {
      sampler_ = history_[row];
      history_.resize(row);
    }
    expected_.reset();
  }
  /// Loses the cache behind the first `rows` rows, as preemption does. The sampler stays.
  void lose_cache(std::size_t rows) {
    discard_void_pass();
    cache_.resize(std::min(rows, cache_.size()));
    expected_.reset();
  }

  /// What a greedy model picks after `context`.
  [[nodiscard]] Token greedy(TokenSpan context) const {
    const TokenSpan end = context.last(std::min(options_.order, context.size()));
    return options_.table ? options_.table(end) : candidate(end, 0);
  }
  /// The greedy picks of the open pass all at once, for engines that answer with a span, or walk the draft on the
  /// device: of a chain up to the first disagreement, of a tree all. Valid until the next verify().
  [[nodiscard]] TokenSpan greedy_picks() {
    last_picks_.clear();
    all_at_once_ = true;
    for (std::size_t row = 0; row <= parents_.size(); ++row) {
      last_picks_.push_back(greedy(seen_by(row)));
      if (!tree_ && !has_child(row, last_picks_.back())) break;
    }
    return last_picks_;
  }

  [[nodiscard]] Capabilities capabilities() const { return options_.capabilities; }
  [[nodiscard]] TokenSpan cache() const noexcept { return cache_; }
  [[nodiscard]] const ScriptedCounters& counters() const noexcept { return counters_; }
  /// Breaches of V1 to V8 by the caller, in order; empty: none.
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }

 private:
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
    expect(!expected_ || batch.front() == *expected_, "V1: the batch does not continue the cache");
    check_capabilities(batch.size(), drafted);
    tree_ = tree;
    reads_.clear();

    before_ = sampler_;
    base_ = cache_.size();
    pending_ = batch.size() - drafted;
    last_picks_.clear();
    agrees_ = true;
    all_at_once_ = false;
    open_ = true;
    ++pass_;
    if (strikes(options_.faults.verify_every, counters_.verifies)) {
      cache_.insert(cache_.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2));
      return fail("scripted fault in verify");
    }
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    last_time_ = options_.latency ? options_.latency(PassShape{1, batch.size(), base_ + pending_}) : 0;
    counters_.time += last_time_;
    return LazyPicks(*this, pass_);
  }
  /// True when the drafted ones among `rows` are those whose picks were read, the last of these left out.
  [[nodiscard]] bool is_read_path(std::span<const std::size_t> rows) const {
    for (std::size_t i = 0; i < std::min(rows.size(), pending_); ++i)
      if (rows[i] != i) return false;
    for (std::size_t i = pending_; i < rows.size(); ++i) {
      const NodeIndex parent = i == pending_ ? anchor_parent : static_cast<NodeIndex>(rows[i - 1] - pending_);
      if (parents_[rows[i] - pending_] != parent) return false;
      const std::size_t read = i - pending_ + 1;
      if (!all_at_once_ && (read >= reads_.size() || reads_[read] != rows[i] - pending_ + 1)) return false;
    }
    return true;
  }
  /// Tokens on the path to drafted row `row`, counted from 1; 0 is the anchor.
  [[nodiscard]] std::size_t depth(std::size_t row) const {
    std::size_t depth = 0;
    for (; row > 0; row = pick_after(parents_[row - 1])) ++depth;
    return depth;
  }
  /// The end of what row (anchor + row) sees, itself included.
  [[nodiscard]] std::vector<Token> seen_by(std::size_t row) const {
    std::vector<Token> seen;
    for (; row > 0; row = pick_after(parents_[row - 1])) seen.push_back(cache_[base_ + pending_ + row - 1]);
    for (std::size_t at = base_ + pending_; at > 0 && seen.size() < options_.order; --at)
      seen.push_back(cache_[at - 1]);
    std::reverse(seen.begin(), seen.end());
    return seen;
  }
  /// A drafted row behind row (anchor + row) that holds `token`.
  [[nodiscard]] bool has_child(std::size_t row, Token token) const {
    for (std::size_t child = row; child < parents_.size(); ++child)
      if (parents_[child] + 1 == static_cast<NodeIndex>(row) && cache_[base_ + pending_ + child] == token) return true;
    return false;
  }
  void check_capabilities(std::size_t rows, std::size_t drafted) {
    const Capabilities& can = options_.capabilities;
    const auto widths = can.allowed_widths.values();
    expect(rows <= can.max_rows, "Capabilities::max_rows was exceeded");
    std::size_t deepest = 0;
    std::size_t leaves = 0;
    for (std::size_t row = 0; row < drafted; ++row) {
      deepest = std::max(deepest, depth(row + 1));
      leaves += std::find(parents_.begin(), parents_.end(), static_cast<NodeIndex>(row)) == parents_.end() ? 1 : 0;
    }
    expect(deepest <= can.max_depth, "Capabilities::max_depth was exceeded");
    expect(leaves <= std::max<std::size_t>(can.max_leaves, 1), "Capabilities::max_leaves was exceeded");
    expect(cache_.size() + rows < can.max_context, "Capabilities::max_context was exceeded");
    expect(drafted == 0 || widths.empty() || std::find(widths.begin(), widths.end(), rows) != widths.end(),
           "Capabilities::allowed_widths has no such width");
  }
  void discard_void_pass() {
    if (!open_) return;
    cache_.resize(base_);
    sampler_ = before_;
    history_.resize(std::min(history_.size(), base_ + pending_ - 1));
    open_ = false;
  }

  Token pick(std::uint64_t pass, std::size_t i) {
    ++counters_.picks;
    expect(open_ && pass == pass_, "V3: a pick was read from a pass that is over");
    const bool inside = i <= parents_.size();
    expect(inside, "V3: a pick was read past the end of the batch");
    if (!inside) return 0;
    const bool first = reads_.empty();
    expect(first ? i == 0 : i > reads_.back(), "V3: picks are read in order, each once");
    expect(agrees_, "V3: a pick was read after the first that disagrees");
    expect(first || i == 0 || !agrees_ ||
               (parents_[i - 1] + 1 == static_cast<NodeIndex>(reads_.back()) &&
                cache_[base_ + pending_ + i - 1] == last_picks_.back()),
           "V7: a pick was read off the path of those before it");
    if (strikes(options_.faults.pick_every, counters_.picks)) static_cast<void>(fail("scripted fault in a pick"));
    const std::size_t row = base_ + pending_ + depth(i);  // tokens up to and with the row that the pick follows
    history_.resize(row - 1, sampler_);
    history_.push_back(sampler_);
    const std::vector<Token> seen = seen_by(i);
    const Token token = options_.sampled ? sample(seen) : greedy(seen);
    last_picks_.push_back(token);
    reads_.push_back(i);
    agrees_ = agrees_ && has_child(i, token);
    return token;
  }
  [[nodiscard]] Token candidate(TokenSpan end, std::uint64_t rank) const {
    std::uint64_t hash = mix(options_.seed + (rank << 32));
    for (const Token token : end) hash = mix(hash ^ static_cast<std::uint32_t>(token));
    return static_cast<Token>(hash % static_cast<std::uint64_t>(std::max<Token>(options_.vocabulary, 1)));
  }
  Token sample(TokenSpan context) {
    const TokenSpan end = context.last(std::min(options_.order, context.size()));
    const std::uint64_t noise = mix(sampler_.random++);
    Token best = 0;
    std::int64_t best_score = 0;
    for (std::uint64_t rank = 0; rank < 4; ++rank) {
      const Token token = rank == 0 ? greedy(context) : candidate(end, rank);
      const auto seen = std::count(
          sampler_.recent.begin(),
          sampler_.recent.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(sampler_.picks, 8)), token);
      const std::int64_t score = static_cast<std::int64_t>((noise >> (16 * rank)) % 1024) -
                                 static_cast<std::int64_t>(rank * 64) -
                                 static_cast<std::int64_t>(options_.penalty) * seen;
      if (rank == 0 || score > best_score) {
        best = token;
        best_score = score;
      }
    }
    sampler_.recent[sampler_.picks++ % sampler_.recent.size()] = best;
    return best;
  }
  static bool strikes(std::uint64_t every, std::uint64_t count) noexcept { return every != 0 && count % every == 0; }
  Error fail(const char* sentence) {
    ++counters_.faults;
#if defined(__cpp_exceptions)
    if (!options_.faults.as_errors) throw ScriptedFault(sentence);
#endif
    return Error{ErrorCode::verifier_failed, sentence};
  }

  ScriptedOptions options_;
  std::vector<Token> cache_;
  Sampler sampler_;
  Sampler before_;                // of the open pass
  std::vector<Sampler> history_;  // before the pick after each row
  std::optional<Token> expected_;
  std::vector<NodeIndex> parents_;  // of the drafted rows of the last pass
  std::vector<Token> last_picks_;   // read in the last pass
  std::vector<std::size_t> reads_;  // and the rows that they followed, from the anchor's on
  ScriptedCounters counters_;
  std::vector<std::string> violations_;
  std::uint64_t pass_ = 0;
  std::size_t base_ = 0;
  std::size_t pending_ = 0;
  std::uint64_t last_time_ = 0;
  bool tree_ = false;
  bool agrees_ = true;
  bool all_at_once_ = false;
  bool open_ = false;
};
static_assert(DescribedVerifier<ScriptedVerifier> && TruncatableVerifier<ScriptedVerifier> &&
              TreeVerifier<ScriptedVerifier> && TimedVerifier<ScriptedVerifier>);

}  // namespace reprise::testing
