// SPDX-License-Identifier: Apache-2.0
// Decoding under a real grammar: the JSON engine of the examples, first by itself, then in the loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../examples/json_grammar.hpp"
#include "reprise/draft/forced_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/none.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/testing/hostile_strategy.hpp"
#include "reprise/testing/random.hpp"
#include "support/json_reference.hpp"
#include "support/oracle_strategy.hpp"

namespace reprise {
namespace {

using json_grammar::Grammar;
using json_grammar::Matcher;
using json_grammar::Vocabulary;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::HostileStrategy;
using ::testing::IsEmpty;
using testing::JsonReference;
using testing::mix;
using testing::OracleOptions;
using testing::OracleStrategy;
using testing::Random;

const Vocabulary& vocabulary() {
  static const Vocabulary common = Vocabulary::common();
  return common;
}
const Grammar& tickets() {
  static const Grammar grammar = [] {
    Grammar made;
    const auto ticket = made.record({{"id", made.integer(3)},
                                     {"kind", made.one_of({"\"bug\"", "\"wish\"", "\"question\""})},
                                     {"title", made.text(12)},
                                     {"open", made.boolean()}});
    made.root(made.list(ticket, 2, 4));
    return made;
  }();
  return grammar;
}
/// JSON with spaces.
const Grammar& any_json() {
  static const Grammar grammar(2);
  return grammar;
}

Token token(std::string_view text) {
  const auto found = vocabulary().longest_prefix(text);
  EXPECT_EQ(vocabulary().text(found.value_or(Vocabulary::end)), text);
  return found.value_or(Vocabulary::end);
}

struct Verdict {
  std::size_t refused_at;
  bool valid;
};
Verdict read(const Grammar& grammar, std::string_view text) {
  Grammar::State state = grammar.start();
  for (std::size_t at = 0; at < text.size(); ++at)
    if (!grammar.read(state, text[at])) return {at, false};
  return {text.size(), grammar.complete(state)};
}
std::size_t refused_at(const Grammar& grammar, std::string_view text) { return read(grammar, text).refused_at; }
bool valid(const Grammar& grammar, std::string_view text) { return read(grammar, text).valid; }

TEST(JsonGrammar, AcceptsWhatTheReferenceAcceptsAndRefusesTheSameByte) {
  const Grammar json(unlimited);
  Random random(1);
  std::size_t right = 0;
  std::size_t wrong = 0;
  for (int i = 0; i < 40'000; ++i) {
    std::string text = testing::random_json(random, 4);
    ASSERT_TRUE(JsonReference(text).valid()) << text;
    for (std::size_t mistakes = random.below(4); mistakes > 0; --mistakes) {
      const std::size_t at = random.below(text.size() + 1);
      const char byte =
          random.chance(50) ? static_cast<char>(random.below(256)) : "{}[]\",:\\0-.eu \xed"[random.below(15)];
      const std::size_t kind = random.below(4);
      if (kind == 0) text.insert(at, 1, byte);
      if (kind == 1 && at < text.size()) text[at] = byte;
      if (kind == 2) text.erase(at, 1);
      if (kind == 3) text.resize(at);
    }
    const JsonReference expected(text);
    const Verdict found = read(json, text);
    ASSERT_EQ(found.valid, expected.valid()) << text;
    ASSERT_EQ(found.refused_at, expected.refused_at()) << text;
    ++(expected.valid() ? right : wrong);
  }
  EXPECT_GT(right, 10'000U);
  EXPECT_GT(wrong, 10'000U);
}
TEST(JsonGrammar, BoundsDepthAndRunsOfWhitespace) {
  const Grammar& json = any_json();
  const std::string deepest(Grammar::max_depth, '[');
  EXPECT_EQ(refused_at(json, deepest), deepest.size());
  EXPECT_TRUE(valid(json, deepest + std::string(deepest.size(), ']')));
  EXPECT_EQ(refused_at(json, deepest + '['), deepest.size());
  EXPECT_EQ(refused_at(json, deepest + '1'), deepest.size());

  EXPECT_TRUE(valid(json, "  [  1  ,  \"   \"  ]  "));
  EXPECT_EQ(refused_at(json, "[   1]"), 3U);
  EXPECT_EQ(refused_at(json, "[1   ]"), 4U);
  EXPECT_EQ(refused_at(json, "[]   "), 4U);
  EXPECT_EQ(refused_at(Grammar(), "[ ]"), 1U);
}
TEST(JsonGrammar, HoldsADocumentToItsSchema) {
  const std::string one = R"({"id":17,"kind":"wish","title":"The lamp","open":true})";
  EXPECT_TRUE(valid(tickets(), '[' + one + ',' + one + ']'));
  EXPECT_TRUE(valid(tickets(), '[' + one + ',' + one + ',' + one + ',' + one + ']'));
  const auto refused = [](std::string_view text) { return refused_at(tickets(), text); };
  EXPECT_EQ(refused("{"), 0U);
  EXPECT_EQ(refused("[]"), 1U);                         // too few
  EXPECT_EQ(refused('[' + one + ']'), 1 + one.size());  // still
  EXPECT_EQ(refused('[' + one + ',' + one + ',' + one + ',' + one + ','), 4 + 4 * one.size());
  EXPECT_EQ(refused(R"([{"id":1,"title")"), 10U);  // keys in their order
  EXPECT_EQ(refused(R"([{"id":1}")"), 8U);         // and all of them
  EXPECT_EQ(refused(R"([{"id":1.5)"), 8U);         // integers
  EXPECT_EQ(refused(R"([{"id":1234)"), 10U);       // of three digits
  EXPECT_EQ(refused(R"([{"id":-0)"), 9U);          // sign included
  EXPECT_EQ(refused(R"([{"id":07)"), 8U);
  EXPECT_EQ(refused(R"([{"id": 1)"), 7U);  // no whitespace
  EXPECT_EQ(refused(R"([{"id":1,"kind":"bush")"), 19U);
  EXPECT_EQ(refused(R"([{"id":1,"kind":"bug","title":"thirteen long)"), 43U);
  // Twelve characters, not bytes.
  EXPECT_EQ(refused("[{\"id\":1,\"kind\":\"bug\",\"title\":\"\xc3\xa9\\n\\u00e9\xc3\xa9 12345678\""), 51U);
}

/// What may come next.
std::vector<std::uint8_t> mask_of(const Matcher& matcher) {
  std::vector<std::uint8_t> mask(vocabulary().size());
  matcher.mask(mask);
  return mask;
}
std::vector<Token> allowed_tokens(const Matcher& matcher) {
  const std::vector<std::uint8_t> mask = mask_of(matcher);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i] != 0) tokens.push_back(static_cast<Token>(i));
  return tokens;
}
std::vector<Token> forced_tokens(const Matcher& matcher, std::size_t most = 64) {
  std::vector<Token> tokens(most);
  tokens.resize(matcher.forced(tokens));
  return tokens;
}

/// Documents written at random under the mask.
struct RandomWalks : ::testing::Test {
  template <class Visit>
  static void walk(const Grammar& grammar, std::uint64_t seed, std::size_t most, Visit visit) {
    Random random(seed);
    Matcher matcher(grammar, vocabulary());
    std::vector<Token> written;
    for (std::size_t i = 0; i < most && !matcher.ended(); ++i) {
      const std::vector<Token> allowed = allowed_tokens(matcher);
      ASSERT_THAT(allowed, ::testing::Not(IsEmpty())) << vocabulary().text(written);
      visit(matcher, std::as_const(allowed), random);
      written.push_back(allowed[random.below(allowed.size())]);
      ASSERT_TRUE(matcher.accept(written.back()));
    }
    const std::string text = vocabulary().text(written);
    const JsonReference reference(text);
    ASSERT_EQ(reference.refused_at(), text.size()) << text;
    ASSERT_TRUE(!matcher.ended() || reference.valid()) << text;
    ended += matcher.ended() ? 1 : 0;
  }
  template <class Visit>
  static void walk_all(Visit visit) {
    ended = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) walk(tickets(), seed, 400, visit);
    EXPECT_EQ(ended, 12U);
    for (std::uint64_t seed = 0; seed < 40; ++seed) walk(any_json(), seed, 40, visit);
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
    for (std::size_t i = 0; i < vocabulary().size(); ++i) {
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
    const std::size_t accepted = matcher.accepted();
    static_cast<void>(forced_tokens(matcher));
    static_cast<void>(matcher.allowed(allowed));
    std::size_t added = 0;
    for (Token token = 0; added < 3 && token < 100; ++token) added += matcher.accept(token) ? 1 : 0;
    ASSERT_FALSE(matcher.accept(static_cast<Token>(random.next() | 0x80000000)));
    ASSERT_EQ(matcher.accepted(), accepted + added);
    matcher.rollback(added);
    ASSERT_EQ(matcher.accepted(), accepted);
    ASSERT_EQ(allowed_tokens(matcher), allowed);
  });
}

TEST(JsonMatcher, TakesTheLongestTokenWithinForcedText) {
  Matcher matcher(tickets(), vocabulary());
  // Forced is [{"id": and the vocabulary has [{" and "[", but only the longest is allowed.
  EXPECT_THAT(forced_tokens(matcher), ElementsAre(token("[{\""), token("id"), token("\":")));
  EXPECT_FALSE(matcher.accept(token("[")));
  for (const Token forced : forced_tokens(matcher)) ASSERT_TRUE(matcher.accept(forced));
  EXPECT_TRUE(matcher.accept(token("10")));
  EXPECT_THAT(forced_tokens(matcher), IsEmpty());  // one more digit, or a comma
  // Behind three digits nothing is left to choose up to the kind.
  ASSERT_TRUE(matcher.accept(token("7")));
  const std::vector<Token> forced = forced_tokens(matcher);
  EXPECT_EQ(vocabulary().text(forced), ",\"kind\":\"");
}
TEST(JsonMatcher, ForcesTheEndOfADocumentThatCannotGoOn) {
  Grammar grammar;
  grammar.root(grammar.list(grammar.boolean(), 1, 1));
  Matcher matcher(grammar, vocabulary());
  ASSERT_EQ(forced_tokens(matcher), std::vector<Token>{token("[")});
  ASSERT_TRUE(matcher.accept(token("[")));
  EXPECT_THAT(forced_tokens(matcher), IsEmpty());
  ASSERT_TRUE(matcher.accept(token("true")));
  EXPECT_THAT(forced_tokens(matcher), ElementsAre(token("]"), Vocabulary::end));
  ASSERT_TRUE(matcher.accept(token("]")));
  ASSERT_TRUE(matcher.accept(Vocabulary::end));
  EXPECT_TRUE(matcher.ended());
  EXPECT_THAT(allowed_tokens(matcher), IsEmpty());
}

struct EngineOptions {
  bool sampled = false;
  std::size_t max_leaves = 1;
};

/// Samples under the grammar, lazily; chains and trees. Notes what it was sent.
class GrammarEngine {
 public:
  GrammarEngine(const Grammar& grammar, TokenSpan prompt, EngineOptions options)
      : options_(options), matcher_(grammar, vocabulary()), cache_(prompt.begin(), prompt.end() - 1) {}

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
    Token best = Vocabulary::end;
    std::uint64_t best_score = 0;
    for (const Token token : allowed_tokens(matcher_)) {
      // Likes what followed the last two tokens before; so lookup has something to find.
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
  /// Takes back what was picked and not committed.
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
static_assert(TreeVerifier<GrammarEngine> && DescribedVerifier<GrammarEngine> && !ConstrainedVerifier<GrammarEngine>);

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
    for (const DraftNode& node : nodes) draft.push(node);
  }
};

struct GrammarLoop : ::testing::TestWithParam<EngineOptions> {
  const std::vector<Token> prompt = vocabulary().tokens(
      "[{\"id\":10,\"kind\":\"bug\",\"title\":\"The lamp\",\"open\":true},{\"id\":20,\"kind\":\"wish\",\"title\":\"The "
      "ring\",\"open\":false}]\n{ \"id\": 30, \"title\": \"The king\" }\n");
  Limits limits{.max_tokens = 300, .eos = {Vocabulary::end}};
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
    GrammarEngine engine(tickets(), prompt, GetParam());
    return decode(engine, NoDraft());
  }
  /// With the filter and without: the same tokens as plain decoding, and with it nothing is sent that is refused.
  /// What plain decoding gives, `make` gives a strategy, told an engine. The answer: how many were sent that are
  /// refused where nobody asked.
  template <class Make>
  std::size_t compare(const std::vector<Token>& truth, Make make) {
    AskedEngine asked(tickets(), prompt, GetParam());
    EXPECT_EQ(decode(asked, make(asked)), truth);
    EXPECT_EQ(asked.refused_sent, 0U);
    EXPECT_GT(asked.asked, 0U);
    GrammarEngine careless(tickets(), prompt, GetParam());
    EXPECT_EQ(decode(careless, make(careless)), truth);
    return careless.refused_sent;
  }
};

TEST_P(GrammarLoop, WritesAValidDocumentOfSomeLength) {
  const std::vector<Token> truth = plainly();
  const TokenSpan output = TokenSpan(truth).subspan(prompt.size());
  const std::string text = vocabulary().text(output);
  EXPECT_GT(output.size(), 40U);
  EXPECT_TRUE(JsonReference(text).valid()) << text;
  EXPECT_TRUE(valid(tickets(), text)) << text;
}
TEST_P(GrammarLoop, GivesTheSameTokensWithLookupDrafts) {
  const std::vector<Token> truth = plainly();
  EXPECT_GT(compare(truth, [](GrammarEngine&) { return NgramDrafter(); }), 0U);
  EXPECT_GT(statistics.accepted, 20U);
}
TEST_P(GrammarLoop, GivesTheSameTokensWithHostileDrafts) {
  const std::vector<Token> truth = plainly();
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    // Sampled drafts are not held against the grammar, so the engine may well be sent what it refuses.
    AskedEngine asked(tickets(), prompt, GetParam());
    EXPECT_EQ(decode(asked, HostileStrategy(seed, 100)), truth);
    GrammarEngine careless(tickets(), prompt, GetParam());
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
  EXPECT_EQ(compare(truth, [](GrammarEngine& engine) { return ForcedDrafter(ForcedTokens{&engine}); }), 0U);
  EXPECT_GT(statistics.accepted, 20U);
  EXPECT_EQ(statistics.accepted, statistics.drafted);
  // One more than plain decoding has passes: the end of the document was drafted, and its pass gave no token behind it.
  EXPECT_EQ(statistics.passes + statistics.accepted, passes + 1);
}
TEST_P(GrammarLoop, GivesTheSameTokensWithForcedTokensAndLookupTogether) {
  const std::vector<Token> truth = plainly();
  const auto both = [](GrammarEngine& engine) {
    return UnionDrafter(ForcedDrafter(ForcedTokens{&engine}), NgramDrafter());
  };
  compare(truth, both);
  const std::uint64_t together = statistics.passes;
  compare(truth, [](GrammarEngine& engine) { return ForcedDrafter(ForcedTokens{&engine}); });
  EXPECT_LT(together, statistics.passes);
}
TEST_P(GrammarLoop, DoesNotLookAtSampledDrafts) {
  const std::vector<Token> truth = plainly();
  const FixedStrategy sampled{{{.token = token(" ")}, {.token = token("t"), .parent = 0}}, DraftKind::sampled};
  AskedEngine asked(tickets(), prompt, GetParam());
  EXPECT_EQ(decode(asked, sampled), truth);
  EXPECT_EQ(asked.asked, 0U);
  EXPECT_GT(asked.refused_sent, 0U);
  EXPECT_EQ(statistics.count(Cut::constraint), 0U);
}
/// An engine whose pass fails each second time, after picks were read and before any is committed: what the grammar
/// has seen of them is taken back, although it is asked before the next pass.
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
  FailingEngine engine(tickets(), prompt, GetParam());
  Session session(UnionDrafter(ForcedDrafter(ForcedTokens{&engine}), NgramDrafter()));
  ASSERT_TRUE(session.begin(prompt, engine.capabilities()));
  std::size_t failures = 0;
  while (!generate(session, engine, limits)) ASSERT_LT(++failures, 1000U);
  EXPECT_GT(failures, 5U);
  EXPECT_THAT(session.context(), ElementsAreArray(truth));
}
TEST_P(GrammarLoop, TakesBackWhatAPredicateRefuses) {
  const std::vector<Token> truth = plainly();
  AskedEngine engine(tickets(), prompt, GetParam());
  Session session(NgramDrafter{});
  ASSERT_TRUE(session.begin(prompt, engine.capabilities()));
  // Each sixth token is refused the first time; going on behind it, the engine has to pick the same one.
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

/// Nothing but true and false, so that a space is never right.
struct RefusedDrafts : ::testing::Test {
  Grammar grammar = [] {
    Grammar made;
    made.root(made.list(made.boolean(), 6, 6));
    return made;
  }();
  const std::vector<Token> prompt = vocabulary().tokens("as JSON:");
  Limits limits{.max_tokens = 50, .eos = {Vocabulary::end}};

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
      decode({{.token = token(" ")}, {.token = token("[")}, {.token = token("["), .parent = 0}}, 1);
  // [ is sent in the first pass, where it is right; it ends up a pass of two tokens.
  EXPECT_EQ(counted.drafted, 1U);
  EXPECT_EQ(counted.accepted, 1U);
  EXPECT_EQ(counted.count(Cut::constraint), counted.passes);
}
TEST_F(RefusedDrafts, TakeOnlyTheirOwnBranchOfATree) {
  const Token yes = token("true");
  // Where a value may come, the second path may; where a comma may, none.
  const std::vector<DraftNode> nodes = {
      {.token = token(" ")}, {.token = yes}, {.token = yes, .parent = 0}, {.token = token(" "), .parent = 1}};
  const Statistics counted = decode(nodes, 4);
  EXPECT_GT(counted.drafted, 0U);
  EXPECT_LE(counted.drafted, 6U);  // one for each value
  EXPECT_EQ(counted.count(Cut::constraint), counted.passes);
}

}  // namespace
}  // namespace reprise
