// SPDX-License-Identifier: Apache-2.0
// Drafting under a grammar. An engine that writes JSON gains twice: drafted tokens that the grammar refuses are not
// sent at all, and where the grammar leaves no choice the tokens are drafted without anyone having to guess.
//
// The output does not depend on either, and none of it is trusted: the sampler obeys the grammar's mask, with a draft
// as without. What the library asks of the grammar only saves rows.
#include "json_grammar.hpp"

#include <reprise/reprise.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

using json_grammar::Grammar;
using json_grammar::Matcher;
using json_grammar::Vocabulary;
using reprise::Token;
using reprise::TokenSpan;

// What the model is shown: one list as JSON, then another one that somebody has typed, with spaces that the grammar
// does not allow.
constexpr std::string_view request =
    "Tickets as JSON: [{\"id\":10,\"kind\":\"wish\",\"title\":\"The light is on the king\",\"open\":true},"
    "{\"id\":20,\"kind\":\"bug\",\"title\":\"The king is singing\",\"open\":false}]\n"
    "{ \"id\": 31, \"kind\": \"bug\", \"title\": \"The lamp is on\", \"open\": True }\n"
    "{ \"id\": 47, \"kind\": \"wish\", \"title\": \"The lamp is singing\", \"open\": False }\n"
    "{ \"id\": 58, \"kind\": \"question\", \"title\": \"Is the caf\xc3\xa9 open\", \"open\": True }\n"
    "Tickets as JSON: ";

// What it has to look like. Keys and their order are fixed, so nearly all that is not a value is forced.
Grammar ticket_list() {
  Grammar grammar;
  const auto ticket = grammar.record({{"id", grammar.integer(3)},
                                      {"kind", grammar.one_of({"\"bug\"", "\"wish\"", "\"question\""})},
                                      {"title", grammar.text(24)},
                                      {"open", grammar.boolean()}});
  grammar.root(grammar.list(ticket, 4, 8));
  return grammar;
}

// Spreads the bits of a number: all the randomness there is here.
std::uint64_t mix(std::uint64_t x) {
  x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Stands for a transformer: likes tokens that followed the last ones before, and has a taste of its own.
std::uint64_t logit(TokenSpan context, Token token) {
  std::uint64_t best = 0;
  for (std::size_t at = 1; at < context.size(); ++at) {
    if (context[at] != token) continue;
    std::uint64_t same = 0;
    while (same < 3 && same < at && context[at - 1 - same] == context[context.size() - 1 - same]) ++same;
    best = std::max(best, same);
  }
  return 16 * best + mix(static_cast<std::uint64_t>(token) + 1000 * context.size()) % 20;
}

// An engine that samples under a grammar, one token when it is asked for one.
class Engine {
 public:
  // `temperature` 0: greedy.
  Engine(const Vocabulary& vocabulary, const Grammar& grammar, TokenSpan prompt, std::uint64_t temperature)
      : matcher_(grammar, vocabulary),
        mask_(vocabulary.size()),
        temperature_(temperature),
        cache_(prompt.begin(), prompt.end() - 1) {}  // prefilled, all but the last token

  // Picks that are sampled when they are read. The loop reads none after the first that disagrees with the draft, so
  // matcher and random stream move once for each committed token: exactly as they would without drafts.
  struct Picks {
    Engine* engine;
    Token operator[](std::size_t i) const { return engine->pick(i); }
  };
  Picks verify(TokenSpan batch, std::size_t drafted) {
    forget_void_pass();
    base_ = cache_.size();
    pending_ = batch.size() - drafted;
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    open_ = true;
    return {this};
  }
  void commit(std::size_t keep) {
    cache_.resize(base_ + keep);
    // A stop predicate may have refused the last pick: grammar and random stream take it back.
    take_back(picks_read_ - (keep + 1 - pending_));
    picks_read_ = 0;
    open_ = false;
  }

  // The tokens there is no choice about; see ForcedTokens.
  std::size_t forced(std::span<Token> out) {
    forget_void_pass();
    return matcher_.forced(out);
  }

 protected:
  // A pass that was never committed is void, and what it drew has to be undone. Here and not in verify() alone: the
  // grammar is asked before the next verify().
  void forget_void_pass() {
    if (!open_) return;
    cache_.resize(base_);
    take_back(picks_read_);
    picks_read_ = 0;
    open_ = false;
  }

  Matcher matcher_;

 private:
  Token pick(std::size_t i) {
    const TokenSpan seen = TokenSpan(cache_).first(base_ + pending_ + i);
    matcher_.mask(mask_);
    Token best = Vocabulary::end;
    std::uint64_t best_score = 0;
    for (std::size_t at = 0; at < mask_.size(); ++at) {
      if (mask_[at] == 0) continue;
      const auto token = static_cast<Token>(at);
      const std::uint64_t noise = temperature_ == 0 ? 0 : mix(mix(drawn_) + at) % temperature_;
      const std::uint64_t score = 1 + logit(seen, token) + noise;
      if (score > best_score) best = token;
      best_score = std::max(best_score, score);
    }
    matcher_.accept(best);
    ++drawn_;
    ++picks_read_;
    return best;
  }
  void take_back(std::size_t picks) {
    matcher_.rollback(picks);
    drawn_ -= picks;
  }

  std::vector<std::uint8_t> mask_;  // of the vocabulary
  std::uint64_t temperature_;
  std::vector<Token> cache_;  // stands for the rows of a KV cache
  std::uint64_t drawn_ = 0;   // the random stream: how far it is
  std::size_t base_ = 0;
  std::size_t pending_ = 0;
  std::size_t picks_read_ = 0;
  bool open_ = false;
};

// All that is needed for drafts to be held against the grammar: with this function an engine is a ConstrainedVerifier,
// and generate() asks it, once for each path of a draft. (A scheduler with a loop of its own hands the same function to
// session.constrain(), between propose() and plan().) It looks ahead on a copy: to ask must not change anything. Such a
// check is cheap, where a mask over the whole vocabulary for each drafted token would cost more than drafting saves.
struct AskedEngine : Engine {
  using Engine::Engine;
  std::size_t allowed(TokenSpan path) {
    forget_void_pass();
    const std::size_t tokens = matcher_.allowed(path);
    refused += path.size() - tokens;
    return tokens;
  }
  std::size_t refused = 0;
};
static_assert(reprise::ConstrainedVerifier<AskedEngine> && !reprise::ConstrainedVerifier<Engine>);

// Forced tokens are drafted, not just appended: so the sampler still sees each of them, and its random stream goes on
// as without drafting. A handle, because strategies are copied.
struct ForcedTokens {
  Engine* engine;
  std::size_t forced(std::span<Token> out) { return engine->forced(out); }
};

// A strategy that has never heard of a grammar: eight tokens at random.
struct Guesses {
  std::size_t size = 0;
  void begin(TokenSpan) {}
  void observe(TokenSpan, std::size_t, reprise::Origin) {}
  void truncate(TokenSpan, std::size_t) {}
  void feedback(reprise::TokenSpan, const reprise::Outcome&) {}
  void propose(TokenSpan context, reprise::Draft& draft) {
    for (std::size_t i = 0; i < 8; ++i)
      draft.extend({.token = static_cast<Token>(1 + mix(8 * context.size() + i) % 100)});
  }
};

struct Run {
  std::vector<Token> tokens;
  reprise::FinishReason finish = reprise::FinishReason::none;
  reprise::Statistics counted;
};

template <class AnyEngine, class Strategy>
Run run(const char* name, AnyEngine& engine, Strategy strategy, TokenSpan prompt) {
  reprise::Session session(std::move(strategy));  // sends all that is drafted; CostControl would say how much pays
  reprise::Limits limits{.max_tokens = 600, .eos = {Vocabulary::end}};
  limits.draft.max_nodes = 12;
  const auto done = reprise::generate(session, engine, prompt, limits);
  if (!done) return std::puts(done.error().message.data()), Run();
  const reprise::Statistics& counted = done->statistics;
  const auto print = [](std::uint64_t count) { std::printf("%10llu", static_cast<unsigned long long>(count)); };
  std::printf("%-28s", name);
  print(counted.passes);
  print(counted.drafted);
  print(counted.accepted);
  if constexpr (reprise::ConstrainedVerifier<AnyEngine>) {
    print(engine.refused);                           // drafted tokens that the grammar refused: not sent
    print(counted.count(reprise::Cut::constraint));  // passes that this was about
  }
  std::puts("");
  return {{done->tokens.begin(), done->tokens.end()}, done->finish, counted};
}

// Whether a grammar that knows nothing of tickets finds it to be JSON, too.
bool is_json(std::string_view text) {
  const Grammar json;
  Grammar::State state = json.start();
  return std::all_of(text.begin(), text.end(), [&](char byte) { return json.read(state, byte); }) &&
         json.complete(state);
}

}  // namespace

