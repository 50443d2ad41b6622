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

#include "reprise/control/cost_curve.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/speculator.hpp"
#include "support/choices.hpp"
#include "support/random_target.hpp"

namespace reprise::testing {

/// How often each event has happened.
struct FollowerCoverage {
  std::size_t drafted = 0;
  std::size_t accepted = 0;
  std::size_t cut = 0;        ///< passes that committed fewer tokens than the target had picked
  std::size_t appended = 0;   ///< passes followed by tokens of other passes or of a prompt
  std::size_t truncated = 0;  ///< in the same conversation
  std::size_t edited = 0;     ///< in the same conversation
  std::size_t continued = 0;  ///< calls with the new tokens only
  std::size_t begun = 0;      ///< other requests
  std::size_t shortened = 0;  ///< a request that is the beginning of the text before it
  std::size_t timed = 0;
};

/// The history of an engine that hands over token ids only. A follower is given the ids. A session is told of each
/// event by its own calls. Their drafts, contexts and counts must be equal.
class FollowerWorld {
 public:
  explicit FollowerWorld(Choices& choices, FollowerCoverage* coverage = nullptr)
      : choices_(choices),
        coverage_(coverage != nullptr ? *coverage : own_coverage_),
        target_(choices),
        numbered_(choices.chance(50)),
        follower_(speculator(choices.below(3))),
        session_(speculator(kind_)) {
    if (numbered_) conversation_ = 1;
  }

  /// Returns a description of the first difference, or nothing.
  std::string run() {
    ids_ = other_request();
    begin();
    std::string difference = compare();
    for (std::size_t left = choices_.between(1, 30); left > 0 && difference.empty(); --left) {
      step();
      difference = compare();
    }
    return difference;
  }

 private:
  using Tokens = std::vector<Token>;

  Speculator speculator(std::size_t kind) {
    kind_ = kind;
    if (kind == 0) return Speculator();
    return Speculator(CostCurve::linear(kind == 1 ? 0.0 : 0.05));
  }

  Tokens some_tokens(std::size_t least, std::size_t most) { return target_.some_tokens(choices_, least, most); }
  /// A text that does not begin with the present one.
  Tokens other_request() {
    Tokens text = some_tokens(1, 40);
    if (!ids_.empty() && text.size() >= ids_.size()) text[0] = ids_[0] == 0 ? 1 : 0;
    return text;
  }

  void step() {
    const std::size_t action = choices_.below(20);
    if (action < 13) return run_pass();
    if (action == 13) return pass_is_void();
    if (action == 14) return forget();
    if (action == 15) return shorten();
    if (action == 16 && numbered_) return edit();
    if (action == 17 && numbered_) return rename();
    if (action == 18) return request();
    run_pass();
  }

  void run_pass() {
    Tokens text = ids_;
    const std::size_t picked = target_.run_pass(text, draft_);
    const std::size_t kept = choices_.chance(15) ? choices_.between(1, picked) : picked;
    coverage_.cut += kept < picked ? 1 : 0;
    text.resize(ids_.size() + kept);
    const std::optional<std::chrono::nanoseconds> time = elapse(1 + draft_.size());
    // Tokens after a complete pass: those of other passes, or a prompt. If the pass was cut, they would look like
    // picks.
    const Tokens rest = kept == picked && choices_.chance(15) ? some_tokens(1, 9) : Tokens();
    const auto measured = clean_ && time && rest.empty() ? intervals_.take(*time, 1 + draft_.size()) : std::nullopt;
    coverage_.timed += measured ? 1 : 0;
    coverage_.accepted += kept - 1;
    const auto decision = session_.resolve(ticket_, TokenSpan(text).subspan(ids_.size()));
    static_cast<void>(session_.commit(ticket_, measured));
    session_.control().correct(std::exchange(doubted_, 0));
    committed_ = decision ? decision->tokens.size() : 0;
    if (committed_ != kept) wrong_ = "the session committed another number of tokens than the target picked";
    clean_ = rest.empty();
    if (!rest.empty()) {
      ++coverage_.appended;
      static_cast<void>(session_.append(rest));
      text.insert(text.end(), rest.begin(), rest.end());
    }
    ids_ = std::move(text);
  }
  /// The engine asks again, without having run the pass.
  void pass_is_void() {
    static_cast<void>(elapse(1));
    doubted_ += session_.control().abandon();
    static_cast<void>(session_.cancel(ticket_));
    clean_ = true;
  }
  void forget() {
    follower_.forget();
    if (choices_.chance(50)) ids_.push_back(target_.pick(ids_));
    begin();
  }
  /// Removes the end of the text. Only in the same conversation is it the same sequence.
  void shorten() {
    if (ids_.size() < 2) return run_pass();
    ids_.resize(choices_.between(1, ids_.size() - 1));
    if (!numbered_) {
      ++coverage_.shortened;
      return begin();
    }
    ++coverage_.truncated;
    static_cast<void>(session_.truncate(ids_.size()));
    changed();
  }
  void edit() {
    const std::size_t at = choices_.below(ids_.size());
    ids_[at] = static_cast<Token>((static_cast<std::size_t>(ids_[at]) + 1) % target_.vocabulary());
    const Tokens more = some_tokens(0, 5);
    ids_.insert(ids_.end(), more.begin(), more.end());
    ++coverage_.edited;
    static_cast<void>(session_.rebase(ids_));
    changed();
  }
  void rename() {
    ++*conversation_;
    if (choices_.chance(50)) ids_.push_back(target_.pick(ids_));
    begin();
  }
  void request() {
    ids_ = other_request();
    if (numbered_) ++*conversation_;
    begin();
  }
  void begin() {
    ++coverage_.begun;
    static_cast<void>(session_.begin(ids_));
    changed();
  }
  void changed() {
    static_cast<void>(elapse(1));
    doubted_ = 0;
    clean_ = false;
  }

