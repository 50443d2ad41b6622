// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/next_token_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::shown_rows_test {
namespace {

using detail::ShownRows;
using testing::Random;
using Tokens = std::vector<Token>;

constexpr Token none = Ranking::none;
constexpr std::size_t most_nodes = 64;

Ranking ranking_of(const Tokens& tokens) { return Ranking(tokens); }

/// A pass and its rows. The context ends with the anchor.
struct Shown {
  Tokens context;
  std::vector<DraftNode> draft;
  std::vector<NodeIndex> accepted;
  std::optional<Token> pick;
  std::vector<Outcome::RankedToken> top_k;

  /// Shows a ranking after a node, which has a token at each rank unless it is none.
  void show(NodeIndex after, const Tokens& likeliest) {
    for (std::size_t rank = 0; rank < likeliest.size(); ++rank)
      if (likeliest[rank] != none) top_k.push_back({after, static_cast<std::uint16_t>(rank), likeliest[rank]});
  }
  [[nodiscard]] Outcome outcome() const {
    Outcome made;
    made.draft = DraftView(draft, DraftKind::ordered);
    made.accepted = accepted;
    made.pick = pick;
    made.top_k = top_k;
    return made;
  }
};

/// The naive reference, written from the documentation of ShownRows.
class Model {
 public:
  void learn(const Shown& pass) {
    if (pass.top_k.empty()) return picked_.clear();
    std::map<NodeIndex, Ranking> rows;
    for (const Outcome::RankedToken& token : pass.top_k)
      if (token.after >= anchor_parent && token.after < static_cast<NodeIndex>(most_nodes) &&
          token.rank < Ranking::most && token.token >= 0)
        rows[token.after].tokens[token.rank] = token.token;

    const auto size = static_cast<NodeIndex>(pass.draft.size());
    std::vector<NodeIndex> order;  // accepted rows last, because they win
    for (NodeIndex node = 0; node < size; ++node)
      if (std::find(pass.accepted.begin(), pass.accepted.end(), node) == pass.accepted.end()) order.push_back(node);
    order.push_back(anchor_parent);
    order.insert(order.end(), pass.accepted.begin(), pass.accepted.end());
    for (const NodeIndex node : order) {
      if (!rows.contains(node)) continue;
      Tokens text = pass.context;  // the text that this row follows
      Tokens path;
      for (NodeIndex i = node; i != anchor_parent; i = pass.draft[static_cast<std::size_t>(i)].parent)
        path.insert(path.begin(), pass.draft[static_cast<std::size_t>(i)].token);
      text.insert(text.end(), path.begin(), path.end());
      latest_[{none, text.back()}] = rows[node];
      if (text.size() > 1) latest_[{text[text.size() - 2], text.back()}] = rows[node];
    }
    NodeIndex node = anchor_parent;
    for (const NodeIndex next : pass.accepted) {
      picked_.emplace_back(pass.draft[static_cast<std::size_t>(next)].token, rows[node]);
      node = next;
    }
    if (pass.pick) picked_.emplace_back(*pass.pick, rows[node]);
  }
  void forget_lags() { picked_.clear(); }
  [[nodiscard]] const std::map<std::pair<Token, Token>, Ranking>& latest() const { return latest_; }
  [[nodiscard]] Ranking lag(std::size_t i) const {
    if (i >= picked_.size()) return {};
    Ranking ranking = picked_[picked_.size() - 1 - i].second;
    for (std::size_t said = picked_.size() - 1 - i; said < picked_.size(); ++said)
      std::replace(ranking.tokens.begin(), ranking.tokens.end(), picked_[said].first, none);
    return ranking;
  }

