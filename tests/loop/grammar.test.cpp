// SPDX-License-Identifier: Apache-2.0
// The example's grammar by itself. The properties of the loop have rules of their own (support/world_parts.hpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../examples/json_grammar.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::grammar_test {
namespace {

using json_grammar::Grammar;
using json_grammar::Matcher;
using json_grammar::text_of;
using json_grammar::tokens_of;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
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

}  // namespace
}  // namespace reprise::grammar_test