  /// Moves the clock on. Returns the interval since the last call if both times are known.
  std::optional<std::chrono::nanoseconds> elapse(std::size_t rows) {
    const std::size_t before = now_;
    now_ += 1000 + 50 * rows + choices_.below(100);
    if (choices_.chance(5)) now_ += 1'000'000;
    if (choices_.chance(2)) now_ = before;
    const bool was_known = std::exchange(clock_known_, !choices_.chance(10));
    if (!was_known || !clock_known_) return std::nullopt;
    return std::chrono::nanoseconds(now_ - before);
  }

  /// Asks both for a draft, and compares.
  std::string compare() {
    if (!wrong_.empty()) return wrong_;
    const std::size_t most = choices_.chance(20) ? choices_.below(4) : 16;
    const auto now = clock_known_ ? std::optional(std::chrono::nanoseconds(now_)) : std::nullopt;
    if (choices_.chance(3)) follower_ = Follower(std::move(follower_));
    const TokenSpan known = follower_.context();
    const bool goes_on = known.size() <= ids_.size() && std::equal(known.begin(), known.end(), ids_.begin());
    const bool renamed = std::exchange(followed_, conversation_) != conversation_;
    const std::size_t after = goes_on && !renamed && choices_.chance(50) ? known.size() : 0;
    coverage_.continued += after > 0 ? 1 : 0;
    const auto draft = follower_.draft(TokenSpan(ids_).subspan(after), most, now, conversation_, after);
    if (!draft) return "the follower failed: " + std::string(draft.error().message);
    limits_.draft.max_nodes = most;
    static_cast<void>(session_.propose(limits_, DraftShape::chain));
    const auto pass = session_.plan();
    if (!pass) return "the session failed: " + std::string(pass.error().message);
    ticket_ = pass->ticket;
    const TokenSpan expected = pass->batch.last(pass->drafted);
    draft_.assign(expected.begin(), expected.end());
    coverage_.drafted += draft_.size();
    if (!std::equal(draft->begin(), draft->end(), expected.begin(), expected.end())) return "the drafts differ";
    if (!std::ranges::equal(follower_.context(), ids_)) return "the follower has another context";
    if (!std::ranges::equal(session_.context(), ids_)) return "the session has another context";
    if (follower_.session().control().loss_budget().debt() != session_.control().loss_budget().debt())
      return "the debts differ";
    if (!(follower_.session().statistics() == session_.statistics())) return "the counts differ";
    return {};
  }

  Choices& choices_;
  FollowerCoverage own_coverage_;
  FollowerCoverage& coverage_;
  RandomTarget target_;
  bool numbered_;  // true: the engine passes numbers of conversations
  std::size_t kind_ = 0;
  Follower<Speculator> follower_;
  Speculator session_;
  Limits limits_;
  Ticket ticket_;
  PassIntervals intervals_;
  Tokens ids_;
  Tokens draft_;
  std::optional<std::uint64_t> conversation_;
  std::optional<std::uint64_t> followed_;  // the number that the follower has
  std::size_t now_ = 1'000'000;
  std::size_t committed_ = 0;
  std::int64_t doubted_ = 0;  // the loss of passes that did not run
  bool clock_known_ = true;
  bool clean_ = false;  // passes alone have run since the last call
  std::string wrong_;
};

inline std::string run_follower_world(Choices& choices, FollowerCoverage* coverage = nullptr) {
  return FollowerWorld(choices, coverage).run();
}

}  // namespace reprise::testing
