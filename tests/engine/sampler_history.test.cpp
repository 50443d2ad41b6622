// SPDX-License-Identifier: Apache-2.0
#include "reprise/engine/sampler_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "reprise/core/limits.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise_testing/lossless.hpp"
#include "reprise_testing/random.hpp"
#include "support/hostile_strategy.hpp"

namespace reprise::sampler_history_test {
namespace {

using testing::compare_lossless;
using ::testing::ElementsAre;
using testing::HostileStrategy;
using testing::mix;

// ------------------------------------------------------------------------------------------------ the helper alone
/// A sampler that counts: each token is the number of the pick.
struct Counter {
  Token next = 0;
};
Token count(Counter& counter, std::size_t = 0) { return counter.next++; }

#if REPRISE_CONTRACTS == 0
TEST(SamplerHistory, CommitsNothingIfFewerTokensWereDrawn) {
  SamplerHistory<Counter> history(Counter{});
  auto picks = history.picks(2, count).value();
  static_cast<void>(picks[0]);
  history.commit(2);
  EXPECT_EQ(history.sampler().next, 0);
  EXPECT_EQ(history.drawn(), 0U);
}
#endif
TEST(SamplerHistory, MayBeUsedAgainAfterItHasBeenMoved) {
  SamplerHistory<Counter> history(Counter{});
  ASSERT_TRUE(history.begin_pass(3));
  history.draw([](Counter& counter) { return count(counter); });
  const SamplerHistory<Counter> moved = std::move(history);
  EXPECT_EQ(history.drawn(), 0U);  // NOLINT(bugprone-use-after-move)
  ASSERT_TRUE(history.begin_pass(0));
  EXPECT_EQ(history.draw([](Counter& counter) { return count(counter); }), 0);
}
TEST(SamplerHistory, StaysAsItWasWhenADrawThrows) {
  SamplerHistory<Counter> history(Counter{});
  const auto failing = [](Counter& counter) -> Token {
    counter.next = 99;
    throw std::runtime_error("logits");
  };
  ASSERT_TRUE(history.begin_pass(0));
  EXPECT_THROW(history.draw(failing), std::runtime_error);
  EXPECT_EQ(history.drawn(), 0U);
  EXPECT_EQ(history.draw([](Counter& counter) { return count(counter); }), 0);
  history.commit(1);
  EXPECT_EQ(history.sampler().next, 1);
}
TEST(SamplerHistory, IsEditedBetweenPasses) {
  SamplerHistory<Counter> history(Counter{});
  auto picks = history.picks(2, count).value();
  static_cast<void>(picks[0]);
  history.edit().next = 40;
  EXPECT_EQ(history.drawn(), 0U);
  auto more = history.picks(2, count).value();
  EXPECT_EQ(more[0], 40);
}
TEST(SamplerHistory, IsForkedByACopy) {
  SamplerHistory<Counter> history(Counter{});
  auto picks = history.picks(2, count).value();
  static_cast<void>(picks[0]);
  SamplerHistory<Counter> fork = history;
  SamplerHistory<Counter> other = history;
  history.commit(1);
  EXPECT_EQ(fork.sampler().next, 0);
  EXPECT_EQ(fork.drawn(), 1U);
  fork.commit(0);
  EXPECT_EQ(fork.sampler().next, 0);
  other.commit(1);
  EXPECT_EQ(other.sampler().next, 1) << "the copy has the open pass";
}
TEST(SamplerHistory, HasNoRoomAfterItWasMovedFrom) {
  SamplerHistory<Counter> history(Counter{7});
  ASSERT_TRUE(history.reserve(3));
  SamplerHistory<Counter> moved(std::move(history));
  history.edit() = Counter{3};  // NOLINT(bugprone-use-after-move)
  auto picks = history.picks(0, count).value();
  EXPECT_EQ(picks[0], 3);
  auto others = moved.picks(2, count).value();
  EXPECT_EQ(others[0], 7);
}
TEST(SamplerHistory, KeepsTheStatesWhereTheyAre) {
  SamplerHistory<Counter> history(Counter{});
  ASSERT_TRUE(history.reserve(2));
  std::vector<const Counter*> places;
  for (int pass = 0; pass < 2; ++pass) {
    ASSERT_TRUE(history.begin_pass(1));
    for (int pick = 0; pick < 2; ++pick)
      history.draw([&](Counter& counter) {
        places.push_back(&counter);
        return count(counter);
      });
  }
  EXPECT_EQ(places[0], places[2]);
  EXPECT_EQ(places[1], places[3]);
}
TEST(SamplerHistory, HasRoomForThePicksThatWereAskedFor) {
  /// Counts its copy constructions, which need memory. Assignments do not.
  struct Copied {
    int* constructed;
    explicit Copied(int& number) : constructed(&number) {}
    Copied(const Copied& other) : constructed(other.constructed) { ++*constructed; }
    Copied& operator=(const Copied&) = default;
    Copied(Copied&&) = default;
    Copied& operator=(Copied&&) = default;
    ~Copied() = default;
  };
  int constructed = 0;
  SamplerHistory<Copied> history{Copied(constructed)};
  ASSERT_TRUE(history.reserve(3));
  for (int pass = 0; pass < 5; ++pass) {
    for (int pick = 0; pick < 3; ++pick) history.draw([](Copied&) { return 1; });
    history.commit(2);
  }
  EXPECT_EQ(constructed, 3) << "one for each place, in the first pass";
}

// ------------------------------------------------------------------------------------------------ a whole engine
constexpr Token open_list = 0;
constexpr Token close_list = 1;
constexpr Token comma = 2;
constexpr Token first_item = 3;
constexpr Token vocabulary = 16;

/// Nested lists of items, [a, [b, c], d] ..., as an automaton: the allowed tokens depend on all tokens before.
class ListGrammar {
 public:
  [[nodiscard]] bool allows(Token token) const {
    if (token == close_list) return depth_ > 0 && !expects_item_;
    if (token == comma) return !expects_item_;
    return expects_item_ && (token != open_list || depth_ < 4);
  }
  void take(Token token) {
    if (token == open_list) ++depth_;
    if (token == close_list) --depth_;
    expects_item_ = token == open_list || token == comma;
  }

