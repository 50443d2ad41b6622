// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"
#include "support/layers.hpp"

namespace reprise::testing {

/// Sizes and weights of a Transformer. With the defaults, greedy text never ends and repeats itself. Two fifths of the
/// tokens follow the same two tokens as before, and whole sentences rarely repeat. With attention three times as sharp
/// the text hardly repeats; with half as sharp it loops. Other seeds do one or the other.
struct TransformerShape {
  std::size_t vocabulary = 64;
  std::size_t layers = 2;  ///< 0: embedding only
  std::size_t heads = 4;
  std::size_t head_size = 8;
  std::size_t hidden = 64;  ///< width of the MLP
  std::uint64_t seed = 3;
  float attention_gain = 2;  ///< how sharply attention selects
  float score_gain = 5;      ///< at temperature 1, sampled text has about two likely tokens
};

/// The cache entry of one row.
struct KvRow {
  Token token = 0;           ///< for samplers and tests; attention does not read it
  std::size_t position = 0;  ///< in the sequence; the keys are rotated for it
  Vector keys;               ///< of all layers, one after the other
  Vector values;
};
using KvCache = std::vector<KvRow>;

/// One row of a pass.
struct PassRow {
  Token token = 0;
  std::size_t position = 0;          ///< in its sequence
  NodeIndex parent = anchor_parent;  ///< its parent row in this pass; none: the rows in the cache
  std::size_t sequence = 0;          ///< index of its cache
};

/// A decoder with multi-head attention, rotary positions, RMSNorm and an MLP, with random weights, on a CPU and slow.
/// (Vaswani et al. 2017; the arrangement is that of Llama, Touvron et al. 2023.)
///
/// Each row is computed on its own, over the cached rows in the order of the sequence and then its ancestors in the
/// pass. So the scores after a row are the same to the last bit, however a text is divided into passes and whatever
/// else is in them. Any difference is a bug. Threads: const, any number.
class Transformer {
 public:
  explicit Transformer(const TransformerShape& shape = {}) : Transformer(shape, Random(shape.seed)) {}

  [[nodiscard]] const TransformerShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t width() const noexcept { return shape_.heads * shape_.head_size; }

  /// Runs one token at the end of a cache, and appends its row. `seen`: the rows of the cache that it sees, the new one
  /// last. Returns the residual stream.
  Vector encode(Token token, std::size_t position, KvCache& cache, std::span<const std::size_t> seen) const {
    cache.push_back({token, position, {}, {}});
    KvRow& row = cache.back();
    const auto embedding = embedding_.of(token);
    Vector x(embedding.begin(), embedding.end());
    for (const Layer& layer : layers_) {
      const Vector input = normalized(x);
      Vector query = layer.query * input;
      Vector key = layer.key * input;
      const Vector value = layer.value * input;
      rotate(query, shape_.head_size, position);
      rotate(key, shape_.head_size, position);
      const std::size_t at = row.keys.size();
      row.keys.insert(row.keys.end(), key.begin(), key.end());
      row.values.insert(row.values.end(), value.begin(), value.end());
      add(x, layer.output * attend(query, cache, at, seen));
      Vector hidden = layer.up * normalized(x);
      for (float& h : hidden) h *= sigmoid(h);
      add(x, layer.down * hidden);
    }
    return x;
  }
  /// Returns a score for each token of the vocabulary.
  [[nodiscard]] Vector scores(std::span<const float> x) const { return unembedding_ * normalized(x); }

 private:
  struct Layer {
    Matrix query, key, value, output, up, down;
  };
  Transformer(const TransformerShape& shape, Random random)
      : shape_(shape),
        embedding_(shape.vocabulary, width(), random),
        unembedding_(shape.vocabulary, width(), random, shape.score_gain) {
    for (std::size_t i = 0; i < shape.layers; ++i) {
      Matrix query(width(), width(), random, shape.attention_gain);
      Matrix key(width(), width(), random, shape.attention_gain);
      Matrix value(width(), width(), random);
      Matrix output(width(), width(), random);
      Matrix up(shape.hidden, width(), random);
      Matrix down(width(), shape.hidden, random);
      layers_.push_back(
          {std::move(query), std::move(key), std::move(value), std::move(output), std::move(up), std::move(down)});
    }
  }
  /// Attention, head by head. `at`: the offset of the layer in a row's keys and values.
  [[nodiscard]] Vector attend(std::span<const float> query, const KvCache& cache, std::size_t at,
                              std::span<const std::size_t> seen) const {
    const std::size_t size = shape_.head_size;
    Vector mixed(width());
    Vector products(seen.size());
    for (std::size_t head = 0; head < mixed.size(); head += size) {
      for (std::size_t i = 0; i < seen.size(); ++i)
        products[i] = dot(query.subspan(head, size), std::span(cache[seen[i]].keys).subspan(at + head, size));
      const Vector shares = softmax(products, 1 / std::sqrt(static_cast<float>(size)));
      for (std::size_t i = 0; i < seen.size(); ++i)
        add(std::span(mixed).subspan(head, size), std::span(cache[seen[i]].values).subspan(at + head, size), shares[i]);
    }
    return mixed;
  }

  TransformerShape shape_;
  Matrix embedding_;
  Matrix unembedding_;
  std::vector<Layer> layers_;
};

/// Runs one pass over rows of one or many sequences, and appends each to the cache of its sequence. see(row, seen) may
/// change the cache rows that a row sees; the row itself is last. Returns the scores after each row.
template <class See>
std::vector<Vector> run_rows(const Transformer& model, std::span<const PassRow> rows, std::span<KvCache> caches,
                             See see) {
  std::vector<std::size_t> cached;
  for (const KvCache& cache : caches) cached.push_back(cache.size());
  std::vector<std::vector<std::size_t>> seen(rows.size());
  std::vector<Vector> scores;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PassRow& row = rows[i];
    KvCache& cache = caches[row.sequence];
    if (row.parent != anchor_parent)
      seen[i] = seen[static_cast<std::size_t>(row.parent)];
    else
      for (std::size_t at = 0; at < cached[row.sequence]; ++at) seen[i].push_back(at);
    seen[i].push_back(cache.size());
    std::vector<std::size_t> visible = seen[i];
    see(i, visible);
    scores.push_back(model.scores(model.encode(row.token, row.position, cache, visible)));
  }
  return scores;
}
inline std::vector<Vector> run_rows(const Transformer& model, std::span<const PassRow> rows,
                                    std::span<KvCache> caches) {
  return run_rows(model, rows, caches, [](std::size_t, std::vector<std::size_t>&) {});
}

/// Keeps these rows of the `cache` from `base` on, ascending, as if only they had been run.
inline void keep_rows(KvCache& cache, std::size_t base, std::span<const std::size_t> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != i) cache[base + i] = cache[base + rows[i]];
  cache.resize(base + rows.size());
}

}  // namespace reprise::testing
