// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise::testing {

/// An index that compares every position of the context in turn. It is the reference for the other indexes, and fast
/// enough for contexts of a few hundred tokens. It supports every n-gram length up to NgramOrders::largest and both
/// match orders, whatever the options are.
///
/// Cost: find() is linear in the context, and append() is amortized linear in the appended tokens. Memory: 4 to 5 bytes
/// per token. Tests lower the limit on the tokens.
template <std::size_t max_tokens>
class BasicNaiveIndex {
 public:
  BasicNaiveIndex() noexcept = default;
  explicit BasicNaiveIndex(const IndexOptions& options) noexcept
      : max_bytes_(options.max_bytes), vocabulary_(options.vocabulary) {}
  BasicNaiveIndex(const BasicNaiveIndex&) noexcept = default;
  BasicNaiveIndex(BasicNaiveIndex&& other) noexcept
      : tokens_(std::move(other.tokens_)),
        size_(std::exchange(other.size_, 0)),
        max_bytes_(other.max_bytes_),
        vocabulary_(other.vocabulary_) {}
  BasicNaiveIndex& operator=(BasicNaiveIndex other) noexcept {
    tokens_.swap(other.tokens_);
    size_ = other.size_;
    max_bytes_ = other.max_bytes_;
    vocabulary_ = other.vocabulary_;
    return *this;
  }
  ~BasicNaiveIndex() = default;

  /// Appends `tokens`, which must not point into this index.
  void append(TokenSpan tokens) noexcept {
    if (!exhausted() && grow(tokens_.size() + tokens.size()))
      for (const Token token : tokens)
        tokens_.push_reserved(reprise::detail::indexed_token(token, tokens_.size(), vocabulary_));
    size_ += tokens.size();
  }

  void truncate(std::size_t size) noexcept {
    size_ = std::min(size_, size);
    tokens_.truncate(size_);
  }

  void clear() noexcept { truncate(0); }

  Result<void> reserve(std::size_t tokens) noexcept {
    if (!grow(tokens))
      return Error{ErrorCode::out_of_memory,
                   "the index cannot hold that many tokens: reserve fewer, or raise max_bytes", tokens, 0};
    return {};
  }

  [[nodiscard]] std::size_t find(const MatchLimits& limits, std::span<Match> out) const noexcept {
    const std::size_t end = tokens_.size();
    const std::size_t shortest = limits.shortest;
    if (exhausted() || shortest == 0 || shortest > NgramOrders::largest || end <= shortest) return 0;
    const std::size_t most = std::min<std::size_t>(limits.candidates, out.size());
    const bool recent = limits.order == MatchLimits::Order::most_recent;
    std::size_t found = 0;
    for (std::size_t i = shortest; i < end && found < most; ++i) {
      const std::size_t at = recent ? end - 1 - (i - shortest) : i;
      const std::uint32_t length =
          reprise::detail::agreement(tokens(), at, end, std::max(limits.longest, limits.shortest));
      if (length >= shortest) out[found++] = {static_cast<Position>(at), length};
    }
    return found;
  }

  /// See NgramIndex.
  [[nodiscard]] Position latest(TokenSpan ngram) const noexcept {
    if (exhausted() || ngram.empty()) return 0;
    for (std::size_t end = tokens_.size(); end >= ngram.size(); --end)
      if (std::equal(ngram.begin(), ngram.end(), tokens_.begin() + (end - ngram.size())))
        return static_cast<Position>(end);
    return 0;
  }

  /// Returns the indexed tokens. Unless exhausted(), these are all appended tokens.
  [[nodiscard]] TokenSpan tokens() const noexcept { return {tokens_.data(), tokens_.size()}; }
  [[nodiscard]] bool exhausted() const noexcept { return tokens_.size() < size_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return tokens_.memory_bytes(); }

 private:
  [[nodiscard]] bool grow(std::size_t tokens) noexcept {
    if (tokens > std::min(max_tokens, max_bytes_ / sizeof(Token))) return false;
    if (tokens <= tokens_.capacity()) return true;
    const std::size_t generous = tokens_.capacity() + tokens_.capacity() / 4;
    return (generous > tokens && generous <= max_bytes_ / sizeof(Token) && tokens_.reserve(generous)) ||
           tokens_.reserve(tokens);
  }

  reprise::detail::Buffer<Token> tokens_;
  std::size_t size_ = 0;  // number of appended tokens, including those that did not fit
  std::size_t max_bytes_ = unlimited;
  std::uint32_t vocabulary_ = IndexOptions{}.vocabulary;
};

using NaiveIndex = BasicNaiveIndex<std::numeric_limits<Position>::max()>;
static_assert(NgramIndex<NaiveIndex>);

}  // namespace reprise::testing
