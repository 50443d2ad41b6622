// SPDX-License-Identifier: Apache-2.0
// An engine with lazy arrays, such as MLX: a call builds a graph, and reading a value runs it. Read all picks of a pass
// together, once; otherwise drafting pays for one synchronisation per token.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "reprise/core/token.hpp"
#include "toy.hpp"

namespace {

/// A value that is computed when it is read.
class Array {
 public:
  explicit Array(std::function<std::vector<reprise::Token>()> graph) : graph_(std::move(graph)) {}
  [[nodiscard]] std::vector<reprise::Token> evaluate() const { return graph_(); }

 private:
  std::function<std::vector<reprise::Token>()> graph_;
};

/// The keys and values of one sequence; trimming moves an offset.
struct Cache {
  std::vector<reprise::Token> tokens;
  std::size_t offset = 0;

  void append(reprise::TokenSpan more) {
    tokens.resize(offset);
    tokens.insert(tokens.end(), more.begin(), more.end());
    offset = tokens.size();
  }
  void trim(std::size_t rows) { offset -= std::min(rows, offset); }
};

/// Returns the likeliest token after each of the last `rows` rows, not yet computed.
Array argmax_of_model(Cache& cache, reprise::TokenSpan batch, std::size_t rows) {
  cache.append(batch);
  return Array([&cache, end = cache.offset, rows] {
    std::vector<reprise::Token> best;
    for (std::size_t row = end - rows; row < end; ++row)
      best.push_back(toy::next(reprise::TokenSpan(cache.tokens).first(row + 1)));
    return best;
  });
}

// [sketch]
class Engine {
 public:
  explicit Engine(reprise::TokenSpan prompt) { cache_.append(prompt.first(prompt.size() - 1)); }

  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    cache_.trim(open_);  // V5
    open_ = batch.size();
    // The argmax stays on the device; drafted + 1 integers cross over, once.
    picks_ = argmax_of_model(cache_, batch, drafted + 1).evaluate();
    return picks_;
  }
  void commit(std::size_t keep) {
    cache_.trim(open_ - keep);
    open_ = 0;
  }

 private:
  Cache cache_;
  std::vector<reprise::Token> picks_;
  std::size_t open_ = 0;  // rows of the pass that waits for its commit
};
// [/sketch]

}  // namespace

int main() {
  return toy::check([](reprise::TokenSpan prompt) { return Engine(prompt); });
}
