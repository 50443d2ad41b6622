// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Many sequences of a model in MLX in one pass: packed rows with one mask.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "mlx_pass.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/engine/tree.hpp"

namespace reprise::mlx {

/// Runs passes of many sequences over one cache, greedily. The rows of all sequences are in one array, and the mask
/// lets a row see those of its own sequence. check_batch() accepts it as a BatchServer.
///
/// Rows that are kept are moved once, when the next pass starts, and those of a sequence that left are dropped then.
/// The model computes the scores of every row with every cached row, also of other sequences, and the mask hides them.
/// So the cost of attention grows with the square of the number of sequences; use it for short contexts, or few
/// sequences.
///
/// Errors: invalid_argument, context_too_long, verifier_failed; they change nothing. out_of_memory: the rows of the
/// last pass that were not committed are void. MLX's exceptions pass through, and leave a server that refuses further
/// passes. Threads: one at a time.
template <MlxModel Model>
class MlxServer {
 public:
  /// The picks of each part of a pass: picks[k][i] is the token after row (anchor + i) of part k.
  using Picks = std::vector<TokenSpan>;

  explicit MlxServer(Model& model, std::size_t top_k = 8) : pass_(model, top_k) {}

  /// Runs tokens of a sequence for their cache rows. Pass all tokens of a prompt but the last.
  Result<void> prefill(std::size_t sequence, TokenSpan tokens) {
    if (tokens.empty()) return {};
    const std::size_t cached = rows_of(sequence);
    if (auto ready = begin({{sequence, tokens, 0, {}, cached + tokens.size()}}); !ready) return ready;
    pass_.fill(describe());
    end();
    parts_.clear();  // nothing is left to commit
    for (std::size_t row = 0; row < tokens.size(); ++row) kept_.push_back(row);
    return {};
  }
  /// Runs one pass. Rows of the pass before it that were not committed become void.
  Result<Picks> verify(std::span<const SequencePass> passes) {
    const auto start = Clock::now();
    if (auto ready = begin({passes.begin(), passes.end()}); !ready) return ready.error();
    const TokenSpan flat = pass_.run(describe());
    end();
    Picks picks;
    for (std::size_t k = 0; k < passes.size(); ++k) picks.push_back(packer_.compact_picks_of(k, flat));
    pass_time_ = Clock::now() - start;
    return picks;
  }
  /// Keeps these rows of the sequence's part of the last pass, in ascending order, counted from the start of the part.
  Result<void> commit(std::size_t sequence, std::span<const std::size_t> rows) {
    const auto part = std::find(parts_.begin(), parts_.end(), sequence);
    if (part == parts_.end() || sequence == nobody)
      return Error{ErrorCode::invalid_argument, "the sequence is not in the last pass, or was committed already",
                   sequence};
    const auto k = static_cast<std::size_t>(part - parts_.begin());
    const PackedBatch batch = packer_.batch();
    const std::size_t size = batch.offsets[k + 1] - batch.offsets[k];
    if (!rows.empty() && rows.back() >= size)
      return Error{ErrorCode::invalid_argument, "the sequence's part of the pass does not have so many rows",
                   rows.back(), size};
    if (std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) != rows.end())
      return Error{ErrorCode::invalid_argument, "the rows to keep must be in ascending order", sequence};
    for (const std::size_t row : rows) kept_.push_back(packer_.flat_row(k, row));
    *part = nobody;
    return {};
  }
  /// Removes a sequence for good. Its rows are dropped when the next pass starts. Another sequence may have its id from
  /// now on.
  void leave(std::size_t sequence) {
    std::erase_if(kept_, [&](std::size_t row) { return in_last_pass(sequence, row); });
    std::replace(owners_.begin(), owners_.end(), sequence, nobody);
    std::replace(parts_.begin(), parts_.end(), sequence, nobody);
  }

