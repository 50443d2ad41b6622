// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Models of the Llama architecture in MLX: RMSNorm, rotary positions, grouped-query attention, SwiGLU. Positions
/// and mask are inputs, so the rows of a draft tree can run in one pass.

#include <mlx/mlx.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx_cache.hpp"
#include "mlx_pass.hpp"

namespace reprise::mlx {

/// The sizes of a model. The names in config.json follow each one.
struct LlamaConfig {
  std::size_t vocabulary = 0;    ///< vocab_size
  std::size_t hidden = 0;        ///< hidden_size
  std::size_t intermediate = 0;  ///< intermediate_size
  std::size_t layers = 0;        ///< num_hidden_layers
  std::size_t heads = 0;         ///< num_attention_heads
  std::size_t kv_heads = 0;      ///< num_key_value_heads: divides `heads`
  std::size_t head_size = 0;     ///< head_dim, or hidden_size / num_attention_heads: even
  std::size_t max_context = 0;   ///< max_position_embeddings
  float norm_epsilon = 1e-5F;    ///< rms_norm_eps
  float rope_theta = 10000.0F;   ///< rope_theta
  bool tied = false;             ///< tie_word_embeddings: the head is the matrix of the embeddings
};

/// The weights by their names in Hugging Face's files.
using Weights = std::unordered_map<std::string, mx::array>;

/// A model in float32; implements MlxModel. Memory: the weights. The functions are const and keep no state; MLX's
/// arrays must not be shared between threads.
class LlamaModel {
 public:
  /// Returns the name and the shape of each weight that a model of this size has.
  [[nodiscard]] static std::vector<std::pair<std::string, mx::Shape>> weights_of(const LlamaConfig& c) {
    const int hidden = to_int(c.hidden), inner = to_int(c.intermediate), vocabulary = to_int(c.vocabulary);
    const int queries = to_int(c.heads * c.head_size), keys = to_int(c.kv_heads * c.head_size);
    std::vector<std::pair<std::string, mx::Shape>> all = {{"model.embed_tokens.weight", {vocabulary, hidden}},
                                                          {"model.norm.weight", {hidden}}};
    if (!c.tied) all.push_back({"lm_head.weight", {vocabulary, hidden}});
    for (std::size_t i = 0; i < c.layers; ++i)
      for (const auto& [name, shape] :
           std::vector<std::pair<std::string, mx::Shape>>{{"input_layernorm", {hidden}},
                                                          {"self_attn.q_proj", {queries, hidden}},
                                                          {"self_attn.k_proj", {keys, hidden}},
                                                          {"self_attn.v_proj", {keys, hidden}},
                                                          {"self_attn.o_proj", {hidden, queries}},
                                                          {"post_attention_layernorm", {hidden}},
                                                          {"mlp.gate_proj", {inner, hidden}},
                                                          {"mlp.up_proj", {inner, hidden}},
                                                          {"mlp.down_proj", {hidden, inner}}})
        all.push_back({"model.layers." + std::to_string(i) + '.' + name + ".weight", shape});
    return all;
  }

  /// `weights` must have every weight of weights_of(config), with its shape.
  LlamaModel(const LlamaConfig& config, const Weights& weights)
      : config_(config),
        embedding_(weights.at("model.embed_tokens.weight")),
        norm_(weights.at("model.norm.weight")),
        head_(mx::transpose(config.tied ? embedding_ : weights.at("lm_head.weight"))),
        frequencies_(frequencies(config)) {
    for (std::size_t i = 0; i < config.layers; ++i) {
      const auto get = [&](const char* name) {
        return weights.at("model.layers." + std::to_string(i) + '.' + name + ".weight");
      };
      const auto matrix = [&](const char* name) { return mx::transpose(get(name)); };
      layers_.push_back({get("input_layernorm"), matrix("self_attn.q_proj"), matrix("self_attn.k_proj"),
                         matrix("self_attn.v_proj"), matrix("self_attn.o_proj"), get("post_attention_layernorm"),
                         matrix("mlp.gate_proj"), matrix("mlp.up_proj"), matrix("mlp.down_proj")});
    }
  }

