// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/buffer.hpp"
#include "reprise/core/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/draft_model.hpp"

namespace reprise::detail {

/// A draft model kept in step with the committed tokens. It is fed late: only when a distribution is asked for, and
/// never again what its cache holds already, be it that it was drafted before it was committed. What turned out wrong
/// is cut off before the next feed.
///
/// The cache holds the first fed_ tokens of the context and, if that is all of them, tail_ behind: the path that was
/// drafted last. Memory: 4 bytes per token of context, beside the model's.
template <DraftModel Model>
class ModelCache {
 public:
  static constexpr std::size_t longest_path = 64;

  explicit ModelCache(Model model) : model_(std::move(model)) {}

  /// What the new sequence begins with like the old one stays in the cache.
  void begin(TokenSpan tokens) noexcept {
    const TokenSpan fed(context_.data(), fed_);
    const auto same = static_cast<std::size_t>(
        std::mismatch(fed.begin(), fed.end(), tokens.begin(), tokens.end()).first - fed.begin());
    forget(same);
    context_.clear();
    size_ = tokens.size();
    if (!context_.append(tokens)) forget(0);
  }
  void observe(TokenSpan tokens) noexcept {
    const bool whole = fed_ == size_ && complete();
    if (complete()) static_cast<void>(context_.append(tokens));
    size_ += tokens.size();
    if (!whole || !complete()) return forget(std::min(fed_, context_.size()));
    const TokenSpan tail(tail_.data(), tail_size_);
    const auto same = static_cast<std::size_t>(
        std::mismatch(tail.begin(), tail.end(), tokens.begin(), tokens.end()).first - tail.begin());
    fed_ += same;
    if (same < tokens.size()) return forget(fed_);
    std::copy(tail.begin() + static_cast<std::ptrdiff_t>(same), tail.end(), tail_.begin());
    tail_size_ -= same;
  }
  void truncate(std::size_t size) noexcept {
    if (size >= size_) return;
    size_ = size;
    context_.truncate(size);
    forget(std::min(fed_, context_.size()));
  }
  [[nodiscard]] bool reserve(std::size_t max_context) noexcept { return context_.reserve(max_context); }

  /// There was memory for all tokens.
  [[nodiscard]] bool complete() const noexcept { return context_.size() == size_; }
  [[nodiscard]] TokenSpan context() const noexcept { return {context_.data(), context_.size()}; }

  /// The distribution after the context and `path` behind it. The context is complete and not empty; after it changed,
  /// the first path asked for is the empty one.
  std::span<const float> after(TokenSpan path) {
    REPRISE_EXPECTS(complete() && size_ > 0 && path.size() <= longest_path && (path.empty() || fed_ == size_));
    const TokenSpan tail(tail_.data(), tail_size_);
    std::size_t keep = fed_;
    if (fed_ == size_)
      keep += static_cast<std::size_t>(std::mismatch(tail.begin(), tail.end(), path.begin(), path.end()).first -
                                       tail.begin());
    // The last token is fed in any case: of older ones the model has not kept what it said.
    keep = std::min(keep, size_ + path.size() - 1);
    const bool longer = uncertain_ || fed_ + tail_size_ > keep;
    fed_ = std::min(keep, size_);
    tail_size_ = keep - fed_;
    uncertain_ = true;  // should the model throw, all that is known is that it can go back to here
    if (longer) model_.truncate(keep);
    const TokenSpan next = keep < size_ ? context().subspan(keep) : path.subspan(keep - size_);
    const std::span<const float> distribution = model_.feed(next);
    if (distribution.empty()) return {};
    uncertain_ = false;
    fed_ = size_;
    std::copy(path.begin(), path.end(), tail_.begin());
    tail_size_ = path.size();
    return distribution;
  }

  [[nodiscard]] Model& model() noexcept { return model_; }
  [[nodiscard]] const Model& model() const noexcept { return model_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return context_.memory_bytes(); }

 private:
  /// Only the first `keep` tokens of the cache are still of use.
  void forget(std::size_t keep) noexcept {
    if (fed_ + tail_size_ > keep) uncertain_ = true;
    fed_ = keep;
    tail_size_ = 0;
  }

  Model model_;
  Buffer<Token> context_;
  std::size_t size_ = 0;  // tokens observed; more than context_ holds when memory ran out
  std::size_t fed_ = 0;
  std::array<Token, longest_path> tail_{};
  std::size_t tail_size_ = 0;
  bool uncertain_ = false;  // the cache may hold more than fed_ and the tail
};

}  // namespace reprise::detail
