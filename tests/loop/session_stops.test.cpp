// SPDX-License-Identifier: Apache-2.0
// Sessions, followers and batches that know what ends a generation draft nothing after it, and placeholders never.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"

namespace reprise::session_stops_test {
namespace {

using Tokens = std::vector<Token>;
constexpr Token eos = 2;
const Tokens answer = {100, 101, 102, 103, 104, 105, eos, 10};

/// The counts of 60 turns with the same short answer, such as those of a tool.
struct Counts {
  std::size_t drafted = 0;
  std::size_t after = 0;  // rows after the end of the generation
  std::size_t passes = 0;
};

Tokens question(int turn) { return {10, 11, 12, 500 + turn % 7, 13, 14}; }

/// Counts the rows of a chain or a tree, and those that have an end before them.
void count(Counts& counts, const Pass& pass, std::size_t end) {
  const TokenSpan draft = pass.batch.last(pass.drafted);
  std::vector<std::size_t> matched(pass.drafted, 0);
  counts.drafted += pass.drafted;
  ++counts.passes;
  for (std::size_t row = 0; row < pass.drafted; ++row) {
    for (NodeIndex at = pass.parents[row]; at != anchor_parent; at = pass.parents[static_cast<std::size_t>(at)]) {
      const auto parent = static_cast<std::size_t>(at);
      const bool ends = draft[parent] == eos &&
                        (end == 1 || (draft[row] != 10 && pass.parents[row] != static_cast<NodeIndex>(parent)));
      if (ends) {
        ++counts.after;
        break;
      }
    }
  }
}

template <class S>
Counts dialogue(S&& session, const Limits& limits, std::size_t end, DraftShape shape = DraftShape::chain) {
  Counts counts;
  for (int turn = 0; turn < 60; ++turn) {
    if (turn == 0) {
      EXPECT_TRUE(session.begin(question(turn), {.max_leaves = shape == DraftShape::tree ? unlimited : 1}));
    } else {
      EXPECT_TRUE(session.append(question(turn)));
    }
    for (std::size_t at = 0;;) {
      session.propose(limits, shape);
      if (session.finished()) break;
      const Pass pass = session.plan().value();
      count(counts, pass, end);
      // The picks along the path that the answer takes.
      Tokens picks(pass.drafted + 1, 7);
      picks[0] = answer[at];
      std::vector<std::size_t> place(pass.drafted + 1, answer.size());
      place[0] = at;
      for (std::size_t row = 0; row < pass.drafted; ++row) {
        const std::size_t before = place[pick_after(pass.parents[row])];
        if (before + 1 >= answer.size() || pass.batch[pass.pending + row] != answer[before]) continue;
        place[row + 1] = before + 1;
        picks[row + 1] = answer[before + 1];
      }
      at += session.resolve(pass.ticket, picks).value().tokens.size();
      EXPECT_TRUE(session.commit(pass.ticket));
    }
  }
  return counts;
}

TEST(SessionStops, NoRowFollowsAnEndThatTheLimitsName) {
  for (const std::string kind : {"eos", "more_eos", "stop_ids", "stop_sequences"}) {
    Limits limits;
    const Tokens ends = {eos};
    if (kind == "eos") limits.eos = ends;
    if (kind == "more_eos") limits.more_eos = ends;
    if (kind == "stop_ids") limits.stop_ids = ends;
    if (kind == "stop_sequences") limits.stop_sequences = {{eos, 10}};
    const std::size_t end = kind == "stop_sequences" ? 2 : 1;
    for (const double cost : {0.0, 0.02, 0.1}) {
      const std::string name = kind + " at " + std::to_string(cost);
      const CostOptions costs{.curve = CostCurve::linear(cost)};
      const Counts chain = dialogue(Speculator({}, costs), limits, end);
      EXPECT_EQ(chain.after, 0U) << name;
      EXPECT_GT(chain.drafted, 300U) << name;
      EXPECT_LT(chain.passes, 75U) << name;
      const Counts tree = dialogue(Speculator({}, costs), limits, end, DraftShape::tree);
      EXPECT_EQ(tree.after, 0U) << name << ", trees";
      EXPECT_GT(tree.drafted, 300U) << name << ", trees";
    }
    EXPECT_EQ(dialogue(Session(PromptLookupDrafter<>(), SendAll(), 32), limits, end).after, 0U) << kind;
  }
}

/// Drafted tokens after `eos`, and all of them, in 60 turns of an engine that hands over ids.
template <class Ask>
Counts followed(Ask&& ask) {
  Counts counts;
  Tokens ids;
  for (int turn = 0; turn < 60; ++turn) {
    const Tokens asked = question(turn);
    ids.insert(ids.end(), asked.begin(), asked.end());
    for (std::size_t at = 0; at < 7;) {
      const Tokens draft = ask(ids);
      const auto end = std::find(draft.begin(), draft.end(), eos);
      counts.after += end == draft.end() ? 0 : static_cast<std::size_t>(draft.end() - end) - 1;
      counts.drafted += draft.size();
      ++counts.passes;
      for (std::size_t k = 0; at < 7; ++k) {
        ids.push_back(answer[at++]);
        if (k >= draft.size() || draft[k] != ids.back()) break;
      }
    }
    EXPECT_TRUE(ask(ids).empty()) << "the generation has ended";
  }
  return counts;
}

TEST(SessionStops, FollowersAndBatchesTakeThem) {
  Follower<Speculator> one(Speculator(CostCurve::linear(0.02)));
  EXPECT_TRUE(one.stop_at({.eos = {eos}}));
  const Counts follower = followed([&](const Tokens& ids) {
    const TokenSpan draft = one.draft(ids).value();
    return Tokens(draft.begin(), draft.end());
  });
  EXPECT_EQ(follower.after, 0U);
  EXPECT_GT(follower.drafted, 300U);
  EXPECT_LT(follower.passes, 75U);

  BatchOptions options;
  options.curve = CostCurve::linear(0.02);
  auto many = BatchFollower<NgramDrafter<>>::make(2, NgramDrafter<>(), options).value();
  EXPECT_TRUE(many.stop_at(1, {.eos = {eos}}));
  EXPECT_EQ(many.stop_at(2, {}).error().code, ErrorCode::invalid_argument);
  Counts other;
  const Counts batch = followed([&](const Tokens& ids) {
    const std::vector<FollowedSlot> slots = {{.slot = 0, .ids = ids}, {.slot = 1, .ids = ids}};
    const auto drafts = many.draft(slots).value();
    const auto end = std::find(drafts[0].begin(), drafts[0].end(), eos);
    other.after += static_cast<std::size_t>(drafts[0].end() - end);
    return Tokens(drafts[1].begin(), drafts[1].end());
  });
  EXPECT_EQ(batch.after, 0U);
  EXPECT_GT(batch.drafted, 300U);
  EXPECT_LT(batch.passes, 75U);
  EXPECT_GT(other.after, 100U) << "slot 0 knows no end";
}

/// A text with three images: ten tokens, then 64 placeholders.
Tokens with_images(Token placeholder) {
  Tokens text;
  for (int image = 0; image < 3; ++image) {
    for (Token i = 0; i < 10; ++i) text.push_back(100 + i);
    text.insert(text.end(), 64, placeholder);
  }
  for (Token i = 0; i < 5; ++i) text.push_back(100 + i);
  return text;
}

template <class Drafter>
Tokens drafted_by(Drafter drafter, const Tokens& text) {
  Session session(std::move(drafter), SendAll(), 32);
  EXPECT_TRUE(session.begin(text));
  const Limits limits;
  Tokens tokens;
  for (const DraftNode& node : session.propose(limits, DraftShape::chain)) tokens.push_back(node.token);
  return tokens;
}

/// The draft begins with `wanted` and then has frequent tokens alone.
void expect_begins(const Tokens& draft, const Tokens& wanted) {
  ASSERT_GE(draft.size(), wanted.size());
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), draft.begin()));
  EXPECT_TRUE(std::all_of(draft.begin(), draft.end(), [](Token token) { return token >= 100 && token < 110; }));
}