 private:
  std::map<std::pair<Token, Token>, Ranking> latest_;
  std::vector<std::pair<Token, Ranking>> picked_;  // each token since the lags were forgotten, with its ranking
};

/// Returns a pass with a random tree. Its rows have errors of all kinds: they are partial, their nodes do not exist,
/// and their ranks and tokens are out of range.
Shown random_pass(Random& random, const Tokens& context, std::uint64_t vocabulary) {
  Shown pass;
  pass.context = context;
  const std::size_t nodes = random.below(random.chance(10) ? 100 : 12);
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto parent = static_cast<NodeIndex>(random.below(i + 1)) - 1;
    pass.draft.push_back({.token = static_cast<Token>(random.below(vocabulary)), .parent = parent});
  }
  NodeIndex last = anchor_parent;
  for (std::size_t i = 0; i < nodes; ++i)
    if (pass.draft[i].parent == last && random.chance(50)) {
      last = static_cast<NodeIndex>(i);
      pass.accepted.push_back(last);
    }
  if (random.chance(90)) pass.pick = static_cast<Token>(random.below(vocabulary));
  if (random.chance(10)) return pass;
  for (std::size_t node = 0; node <= nodes; ++node) {
    if (random.chance(20)) continue;
    for (std::uint16_t rank = 0; rank < 10; ++rank)
      if (random.chance(80))
        pass.top_k.push_back({static_cast<NodeIndex>(node) - 1, rank, static_cast<Token>(random.below(vocabulary))});
  }
  constexpr NodeIndex wrong_nodes[] = {-2, 1000, std::numeric_limits<NodeIndex>::max(),
                                       std::numeric_limits<NodeIndex>::min()};
  for (const NodeIndex node : wrong_nodes) pass.top_k.push_back({node, 0, 1});
  pass.top_k.push_back({anchor_parent, 65'535, 1});
  pass.top_k.push_back({anchor_parent, 2, -5});
  pass.top_k.push_back({anchor_parent, 3, std::numeric_limits<Token>::min()});
  return pass;
}

/// Returns the number of rows of the model that are missing. All others must be equal.
std::size_t missing(const ShownRows& rows, const Model& model, Token vocabulary) {
  std::size_t count = 0;
  for (Token before = none; before < vocabulary; ++before)
    for (Token last = 0; last < vocabulary; ++last) {
      const Ranking* const found = rows.after(before, last);
      const auto known = model.latest().find({before, last});
      if (known == model.latest().end()) {
        EXPECT_EQ(found, nullptr) << before << ", " << last;
      } else if (found == nullptr) {
        ++count;
      } else {
        EXPECT_EQ(*found, known->second) << before << ", " << last;
      }
    }
  return count;
}

TEST(ShownRows, AreThoseOfANaiveReference) {
  constexpr Token vocabulary = 12;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    ShownRows rows(std::size_t{1} << 20);
    rows.reserve();
    Model model;
    Tokens context(1 + random.below(3), 1);
    for (int round = 0; round < 60; ++round) {
      if (random.chance(5)) {
        rows.forget_lags();
        model.forget_lags();
      }
      if (round == 5) {
        ASSERT_TRUE(rows.any());
        rows.clear();
        ASSERT_FALSE(rows.any());
        model = Model();
      }
      const Shown pass = random_pass(random, context, vocabulary);
      rows.learn(pass.context, pass.outcome());
      model.learn(pass);
      for (std::size_t i = 0; i < ShownRows::lags; ++i) ASSERT_EQ(rows.lag(i), model.lag(i)) << seed << ", " << round;
      for (const NodeIndex node : pass.accepted) context.push_back(pass.draft[static_cast<std::size_t>(node)].token);
      if (pass.pick) context.push_back(*pass.pick);
    }
    ASSERT_GT(model.latest().size(), 100U);
    ASSERT_LE(missing(rows, model, vocabulary), 2U) << "rows with the same place";
    ASSERT_FALSE(HasFailure()) << seed;
    std::size_t listed = 0;
    for (const NextTokens::RankedRow& row : rows.rows()) {
      if (row.last == none) continue;
      ++listed;
      ASSERT_EQ(model.latest().at({row.before_last, row.last}), row.ranking);
    }
    ASSERT_GE(listed + 2, model.latest().size());
  }
}

/// In a small table, rows of different contexts replace each other. A row that is found is that of its context.
TEST(ShownRows, OfASmallTableAreThoseOfTheirContext) {
  constexpr Token vocabulary = 12;
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    ShownRows rows(sizeof(NextTokens::RankedRow) * (1 + random.below(20)));
    rows.reserve();
    EXPECT_LE(rows.memory_bytes(), 20 * sizeof(NextTokens::RankedRow));
    Model model;
    const Tokens context = {1, 2};
    for (int round = 0; round < 60; ++round) {
      const Shown pass = random_pass(random, context, vocabulary);
      rows.learn(pass.context, pass.outcome());
      model.learn(pass);
      found += model.latest().size() - missing(rows, model, vocabulary);
    }
  }
  EXPECT_GT(found, 20U * 60U);
}

TEST(ShownRows, OfNegativeTokensAreNotKept) {
  ShownRows rows(1 << 16);
  rows.reserve();
  rows.keep(std::nullopt, -1, ranking_of({5}));
  rows.keep(3, -2, ranking_of({5}));
  EXPECT_EQ(rows.after(none, -1), nullptr);
  EXPECT_EQ(rows.after(3, -2), nullptr);
  EXPECT_EQ(rows.after(none, -2), nullptr);
  rows.keep(-1, 4, ranking_of({6}));
  ASSERT_NE(rows.after(none, 4), nullptr) << "after the last token alone";
  rows.keep(-7, 4, ranking_of({7}));
  EXPECT_EQ(rows.after(-7, 4), nullptr);
  EXPECT_TRUE(std::all_of(rows.rows().begin(), rows.rows().end(), [](const NextTokens::RankedRow& row) {
    return row.last >= none && row.before_last >= none;
  }));
}

TEST(ShownRows, AreNotKeptWithoutMemory) {
  Shown pass;
  pass.context = {1};
  pass.pick = 5;
  pass.show(anchor_parent, {5, 6});
  for (const std::size_t bytes : {std::size_t{0}, sizeof(NextTokens::RankedRow) - 1}) {
    ShownRows rows(bytes);
    EXPECT_FALSE(rows.any());
    rows.reserve();
    rows.learn(pass.context, pass.outcome());
    EXPECT_TRUE(rows.any()) << "a row has been shown";
    EXPECT_EQ(rows.after(none, 1), nullptr);
    EXPECT_TRUE(rows.rows().empty());
    EXPECT_EQ(rows.memory_bytes(), 0U);
    EXPECT_EQ(rows.lag(0).tokens[1], 6) << "these need no memory";
  }
  ShownRows late(1 << 12);
  late.learn(pass.context, pass.outcome());
  EXPECT_EQ(late.after(none, 1), nullptr) << "nothing is kept before reserve()";
  late.reserve();
  late.learn(pass.context, pass.outcome());
  EXPECT_NE(late.after(none, 1), nullptr);
  const std::size_t bytes = late.memory_bytes();
  late.reserve();
  EXPECT_EQ(late.memory_bytes(), bytes);
  EXPECT_NE(late.after(none, 1), nullptr) << "a second reserve() changes nothing";
}

}  // namespace

}  // namespace reprise::shown_rows_test
