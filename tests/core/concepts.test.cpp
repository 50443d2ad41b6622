// SPDX-License-Identifier: Apache-2.0
// The concepts of the library from both sides: types that must model them, and near misses that must not. One near miss
// of each concept must also fail with a readable message; see tests/compile_fail.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/index/lookup_index.hpp"
#include "support/archetypes.hpp"

namespace reprise::concepts_test {
namespace {

// --- DraftStrategy ---

static_assert(DraftStrategy<archetype::Strategy>);
static_assert(!ReservableStrategy<archetype::Strategy> && !MeasurableStrategy<archetype::Strategy>);

enum class Call : std::uint8_t { none, begin, observe, propose, feedback, truncate };
/// A strategy without one of its functions.
template <Call missing>
struct Without {
  void begin(TokenSpan) requires(missing != Call::begin) {}
  void observe(TokenSpan, std::size_t, Origin) requires(missing != Call::observe) {}
  void propose(TokenSpan, Draft&) requires(missing != Call::propose) {}
  void feedback(TokenSpan, const Outcome&) requires(missing != Call::feedback) {}
  void truncate(TokenSpan, std::size_t) requires(missing != Call::truncate) {}
};
static_assert(DraftStrategy<Without<Call::none>>);
static_assert(!DraftStrategy<Without<Call::begin>> && !DraftStrategy<Without<Call::observe>> &&
              !DraftStrategy<Without<Call::propose>> && !DraftStrategy<Without<Call::feedback>> &&
              !DraftStrategy<Without<Call::truncate>>);

struct IgnorantOfOrigin : archetype::Strategy {
  void observe(TokenSpan, std::size_t) {}
};
static_assert(!DraftStrategy<IgnorantOfOrigin>);

struct KeeperOfBudgets : archetype::Strategy {
  void propose(DraftBudget&, Draft&) {}
};
static_assert(!DraftStrategy<KeeperOfBudgets>, "the budget is not the strategy's to change");

struct WriterOfTheContext : archetype::Strategy {
  void propose(std::span<Token>, Draft&) {}
};
static_assert(!DraftStrategy<WriterOfTheContext>, "the context is lent to read");

struct KeeperOfTheDraft : archetype::Strategy {
  void propose(TokenSpan, Draft&&) {}
};
static_assert(!DraftStrategy<KeeperOfTheDraft>, "the draft stays the session's");

struct Unforkable : archetype::Strategy {
  std::unique_ptr<int> state;
};
static_assert(!DraftStrategy<Unforkable>, "a strategy that cannot be copied cannot be forked");

struct Unassignable : archetype::Strategy {
  const int setting = 0;
};
static_assert(!DraftStrategy<Unassignable>);

struct Reservable : archetype::Strategy {
  void reserve(std::size_t) {}
};
static_assert(ReservableStrategy<Reservable>);

struct Measurable : archetype::Strategy {
  [[nodiscard]] std::size_t memory_bytes() const { return 0; }
};
static_assert(MeasurableStrategy<Measurable>);

struct MeasuresWords : archetype::Strategy {
  [[nodiscard]] std::string memory_bytes() const { return "few"; }
};
static_assert(DraftStrategy<MeasuresWords> && !MeasurableStrategy<MeasuresWords>);

struct MeasuresWhenMutable : archetype::Strategy {
  std::size_t memory_bytes() { return 0; }
};
static_assert(!MeasurableStrategy<MeasuresWhenMutable>);

// --- Picks ---

static_assert(Picks<archetype::LazyPicks>);
static_assert(Picks<std::vector<Token>> && Picks<std::span<const Token>> && Picks<const Token*>);
static_assert(Picks<std::vector<char>>, "anything that becomes a token");
static_assert(!Picks<std::vector<std::uint32_t>> && !Picks<std::vector<std::int64_t>>, "as in a prompt");
static_assert(!std::is_constructible_v<TokenSpan, std::vector<std::uint32_t>&>);
static_assert(!Picks<std::vector<std::string>>);
static_assert(!Picks<int>);

struct PicksByCall {
  Token operator()(std::size_t) { return 0; }
};
static_assert(!Picks<PicksByCall>);

// --- Verifier ---

static_assert(Verifier<archetype::Engine>);
static_assert(!VerifierWithCapabilities<archetype::Engine> && !TruncatableVerifier<archetype::Engine> &&
              !MarginVerifier<archetype::Engine>);
static_assert(VerifierWithCapabilities<archetype::EngineWithCapabilities> &&
              TruncatableVerifier<archetype::TruncatableEngine> && MarginVerifier<archetype::MarginEngine>);

struct ReturnsVector {
  std::vector<Token> verify(TokenSpan, std::size_t) { return {0}; }
  void commit(std::size_t) {}
};
static_assert(Verifier<ReturnsVector>);

struct ReturnsReference {
  const std::vector<Token>& verify(TokenSpan, std::size_t) { return picks; }
  void commit(std::size_t) {}
  std::vector<Token> picks;
};
static_assert(Verifier<ReturnsReference>);

struct ReturnsResult {
  Result<std::span<const Token>> verify(TokenSpan, std::size_t) { return std::span<const Token>(); }
  Result<void> commit(std::size_t) { return {}; }
};
static_assert(Verifier<ReturnsResult>);

struct WithoutVerify {
  void commit(std::size_t) {}
};
static_assert(!Verifier<WithoutVerify>);

struct WithoutCommit {
  std::vector<Token> verify(TokenSpan, std::size_t) { return {0}; }
};
static_assert(!Verifier<WithoutCommit>);

struct PicksWords {
  std::vector<std::string> verify(TokenSpan, std::size_t) { return {}; }
  void commit(std::size_t) {}
};
static_assert(!Verifier<PicksWords>);

struct PicksWordsInAResult {
  Result<std::vector<std::string>> verify(TokenSpan, std::size_t) { return std::vector<std::string>(); }
  void commit(std::size_t) {}
};
static_assert(!Verifier<PicksWordsInAResult>);

struct PicksNothing {
  void verify(TokenSpan, std::size_t) {}
  void commit(std::size_t) {}
};
static_assert(!Verifier<PicksNothing>);

struct IgnorantOfDrafts {
  std::vector<Token> verify(TokenSpan) { return {0}; }
  void commit(std::size_t) {}
};
static_assert(!Verifier<IgnorantOfDrafts>);

struct WritesTheBatch {
  std::vector<Token> verify(std::span<Token>, std::size_t) { return {0}; }
  void commit(std::size_t) {}
};
static_assert(!Verifier<WritesTheBatch>, "the batch is not the engine's to change");

struct DescribesInWords : archetype::Engine {
  [[nodiscard]] std::string capabilities() const { return "anything"; }
};
static_assert(Verifier<DescribesInWords> && !VerifierWithCapabilities<DescribesInWords>);

struct MarginWithoutRow : archetype::Engine {
  [[nodiscard]] double margin() const { return 0; }
};
static_assert(!MarginVerifier<MarginWithoutRow>);

struct Tree : archetype::Engine {
  Result<std::vector<Token>> verify_tree(TokenSpan, std::size_t, std::span<const NodeIndex>) {
    return std::vector<Token>{0};
  }
  Result<void> commit_rows(std::span<const std::size_t>) { return {}; }
};
static_assert(TreeVerifier<archetype::TreeEngine> && TreeVerifier<Tree> && !TreeVerifier<archetype::Engine>);

struct TreeWithoutRows : archetype::Engine {
  archetype::LazyPicks verify_tree(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
};
static_assert(Verifier<TreeWithoutRows> && !TreeVerifier<TreeWithoutRows>, "a path is kept by its rows");

struct TreeWithoutParents : archetype::Engine {
  archetype::LazyPicks verify_tree(TokenSpan, std::size_t) { return {}; }
  void commit_rows(std::span<const std::size_t>) {}
};
static_assert(!TreeVerifier<TreeWithoutParents>);

struct TreeOfWords : archetype::TreeEngine {
  std::vector<std::string> verify_tree(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
};
static_assert(!TreeVerifier<TreeOfWords>);

struct TreeThatCannotCommitChains {
  archetype::LazyPicks verify_tree(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
  void commit_rows(std::span<const std::size_t>) {}
};
static_assert(!TreeVerifier<TreeThatCannotCommitChains>, "it is a Verifier first");

struct TimedInMilliseconds : archetype::Engine {
  [[nodiscard]] std::chrono::milliseconds pass_time() const noexcept { return {}; }
};
static_assert(TimedVerifier<archetype::TimedEngine> && TimedVerifier<TimedInMilliseconds>);
static_assert(!TimedVerifier<archetype::Engine>);

struct TimedInNumbers : archetype::Engine {
  [[nodiscard]] double pass_time() const { return 0; }
};
static_assert(!TimedVerifier<TimedInNumbers>, "a number has no unit");

struct SavesWithoutRestoring : archetype::Engine {
  void snapshot() {}
};
static_assert(!CheckpointVerifier<SavesWithoutRestoring>);

struct RestoresWithoutCount : archetype::Engine {
  void snapshot() {}
  void restore() {}
};
static_assert(!CheckpointVerifier<RestoresWithoutCount>, "a sampler has to know how many draws were for good");

struct Restoring : archetype::Engine {
  Result<void> snapshot() { return {}; }
  Result<void> restore(std::size_t) { return {}; }
};
static_assert(CheckpointVerifier<Restoring> && !CheckpointVerifier<archetype::Engine>);

struct RanksOne : archetype::Engine {
  Token top_k(std::size_t) { return 0; }
};
static_assert(!TopKVerifier<RanksOne> && !TopKVerifier<archetype::Engine>);

struct RanksAnArray : archetype::Engine {
  const std::vector<Token>& top_k(std::size_t) { return best; }
  std::vector<Token> best;
};
static_assert(TopKVerifier<RanksAnArray>);

struct WeighsInDoubles : archetype::DistributionEngine {
  std::span<const double> probabilities(std::size_t) { return {}; }
};
static_assert(!DistributionVerifier<WeighsInDoubles>);

struct WeighsWithoutRandomNumbers : archetype::Engine {
  std::span<const float> probabilities(std::size_t) { return {}; }
};
static_assert(!DistributionVerifier<WeighsWithoutRandomNumbers>);

struct WalksToPicks : archetype::Engine {
  archetype::LazyPicks verify_and_walk(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
};
static_assert(!SelfWalkingVerifier<WalksToPicks>, "it answers the rows, too");

struct WalksOrFails : archetype::Engine {
  Result<Accepted> verify_and_walk(TokenSpan, std::size_t, std::span<const NodeIndex>) { return Accepted{}; }
};
static_assert(SelfWalkingVerifier<WalksOrFails> && !SelfWalkingVerifier<archetype::Engine>);

struct AllowsOneToken : archetype::Engine {
  bool allowed(Token) { return true; }
};
static_assert(!ConstrainedVerifier<AllowsOneToken>, "it is asked for a whole path");

// --- refinements of strategies ---

struct Learning : archetype::Strategy {
  [[nodiscard]] std::size_t top_k_wanted() const { return 8; }
};
static_assert(TopKLearner<Learning> && !TopKLearner<archetype::Strategy>);

struct ReadingRows : archetype::Strategy {
  void learn_row(TokenSpan, TokenSpan) {}
};
static_assert(RowLearner<ReadingRows> && !RowLearner<archetype::Strategy>);

struct ReadingTokens : archetype::Strategy {
  void learn_row(Token, TokenSpan) {}
};
static_assert(!RowLearner<ReadingTokens>);

struct LearningWhenMutable : archetype::Strategy {
  std::size_t top_k_wanted() { return 8; }
};
static_assert(!TopKLearner<LearningWhenMutable>);

struct Drawing : archetype::Strategy {
  [[nodiscard]] std::span<const float> distribution(NodeIndex) const { return {}; }
};
static_assert(DistributionStrategy<Drawing> && !DistributionStrategy<archetype::Strategy>);

struct DrawingInDoubles : archetype::Strategy {
  [[nodiscard]] std::span<const double> distribution(NodeIndex) const { return {}; }
};
static_assert(!DistributionStrategy<DrawingInDoubles>);

// --- LookupIndex ---

static_assert(LookupIndex<archetype::Index>);

struct FindsOne : archetype::Index {
  using archetype::Index::Index;
  [[nodiscard]] Match find(const MatchLimits&) const { return {}; }
};
static_assert(!LookupIndex<FindsOne>);

struct FindsABool : archetype::Index {
  using archetype::Index::Index;
  [[nodiscard]] bool find(const MatchLimits&, std::span<Match>) const { return false; }
};
static_assert(!LookupIndex<FindsABool>, "true would read as one match");

struct FindsWhenMutable : archetype::Index {
  using archetype::Index::Index;
  std::size_t find(const MatchLimits&, std::span<Match>) { return 0; }
};
static_assert(!LookupIndex<FindsWhenMutable>, "looking up changes nothing");

struct MadeWithoutOptions : archetype::Index {
  MadeWithoutOptions() : archetype::Index(IndexOptions()) {}
};
static_assert(!LookupIndex<MadeWithoutOptions>);

struct ReservesSilently : archetype::Index {
  using archetype::Index::Index;
  void reserve(std::size_t) {}
};
static_assert(!LookupIndex<ReservesSilently>);

struct ReservesWithABool : archetype::Index {
  using archetype::Index::Index;
  bool reserve(std::size_t) { return true; }
};
static_assert(!LookupIndex<ReservesWithABool>, "a bool does not say why");

struct UnforkableIndex : archetype::Index {
  using archetype::Index::Index;
  std::unique_ptr<int> state;
};
static_assert(!LookupIndex<UnforkableIndex>);

// The assertions above are the test. This one shows in the report that they were compiled.
TEST(Concepts, HoldForTheirArchetypesAndRefuseNearMisses) { SUCCEED(); }

}  // namespace
}  // namespace reprise::concepts_test
