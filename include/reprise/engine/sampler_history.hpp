// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"

namespace reprise { inline namespace v0 {

/// Holds a sampler with state (random stream, penalties, mirostat, grammar) and advances it once for each committed
/// token, and never otherwise. If the sampler draws each row alone, as below, a seeded run thus gives the same tokens
/// with and without drafting. An engine holds one
/// SamplerHistory per sequence instead of the bare sampler, and needs three lines:
///
///     auto verify(TokenSpan batch, std::size_t drafted) {
///       run the batch; pending_ = batch.size() - drafted;
///       return sampler_.picks(drafted, [this](Sampler& sampler, std::size_t i) {
///         return sampler.sample(logits_after(i));
///       });
///     }
///     void commit(std::size_t keep) {
///       keep the first `keep` rows; sampler_.commit(keep + 1 - pending_);
///     }
///
/// An engine that restores a snapshot calls sampler_.commit(committed) in restore(committed).
///
/// A copy of the sampler draws each pick, starting from the state after the previous pick. commit(n) makes the state
/// after n picks the current one. A void pass therefore does not change the sampler (clause V5). Neither does a pick
/// that is read but not committed, because a predicate stops before it or a stop rule ends the pass earlier.
///
/// If the sampler must see prompt tokens, add them through edit(), between passes.
///
/// Cost: one copy of the sampler for each pick. Memory: one sampler more than the maximum number of picks in a pass.
/// The memory is kept, so in steady state only the copy assignment of a sampler may allocate. Error: out_of_memory,
/// before a pass draws anything. Throws no exceptions of its own. Exceptions from copying and drawing pass through, and
/// the pass is void. Threads: the rules of the engine apply.
template <std::copyable Sampler>
class SamplerHistory {
 public:
  /// Picks that are drawn when they are read; see picks().
  template <class Sample>
  class Picks {
   public:
    Picks(SamplerHistory& history, Sample sample) : history_(&history), sample_(std::move(sample)) {}
    Token operator[](std::size_t i) {
      return history_->draw([&](auto& sampler) { return sample_(sampler, i); });
    }

   private:
    SamplerHistory* history_;
    Sample sample_;
  };

  explicit SamplerHistory(Sampler sampler) : committed_(std::move(sampler)) {}
  /// Copies the committed state and the open pass. If memory runs out, the open pass is not copied.
  SamplerHistory(const SamplerHistory& other) : committed_(other.committed_) {
    if (!grow(other.drawn_)) return;
    for (; drawn_ < other.drawn_; ++drawn_) states_[drawn_] = other.states_[drawn_];
  }
  SamplerHistory(SamplerHistory&& other) noexcept(std::is_nothrow_move_constructible_v<Sampler>)
      : committed_(std::move(other.committed_)),
        states_(std::move(other.states_)),
        room_(std::exchange(other.room_, 0)),
        drawn_(std::exchange(other.drawn_, 0)) {}
  SamplerHistory& operator=(SamplerHistory other) noexcept(std::is_nothrow_swappable_v<Sampler>) {
    using std::swap;
    swap(committed_, other.committed_);
    states_.swap(other.states_);
    swap(room_, other.room_);
    swap(drawn_, other.drawn_);
    return *this;
  }
  ~SamplerHistory() = default;

  /// Allocates memory for `most_picks` picks in a pass; a pass reads at most drafted + 1 picks. Error: out_of_memory;
  /// in that case nothing changes.
  Result<void> reserve(std::size_t most_picks) {
    if (!grow(most_picks))
      return Error{ErrorCode::out_of_memory, "no memory for the states of a sampler: reserve fewer picks", most_picks,
                   0};
    return {};
  }

  /// Begins a pass with `drafted` drafted tokens and returns its picks. `sample(sampler, i)` returns the token after
  /// row (anchor + i). The picks are valid until the next pass, as long as this object and everything that `sample`
  /// refers to exist. Error: out_of_memory; in that case no pass begins.
  template <class Sample>
  [[nodiscard]] Result<Picks<Sample>> picks(std::size_t drafted, Sample sample) {
    if (!begin_pass(drafted))
      return Error{ErrorCode::out_of_memory, "no memory for the states of a sampler: draft fewer tokens", drafted};
    return Picks<Sample>{*this, std::move(sample)};
  }

  /// The first part of picks(), for engines that write their own version of it. Discards the picks drawn since the last
  /// commit and allocates memory for drafted + 1 picks. Returns false if memory runs out.
  [[nodiscard]] bool begin_pass(std::size_t drafted) {
    drawn_ = 0;
    return drafted < unlimited && grow(drafted + 1);
  }
  /// The second part of picks(): draws the next token with `sample(sampler)` and returns it. Call it at most drafted +
  /// 1 times in a pass.
  template <class Sample>
  Token draw(Sample&& sample) {
    REPRISE_EXPECTS(drawn_ < room_);
    State& next = states_[drawn_];
    if (drawn_ == 0)
      next = committed_;
    else
      next = states_[drawn_ - 1];
    const auto token = static_cast<Token>(sample(*next));
    ++drawn_;  // last, because a draw that throws does not count
    return token;
  }

  /// Ends the pass and commits its first `tokens` picks. Precondition: tokens <= drawn().
  void commit(std::size_t tokens) {
    REPRISE_EXPECTS(tokens <= drawn_);
    using std::swap;
    if (tokens != 0 && tokens <= drawn_) swap(committed_, *states_[tokens - 1]);
    drawn_ = 0;
  }

  /// Returns the number of picks drawn in the open pass.
  [[nodiscard]] std::size_t drawn() const noexcept { return drawn_; }
  /// Returns the sampler in its state after the committed tokens.
  [[nodiscard]] const Sampler& sampler() const noexcept REPRISE_LIFETIMEBOUND { return committed_; }
  /// Returns the same sampler for changes, such as prompt tokens or new settings. Discards the open pass.
  [[nodiscard]] Sampler& edit() noexcept REPRISE_LIFETIMEBOUND {
    drawn_ = 0;
    return committed_;
  }

 private:
  // A state is empty until it is first needed. Later picks assign to it, which reuses its memory.
  using State = std::optional<Sampler>;

  /// Makes room for `most_picks` picks in a pass. Returns false and changes nothing if memory runs out.
  [[nodiscard]] bool grow(std::size_t most_picks) {
    if (most_picks <= room_) return true;
    detail::OwnedArray<State> fresh = detail::new_array<State>(most_picks);
    if (fresh == nullptr) return false;
    std::move(states_.get(), states_.get() + room_, fresh.get());
    states_ = std::move(fresh);
    room_ = most_picks;
    return true;
  }

  Sampler committed_;
  // The states after 1, 2, ... picks of the open pass. The remaining states are memory kept from earlier passes.
  detail::OwnedArray<State> states_;
  std::size_t room_ = 0;
  std::size_t drawn_ = 0;
};

}}  // namespace reprise
