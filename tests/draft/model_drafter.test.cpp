// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/model_drafter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "reprise/loop/session.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/lossless.hpp"
#include "reprise_testing/random.hpp"
#include "support/archetypes.hpp"
#include "support/fails.hpp"
#include "support/lent_context.hpp"
#include "support/scripted_verifier.hpp"
#include "support/toy_model.hpp"

namespace reprise::model_drafter_test {
namespace {

static_assert(DistributionStrategy<ModelDrafter<archetype::Model>>);
static_assert(ReservableStrategy<ModelDrafter<archetype::Model>> && RebasableStrategy<ModelDrafter<archetype::Model>>);
static_assert(MeasurableStrategy<ModelDrafter<archetype::Model>>);

using testing::ToyModel;
using Tokens = std::vector<Token>;
using Drafter = ModelDrafter<ToyModel>;

constexpr Probability anything = Probability::from_raw(1);

using testing::Drafted;
using Lent = testing::Lent<Drafter>;

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Lent begun(const ModelOptions& options, const Tokens& context, const ToyModel& model = ToyModel()) {
  Lent drafter{Drafter::make(model, options).value()};
  drafter.begin(context);
  return drafter;
}
/// Commits `tokens`, the first `accepted` of which were drafted.
void commit(Lent& drafter, const Drafted& draft, std::size_t accepted, const Tokens& tokens) {
  std::vector<NodeIndex> path(draft.nodes.size());
  for (std::size_t i = 0; i < path.size(); ++i) path[i] = static_cast<NodeIndex>(i);
  drafter.feedback({draft.view(), path, std::span(path).first(accepted), tokens.back(), Cut::none, {}});
  drafter.observe(tokens, Origin::output);
}

// Near misses: each lacks one function.
struct ModelWithoutTruncate {
  std::span<const float> feed(TokenSpan) { return {}; }
  [[nodiscard]] std::size_t vocabulary() const { return 0; }
};
struct ModelOfDoubles : archetype::Model {
  std::span<const double> feed(TokenSpan) { return {}; }
};
struct ModelThatCannotBeCopied : archetype::Model {
  ModelThatCannotBeCopied() = default;
  ModelThatCannotBeCopied(const ModelThatCannotBeCopied&) = delete;
};
struct ModelWithoutVocabulary {
  std::span<const float> feed(TokenSpan) { return {}; }
  void truncate(std::size_t) {}
};
static_assert(!DraftModel<ModelWithoutTruncate> && !DraftModel<ModelOfDoubles> &&
              !DraftModel<ModelThatCannotBeCopied> && !DraftModel<ModelWithoutVocabulary>);
static_assert(DistributionStrategy<Drafter> && ReservableStrategy<Drafter> && MeasurableStrategy<Drafter>);

const ModelOptions chain = {.min_path_probability = anything};
const ModelOptions sampled = {.kind = DraftKind::sampled, .min_path_probability = anything};

class ModelDrafterKinds : public ::testing::TestWithParam<ModelOptions> {};
INSTANTIATE_TEST_SUITE_P(All, ModelDrafterKinds, ::testing::Values(chain, sampled));

TEST_P(ModelDrafterKinds, KeepTheContractOfAStrategy) {
  const auto report = testing::check_strategy([] { return Drafter::make(ToyModel(), GetParam()).value(); });
  EXPECT_TRUE(report.passed()) << report.to_string();
}

TEST(ModelOptions, ThatCannotWorkAreRefused) {
  const char* const length = "draft_length has to be between 1 and 64";
  EXPECT_THAT(Drafter::make(ToyModel(), {.draft_length = 0}), testing::refuses(0, 1, length));
  EXPECT_THAT(Drafter::make(ToyModel(), {.draft_length = 65}), testing::refuses(65, 64, length));
}

TEST(ModelOptions, MayBeAtTheirLimits) {
  for (const std::size_t length : {1U, 64U}) EXPECT_TRUE(Drafter::make(ToyModel(), {.draft_length = length}));
}

TEST(ModelDrafter, HasDefaultsThatMakeGivesToo) {
  Lent by_default{Drafter(ToyModel())};
  Lent made{Drafter::make(ToyModel()).value()};
  for (Lent* drafter : {&by_default, &made}) drafter->begin(Tokens{1, 2, 3});
  const Drafted expected = by_default.propose();
  EXPECT_FALSE(expected.nodes.empty());
  EXPECT_EQ(made.propose().tokens(), expected.tokens());
  EXPECT_EQ(by_default->options().kind, made->options().kind);
  EXPECT_EQ(by_default->options().draft_length, made->options().draft_length);
}
static_assert(!std::constructible_from<Drafter, ToyModel, ModelOptions>, "settings can be refused");

TEST_P(ModelDrafterKinds, DraftNothingBeforeASequenceBegins) {
  Lent drafter{Drafter::make(ToyModel(), GetParam()).value()};
  EXPECT_TRUE(drafter.propose().nodes.empty());
  EXPECT_EQ(drafter->model().feeds, 0U);
}

/// An engine that hides its distributions. Drafts are verified by agreement, with the same output.
class PicksOnly {
 public:
  explicit PicksOnly(testing::ScriptedVerifier engine) : engine_(std::move(engine)) {}
  auto verify(TokenSpan batch, std::size_t drafted) { return engine_.verify(batch, drafted); }
  auto verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    return engine_.verify_tree(batch, drafted, parents);
  }
  auto commit(std::size_t keep) { return engine_.commit(keep); }
  auto commit_rows(std::span<const std::size_t> rows) { return engine_.commit_rows(rows); }
  [[nodiscard]] Capabilities capabilities() const { return engine_.capabilities(); }

