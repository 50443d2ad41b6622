// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/draft_model.hpp"

namespace reprise::inline v0::detail {

/// A draft model kept in step with the committed tokens. It is fed late: only when a distribution is asked for. No
/// token is fed twice while the cache holds it: a draft that was committed is there already. Rejected tokens are cut
/// off before the next feed.
///
/// The cache holds the first fed_ tokens of the context and, if that is all of them, tail_ after them: the path that
/// was drafted last. Memory: the model's.
template <DraftModel Model>
class ModelCache {
 public:
  static constexpr std::size_t longest_path = 64;

  explicit ModelCache(Model model) : model_(std::move(model)) {}

  /// A new sequence: the cache is of no use any more.
  void begin() noexcept { forget(0); }
  /// The tokens that both contexts begin with stay in the cache.
  void rebase(TokenSpan before, TokenSpan context) noexcept {
    const TokenSpan fed = before.first(std::min(fed_, before.size()));
    forget(same_tokens(fed, context));
  }
  /// The last `fresh` tokens of `context` are new.
  void observe(TokenSpan context, std::size_t fresh) noexcept {
    if (fed_ != context.size() - fresh) return forget(fed_);
    const TokenSpan tail(tail_.data(), tail_size_);
    const std::size_t same = same_tokens(tail, context.last(fresh));
    fed_ += same;
    tail_size_ -= same;
    if (same < fresh) return forget(fed_);  // rejected is only the rest of the tail, and there may be none
    std::copy(tail.begin() + static_cast<std::ptrdiff_t>(same), tail.end(), tail_.begin());
  }
  /// The context is cut to `size` tokens.
  void truncate(TokenSpan context, std::size_t size) noexcept {
    if (size < context.size()) forget(std::min(fed_, size));
  }

  /// The distribution after `context` and, after it, `path`. The context is not empty; after it changed, the first path
  /// asked for is the empty one.
  std::span<const float> after(TokenSpan context, TokenSpan path) {
    const std::size_t size = context.size();
    REPRISE_EXPECTS(size > 0 && path.size() <= longest_path && (path.empty() || fed_ == size));
    std::size_t keep = fed_;
    if (fed_ == size) keep += same_tokens(TokenSpan(tail_.data(), tail_size_), path);
    // The last token is fed in any case: the model has kept no distribution but the last.
    keep = std::min(keep, size + path.size() - 1);
    const bool longer = uncertain_ || fed_ + tail_size_ > keep;
    fed_ = std::min(keep, size);
    tail_size_ = keep - fed_;
    uncertain_ = true;  // should the model throw, all that is known is that it can go back to here
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
  /// How many tokens both begin with.
  [[nodiscard]] static std::size_t same_tokens(TokenSpan a, TokenSpan b) noexcept {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  }
  /// Only the first `keep` tokens of the cache are still of use.
  void forget(std::size_t keep) noexcept {
    if (fed_ + tail_size_ > keep) uncertain_ = true;
    fed_ = keep;
    tail_size_ = 0;
  }

  Model model_;
  std::size_t fed_ = 0;
  std::array<Token, longest_path> tail_{};
  std::size_t tail_size_ = 0;
  bool uncertain_ = false;  // the cache may hold more than fed_ and the tail
};

}  // namespace reprise::detail
