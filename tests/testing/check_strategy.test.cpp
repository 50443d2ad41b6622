// SPDX-License-Identifier: Apache-2.0
#include "reprise/testing/check_strategy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "reprise/draft/copy_drafter.hpp"
#include "reprise/index/naive.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/testing/hostile_strategy.hpp"

namespace reprise::testing {
namespace {

using ::testing::HasSubstr;

/// What is wrong with a strategy.
struct Flaw {
  bool begin_keeps = false;
  bool truncate_keeps = false;
  bool answers_change = false;
  bool shares_state = false;
  bool ignores_budget = false;
  bool rising = false;
  bool children_first = false;
  bool uses_globals = false;
};

/// Copies what followed the last occurrence of the last token.
class Copier {
 public:
  explicit Copier(Flaw flaw) : flaw_(flaw) {}
  Copier(const Copier& other)
      : flaw_(other.flaw_),
        tokens_(other.flaw_.shares_state ? other.tokens_ : std::make_shared<std::vector<Token>>(*other.tokens_)) {}
  Copier& operator=(Copier other) {
    flaw_ = other.flaw_;
    tokens_ = other.tokens_;
    return *this;
  }
  ~Copier() = default;

  void begin(TokenSpan tokens) {
    if (!flaw_.begin_keeps) tokens_->clear();
    observe(tokens, Origin::prompt);
  }
  void observe(TokenSpan tokens, Origin) { tokens_->insert(tokens_->end(), tokens.begin(), tokens.end()); }
  void feedback(const Outcome&) {}
  void truncate(std::size_t size) {
    if (!flaw_.truncate_keeps) tokens_->resize(std::min(size, tokens_->size()));
  }
  void propose(const DraftBudget& budget, Draft& draft) {
    const auto& seen = *tokens_;
    static int calls = 0;
    ++calls;
    std::size_t most = std::min(budget.max_nodes, budget.max_depth);
    if (flaw_.ignores_budget) most = unlimited;
    std::size_t from = seen.size() - 1;
    while (from > 0 && seen[from - 1] != seen.back()) --from;
    if (from == 0) return;
    for (std::size_t i = from; i < seen.size() && draft.size() < most; ++i) {
      DraftNode node{.token = seen[i]};
      if (flaw_.answers_change) node.token = asked_++;
      if (flaw_.uses_globals) node.token = calls;
      if (flaw_.rising) node.path_probability = Probability::from_raw(static_cast<std::uint32_t>(draft.size()));
      node.parent = static_cast<NodeIndex>(draft.size()) - (flaw_.children_first ? 0 : 1);
      if (!draft.push(node)) return;
    }
  }

 private:
  Flaw flaw_;
  Token asked_ = 0;
  std::shared_ptr<std::vector<Token>> tokens_ = std::make_shared<std::vector<Token>>();
};

Verdict of(Flaw flaw, const char* what) {
  const Report report = check_strategy([&] { return Copier(flaw); });
  const Finding* finding = report.find(what);
  EXPECT_NE(finding, nullptr);
  return finding->verdict;
}

TEST(CheckStrategy, PassesASoundStrategy) {
  const Report report = check_strategy([] { return Copier({}); });
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  for (const Finding& finding : report.findings) EXPECT_GT(finding.checks, 20U) << finding.what;
}
TEST(CheckStrategy, PassesTheDraftersOfTheLibrary) {
  for (const Occurrence occurrence : {Occurrence::most_recent, Occurrence::earliest, Occurrence::most_frequent}) {
    CopyOptions options;
    options.occurrence = occurrence;
    EXPECT_EQ(check_strategy([&] { return CopyDrafter<>(options); }).verdict(), Verdict::exact);
    EXPECT_EQ(check_strategy([&] { return CopyDrafter<SuffixArrayIndex>(options); }).verdict(), Verdict::exact);
    EXPECT_EQ(check_strategy([&] { return CopyDrafter<NaiveIndex>(options); }).verdict(), Verdict::exact);
  }
}
TEST(CheckStrategy, FindsTokensOfThePreviousSequence) {
  EXPECT_EQ(of({.begin_keeps = true}, "begin() forgets the sequence before"), Verdict::wrong);
}
TEST(CheckStrategy, FindsATruncateThatKeepsTooMuch) {
  EXPECT_EQ(of({.truncate_keeps = true}, "truncate() is as if no more had been committed"), Verdict::wrong);
}
TEST(CheckStrategy, FindsAnswersThatChange) {
  EXPECT_EQ(of({.answers_change = true}, "asked twice, the same draft"), Verdict::wrong);
}
TEST(CheckStrategy, FindsCopiesThatShareTheirState) {
  EXPECT_EQ(of({.shares_state = true}, "a copy goes on independently"), Verdict::wrong);
}
TEST(CheckStrategy, FindsDraftsBeyondTheBudget) {
  EXPECT_EQ(of({.ignores_budget = true}, "the draft stays in its budget"), Verdict::wrong);
}
TEST(CheckStrategy, FindsRisingProbabilitiesAndChildrenBeforeParents) {
  EXPECT_EQ(of({.rising = true}, "parents first, probabilities in order"), Verdict::wrong);
  EXPECT_EQ(of({.children_first = true}, "parents first, probabilities in order"), Verdict::wrong);
}
TEST(CheckStrategy, FindsDraftsThatDependOnGlobalState) {
  EXPECT_EQ(of({.uses_globals = true}, "the same calls, the same drafts"), Verdict::wrong);
}
TEST(CheckStrategy, FindsNearlyEverythingWrongWithAHostileStrategy) {
  const Report report = check_strategy([] { return HostileStrategy(3); });
  for (const Finding& finding : report.findings) {
    if (finding.what == "propose() does not allocate") continue;
    EXPECT_EQ(finding.verdict, Verdict::wrong) << finding.what;
  }
}
TEST(CheckStrategy, DoesNotCallAStrategyExactThatNeverDrafts) {
  const auto make = [] { return archetype::Strategy(); };
  EXPECT_EQ(check_strategy(make).verdict(), Verdict::skipped);
  StrategyCheck check;
  check.expect_drafts = false;
  EXPECT_EQ(check_strategy(make, check).verdict(), Verdict::exact);
  EXPECT_THAT(check_strategy(make).to_string(), HasSubstr("nothing was ever drafted"));
}
TEST(CheckStrategy, UsesTheTextItIsGiven) {
  StrategyCheck check;
  check.text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  EXPECT_EQ(check_strategy([] { return Copier({}); }, check).verdict(), Verdict::skipped);  // nothing repeats
}

}  // namespace
}  // namespace reprise::testing
