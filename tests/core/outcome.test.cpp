// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/outcome.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string_view>

namespace reprise {
namespace {

TEST(Cut, EveryReasonHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < cut_count; ++i) {
    const std::string_view text = name(static_cast<Cut>(i));
    EXPECT_FALSE(text.empty()) << "reason " << i;
    EXPECT_TRUE(names.insert(text).second) << text;
  }
}

TEST(Cut, IsNamedLikeTheEnumerator) {
  EXPECT_EQ(name(Cut::none), "none");
  EXPECT_EQ(name(Cut::no_match), "no_match");
  EXPECT_EQ(name(Cut::unlikely), "unlikely");
  EXPECT_EQ(name(Cut::gated), "gated");
  EXPECT_EQ(name(Cut::budget), "budget");
  EXPECT_EQ(name(Cut::shape), "shape");
  EXPECT_EQ(name(Cut::depth), "depth");
  EXPECT_EQ(name(Cut::rows), "rows");
  EXPECT_EQ(name(Cut::width), "width");
  EXPECT_EQ(name(Cut::rollback), "rollback");
  EXPECT_EQ(name(Cut::context), "context");
  EXPECT_EQ(name(Cut::max_tokens), "max_tokens");
  EXPECT_EQ(name(Cut::memory), "memory");
  EXPECT_EQ(name(Cut::constraint), "constraint");
  EXPECT_EQ(name(Cut::failed), "failed");
  EXPECT_EQ(cut_count, static_cast<std::size_t>(Cut::failed) + 1);
}

TEST(Outcome, SaysThatNothingHappenedByDefault) {
  const Outcome outcome;
  EXPECT_TRUE(outcome.draft.empty());
  EXPECT_TRUE(outcome.sent.empty());
  EXPECT_TRUE(outcome.accepted.empty());
  EXPECT_FALSE(outcome.pick.has_value());
  EXPECT_EQ(outcome.cut, Cut::none);
  EXPECT_TRUE(outcome.revealed.empty());
}

TEST(Candidate, IsTheFirstChoiceAfterTheAnchorByDefault) {
  const Candidate candidate;
  EXPECT_EQ(candidate.after, anchor_parent);
  EXPECT_EQ(candidate.rank, 0U);
}

}  // namespace
}  // namespace reprise