TEST(SessionStops, PlaceholdersAreNeitherDraftedNorMatched) {
  const Tokens wanted = {105, 106, 107, 108, 109};
  for (const Token placeholder : {-1, -5, 200'000}) {
    Tokens text = with_images(placeholder);
    const NgramOptions options{.vocabulary = 32'000};
    expect_begins(drafted_by(NgramDrafter<>(options), text), wanted);
    expect_begins(drafted_by(NgramDrafter<SuffixArrayIndex>(options), text), wanted);
    PromptLookupOptions lookup;
    lookup.vocabulary = 32'000;
    lookup.draft_length = 32;
    EXPECT_EQ(drafted_by(PromptLookupDrafter<>::make(lookup).value(), text), wanted) << placeholder;
    EXPECT_EQ(drafted_by(PromptLookupDrafter<SuffixArrayIndex>::make(lookup).value(), text), wanted) << placeholder;
    // At the end of the text, inside an image: nothing to follow.
    text.resize(60);
    expect_begins(drafted_by(NgramDrafter<>(options), text), {});
    EXPECT_EQ(drafted_by(PromptLookupDrafter<>::make(lookup).value(), text), Tokens()) << placeholder;
  }
  expect_begins(drafted_by(NgramDrafter<>(), with_images(-1)), wanted);  // negative ids need no vocabulary
  const Tokens known = drafted_by(NgramDrafter<>(), with_images(200'000));
  EXPECT_EQ(std::count(known.begin(), known.end(), 200'000), 27) << "without a vocabulary, it is a token";
}

}  // namespace
}  // namespace reprise::session_stops_test