 private:
  testing::ScriptedVerifier engine_;
};
static_assert(TreeVerifier<PicksOnly> && !DistributionVerifier<PicksOnly>);

TEST_P(ModelDrafterKinds, DoNotCostALosslessRunAToken) {
  const ToyModel model(16, 3);
  const auto agreeing = [model](TokenSpan end) {
    // The target agrees with the model about four times in five.
    const Token said = model.likeliest(end);
    return testing::mix(static_cast<std::uint64_t>(end.back()) * 31 + end.size()) % 5 == 0 ? (said + 1) % 16 : said;
  };
  for (const bool sampling : {false, true})
    for (const std::size_t leaves : {1U, 8U}) {
      const Tokens prompt = {1, 2, 3};
      const auto make = [&](TokenSpan tokens) {
        testing::ScriptedOptions options{.sampled = sampling, .capabilities = {.max_leaves = leaves}};
        options.vocabulary = 16;
        options.table = agreeing;
        return PicksOnly(testing::ScriptedVerifier(options, tokens));
      };
      const auto report =
          testing::compare_lossless(make, prompt, Limits{.max_tokens = 200}, Drafter::make(model, GetParam()).value());
      EXPECT_TRUE(report.identical()) << report.message;
      EXPECT_GT(report.drafted.statistics.accepted, sampling ? 10U : 30U);
    }
}

// --- Ordered drafts ---

TEST(ModelDrafter, DraftsWhatTheModelFindsLikeliest) {
  const ToyModel model;
  const Tokens context = {1, 2, 3};
  Lent drafter = begun(chain, context);
  const Drafted draft = drafter.propose();
  ASSERT_EQ(draft.nodes.size(), 8U);
  EXPECT_EQ(draft.kind, DraftKind::ordered);
  Tokens text = context;
  double path = 1;
  for (const DraftNode& node : draft.nodes) {
    const auto distribution = model.after(text);
    EXPECT_EQ(node.token, model.likeliest(text));
    path *= static_cast<double>(distribution[static_cast<std::size_t>(node.token)]);
    EXPECT_NEAR(node.path_probability.to_double(), path, 1e-7);
    EXPECT_EQ(node.source, DraftSource::model);
    text.push_back(node.token);
  }
}

TEST(ModelDrafter, GoesDownToTheLeastProbability) {
  for (const bool by_budget : {false, true}) {
    const Probability least = Probability::ratio(1, 4);
    Lent drafter = begun({.min_path_probability = by_budget ? anything : least}, {1, 2, 3});
    const DraftBudget budget{.min_path_probability = by_budget ? least : Probability::zero()};
    const Drafted draft = drafter.propose(budget);
    EXPECT_GT(draft.nodes.size(), 0U);
    EXPECT_LT(draft.nodes.size(), 8U);
    for (const DraftNode& node : draft.nodes) EXPECT_GE(node.path_probability, least);
  }
}

TEST(ModelDrafter, SaysThatItLeftOutWhatIsUnlikely) {
  for (const DraftKind kind : {DraftKind::ordered, DraftKind::sampled}) {
    Lent drafter = begun({.kind = kind, .min_path_probability = Probability::one()}, {1, 2});
    const Drafted draft = drafter.propose({}, 4);
    EXPECT_TRUE(draft.nodes.empty());
    EXPECT_TRUE(draft.left_out);
  }
}

TEST(ModelDrafter, RunsTheModelOnceForEachToken) {
  for (const std::size_t length : {1U, 3U, 8U}) {
    Lent drafter = begun({.draft_length = length, .min_path_probability = anything}, {1, 2, 3});
    EXPECT_EQ(drafter.propose().nodes.size(), length);
    EXPECT_EQ(drafter->model().feeds, length);
  }
}

// --- Feeding the model ---

TEST(ModelDrafter, FeedsTheModelWhatItHasNotSeenAndNothingElse) {
  for (const ModelOptions& options : {chain, sampled})
    for (std::size_t accepted = 0; accepted <= 8; ++accepted)
      for (const bool by_chance : {false, true}) {
        Tokens context = {1, 2, 3};
        Lent drafter = begun(options, context);
        const Drafted draft = drafter.propose({.max_leaves = 1});
        ASSERT_EQ(draft.nodes.size(), 8U);
        // The pass may have been shorter than the draft. Then the pick may equal the next drafted token by chance.
        Tokens committed = draft.tokens();
        committed.resize(accepted);
        const Token next = accepted < 8 ? draft.nodes[accepted].token : 0;
        committed.push_back(by_chance ? next : (next + 1) % 8);
        commit(drafter, draft, accepted, committed);
        context = joined(context, committed);
        const std::size_t fed = drafter->model().fed;
        drafter->reseed(1);
        const Drafted second = drafter.propose({.max_nodes = 1});
        // The last drafted token has not been fed, so the model holds 7 drafted tokens. Some of them were rejected.
        if (!by_chance) {
          EXPECT_EQ(drafter->model().truncations, accepted < 7 ? 1U : 0U) << accepted;
        }
        // Neither the last drafted token nor the pick has been fed, but the last token is fed in any case.
        EXPECT_EQ(drafter->model().fed - fed, accepted == 8 ? 2U : 1U) << accepted;
        EXPECT_TRUE(drafter->model().sound);
        EXPECT_EQ(Tokens(drafter->model().cache().begin(), drafter->model().cache().end()), context);
        Lent fresh = begun(options, context);
        fresh->reseed(1);
        EXPECT_EQ(second.tokens(), fresh.propose({.max_nodes = 1}).tokens());
      }
}

TEST(ModelDrafter, StaysInStepWhateverHappens) {
  for (const ModelOptions& options : {chain, sampled}) {
    testing::Random random(11);
    Lent drafter{Drafter::make(ToyModel(5, 2), options).value()};
    Tokens context = {1};
    drafter.begin(context);
    for (int step = 0; step < 1500; ++step) {
      const std::size_t what = random.below(10);
      if (what < 6) {
        const Drafted draft = drafter.propose({.max_nodes = random.below(12), .max_leaves = 1 + random.below(3)});
        const Tokens cache(drafter->model().cache().begin(), drafter->model().cache().end());
        if (!draft.nodes.empty()) {
          ASSERT_GE(cache.size(), context.size());
          ASSERT_TRUE(std::equal(context.begin(), context.end(), cache.begin()));
        }
        if (random.chance(80)) {
          Tokens committed = draft.tokens();
          committed.resize(random.below(committed.size() + 1));
          committed.push_back(static_cast<Token>(random.below(5)));
          drafter.feedback({draft.view(), {}, {}, committed.back(), Cut::none, {}});
          drafter.observe(committed, Origin::output);
          context = joined(context, committed);
        }
      } else if (what == 6) {
        const Tokens turn(random.below(4), static_cast<Token>(random.below(5)));
        drafter.observe(turn, Origin::prompt);
        context = joined(context, turn);
      } else if (what == 7) {
        context.resize(1 + random.below(context.size()));
        drafter.truncate(context.size());
      } else if (what == 8 && random.chance(30)) {
        context.resize(1 + random.below(context.size()));
        context.push_back(static_cast<Token>(random.below(5)));
        drafter.begin(context);
      } else {
        Lent fork = drafter;
        drafter = fork;
        static_cast<void>(fork.propose());
        fork.observe(Tokens{1, 2}, Origin::output);
      }
      if (context.size() > 500) drafter.begin(context = {1});
      ASSERT_TRUE(drafter->model().sound);
      Lent fresh = begun(options, context, ToyModel(5, 2));
      drafter->reseed(1);
      fresh->reseed(1);
      if (options.kind == DraftKind::ordered)
        ASSERT_EQ(drafter.propose().tokens(), fresh.propose().tokens()) << step;
      else  // the learned rates decide the length
        ASSERT_EQ(drafter.propose({.max_nodes = 1}).tokens(), fresh.propose({.max_nodes = 1}).tokens()) << step;
    }
  }
}

TEST(ModelDrafter, FeedsTheLastTokenOnlyWhereTheCacheBeginsWithTheContext) {
  Tokens context(100);
  for (std::size_t i = 0; i < context.size(); ++i) context[i] = static_cast<Token>(i % 7);
  Lent drafter = begun(chain, context);
  static_cast<void>(drafter.propose());
  const auto fed_for = [&](const Tokens& wanted) {
    const std::size_t fed = drafter->model().fed;
    static_cast<void>(drafter.propose({.max_nodes = 1}));
    EXPECT_EQ(Tokens(drafter->model().cache().begin(), drafter->model().cache().end()), wanted);
    EXPECT_TRUE(drafter->model().sound);
    return drafter->model().fed - fed;
  };
  drafter.truncate(60);
  context.resize(60);
  EXPECT_EQ(fed_for(context), 1U) << "the sequence went back";
  context.resize(40);
  context.push_back(7);
  drafter.rebase(context);
  EXPECT_EQ(fed_for(context), 1U) << "a context with the same beginning";
  drafter.begin(context);
  EXPECT_EQ(fed_for(context), 41U) << "a new sequence";
}

TEST(ModelDrafter, KeepsNoCopyOfTheContext) {
  for (const ModelOptions& options : {chain, sampled}) {
    Lent drafter = begun(options, {1, 2, 3});
    const std::size_t bytes = drafter->memory_bytes();
    drafter.reserve(1000);
    drafter.observe(Tokens(900, 1));
    EXPECT_EQ(drafter->memory_bytes(), bytes);
  }
}

TEST(ModelDrafter, DoesNotRunTheModelBeforeItIsAsked) {
  Lent drafter = begun(chain, {1, 2, 3});
  drafter.observe(Tokens{4, 5}, Origin::output);
  drafter.truncate(4);
  drafter.observe(Tokens{6}, Origin::output);
  EXPECT_EQ(drafter->model().feeds, 0U);
  static_cast<void>(drafter.propose({.max_nodes = 1}));
  EXPECT_EQ(drafter->model().feeds, 1U);
  EXPECT_EQ(drafter->model().fed, 5U);
}

// --- Models that fail ---

TEST(ModelDrafter, DraftsWhatItHasWhenTheModelCannotGoOnAndIsInStepAfterItThrew) {
  for (const ModelOptions& options : {chain, sampled})
    for (const auto fault : {ToyModel::Fault::empty, ToyModel::Fault::throws}) {
      Lent healthy = begun(options, {1, 2, 3, 4});
      healthy->reseed(1);
      const Tokens all = healthy.propose().tokens();
      for (std::size_t fail_at = 1; fail_at <= 8; ++fail_at) {
        ToyModel model;
        model.fail_at = fail_at;
        model.fault = fault;
        Lent drafter = begun(options, {1, 2, 3}, model);
        if (fault == ToyModel::Fault::throws) {
          EXPECT_THROW(static_cast<void>(drafter.propose()), std::runtime_error);
        } else {
          EXPECT_EQ(drafter.propose().nodes.size(), fail_at - 1);
        }
        drafter.observe(Tokens{4}, Origin::output);
        drafter->reseed(1);
        EXPECT_EQ(drafter.propose().tokens(), all) << "it is able again, " << fail_at;
        EXPECT_TRUE(drafter->model().sound);
      }
    }
}

/// Returns the numbers that it was given.
struct OddModel {
  std::vector<float> said;
  std::span<const float> feed(TokenSpan) { return said; }
  void truncate(std::size_t) {}
  [[nodiscard]] std::size_t vocabulary() const { return 4; }
};

TEST(ModelDrafter, TakesWeightsOfAnyValue) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (const DraftKind kind : {DraftKind::ordered, DraftKind::sampled}) {
    const auto first_of = [&](std::vector<float> said) {
      testing::Lent drafter{
          ModelDrafter<OddModel>::make(OddModel{std::move(said)}, {.kind = kind, .min_path_probability = anything})
              .value()};
      drafter.begin(Tokens{1});
      const Drafted draft = drafter.propose({}, 1);
      return draft.nodes.empty() ? Token{-1} : draft.nodes[0].token;
    };
    EXPECT_EQ(first_of({nan, -1.0F, 0.5F, 0.0F}), 2);
    EXPECT_EQ(first_of({0.0F, 0.0F, 0.0F, infinite}), 3);
    EXPECT_EQ(first_of({nan, nan, nan, nan}), -1);
    EXPECT_EQ(first_of({0.0F, 0.0F, 0.0F, 0.0F}), -1);
  }
  // A distribution of another size is refused.
  testing::Lent drafter{ModelDrafter<OddModel>::make(OddModel{{1.0F, 0.0F}}, sampled).value()};
  drafter.begin(Tokens{1});
  EXPECT_TRUE(drafter.propose({}, 1).nodes.empty());
}

