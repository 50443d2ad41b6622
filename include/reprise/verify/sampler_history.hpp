// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include "reprise/core/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"

namespace reprise {

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
///       return sampler_.picks([this](Sampler& sampler, std::size_t i) { return sampler.sample(logits_after(i)); });
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
/// so nothing allocates in steady state but what copy assignment of a sampler does. Throws what copying and drawing
/// throw, and std::bad_alloc where there is room for fewer picks than are read: the pass is void then. Threads: as the
/// engine.
template <std::copyable Sampler>
class SamplerHistory {
 public:
  /// `most_picks`: picks of a pass for which there is room without a further allocation; drafted + 1 are read at most.
  explicit SamplerHistory(Sampler sampler, std::size_t most_picks = 0) {
    states_.reserve(most_picks + 1);
    states_.push_back(std::move(sampler));
  }

  /// Begins a pass. `sample(sampler, i)` gives the token after row (anchor + i). The picks hold until the next pass,
  /// and as long as what `sample` refers to and this object do.
  template <class Sample>
  [[nodiscard]] DrawnPicks<SamplerHistory, Sample> picks(Sample sample) {
    begin_pass();
    return {*this, std::move(sample)};
  }

  /// The two parts of picks(), for engines that write their own: forgets what was drawn since the last commit ...
  void begin_pass() noexcept { drawn_ = 0; }
  /// ... and draws the next token: `sample(sampler)`.
  template <class Sample>
  Token draw(Sample&& sample) {
    if (drawn_ + 1 == states_.size()) {
      states_.push_back(states_[drawn_]);
    } else {
      states_[drawn_ + 1] = states_[drawn_];
    }
    const auto token = static_cast<Token>(sample(states_[drawn_ + 1]));
    ++drawn_;  // not earlier: a draw that throws has not been made
    return token;
  }

  /// The first `tokens` picks of the pass were committed; the pass is over. Not more than were drawn.
  void commit(std::size_t tokens) {
    REPRISE_EXPECTS(tokens <= drawn_);
    using std::swap;
    if (tokens != 0 && tokens <= drawn_) swap(states_[0], states_[tokens]);
    drawn_ = 0;
  }

  /// Picks drawn in the open pass.
  [[nodiscard]] std::size_t drawn() const noexcept { return drawn_; }
  /// The sampler as the committed tokens have left it.
  [[nodiscard]] const Sampler& sampler() const noexcept { return states_[0]; }
  /// The same to change it: prompt tokens, other settings. Gives the open pass up.
  [[nodiscard]] Sampler& edit() noexcept {
    drawn_ = 0;
    return states_[0];
  }

 private:
  std::vector<Sampler> states_;  // after 0, 1, ... picks of the open pass; the rest is memory of former ones
  std::size_t drawn_ = 0;
};

}  // namespace reprise
