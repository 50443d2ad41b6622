// SPDX-License-Identifier: Apache-2.0
#include "peers/racer_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "reprise/testing/check_strategy.hpp"
#include "reprise/testing/lossless.hpp"
#include "reprise/testing/random.hpp"
#include "support/ranked_rounds.hpp"
#include "support/transformer_engine.hpp"

namespace reprise::peers::racer_drafter_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::RankedText;
using Lent = testing::Lent<RacerDrafter>;
using Row = std::array<Token, 8>;
using Tokens = std::vector<Token>;

const Tokens prompt = {1, 2, 3, 4, 5};
const DraftBudget whole = {.max_nodes = RacerDrafter::max_nodes};

Lent made(const RacerOptions& options = {}) { return Lent{RacerDrafter::make(options).value()}; }

std::vector<Tokens> paths_of(DraftView draft) {
  std::vector<Tokens> paths;
  for (std::size_t i = 0; i < draft.size(); ++i) paths.push_back(testing::tokens_to(draft, static_cast<NodeIndex>(i)));
  return paths;
}

/// RACER as plain loops over maps. A node of the trie is the path to it.
class PlainRacer {
 public:
  explicit PlainRacer(const RacerOptions& options) : options_(options) {}

  void begin(TokenSpan context) {
    if (!options_.keep) {
      rows_.clear();
      forget_text();
    }
    learned_ = 0;
    learn(context);
  }
  void truncate(TokenSpan left) {
    learned_ = std::min(learned_, left.size());
    if (options_.keep) return;
    forget_text();
    learned_ = 0;
    learn(left);
  }
  /// Adds the n-grams that end before the last token.
  void learn(TokenSpan context) {
    for (; learned_ + 1 < context.size(); ++learned_)
      if (learned_ + 1 >= options_.ngram) {
        const TokenSpan gram = context.first(learned_ + 1).last(options_.ngram);
        add({gram.begin(), gram.end()});
      }
  }
  void learn_rows(TokenSpan context, DraftView draft, const std::vector<Outcome::RankedToken>& revealed) {
    for (const Outcome::RankedToken& one : revealed)
      rows_[one.after == anchor_parent ? context.back() : draft[static_cast<std::size_t>(one.after)].token][one.rank] =
          one.token;
    for (const Tokens& border : borders(context)) use(border);
  }

  [[nodiscard]] std::vector<Tokens> draft(TokenSpan context, std::size_t most, bool chain) const {
    const std::size_t nodes = std::min(options_.nodes, most);
    const std::vector<Tokens> chosen = chain ? chosen_chain(context, nodes + 1) : chosen_paths(context, nodes + 1);
    std::vector<Tokens> paths;
    for (const Tokens& path : chosen) insert(paths, path, nodes);
    const std::size_t rest = nodes + 1 - chosen.size();
    if (chain) {
      Tokens path = chosen.empty() ? Tokens() : chosen.back();
      for (std::size_t i = 1; i < rest; ++i) path.push_back(row(path.empty() ? context.back() : path.back())[0]);
      insert(paths, path, nodes);
      return paths;
    }
    for (const Tokens& path : logits_tree(context.back(), rest)) insert(paths, path, nodes);
    if (options_.refill && paths.size() < nodes)
      for (const Tokens& path : logits_tree(context.back(), nodes + 1))
        if (!insert(paths, path, nodes)) break;
    return level_by_level(paths);
  }

 private:
  struct Node {
    std::size_t count = 0;
    std::size_t made = 0;
    std::size_t used = 0;  // when it was used last
  };