// --- Sampled drafts ---

TEST(ModelDrafterSampling, ShowsWhatEachTokenWasDrawnFrom) {
  const ToyModel model;
  const Tokens context = {1, 2, 3};
  Lent drafter = begun(sampled, context);
  const Drafted draft = drafter.propose();
  ASSERT_EQ(draft.nodes.size(), 8U);
  EXPECT_EQ(draft.kind, DraftKind::sampled);
  Tokens text = context;
  for (std::size_t i = 0; i < draft.nodes.size(); ++i) {
    const auto wanted = model.after(text);
    const auto shown = drafter->distribution(static_cast<NodeIndex>(i));
    ASSERT_EQ(shown.size(), model.vocabulary());
    EXPECT_TRUE(std::equal(shown.begin(), shown.end(), wanted.begin()));
    text.push_back(draft.nodes[i].token);
  }
  EXPECT_TRUE(drafter->distribution(8).empty());
  EXPECT_TRUE(drafter->distribution(anchor_parent).empty());
  Lent ordered = begun(chain, context);
  static_cast<void>(ordered.propose());
  EXPECT_TRUE(ordered->distribution(0).empty());
}

TEST(ModelDrafterSampling, DrawsEachTokenAsOftenAsTheModelSays) {
  const ToyModel model;
  const Tokens context = {1, 2, 3};
  constexpr int draws = 20000;
  std::array<std::array<int, 8>, 8> drawn{};  // by the first and the second token
  ModelOptions options = sampled;
  options.draft_length = 2;
  for (options.seed = 0; options.seed < draws; ++options.seed) {
    const Tokens tokens = begun(options, context).propose().tokens();
    ++drawn[static_cast<std::size_t>(tokens[0])][static_cast<std::size_t>(tokens[1])];
  }
  double chi_square = 0;
  for (std::size_t first = 0; first < 8; ++first)
    for (std::size_t second = 0; second < 8; ++second) {
      const float after = model.after(joined(context, {static_cast<Token>(first)}))[second];
      const double wanted = static_cast<double>(model.after(context)[first]) * static_cast<double>(after) * draws;
      if (wanted > 5) chi_square += (drawn[first][second] - wanted) * (drawn[first][second] - wanted) / wanted;
    }
  EXPECT_LT(chi_square, 120.0) << "63 degrees of freedom: above it in one case of 50,000";
}

