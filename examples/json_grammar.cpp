// SPDX-License-Identifier: Apache-2.0
// Drafting under a grammar. An engine that writes JSON gains twice. Drafted tokens that the grammar rejects are never
// sent, and tokens that the grammar forces need no guess.
//
// Neither changes the output, and neither is trusted: the sampler obeys the grammar's mask with and without drafts. The
// library asks the grammar only to save rows.
#include "json_grammar.hpp"

#include <reprise/draft/union_drafter.hpp>
#include <reprise/reprise.hpp>
#include <reprise_methods/jump_forward_drafter.hpp>

#include <cstdio>
#include <span>
#include <utility>
#include <vector>

namespace {

using json_grammar::Grammar;
using json_grammar::Matcher;
using reprise::Token;
using reprise::TokenSpan;

const Grammar tickets = {"{id,kc,twqob}", 3, 5};
const std::vector<Token> prompt = json_grammar::tokens_of(
    "[{\"id\":12,\"kind\":\"bug\",\"title\":\"The lamp is on \",\"open\":true}]\n"
    "{ \"id\": 3, \"kind\": \"wish\", \"title\": \"The king is singing \", \"open\": True }\nas JSON: ");

// Stands for a transformer: prefers tokens that have followed the last token before, plus an arbitrary bias of its own.
std::size_t score(TokenSpan context, Token token) {
  std::size_t likes = (static_cast<std::size_t>(token) * 7 + context.size() * 13) % 11;
  for (std::size_t at = 1; at < context.size(); ++at)
    if (context[at] == token && context[at - 1] == context.back()) likes += 4;
  return likes;
}

// A real engine would also have to undo a pass that was never committed (V5); here no pass fails.
class Engine {
 public:
  // A pick is made when it is read. The loop stops reading at the first pick that disagrees with the draft, so the
  // matcher advances once per committed token, exactly as without drafts.
  struct Picks {
    Engine* engine;
    Token operator[](std::size_t i) const { return engine->pick(i); }
  };
  Picks verify(TokenSpan batch, std::size_t drafted) {
    base_ = cache_.size(), pending_ = batch.size() - drafted;
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    return {this};
  }
  void commit(std::size_t keep) {
    cache_.resize(base_ + keep);
    matcher_.rollback(std::exchange(read_, 0) - (keep + 1 - pending_));  // a stop rule may have refused the last pick
  }
  // Writes the tokens that the grammar forces here and returns their number; used by ForcedTokens.
  std::size_t forced(std::span<Token> out) const { return matcher_.forced(out); }

 protected:
  Matcher matcher_{tickets};

 private:
  Token pick(std::size_t i) {
    const TokenSpan seen = TokenSpan(cache_).first(base_ + pending_ + i);
    Token best = json_grammar::end;
    for (const Token token : matcher_.mask())
      if (best == json_grammar::end || score(seen, token) > score(seen, best)) best = token;
    return static_cast<void>(matcher_.accept(best)), ++read_, best;
  }

  std::vector<Token> cache_{prompt.begin(), prompt.end() - 1};  // prefilled: all but the last token
  std::size_t base_ = 0, pending_ = 0, read_ = 0;
};

// With this function the engine is a ConstrainedVerifier, and generate() calls it once for each path of a draft. A
// scheduler with its own loop passes the same function to session.constrain(), between propose() and plan(). It reads
// ahead on a copy, because asking must not change anything.
struct AskedEngine : Engine {
  std::size_t allowed(TokenSpan path) const { return matcher_.allowed(path); }
};
static_assert(reprise::ConstrainedVerifier<AskedEngine> && !reprise::ConstrainedVerifier<Engine>);

// Forced tokens are drafted rather than appended, so the sampler still sees each of them. This is a handle, because
// strategies are copied.
struct ForcedTokens {
  Engine* engine;
  std::size_t forced(std::span<Token> out) { return engine->forced(out); }
};
static_assert(reprise::JumpForwardSource<ForcedTokens>);

template <class AnyEngine, class Strategy>
std::vector<Token> run(const char* name, AnyEngine& engine, Strategy strategy) {
  reprise::Session session(std::move(strategy));  // sends every drafted token; CostControl sends those that pay
  const auto done = reprise::generate(session, engine, prompt, {.max_tokens = 600, .eos = {json_grammar::end}});
  if (!done) return std::puts(done.error().message.data()), std::vector<Token>();
  const reprise::Statistics& counted = done->statistics;
  std::printf("%-28s", name);
  for (const auto count : {counted.passes, counted.drafted, counted.accepted, counted.count(reprise::Cut::constraint)})
    std::printf("%10llu", static_cast<unsigned long long>(count));
  std::puts("");
  return {done->tokens.begin(), done->tokens.end()};
}

}  // namespace

int main() {
  std::puts("                                passes   drafted  accepted       cut");
  Engine plain, unasked;
  AskedEngine asked, told, both;
  const std::vector<Token> truth = run("no draft", plain, reprise::NoDrafter());
  const reprise::JumpForwardDrafter forced(ForcedTokens{&told}), forced_too(ForcedTokens{&both});
  const bool same =
      run("n-grams without the grammar", unasked, reprise::NgramDrafter()) == truth &&
      run("n-grams", asked, reprise::NgramDrafter()) == truth && run("forced tokens", told, forced) == truth &&
      run("forced tokens and n-grams", both, reprise::UnionDrafter(forced_too, reprise::NgramDrafter())) == truth;
  std::printf("%s\n%s\n", json_grammar::text_of(truth).c_str(),
              same ? "the same tokens with and without drafting" : "WRONG: the runs differ");
  return same ? 0 : 1;
}
