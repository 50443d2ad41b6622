// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise_testing/random.hpp"
#include "support/layers.hpp"
#include "support/row_answers.hpp"
#include "support/transformer.hpp"

namespace reprise::testing {

/// Weights of a RecurrentModel; the sizes are those of TransformerShape. Greedy text repeats itself: three tenths of
/// the tokens follow the same two tokens as before. It does not fall into a loop for some hundred tokens.
struct RecurrentShape {
  std::size_t attention_layers = 0;  ///< below the recurrence; above 0: a hybrid
  std::uint64_t seed = 3;
  float state_gain = 1.5F;  ///< how strongly the state acts on itself
};

/// The state of a recurrent sequence, which only goes forward, and the cache of the layers below.
struct RecurrentState {
  Vector hidden;
  KvCache cache;  ///< without attention, the tokens only
};

/// One gated recurrence (a GRU without reset gate: the minimal gated unit, Zhou et al. 2016) over an embedding or over
/// layers of attention. Random weights, float32. Threads: const, any number.
class RecurrentModel {
 public:
  explicit RecurrentModel(const RecurrentShape& shape = {}) : RecurrentModel(shape, Random(shape.seed + 1000)) {}

  /// Advances a state by one token. Returns a score for each token of the vocabulary.
  Vector advance(RecurrentState& state, Token token) const {
    const std::size_t position = state.cache.size();
    std::vector<std::size_t> seen(position + 1);
    for (std::size_t at = 0; at < seen.size(); ++at) seen[at] = at;
    Vector x = below_.encode(token, position, state.cache, seen);
    state.hidden.resize(x.size());
    const Vector input = normalized(x);
    Vector gate = gate_input_ * input;
    Vector fresh = fresh_input_ * input;
    add(gate, gate_state_ * state.hidden);
    add(fresh, fresh_state_ * state.hidden);
    for (std::size_t i = 0; i < state.hidden.size(); ++i)
      state.hidden[i] += sigmoid(gate[i]) * (std::tanh(fresh[i]) - state.hidden[i]);
    add(x, output_ * state.hidden);
    return below_.scores(x);
  }

 private:
  RecurrentModel(const RecurrentShape& shape, Random random)
      : below_(layers_below(shape)),
        gate_input_(below_.width(), below_.width(), random),
        gate_state_(below_.width(), below_.width(), random, shape.state_gain),
        fresh_input_(below_.width(), below_.width(), random),
        fresh_state_(below_.width(), below_.width(), random, shape.state_gain),
        output_(below_.width(), below_.width(), random, 3) {}
  static TransformerShape layers_below(const RecurrentShape& shape) {
    TransformerShape below;
    below.layers = shape.attention_layers;
    below.seed = shape.seed;
    return below;
  }

  Transformer below_;
  Matrix gate_input_, gate_state_, fresh_input_, fresh_state_, output_;
};

/// The settings of a RecurrentEngine.
struct RecurrentOptions {
  SamplerOptions sampler = {};
  Capabilities capabilities = {};  ///< except the rollback, which the engine sets
};

/// The common part of recurrent engines: they run chains, one row after the other.
class RecurrentBase : public RowAnswers {
 public:
  /// Appends tokens that this engine did not pick: a prompt, a user turn.
  void prefill(TokenSpan tokens) {
    discard_void_pass();
    for (const Token token : tokens) static_cast<void>(model_->advance(state_, token));
  }
  [[nodiscard]] const RecurrentState& state() const noexcept { return state_; }

 protected:
  RecurrentBase(const RecurrentModel& model, TokenSpan prompt, const RecurrentOptions& options)
      : RowAnswers(options.sampler), model_(&model), options_(options) {
    if (!prompt.empty()) prefill(prompt.first(prompt.size() - 1));
  }
  /// Runs a pass. Calls after() after each row.
  template <class After>
  LazyPicks run(TokenSpan batch, std::size_t drafted, After after) {
    discard_void_pass();
    before_ = state_;
    run_ = batch.size();
    pending_ = batch.size() - drafted;
    clear();
    for (std::size_t row = 0; row < batch.size(); ++row) {
      Vector scores = model_->advance(state_, batch[row]);
      if (row + 1 >= pending_) add(std::move(scores), recent());
      after();
    }
    return LazyPicks(*this);
  }
  void discard_void_pass() {
    if (open()) state_ = before_;
    void_pass();
  }
  [[nodiscard]] Capabilities capabilities_with(Rollback rollback) const {
    Capabilities capabilities = options_.capabilities;
    capabilities.rollback = rollback;
    return capabilities;
  }
  [[nodiscard]] std::size_t run_rows() const noexcept { return run_; }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  [[nodiscard]] RecurrentState& current() noexcept { return state_; }
  [[nodiscard]] const RecurrentState& before() const noexcept { return before_; }