  static bool begins_with(const Tokens& path, const Tokens& prefix) {
    return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
  }
  [[nodiscard]] Row row(Token token) const { return rows_.contains(token) ? rows_.at(token) : Row{}; }
  void forget_text() {
    trie_.clear();
    clock_ = 0;
  }
  void add(const Tokens& gram) {
    for (std::size_t length = 1; length <= gram.size(); ++length) {
      const Tokens path(gram.begin(), gram.begin() + static_cast<std::ptrdiff_t>(length));
      if (!trie_.contains(path)) {
        if (trie_.size() + 1 == options_.trie_nodes) evict();  // the root counts too
        trie_[path].made = ++clock_;
      }
      trie_[path].used = ++clock_;
      ++trie_[path].count;
    }
    use(gram);
  }
  void use(Tokens path) {
    for (; !path.empty(); path.pop_back()) trie_.at(path).used = ++clock_;
  }
  /// Removes the least recently used path that no other path continues.
  void evict() {
    auto oldest = trie_.end();
    for (auto at = trie_.begin(); at != trie_.end(); ++at) {
      const auto next = std::next(at);  // in lexicographic order, continuations come next
      const bool leaf = next == trie_.end() || !begins_with(next->first, at->first);
      if (leaf && (oldest == trie_.end() || at->second.used < oldest->second.used)) oldest = at;
    }
    trie_.erase(oldest);
  }
  [[nodiscard]] std::vector<Tokens> borders(TokenSpan context) const {
    std::vector<Tokens> found;
    for (std::size_t length = std::min(context.size(), options_.ngram); length >= 2; --length) {
      const TokenSpan suffix = context.last(length);
      if (const Tokens path(suffix.begin(), suffix.end()); trie_.contains(path)) found.push_back(path);
    }
    return found;
  }
  /// The paths after the anchor of all chosen nodes. The path of a border is empty.
  [[nodiscard]] std::vector<Tokens> chosen_paths(TokenSpan context, std::size_t budget) const {
    using Key = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;
    std::vector<std::pair<Key, Tokens>> candidates;
    const std::vector<Tokens> all = borders(context);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const auto& [path, node] : trie_)
        if (begins_with(path, all[i]))
          candidates.push_back({{1'000'000 - node.count, path.size(), i, node.made},
                                {path.begin() + static_cast<std::ptrdiff_t>(all[i].size()), path.end()}});
    std::sort(candidates.begin(), candidates.end());
    std::vector<Tokens> chosen;
    for (std::size_t i = 0; i < std::min(budget, candidates.size()); ++i) chosen.push_back(candidates[i].second);
    return chosen;
  }
  [[nodiscard]] std::vector<Tokens> chosen_chain(TokenSpan context, std::size_t budget) const {
    std::vector<Tokens> chosen;
    const std::vector<Tokens> all = borders(context);
    if (all.empty()) return chosen;
    Tokens at = all.front();
    while (chosen.size() < budget) {
      chosen.emplace_back(at.begin() + static_cast<std::ptrdiff_t>(all.front().size()), at.end());
      auto best = trie_.end();
      for (auto child = trie_.begin(); child != trie_.end(); ++child)
        if (child->first.size() == at.size() + 1 && begins_with(child->first, at) &&
            (best == trie_.end() ||
             std::pair(best->second.count, child->second.made) < std::pair(child->second.count, best->second.made)))
          best = child;
      if (best == trie_.end()) break;
      at = best->first;
    }
    return chosen;
  }
  /// The paths to the leaves of a tree of `nodes` nodes, the root included.
  [[nodiscard]] std::vector<Tokens> logits_tree(Token root, std::size_t nodes) const {
    struct Grown {
      Tokens path;
      int breadth;
    };
    std::vector<Grown> queue;
    if (nodes > 0) queue.push_back({{}, 8});
    std::vector<Tokens> leaves;
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const Grown parent = queue[head];
      if (queue.size() >= nodes) {
        leaves.push_back(parent.path);
        continue;
      }
      const bool below_root = parent.path.size() == 1;
      for (int rank = 0; rank < parent.breadth && queue.size() < nodes; ++rank) {
        Tokens path = parent.path;
        path.push_back(row(path.empty() ? root : path.back())[static_cast<std::size_t>(rank)]);
        queue.push_back({path, std::max(1, parent.breadth >> (below_root ? rank : rank + 1))});
      }
    }
    return leaves;
  }
  /// Inserts a path and its prefixes, each once. Returns false if there was no room for all of them.
  static bool insert(std::vector<Tokens>& paths, const Tokens& path, std::size_t most) {
    for (std::size_t length = 1; length <= path.size(); ++length) {
      const Tokens prefix(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(length));
      if (std::find(paths.begin(), paths.end(), prefix) != paths.end()) continue;
      if (paths.size() == most) return false;
      paths.push_back(prefix);
    }
    return true;
  }
  static std::vector<Tokens> level_by_level(const std::vector<Tokens>& paths) {
    std::vector<Tokens> order = {{}};
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const Tokens& path : paths)
        if (path.size() == order[i].size() + 1 && begins_with(path, Tokens(order[i]))) order.push_back(path);
    order.erase(order.begin());
    return order;
  }

  RacerOptions options_;
  std::map<Token, Row> rows_;
  std::map<Tokens, Node> trie_;
  std::size_t clock_ = 0;
  std::size_t learned_ = 0;
};

/// A drafter and the plain rule, which have to draft the same.
struct Both {
  explicit Both(const RacerOptions& options) : drafter(made(options)), rule(options) {}

