// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// One sequence whose engine reports nothing except token ids: a session, and the pass that was planned last. Follower
/// states how ids are read; BatchFollower has one such sequence for each slot.
template <class S>
class FollowedSequence {
 public:
  /// What has happened since the last follow().
  struct Seen {
    std::size_t committed = 0;  ///< tokens of the planned pass; 0 if there was none, or if no id shows its result
    bool alone = false;         ///< passes alone can have run: nothing was begun, appended, removed or replaced
    bool repeated = false;      ///< the ids are those of the last call, so its pass seems not to have run
  };

  FollowedSequence() : FollowedSequence(S()) {}
  explicit FollowedSequence(S session) : session_(std::move(session)), known_(!session_.context().empty()) {}

  /// Applies what `ids` shows: tokens after the known ones if `continued`, or else all. `time_of(rows)` returns the
  /// time of a pass of `rows` rows, or nullopt. It is called if exactly one pass can have committed the new tokens.
  /// Errors: those of the session; the planned pass is then void.
  template <class TimeOf>
  Result<Seen> follow(TokenSpan ids, bool continued, std::optional<std::uint64_t> conversation, TimeOf&& time_of) {
    const std::optional<Pass> pass = std::exchange(pass_, std::nullopt);
    switch (change(ids, continued, conversation)) {
      case Change::extended:
        return extend(pass, continued ? ids : ids.subspan(context().size()), time_of);
      case Change::begun:
        return begin(ids, conversation);
      case Change::cut:
        return changed(session_.truncate(ids.size()));
      default:
        return changed(session_.rebase(ids));
    }
  }
  /// Returns the tokens to verify in the pass that the session has planned, and waits for its result.
  Result<TokenSpan> expect(const Result<Pass>& planned) {
    if (!planned) return planned.error();
    pass_ = *planned;
    return planned->batch.last(planned->drafted);
  }

  /// The engine has run only the first `drafted` drafted tokens of the pass. Returns how many it has not run.
  std::size_t verified(std::size_t drafted) noexcept {
    if (!pass_ || drafted >= pass_->drafted) return 0;
    const std::size_t before = pass_->drafted;
    if (const auto shorter = session_.shorten(pass_->ticket, drafted)) pass_ = *shorter;
    return before - pass_->drafted;
  }
  /// Refuses `ids` that do not follow `after` tokens, or that are none.
  [[nodiscard]] Result<void> check(TokenSpan ids, std::size_t after,
                                   std::optional<std::uint64_t> conversation) const noexcept {
    if (after == 0 && ids.empty())
      return Error{ErrorCode::empty_context, "the context is empty: pass at least one token"};
    const std::size_t known = conversation == conversation_ ? context().size() : 0;
    if (after != 0 && after != known)
      return Error{ErrorCode::invalid_argument, "`after` is not the number of known tokens: pass all ids after 0",
                   after, known};
    return {};
  }

  /// Ends the sequence.
  void forget() noexcept {
    end();
    if constexpr (requires { session_.strategy().forget_prediction(); }) session_.strategy().forget_prediction();
  }
  /// Ends the sequence. `text`: see NgramDrafter::predict().
  Result<void> predict(TokenSpan text) noexcept {
    end();
    return session_.strategy().predict(text);
  }
  /// True if follow() with these ids would begin another sequence or replace a part of the known one.
  [[nodiscard]] bool ends_with(TokenSpan ids, bool continued,
                               std::optional<std::uint64_t> conversation) const noexcept {
    if (context().empty()) return false;
    const Change what = change(ids, continued, conversation);
    return what == Change::begun || what == Change::replaced;
  }
  /// True if both sequences seem to have begun with the same tokens, except for the last one: the engine may have
  /// sampled it.
  [[nodiscard]] bool began_as(const FollowedSequence& other) const noexcept {
    return prompt_ != 0 && prompt_ == other.prompt_;
  }
  /// Forgets the sequence. The next one begins with this strategy.
  template <class Strategy>
  void assign(Strategy strategy) {
    forget();
    session_.strategy() = std::move(strategy);
  }
  Result<void> reserve(std::size_t max_context) {
    pass_.reset();
    return session_.reserve(max_context);
  }
  [[nodiscard]] TokenSpan context() const noexcept { return known_ ? session_.context() : TokenSpan(); }
  [[nodiscard]] Statistics statistics() const noexcept {
    Statistics all = earlier_;
    return all += session_.statistics();
  }
  /// Returns the pass whose result is not known yet.
  [[nodiscard]] const std::optional<Pass>& pass() const noexcept { return pass_; }
  [[nodiscard]] S& session() noexcept { return session_; }
  [[nodiscard]] const S& session() const noexcept { return session_; }