  [[nodiscard]] std::size_t layers() const noexcept { return config_.layers; }
  [[nodiscard]] std::size_t vocabulary() const noexcept { return config_.vocabulary; }
  [[nodiscard]] std::size_t max_context() const noexcept { return config_.max_context; }
  [[nodiscard]] const LlamaConfig& config() const noexcept { return config_; }

  [[nodiscard]] mx::array logits(const MlxRows& rows, MlxCache& cache) const {
    mx::array x = mx::take(embedding_, rows.tokens, 0);
    const mx::array angles = mx::multiply(mx::expand_dims(mx::astype(rows.positions, mx::float32), 1), frequencies_);
    const Rotation rotation{mx::cos(angles), mx::sin(angles)};
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      x = mx::add(x, attention(i, normed(x, layer.input_norm), rotation, rows, cache));
      const mx::array h = normed(x, layer.post_norm);
      const mx::array gate = mx::matmul(h, layer.gate);
      const mx::array inner = mx::multiply(mx::multiply(gate, mx::sigmoid(gate)), mx::matmul(h, layer.up));
      x = mx::add(x, mx::matmul(inner, layer.down));
    }
    return mx::matmul(normed(mx::take(x, rows.outputs, 0), norm_), head_);
  }

 private:
  /// Matrices are transposed: [input, output].
  struct Layer {
    mx::array input_norm, query, key, value, output, post_norm, gate, up, down;
  };
  /// Of each row and pair of dimensions: [rows, head size / 2].
  struct Rotation {
    mx::array cos, sin;
  };

  [[nodiscard]] static mx::array frequencies(const LlamaConfig& config) {
    std::vector<float> values;
    for (std::size_t i = 0; i < config.head_size / 2; ++i)
      values.push_back(
          static_cast<float>(std::pow(static_cast<double>(config.rope_theta),
                                      -2.0 * static_cast<double>(i) / static_cast<double>(config.head_size))));
    return mx::array(values.data(), mx::Shape{1, to_int(values.size())}, mx::float32);
  }
  [[nodiscard]] mx::array normed(const mx::array& x, const mx::array& weight) const {
    return mx::fast::rms_norm(x, weight, config_.norm_epsilon);
  }
  /// [rows, heads * head size] becomes [1, heads, rows, head size].
  [[nodiscard]] mx::array by_head(const mx::array& x, std::size_t heads) const {
    return mx::transpose(mx::reshape(x, {1, x.shape(0), to_int(heads), to_int(config_.head_size)}), {0, 2, 1, 3});
  }
  /// Rotates each head's dimension i with dimension i + head size / 2, as Hugging Face's weights expect.
  [[nodiscard]] static mx::array rotated(const mx::array& x, const Rotation& by) {
    const std::vector<mx::array> half = mx::split(x, 2, -1);
    return mx::concatenate({mx::subtract(mx::multiply(half[0], by.cos), mx::multiply(half[1], by.sin)),
                            mx::add(mx::multiply(half[0], by.sin), mx::multiply(half[1], by.cos))},
                           -1);
  }
  [[nodiscard]] mx::array attention(std::size_t i, const mx::array& x, const Rotation& rotation, const MlxRows& rows,
                                    MlxCache& cache) const {
    const Layer& layer = layers_[i];
    const mx::array queries = rotated(by_head(mx::matmul(x, layer.query), config_.heads), rotation);
    const mx::array keys = rotated(by_head(mx::matmul(x, layer.key), config_.kv_heads), rotation);
    const MlxCache::Rows seen = cache.append(i, keys, by_head(mx::matmul(x, layer.value), config_.kv_heads));
    const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_size));
    const mx::array mixed =
        mx::fast::scaled_dot_product_attention(queries, seen.keys, seen.values, scale, "", rows.mask);
    return mx::matmul(mx::reshape(mx::transpose(mixed, {0, 2, 1, 3}), {x.shape(0), -1}), layer.output);
  }

  LlamaConfig config_;
  mx::array embedding_, norm_, head_, frequencies_;
  std::vector<Layer> layers_;
};
static_assert(MlxModel<const LlamaModel>);

}  // namespace reprise::mlx
