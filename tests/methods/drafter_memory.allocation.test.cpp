// SPDX-License-Identifier: Apache-2.0
// What every drafter promises about memory: none is asked for in steady state, and where it runs out, less is drafted
// until the next sequence begins.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "reprise/draft/model_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise_methods/best_of.hpp"
#include "reprise_methods/repetition_gate.hpp"
#include "reprise_methods/rest_drafter.hpp"
#include "reprise_methods/token_table_drafter.hpp"
#include "support/allocation_counter.hpp"
#include "support/streams.hpp"
#include "support/toy_model.hpp"

namespace reprise::drafter_memory_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::ToyModel;
using Tokens = std::vector<Token>;

const Tokens text = testing::make_stream(testing::Stream::trace_like, 600, 3, 8);

TokenSpan first(std::size_t size) { return TokenSpan(text).first(size); }

/// A prediction is for one sequence: this drafter has one for each.
struct Predicting : NgramDrafter<> {
  void begin(TokenSpan context) {
    static_cast<void>(predict(TokenSpan(text).subspan(300)));
    NgramDrafter<>::begin(context);
  }
};
ModelDrafter<ToyModel> model(const ModelOptions& options) {
  return ModelDrafter<ToyModel>::make(ToyModel(), options).value();
}
RestDrafter rest(bool cut) {
  static const HistoryStore history = [] {
    HistoryStore made = HistoryStore::make({.max_bytes = 1 << 16}).value();
    made.begin_sequence(1);
    made.append(text, Origin::prompt);
    made.end_sequence();
    return made;
  }();
  return RestDrafter::make({.store = history, .cut = cut}).value();
}
TokenTableDrafter table_drafter() {
  static TokenTable table = TokenTable::make({.ngram = 3, .bytes = 1 << 16}).value();
  table.learn(text);
  return TokenTableDrafter(&table, {.learn_into = &table});
}
constexpr Probability anything = Probability::from_raw(1);

/// Calls `visit` with each drafter, before its first sequence.
template <class Visit>
void for_each_drafter(Visit visit) {
  visit("n-gram", NgramDrafter<>());
  visit("prompt lookup", PromptLookupDrafter<>());
  visit("predicted output", Predicting());
  visit("model, chain", model({}));
  visit("model, sampled", model({.kind = DraftKind::sampled, .min_path_probability = anything}));
  visit("REST", rest(false));
  visit("REST, cut", rest(true));
  visit("token table behind a gate", RepetitionGate(table_drafter()));
  visit("union", UnionDrafter(NgramDrafter<>(), Predicting(), PromptLookupDrafter<>()));
  visit("best of", BestOf(NgramDrafter<>(), Predicting()));
  visit("first match", FirstMatch(PromptLookupDrafter<>(), NgramDrafter<>()));
}

/// A draft that outlives propose(). Its storage allocates nothing.
struct Kept {
  std::array<DraftNode, 64> nodes;
  std::size_t size = 0;
  DraftKind kind = DraftKind::ordered;

  /// Sampled drafts are drawn anew in each round.
  friend bool operator==(const Kept& a, const Kept& b) {
    if (a.kind == DraftKind::sampled && b.kind == DraftKind::sampled) return (a.size == 0) == (b.size == 0);
    const auto same = [](const DraftNode& x, const DraftNode& y) {
      return x.token == y.token && x.parent == y.parent && x.path_probability == y.path_probability;
    };
    return std::equal(a.nodes.begin(), a.nodes.begin() + static_cast<std::ptrdiff_t>(a.size), b.nodes.begin(),
                      b.nodes.begin() + static_cast<std::ptrdiff_t>(b.size), same);
  }
};
template <class Strategy>
Kept drafted_by(Strategy& strategy, TokenSpan context) {
  Kept kept;
  Draft draft(kept.nodes, {.max_nodes = 40});
  strategy.propose(context, draft);
  EXPECT_FALSE(draft.malformed());
  kept.size = draft.size();
  kept.kind = draft.view().kind();
  return kept;
}
/// Runs a round that commits the tokens from `size` to `next`.
template <class Strategy>
std::size_t round(Strategy& strategy, std::size_t size, std::size_t next) {
  const Kept kept = drafted_by(strategy, first(size));
  strategy.feedback(first(size),
                    {DraftView(std::span(kept.nodes).first(kept.size), kept.kind), {}, {}, text[size], Cut::none, {}});
  strategy.observe(first(next), next - size, Origin::output);
  return kept.size;
}