int main() {
  const Vocabulary vocabulary = Vocabulary::common();
  const Grammar grammar = ticket_list();
  const std::vector<Token> prompt = vocabulary.tokens(request);
  bool right = true;
  for (const std::uint64_t temperature : {std::uint64_t{0}, std::uint64_t{32}}) {
    std::printf("%-28s    passes   drafted  accepted   refused       cut\n", temperature == 0 ? "Greedy" : "Sampled");
    Engine plain(vocabulary, grammar, prompt, temperature);
    const Run truth = run("no draft", plain, reprise::NoDraft(), prompt);

    const auto compare = [&](const char* name, auto engine, auto make_strategy) {
      const Run drafted = run(name, engine, make_strategy(engine), prompt);
      right = right && drafted.tokens == truth.tokens && drafted.finish == truth.finish;
      return drafted.counted;
    };
    const auto guesses = [](Engine&) { return Guesses(); };
    const auto ngrams = [](Engine&) { return reprise::NgramDrafter(); };
    const auto forced = [](Engine& engine) { return reprise::ForcedDrafter(ForcedTokens{&engine}); };
    const auto both = [&](Engine& engine) { return reprise::UnionDrafter(forced(engine), ngrams(engine)); };
    // From an engine that is asked what its grammar allows, and from one that is not.
    const AskedEngine asked(vocabulary, grammar, prompt, temperature);
    const Engine unasked = asked;
    compare("guesses, not asked", unasked, guesses);
    compare("guesses", asked, guesses);
    compare("n-grams, not asked", unasked, ngrams);
    compare("n-grams", asked, ngrams);
    const reprise::Statistics saved = compare("forced tokens", asked, forced);
    compare("forced tokens and n-grams", asked, both);
    std::printf("forced tokens alone save %llu of %llu passes\n",
                static_cast<unsigned long long>(truth.counted.passes - saved.passes),
                static_cast<unsigned long long>(truth.counted.passes));

    const std::string text = vocabulary.text(truth.tokens);
    right = right && truth.finish == reprise::FinishReason::eos && is_json(text);
    std::printf("%s\n\n", text.c_str());
  }
  std::puts(right ? "valid JSON, and the same tokens with and without drafting"
                  : "WRONG: not JSON, or the runs differ");
  return right ? 0 : 1;
}
