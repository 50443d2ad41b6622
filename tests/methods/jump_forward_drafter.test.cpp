// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/jump_forward_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "support/combined_world.hpp"

namespace reprise::testing::jump_forward_drafter_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

/// A grammar that forces a run after each even token: 3 0 1 after 2, 1 after 0, and so on.
struct Grammar {
  Tokens context;
  void begin(TokenSpan tokens) { context.assign(tokens.begin(), tokens.end()); }
  void observe(TokenSpan tokens, std::size_t fresh, Origin) {
    context.insert(context.end(), tokens.end() - static_cast<std::ptrdiff_t>(fresh), tokens.end());
  }
  void truncate(TokenSpan, std::size_t size) { context.resize(std::min(size, context.size())); }
  [[nodiscard]] std::size_t forced(std::span<Token> out) const {
    if (context.empty()) return 0;
    const Token last = context.back();
    const Tokens run = last % 2 != 0 ? Tokens{} : last == 2 ? Tokens{3, 0, 1} : Tokens{last + 1};
    const std::size_t count = std::min(run.size(), out.size());
    std::copy_n(run.begin(), count, out.begin());
    return count;
  }
};
/// A handle to a grammar that the caller keeps in step.
struct Handle {
  const Grammar* grammar;
  [[nodiscard]] std::size_t forced(std::span<Token> out) const { return grammar->forced(out); }
};
/// Returns a larger number than it was asked for.
struct Boastful {
  std::size_t forced(std::span<Token> out) {
    std::fill(out.begin(), out.end(), 5);
    return 1000;
  }
};
/// The minimal model of JumpForwardSource: nothing is forced.
struct Forced {
  std::size_t forced(std::span<Token>) { return 0; }
};
static_assert(JumpForwardSource<Forced> && JumpForwardSource<Grammar> && JumpForwardSource<Handle> &&
              DraftStrategy<JumpForwardDrafter<Handle>>);

TEST(JumpForwardDrafter, DraftsWhatThereIsNoChoiceAbout) {
  Grammar grammar{{1, 2}};
  JumpForwardDrafter strategy{Handle{&grammar}};
  const Nodes nodes = drafted_by(strategy);
  EXPECT_THAT(tokens_of(nodes), ElementsAre(3, 0, 1));
  EXPECT_THAT(nodes, Each(Field(&DraftNode::source, DraftSource::jump_forward)));
  EXPECT_THAT(nodes, Each(Field(&DraftNode::path_probability, Probability::one())));
  grammar.context = {3};
  EXPECT_THAT(drafted_by(strategy), IsEmpty());
}
TEST(JumpForwardDrafter, StaysInItsBudget) {
  Grammar grammar{{2}};
  JumpForwardDrafter strategy{Handle{&grammar}};
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_nodes = 2})), ElementsAre(3, 0));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_depth = 1})), ElementsAre(3));
  EXPECT_THAT(drafted_by(strategy, {.max_nodes = 0}), IsEmpty());
  EXPECT_THAT(drafted_by(strategy, {.max_leaves = 0}), IsEmpty());
  JumpForwardDrafter boastful{Boastful{}};
  EXPECT_EQ(drafted_by(boastful, {.max_nodes = 200}).size(), JumpForwardDrafter<Boastful>::max_tokens);
}
/// Has the optional functions of a strategy as well.
struct RoomyGrammar : Grammar {
  std::size_t rebased = 0;
  std::size_t room = 0;
  void rebase(TokenSpan, TokenSpan tokens) {
    begin(tokens);
    rebased = tokens.size();
  }
  void reserve(std::size_t max_context) { room = max_context; }
  [[nodiscard]] std::size_t memory_bytes() const { return 77; }
};
TEST(JumpForwardDrafter, PassesOnWhatIsOptional) {
  JumpForwardDrafter strategy{RoomyGrammar{}};
  strategy.rebase({}, Tokens{7, 2});
  strategy.reserve(9);
  EXPECT_EQ(strategy.source().rebased, 2U);
  EXPECT_EQ(strategy.source().room, 9U);
  EXPECT_EQ(strategy.memory_bytes(), 77U);
  JumpForwardDrafter plain{Grammar{}};
  plain.begin(Tokens{7, 7});
  plain.rebase(Tokens{7, 7}, Tokens{7, 2});
  plain.reserve(9);
  EXPECT_THAT(tokens_of(drafted_by(plain)), ElementsAre(3, 0, 1)) << "it has begun anew";
  EXPECT_EQ(plain.memory_bytes(), 0U);
}
TEST(JumpForwardDrafter, TellsASourceThatFollowsByItself) {
  JumpForwardDrafter strategy{Grammar{}};
  strategy.begin(Tokens{2, 7});
  EXPECT_THAT(drafted_by(strategy), IsEmpty());
  strategy.observe(Tokens{2, 7, 4}, 1, Origin::output);
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(5));
  strategy.truncate(Tokens{2, 7, 4}, 1);
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(3, 0, 1));
  EXPECT_THAT(strategy.source().context, ElementsAre(2));
}
TEST(JumpForwardDrafter, KeepsTheContractOfStrategies) {
  const Report report = check_strategy([] { return JumpForwardDrafter{Grammar{}}; });
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  const Report both = check_strategy([] { return UnionDrafter(JumpForwardDrafter{Grammar{}}, NgramDrafter<>()); });
  EXPECT_EQ(both.verdict(), Verdict::exact) << both.to_string();
}
TEST(JumpForwardDrafter, IsLosslessEvenWhereTheGrammarIsWrong) {
  passes_saved_losslessly([](TokenSpan) { return JumpForwardDrafter{Grammar{}}; });
  passes_saved_losslessly([](TokenSpan) { return UnionDrafter(NgramDrafter<>(), JumpForwardDrafter{Grammar{}}); });
}
TEST(JumpForwardDrafter, SavesAPassForEachForcedToken) {
  // A target that follows the grammar, and counts up elsewhere.
  ScriptedOptions options;
  options.order = 2;
  options.table = [](TokenSpan end) {
    const Token last = end.back();
    if (last % 2 == 0 && !(end.size() > 1 && last == 0 && end[0] == 3)) return last == 2 ? Token{3} : Token(last + 1);
    if (last == 0) return Token{1};
    return last == 3 && end.size() > 1 && end[0] == 2 ? Token{0} : Token{2};
  };
  Limits limits;
  limits.max_tokens = 40;  // 3 0 1 2, ten times
  const Tokens prompt = {1, 2};
  const LosslessReport report = compare_lossless([&](TokenSpan tokens) { return ScriptedVerifier(options, tokens); },
                                                 prompt, limits, JumpForwardDrafter{Grammar{}});
  EXPECT_TRUE(report.identical()) << report.message;
  EXPECT_EQ(report.drafted.statistics.passes, 10U);
}

}  // namespace
}  // namespace reprise::testing::jump_forward_drafter_test
