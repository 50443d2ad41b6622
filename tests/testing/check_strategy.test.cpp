// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/check_strategy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/hostile_strategy.hpp"
#include "support/naive_index.hpp"

namespace reprise::testing::check_strategy_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The faults of a strategy.
struct Flaw {
  bool begin_keeps = false;
  bool truncate_keeps = false;
  bool answers_change = false;
  bool shares_state = false;
  bool ignores_budget = false;
  bool rising = false;
  bool children_first = false;
  bool repeats = false;
  bool uses_globals = false;
  bool keeps_span = false;
};

/// Copies the tokens after the last occurrence of the last token. It keeps the context itself, so that a fault can
/// spoil it.
class Copier {
 public:
  explicit Copier(Flaw flaw) : flaw_(flaw) {}
  Copier(const Copier& other)
      : flaw_(other.flaw_),
        tokens_(other.flaw_.shares_state ? other.tokens_ : std::make_shared<std::vector<Token>>(*other.tokens_)),
        span_(other.span_) {}
  Copier& operator=(Copier other) {
    flaw_ = other.flaw_;
    tokens_ = other.tokens_;
    span_ = other.span_;
    return *this;
  }
  ~Copier() = default;

  void begin(TokenSpan context) {
    if (!flaw_.begin_keeps) tokens_->clear();
    observe(context, context.size(), Origin::prompt);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) {
    tokens_->insert(tokens_->end(), context.end() - static_cast<std::ptrdiff_t>(fresh), context.end());
    span_ = context;
  }
  void feedback(TokenSpan, const Outcome&) {}
  void truncate(TokenSpan context, std::size_t size) {
    if (!flaw_.truncate_keeps) tokens_->resize(std::min(size, tokens_->size()));
    span_ = context.first(size);
  }
  void propose(TokenSpan, Draft& draft) {
    const TokenSpan seen = flaw_.keeps_span ? span_ : TokenSpan(*tokens_);
    static int calls = 0;
    ++calls;
    std::size_t most = std::min(draft.budget().max_nodes, draft.budget().max_depth);
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
      if (flaw_.repeats) draft.push(node);
    }
  }

 private:
  Flaw flaw_;
  Token asked_ = 0;
  std::shared_ptr<std::vector<Token>> tokens_ = std::make_shared<std::vector<Token>>();
  TokenSpan span_;
};

/// A copier that can rebase, correctly or not.
struct RebasingCopier : Copier {
  bool loses_the_end = false;
  explicit RebasingCopier(bool wrong) : Copier({}), loses_the_end(wrong) {}
  void rebase(TokenSpan, TokenSpan context) { begin(loses_the_end ? context.first(context.size() - 1) : context); }
};

Verdict of(Flaw flaw, const char* what) {
  const Report report = check_strategy([&] { return Copier(flaw); });
  const Report::Finding* finding = report.find(what);
  EXPECT_NE(finding, nullptr);
  return finding->verdict;
}

TEST(CheckStrategy, PassesASoundStrategy) {
  const Report report = check_strategy([] { return Copier({}); });
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  for (const Report::Finding& finding : report.findings) EXPECT_GT(finding.checks, 20U) << finding.what;
  EXPECT_EQ(report.findings.size(), 8U);
}
TEST(CheckStrategy, TakesAPromptOfNoTokensAsOne) {
  for (const std::size_t prompt : {0U, 1U}) {
    StrategyCheck check;
    check.prompt = prompt;
    EXPECT_TRUE(check_strategy([] { return Copier({}); }, check).passed()) << prompt;
  }
}

