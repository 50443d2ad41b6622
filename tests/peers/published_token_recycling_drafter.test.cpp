// SPDX-License-Identifier: Apache-2.0
#include "peers/published_token_recycling_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "support/ranked_checks.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::peers::published_token_recycling_drafter_test {
namespace {

using testing::RankedText;
using testing::row_of;
using testing::show_row;
using Drafter = PublishedTokenRecyclingDrafter;
using Lent = testing::Lent<Drafter>;
using Row = std::array<Token, 8>;
using Tokens = std::vector<Token>;

const Tokens prompt = {1, 2, 3, 4, 5};
const DraftBudget whole = {.max_nodes = Drafter::max_nodes};

/// The ranks on the path to each node of the published tree, in the order of the authors' template 2.2.2.
const std::vector<std::string>& published_paths() {
  static const std::vector<std::string> paths = {
      "0",      "1",      "2",     "3",     "4",     "5",     "6",     "7",                                    //
      "00",     "01",     "02",    "03",    "04",    "05",    "06",    "07",    "10",   "11",   "12",   "13",  //
      "20",     "21",     "22",    "30",    "31",    "40",    "50",    "60",    "70",                          //
      "000",    "001",    "002",   "003",   "004",   "005",   "006",   "007",   "010",  "011",  "012",         //
      "020",    "021",    "030",   "040",   "050",   "060",   "070",   "100",   "101",  "110",  "200",         //
      "300",    "400",    "500",                                                                               //
      "0000",   "0001",   "0002",  "0003",  "0004",  "0010",  "0011",  "0020",  "0030", "0040", "0100",        //
      "0200",   "1000",   "2000",  "3000",                                                                     //
      "00000",  "00001",  "00002", "00010", "00020", "00100", "01000", "10000",                                //
      "000000", "000001", "000100"};
  return paths;
}

/// The method as a plain loop: a map of rows, and a tree given by its paths of ranks.
class PlainRule {
 public:
  /// The paths of tokens that a pass verifies after `anchor`, in order, each once.
  [[nodiscard]] std::vector<Tokens> draft(Token anchor) const {
    std::vector<Tokens> paths;
    for (const std::string& ranks : published_paths()) {
      Tokens path;
      Token token = anchor;
      for (const char rank : ranks) path.push_back(token = row(token)[static_cast<std::size_t>(rank - '0')]);
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
    }
    return paths;
  }
  [[nodiscard]] Row row(Token token) const { return rows_.contains(token) ? rows_.at(token) : Row{}; }
  /// Learns the row of every position of the pass.
  void learn(Token anchor, DraftView draft, const std::vector<Outcome::RankedToken>& revealed) {
    for (const Outcome::RankedToken& one : revealed)
      rows_[one.after == anchor_parent ? anchor : draft[static_cast<std::size_t>(one.after)].token][one.rank] =
          one.token;
  }
  void clear() { rows_.clear(); }