  void begin(const Tokens& context) {
    drafter.begin(context);
    rule.begin(drafter.context());
  }
  void observe(const Tokens& fresh, Origin origin) {
    drafter.observe(fresh, origin);
    rule.learn(drafter.context());
  }
  void truncate(std::size_t size) {
    drafter.truncate(size);
    rule.truncate(drafter.context());
  }
  void run_round(const RankedText& target, const DraftBudget& budget = whole) {
    const Tokens before(drafter.context().begin(), drafter.context().end());
    const auto expected = rule.draft(before, budget.max_nodes, budget.shape == DraftShape::chain);
    const testing::RankedRound round = testing::run_round(drafter, target, {.budget = budget});
    ASSERT_EQ(paths_of(round.draft()), expected) << "after " << before.size() << " tokens";
    std::vector<NodeIndex> sent;
    for (std::size_t i = 0; i < round.nodes.size(); ++i) sent.push_back(static_cast<NodeIndex>(i));
    rule.learn_rows(before, round.draft(), testing::revealed_by(target, before, round.draft(), sent, 8));
    rule.learn(drafter.context());
    nodes += round.nodes.size();
  }

  Lent drafter;
  PlainRacer rule;
  std::size_t nodes = 0;
};

TEST(RacerDrafter, DraftsLikeThePlainRule) {
  for (const RacerOptions& options :
       {RacerOptions{}, RacerOptions{.refill = false}, RacerOptions{.nodes = 7, .ngram = 3},
        RacerOptions{.nodes = 1, .keep = false}, RacerOptions{.nodes = 31, .ngram = 2, .trie_nodes = 40},
        RacerOptions{.ngram = 4, .trie_nodes = 6, .refill = false}, RacerOptions{.ngram = 5, .trie_nodes = 120}})
    for (const std::size_t order : {1U, 3U})
      for (const Token vocabulary : {3, 12, 400})
        for (const DraftBudget& budget :
             {whole, DraftBudget{.max_nodes = 12}, DraftBudget{.max_nodes = 20, .shape = DraftShape::chain}}) {
          const RankedText target{.order = order, .vocabulary = vocabulary, .seed = options.ngram};
          Both both(options);
          testing::Random random(options.nodes + order);
          for (int sequence = 0; sequence < 3; ++sequence) {
            Tokens text(1 + random.below(30));
            for (Token& token : text) token = static_cast<Token>(random.below(5));
            both.begin(text);
            for (int i = 0; i < 12; ++i) {
              ASSERT_NO_FATAL_FAILURE(both.run_round(target, budget))
                  << "ngram " << options.ngram << " trie " << options.trie_nodes << " order " << order << " of "
                  << vocabulary << " round " << i;
              if (random.chance(15)) both.truncate(1 + random.below(both.drafter.context().size()));
              if (random.chance(15)) both.observe(text, Origin::prompt);
            }
          }
          EXPECT_GT(both.nodes, 30U);
        }
}

TEST(RacerDrafter, ChoosesTheMostFrequentContinuations) {
  Lent drafter = made({.nodes = 3, .ngram = 3, .refill = false});
  drafter.begin(Tokens{1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2});
  // The budget is four nodes: the border 1 2 (count 3), the 3 after it (2), the border 3 1 2 (1), and 4 (1).
  const auto nodes = drafter.propose(whole).nodes;
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].token, 3);
  EXPECT_EQ(nodes[1].token, 4);
  for (const DraftNode& node : nodes) {
    EXPECT_EQ(node.source, DraftSource::context);
    EXPECT_EQ(node.match_length, 2U);
    EXPECT_EQ(node.path_probability, Probability::one());
  }
  EXPECT_EQ(drafter.propose({.max_nodes = 1}).tokens(), Tokens{3}) << "the border and one node";
}

TEST(RacerDrafter, ContinuesARetrievedChainWithFirstRanks) {
  Lent drafter = made({.nodes = 4, .ngram = 3});
  drafter.begin(Tokens{1, 2, 3, 4, 1, 2});
  drafter->learn_row(Tokens{3}, Tokens{8, 9});
  drafter->learn_row(Tokens{8}, Tokens{7});
  // Of five nodes, the border and 3 are retrieved. A logits chain of three nodes begins with 3.
  const auto nodes = drafter.propose({.shape = DraftShape::chain}).nodes;
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].token, 3);
  EXPECT_EQ(nodes[1].token, 8);
  EXPECT_EQ(nodes[2].token, 7);
  EXPECT_EQ(nodes[0].source, DraftSource::context);
  EXPECT_EQ(nodes[1].source, DraftSource::target);
}

