// SPDX-License-Identifier: Apache-2.0
// Decoding under a grammar: the example's grammar by itself, then in the loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../examples/json_grammar.hpp"
#include "reprise/draft/jump_forward_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/no_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/testing/random.hpp"
#include "support/hostile_strategy.hpp"
#include "support/oracle_strategy.hpp"
#include "support/strategies.hpp"

namespace reprise::grammar_test {
namespace {

using json_grammar::Grammar;
using json_grammar::Matcher;
using json_grammar::text_of;
using json_grammar::tokens_of;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::HostileStrategy;
using ::testing::IsEmpty;
using testing::mix;
using testing::OracleOptions;
using testing::OracleStrategy;
using testing::Random;

constexpr std::size_t token_count = 40;  // more than the vocabulary has
constexpr Token end = json_grammar::end;

const Grammar tickets = {"{id,kc,twqob}", 3, 4};
const Grammar truths = {"b", 1, 9};

Token token(std::string_view text) {
  const std::vector<Token> found = tokens_of(text);
  EXPECT_EQ(text_of(found), text);
  return found.at(0);
}

std::vector<Token> allowed_tokens(const Matcher& matcher) { return matcher.mask(); }
std::vector<Token> forced_tokens(const Matcher& matcher, std::size_t most = 64) {
  std::vector<Token> tokens(most);
  tokens.resize(matcher.forced(tokens));
  return tokens;
}

/// Documents written at random under the mask.
struct RandomWalks : ::testing::Test {
  static bool ends(const Matcher& matcher) { return matcher.mask().empty(); }
  /// True for a list of tickets, or of booleans.
  static bool is_list(const std::string& text) {
    static const std::regex tickets_text(
        R"re(\[(\{"id":[1-9]{1,5},"kind":"(bug|wish|question)","title":"([A-Za-z]+ ){1,5}","open":(true|false)\}(,|(?=\]))){3,4}\])re");
    static const std::regex truths_text(R"(\[((true|false)(,|(?=\]))){1,9}\])");
    return std::regex_match(text, tickets_text) || std::regex_match(text, truths_text);
  }
  template <class Visit>
  static void walk(const Grammar& grammar, std::uint64_t seed, std::size_t most, Visit visit) {
    Random random(seed);
    Matcher matcher(grammar);
    std::vector<Token> written;
    for (std::size_t i = 0; i < most && !ends(matcher); ++i) {
      const std::vector<Token> allowed = allowed_tokens(matcher);
      ASSERT_THAT(allowed, ::testing::Not(IsEmpty())) << text_of(written);
      visit(matcher, std::as_const(allowed), random);
      written.push_back(allowed[random.below(allowed.size())]);
      ASSERT_TRUE(matcher.accept(written.back()));
    }
    ASSERT_TRUE(!ends(matcher) || is_list(text_of(written))) << text_of(written);
    ended += ends(matcher) ? 1 : 0;
  }
  template <class Visit>
  static void walk_all(Visit visit) {
    ended = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) walk(tickets, seed, 400, visit);
    EXPECT_EQ(ended, 12U);
    for (std::uint64_t seed = 0; seed < 40; ++seed) walk(truths, seed, 30, visit);
    EXPECT_GT(ended, 20U);
  }
  inline static std::size_t ended = 0;
};

TEST_F(RandomWalks, UnderTheMaskGiveValidJson) {
  walk_all([](const Matcher&, const std::vector<Token>&, Random&) {});
}
TEST_F(RandomWalks, TheMaskIsWhatAcceptAccepts) {
  walk_all([](const Matcher& matcher, const std::vector<Token>& allowed, Random&) {
    std::vector<Token> accepted;
    Matcher copy = matcher;
    for (std::size_t i = 0; i < token_count; ++i) {
      if (!copy.accept(static_cast<Token>(i))) continue;
      accepted.push_back(static_cast<Token>(i));
      copy.rollback(1);
    }
    ASSERT_EQ(accepted, allowed);
  });
}
TEST_F(RandomWalks, AllowedIsAcceptOneByOneOnACopy) {
  std::size_t whole = 0;
  std::size_t cut = 0;
  walk_all([&](const Matcher& matcher, const std::vector<Token>&, Random& random) {
    std::vector<Token> path;
    Matcher ahead = matcher;
    const std::size_t wrong_percent = random.chance(50) ? 0 : 25;
    while (path.size() < 6) {
      const std::vector<Token> next = allowed_tokens(ahead);
      Token token = next.empty() ? 7 : next[random.below(next.size())];
      if (random.chance(wrong_percent))
        token = random.chance(20) ? static_cast<Token>(random.next()) : static_cast<Token>(random.below(100));
      path.push_back(token);
      static_cast<void>(ahead.accept(token));
    }
    std::size_t expected = 0;
    for (Matcher copy = matcher; expected < path.size() && copy.accept(path[expected]);) ++expected;
    ASSERT_EQ(matcher.allowed(path), expected);
    ++(expected == path.size() ? whole : cut);
  });
  EXPECT_GT(whole, 100U);
  EXPECT_GT(cut, 100U);
}
TEST_F(RandomWalks, ForcedIsWhatTheMaskLeavesNoChoiceAbout) {
  std::size_t forced = 0;
  walk_all([&](const Matcher& matcher, const std::vector<Token>&, Random&) {
    std::vector<Token> expected;
    Matcher copy = matcher;
    for (auto only = allowed_tokens(copy); only.size() == 1; only = allowed_tokens(copy)) {
      expected.push_back(only[0]);
      ASSERT_TRUE(copy.accept(only[0]));
    }
    ASSERT_THAT(forced_tokens(matcher), ElementsAreArray(expected));
    const std::size_t fewer = expected.size() / 2;
    ASSERT_THAT(forced_tokens(matcher, fewer), ElementsAreArray(TokenSpan(expected).first(fewer)));
    forced += expected.size();
  });
  EXPECT_GT(forced, 500U);
}
TEST_F(RandomWalks, AskingChangesNothingAndRollbackGoesBack) {
  walk_all([](Matcher& matcher, const std::vector<Token>& allowed, Random& random) {
    static_cast<void>(forced_tokens(matcher));
    static_cast<void>(matcher.allowed(allowed));
    std::size_t added = 0;
    for (Token token = 0; added < 3 && token < 100; ++token) added += matcher.accept(token) ? 1 : 0;
    ASSERT_FALSE(matcher.accept(static_cast<Token>(random.next() | 0x80000000)));
    matcher.rollback(added);
    ASSERT_EQ(allowed_tokens(matcher), allowed);
  });
}

TEST(Matcher, ForcesTheEndOfADocumentThatCannotGoOn) {
  const Grammar one_truth = {"b", 1, 1};
  Matcher matcher(one_truth);
  ASSERT_EQ(forced_tokens(matcher), std::vector<Token>{token("[")});
  ASSERT_TRUE(matcher.accept(token("[")));
  EXPECT_THAT(forced_tokens(matcher), IsEmpty());
  ASSERT_TRUE(matcher.accept(token("true")));
  EXPECT_THAT(forced_tokens(matcher), ElementsAre(token("]"), end));
  ASSERT_TRUE(matcher.accept(token("]")));
  ASSERT_TRUE(matcher.accept(end));
  EXPECT_THAT(allowed_tokens(matcher), IsEmpty());
}

struct EngineOptions {
  bool sampled = false;
  std::size_t max_leaves = 1;
};

/// Samples lazily under the grammar, for chains and trees. Counts the refused tokens that it was sent.
class GrammarEngine {
 public:
  GrammarEngine(const Grammar& grammar, TokenSpan prompt, EngineOptions options)
      : options_(options), matcher_(grammar), cache_(prompt.begin(), prompt.end() - 1) {}

