// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// A small language model for ModelDrafter: one sequence with a cache that can be truncated. Requirements that a
/// compiler cannot check:
///
///  M1  feed(tokens) appends `tokens` (at least one) to the cache and runs the model on them. It returns the
///      distribution after the last token: one non-negative weight for each token 0 ... vocabulary() - 1. The weights
///      sum to one, after temperature and truncation (top-k, top-p). The span is valid until the next call. An empty
///      span means failure, for example because the context is full. The round then continues with the nodes drafted so
///      far.
///  M2  truncate(size) keeps the first `size` tokens of the cache. After a feed() that failed or threw, `size` is at
///      most the size of the cache before that call.
///  M3  Equal tokens give equal distributions, regardless of how they are split into calls of feed(). propose() may be
///      called again (S4), and may feed the same tokens again.
///  M4  A copy is a fork (S7): it has its own cache with the same tokens. Copies may share the weights.
///  M5  propose() calls feed() and truncate(), so they do not allocate (S3), except for memory that an optional
///      reserve(max_context) could have allocated before. Exceptions pass through propose(); the session then continues
///      without drafts until begin() or rebase().
///  M6  vocabulary() does not change.
///
/// Threads: one at a time for each model; copies are independent.
template <class M>
concept DraftModel = std::copyable<M> && requires(M& model, const M& same, TokenSpan tokens, std::size_t size) {
  { model.feed(tokens) } -> std::convertible_to<std::span<const float>>;
  model.truncate(size);
  { same.vocabulary() } -> std::convertible_to<std::size_t>;
};

}  // namespace reprise