TEST(RacerDrafter, RefillsATreeThatMergingMadeSmaller) {
  for (const bool refill : {false, true}) {
    Lent drafter = made({.nodes = 4, .ngram = 3, .refill = refill});
    drafter.begin(Tokens{1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2});
    drafter->learn_row(Tokens{2}, Tokens{4, 9, 8, 7});
    // Two borders, 3 and 4 leave one of five nodes to the logits tree: its root.
    EXPECT_EQ(drafter.propose(whole).tokens(), refill ? (Tokens{3, 4, 9, 8}) : (Tokens{3, 4}));
  }
}

TEST(RacerDrafter, HalvesTheChildrenFromRankToRankAndLevelToLevel) {
  Lent drafter = made();
  drafter.begin(Tokens{0});
  for (Token token = 0; token < 500; ++token) {
    Tokens row;
    for (Token rank = 0; rank < 8; ++rank) row.push_back((1 + token * 8 + rank) % 500);
    drafter->learn_row(Tokens{token}, row);
  }
  const auto draft = drafter.propose(whole);
  ASSERT_EQ(draft.nodes.size(), 63U);
  std::map<NodeIndex, std::size_t> children;
  for (const DraftNode& node : draft.nodes) ++children[node.parent];
  // The order of siblings is that of the leaves below them.
  const auto below = [&](NodeIndex parent) {
    std::map<Token, std::size_t> by_token;
    for (std::size_t i = 0; i < draft.nodes.size(); ++i)
      if (draft.nodes[i].parent == parent) by_token[draft.nodes[i].token] = children[static_cast<NodeIndex>(i)];
    std::vector<std::size_t> counts;
    for (const auto& [token, count] : by_token) counts.push_back(count);
    return counts;
  };
  EXPECT_THAT(below(anchor_parent), ElementsAre(4, 2, 1, 1, 1, 1, 1, 1));
  const auto first = std::find_if(draft.nodes.begin(), draft.nodes.end(), [](const DraftNode& node) {
    return node.parent == anchor_parent && node.token == 1;
  });
  EXPECT_THAT(below(static_cast<NodeIndex>(first - draft.nodes.begin())), ElementsAre(4, 2, 1, 1))
      << "children of the root keep their breadth";
}

TEST(RacerDrafter, KeepsTheContractOfAStrategy) {
  // Small tries, because each check copies hundreds of drafters.
  for (const RacerOptions& options :
       {RacerOptions{.trie_nodes = 800, .keep = false}, RacerOptions{.ngram = 2, .trie_nodes = 800, .keep = false},
        RacerOptions{.ngram = 3, .trie_nodes = 40, .refill = false, .keep = false}})
    for (const DraftBudget& budget : {whole, DraftBudget{}, DraftBudget{.max_depth = 3}, DraftBudget{.max_leaves = 3},
                                      DraftBudget{.shape = DraftShape::chain}}) {
      const auto plain =
          testing::check_strategy([&] { return RacerDrafter::make(options).value(); }, {.runs = 4, .budget = budget});
      EXPECT_TRUE(plain.passed()) << plain.to_string();
      const auto revealing = testing::check_strategy(
          [&] {
            return testing::Revealing(RacerDrafter::make(options).value(), RankedText{.order = 2, .vocabulary = 6});
          },
          {.runs = 4, .budget = budget});
      EXPECT_TRUE(revealing.passed()) << revealing.to_string();
    }
}

// The check of S7 truncates a copy, which keeps the n-grams of the removed text.
TEST(RacerDrafter, KeepsTheClausesWithoutTruncationIfItKeepsItsKnowledge) {
  const auto report =
      testing::check_strategy([] { return RacerDrafter::make({.trie_nodes = 800}).value(); }, {.budget = whole});
  for (const testing::Report::Finding& finding : report.findings)
    if (finding.clause != "S1" && finding.clause != "S6" && finding.clause != "S7") {
      EXPECT_NE(finding.verdict, testing::Verdict::wrong) << report.to_string();
    }
}

