// SPDX-License-Identifier: Apache-2.0
// The Llama model in MLX, compared with loops over doubles.
#include "llama_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mlx_pass.hpp"
#include "reprise_testing/random.hpp"
#include "tiny_model.hpp"

namespace reprise::mlx::llama_model_test {
namespace {

using Numbers = std::vector<double>;

/// A Llama model as the formulas say, a token at a time along one path.
class Reference {
 public:
  Reference(const LlamaConfig& config, const Weights& weights) : c_(config), keys_(c_.layers), values_(c_.layers) {
    for (const auto& [name, array] : weights) {
      const auto* const data = array.data<float>();
      weights_[name] = Numbers(data, data + array.size());
    }
  }

  /// Runs the next token and returns its logits.
  Numbers run(Token token) {
    const Numbers& embedding = weights_.at("model.embed_tokens.weight");
    const auto at = embedding.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * c_.hidden);
    Numbers x(at, at + static_cast<std::ptrdiff_t>(c_.hidden));
    for (std::size_t i = 0; i < c_.layers; ++i) {
      add(x, product(i, "self_attn.o_proj", attention(i, normed(x, weight(i, "input_layernorm")))));
      const Numbers h = normed(x, weight(i, "post_attention_layernorm"));
      Numbers inner = product(i, "mlp.gate_proj", h);
      const Numbers up = product(i, "mlp.up_proj", h);
      for (std::size_t k = 0; k < inner.size(); ++k) inner[k] *= up[k] / (1 + std::exp(-inner[k]));
      add(x, product(i, "mlp.down_proj", inner));
    }
    ++position_;
    return product(weights_.at(c_.tied ? "model.embed_tokens.weight" : "lm_head.weight"),
                   normed(x, weights_.at("model.norm.weight")));
  }

 private:
  [[nodiscard]] const Numbers& weight(std::size_t i, const std::string& name) const {
    return weights_.at("model.layers." + std::to_string(i) + '.' + name + ".weight");
  }
  static void add(Numbers& to, const Numbers& from) {
    for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
  }
  static Numbers product(const Numbers& matrix, const Numbers& x) {
    Numbers out(matrix.size() / x.size());
    for (std::size_t k = 0; k < matrix.size(); ++k) out[k / x.size()] += matrix[k] * x[k % x.size()];
    return out;
  }
  [[nodiscard]] Numbers product(std::size_t i, const std::string& name, const Numbers& x) const {
    return product(weight(i, name), x);
  }
  [[nodiscard]] Numbers normed(const Numbers& x, const Numbers& scale) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double root = std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(c_.norm_epsilon));
    Numbers out = x;
    for (std::size_t k = 0; k < out.size(); ++k) out[k] *= scale[k] / root;
    return out;
  }
  /// Rotary positions: each head's pair (k, k + head size / 2).
  [[nodiscard]] Numbers rotated(Numbers x) const {
    const std::size_t size = c_.head_size, half = size / 2;
    for (std::size_t head = 0; head < x.size(); head += size)
      for (std::size_t k = 0; k < half; ++k) {
        const double angle =
            static_cast<double>(position_) *
            std::pow(static_cast<double>(c_.rope_theta), -2.0 * static_cast<double>(k) / static_cast<double>(size));
        const double a = x[head + k], b = x[head + half + k];
        x[head + k] = a * std::cos(angle) - b * std::sin(angle);
        x[head + half + k] = b * std::cos(angle) + a * std::sin(angle);
      }
    return x;
  }
  Numbers attention(std::size_t i, const Numbers& x) {
    const std::size_t size = c_.head_size;
    const Numbers queries = rotated(product(i, "self_attn.q_proj", x));
    keys_[i].push_back(rotated(product(i, "self_attn.k_proj", x)));
    values_[i].push_back(product(i, "self_attn.v_proj", x));
    Numbers out(queries.size());
    for (std::size_t head = 0; head < c_.heads; ++head) {
      const std::size_t shared = head / (c_.heads / c_.kv_heads) * size;
      Numbers scores;
      for (const Numbers& key : keys_[i]) {
        double sum = 0;
        for (std::size_t k = 0; k < size; ++k) sum += queries[head * size + k] * key[shared + k];
        scores.push_back(std::exp(sum / std::sqrt(static_cast<double>(size))));
      }
      double total = 0;
      for (const double score : scores) total += score;
      for (std::size_t row = 0; row < scores.size(); ++row)
        for (std::size_t k = 0; k < size; ++k)
          out[head * size + k] += scores[row] / total * values_[i][row][shared + k];
    }
    return out;
  }

  LlamaConfig c_;
  std::unordered_map<std::string, Numbers> weights_;
  std::vector<std::vector<Numbers>> keys_, values_;
  std::size_t position_ = 0;
};

TEST(LlamaModel, HasTheLogitsOfTheFormulas) {
  for (const bool tied : {true, false}) {
    const LlamaConfig config = tiny_config(tied);
    const Weights weights = tiny_weights(config, 5);
    const LlamaModel model(config, weights);
    MlxPass<const LlamaModel> pass(model, 1);
    Reference reference(config, weights);
    testing::Random random(3);
    for (std::int32_t position = 0; position < 60; ++position) {
      const auto token = static_cast<Token>(random.below(config.vocabulary));
      const std::uint32_t output = 0;
      static_cast<void>(pass.run({{&token, 1}, {&position, 1}, {}, {&output, 1}}));
      const auto scores = pass.scores(0);
      const Numbers expected = reference.run(token);
      ASSERT_EQ(scores.size(), expected.size());
      for (std::size_t k = 0; k < expected.size(); ++k)
        ASSERT_NEAR(static_cast<double>(scores[k]), expected[k], 1e-3) << "position " << position << ", token " << k;
    }
  }
}

/// Measures whether a row's logits have the same bits in passes of other sizes. The adapter does not rely on it.
TEST(LlamaModel, RowsHardlyDependOnOtherRows) {
  const LlamaModel model = tiny_model(9);
  const std::vector<Token> tokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  const auto last_row = [&](std::size_t in_a_pass) {
    MlxPass<const LlamaModel> pass(model, 1);
    std::vector<float> scores;
    for (std::size_t begin = 0; begin < tokens.size(); begin += in_a_pass) {
      const std::size_t rows = std::min(in_a_pass, tokens.size() - begin);
      std::vector<std::int32_t> positions;
      std::vector<float> mask;
      std::vector<std::uint32_t> outputs;
      for (std::size_t row = 0; row < rows; ++row) {
        positions.push_back(static_cast<std::int32_t>(begin + row));
        outputs.push_back(static_cast<std::uint32_t>(row));
        for (std::size_t column = 0; column < begin + rows; ++column)
          mask.push_back(column <= begin + row ? 0 : -std::numeric_limits<float>::infinity());
      }
      static_cast<void>(pass.run({TokenSpan(tokens).subspan(begin, rows), positions, mask, outputs}));
      const auto last = pass.scores(rows - 1);
      scores.assign(last.begin(), last.end());
    }
    return scores;
  };
  const std::vector<float> alone = last_row(1);
  float most = 0;
  for (const std::size_t rows : {2U, 3U, 5U, 10U}) {
    const std::vector<float> together = last_row(rows);
    for (std::size_t k = 0; k < alone.size(); ++k) most = std::max(most, std::abs(alone[k] - together[k]));
  }
  EXPECT_LT(most, 1e-4F);
  RecordProperty("largest_difference", std::to_string(most));
  std::cout << "largest difference between rows of passes of other sizes: " << most << '\n';
}

}  // namespace
}  // namespace reprise::mlx::llama_model_test