  struct Picks {
    GrammarEngine* engine;
    Token operator[](std::size_t i) const { return engine->pick(i); }
  };
  Picks verify(TokenSpan batch, std::size_t drafted) {
    std::vector<NodeIndex> chain(drafted);
    for (std::size_t i = 0; i < drafted; ++i) chain[i] = static_cast<NodeIndex>(i) - 1;
    return verify_tree(batch, drafted, chain);
  }
  Picks verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    forget_void_pass();
    base_ = cache_.size();
    pending_ = batch.size() - drafted;
    parents_.assign(parents.begin(), parents.end());
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    open_ = true;
    for (std::size_t row = 0; row < drafted; ++row) {
      const std::vector<Token> path = path_to(row);
      if (matcher_.allowed(path) < path.size()) ++refused_sent;
    }
    return {this};
  }
  void commit(std::size_t keep) {
    cache_.resize(base_ + keep);
    settle(keep);
  }
  void commit_rows(std::span<const std::size_t> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) cache_[base_ + i] = cache_[base_ + rows[i]];
    commit(rows.size());
  }
  [[nodiscard]] Capabilities capabilities() const { return {.max_leaves = options_.max_leaves}; }

  std::size_t forced(std::span<Token> out) {
    forget_void_pass();
    return matcher_.forced(out);
  }

  std::size_t refused_sent = 0;

 protected:
  void forget_void_pass() {
    if (!open_) return;
    cache_.resize(base_);
    settle(pending_ - 1);  // nothing was committed
  }

  EngineOptions options_;
  Matcher matcher_;

 private:
  [[nodiscard]] std::vector<Token> path_to(std::size_t row) const {
    std::vector<Token> path;
    for (auto at = static_cast<NodeIndex>(row); at != anchor_parent; at = parents_[static_cast<std::size_t>(at)])
      path.push_back(cache_[base_ + pending_ + static_cast<std::size_t>(at)]);
    std::reverse(path.begin(), path.end());
    return path;
  }
  Token pick(std::size_t i) {
    std::vector<Token> seen(cache_.begin(), cache_.begin() + static_cast<std::ptrdiff_t>(base_ + pending_));
    if (i > 0)
      for (const Token token : path_to(i - 1)) seen.push_back(token);
    Token best = end;
    std::uint64_t best_score = 0;
    for (const Token token : allowed_tokens(matcher_)) {
      // Prefers tokens that followed the last two tokens before, so that lookup finds something.
      std::uint64_t score = 1 + mix(static_cast<std::uint64_t>(token) + 1000 * seen.size()) % 20;
      for (std::size_t at = 2; at < seen.size(); ++at)
        if (seen[at] == token && seen[at - 1] == seen.back()) score += seen[at - 2] == seen[seen.size() - 2] ? 20 : 4;
      if (options_.sampled) score += mix(mix(drawn_) + static_cast<std::uint64_t>(token)) % 30;
      if (score > best_score) best = token;
      best_score = std::max(best_score, score);
    }
    EXPECT_TRUE(matcher_.accept(best));
    ++read_;
    ++drawn_;
    return best;
  }
  /// Undoes the picks that were not committed.
  void settle(std::size_t keep) {
    const std::size_t back = read_ - (keep + 1 - pending_);
    matcher_.rollback(back);
    drawn_ -= back;
    read_ = 0;
    open_ = false;
  }

  std::vector<Token> cache_;
  std::vector<NodeIndex> parents_;
  std::uint64_t drawn_ = 0;
  std::size_t base_ = 0;
  std::size_t pending_ = 0;
  std::size_t read_ = 0;
  bool open_ = false;
};
static_assert(TreeVerifier<GrammarEngine> && VerifierWithCapabilities<GrammarEngine> &&
              !ConstrainedVerifier<GrammarEngine>);

