// SPDX-License-Identifier: Apache-2.0
// No strategy and no text makes drafting lose more than 10 plain passes in 1,000, in the exact costs of the curve.
// Targets see every draft, every cost and the loss budget, and decide acceptance so as to lose much.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/loop/session.hpp"
#include "support/loss_world.hpp"
#include "support/property_cases.hpp"

namespace reprise::testing::property_loss_budget_test {
namespace {

/// The settings of a world of sessions.
struct SessionWorld {
  NamedCurve curve;
  Attack attack = Attack::reject;
  std::size_t sessions = 1;        ///< decoded at the same time
  std::size_t tokens = unlimited;  ///< of a session, until it begins anew
  bool own_budgets = false;        ///< one control decodes sequence after sequence, with a budget of its own
  bool calibrated = true;
  DraftKind kind = DraftKind::ordered;
  Cost rollback = 0;
  bool chances = false;  ///< random lengths, cancelled rounds, early stops, several pending tokens at the beginning
  bool unseen = false;   ///< some passes run, but their results are never reported
  bool forks = false;    ///< sessions are replaced by forks of others
  Capabilities can = {};

  [[nodiscard]] std::string text() const {
    return curve.name + ", attack " + std::to_string(static_cast<int>(attack)) + ", " + std::to_string(sessions) +
           " sessions of " + std::to_string(tokens) + (own_budgets ? ", own budget" : "") +
           (calibrated ? "" : ", uncalibrated") + (kind == DraftKind::sampled ? ", sampled" : "") + ", rollback " +
           std::to_string(static_cast<int>(can.rollback)) + (chances ? ", chances" : "") + (unseen ? ", unseen" : "") +
           (forks ? ", forks" : "") + (can.allowed_widths.empty() ? "" : ", widths") +
           (can.pad_token ? ", padded" : "");
  }
};

/// Decodes sessions against one adversary.
class SessionDuel {
 public:
  SessionDuel(const SessionWorld& world, std::uint64_t seed) : world_(world), random_(mix(seed)) {
    for (std::size_t i = 0; i < world.sessions; ++i) players_.push_back(std::make_unique<Player>(options()));
  }

  Losses run(std::size_t passes) {
    while (losses_.when_run.size() < passes) step(*players_[random_.below(players_.size())]);
    return losses_;
  }
  /// Plain passes that would have committed the same tokens.
  [[nodiscard]] std::size_t tokens() const { return committed_; }
  [[nodiscard]] std::size_t refused_forks() const { return refused_forks_; }

 private:
  using Played = Session<ToldStrategy, CostControl>;
  struct Player {
    explicit Player(const CostOptions& options) : session(ToldStrategy(), CostControl(options)) {}
    Played session;
    std::optional<Pass> pass;
    std::size_t left = 0;      // tokens until the session begins anew
    std::size_t replayed = 0;  // pending tokens that run again because of a rejection
    std::size_t passes = 0;
  };

