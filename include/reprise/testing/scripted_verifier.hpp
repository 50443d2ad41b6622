// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
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
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
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
  /// Virtual time of a pass, in any unit; summed up in counters().time.
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
/// too many shows as well. It watches the loop that drives it: violations() says which of V1 to V5 were broken.
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
    discard_void_pass();
    ++counters_.verifies;
    counters_.rows += batch.size();
    const bool rows_fit = !batch.empty() && drafted < batch.size();
    expect(rows_fit, "V1: a batch holds at least the anchor before its draft");
    if (!rows_fit) return Error{ErrorCode::verifier_failed, "a batch without an anchor"};
    expect(!expected_ || batch.front() == *expected_, "V1: the batch does not continue the cache");
    check_capabilities(batch.size(), drafted);

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
    if (options_.latency) counters_.time += options_.latency(PassShape{1, batch.size(), base_ + pending_});
    return LazyPicks(*this, pass_);
  }

  Result<void> commit(std::size_t keep) {
    ++counters_.commits;
    const bool legal = open_ && keep + 1 >= pending_ && keep <= cache_.size() - base_;
    expect(legal, "V4: commit() follows a verify() and keeps pending - 1 rows at least and the batch at most");
    if (!legal) return Error{ErrorCode::verifier_failed, "a commit that fits no pass"};
    const std::size_t committed = keep + 1 - pending_;
    expect(last_picks_.size() >= committed, "V4: more tokens were committed than there were picks");
    expect(all_at_once_ || last_picks_.size() <= committed + (options_.may_stop_before ? 1 : 0),
           "V3: a pick was read after the token that ended generation");
    // stop_before on the first pick gives the anchor back too, which no rollback limit is about.
    expect(cache_.size() - base_ - std::max(keep, pending_) <= options_.capabilities.max_rollback,
           "Capabilities::max_rollback was exceeded");
    cache_.resize(base_ + keep);
    if (strikes(options_.faults.commit_every, counters_.commits)) return fail("scripted fault in commit");
    expected_.reset();
    if (committed > 0 && committed <= last_picks_.size()) expected_ = last_picks_[committed - 1];
    open_ = false;
    return {};
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
  /// The greedy picks of the open pass all at once, ending at the first disagreement, for engines that answer with
  /// a span, or walk the draft on the device. Valid until the next verify().
  [[nodiscard]] TokenSpan greedy_picks() {
    last_picks_.clear();
    all_at_once_ = true;
    for (std::size_t row = base_ + pending_; row <= cache_.size(); ++row) {
      last_picks_.push_back(greedy(TokenSpan(cache_).first(row)));
      if (row < cache_.size() && cache_[row] != last_picks_.back()) break;
    }
    return last_picks_;
  }

  [[nodiscard]] Capabilities capabilities() const { return options_.capabilities; }
  [[nodiscard]] TokenSpan cache() const noexcept { return cache_; }
  [[nodiscard]] const ScriptedCounters& counters() const noexcept { return counters_; }
  /// Breaches of V1 to V5 by the caller, in order; empty: none.
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }

 private:
  void expect(bool holds, const char* sentence) {
    if (!holds) violations_.emplace_back(sentence);
  }
  void check_capabilities(std::size_t rows, std::size_t drafted) {
    const Capabilities& can = options_.capabilities;
    const auto widths = can.allowed_widths.values();
    expect(rows <= can.max_rows, "Capabilities::max_rows was exceeded");
    expect(drafted <= can.max_depth, "Capabilities::max_depth was exceeded");
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
    expect(i == last_picks_.size(), "V3: picks are read in order, each once");
    expect(agrees_, "V3: a pick was read after the first that disagrees");
    const std::size_t row = base_ + pending_ + i;  // tokens up to and with the row that the pick follows
    expect(row <= cache_.size(), "V3: a pick was read past the end of the batch");
    if (row > cache_.size()) return 0;
    if (strikes(options_.faults.pick_every, counters_.picks)) static_cast<void>(fail("scripted fault in a pick"));
    const TokenSpan context = TokenSpan(cache_).first(row);
    history_.resize(row - 1, sampler_);
    history_.push_back(sampler_);
    const Token token = options_.sampled ? sample(context) : greedy(context);
    last_picks_.push_back(token);
    agrees_ = agrees_ && row < cache_.size() && cache_[row] == token;
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
  std::vector<Token> last_picks_;  // read in the last pass
  ScriptedCounters counters_;
  std::vector<std::string> violations_;
  std::uint64_t pass_ = 0;
  std::size_t base_ = 0;
  std::size_t pending_ = 0;
  bool agrees_ = true;
  bool all_at_once_ = false;
  bool open_ = false;
};
static_assert(DescribedVerifier<ScriptedVerifier> && TruncatableVerifier<ScriptedVerifier>);

}  // namespace reprise::testing
