// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "reprise/core/control.hpp"
#include "reprise/core/datastore.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/draft/model_drafter.hpp"
#include "reprise/index/lookup_index.hpp"

/// \file The smallest type that models each optional concept: what a template may use of it, and no more. The minimal
/// models of the concepts that users must implement are in the headers of these concepts.
namespace reprise::archetype {

using LazyPicks = Engine::LazyPicks;
static_assert(Picks<LazyPicks>);

/// The minimal models of the refinements.
struct EngineWithCapabilities : Engine {
  [[nodiscard]] Capabilities capabilities() const { return {}; }
};
static_assert(VerifierWithCapabilities<EngineWithCapabilities>);
struct TruncatableEngine : Engine {
  void truncate(std::size_t) {}
};
static_assert(TruncatableVerifier<TruncatableEngine>);
struct MarginEngine : Engine {
  [[nodiscard]] double margin(std::size_t) const { return 0; }
};
static_assert(MarginVerifier<MarginEngine>);
struct TreeEngine : Engine {
  LazyPicks verify_tree(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
  void commit_rows(std::span<const std::size_t>) {}
};
static_assert(TreeVerifier<TreeEngine>);
struct TimedEngine : Engine {
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept { return {}; }
};
static_assert(TimedVerifier<TimedEngine>);
struct CheckpointEngine : Engine {
  void snapshot() {}
  void restore(std::size_t) {}
};
static_assert(CheckpointVerifier<CheckpointEngine>);
struct TopKEngine : Engine {
  TokenSpan top_k(std::size_t) { return {}; }
};
static_assert(TopKVerifier<TopKEngine>);
struct DistributionEngine : Engine {
  std::span<const float> probabilities(std::size_t) { return {}; }
  double uniform() { return 0; }
};
static_assert(DistributionVerifier<DistributionEngine>);
struct SelfWalkingEngine : Engine {
  Accepted verify_and_walk(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
};
static_assert(SelfWalkingVerifier<SelfWalkingEngine>);
struct ConstrainedEngine : Engine {
  std::size_t allowed(TokenSpan path) { return path.size(); }
};
static_assert(ConstrainedVerifier<ConstrainedEngine>);

/// The minimal model of RebasableStrategy.
struct RebasedStrategy : Strategy {
  void rebase(TokenSpan, TokenSpan) {}
};
static_assert(RebasableStrategy<RebasedStrategy> && !RebasableStrategy<Strategy>);

/// The minimal model of Datastore: holds nothing.
struct Store {
  [[nodiscard]] std::size_t find(TokenSpan, std::span<StoreMatch>) const noexcept { return 0; }
  [[nodiscard]] StoreRun read(StorePlace, std::span<Token>) const noexcept { return {}; }
  void touch(StorePlace) const noexcept {}
};
static_assert(Datastore<Store>);

/// A minimal model of LookupIndex: finds nothing.
struct Index {
  explicit Index(const IndexOptions&) {}
  void append(TokenSpan) {}
  void truncate(std::size_t) {}
  void clear() {}
  [[nodiscard]] std::size_t find(const MatchLimits&, std::span<Match>) const { return 0; }
  [[nodiscard]] TokenSpan tokens() const { return {}; }
  [[nodiscard]] bool exhausted() const { return false; }
  [[nodiscard]] std::size_t memory_bytes() const { return 0; }
  Result<void> reserve(std::size_t) { return {}; }
};
static_assert(LookupIndex<Index>);

/// A minimal model of NgramIndex.
struct LatestIndex : Index {
  using Index::Index;
  [[nodiscard]] Position latest(TokenSpan) const { return 0; }
};
static_assert(NgramIndex<LatestIndex>);

/// The minimal model of DraftControl: never sends a draft.
struct Control {
  void begin() {}
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits&) const { return asked; }
  [[nodiscard]] DraftChoice choose(DraftView, std::span<const NodeIndex>, const PassLimits&) const { return {}; }
  void learn(const Outcome&, const PassReport&) {}
};
static_assert(DraftControl<Control>);

/// A minimal model of DraftModel: every feed() fails.
struct Model {
  std::span<const float> feed(TokenSpan) { return {}; }
  void truncate(std::size_t) {}
  [[nodiscard]] std::size_t vocabulary() const { return 0; }
};
static_assert(DraftModel<Model>);

}  // namespace reprise::archetype