  [[nodiscard]] CostOptions options() {
    CostOptions options;
    options.curve = world_.curve.curve;
    options.rollback = world_.rollback;
    options.calibrated = world_.calibrated;
    options.loss_budget = world_.own_budgets ? nullptr : &budget_;
    return options;
  }
  void step(Player& player) {
    if (player.pass && world_.unseen && random_.chance(40)) return vanish(player);
    if (player.pass) return commit(player);
    if (world_.forks && random_.chance(30)) fork(player);
    if (player.left == 0 || player.session.finished()) begin(player);
    ToldStrategy& strategy = player.session.strategy();
    constexpr std::array<unsigned, 4> claims = {1000, 999, 950, 800};
    strategy.claim = Probability::ratio(claims[random_.below(world_.chances ? claims.size() : 2)], 1000).raw();
    strategy.length = world_.chances && random_.chance(70) ? random_.below(33) : 32;
    strategy.kind = world_.kind;
    player.session.propose(limits_);
    player.pass = player.session.plan().value();
    if (world_.chances && random_.chance(3)) player.pass = player.session.plan(random_.below(5)).value();
    if (!world_.chances || !random_.chance(3)) return;
    ASSERT_TRUE(player.session.cancel(player.pass->ticket));
    player.pass.reset();
  }
  void begin(Player& player) {
    const std::vector<std::size_t>& starts = world_.curve.contexts;
    const std::vector<Token> prompt(starts[random_.below(starts.size())] + (world_.chances ? random_.below(6) : 0));
    std::size_t pending = world_.chances && random_.chance(30) ? 1 + random_.below(5) : 1;
    pending = std::min(pending, prompt.size());
    if (!world_.own_budgets && random_.chance(20)) player.session = Played(ToldStrategy(), CostControl(options()));
    ASSERT_TRUE(player.session.begin(prompt, world_.can, prompt.size() - pending));
    player.left = world_.tokens;
    player.replayed = 0;
  }
  /// Replaces another session by a fork of this one.
  void fork(const Player& player) {
    Player& other = *players_[random_.below(players_.size())];
    if (&other == &player || other.pass || player.left == 0) return;
    auto forked = player.session.fork();
    if (!forked) {
      ASSERT_EQ(forked.error().code, ErrorCode::too_many_pending);
      ++refused_forks_;
      return;
    }
    other.session = *std::move(forked);
    other.left = player.left;
    other.replayed = player.replayed;
  }
  /// The open pass has run, and its result is never reported.
  void vanish(Player& player) {
    const Pass pass = *std::exchange(player.pass, {});
    const std::size_t context = player.session.context().size();
    const std::size_t base = player.replayed > 0 && pass.drafted > 0 ? 1 : pass.pending;
    const std::int64_t loss = cost(pass.batch.size(), context) + (pass.drafted > 0 ? world_.rollback : 0);
    losses_.when_run.push_back(loss - cost(base, context));
    losses_.when_caused.push_back(loss - cost(pass.pending, context));
    switch (random_.below(5)) {
      case 0:
        player.left = 0;  // the next request
        return;
      case 1:
        if (world_.own_budgets) return;
        player.session = Played(ToldStrategy(), CostControl(options()));
        player.left = 0;
        return;
      case 2:
        ASSERT_TRUE(player.session.abandon(pass.ticket));
        return;
      case 3:
        ASSERT_TRUE(player.session.set_cached(player.session.cached()));
        return;
      default:
        return;  // the next propose() ends the round
    }
  }
  [[nodiscard]] std::int64_t cost(std::size_t rows, std::size_t context) const {
    return world_.curve.curve.cost({1, rows, context});
  }
  void commit(Player& player) {
    const Pass pass = *std::exchange(player.pass, {});
    Played& session = player.session;
    const std::size_t context = session.context().size();
    const std::size_t pending = pass.pending;
    const std::size_t rows = pass.batch.size();
    const std::size_t nodes = pass.drafted - pass.padding;
    const std::int64_t extra = cost(rows, context) - cost(pending, context);
    const auto replay = [&](std::size_t committed) {
      return cost(pending + committed, context + committed) - cost_one;
    };
    const std::size_t accepted =
        accepted_by(world_.attack, random_, player.passes++, nodes, extra, session.control().loss_budget(), replay);
    std::vector<Token> picks(pass.drafted + 1, -7);
    for (std::size_t i = 0; i < accepted; ++i) picks[i] = static_cast<Token>(i + 1);
    const std::size_t stop = world_.chances && random_.chance(3) ? random_.below(nodes + 1) : unlimited;
    std::size_t seen = 0;
    const StopDecision how = random_.chance(50) ? StopDecision::stop_after : StopDecision::stop_before;
    const auto predicate = [&](TokenSpan, Token) { return seen++ == stop ? how : StopDecision::proceed; };
    const auto decision = session.resolve(pass.ticket, picks, predicate);
    ASSERT_TRUE(decision);
    const bool restored = decision->restore;
    const std::size_t agreed = decision->accepted;
    ASSERT_TRUE(session.commit(pass.ticket));
    const std::size_t committed = session.context().size() - context;

    const std::size_t base = player.replayed > 0 ? 1 : pending;
    const std::int64_t rollback = agreed < pass.drafted ? world_.rollback : 0;
    const std::int64_t saved = LossBudget::saved(committed);
    const std::int64_t caused = restored && pass.drafted > 0 ? replay(committed) : 0;
    losses_.when_run.push_back(cost(rows, context) - cost(base, context) + rollback - saved);
    losses_.when_caused.push_back(extra + rollback - saved + caused);
    if (pass.drafted > 0) player.replayed = restored ? pending : 0;
    if (pass.drafted == 0) player.replayed = 0;
    committed_ += committed;
    player.left -= std::min(player.left, std::max<std::size_t>(committed, 1));
  }

