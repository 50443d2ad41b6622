// SPDX-License-Identifier: Apache-2.0
// An engine on an array framework with lazy evaluation, as in MLX. A call builds a graph; the time is spent where a
// value is read. The engine reads once for each pass, all picks together; one read for each token would cost a
// synchronisation for each. It checks trees: a mask, a position for each row, and a gather that keeps a path.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/engine/tree.hpp"
#include "toy.hpp"

namespace {

/// A value that is computed when it is asked for.
class Array {
 public:
  explicit Array(std::function<std::vector<reprise::Token>()> graph) : graph_(std::move(graph)) {}
  [[nodiscard]] std::vector<reprise::Token> evaluate() const { return graph_(); }

 private:
  std::function<std::vector<reprise::Token>()> graph_;
};

/// Keys and values of one sequence, a row for each token. Trimming moves an offset; nothing is freed.
struct Cache {
  std::vector<reprise::Token> tokens;
  std::vector<std::size_t> positions;
  std::size_t rows = 0;

  void append(reprise::Token token, std::size_t position) {
    tokens.resize(rows);
    positions.resize(rows++);
    tokens.push_back(token);
    positions.push_back(position);
  }
  void trim(std::size_t size) { rows = std::min(rows, size); }
  /// The rows after `base` become base + kept[0], base + kept[1], ...: a gather along the axis of the rows.
  void gather(std::size_t base, std::span<const std::size_t> kept) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      tokens[base + i] = tokens[base + kept[i]];
      positions[base + i] = positions[base + kept[i]];
    }
    rows = base + kept.size();
  }
};

/// The likeliest token after each of the last `outputs` rows of `batch`, not computed yet. Row i of the batch sees
/// the columns of the cache where row i of the mask is 0, and nothing where it is -infinity.
Array argmax_of_model(Cache& cache, reprise::TokenSpan batch, std::span<const std::size_t> positions,
                      std::span<const float> mask, std::size_t outputs) {
  const std::size_t base = cache.rows;
  for (std::size_t i = 0; i < batch.size(); ++i) cache.append(batch[i], positions[i]);
  return Array([&cache, positions, mask, base, outputs] {
    const std::size_t columns = base + positions.size();
    std::vector<reprise::Token> best;
    for (std::size_t row = positions.size() - outputs; row < positions.size(); ++row) {
      std::vector<reprise::Token> seen(positions[row] + 1);  // attention knows the order by positions alone
      for (std::size_t column = 0; column < columns; ++column)
        if (mask[row * columns + column] == 0) seen[cache.positions[column]] = cache.tokens[column];
      best.push_back(toy::next(seen));
    }
    return best;
  });
}

// [sketch]
class Engine {
 public:
  explicit Engine(reprise::TokenSpan prompt) : committed_(prompt.size() - 1) {
    for (std::size_t i = 0; i < committed_; ++i) cache_.append(prompt[i], i);
  }
  // More than one leaf: drafts may be trees.
  [[nodiscard]] reprise::Capabilities capabilities() const { return {.max_leaves = 8}; }

  const std::vector<reprise::Token>& verify_tree(reprise::TokenSpan batch, std::size_t drafted,
                                                 std::span<const reprise::NodeIndex> parents) {
    cache_.trim(committed_);  // V5: drops the rows of a pass that was never committed
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t rows = batch.size();
    const std::size_t pending = rows - drafted;

    // V6: the position of a drafted row is that of the anchor plus its depth, so siblings share one.
    depths_.resize(drafted);
    reprise::tree_depths(parents, std::span(depths_));
    positions_.resize(rows);
    for (std::size_t i = 0; i < rows; ++i)
      positions_[i] = committed_ + (i < pending ? i : pending - 1 + depths_[i - pending]);

    // V6: rows x (cached + rows), 0 where a row sees a column and -infinity elsewhere. The cached columns come first.
    mask_.resize(rows * (committed_ + rows));
    reprise::attention_mask(parents, pending, committed_, committed_ + rows, std::span(mask_));

    // The argmax stays on the device; drafted + 1 integers cross over, once.
    picks_ = argmax_of_model(cache_, batch, positions_, mask_, drafted + 1).evaluate();
    time_ = std::chrono::steady_clock::now() - begin;  // V9: after the evaluation; building the graph takes no time
    return picks_;
  }
  void commit_rows(std::span<const std::size_t> rows) {
    cache_.gather(committed_, rows);  // V8: the rows of a path need not be neighbours, so a trim is not enough
    committed_ += rows.size();
  }

  // Without a tree: each row follows the row before it, and the rows that stay are the first ones.
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    chain_.resize(drafted);
    for (std::size_t i = 0; i < drafted; ++i) chain_[i] = static_cast<reprise::NodeIndex>(i) - 1;
    return verify_tree(batch, drafted, chain_);
  }
  void commit(std::size_t keep) {
    committed_ += keep;
    cache_.trim(committed_);
  }
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept { return time_; }

 private:
  Cache cache_;
  std::size_t committed_;  // rows of the cache that hold committed tokens
  std::vector<reprise::NodeIndex> chain_;
  std::vector<std::size_t> depths_;
  std::vector<std::size_t> positions_;
  std::vector<float> mask_;
  std::vector<reprise::Token> picks_;
  std::chrono::nanoseconds time_{};
};
// [/sketch]
static_assert(reprise::TreeVerifier<Engine> && reprise::TimedVerifier<Engine>);

}  // namespace

int main() {
  return toy::check([](reprise::TokenSpan prompt) { return Engine(prompt); });
}
