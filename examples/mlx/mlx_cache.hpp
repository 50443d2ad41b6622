// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A KV cache of MLX arrays, for one sequence or for several that share its rows.

#include <mlx/mlx.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace reprise::mlx {

namespace mx = ::mlx::core;

/// MLX counts in int.
[[nodiscard]] inline int to_int(std::size_t n) noexcept { return static_cast<int>(n); }

/// Returns a one-dimensional array of int32 with these values.
template <class Integer>
[[nodiscard]] mx::array int_array(std::span<const Integer> values) {
  std::vector<std::int32_t> copied(values.size());
  std::transform(values.begin(), values.end(), copied.begin(), [](Integer v) { return static_cast<std::int32_t>(v); });
  return mx::array(copied.data(), mx::Shape{to_int(copied.size())}, mx::int32);
}

/// The keys and values of all layers. A row belongs to one token, and is the same row in every layer. The arrays have
/// the shape [1, heads, capacity, head size], and grow by `step` rows; rows from size() on are unused.
///
/// Cost: trim() moves no data. append() builds a graph that writes only the new rows, and the next evaluation pays for
/// it. MLX updates an array in place only if nothing else refers to it. So keep() evaluates the rows that move at once;
/// a gather inside of the next pass would make that pass copy the whole cache. After a failed evaluation, only clear()
/// may be called. Threads: one at a time.
class MlxCache {
 public:
  /// The keys and values that a pass sees in one layer.
  struct Rows {
    mx::array keys, values;
  };

  explicit MlxCache(std::size_t layers, std::size_t step = 256)
      : layers_(layers), step_(std::max<std::size_t>(step, 1)) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Returns the number of rows that keep() has moved so far.
  [[nodiscard]] std::size_t moved_rows() const noexcept { return moved_; }

  /// Writes new rows of one layer after the first size() rows, and returns those rows and the new ones. Both arrays
  /// have the shape [1, heads, rows, head size]. The rows become part of the cache when advance() is called, once for
  /// all layers.
  [[nodiscard]] Rows append(std::size_t layer, const mx::array& keys, const mx::array& values) {
    std::optional<Rows>& cached = layers_[layer];
    const std::size_t end = size_ + static_cast<std::size_t>(keys.shape(2));
    if (!cached) cached = Rows{unused(keys, 0), unused(values, 0)};
    const auto capacity = static_cast<std::size_t>(cached->keys.shape(2));
    if (end > capacity) {
      const std::size_t more = (end - capacity + step_ - 1) / step_ * step_;
      cached->keys = mx::concatenate({cached->keys, unused(keys, more)}, 2);
      cached->values = mx::concatenate({cached->values, unused(values, more)}, 2);
    }
    write(cached->keys, keys, size_);
    write(cached->values, values, size_);
    return {first_rows(cached->keys, end), first_rows(cached->values, end)};
  }
  void advance(std::size_t rows) noexcept { size_ += rows; }

  /// Keeps the first `size` rows.
  void trim(std::size_t size) noexcept { size_ = std::min(size_, size); }
  /// Keeps the first `base` rows and then the rows base + rows[0], base + rows[1], ... `rows` is ascending. The leading
  /// rows that are in their place already stay; only the others are moved.
  void keep(std::size_t base, std::span<const std::size_t> rows) {
    std::size_t fixed = 0;
    while (fixed < rows.size() && rows[fixed] == fixed) ++fixed;
    size_ = base + rows.size();
    if (fixed == rows.size()) return;
    moved_ += rows.size() - fixed;
    const mx::array from = mx::add(int_array(rows.subspan(fixed)), mx::array(to_int(base)));
    std::vector<mx::array> moved;
    for (const std::optional<Rows>& layer : layers_)
      moved.insert(moved.end(), {mx::take(layer->keys, from, 2), mx::take(layer->values, from, 2)});
    mx::eval(moved);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      write(layers_[i]->keys, moved[2 * i], base + fixed);
      write(layers_[i]->values, moved[2 * i + 1], base + fixed);
    }
  }
  /// Drops all rows, and the arrays.
  void clear() {
    layers_.assign(layers_.size(), std::nullopt);
    size_ = 0;
  }

  /// The arrays of a layer to which append() has written, whole.
  [[nodiscard]] const Rows& layer(std::size_t i) const { return *layers_[i]; }
  /// Adds every array of the cache to `arrays`, to evaluate them with others.
  void add_to(std::vector<mx::array>& arrays) const {
    for (const std::optional<Rows>& layer : layers_)
      if (layer) arrays.insert(arrays.end(), {layer->keys, layer->values});
  }

 private:
  [[nodiscard]] static mx::array unused(const mx::array& like, std::size_t rows) {
    return mx::zeros({1, like.shape(1), to_int(rows), like.shape(3)}, like.dtype());
  }
  [[nodiscard]] static mx::array first_rows(const mx::array& all, std::size_t end) {
    return mx::slice(all, {0, 0, 0, 0}, {1, all.shape(1), to_int(end), all.shape(3)});
  }
  /// The old array is given up before the evaluation, so that MLX may write to its memory.
  static void write(mx::array& into, const mx::array& rows, std::size_t at) {
    const mx::Shape start = {0, 0, to_int(at), 0};
    const mx::Shape stop = {1, into.shape(1), to_int(at) + rows.shape(2), into.shape(3)};
    into = mx::slice_update(into, rows, start, stop);
  }

  std::vector<std::optional<Rows>> layers_;
  std::size_t step_;
  std::size_t size_ = 0;
  std::size_t moved_ = 0;
};

}  // namespace reprise::mlx
