// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "charged_verifier.hpp"
#include "llama_verifier.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// A verifier whose picks are the tokens of a recorded answer. The model still runs every row of every pass, and
/// top_k() returns its rows. So all strategies commit the same text, whatever the rounding of their passes.
///
/// A row on the recorded path picks the next recorded token. Every other row picks the model's own likeliest token;
/// such a pick is never committed.
class RecordedVerifier {
 public:
  class Picks {
   public:
    Picks(const RecordedVerifier& recorded, LlamaVerifier::Picks model) : recorded_(&recorded), model_(model) {}
    Token operator[](std::size_t i) const {
      const std::size_t at = recorded_->next_[i];
      return at < recorded_->answer_.size() ? recorded_->answer_[at] : model_[i];
    }
    [[nodiscard]] std::size_t size() const { return model_.size(); }

   private:
    const RecordedVerifier* recorded_;
    LlamaVerifier::Picks model_;
  };

  /// `answer` follows the first `start` tokens of the context. Both arguments must outlive the verifier.
  RecordedVerifier(ChargedVerifier& verifier, TokenSpan answer, std::size_t start)
      : verifier_(verifier), answer_(answer), start_(start) {}

  Result<Picks> verify(TokenSpan batch, std::size_t drafted) {
    std::vector<NodeIndex> chain(drafted);
    std::iota(chain.begin(), chain.end(), anchor_parent);
    follow(batch, drafted, chain);
    return picked(verifier_.verify(batch, drafted));
  }
  Result<void> commit(std::size_t keep) { return verifier_.commit(keep); }
  Result<Picks> verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    follow(batch, drafted, parents);
    return picked(verifier_.verify_tree(batch, drafted, parents));
  }
  Result<void> commit_rows(std::span<const std::size_t> rows) { return verifier_.commit_rows(rows); }
  Result<void> snapshot() { return verifier_.snapshot(); }
  Result<void> restore(std::size_t committed) { return verifier_.restore(committed); }
  [[nodiscard]] TokenSpan top_k(std::size_t i) noexcept { return verifier_.top_k(i); }
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept { return verifier_.pass_time(); }

 private:
  /// Finds the place in the answer that follows each row from the anchor on; answer_.size(): none.
  void follow(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    const TokenSpan draft = batch.last(drafted);
    const std::size_t committed = verifier_.cached().size() + batch.size() - drafted;
    next_.assign(drafted + 1, answer_.size());
    next_[0] = std::min(committed - start_, answer_.size());
    for (std::size_t i = 0; i < drafted; ++i) {
      const std::size_t at = next_[static_cast<std::size_t>(parents[i] + 1)];
      if (at < answer_.size() && answer_[at] == draft[i]) next_[i + 1] = at + 1;
    }
  }
  Result<Picks> picked(Result<LlamaVerifier::Picks> model) const {
    if (!model) return model.error();
    return Picks(*this, *model);
  }

  ChargedVerifier& verifier_;
  TokenSpan answer_;
  std::size_t start_;
  std::vector<std::size_t> next_;
};

}  // namespace reprise::llama
