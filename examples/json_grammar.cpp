// SPDX-License-Identifier: Apache-2.0
// Drafting under a grammar. An engine that writes JSON gains twice: drafted tokens that the grammar refuses are not
// sent at all, and where the grammar leaves no choice the tokens are drafted without anyone having to guess.
//
// The output does not depend on either, and none of it is trusted: the sampler obeys the grammar's mask, with a draft
// as without. What the library asks of the grammar only saves rows.
#include "json_grammar.hpp"

#include <reprise/reprise.hpp>

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

// Stands for a transformer: likes tokens that followed the last one before, and has a taste of its own.
std::size_t score(TokenSpan context, Token token) {
  std::size_t likes = (static_cast<std::size_t>(token) * 7 + context.size() * 13) % 11;
  for (std::size_t at = 1; at < context.size(); ++at)
    if (context[at] == token && context[at - 1] == context.back()) likes += 4;
  return likes;
}

// A pass that was never committed would have to be undone as well (V5); here none fails.
class Engine {
 public:
  // Picks are made when they are read. The loop reads none after the first that disagrees with the draft, so the
  // matcher moves once for each committed token, exactly as it would without drafts.
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
  // The tokens that there is no choice about; see ForcedTokens.
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

  std::vector<Token> cache_{prompt.begin(), prompt.end() - 1};  // prefilled, all but the last token
  std::size_t base_ = 0, pending_ = 0, read_ = 0;
};

// All that is needed for drafts to be held against the grammar: with this function an engine is a ConstrainedVerifier,
// and generate() asks it, once for each path of a draft. (A scheduler with a loop of its own hands the same function to
// session.constrain(), between propose() and plan().) It looks ahead on a copy: to ask must not change anything.
struct AskedEngine : Engine {
  std::size_t allowed(TokenSpan path) const { return matcher_.allowed(path); }
};
static_assert(reprise::ConstrainedVerifier<AskedEngine> && !reprise::ConstrainedVerifier<Engine>);

// Forced tokens are drafted, not just appended: so the sampler still sees each of them. A handle, as strategies are
// copied.
struct ForcedTokens {
  Engine* engine;
  std::size_t forced(std::span<Token> out) { return engine->forced(out); }
};

template <class AnyEngine, class Strategy>
std::vector<Token> run(const char* name, AnyEngine& engine, Strategy strategy) {
  reprise::Session session(std::move(strategy));  // sends all that is drafted; CostControl would say how much pays
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
      run("n-grams, not asked", unasked, reprise::NgramDrafter()) == truth &&
      run("n-grams", asked, reprise::NgramDrafter()) == truth && run("forced tokens", told, forced) == truth &&
      run("forced tokens and n-grams", both, reprise::UnionDrafter(forced_too, reprise::NgramDrafter())) == truth;
  std::printf("%s\n%s\n", json_grammar::text_of(truth).c_str(),
              same ? "the same tokens with and without drafting" : "WRONG: the runs differ");
  return same ? 0 : 1;
}