TEST(CheckStrategy, PassesTheDraftersOfTheLibrary) {
  for (const PromptLookupOptions::Occurrence occurrence :
       {PromptLookupOptions::Occurrence::most_recent, PromptLookupOptions::Occurrence::earliest,
        PromptLookupOptions::Occurrence::most_frequent}) {
    PromptLookupOptions options;
    options.occurrence = occurrence;
    EXPECT_EQ(check_strategy([&] { return PromptLookupDrafter<>::make(options).value(); }).verdict(), Verdict::exact);
    EXPECT_EQ(check_strategy([&] { return PromptLookupDrafter<SuffixArrayIndex>::make(options).value(); }).verdict(),
              Verdict::exact);
    EXPECT_EQ(check_strategy([&] { return PromptLookupDrafter<NaiveIndex>::make(options).value(); }).verdict(),
              Verdict::exact);
  }
}
TEST(CheckStrategy, FindsEachFaultByItsClause) {
  EXPECT_EQ(of({.begin_keeps = true}, "begin() forgets the sequence before"), Verdict::wrong);
  EXPECT_EQ(of({.truncate_keeps = true}, "truncate() is as if no more had been committed"), Verdict::wrong);
  EXPECT_EQ(of({.answers_change = true}, "asked twice, the same draft"), Verdict::wrong);
  EXPECT_EQ(of({.shares_state = true}, "a copy goes on independently"), Verdict::wrong);
  EXPECT_EQ(of({.uses_globals = true}, "the same calls, the same drafts"), Verdict::wrong);
  EXPECT_EQ(of({.keeps_span = true}, "no span of the context is kept"), Verdict::wrong);
  for (const Flaw malformed : {Flaw{.rising = true}, Flaw{.children_first = true}, Flaw{.repeats = true}})
    EXPECT_EQ(of(malformed, "no malformed node is pushed"), Verdict::wrong);
}
TEST(CheckStrategy, LeavesTheBudgetToTheDraft) {
  // The draft refuses nodes above the budget, and a strategy may rely on that.
  StrategyCheck check;
  check.budget = {.max_nodes = 3, .max_depth = 2, .shape = DraftShape::chain};
  const Report report = check_strategy([] { return Copier({.ignores_budget = true}); }, check);
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}
TEST(CheckStrategy, FindsARebaseThatLosesSomething) {
  const char* const what = "rebase() to the same context changes nothing";
  const Report sound = check_strategy([] { return RebasingCopier(false); });
  EXPECT_EQ(sound.verdict(), Verdict::exact) << sound.to_string();
  ASSERT_NE(sound.find(what), nullptr);
  EXPECT_GT(sound.find(what)->checks, 20U);
  EXPECT_EQ(check_strategy([] { return RebasingCopier(true); }).find(what)->verdict, Verdict::wrong);
  EXPECT_EQ(check_strategy([] { return Copier({}); }).find(what), nullptr) << "it cannot rebase";
}
/// Draws from a fixed distribution, with fresh numbers in each round or with those of the position.
class Sampler {
 public:
  Sampler(bool fresh, std::vector<float> weights) : fresh_(fresh), weights_(std::move(weights)) {}

  void begin(TokenSpan) { ++round_; }
  void observe(TokenSpan, std::size_t, Origin) { ++round_; }
  void feedback(TokenSpan, const Outcome&) { ++round_; }
  void truncate(TokenSpan, std::size_t) { ++round_; }
  void propose(TokenSpan context, Draft& draft) const {
    draft.clear(DraftKind::sampled);
    std::uint64_t place = fresh_ ? round_ * 64 : context.size();
    while (draft.extend({.token = drawn(mix(place))})) ++place;
  }
  [[nodiscard]] std::span<const float> distribution(NodeIndex) const { return weights_; }

 private:
  [[nodiscard]] Token drawn(std::uint64_t number) const {
    double place = static_cast<double>(number >> 11) * 0x1p-53;
    std::size_t token = 0;
    for (; token + 1 < weights_.size() && place >= static_cast<double>(weights_[token]); ++token)
      place -= static_cast<double>(weights_[token]);
    return static_cast<Token>(token);
  }
  bool fresh_;
  std::vector<float> weights_;
  std::uint64_t round_ = 0;
};

TEST(CheckStrategy, FindsRandomNumbersThatAreUsedAgain) {
  const StrategyCheck check{.budget = {.max_nodes = 4}};
  const auto run = [&](bool fresh, const std::vector<float>& weights) {
    return check_strategy([&] { return Sampler(fresh, weights); }, check);
  };
  const std::vector<float> even = {0.25F, 0.25F, 0.25F, 0.25F};
  const Report sound = run(true, even);
  EXPECT_EQ(sound.verdict(), Verdict::exact) << sound.to_string();
  EXPECT_THAT(sound.to_string(), HasSubstr("S10"));
  EXPECT_TRUE(run(false, {0.0F, 1.0F}).passed()) << "a token that is certain repeats in any case";
  const Report repeating = run(false, even);
  ASSERT_FALSE(repeating.passed());
  for (const Report::Finding& finding : repeating.findings)
    EXPECT_EQ(finding.verdict == Verdict::wrong, std::string_view(finding.clause) == "S10") << finding.clause;
  const Report ordered = check_strategy([] { return PromptLookupDrafter<>(); });
  EXPECT_THAT(ordered.to_string(), Not(HasSubstr("S10"))) << "it draws nothing";
}
TEST(CheckStrategy, FindsNearlyEverythingWrongWithAHostileStrategy) {
  const Report report = check_strategy([] { return HostileStrategy(3); });
  for (const Report::Finding& finding : report.findings) {
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
  EXPECT_THAT(check_strategy(make).to_string(), HasSubstr("nothing was ever drafted: set StrategyCheck::text"));
}
TEST(CheckStrategy, UsesTheTextItIsGiven) {
  StrategyCheck check;
  check.text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  EXPECT_EQ(check_strategy([] { return Copier({}); }, check).verdict(), Verdict::skipped);  // nothing repeats
}

}  // namespace
}  // namespace reprise::testing::check_strategy_test
