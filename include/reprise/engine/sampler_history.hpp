// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "reprise/core/contract.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"

namespace reprise::inline v0 {

/// Picks that are drawn when they are read; see SamplerHistory::picks().
template <class History, class Sample>
class DrawnPicks {
 public:
  DrawnPicks(History& history, Sample sample) : history_(&history), sample_(std::move(sample)) {}
  Token operator[](std::size_t i) {
    return history_->draw([&](auto& sampler) { return sample_(sampler, i); });
  }

 private:
  History* history_;
  Sample sample_;
};

/// A sampler with state (random stream, penalties, mirostat, grammar) that advances once for each committed token and
/// for nothing else, so that a seeded run gives the same tokens with and without drafting. An engine holds one per
/// sequence instead of the bare sampler, and needs three lines:
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
/// Each pick is drawn by a copy of the sampler, as it was after the pick before; commit(n) makes the state after n
/// picks the true one. So a void pass leaves the sampler alone (clause V5), and of a pick that was read but not
/// committed (a predicate that stops before it, a stop rule that ends inside picks drawn all at once) nothing is left.
///
/// What the sampler has to see of a prompt goes in by edit(), between passes.
///
/// Cost: one copy of the sampler for each pick. Memory: as many samplers as the most picks of a pass, plus one; kept,
/// so nothing allocates in steady state but what copy assignment of a sampler does. Errors: out_of_memory, before a
/// pass draws anything. Throws nothing of its own; what copying and drawing throw passes through, and the pass is void.
/// Threads: as the engine.
template <std::copyable Sampler>
class SamplerHistory {
 public:
  explicit SamplerHistory(Sampler sampler) : committed_(std::move(sampler)) {}
  /// A copy that runs short of memory is without the open pass.
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

  /// Room for so many picks of a pass; a pass reads at most drafted + 1. Errors: out_of_memory, nothing changed.
  Result<void> reserve(std::size_t most_picks) {
    if (!grow(most_picks))
      return Error{ErrorCode::out_of_memory, "no memory for the states of a sampler: reserve fewer picks", most_picks,
                   0};
    return {};
  }

  /// Begins a pass with `drafted` drafted tokens. `sample(sampler, i)` gives the token after row (anchor + i). The
  /// picks hold until the next pass, and as long as what `sample` refers to and this object do. Errors: out_of_memory;
  /// then there is no pass.
  template <class Sample>
  [[nodiscard]] Result<DrawnPicks<SamplerHistory, Sample>> picks(std::size_t drafted, Sample sample) {
    if (!begin_pass(drafted)) return Error{ErrorCode::out_of_memory, "no memory for the states of a sampler", drafted};
    return DrawnPicks<SamplerHistory, Sample>{*this, std::move(sample)};
  }

  /// The two parts of picks(), for engines that write their own: forgets what was drawn since the last commit and makes
  /// room for drafted + 1 picks (false: out of memory) ...
  [[nodiscard]] bool begin_pass(std::size_t drafted) {
    drawn_ = 0;
    return drafted < most_states && grow(drafted + 1);
  }
  /// ... and draws the next token, of drafted + 1 at most: `sample(sampler)`.
  template <class Sample>
  Token draw(Sample&& sample) {
    REPRISE_EXPECTS(drawn_ < room_);
    State& next = states_[drawn_];
    if (drawn_ == 0)
      next = committed_;
    else
      next = states_[drawn_ - 1];
    const auto token = static_cast<Token>(sample(*next));
    ++drawn_;  // not earlier: a draw that throws has not been made
    return token;
  }

  /// The first `tokens` picks of the pass were committed; the pass is over. Not more than were drawn.
  void commit(std::size_t tokens) {
    REPRISE_EXPECTS(tokens <= drawn_);
    using std::swap;
    if (tokens != 0 && tokens <= drawn_) swap(committed_, *states_[tokens - 1]);
    drawn_ = 0;
  }

  /// Picks drawn in the open pass.
  [[nodiscard]] std::size_t drawn() const noexcept { return drawn_; }
  /// The sampler as the committed tokens have left it.
  [[nodiscard]] const Sampler& sampler() const noexcept { return committed_; }
  /// The same to change it: prompt tokens, other settings. Gives the open pass up.
  [[nodiscard]] Sampler& edit() noexcept {
    drawn_ = 0;
    return committed_;
  }

 private:
  // Empty until it is first needed; then a pick assigns, which uses the memory of an older state again.
  using State = std::optional<Sampler>;
  static constexpr std::size_t most_states = std::numeric_limits<std::size_t>::max() / sizeof(State) / 2;

  /// False: out of memory, nothing changed.
  [[nodiscard]] bool grow(std::size_t most_picks) {
    if (most_picks <= room_) return true;
    if (most_picks > most_states) return false;
    std::unique_ptr<State[]> fresh(new (std::nothrow) State[most_picks]);
    if (fresh == nullptr) return false;
    std::move(states_.get(), states_.get() + room_, fresh.get());
    states_ = std::move(fresh);
    room_ = most_picks;
    return true;
  }

  Sampler committed_;
  std::unique_ptr<State[]> states_;  // after 1, 2, ... picks of the open pass; the rest is memory of former ones
  std::size_t room_ = 0;
  std::size_t drawn_ = 0;
};

}  // namespace reprise