TEST(ModelDrafterSampling, DrawsTheSameAgainAndSomethingElseWithAnotherSeed) {
  Lent drafter = begun(sampled, {1, 2, 3});
  const Tokens first = drafter.propose().tokens();
  EXPECT_EQ(drafter.propose().tokens(), first);
  Lent other = begun({.kind = DraftKind::sampled, .min_path_probability = anything, .seed = 2}, {1, 2, 3});
  EXPECT_NE(other.propose().tokens(), first);
  drafter->reseed(2);
  drafter.begin(Tokens{1, 2, 3});
  EXPECT_EQ(drafter.propose().tokens(), other.propose().tokens());
}

TEST(ModelDrafterSampling, DrawsAnewInEachRound) {
  // Each round has the same context, so the same distribution.
  const Tokens context = {3, 3, 3};
  using Next = void (*)(Lent&);
  const std::array<Next, 4> ends = {
      [](Lent& drafter) {
        drafter.begin(Tokens{3, 3, 3});
      },
      [](Lent& drafter) {
        drafter->rebase(Tokens{3, 3, 3}, Tokens{3, 3, 3});
      },
      [](Lent& drafter) {
        drafter->truncate(Tokens{3, 3, 3}, 3);
      },
      [](Lent& drafter) {
        drafter->feedback(Tokens{3, 3, 3}, Outcome{});
      },
  };
  for (const Next end : ends) {
    std::array<int, 8> counts{};
    Lent drafter = begun(sampled, context);
    for (int i = 0; i < 200; ++i) {
      ++counts[static_cast<std::size_t>(drafter.propose({.max_nodes = 1}).nodes[0].token)];
      end(drafter);
    }
    EXPECT_GT(std::count_if(counts.begin(), counts.end(), [](int count) { return count > 0; }), 2);
  }
}