  /// The best logit of answer[k][i], minus the second best.
  [[nodiscard]] double margin(std::size_t k, std::size_t i) const { return pass_.margin(output_of(k, i)); }
  /// The likeliest tokens after row (anchor + i) of part k, the likeliest first; valid until the next call.
  [[nodiscard]] TokenSpan top_k(std::size_t k, std::size_t i) { return pass_.top_k(output_of(k, i)); }
  /// The duration of the last verify, with the gather of the rows that were kept before it.
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept { return pass_time_; }
  [[nodiscard]] const MlxCache& cache() const noexcept { return pass_.cache(); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t ids = std::size_t{1} << 31;  // as many as BatchSlot has

  [[nodiscard]] std::size_t output_of(std::size_t k, std::size_t i) const {
    const auto wanted = packer_.batch().logit_rows;
    std::size_t before = 0;
    while (wanted[before] < packer_.batch().offsets[k]) ++before;
    return before + i;
  }
  /// Returns true if this row of the last pass belongs to the sequence.
  [[nodiscard]] bool in_last_pass(std::size_t sequence, std::size_t row) const {
    return static_cast<std::size_t>(packer_.batch().sequences[row]) == sequence;
  }
  /// Counts the committed rows of a sequence, those of the last pass included.
  [[nodiscard]] std::size_t rows_of(std::size_t sequence) const {
    const auto own = [&](std::size_t row) { return in_last_pass(sequence, row); };
    return static_cast<std::size_t>(std::count(owners_.begin(), owners_.end(), sequence) +
                                    std::count_if(kept_.begin(), kept_.end(), own));
  }
  [[nodiscard]] Result<void> check(const SequencePass& part) const {
    if (part.sequence >= ids)
      return Error{ErrorCode::invalid_argument, "the id of a sequence must be below 2147483648: give it another",
                   part.sequence, ids};
    if (part.batch.size() <= part.drafted || part.parents.size() != part.drafted || !is_tree(part.parents))
      return Error{ErrorCode::invalid_argument,
                   "a part has at least one pending row, and a parent for each drafted row", part.sequence};
    if (part.cached() != rows_of(part.sequence))
      return Error{ErrorCode::invalid_argument, "the context does not continue the committed rows of the sequence",
                   part.cached(), rows_of(part.sequence)};
    if (part.context + part.drafted > pass_.model().max_context())
      return Error{ErrorCode::context_too_long,
                   "the context is longer than the model's: shorten the prompt or the output",
                   part.context + part.drafted, pass_.model().max_context()};
    const TokenSpan pending = part.batch.first(part.pending());
    const auto wrong = std::find_if(pending.begin(), pending.end(), [&](Token t) { return !pass_.knows(t); });
    if (wrong != pending.end())
      return Error{ErrorCode::invalid_argument, "a token is not in the model's vocabulary: use the model's tokenizer",
                   static_cast<std::uint64_t>(*wrong), pass_.model().vocabulary()};
    return {};
  }
  /// Checks the parts of a pass, settles the pass before it and packs the parts.
  Result<void> begin(const std::vector<SequencePass>& passes) {
    if (lost_)
      return Error{ErrorCode::verifier_failed, "an earlier pass failed and its cache is lost: make a new server"};
    if (passes.empty()) return Error{ErrorCode::invalid_argument, "a pass needs at least one part"};
    std::vector<std::size_t> sequences;
    for (const SequencePass& part : passes) {
      if (auto fine = check(part); !fine) return fine;
      sequences.push_back(part.sequence);
    }
    std::sort(sequences.begin(), sequences.end());
    if (const auto twice = std::adjacent_find(sequences.begin(), sequences.end()); twice != sequences.end())
      return Error{ErrorCode::invalid_argument, "a pass has only one part of each sequence: send the rest later",
                   *twice};
    lost_ = true;  // until end()
    settle();
    packer_.clear();
    parts_.clear();
    for (const SequencePass& part : passes) {
      if (!packer_.add(part)) {  // the committed rows are in their place, so the server stays usable
        packer_.clear(), parts_.clear(), end();
        return Error{ErrorCode::out_of_memory, "no memory for a pass of so many rows: send fewer"};
      }
      parts_.push_back(part.sequence);
    }
    return {};
  }
  void end() { lost_ = false; }
  /// Gathers the live rows: cached rows whose sequence is still there, then the kept rows of the last pass.
  void settle() {
    const PackedBatch last = packer_.batch();
    const std::size_t base = owners_.size();
    std::sort(kept_.begin(), kept_.end());
    std::vector<std::size_t> live, owners;
    for (std::size_t column = 0; column < base; ++column)
      if (owners_[column] != nobody) live.push_back(column), owners.push_back(owners_[column]);
    for (const std::size_t row : kept_)
      live.push_back(base + row), owners.push_back(static_cast<std::size_t>(last.sequences[row]));
    kept_.clear();
    pass_.cache().keep(0, live);
    owners_ = std::move(owners);
  }
  [[nodiscard]] HostRows describe() {
    const PackedBatch batch = packer_.batch();
    const std::size_t cached = owners_.size(), stride = cached + batch.rows();
    constexpr float hidden = -std::numeric_limits<float>::infinity();
    tokens_.assign(batch.tokens.begin(), batch.tokens.end());
    for (Token& token : tokens_) token = pass_.knows(token) ? token : 0;  // no pick agrees with such a token
    mask_.assign(batch.rows() * stride, hidden);
    for (std::size_t part = 0; part + 1 < batch.offsets.size(); ++part)
      for (std::size_t row = batch.offsets[part]; row < batch.offsets[part + 1]; ++row) {
        float* const cells = mask_.data() + row * stride;
        const NodeIndex parent = batch.parents[row];
        if (parent == anchor_parent) {
          for (std::size_t column = 0; column < cached; ++column)
            if (owners_[column] == parts_[part]) cells[column] = 0;
        } else {
          std::copy_n(mask_.data() + (batch.offsets[part] + static_cast<std::size_t>(parent)) * stride, stride, cells);
        }
        cells[cached + row] = 0;
      }
    return {tokens_, batch.positions, mask_, batch.logit_rows};
  }

  MlxPass<Model> pass_;
  BatchPacker packer_;               // the last pass
  std::vector<std::size_t> parts_;   // the sequence of each part of it; nobody: committed
  std::vector<std::size_t> kept_;    // its rows that were committed
  std::vector<std::size_t> owners_;  // the sequence of each cached row
  bool lost_ = false;
  std::vector<Token> tokens_;
  std::vector<float> mask_;
  std::chrono::nanoseconds pass_time_{};
};

}  // namespace reprise::mlx
