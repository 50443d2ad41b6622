// SPDX-License-Identifier: Apache-2.0
// Drafts that branch. Where the text has gone on in several ways before, a chain has to bet on one of them; a tree puts
// the second guess into the same pass. The engine needs a mask (who sees whom), a position for each row, and a commit
// that keeps some rows and not others; engine/tree.hpp and engine/attention_mask.hpp make the first two from the
// parents.
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

// The way through a maze: nobody can foresee where it turns next, but the model knows it by heart.
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

  // More than one leaf: drafts may branch. With one the same engine is sent chains, through verify() and commit().
  [[nodiscard]] reprise::Capabilities capabilities() const { return {.max_leaves = max_leaves_}; }

  const std::vector<Token>& verify(TokenSpan batch, std::size_t drafted) {
    std::vector<NodeIndex> chain(drafted);
    for (std::size_t i = 0; i < drafted; ++i) chain[i] = static_cast<NodeIndex>(i) - 1;
    return verify_tree(batch, drafted, chain);
  }
  void commit(std::size_t keep) { cache_.resize(base_ + keep); }

  // One pass over [pending | tree]. parents[j] is the drafted row that drafted row j follows, or -1: the anchor.
  const std::vector<Token>& verify_tree(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    base_ = cache_.size();
    const std::size_t pending = batch.size() - drafted;

    // Position ids, for RoPE and the like: rows side by side in the tree share one, so it is not the row's number.
    std::vector<std::size_t> depths(drafted);
    reprise::tree_depths(parents, std::span(depths));
    for (std::size_t i = 0; i < batch.size(); ++i)
      cache_.push_back({batch[i], base_ + (i < pending ? i : pending - 1 + depths[i - pending])});

    // The ancestor mask, row-major. All rows see the cache, so it has no columns here; of the batch, a row sees its own
    // path and nothing beside it.
    std::vector<std::uint8_t> mask(batch.size() * batch.size());
    reprise::attention_mask<std::uint8_t>(parents, pending, 0, batch.size(), mask);

    picks_.clear();  // what the model says after the anchor, and after each drafted row
    for (std::size_t row = pending - 1; row < batch.size(); ++row)
      picks_.push_back(attend(row, std::span(mask).subspan(row * batch.size(), batch.size())));
    return picks_;
  }
  // Keeps these rows of the pass: the path that was right, of which the rows need not be neighbours. A KV cache moves
  // them together, or keeps a list of the slots; their positions stay what they are.
  void commit_rows(std::span<const std::size_t> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) cache_[base_ + i] = cache_[base_ + rows[i]];
    cache_.resize(base_ + rows.size());
  }

 private:
  struct Row {
    Token token;
    std::size_t position;
  };
  // Stands for attention: the model knows nothing but the rows that it sees, and their order only by their positions.
  [[nodiscard]] Token attend(std::size_t row, std::span<const std::uint8_t> mask) const {
    std::vector<Token> seen(cache_[base_ + row].position + 1);
    for (std::size_t i = 0; i < base_; ++i) seen[cache_[i].position] = cache_[i].token;
    for (std::size_t i = 0; i < mask.size(); ++i)
      if (mask[i] != 0) seen[cache_[base_ + i].position] = cache_[base_ + i].token;
    // Goes on as the way does where it agrees best with what was seen.
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
static_assert(reprise::TreeVerifier<Engine>);

// An engine that follows the tree itself, next to the logits, and brings back only what was accepted. It gets the form
// that kernels walk: the first child of each node and the next sibling; node 0 is the anchor, 1 + j drafted row j.
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
      rows_.push_back(pending - 1 + static_cast<std::size_t>(node));  // the row after which it was picked
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
  // The same number of rows for chains and trees. How many pay on a real engine is for CostControl to say.
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
  std::puts(same ? "the same output, all four times" : "WRONG: the outputs differ");
  return same && tree.tokens_per_pass > chain.tokens_per_pass ? 0 : 1;
}