TEST(DrafterMemory, IsNotAskedForInSteadyState) {
  for_each_drafter([](const char* name, auto strategy) {
    strategy.begin(first(200));
    if constexpr (ReservableStrategy<decltype(strategy)>) strategy.reserve(text.size());
    std::size_t drafted = 0;
    const AllocationWatch watch;
    for (std::size_t at = 200; at + 3 < text.size(); at += 3) drafted += round(strategy, at, at + 3);
    strategy.truncate(first(text.size() - 3), 300);
    EXPECT_EQ(watch.allocations(), 0U) << name;
    EXPECT_GT(drafted, 100U) << name;
  });
}

TEST(DrafterMemory, MayRunOutAndComesBackWithTheNextSequence) {
  std::size_t failures_met = 0;
  for_each_drafter([&](const char* name, const auto& fresh) {
    auto expected = fresh;
    expected.begin(first(400));
    const Kept wanted = drafted_by(expected, first(400));
    ASSERT_GT(wanted.size, 0U) << name;
    for (const std::size_t failures : {1U, 2U, 3U, 100'000U}) {
      bool failed = true;
      for (std::size_t fail_at = 1; failed; ++fail_at) {
        auto strategy = fresh;
        {
          const AllocationWatch watch(fail_at, failures);
          strategy.begin(first(100));
          for (std::size_t at = 100; at < 300; at += 5) round(strategy, at, at + 5);
          strategy.observe(text, text.size() - 300, Origin::prompt);
          strategy.truncate(text, 350);
          if constexpr (RebasableStrategy<decltype(strategy)>)
            strategy.rebase(first(350), first(250));
          else
            strategy.truncate(first(350), 250);
          round(strategy, 250, 300);
          failed = watch.allocations() >= fail_at;
        }
        failures_met += failed ? 1 : 0;
        drafted_by(strategy, first(300));
        strategy.begin(first(400));
        ASSERT_TRUE(drafted_by(strategy, first(400)) == wanted) << name << ": allocation " << fail_at << " failed";
      }
    }
  });
  EXPECT_GT(failures_met, 500U);
}

TEST(DrafterMemory, MayRunOutInACopyThatIsThenOnlyPoorer) {
  for_each_drafter([](const std::string& name, auto strategy) {
    // References outlive a sequence, so a copy without them has none in the next one either.
    const bool loses_references = name == "predicted output" || name == "union" || name == "best of";
    strategy.begin(first(300));
    strategy.observe(first(450), 150, Origin::output);
    const Kept wanted = drafted_by(strategy, first(450));
    bool failed = true;
    for (std::size_t fail_at = 1; failed; ++fail_at) {
      const auto copy_without = [&] {
        const AllocationWatch watch(fail_at, fail_at % 3 + 1);
        auto copy = strategy;
        failed = watch.allocations() >= fail_at;
        return copy;
      };
      auto copy = copy_without();
      drafted_by(copy, first(450));
      copy.observe(first(580), 130, Origin::output);
      drafted_by(copy, first(580));
      copy.truncate(first(580), 310);
      drafted_by(copy, first(310));
      copy.begin(first(300));
      copy.observe(first(450), 150, Origin::output);
      const Kept again = drafted_by(copy, first(450));
      ASSERT_TRUE(again == wanted || loses_references) << name << ": allocation " << fail_at << " failed";
      ASSERT_TRUE(drafted_by(strategy, first(450)) == wanted) << name;
    }
  });
}

}  // namespace
}  // namespace reprise::drafter_memory_allocation_test