 private:
  int depth_ = 0;
  bool expects_item_ = true;
};

/// A sampler with a random stream, a repetition penalty over the last picks, and a grammar.
class Sampler {
 public:
  explicit Sampler(std::uint64_t seed) : random_(seed) {}

  Token sample(const std::array<std::int64_t, vocabulary>& scores) {
    const std::uint64_t noise = mix(random_++);
    std::optional<Token> best;
    std::int64_t best_score = 0;
    for (Token token = 0; token < vocabulary; ++token) {
      if (!grammar_.allows(token)) continue;
      const auto seen = std::count(recent_.begin(), recent_.end(), token);
      const auto score = scores[static_cast<std::size_t>(token)] - 120 * seen +
                         static_cast<std::int64_t>(mix(noise ^ static_cast<std::uint64_t>(token)) % 700);
      if (best && score <= best_score) continue;
      best = token;
      best_score = score;
    }
    recent_[picks_++ % recent_.size()] = *best;
    grammar_.take(*best);
    return *best;
  }
  [[nodiscard]] std::size_t picks() const { return picks_; }

 private:
  std::uint64_t random_;
  std::array<Token, 6> recent_ = {-1, -1, -1, -1, -1, -1};
  std::size_t picks_ = 0;
  ListGrammar grammar_;
};

/// The engine in SamplerHistory's doc comment. Its model prefers tokens that have followed the last two tokens.
class Engine {
 public:
  explicit Engine(TokenSpan prompt, std::uint64_t seed, bool trees = false)
      : cache_(prompt.begin(), prompt.end() - 1), sampler_(Sampler(seed)), trees_(trees) {}

  [[nodiscard]] Capabilities capabilities() const { return {.max_leaves = trees_ ? unlimited : std::size_t{1}}; }
  auto verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    batch_.assign(batch.begin(), batch.end());
    pending_ = batch.size() - drafted;
    parents_.assign(parents.begin(), parents.end());
    return sampler_.picks(drafted, [this](Sampler& sampler, std::size_t i) { return sampler.sample(scores_after(i)); });
  }
  auto verify(TokenSpan batch, std::size_t drafted) {
    std::vector<NodeIndex> chain;
    for (std::size_t row = 0; row < drafted; ++row) chain.push_back(static_cast<NodeIndex>(row) - 1);
    return verify_tree(batch, drafted, chain);
  }
  void commit(std::size_t keep) {
    cache_.insert(cache_.end(), batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(keep));
    sampler_.commit(keep + 1 - pending_);
  }
  void commit_rows(std::span<const std::size_t> rows) {
    for (const std::size_t row : rows) cache_.push_back(batch_[row]);
    sampler_.commit(rows.size() + 1 - pending_);
  }
  [[nodiscard]] const Sampler& sampler() const { return sampler_.sampler(); }