 private:
  std::map<Token, Row> rows_;
};

std::vector<Tokens> paths_of(const testing::Drafted& draft) {
  std::vector<Tokens> paths;
  for (std::size_t i = 0; i < draft.nodes.size(); ++i)
    paths.push_back(testing::tokens_to(draft.view(), static_cast<NodeIndex>(i)));
  return paths;
}

/// One pass of `target` over the whole draft. Both the drafter and the plain rule learn from all rows.
void run_round(Lent& drafter, PlainRule& rule, const RankedText& target) {
  const testing::Drafted draft = drafter.propose(whole, Drafter::max_nodes);
  ASSERT_FALSE(draft.malformed);
  const Token anchor = drafter.context().back();
  ASSERT_EQ(paths_of(draft), rule.draft(anchor));
  std::vector<NodeIndex> sent;
  for (std::size_t i = 0; i < draft.nodes.size(); ++i) sent.push_back(static_cast<NodeIndex>(i));
  Tokens committed;
  std::vector<NodeIndex> accepted;
  for (NodeIndex last = anchor_parent; committed.size() == accepted.size();) {
    committed.push_back(target.say(testing::behind(drafter.context(), draft.view(), last)));
    for (const NodeIndex i : sent)
      if (const DraftNode& node = draft.nodes[static_cast<std::size_t>(i)];
          node.parent == last && node.token == committed.back()) {
        accepted.push_back(last = i);
        break;
      }
  }
  const auto revealed = testing::revealed_by(target, drafter.context(), draft.view(), sent, 8);
  drafter.feedback({draft.view(), sent, accepted, committed.back(), Cut::none, revealed});
  rule.learn(anchor, draft.view(), revealed);
  drafter.observe(committed, Origin::output);
}

TEST(PublishedTokenRecyclingDrafter, DraftsThePublishedTreeOfDifferentTokens) {
  // Rank r of token t is 100 + 8 t + r, so no two ranks of a row are equal.
  Lent drafter{Drafter({.vocabulary = 1000})};
  drafter.begin(Tokens{0});
  PlainRule rule;
  std::vector<Outcome::RankedToken> revealed;
  std::vector<DraftNode> nodes;
  for (Token token = 0; token < 1000; ++token) {
    nodes.push_back({.token = token});
    for (std::uint16_t rank = 0; rank < 8; ++rank)
      revealed.push_back({token, rank, static_cast<Token>((100 + 8 * token + rank) % 1000)});
  }
  drafter.feedback({DraftView(nodes, DraftKind::ordered), {}, {}, 0, Cut::none, revealed});
  drafter.observe(Tokens{0});
  rule.learn(0, DraftView(nodes, DraftKind::ordered), revealed);
  const testing::Drafted draft = drafter.propose(whole, Drafter::max_nodes);
  ASSERT_EQ(draft.nodes.size(), 80U);
  EXPECT_EQ(paths_of(draft), rule.draft(0));
  for (const DraftNode& node : draft.nodes) {
    EXPECT_EQ(node.source, DraftSource::target);
    EXPECT_EQ(node.path_probability, Probability::one());
  }
  // A smaller budget gets the first nodes in the published order.
  const auto fewer = paths_of(drafter.propose({.max_nodes = 33}, 80));
  const auto all = rule.draft(0);
  EXPECT_EQ(fewer, std::vector<Tokens>(all.begin(), all.begin() + 33));
  for (const Tokens& path : paths_of(drafter.propose({.max_nodes = 80, .max_depth = 2}, 80)))
    EXPECT_LE(path.size(), 2U);
  EXPECT_EQ(drafter.propose({.max_nodes = 80, .max_depth = 2}, 80).nodes.size(), 29U);
}

TEST(PublishedTokenRecyclingDrafter, DraftsLikeThePlainRule) {
  for (const std::size_t order : {1U, 2U, 3U})
    for (const Token vocabulary : {3, 12, 100, 5000})
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const RankedText target{.order = order, .vocabulary = vocabulary, .seed = seed};
        Lent drafter;
        PlainRule rule;
        for (int sequence = 0; sequence < 3; ++sequence) {
          drafter.begin(Tokens{static_cast<Token>(sequence % vocabulary), 2, 1});
          for (int i = 0; i < 60; ++i) ASSERT_NO_FATAL_FAILURE(run_round(drafter, rule, target));
        }
      }
}

TEST(PublishedTokenRecyclingDrafter, KeepsTheMatrixFromSequenceToSequenceUnlessTold) {
  for (const bool keep : {true, false}) {
    Lent drafter{Drafter({.keep = keep})};
    drafter.begin(prompt);
    show_row(drafter, {6, 7}, 6);
    drafter.truncate(2);
    EXPECT_EQ(row_of(drafter, 5)[0], 6) << "a shorter text does not change the target";
    drafter.begin(prompt);
    EXPECT_EQ(row_of(drafter, 5)[0], keep ? 6 : 0);
  }
}

TEST(PublishedTokenRecyclingDrafter, KeepsTheContractOfAStrategy) {
  for (const bool keep : {true, false})
    for (const Token vocabulary : {6, 50})
      testing::expect_contract_with_rows([&] { return Drafter({.keep = keep}); }, whole, vocabulary);
}

// --- Every setting has an effect ---

TEST(PublishedTokenRecyclingOptions, VocabularyIsTheMemoryFromTheStart) {
  Lent drafter{Drafter({.vocabulary = 32'000})};
  EXPECT_EQ(drafter->memory_bytes(), 0U);
  drafter.begin(prompt);
  EXPECT_EQ(drafter->memory_bytes(), 32'000U * 32);
}

TEST(PublishedTokenRecyclingOptions, MaxBytesIsALimit) {
  Lent drafter{Drafter({.vocabulary = 32'000, .max_bytes = 100 * 32 + 31})};
  drafter.begin(Tokens{1, 99});
  EXPECT_EQ(drafter->memory_bytes(), 100U * 32);
  show_row(drafter, {7}, 100);
  show_row(drafter, {8}, 100);
  EXPECT_EQ(row_of(drafter, 99)[0], 7);
  EXPECT_EQ(row_of(drafter, 100)[0], 0) << "no memory for this row";
}

TEST(PublishedTokenRecyclingDrafter, CostsALosslessRunOfATransformerNoToken) {
  testing::expect_lossless_on_transformer(Drafter(), whole);
}

}  // namespace
}  // namespace reprise::peers::published_token_recycling_drafter_test
