// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/draft_model.hpp"

namespace reprise::inline v0::detail {

/// Keeps the cache of a draft model in step with the committed tokens. The model is fed lazily, when a distribution is
/// requested. Tokens that the cache holds, such as those of a committed draft, are not fed again, except the last one
/// of a request. Rejected tokens are removed before the next feed().
///
/// The cache holds the first fed_ tokens of the context. If these are the whole context, the cache also holds tail_,
/// the path that was drafted last. Memory: that of the model.
template <DraftModel Model>
class ModelCache {
 public:
  static constexpr std::size_t longest_path = 64;

  explicit ModelCache(Model model) : model_(std::move(model)) {}

  /// Starts a new sequence. Marks all tokens in the cache as invalid.
  void begin() noexcept { forget(0); }
  /// Replaces the context. Keeps the tokens in the cache that belong to the common beginning of both contexts.
  void rebase(TokenSpan before, TokenSpan context) noexcept {
    const TokenSpan fed = before.first(std::min(fed_, before.size()));
    forget(same_tokens(fed, context));
  }
  /// Adds the last `fresh` tokens of `context`, which are new.
  void observe(TokenSpan context, std::size_t fresh) noexcept {
    if (fed_ != context.size() - fresh) return forget(fed_);
    const TokenSpan tail(tail_.data(), tail_size_);
    const std::size_t same = same_tokens(tail, context.last(fresh));
    fed_ += same;
    tail_size_ -= same;
    if (same < fresh) return forget(fed_);  // the rest of the tail, if any, was rejected
    std::copy(tail.begin() + static_cast<std::ptrdiff_t>(same), tail.end(), tail_.begin());
  }
  /// Cuts the context to `size` tokens.
  void truncate(TokenSpan context, std::size_t size) noexcept {
    if (size < context.size()) forget(std::min(fed_, size));
  }

  /// Returns the distribution after `context` and `path`, or an empty span if the model fails. Preconditions: `context`
  /// is not empty; `path` has at most `longest_path` tokens. `path` is empty in the first call after a change of the
  /// context or a failure.
  std::span<const float> after(TokenSpan context, TokenSpan path) {
    const std::size_t size = context.size();
    REPRISE_EXPECTS(size > 0 && path.size() <= longest_path && (path.empty() || fed_ == size));
    std::size_t keep = fed_;
    if (fed_ == size) keep += same_tokens(TokenSpan(tail_.data(), tail_size_), path);
    // The last token is always fed, even if the cache holds it, because the model keeps only its last distribution.
    keep = std::min(keep, size + path.size() - 1);
    const bool longer = uncertain_ || fed_ + tail_size_ > keep;
    fed_ = std::min(keep, size);
    tail_size_ = keep - fed_;
    uncertain_ = true;  // until feed() succeeds; if it throws, only the first `keep` tokens are certain
    if (longer) model_.truncate(keep);
    const TokenSpan next = keep < size ? context.subspan(keep) : path.subspan(keep - size);
    const std::span<const float> distribution = model_.feed(next);
    if (distribution.empty()) return {};
    uncertain_ = false;
    fed_ = size;
    std::copy(path.begin(), path.end(), tail_.begin());
    tail_size_ = path.size();
    return distribution;
  }

  [[nodiscard]] Model& model() noexcept { return model_; }
  [[nodiscard]] const Model& model() const noexcept { return model_; }

 private:
  /// Returns the length of the common beginning of `a` and `b`.
  [[nodiscard]] static std::size_t same_tokens(TokenSpan a, TokenSpan b) noexcept {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  }
  /// Marks all but the first `keep` tokens of the cache as invalid.
  void forget(std::size_t keep) noexcept {
    if (fed_ + tail_size_ > keep) uncertain_ = true;
    fed_ = keep;
    tail_size_ = 0;
  }

  Model model_;
  std::size_t fed_ = 0;
  std::array<Token, longest_path> tail_{};
  std::size_t tail_size_ = 0;
  bool uncertain_ = false;  // the cache may hold more than the fed_ tokens and the tail
};

}  // namespace reprise::detail