struct AskedEngine : GrammarEngine {
  using GrammarEngine::GrammarEngine;
  std::size_t allowed(TokenSpan path) {
    forget_void_pass();
    ++asked;
    return matcher_.allowed(path);
  }
  std::size_t asked = 0;
};
static_assert(ConstrainedVerifier<AskedEngine>);

struct ForcedTokens {
  GrammarEngine* engine;
  std::size_t forced(std::span<Token> out) { return engine->forced(out); }
};

/// Proposes the same nodes in every round.
struct FixedStrategy {
  std::vector<DraftNode> nodes;
  DraftKind kind = DraftKind::ordered;
  void begin(TokenSpan) {}
  void observe(TokenSpan, std::size_t, Origin) {}
  void feedback(TokenSpan, const Outcome&) {}
  void truncate(TokenSpan, std::size_t) {}
  void propose(TokenSpan, Draft& draft) {
    draft.clear(kind);
    testing::push_all(draft, nodes);
  }
};

struct GrammarLoop : ::testing::TestWithParam<EngineOptions> {
  const std::vector<Token> prompt = tokens_of(
      "[{\"id\":12,\"kind\":\"bug\",\"title\":\"The lamp is on "
      "\",\"open\":true},{\"id\":3,\"kind\":\"wish\",\"title\":\"The "
      "ring \",\"open\":false}]\n{ \"id\": 3, \"title\": \"The king \" }\n");
  Limits limits{.max_tokens = 300, .eos = {end}};
  Statistics statistics;

