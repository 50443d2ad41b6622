// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "common/input_error.hpp"
#include "passes.hpp"

namespace reprise::llama {

/// An engine with known times and logits. It keeps the tokens of each sequence, and counts as a fault each row that
/// does not directly follow them.
class FakePasses final : public Passes {
 public:
  std::size_t rows = 512;
  std::size_t size = 100000;
  std::size_t total = 100000;
  std::size_t sequences = 4;
  std::size_t tokens = 32;
  bool rolls_back = true;
  /// Returns the time of a pass, given its rows, the context of its first sequence, and its sequences.
  std::function<std::uint64_t(std::size_t, std::size_t, std::size_t)> time;
  /// Fills the logits of a row, given its sequence's tokens up to and including it, and the rows of the pass.
  std::function<void(TokenSpan, std::size_t, std::vector<float>&)> answer;

  std::map<std::size_t, std::vector<Token>> cache;
  std::size_t faults = 0;
  std::vector<std::size_t> widths;  ///< of all passes
  std::size_t filled = 0;

  [[nodiscard]] std::size_t most_rows() const override { return rows; }
  [[nodiscard]] std::size_t sequence_size() const override { return size; }
  [[nodiscard]] std::size_t total_size() const override { return total; }
  [[nodiscard]] std::size_t most_sequences() const override { return sequences; }
  [[nodiscard]] std::size_t vocabulary() const override { return tokens; }

  std::uint64_t run(std::span<const PassRow> pass) override {
    const std::size_t context = cache[pass[0].sequence].size();
    std::map<std::size_t, bool> different;
    logits_.clear();
    for (const PassRow& row : pass) {
      append(row);
      different[row.sequence] = true;
      logits_.emplace_back(tokens, 0.0F);
      if (answer) answer(cache[row.sequence], pass.size(), logits_.back());
    }
    widths.push_back(pass.size());
    return time ? time(pass.size(), context, different.size()) : 1;
  }
  [[nodiscard]] std::span<const float> logits(std::size_t row) override { return logits_.at(row); }
  void fill(TokenSpan more, std::size_t position, std::size_t sequence) override {
    for (const Token token : more) append({token, position++, sequence});
    filled += more.size();
  }
  void truncate(std::size_t sequence, std::size_t length) override {
    if (!rolls_back) throw tools::InputError("cannot be rolled back");
    if (cache[sequence].size() < length) ++faults;
    cache[sequence].resize(length);
  }
  void clear() override { cache.clear(); }

 private:
  void append(const PassRow& row) {
    if (row.position != cache[row.sequence].size() || row.sequence >= sequences || row.token < 0 ||
        static_cast<std::size_t>(row.token) >= tokens)
      ++faults;
    cache[row.sequence].push_back(row.token);
    std::size_t all = 0;
    for (const auto& [id, held] : cache) all += held.size();
    if (cache[row.sequence].size() > size || all > total) ++faults;
  }

  std::vector<std::vector<float>> logits_;
};

}  // namespace reprise::llama
