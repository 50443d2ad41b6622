// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mlx/mlx.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "llama_model.hpp"
#include "reprise/core/token.hpp"

namespace reprise::mlx {

inline LlamaConfig tiny_config(bool tied = true) {
  return {.vocabulary = 23,
          .hidden = 32,
          .intermediate = 48,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_size = 8,
          .max_context = 200,
          .norm_epsilon = 1e-5F,
          .rope_theta = 100.0F,
          .tied = tied};
}

/// Random weights, so large that the model attends to far tokens, and its texts neither repeat soon nor tie.
inline Weights tiny_weights(const LlamaConfig& config, std::uint64_t seed = 1) {
  Weights weights;
  for (const auto& [name, shape] : LlamaModel::weights_of(config)) {
    const float scale = shape.size() == 1 ? 0.3F : 2.0F / std::sqrt(static_cast<float>(shape.back()));
    mx::array values = mx::random::normal(shape, mx::float32, 0, scale, mx::random::key(seed++));
    if (shape.size() == 1) values = mx::add(values, mx::array(1.0F));
    values.eval();
    weights.insert_or_assign(name, values);
  }
  return weights;
}

inline LlamaModel tiny_model(std::uint64_t seed = 1) {
  const LlamaConfig config = tiny_config();
  return {config, tiny_weights(config, seed)};
}

/// A model that fails when it is told to, and counts its passes.
class FailingModel {
 public:
  explicit FailingModel(LlamaModel model) : model_(std::move(model)) {}
  [[nodiscard]] std::size_t layers() const noexcept { return model_.layers(); }
  [[nodiscard]] std::size_t vocabulary() const noexcept { return model_.vocabulary(); }
  [[nodiscard]] std::size_t max_context() const noexcept { return model_.max_context(); }
  mx::array logits(const MlxRows& rows, MlxCache& cache) {
    ++passes;
    mx::array found = model_.logits(rows, cache);
    const bool fails = std::exchange(fail_next, false) || (fail_after && (*fail_after)-- == 0);
    if (!fails) return found;
    fail_after.reset();
    // The graph is built, and its evaluation writes to the cache before the failure.
    found.eval();
    throw std::runtime_error("the device is lost");
  }

  bool fail_next = false;
  std::optional<std::size_t> fail_after = {};  ///< passes before the one that fails
  std::size_t passes = 0;

 private:
  LlamaModel model_;
};

inline std::vector<Token> tiny_prompt() { return {3, 1, 4, 1, 5, 9, 2, 6}; }

}  // namespace reprise::mlx