  template <class Strategy, class Engine>
  std::vector<Token> decode(Engine& engine, Strategy strategy) {
    Session session(std::move(strategy));
    const auto done = generate(session, engine, prompt, limits);
    EXPECT_TRUE(done);
    if (!done) return {};
    statistics = done->statistics;
    EXPECT_EQ(done->finish, FinishReason::eos);
    return {session.context().begin(), session.context().end()};
  }
  std::vector<Token> plainly() {
    GrammarEngine engine(tickets, prompt, GetParam());
    return decode(engine, NoDrafter());
  }
  /// Decodes with and without the filter and expects the tokens of plain decoding, `truth`. make(engine) returns the
  /// strategy. With the filter, no refused token may be sent. Returns the number of refused tokens sent without it.
  template <class Make>
  std::size_t compare(const std::vector<Token>& truth, Make make) {
    AskedEngine asked(tickets, prompt, GetParam());
    EXPECT_EQ(decode(asked, make(asked)), truth);
    EXPECT_EQ(asked.refused_sent, 0U);
    EXPECT_GT(asked.asked, 0U);
    GrammarEngine careless(tickets, prompt, GetParam());
    EXPECT_EQ(decode(careless, make(careless)), truth);
    return careless.refused_sent;
  }
};

TEST_P(GrammarLoop, WritesAValidDocumentOfSomeLength) {
  const std::vector<Token> truth = plainly();
  const TokenSpan output = TokenSpan(truth).subspan(prompt.size());
  EXPECT_GT(output.size(), 40U);
  EXPECT_TRUE(RandomWalks::is_list(text_of(output))) << text_of(output);
  EXPECT_EQ(Matcher(tickets).allowed(output), output.size());
}
TEST_P(GrammarLoop, GivesTheSameTokensWithLookupDrafts) {
  const std::vector<Token> truth = plainly();
  EXPECT_GT(compare(truth, [](GrammarEngine&) { return NgramDrafter(); }), 0U);
  EXPECT_GT(statistics.accepted, 20U);
}
TEST_P(GrammarLoop, GivesTheSameTokensWithHostileDrafts) {
  const std::vector<Token> truth = plainly();
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    // Sampled drafts are not checked against the grammar, so the engine may be sent refused tokens.
    AskedEngine asked(tickets, prompt, GetParam());
    EXPECT_EQ(decode(asked, HostileStrategy(seed, 100)), truth);
    GrammarEngine careless(tickets, prompt, GetParam());
    EXPECT_EQ(decode(careless, HostileStrategy(seed, 100)), truth);
    EXPECT_GT(careless.refused_sent, asked.refused_sent);
  }
}
TEST_P(GrammarLoop, GivesTheSameTokensWithRightDraftsAndWrongOnesBesideThem) {
  const std::vector<Token> truth = plainly();
  const OracleOptions half_right{.right_percent = 80, .length = 5, .vocabulary = 100, .siblings = true};
  EXPECT_GT(compare(truth, [&](GrammarEngine&) { return OracleStrategy(truth, half_right); }), 0U);
}
TEST_P(GrammarLoop, AcceptsAllThatIsForced) {
  const std::vector<Token> truth = plainly();
  const std::uint64_t passes = statistics.passes;
  EXPECT_EQ(compare(truth, [](GrammarEngine& engine) { return JumpForwardDrafter(ForcedTokens{&engine}); }), 0U);
  EXPECT_GT(statistics.accepted, 20U);
  EXPECT_EQ(statistics.accepted, statistics.drafted);
  // One pass more than plain decoding: the end of the document was drafted, and its pass gave no token after it.
  EXPECT_EQ(statistics.passes + statistics.accepted, passes + 1);
}
TEST_P(GrammarLoop, GivesTheSameTokensWithForcedTokensAndLookupTogether) {
  const std::vector<Token> truth = plainly();
  const auto both = [](GrammarEngine& engine) {
    return UnionDrafter(JumpForwardDrafter(ForcedTokens{&engine}), NgramDrafter());
  };
  compare(truth, both);
  const std::uint64_t together = statistics.passes;
  compare(truth, [](GrammarEngine& engine) { return JumpForwardDrafter(ForcedTokens{&engine}); });
  EXPECT_LT(together, statistics.passes);
}
TEST_P(GrammarLoop, DoesNotLookAtSampledDrafts) {
  const std::vector<Token> truth = plainly();
  const FixedStrategy sampled{{{.token = token(" ")}, {.token = token("true"), .parent = 0}}, DraftKind::sampled};
  AskedEngine asked(tickets, prompt, GetParam());
  EXPECT_EQ(decode(asked, sampled), truth);
  EXPECT_EQ(asked.asked, 0U);
  EXPECT_GT(asked.refused_sent, 0U);
  EXPECT_EQ(statistics.count(Cut::constraint), 0U);
}
/// An engine whose every second pass fails after its picks were read, before any is committed. The grammar must undo
/// these picks, even though it is asked before the next pass.
struct FailingEngine : AskedEngine {
  using AskedEngine::AskedEngine;
  Result<void> commit_rows(std::span<const std::size_t> rows) {
    return settled([&] { AskedEngine::commit_rows(rows); });
  }
  Result<void> commit(std::size_t keep) {
    return settled([&] { AskedEngine::commit(keep); });
  }
  template <class Commit>
  Result<void> settled(Commit commit) {
    if (++commits % 2 == 1) return Error{ErrorCode::verifier_failed, "no"};
    commit();
    return {};
  }
  std::size_t commits = 0;
};
TEST_P(GrammarLoop, TakesBackWhatAVoidPassHasPicked) {
  const std::vector<Token> truth = plainly();
  FailingEngine engine(tickets, prompt, GetParam());
  Session session(UnionDrafter(JumpForwardDrafter(ForcedTokens{&engine}), NgramDrafter()));
  ASSERT_TRUE(session.begin(prompt, engine.capabilities()));
  std::size_t failures = 0;
  while (!generate(session, engine, limits)) ASSERT_LT(++failures, 1000U);
  EXPECT_GT(failures, 5U);
  EXPECT_THAT(session.context(), ElementsAreArray(truth));
}
TEST_P(GrammarLoop, TakesBackWhatAPredicateRefuses) {
  const std::vector<Token> truth = plainly();
  AskedEngine engine(tickets, prompt, GetParam());
  Session session(NgramDrafter{});
  ASSERT_TRUE(session.begin(prompt, engine.capabilities()));
  // A predicate refuses each sixth token once. After that, the engine must pick the same token again.
  std::size_t refused = 0;
  for (bool done = false; !done;) {
    bool again = false;
    const auto part = generate(session, engine, limits, IgnoreTokens(), [&](TokenSpan output, Token) {
      const bool stop = output.size() / 6 > refused;
      refused += stop ? 1 : 0;
      again = again || stop;
      return stop ? StopDecision::stop_before : StopDecision::proceed;
    });
    ASSERT_TRUE(part);
    done = !again;
    if (!done) {
      ASSERT_TRUE(session.truncate(session.context().size()));
    }
  }
  EXPECT_GT(refused, 5U);
  EXPECT_THAT(session.context(), ElementsAreArray(truth));
}
INSTANTIATE_TEST_SUITE_P(Engines, GrammarLoop,
                         ::testing::Values(EngineOptions{false, 1}, EngineOptions{false, 6}, EngineOptions{true, 1},
                                           EngineOptions{true, 6}),
                         [](const auto& which) {
                           return std::string(which.param.sampled ? "Sampled" : "Greedy") +
                                  (which.param.max_leaves > 1 ? "Trees" : "Chains");
                         });