 private:
  [[nodiscard]] std::vector<Token> recent() const {
    std::vector<Token> tokens;
    for (std::size_t i = state_.cache.size() - std::min(state_.cache.size(), penalized); i < state_.cache.size(); ++i)
      tokens.push_back(state_.cache[i].token);
    return tokens;
  }

  const RecurrentModel* model_;
  RecurrentOptions options_;
  RecurrentState state_;
  RecurrentState before_;    // before the last pass, in case that is void
  std::size_t run_ = 0;      // rows of the last pass
  std::size_t pending_ = 0;  // of these, the pending ones
};

/// An engine that cannot cut its state: it saves and restores. Over a model with attention layers it is a hybrid: these
/// are cut, and the recurrent part is restored. A commit of less than the whole pass returns an error, and so does a
/// restore without a snapshot. A copy is an independent engine; the model must outlive it. Threads: one at a time.
class RecurrentEngine : public RecurrentBase {
 public:
  /// Prefilled with all but the last token of `prompt`.
  explicit RecurrentEngine(const RecurrentModel& model, TokenSpan prompt = {}, const RecurrentOptions& options = {})
      : RecurrentBase(model, prompt, options) {}

  LazyPicks verify(TokenSpan batch, std::size_t drafted) {
    return run(batch, drafted, [] {});
  }
  Result<void> commit(std::size_t keep) {
    if (!open() || keep != run_rows())
      return Error{ErrorCode::verifier_failed, "this state cannot be cut: a pass is kept whole, or restored"};
    settle(keep + 1 - pending());
    return {};
  }
  void snapshot() {
    discard_void_pass();
    saved_hidden_ = current().hidden;
    saved_rows_ = current().cache.size();
    saved_any_ = true;
  }
  Result<void> restore(std::size_t committed) {
    if (!open() || !saved_any_) return Error{ErrorCode::verifier_failed, "there is no state to go back to"};
    current().hidden = saved_hidden_;
    current().cache.resize(saved_rows_);
    settle(committed);
    return {};
  }

  [[nodiscard]] Capabilities capabilities() const { return capabilities_with(Rollback::snapshot); }

 private:
  Vector saved_hidden_;
  std::size_t saved_rows_ = 0;
  bool saved_any_ = false;
};
static_assert(VerifierWithCapabilities<RecurrentEngine> && CheckpointVerifier<RecurrentEngine> &&
              MarginVerifier<RecurrentEngine> && TopKVerifier<RecurrentEngine> &&
              DistributionVerifier<RecurrentEngine>);

/// An engine that keeps the state after each row of a pass, and continues from any of them. Otherwise like
/// RecurrentEngine.
class PerRowRecurrentEngine : public RecurrentBase {
 public:
  /// Prefilled with all but the last token of `prompt`.
  explicit PerRowRecurrentEngine(const RecurrentModel& model, TokenSpan prompt = {},
                                 const RecurrentOptions& options = {})
      : RecurrentBase(model, prompt, options) {}

  LazyPicks verify(TokenSpan batch, std::size_t drafted) {
    discard_void_pass();
    after_.assign(1, current().hidden);
    return run(batch, drafted, [&] { after_.push_back(current().hidden); });
  }
  Result<void> commit(std::size_t keep) {
    if (!open() || keep > run_rows() || keep + 1 < pending())
      return Error{ErrorCode::verifier_failed, "a commit that fits no pass"};
    current().hidden = after_[keep];
    current().cache.resize(before().cache.size() + keep);
    settle(keep + 1 - pending());
    return {};
  }

  [[nodiscard]] Capabilities capabilities() const { return capabilities_with(Rollback::per_row); }

 private:
  std::vector<Vector> after_;  // after 0 rows, after 1 row, ...
};
static_assert(VerifierWithCapabilities<PerRowRecurrentEngine> && !CheckpointVerifier<PerRowRecurrentEngine> &&
              MarginVerifier<PerRowRecurrentEngine>);

}  // namespace reprise::testing