TEST(ModelDrafterSampling, DrawsAnewAfterAPassThatMayHaveRunButNotAfterACancelledOne) {
  Session<Drafter> session(Drafter::make(ToyModel(), sampled).value());
  ASSERT_TRUE(session.begin(Tokens{1, 2, 3}));
  const Limits limits;
  const auto draft = [&] {
    session.propose(limits, DraftShape::chain);
    const Pass pass = session.plan().value();
    const TokenSpan drafted = pass.batch.last(pass.drafted);
    return std::pair(Tokens(drafted.begin(), drafted.end()), pass.ticket);
  };
  const auto [first, ticket] = draft();
  ASSERT_TRUE(session.cancel(ticket));
  const auto [again, open] = draft();
  EXPECT_EQ(again, first);
  EXPECT_NE(draft().first, first);
}

TEST(ModelDrafterSampling, StatesAProbabilityThatTheDrawnTokenHasNoPartIn) {
  // For every seed with the same earlier tokens, the stated probability is the same, whichever token was drawn next.
  std::map<Tokens, Probability> stated;
  std::map<Tokens, std::size_t> drawn;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Lent drafter = begun(
        {.kind = DraftKind::sampled, .draft_length = 3, .min_path_probability = Probability::ratio(1, 3), .seed = seed},
        {1, 2, 3});
    const Drafted draft = drafter.propose();
    for (std::size_t i = 0; i <= draft.nodes.size() && i < 3; ++i) {
      Tokens before = draft.tokens();
      before.resize(i);
      // The end of a draft is a statement too.
      const Probability here = i < draft.nodes.size() ? draft.nodes[i].path_probability : Probability::zero();
      const auto [known, is_new] = stated.emplace(before, here);
      EXPECT_EQ(known->second, here);
      ++drawn[before];
    }
  }
  EXPECT_EQ(drawn[{}], 400U);
  EXPECT_GT(stated.size(), 10U);
}

