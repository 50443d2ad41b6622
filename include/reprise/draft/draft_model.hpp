// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// A small language model, seen from ModelDrafter: one sequence with a cache that can be cut. What a compiler cannot
/// check:
///
///  M1  feed(tokens) runs the model on `tokens`, at least one, appended to those in its cache, and answers the
///      distribution after the last of them: a weight of at least zero for each token 0 ... vocabulary() - 1, that add
///      up to one, after temperature and cuts. It holds until the next call. An empty answer: it could not (its context
///      is full, it has failed); the round then goes on with what has been drafted so far.
///  M2  truncate(size) keeps the first `size` tokens of its cache. After a feed() that failed or threw, `size` is at
///      most what the cache held before that call.
///  M3  Equal tokens give equal distributions, in whatever runs they were fed: propose() may be called again (S4), and
///      may then feed again what it has fed before.
///  M4  A copy has a cache of its own, with the same tokens: a fork (S7). Weights may be shared.
///  M5  feed() and truncate() are called in propose(), so they do not allocate (S3), beyond what an optional
///      reserve(max_context) could have asked for before. What they throw passes through propose(); the session then
///      goes on without drafts until begin().
///  M6  vocabulary() does not change.
///
/// Threads: one at a time for each model; copies are independent.
template <class M>
concept DraftModel = std::copyable<M> && requires(M& model, const M& same, TokenSpan tokens, std::size_t size) {
  { model.feed(tokens) } -> std::convertible_to<std::span<const float>>;
  model.truncate(size);
  { same.vocabulary() } -> std::convertible_to<std::size_t>;
};

namespace archetype {

/// The least that models DraftModel: it can never say what comes next.
struct Model {
  std::span<const float> feed(TokenSpan) { return {}; }
  void truncate(std::size_t) {}
  [[nodiscard]] std::size_t vocabulary() const { return 0; }
};
static_assert(DraftModel<Model>);

}  // namespace archetype
}  // namespace reprise