 private:
  static constexpr bool correctable = requires(S & session, std::int64_t loss) {
    loss += session.control().abandon();
    session.control().correct(loss);
  };

  /// The relation of ids to the known tokens.
  enum class Change : std::uint8_t { extended, begun, cut, replaced };
  [[nodiscard]] Change change(TokenSpan ids, bool continued, std::optional<std::uint64_t> conversation) const noexcept {
    if (continued) return Change::extended;
    const TokenSpan known = context();
    if (known.empty() || conversation != conversation_) return Change::begun;
    const std::size_t most = std::min(known.size(), ids.size());
    const bool same = std::equal(known.data(), known.data() + most, ids.data());
    if (same && most == known.size()) return Change::extended;
    if (!conversation) return Change::begun;
    return same ? Change::cut : Change::replaced;
  }

  void end() noexcept {
    session_.keep();
    known_ = false;
    prompt_ = 0;
  }
  Result<Seen> begin(TokenSpan ids, std::optional<std::uint64_t> conversation) {
    const Statistics counts = session_.statistics();
    if (auto begun = session_.begin(ids, session_.capabilities()); !begun) return begun.error();
    earlier_ += counts;
    doubted_ = 0;
    conversation_ = conversation;
    prompt_ = 0;
    for (const Token token : ids.first(ids.size() - 1))
      prompt_ = (prompt_ ^ static_cast<std::uint32_t>(token)) * 0x9e3779b97f4a7c15U + 1;
    known_ = true;
    return Seen{};
  }
  /// Commits the tokens of the pass, and appends the rest of `fresh`.
  template <class TimeOf>
  Result<Seen> extend(const std::optional<Pass>& pass, TokenSpan fresh, TimeOf&& time_of) {
    Seen seen{.committed = 0, .alone = true, .repeated = fresh.empty()};
    if (pass && fresh.empty()) repeat(pass->ticket);
    if (pass && !fresh.empty()) {
      const auto decision = session_.resolve(pass->ticket, fresh.first(std::min(fresh.size(), pass->drafted + 1)));
      if (!decision) return decision.error();
      seen.committed = decision->tokens.size();
      const bool one_pass = seen.committed == fresh.size();
      if (auto done = session_.commit(pass->ticket, one_pass ? time_of(pass->batch.size()) : std::nullopt); !done)
        return done.error();
      fresh = fresh.subspan(seen.committed);
      if constexpr (correctable) session_.control().correct(std::exchange(doubted_, 0));
    }
    if (fresh.empty()) return seen;
    const Statistics counts = session_.statistics();  // append() begins to count anew
    if (auto appended = session_.append(fresh); !appended) return appended.error();
    earlier_ += counts;
    seen.alone = false;
    return seen;
  }
  /// Ends a pass that seems not to have run. It counts as lost until a later pass of the sequence shows tokens: it may
  /// have run for a request that ended, if the next request has the same ids.
  void repeat(Ticket ticket) {
    if constexpr (correctable) doubted_ += session_.control().abandon();
    static_cast<void>(session_.cancel(ticket));
  }
  template <class T>
  Result<Seen> changed(const Result<T>& result) {
    doubted_ = 0;
    if (!result) return result.error();
    return Seen{};
  }

  S session_;
  bool known_;
  std::uint64_t prompt_ = 0;  // a hash of the tokens that the sequence began with, without the last one; 0: none
  std::optional<Pass> pass_;
  std::optional<std::uint64_t> conversation_;
  Statistics earlier_;
  std::int64_t doubted_ = 0;  // the loss of passes that seem not to have run
};

}}}  // namespace reprise::detail
