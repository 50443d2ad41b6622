// SPDX-License-Identifier: Apache-2.0
// The KV cache of MLX arrays, compared with vectors after random operations.
#include "mlx_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::mlx::mlx_cache_test {
namespace {

using ::testing::ElementsAreArray;
using testing::Random;

constexpr std::size_t heads = 2, head_size = 3, layers = 2;

/// Rows [1, heads, rows, head size]. Each row holds `tag` of the token, its head and its layer.
mx::array rows_of(const std::vector<float>& tags, float offset) {
  std::vector<float> cells;
  for (std::size_t head = 0; head < heads; ++head)
    for (const float tag : tags) cells.insert(cells.end(), head_size, tag + offset + 0.25F * static_cast<float>(head));
  return mx::array(cells.data(), mx::Shape{1, to_int(heads), to_int(tags.size()), to_int(head_size)}, mx::float32);
}

std::vector<float> cells_of(const mx::array& all, std::size_t rows) {
  mx::array first = mx::contiguous(mx::slice(all, {0, 0, 0, 0}, {1, all.shape(1), to_int(rows), all.shape(3)}));
  first.eval();
  return {first.data<float>(), first.data<float>() + first.size()};
}

class CacheAndVectors {
 public:
  explicit CacheAndVectors(std::size_t step) : cache_(layers, step) {}

  void append(std::size_t rows) {
    std::vector<float> fresh;
    for (std::size_t i = 0; i < rows; ++i) fresh.push_back(next_++);
    tags_.insert(tags_.end(), fresh.begin(), fresh.end());
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const auto seen = cache_.append(layer, rows_of(fresh, keys_of(layer)), rows_of(fresh, values_of(layer)));
      EXPECT_EQ(static_cast<std::size_t>(seen.keys.shape(2)), tags_.size());
      EXPECT_THAT(cells_of(seen.values, tags_.size()),
                  ElementsAreArray(cells_of(rows_of(tags_, values_of(layer)), tags_.size())));
    }
    cache_.advance(rows);
  }
  void trim(std::size_t size) {
    cache_.trim(size);
    tags_.resize(size);
  }
  void keep(std::size_t base, const std::vector<std::size_t>& rows) {
    const std::size_t before = cache_.moved_rows();
    cache_.keep(base, rows);
    std::size_t moved = 0;
    std::vector<float> kept(tags_.begin(), tags_.begin() + static_cast<std::ptrdiff_t>(base));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      moved += rows[i] != i ? 1 : 0;
      kept.push_back(tags_[base + rows[i]]);
    }
    tags_ = kept;
    EXPECT_EQ(cache_.moved_rows() - before, moved);
  }
  void check() const {
    ASSERT_EQ(cache_.size(), tags_.size());
    for (std::size_t layer = 0; layer < layers && !tags_.empty(); ++layer) {
      const auto& rows = cache_.layer(layer);
      EXPECT_THAT(cells_of(rows.keys, tags_.size()),
                  ElementsAreArray(cells_of(rows_of(tags_, keys_of(layer)), tags_.size())));
      EXPECT_THAT(cells_of(rows.values, tags_.size()),
                  ElementsAreArray(cells_of(rows_of(tags_, values_of(layer)), tags_.size())));
    }
  }
  [[nodiscard]] std::size_t size() const { return tags_.size(); }
  MlxCache& cache() { return cache_; }

 private:
  static float keys_of(std::size_t layer) { return 1000 * static_cast<float>(layer); }
  static float values_of(std::size_t layer) { return keys_of(layer) + 500; }

  MlxCache cache_;
  std::vector<float> tags_;
  float next_ = 1;
};

TEST(MlxCache, IsLikeVectorsAfterRandomOperations) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    CacheAndVectors both(1 + seed * 3);
    for (int step = 0; step < 40; ++step) {
      const std::size_t before = both.size();
      both.append(1 + random.below(6));
      if (random.chance(30)) {
        both.trim(random.below(both.size() + 1));
      } else {
        std::vector<std::size_t> rows;
        for (std::size_t row = 0; before + row < both.size(); ++row)
          if (random.chance(60)) rows.push_back(row);
        both.keep(before, rows);
      }
      if (random.chance(30)) both.check();
    }
    both.check();
  }
}

TEST(MlxCache, GrowsBySteps) {
  CacheAndVectors both(8);
  const auto capacity = [&] { return both.cache().layer(0).keys.shape(2); };
  both.append(1);
  EXPECT_EQ(capacity(), 8);
  both.append(7);
  EXPECT_EQ(capacity(), 8);
  both.append(9);
  EXPECT_EQ(capacity(), 24);
  both.check();
  both.trim(2);
  EXPECT_EQ(capacity(), 24) << "a trim frees nothing";
}

TEST(MlxCache, IsEmptyAfterClear) {
  CacheAndVectors both(8);
  both.append(5);
  both.cache().clear();
  both.trim(0);
  EXPECT_EQ(both.cache().size(), 0U);
  both.append(3);
  both.check();
}

}  // namespace
}  // namespace reprise::mlx::mlx_cache_test
