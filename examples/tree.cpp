// SPDX-License-Identifier: Apache-2.0
// Drafts that branch. Where the text has continued in several ways before, a chain must bet on one. A tree puts
// the second guess into the same pass. The engine needs a mask (which rows see which), a position for each row, and a
// commit that keeps selected rows. engine/tree.hpp and engine/attention_mask.hpp make the first two from the parents.
#include <reprise/engine/tree.hpp>
#include <reprise/reprise.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using reprise::NodeIndex;
using reprise::Token;
using reprise::TokenSpan;

// A path through a maze: no drafter can predict its turns the first time, but the model knows it by heart.
std::string way_through_the_maze() {
  const std::string_view steps[] = {"up ", "down ", "left ", "right "};
  std::string way;
  std::uint32_t random = 7;
  for (int i = 0; i < 150; ++i) way += steps[((random = random * 1664525 + 1013904223) >> 16) % 4];
  return way;
}

class Engine {
 public:
  Engine(TokenSpan prompt, std::size_t max_leaves) : max_leaves_(max_leaves) {
    for (const Token token : prompt.first(prompt.size() - 1)) cache_.push_back({token, cache_.size()});
  }

  // More than one leaf: drafts may branch. With one leaf the same engine gets chains, through verify() and commit().
  [[nodiscard]] reprise::Capabilities capabilities() const { return {.max_leaves = max_leaves_}; }

  const std::vector<Token>& verify(TokenSpan batch, std::size_t drafted) {
    std::vector<NodeIndex> chain(drafted);
    for (std::size_t i = 0; i < drafted; ++i) chain[i] = static_cast<NodeIndex>(i) - 1;
    return verify_tree(batch, drafted, chain);
  }
  void commit(std::size_t keep) { cache_.resize(base_ + keep); }

  // Runs one pass over [pending | tree]. parents[j] is the parent of drafted row j: a drafted row, or -1 for the
  // anchor.
  const std::vector<Token>& verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    base_ = cache_.size();
    const std::size_t pending = batch.size() - drafted;

    // Position ids, for RoPE and the like. Rows at the same depth share one, so a row's index is not its position.
    std::vector<std::size_t> depths(drafted);
    reprise::tree_depths(parents, std::span(depths));
    for (std::size_t i = 0; i < batch.size(); ++i)
      cache_.push_back({batch[i], base_ + (i < pending ? i : pending - 1 + depths[i - pending])});

    // The ancestor mask, row-major. It has no columns for the cache, because all rows see the whole cache. Within the
    // batch, a row sees only its own path.
    std::vector<std::uint8_t> mask(batch.size() * batch.size());
    reprise::attention_mask(parents, pending, 0, batch.size(), std::span(mask),
                            reprise::MaskCells<std::uint8_t>{.seen = 1, .hidden = 0});

    picks_.clear();  // the model's tokens after the anchor and after each drafted row
    for (std::size_t row = pending - 1; row < batch.size(); ++row)
      picks_.push_back(attend(row, std::span(mask).subspan(row * batch.size(), batch.size())));
    return picks_;
  }
  // Keeps these rows of the pass: the accepted path, whose rows need not be adjacent. A KV cache moves them together,
  // or keeps a list of their slots; their positions do not change.
  void commit_rows(std::span<const std::size_t> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) cache_[base_ + i] = cache_[base_ + rows[i]];
    cache_.resize(base_ + rows.size());
  }

 private:
  struct Row {
    Token token;
    std::size_t position;
  };
  // Stands for attention: the model knows only the rows that it sees, and their order only by their positions.
  [[nodiscard]] Token attend(std::size_t row, std::span<const std::uint8_t> mask) const {
    std::vector<Token> seen(cache_[base_ + row].position + 1);
    for (std::size_t i = 0; i < base_; ++i) seen[cache_[i].position] = cache_[i].token;
    for (std::size_t i = 0; i < mask.size(); ++i)
      if (mask[i] != 0) seen[cache_[base_ + i].position] = cache_[base_ + i].token;
    // Continues as the path does where it agrees longest with the seen rows.
    std::size_t place = 0;
    std::size_t best = 0;
    for (std::size_t end = 1; end < way_.size(); ++end) {
      std::size_t same = 0;
      while (same < std::min(end, seen.size()) && way_[end - 1 - same] == seen[seen.size() - 1 - same]) ++same;
      if (same > best) place = end;
      best = std::max(best, same);
    }
    return way_[place];
  }

  const std::string way_ = way_through_the_maze();
  std::vector<Row> cache_;
  std::size_t max_leaves_;
  std::size_t base_ = 0;  // rows in the cache before the last pass

 protected:
  std::vector<Token> picks_;
};
static_assert(reprise::TreeVerifier<Engine> && reprise::VerifierWithCapabilities<Engine>);
static_assert(reprise::TreeVerifier<Engine>);