/// Reports rounds of which the first node was sent or not, and accepted or not. Returns the probability that the
/// drafter states for the first node afterwards.
Probability stated_after(Lent& drafter, int rounds, bool sent, bool accepted) {
  const NodeIndex first = 0;
  for (int i = 0; i < rounds; ++i) {
    const Drafted draft = drafter.propose();
    const std::span<const NodeIndex> node(&first, 1);
    const Token other = (draft.nodes[0].token + 1) % 8;
    drafter.feedback({draft.view(),
                      sent ? node : node.first(0),
                      accepted ? node : node.first(0),
                      accepted ? std::optional<Token>()
                      : sent   ? other
                               : draft.nodes[0].token,
                      Cut::none,
                      {}});
  }
  return drafter.propose().nodes[0].path_probability;
}

TEST(ModelDrafterSampling, LearnsHowOftenItIsAcceptedUntilANewSequenceBegins) {
  Lent drafter = begun(sampled, {1, 2, 3});
  const Probability before = stated_after(drafter, 0, false, false);
  EXPECT_EQ(stated_after(drafter, 20, false, false), before) << "nothing was sent";
  EXPECT_LT(stated_after(drafter, 20, true, false), before);
  EXPECT_GT(stated_after(drafter, 100, true, true), before);
  drafter.begin(Tokens{1, 2, 3});
  EXPECT_EQ(stated_after(drafter, 0, false, false), before);
}

}  // namespace
}  // namespace reprise::model_drafter_test
