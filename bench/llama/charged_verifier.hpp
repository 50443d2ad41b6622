// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "llama_verifier.hpp"
#include "replay/cost_curve.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// A LlamaVerifier that also adds up the cost of its passes under a curve. So the result depends on the passes alone,
/// and not on the machine.
class ChargedVerifier : public LlamaVerifier {
 public:
  /// `curve` may be null: nothing is charged. It must outlive the verifier.
  ChargedVerifier(LlamaVerifier&& verifier, const replay::CostCurve* curve)
      : LlamaVerifier(std::move(verifier)), curve_(curve) {}

  Result<Picks> verify(TokenSpan batch, std::size_t drafted) {
    charge(batch, drafted);
    return LlamaVerifier::verify(batch, drafted);
  }
  Result<Picks> verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    charge(batch, drafted);
    return LlamaVerifier::verify_tree(batch, drafted, parents);
  }
  /// The cost of all passes so far, in passes without a draft.
  [[nodiscard]] double cost() const { return cost_; }

 private:
  /// Charges a pass like a replay: by its rows, and by the committed tokens, which include the pending ones.
  void charge(TokenSpan batch, std::size_t drafted) {
    if (curve_ != nullptr) cost_ += curve_->cost({1, batch.size(), cached().size() + batch.size() - drafted});
  }

  const replay::CostCurve* curve_;
  double cost_ = 0;
};

}  // namespace reprise::llama
