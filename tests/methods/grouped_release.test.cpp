// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/grouped_release.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "reprise/loop/generate.hpp"
#include "reprise_testing/random.hpp"
#include "support/fails.hpp"
#include "support/oracle_strategy.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::grouped_release_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using Tokens = std::vector<Token>;

Tokens counting(std::size_t size) {
  Tokens tokens(size);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(GroupedRelease, IsNotMadeForGroupsWithoutTokens) {
  EXPECT_THAT(GroupedRelease::make(0),
              testing::fails(ErrorCode::invalid_argument, 0U, 1U, "a group has no tokens: give it at least 1"));
}

TEST(GroupedRelease, MayHaveGroupsOfOneTokenOrOfAll) {
  const Tokens output = counting(3);
  GroupedRelease one = GroupedRelease::make(1).value();
  EXPECT_THAT(one.next(output, false), ElementsAre(0));
  GroupedRelease all = GroupedRelease::make(unlimited).value();
  EXPECT_THAT(all.next(output, false), IsEmpty());
  EXPECT_THAT(all.next(output, true), ElementsAre(0, 1, 2));
}
static_assert(!std::constructible_from<GroupedRelease, std::size_t>, "a size can be refused");

TEST(GroupedRelease, TakesNothingBackWhenOutputIsCut) {
  const Tokens output = counting(9);
  GroupedRelease release = GroupedRelease::make(4).value();
  EXPECT_THAT(release.next(output, false), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(release.next(TokenSpan(output).first(2), true), IsEmpty());
  EXPECT_THAT(release.next(output, false), ElementsAre(4, 5, 6, 7));
}

TEST(GroupedRelease, BeginsAgainAfterReset) {
  const Tokens output = counting(2);
  GroupedRelease release = GroupedRelease::make(2).value();
  EXPECT_THAT(release.next(output, false), ElementsAre(0, 1));
  release.reset();
  EXPECT_THAT(release.next(output, false), ElementsAre(0, 1));
}

/// The group sizes depend on the length of the output alone, not on the passes, and no token is lost.
TEST(GroupedRelease, TellsNothingOfThePassesBySize) {
  testing::Random random(1);
  for (int round = 0; round < 500; ++round) {
    const Tokens output = counting(random.below(60));
    const std::size_t size = 1 + random.below(9);
    GroupedRelease release = GroupedRelease::make(size).value();
    Tokens sent;
    std::vector<std::size_t> sizes;
    for (std::size_t committed = 0;;) {
      committed = std::min(output.size(), committed + 1 + random.below(8));
      const TokenSpan so_far = TokenSpan(output).first(committed);
      const bool finished = committed == output.size();
      for (TokenSpan group = release.next(so_far, finished); !group.empty(); group = release.next(so_far, finished)) {
        sizes.push_back(group.size());
        sent.insert(sent.end(), group.begin(), group.end());
      }
      if (finished) break;
    }
    ASSERT_EQ(sent, output);
    ASSERT_EQ(release.released(), output.size());
    std::vector<std::size_t> expected(output.size() / size, size);
    if (output.size() % size != 0) expected.push_back(output.size() % size);
    ASSERT_EQ(sizes, expected);
  }
}

/// The use with generate(): the callback gets the new tokens, the session the whole output.
std::vector<std::size_t> sizes_on_the_wire(std::uint32_t correct, const Limits& limits, Tokens& sent) {
  testing::ScriptedOptions script;
  script.order = 1;
  script.table = [](TokenSpan end) { return end.back() + 1; };
  const Tokens prompt = {0, 1, 2};
  testing::ScriptedVerifier engine(script, prompt);
  const Tokens says = counting(200);  // the strategy refers to it
  Session<testing::OracleStrategy> session{testing::OracleStrategy(says, {.length = correct, .vocabulary = 100})};

  std::vector<std::size_t> packets;
  const auto send = [&](TokenSpan group) {
    packets.push_back(group.size());
    sent.insert(sent.end(), group.begin(), group.end());
  };
  GroupedRelease release = GroupedRelease::make(4).value();
  const auto release_to = [&](TokenSpan output, bool finished) {
    for (TokenSpan group = release.next(output, finished); !group.empty(); group = release.next(output, finished))
      send(group);
  };
  const auto generation = generate(session, engine, prompt, limits,
                                   [&](TokenSpan) { release_to(session.output().first(session.taken()), false); });
  EXPECT_TRUE(generation);
  release_to(generation->tokens, true);
  EXPECT_THAT(sent, ElementsAreArray(generation->tokens));
  return packets;
}

TEST(GroupedRelease, GivesAStreamTheSameSizesHoweverMuchIsAccepted) {
  Limits limits;
  limits.max_tokens = 14;
  for (const std::uint32_t correct : {0U, 1U, 3U, 5U, 12U}) {
    Tokens sent;
    EXPECT_THAT(sizes_on_the_wire(correct, limits, sent), ElementsAre(4, 4, 4, 2)) << correct;
  }
}

TEST(GroupedRelease, ReleasesNothingThatAStopSequenceCanTakeBack) {
  Limits limits;
  limits.max_tokens = 50;
  limits.stop_sequences = {{9, 10, 11}};
  for (const std::uint32_t correct : {0U, 2U, 12U}) {
    Tokens sent;
    EXPECT_THAT(sizes_on_the_wire(correct, limits, sent), ElementsAre(4, 2)) << correct;
    EXPECT_THAT(sent, ElementsAre(3, 4, 5, 6, 7, 8));
  }
}

}  // namespace
}  // namespace reprise::grouped_release_test