  SessionWorld world_;
  Random random_;
  LossBudget budget_;
  Limits limits_;
  std::vector<std::unique_ptr<Player>> players_;
  Losses losses_;
  std::size_t committed_ = 0;
  std::size_t refused_forks_ = 0;
};

SessionWorld random_world(std::uint64_t seed, const std::vector<NamedCurve>& curves) {
  Random random(mix(seed) ^ 1);
  SessionWorld world;
  world.curve = curves[seed % curves.size()];
  world.attack = static_cast<Attack>(random.below(static_cast<std::size_t>(Attack::count)));
  constexpr std::array<std::size_t, 4> sessions = {1, 1, 3, 12};
  world.sessions = sessions[random.below(sessions.size())];
  constexpr std::array<std::size_t, 4> tokens = {30, 8, 200, 4000};
  world.tokens = tokens[random.below(tokens.size())];
  world.own_budgets = world.sessions == 1 && random.chance(50);
  world.calibrated = random.chance(70);
  world.kind = random.chance(20) ? DraftKind::sampled : DraftKind::ordered;
  world.rollback = random.chance(20) ? to_cost(2.5) : 0;
  world.chances = random.chance(50);
  world.unseen = random.chance(30);
  world.forks = !world.own_budgets && random.chance(30);
  constexpr std::array<Rollback, 3> rollbacks = {Rollback::trim, Rollback::snapshot, Rollback::per_row};
  world.can.rollback = rollbacks[random.below(3)];
  if (random.chance(25)) world.can.allowed_widths = {1, 3, 4, 9, 16, 33};
  if (random.chance(50)) world.can.pad_token = 9999;
  return world;
}

/// Expects the bound in this many worlds. play(seed) returns the largest loss in a world, and the text of the world.
template <class Play>
void expect_bounded(std::uint64_t worlds, Play play) {
  const std::uint64_t first = property_seed();
  std::int64_t worst = 0;
  for (std::uint64_t seed = first; seed < first + worlds; ++seed) {
    const auto [lost, world] = play(seed);
    ASSERT_LE(lost, LossBudget::most_lost)
        << static_cast<double>(lost) / cost_one << " in " << world << "; " << run_again(seed);
    worst = std::max(worst, lost);
  }
  ::testing::Test::RecordProperty("worst_loss", std::to_string(static_cast<double>(worst) / cost_one));
  if (worlds >= 100) {
    EXPECT_GT(worst, LossBudget::most_lost * 95 / 100) << "no adversary comes close: the test says little";
  }
}

TEST(LossBudgetProperty, NoAdversaryMakesSessionsLoseMoreThanTenPassesInAThousand) {
  expect_bounded(property_cases(1'000), [](std::uint64_t seed) {
    const SessionWorld world = random_world(seed, tempting_curves(seed));
    return std::pair(SessionDuel(world, seed).run(2'500).worst(), world.text());
  });
}

TEST(LossBudgetProperty, NoSituationThatOnceBrokeTheBoundBreaksIt) {
  for (const NamedCurve& curve : tempting_curves(1))
    for (const Rollback rollback : {Rollback::trim, Rollback::snapshot})
      for (const std::size_t sessions : {1U, 8U})
        for (const std::size_t tokens : {std::size_t{30}, std::size_t{5000}})
          for (const Attack attack : {Attack::reject, Attack::replay}) {
            SessionWorld world{.curve = curve, .attack = attack, .sessions = sessions, .tokens = tokens};
            world.own_budgets = sessions == 1;
            world.can.rollback = rollback;
            const std::int64_t lost = SessionDuel(world, 5).run(2000).worst();
            EXPECT_LE(lost, LossBudget::most_lost) << static_cast<double>(lost) / cost_one << " in " << world.text();
          }
}

TEST(LossBudgetProperty, ForksLoseNoMoreThanOneSession) {
  std::size_t refused = 0;
  for (const std::size_t sessions : {2U, 8U, 32U, 256U})
    for (const double slope : {0.1, 0.2, 0.35})
      for (const Attack attack : {Attack::replay, Attack::build_up, Attack::random}) {
        SessionWorld world{
            .curve = {"linear", CostCurve::linear(slope), {4}}, .attack = attack, .sessions = sessions, .tokens = 300};
        world.forks = true;
        world.can.rollback = Rollback::snapshot;
        world.can.max_replay = unlimited;
        SessionDuel duel(world, sessions);
        const std::int64_t lost = duel.run(4000).worst();
        EXPECT_LE(lost, LossBudget::most_lost) << static_cast<double>(lost) / cost_one << " in " << world.text();
        refused += duel.refused_forks();
      }
  EXPECT_GT(refused, 100U) << "without a refusal, the budget was not the limit";
}

TEST(LossBudgetProperty, OneSpeculatorForAThousandShortSessionsLosesAsLittleAsOneLongSession) {
  for (const double slope : {0.1, 1.0})
    for (const std::size_t tokens : {30U, 30'000U})
      for (const Attack attack : {Attack::reject, Attack::refill}) {
        SessionWorld world{.curve = {"linear", CostCurve::linear(slope), {100}}, .attack = attack, .tokens = tokens};
        world.own_budgets = true;
        SessionDuel duel(world, 3);
        const std::int64_t lost = duel.run(30'000).total();
        const double speed = 1 - static_cast<double>(lost) / cost_one / 30'000;
        EXPECT_GE(speed, 0.995) << slope << " " << tokens;
      }
}

// ------------------------------------------------------------------------------------------------------- batches
/// The settings of a world of batches.
struct BatchWorld {
  NamedCurve curve;
  Attack attack = Attack::reject;
  std::size_t sequences = 1;
  std::size_t planners = 1;  ///< take turns, with one budget
  bool sampled = false;
  bool replayed = false;  ///< the engine restores a saved state
  bool chances = false;
  AllowedWidths widths = {};
  std::size_t context_step = 1;

  [[nodiscard]] std::string text() const {
    return curve.name + ", attack " + std::to_string(static_cast<int>(attack)) + ", " + std::to_string(planners) +
           " planners of " + std::to_string(sequences) + " sequences" + (sampled ? ", sampled" : "") +
           (replayed ? ", replayed" : "") + (widths.empty() ? "" : ", widths") + (chances ? ", chances" : "");
  }
};

class BatchDuel {
 public:
  BatchDuel(const BatchWorld& world, std::uint64_t seed) : world_(world), random_(mix(seed)) {
    BatchOptions options;
    options.curve = world.curve.curve;
    options.widths = world.widths;
    options.loss_budget = &budget_;
    for (std::size_t i = 0; i < world.planners; ++i) players_.push_back(std::make_unique<Player>(options));
    for (std::size_t i = 0; i < most; ++i) indices_.push_back(static_cast<NodeIndex>(i));
  }

  Losses run(std::size_t passes) {
    while (losses_.when_run.size() < passes) {
      Player& player = *players_[random_.below(players_.size())];
      player.plan ? learn(player) : plan(player);
    }
    return losses_;
  }

 private:
  static constexpr std::size_t most = 32;
  struct Player {
    explicit Player(const BatchOptions& options) : planner(options) {}
    BatchPlanner planner;
    std::vector<std::vector<DraftNode>> drafts;
    std::vector<BatchEntry> entries;
    std::size_t other_rows = 0;
    std::optional<BatchPlan> plan;
    std::size_t begun = 0;  // passes since the contexts were set
    std::size_t passes = 0;
  };

  void plan(Player& player) {
    // With replays, a batch keeps its sequences, because a replay is charged as if it did.
    if (player.entries.empty() || (player.begun++ > 60 && !world_.replayed)) begin(player);
    player.other_rows = world_.chances && !world_.replayed && random_.chance(20) ? random_.below(5) : 0;
    for (std::size_t i = 0; i < player.entries.size(); ++i) {
      Offer& offer = player.entries[i].offer;
      offer.replayed = world_.replayed;
      if (!world_.replayed) offer.pending = world_.chances && random_.chance(10) ? 1 + random_.below(3) : 1;
      std::size_t length = world_.chances ? random_.below(most) : most;
      if (offer.pending > Capabilities().max_replay) length = 0;  // the sequence settles
      offer.draft = {std::span(player.drafts[i]).first(length),
                     world_.sampled ? DraftKind::sampled : DraftKind::ordered};
      offer.sendable = std::span(indices_).first(length);
    }
    const std::size_t rows = player.entries.size() + player.other_rows;
    static_cast<void>(player.planner.budget({}, {player.entries.size(), rows, player.entries[0].context}));
    player.plan = player.planner.plan(player.entries, player.other_rows);
    if (world_.chances && random_.chance(10)) player.plan = player.planner.shrink(rows + random_.below(20));
  }
  void begin(Player& player) {
    const std::vector<std::size_t>& starts = world_.curve.contexts;
    player.begun = 0;
    player.entries.assign(world_.sequences, {});
    player.drafts.assign(world_.sequences, {});
    for (BatchEntry& entry : player.entries)
      entry.context = starts[random_.below(starts.size())] + (world_.chances ? random_.below(9) : 0),
      entry.offer.pending = 1;
    for (std::vector<DraftNode>& draft : player.drafts)
      for (std::size_t i = 0; i < most; ++i)
        draft.push_back({.token = 1, .parent = static_cast<NodeIndex>(i) - 1, .path_probability = Probability::one()});
  }
  void learn(Player& player) {
    const BatchPlan plan = *std::exchange(player.plan, {});
    const std::size_t n = player.entries.size();
    std::size_t plain = player.other_rows;
    std::size_t context = 0;
    for (const BatchEntry& entry : player.entries) plain += entry.offer.pending, context += entry.context;
    context /= n;
    const auto cost_at = [&](std::size_t rows, std::size_t at) -> std::int64_t {
      const auto widths = world_.widths.values();
      const auto width = std::lower_bound(widths.begin(), widths.end(), rows);
      if (width != widths.end()) rows = *width;
      return world_.curve.curve.cost({n, rows, at});
    };
    const auto cost = [&](std::size_t rows) { return cost_at(rows, context); };
    const std::size_t rows = plan.rows;
    const std::int64_t extra = cost(rows) - cost(plain);
    const std::int64_t rerun = world_.replayed ? cost(plain) - cost(n) : 0;
    std::vector<std::size_t> committed;
    std::size_t tokens = 0;
    std::size_t next_rows = 0;
    std::size_t next_context = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto replay = [&](std::size_t more) { return cost(plain + n * more) - cost(n); };
      const std::size_t accepted =
          accepted_by(world_.attack, random_, player.passes, plan.nodes[i], extra, budget_, replay);
      committed.push_back(world_.chances && random_.chance(2) ? 0 : accepted + 1);
      tokens += std::max<std::size_t>(committed.back(), 1);
      player.entries[i].context += committed.back();
      next_context += player.entries[i].context;
      if (!world_.replayed) continue;
      std::size_t& pending = player.entries[i].offer.pending;
      pending = plan.nodes[i] > 0 && committed.back() <= plan.nodes[i] ? pending + committed.back() : 1;
      next_rows += pending;
    }
    ++player.passes;
    player.planner.learn(committed);
    const std::int64_t saved = static_cast<std::int64_t>(tokens - n) * cost_one / static_cast<std::int64_t>(n);
    next_context /= n;
    const std::int64_t caused = world_.replayed ? cost_at(next_rows, next_context) - cost_at(n, next_context) : 0;
    losses_.when_run.push_back(extra - saved + rerun);
    losses_.when_caused.push_back(extra - saved + (rows > plain ? caused : 0));
  }

  BatchWorld world_;
  Random random_;
  LossBudget budget_;
  std::vector<NodeIndex> indices_;
  std::vector<std::unique_ptr<Player>> players_;
  Losses losses_;
};

TEST(LossBudgetProperty, NoAdversaryMakesBatchesLoseMoreThanTenPassesInAThousand) {
  expect_bounded(property_cases(2'000), [](std::uint64_t seed) {
    Random random(mix(seed) ^ 2);
    constexpr std::array<std::size_t, 3> sequences = {1, 4, 32};
    BatchWorld world;
    world.sequences = sequences[random.below(sequences.size())];
    const std::vector<NamedCurve> curves = tempting_curves(seed, world.sequences);
    world.curve = curves[seed % curves.size()];
    world.attack = static_cast<Attack>(random.below(static_cast<std::size_t>(Attack::count)));
    world.planners = random.chance(30) ? 3 : 1;
    world.sampled = random.chance(20);
    world.replayed = random.chance(40);
    world.chances = random.chance(50);
    if (random.chance(25)) world.widths = {1, 2, 4, 8, 12, 16, 33, 36, 40, 64, 80};
    return std::pair(BatchDuel(world, seed).run(2'500).worst(), world.text());
  });
}

/// Requests through the slots of one follower. Unless the world is calm, they pause and are cancelled at random.
struct SlotsDuel {
  NamedCurve curve;
  Attack attack = Attack::reject;
  bool calm = false;
  std::size_t groups = 1;   ///< of slots that take turns
  std::size_t pause = 0;    ///< calls; the slots of odd numbers pause after each pass, which accepts all
  std::size_t repeats = 0;  ///< percent of calls without a pass
  Random random;
  std::vector<std::vector<Token>> ids;  // of each slot
  BatchFollower<ToldStrategy> follower;
  std::vector<std::size_t> pauses_until = std::vector<std::size_t>(ids.size(), 0);

  bool chance(std::size_t percent) { return !calm && random.chance(percent); }
  /// Runs a pass, and returns its loss. The drafted tokens of a cancelled request are lost.
  std::int64_t run(std::size_t pass) {
    std::vector<FollowedSlot> call;
    std::size_t context = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (i > 0 && (chance(20) || i % groups != pass % groups || pauses_until[i] > pass)) continue;
      if (ids[i].empty() || random.chance(2) || ids[i].size() > 10'000)
        ids[i].assign(curve.contexts[random.below(curve.contexts.size())], static_cast<Token>(random.below(1000)));
      if (chance(2)) follower.forget(i);
      if (chance(2)) static_cast<void>(follower.assign(i, {.length = random.below(33)}));
      call.push_back({.slot = i, .ids = ids[i]});
      context += ids[i].size();
    }
    auto drafts = follower.draft(call).value();
    while (random.chance(repeats)) drafts = follower.draft(call).value();
    const std::size_t n = call.size();
    std::size_t rows = n;
    for (const TokenSpan draft : drafts) rows += draft.size();
    const auto cost = [&](std::size_t of) -> std::int64_t { return curve.curve.cost({n, of, context / n}); };
    const std::int64_t extra = cost(rows) - cost(n);
    std::size_t saved = 0;
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<Token>& text = ids[call[i].slot];
      const bool pauses = pause > 0 && call[i].slot % 2 == 1;
      if (pauses) pauses_until[call[i].slot] = pass + random.below(pause);
      const std::size_t accepted = pauses
                                       ? drafts[i].size()
                                       : accepted_by(attack, random, pass, drafts[i].size(), extra,
                                                     follower.planner().loss_budget(), [](std::size_t) { return 0; });
      text.insert(text.end(), drafts[i].begin(), drafts[i].begin() + static_cast<std::ptrdiff_t>(accepted));
      text.push_back(-7);
      if (chance(5))
        text.clear();
      else
        saved += accepted;
    }
    return extra - static_cast<std::int64_t>(saved) * cost_one / static_cast<std::int64_t>(n);
  }
};

TEST(LossBudgetProperty, TheSlotsOfAFollowerTogetherLoseNoMoreThanTenPassesInAThousand) {
  expect_bounded(property_cases(5'000), [](std::uint64_t seed) {
    Random random(mix(seed) ^ 3);
    const std::size_t slots = std::size_t{1} << random.below(5);
    const std::vector<NamedCurve> curves = tempting_curves(seed, slots);
    const NamedCurve& curve = curves[random.below(curves.size())];
    const auto attack = static_cast<Attack>(random.below(static_cast<std::size_t>(Attack::count)));
    auto follower = BatchFollower<ToldStrategy>::make(slots, {.length = 32}, {.curve = curve.curve}).value();
    SlotsDuel duel{.curve = curve,
                   .attack = attack,
                   .calm = random.chance(50),
                   .groups = random.chance(50) ? 1 : 1 + random.below(4),
                   .pause = random.chance(70) ? 0 : 1 + random.below(1000),
                   .repeats = random.chance(80) ? 0 : std::size_t{30},
                   .random = random,
                   .ids = {slots, std::vector<Token>()},
                   .follower = std::move(follower)};
    std::vector<std::int64_t> losses;
    while (losses.size() < 2500) losses.push_back(duel.run(losses.size()));
    return std::pair(testing::worst_window(losses),
                     curve.name + ", attack " + std::to_string(static_cast<int>(attack)) + ", " +
                         std::to_string(slots) + " slots, turns of " + std::to_string(duel.groups) + ", pause " +
                         std::to_string(duel.pause) + ", repeated calls " + std::to_string(duel.repeats));
  });
}

/// Sessions of one batch, with one planner.
class BatchOfSessions {
 public:
  BatchOfSessions(const NamedCurve& curve, Rollback rollback, Attack attack)
      : curve_(curve.curve), attack_(attack), planner_({.curve = curve.curve}) {
    for (std::size_t i = 0; i < n; ++i) {
      sessions_.emplace_back(ToldStrategy{.length = 8});
      EXPECT_TRUE(sessions_[i].begin(std::vector<Token>(curve.contexts.back() + i), {.rollback = rollback}));
    }
  }
  static constexpr std::size_t n = 4;

  /// Runs a pass. Returns its loss: plain decoding runs one row of each sequence, and no replays.
  std::int64_t pass() {
    std::vector<BatchEntry> entries;
    std::size_t context = 0;
    for (auto& session : sessions_) {
      session.propose(limits_);
      entries.push_back({*session.offer(), session.context().size()});
      context += session.context().size();
    }
    const BatchPlan plan = planner_.plan(entries);
    const auto cost = [&](std::size_t rows) -> std::int64_t { return curve_.cost({n, rows, context / n}); };
    std::size_t rows = 0;
    std::size_t tokens = 0;
    std::vector<std::size_t> committed;
    for (std::size_t i = 0; i < n; ++i) {
      const Pass part = sessions_[i].plan(plan.nodes_of(i), plan.cut).value();
      const auto replay = [&](std::size_t more) { return cost(n + n * more) - cost(n); };
      const std::size_t accepted =
          accepted_by(attack_, random_, passes_, part.drafted, 0, planner_.loss_budget(), replay);
      std::vector<Token> picks(part.drafted + 1, -7);
      for (std::size_t k = 0; k < accepted; ++k) picks[k] = static_cast<Token>(k + 1);
      EXPECT_TRUE(sessions_[i].resolve(part.ticket, picks));
      EXPECT_TRUE(sessions_[i].commit(part.ticket));
      rows += part.batch.size();
      tokens += accepted + 1;
      committed.push_back(accepted + 1);
    }
    planner_.learn(committed);
    ++passes_;
    return cost(rows) - cost(n) - static_cast<std::int64_t>((tokens - n) * cost_one / n);
  }

 private:
  CostCurve curve_;
  Attack attack_;
  BatchPlanner planner_;
  Random random_{9};
  Limits limits_;
  std::vector<Session<ToldStrategy>> sessions_;
  std::size_t passes_ = 0;
};

TEST(LossBudgetProperty, SessionsOfABatchLoseNoMoreThanTenPassesInAThousand) {
  for (const NamedCurve& curve : tempting_curves(2, BatchOfSessions::n))
    for (const Rollback rollback : {Rollback::trim, Rollback::snapshot, Rollback::per_row})
      for (const Attack attack : {Attack::reject, Attack::replay, Attack::random}) {
        BatchOfSessions batch(curve, rollback, attack);
        std::vector<std::int64_t> losses;
        for (std::size_t i = 0; i < 1200; ++i) losses.push_back(batch.pass());
        EXPECT_LE(testing::worst_window(losses), LossBudget::most_lost)
            << curve.name << ", attack " << static_cast<int>(attack) << ", rollback " << static_cast<int>(rollback);
      }
}

}  // namespace
}  // namespace reprise::testing::property_loss_budget_test