// An engine that walks the tree itself, where the logits are, and returns only the accepted tokens. It converts the
// parents to the form that kernels walk: first child and next sibling of each node. Node 0 is the anchor, node 1 + j
// drafted row j.
class SelfWalkingEngine : public Engine {
 public:
  using Engine::Engine;
  reprise::Accepted verify_and_walk(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    verify_tree(batch, drafted, parents);
    const std::size_t pending = batch.size() - drafted;
    std::vector<int> first_child(drafted + 1);
    std::vector<int> next_sibling(drafted + 1);
    reprise::tree_links(parents, std::span(first_child), std::span(next_sibling));
    rows_.clear();
    tokens_.clear();
    for (int node = 0; node != -1;) {
      const Token pick = picks_[static_cast<std::size_t>(node)];
      rows_.push_back(pending - 1 + static_cast<std::size_t>(node));  // the row that it was picked after
      tokens_.push_back(pick);
      node = first_child[static_cast<std::size_t>(node)];
      while (node != -1 && batch[pending - 1 + static_cast<std::size_t>(node)] != pick)
        node = next_sibling[static_cast<std::size_t>(node)];
    }
    return {rows_, tokens_};
  }

 private:
  std::vector<std::size_t> rows_;
  std::vector<Token> tokens_;
};
static_assert(reprise::SelfWalkingVerifier<SelfWalkingEngine>);

struct Run {
  std::vector<Token> tokens;
  double tokens_per_pass = 0;
};

template <class AnyEngine>
Run run(const char* name, std::size_t max_leaves, std::size_t max_nodes) {
  const std::string way = way_through_the_maze();
  const std::vector<Token> prompt(way.begin(), way.begin() + 100);
  AnyEngine engine(prompt, max_leaves);
  // The same number of rows for chains and trees. On a real engine, CostControl chooses how many pay.
  reprise::Session session{reprise::NgramDrafter()};
  const reprise::Limits limits{.max_tokens = way.size() - prompt.size() - 1, .draft = {.max_nodes = max_nodes}};
  const auto done = reprise::generate(session, engine, prompt, limits);
  if (!done) return std::puts(done.error().message.data()), Run();
  const auto& counted = done->statistics;
  std::printf("%-34s%5llu passes %6.2f tokens per pass %5.1f rows drafted\n", name,
              static_cast<unsigned long long>(counted.passes), counted.mean_accepted_tokens(),
              counted.drafted_per_pass());
  return {{done->tokens.begin(), done->tokens.end()}, counted.mean_accepted_tokens()};
}

}  // namespace

int main() {
  const Run plain = run<Engine>("plain decoding", 1, 0);
  const Run chain = run<Engine>("a chain of 16", 1, 16);
  const Run tree = run<Engine>("a tree of 16", 16, 16);
  const Run walked = run<SelfWalkingEngine>("a tree of 16, walked by the engine", 16, 16);
  const bool same = !plain.tokens.empty() && chain.tokens == plain.tokens && tree.tokens == plain.tokens &&
                    walked.tokens == plain.tokens;
  std::puts(same ? "the same output in all four runs" : "WRONG: the outputs differ");
  return same && tree.tokens_per_pass > chain.tokens_per_pass ? 0 : 1;
}