 private:
  [[nodiscard]] std::array<std::int64_t, vocabulary> scores_after(std::size_t i) const {
    std::vector<Token> path;
    for (std::size_t row = i; row > 0;) {
      path.push_back(batch_[pending_ + row - 1]);
      const NodeIndex parent = parents_[row - 1];
      row = parent == anchor_parent ? 0 : static_cast<std::size_t>(parent) + 1;
    }
    std::vector<Token> text = cache_;
    text.insert(text.end(), batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(pending_));
    text.insert(text.end(), path.rbegin(), path.rend());
    const auto at = [&](std::size_t back) {
      return text.size() < back ? 0 : static_cast<std::uint64_t>(text[text.size() - back]);
    };
    std::array<std::int64_t, vocabulary> scores{};
    for (std::size_t token = 0; token < scores.size(); ++token)
      scores[token] = static_cast<std::int64_t>(mix(token + 64 * at(1) + 4096 * at(2)) % 1000);
    return scores;
  }

  std::vector<Token> cache_;
  SamplerHistory<Sampler> sampler_;
  std::vector<Token> batch_;
  std::vector<NodeIndex> parents_;
  std::size_t pending_ = 0;
  bool trees_;
};
static_assert(TreeVerifier<Engine>);

const std::vector<Token> prompt = {first_item, comma, first_item + 1, comma};

/// Expects the same tokens with and without drafting. Returns the number of accepted tokens.
template <class Strategy, class Predicate = NeverStop>
std::uint64_t expect_same(const Strategy& strategy, const Limits& limits, std::uint64_t seed, bool trees = false,
                          Predicate predicate = Predicate()) {
  const auto make = [&](TokenSpan tokens) { return Engine(tokens, seed, trees); };
  const auto report = compare_lossless(make, prompt, limits, strategy, predicate);
  EXPECT_TRUE(report.identical()) << "seed " << seed << ": " << report.message;
  return report.drafted.statistics.accepted;
}

TEST(SeededSampling, IsTheSameWithAHostileStrategy) {
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    for (const bool trees : {false, true})
      accepted += expect_same(HostileStrategy(seed, vocabulary), {.max_tokens = 120}, seed, trees);
  EXPECT_GT(accepted, 1'000U);
}
TEST(SeededSampling, IsTheSameWithEveryStopRule) {
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Limits limits;
    limits.max_tokens = 20 + seed;
    if (seed % 3 == 0) limits.eos = {static_cast<Token>(first_item + seed % 7)};
    if (seed % 3 == 1) limits.stop_sequences = {{comma, static_cast<Token>(first_item + seed % 5)}};
    const auto refuse = [&](TokenSpan output, Token next) {
      return output.size() > seed / 4 && next == static_cast<Token>(first_item + seed % 9) ? StopDecision::stop_before
                                                                                           : StopDecision::proceed;
    };
    accepted += expect_same(HostileStrategy(seed, vocabulary), limits, seed, seed % 2 == 0, refuse);
  }
  EXPECT_GT(accepted, 300U);
}

/// Runs two turns of a chat. A predicate ends the first before a token; the sampler continues in the second.
template <class Strategy>
std::pair<std::vector<Token>, std::size_t> two_turns(Strategy strategy, std::uint64_t seed) {
  Engine engine(prompt, seed);
  Session<Strategy> session(std::move(strategy));
  const auto refuse = [](TokenSpan output, Token next) {
    return output.size() > 25 && next == comma ? StopDecision::stop_before : StopDecision::proceed;
  };
  EXPECT_TRUE(generate(session, engine, prompt, {.max_tokens = 60}, IgnoreTokens(), refuse));
  EXPECT_EQ(session.finish_reason(), FinishReason::predicate);
  EXPECT_EQ(engine.sampler().picks(), session.output().size()) << "the refused pick has left nothing";
  EXPECT_TRUE(session.append(std::array{comma}));
  const auto second = generate(session, engine, {.max_tokens = 40});
  EXPECT_TRUE(second);
  return {{session.context().begin(), session.context().end()}, engine.sampler().picks()};
}
TEST(SeededSampling, GoesOnAfterARefusedPick) {
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    ASSERT_EQ(two_turns(archetype::Strategy(), seed), two_turns(HostileStrategy(seed, vocabulary), seed)) << seed;
}

}  // namespace
}  // namespace reprise::sampler_history_test