/// A grammar of booleans only, so that a space is never allowed.
struct RefusedDrafts : ::testing::Test {
  const Grammar grammar = {"b", 6, 6};
  const std::vector<Token> prompt = tokens_of("as JSON: ");
  Limits limits{.max_tokens = 50, .eos = {end}};

  Statistics decode(std::vector<DraftNode> nodes, std::size_t max_leaves) {
    AskedEngine engine(grammar, prompt, {.max_leaves = max_leaves});
    Session session(FixedStrategy{std::move(nodes)});
    const auto done = generate(session, engine, prompt, limits);
    EXPECT_EQ(done->finish, FinishReason::eos);
    EXPECT_EQ(engine.refused_sent, 0U);
    return done->statistics;
  }
};

TEST_F(RefusedDrafts, AreNotSentAndCountAsCutByAConstraint) {
  const Statistics counted =
      decode({{.token = token(" ")}, {.token = token("[")}, {.token = token("["), .parent = 0}}, 2);
  // [ is sent in the first pass, where it is right. That pass commits two tokens.
  EXPECT_EQ(counted.drafted, 1U);
  EXPECT_EQ(counted.accepted, 1U);
  EXPECT_EQ(counted.count(Cut::constraint), counted.passes);
}
TEST_F(RefusedDrafts, TakeOnlyTheirOwnBranchOfATree) {
  const Token yes = token("true");
  // Where a value may come, the second path is allowed; where a comma may come, no path is.
  const std::vector<DraftNode> nodes = {
      {.token = token(" ")}, {.token = yes}, {.token = yes, .parent = 0}, {.token = token(" "), .parent = 1}};
  const Statistics counted = decode(nodes, 4);
  EXPECT_GT(counted.drafted, 0U);
  EXPECT_LE(counted.drafted, 6U);  // one for each value
  EXPECT_EQ(counted.count(Cut::constraint), counted.passes);
}

}  // namespace
}  // namespace reprise::grammar_test
