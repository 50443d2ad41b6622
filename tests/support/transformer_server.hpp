// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "support/row_answers.hpp"
#include "support/transformer.hpp"

namespace reprise::testing {

/// Rows of many sequences for one forward pass, in the form of engines with continuous batching.
struct PackedRows {
  TokenSpan tokens;
  std::span<const std::size_t> positions;  ///< of each row, in its sequence
  std::span<const std::size_t> sequences;  ///< of each row, the slot of its sequence
  std::span<const std::size_t> offsets;    ///< begin of each sequence in the pass, then the number of rows
  /// The parent of each row, counted from the first row of its sequence in this pass. anchor_parent: the cached rows.
  std::span<const NodeIndex> parents;
};

/// A greedy server: many sequences in slots, one forward pass for all. It uses the given positions and masks, so wrong
/// ones give wrong tokens. With correct ones, each sequence gets the same tokens as alone, to the last bit.
///
/// Rows that are not committed are void: the next forward() drops them, for all sequences. The model must outlive the
/// server. Threads: one at a time.
class TransformerServer {
 public:
  explicit TransformerServer(const Transformer& model) : model_(&model) {}

  /// Prefills all but the last token of a prompt. Returns its slot.
  std::size_t join(TokenSpan prompt) {
    drop_void_rows();
    auto slot = static_cast<std::size_t>(std::find(used_.begin(), used_.end(), false) - used_.begin());
    if (slot == used_.size()) {
      used_.push_back(true);
      caches_.emplace_back();
      committed_.push_back(0);
    }
    used_[slot] = true;
    std::vector<PassRow> rows;
    for (std::size_t i = 0; i + 1 < prompt.size(); ++i)
      rows.push_back({prompt[i], i, static_cast<NodeIndex>(i) - 1, slot});
    static_cast<void>(run_rows(*model_, rows, caches_));
    committed_[slot] = caches_[slot].size();
    return slot;
  }
  /// Frees a slot for reuse.
  void leave(std::size_t slot) {
    used_[slot] = false;
    caches_[slot].clear();
    committed_[slot] = 0;
  }

  /// Runs one pass over PackedRows, or any type with these five arrays, of any integers. Returns the token after each
  /// row, valid until the next pass. Rows after the last sequence are pads: they do not run and give no token.
  template <class Packed = PackedRows>
  TokenSpan forward(const Packed& pass) {
    drop_void_rows();
    const auto index = [](auto integer) { return static_cast<std::size_t>(integer); };
    std::vector<PassRow> rows;
    for (std::size_t sequence = 0; sequence + 1 < pass.offsets.size(); ++sequence)
      for (std::size_t row = index(pass.offsets[sequence]); row < index(pass.offsets[sequence + 1]); ++row) {
        const NodeIndex parent = pass.parents[row];
        const auto first = static_cast<NodeIndex>(pass.offsets[sequence]);
        rows.push_back({pass.tokens[row], index(pass.positions[row]), parent == anchor_parent ? parent : first + parent,
                        index(pass.sequences[row])});
      }
    RowAnswers answers;
    answers.clear();
    for (Vector& scores : run_rows(*model_, rows, caches_)) answers.add(std::move(scores), {});
    picks_.assign(pass.tokens.size(), 0);
    for (std::size_t row = 0; row < answers.size(); ++row) picks_[row] = answers.pick(row);
    return picks_;
  }
  /// Keeps these rows of one sequence's part of the last pass, ascending, counted from the first row of the part.
  void commit(std::size_t slot, std::span<const std::size_t> rows) {
    keep_rows(caches_[slot], committed_[slot], rows);
    committed_[slot] = caches_[slot].size();
  }

 private:
  void drop_void_rows() {
    for (std::size_t slot = 0; slot < caches_.size(); ++slot) caches_[slot].resize(committed_[slot]);
  }

  const Transformer* model_;
  std::vector<KvCache> caches_;         // by slot
  std::vector<std::size_t> committed_;  // committed rows of each cache
  std::vector<bool> used_;
  std::vector<Token> picks_;
};

}  // namespace reprise::testing
