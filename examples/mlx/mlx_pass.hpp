// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file One pass of a model over rows with positions and a mask: the part that MlxVerifier and MlxServer share.

#include <mlx/mlx.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "mlx_cache.hpp"
#include "reprise/core/token.hpp"
#include "reprise/engine/top_k.hpp"

namespace reprise::mlx {

/// The rows of a pass, as a model reads them.
struct MlxRows {
  mx::array tokens;               ///< int32 [rows]
  mx::array positions;            ///< int32 [rows]; siblings of a tree share a position
  std::optional<mx::array> mask;  ///< float32 [rows, cached + rows], 0 or -infinity; nullopt: one row that sees all
  mx::array outputs;              ///< int32: the rows whose logits are wanted, ascending
};

/// A decoder. logits() appends the keys and values of the rows to every layer of the cache, without advance(). It
/// returns the logits of the rows in `outputs`: [outputs, vocabulary].
template <class M>
concept MlxModel = requires(M& model, const MlxRows& rows, MlxCache& cache) {
  { model.logits(rows, cache) } -> std::convertible_to<mx::array>;
  { model.layers() } -> std::convertible_to<std::size_t>;
  { model.vocabulary() } -> std::convertible_to<std::size_t>;
  { model.max_context() } -> std::convertible_to<std::size_t>;  ///< positions of one sequence
};

/// Rows on the host.
struct HostRows {
  std::span<const Token> tokens;
  std::span<const std::int32_t> positions;
  std::span<const float> mask;  ///< as in MlxRows
  std::span<const std::uint32_t> outputs;
};

/// Runs passes over a cache, and keeps the logits of the last one. The greedy picks are computed on the device, and
/// read once for each pass. MLX's exceptions pass through; the cache must then be cleared.
template <MlxModel Model>
class MlxPass {
 public:
  MlxPass(Model& model, std::size_t top_k) : model_(&model), cache_(model.layers()), best_(top_k) {}

  /// Returns the likeliest token after each output row; valid until the next call.
  TokenSpan run(const HostRows& rows) {
    const mx::array logits = model_->logits(arrays_of(rows), cache_);
    cache_.advance(rows.tokens.size());
    const mx::array picks = mx::astype(mx::argmax(logits, -1), mx::int32);
    std::vector<mx::array> wanted = {logits, picks};
    cache_.add_to(wanted);
    mx::eval(wanted);
    logits_ = logits, picks_ = picks;
    return {picks_->template data<Token>(), rows.outputs.size()};
  }
  /// Runs rows for their keys and values alone. Nobody reads the logits, so MLX does not compute them.
  void fill(const HostRows& rows) {
    static_cast<void>(model_->logits(arrays_of(rows), cache_));
    cache_.advance(rows.tokens.size());
    std::vector<mx::array> wanted;
    cache_.add_to(wanted);
    mx::eval(wanted);
  }

  /// Returns the likeliest tokens after output row i of the last pass, the likeliest first, from its logits. Nothing is
  /// computed for a row until this call. The tokens are valid until the next call.
  TokenSpan top_k(std::size_t i) { return reprise::top_k(scores(i), best_); }
  /// Returns the score of the pick after output row i, minus the score of the runner-up.
  [[nodiscard]] double margin(std::size_t i) const {
    Token two[2] = {};
    const std::span<const float> row = scores(i);
    if (reprise::top_k(row, two).size() < 2) return 0;
    return static_cast<double>(row[static_cast<std::size_t>(two[0])]) -
           static_cast<double>(row[static_cast<std::size_t>(two[1])]);
  }
  /// Returns the logits after output row i of the last pass, in float32; valid until the next call.
  [[nodiscard]] std::span<const float> scores(std::size_t i) const {
    const int at = to_int(i);
    row_ = mx::contiguous(mx::astype(mx::slice(*logits_, {at, 0}, {at + 1, logits_->shape(1)}), mx::float32));
    row_->eval();
    return {row_->template data<float>(), static_cast<std::size_t>(row_->size())};
  }

  [[nodiscard]] Model& model() const noexcept { return *model_; }
  [[nodiscard]] MlxCache& cache() noexcept { return cache_; }
  [[nodiscard]] const MlxCache& cache() const noexcept { return cache_; }
  /// Returns true if the model has this token.
  [[nodiscard]] bool knows(Token token) const {
    return token >= 0 && static_cast<std::size_t>(token) < model_->vocabulary();
  }

 private:
  [[nodiscard]] static MlxRows arrays_of(const HostRows& rows) {
    MlxRows made{int_array(rows.tokens), int_array(rows.positions), std::nullopt, int_array(rows.outputs)};
    const std::size_t height = rows.tokens.size();
    if (!rows.mask.empty())
      made.mask =
          mx::array(rows.mask.data(), mx::Shape{to_int(height), to_int(rows.mask.size() / height)}, mx::float32);
    return made;
  }

  Model* model_;
  MlxCache cache_;
  std::optional<mx::array> logits_, picks_;  // of the last pass
  mutable std::optional<mx::array> row_;     // the row that scores() has read last
  std::vector<Token> best_;
};

}  // namespace reprise::mlx