TEST(RacerDrafter, LearnsTheRowsOfAPrompt) {
  Lent drafter = made();
  drafter.begin(prompt);
  drafter->learn_row(Tokens{5}, Tokens{9, 8});
  drafter->learn_row(Tokens{70'000}, Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(drafter.propose(whole).tokens()[0], 9);
  const TokenSpan row = drafter->top_k(70'000);
  EXPECT_THAT(Tokens(row.begin(), row.end()), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(RacerDrafter, KeepsItsKnowledgeFromSequenceToSequenceUnlessTold) {
  for (const bool keep : {true, false}) {
    Lent drafter = made({.ngram = 3, .keep = keep});
    drafter.begin(Tokens{1, 2, 3, 9, 9});
    drafter->learn_row(Tokens{2}, Tokens{7});
    drafter.begin(Tokens{1, 2});
    const Tokens tokens = drafter.propose(whole).tokens();
    EXPECT_EQ(tokens[0], keep ? 3 : 0);
    EXPECT_EQ(drafter->top_k(2)[0], keep ? 7 : 0);
  }
}

TEST(RacerDrafter, TakesTokensOfAnyValue) {
  constexpr Token lowest = std::numeric_limits<Token>::min();
  constexpr Token highest = std::numeric_limits<Token>::max();
  Lent drafter = made({.ngram = 2});
  drafter.begin(Tokens{lowest, highest, -1, lowest, highest});
  const Outcome::RankedToken odd[] = {{NodeIndex{1000}, 0, 1}, {NodeIndex{-7}, 0, 1},       {anchor_parent, 40, 1},
                                      {anchor_parent, 3, 1},   {anchor_parent, 0, highest}, {anchor_parent, 1, lowest}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(drafter.propose(whole).malformed);
    drafter.feedback({{}, {}, {}, {}, Cut::none, odd});
    drafter.observe(Tokens{-1, lowest, highest});
  }
  EXPECT_EQ(drafter->trie_size(), 7U) << "the root, three tokens and a token after each";
  EXPECT_LE(drafter->memory_bytes(), (std::size_t{33} << 20));
}

// --- Settings ---

TEST(RacerOptions, OutOfRangeAreRefused) {
  for (const auto& [options, value, limit] : {std::tuple(RacerOptions{.nodes = 0}, 0U, 1U),
                                              {RacerOptions{.nodes = 64}, 64U, 63U},
                                              {RacerOptions{.ngram = 1}, 1U, 2U},
                                              {RacerOptions{.ngram = 33}, 33U, 32U},
                                              {RacerOptions{.ngram = 5, .trie_nodes = 6}, 6U, 7U},
                                              {RacerOptions{.trie_nodes = 1U << 25}, 1U << 25, 1U << 24}}) {
    const auto made = RacerDrafter::make(options);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(made.error().value, value);
    EXPECT_EQ(made.error().limit, limit);
  }
  EXPECT_TRUE(RacerDrafter::make({.nodes = 63, .ngram = 32, .trie_nodes = 34}));
}

TEST(RacerOptions, NodesAndTrieNodesAreLimits) {
  for (const std::size_t nodes : {1U, 20U, 63U}) {
    Lent drafter = made({.nodes = nodes, .trie_nodes = 50});
    drafter.begin(prompt);
    for (int i = 0; i < 60; ++i) {
      testing::run_round(drafter, {.order = 2, .vocabulary = 30}, {.budget = whole});
      EXPECT_LE(drafter.propose(whole).nodes.size(), nodes);
    }
    EXPECT_EQ(drafter->trie_size(), 50U);
    EXPECT_LE(drafter->memory_bytes(), 50U * 56 + 50 * 32);
  }
}

TEST(RacerOptions, VocabularyAndMaxBytesAreTheMemoryOfTheMatrix) {
  Lent drafter = made({.trie_nodes = 12, .vocabulary = 32'000});
  drafter.begin(prompt);
  EXPECT_NEAR(static_cast<double>(drafter->memory_bytes()), 32'000.0 * 32, 2000);
  Lent small = made({.trie_nodes = 12, .vocabulary = 32'000, .max_bytes = 3200});
  small.begin(prompt);
  EXPECT_LE(small->memory_bytes(), 3200U + 12 * 56);
  small->learn_row(Tokens{100}, Tokens{1});
  EXPECT_THAT(small->top_k(100), Each(0));
}

// --- On a transformer ---

TEST(RacerDrafter, CostsALosslessRunOfATransformerNoToken) {
  const testing::Transformer model;
  for (const std::size_t leaves : {std::size_t{1}, std::size_t{8}, unlimited}) {
    testing::TransformerOptions engine;
    engine.capabilities.max_leaves = leaves;
    const auto make = [&](TokenSpan tokens) { return testing::TransformerEngine(model, tokens, engine); };
    const Limits limits{.max_tokens = 150, .draft = whole};
    const auto report = testing::compare_lossless(make, prompt, limits, RacerDrafter());
    EXPECT_TRUE(report.identical()) << report.message;
    EXPECT_GT(report.drafted.statistics.accepted, 10U);
  }
}

}  // namespace
}  // namespace reprise::peers::racer_drafter_test
