// SPDX-License-Identifier: Apache-2.0
// A small model drafts for a large one. For a greedy target it drafts its likeliest tokens; for a sampling target it
// draws its drafts. Both "models" here count the letter pairs of a text; the large one has read more of it.
#include <reprise/draft/model_drafter.hpp>
#include <reprise/reprise.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using reprise::Token;
using reprise::TokenSpan;

constexpr std::string_view text =
    "the cat sat on the mat and the rat ran at the cat and then the cat ate the rat that sat on the mat at ten and the "
    "hen in the den had a hat and then ran to the man that had the net that the cat had not eaten at the time that ";

constexpr std::size_t letters = 27;
char letter_of(Token token) { return token == 26 ? ' ' : static_cast<char>('a' + token); }
Token token_of(char letter) { return letter == ' ' ? 26 : letter - 'a'; }

using Distribution = std::array<float, letters>;

/// How often each letter follows each pair of letters.
struct Pairs {
  std::array<std::array<Distribution, letters>, letters> counts{};

  explicit Pairs(std::string_view read) {
    std::array<Distribution, letters> behind_letters{};
    for (std::size_t i = 2; i < read.size(); ++i) {
      behind_letters[place(read[i - 1])][place(read[i])] += 1;
      counts[place(read[i - 2])][place(read[i - 1])][place(read[i])] += 1;
    }
    for (auto& row : counts)
      for (std::size_t last = 0; last < letters; ++last) {
        // A pair that was never seen uses the counts of its last letter.
        float sum = 0;
        for (std::size_t next = 0; next < letters; ++next)
          sum += row[last][next] += 0.05F * behind_letters[last][next] + 0.0001F;
        for (float& count : row[last]) count /= sum;
      }
  }
  static std::size_t index(Token token) { return static_cast<std::size_t>(token) % letters; }
  static std::size_t place(char letter) { return index(token_of(letter)); }
  [[nodiscard]] const Distribution& behind(TokenSpan tokens) const {
    return counts[index(tokens[tokens.size() - 2])][index(tokens[tokens.size() - 1])];
  }
};

/// The draft model. A real one caches keys and values; this one needs only its tokens. reserve() allocates ahead, so
/// drafting allocates nothing.
struct SmallModel {
  const Pairs* pairs = nullptr;
  std::vector<Token> cache;

  std::span<const float> feed(TokenSpan tokens) {
    cache.insert(cache.end(), tokens.begin(), tokens.end());
    return cache.size() < 2 ? std::span<const float>() : std::span<const float>(pairs->behind(cache));
  }
  void truncate(std::size_t size) { cache.resize(size); }
  static std::size_t vocabulary() { return letters; }
  void reserve(std::size_t max_context) { cache.reserve(max_context); }
};

static_assert(reprise::DraftModel<SmallModel>);

/// The engine with the large model. It shows its distributions, so rejection sampling verifies the sampled drafts.
class Engine {
 public:
  Engine(const Pairs& pairs, TokenSpan prompt, bool sampled)
      : pairs_(&pairs), cache_(prompt.begin(), prompt.end() - 1), sampled_(sampled) {}

  const std::vector<Token>& verify(TokenSpan batch, std::size_t drafted) {
    cache_.resize(kept_ == 0 ? cache_.size() : kept_);
    kept_ = cache_.size();
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    anchor_ = cache_.size() - drafted;
    picks_.clear();
    for (std::size_t i = 0; i <= drafted; ++i) {
      const auto distribution = probabilities(i);
      const auto best = std::max_element(distribution.begin(), distribution.end());
      picks_.push_back(static_cast<Token>(best - distribution.begin()));
    }
    return picks_;
  }
  void commit(std::size_t keep) {
    kept_ += keep;
    cache_.resize(kept_);
  }
  /// Returns the distribution that plain decoding samples from after row (anchor + i). For a greedy engine, all the
  /// weight is on one letter.
  std::span<const float> probabilities(std::size_t i) {
    const Distribution& behind = pairs_->behind(TokenSpan(cache_).first(anchor_ + i));
    if (sampled_) return behind;
    one_ = {};
    one_[static_cast<std::size_t>(std::max_element(behind.begin(), behind.end()) - behind.begin())] = 1;
    return one_;
  }
  double uniform() {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(random_ >> 11) / 9007199254740992.0;
  }

 private:
  const Pairs* pairs_;
  std::vector<Token> cache_;
  bool sampled_;
  std::size_t kept_ = 0;
  std::size_t anchor_ = 0;
  std::vector<Token> picks_;
  Distribution one_{};
  std::uint64_t random_ = 2;
};

static_assert(reprise::DistributionVerifier<Engine>);

bool run(const char* name, const reprise::ModelOptions& options, bool sampled) {
  const Pairs large(text);
  const Pairs small(text.substr(0, 2 * text.size() / 3));
  std::vector<Token> prompt;
  for (const char letter : std::string_view("the cat ")) prompt.push_back(token_of(letter));
  const reprise::Limits limits{.max_tokens = 300};

  Engine engine(large, prompt, sampled);
  auto drafter = reprise::ModelDrafter<SmallModel>::make({&small, {}}, options);
  if (!drafter) return std::puts(drafter.error().message.data()), false;
  reprise::Session session(*std::move(drafter));
  if (!session.reserve(1024)) return false;
  const auto generated = reprise::generate(session, engine, prompt, limits);
  if (!generated) return std::puts(generated.error().message.data()), false;
  std::printf("%s: %.2f tokens per pass, %.0f%% of the drafted tokens accepted\n  ", name,
              generated->statistics.mean_accepted_tokens(), 100 * generated->statistics.acceptance_rate());
  for (const Token token : generated->tokens.first(72)) std::putchar(letter_of(token));
  std::putchar('\n');
  return generated->statistics.mean_accepted_tokens() > 1.5;
}

/// The same for an engine that owns its loop: it makes the picks of a pass by rejection sampling itself.
bool run_in_own_loop(const reprise::ModelOptions& options) {
  const Pairs large(text);
  const Pairs small(text.substr(0, text.size() / 2));
  const std::vector<Token> prompt = {token_of('t'), token_of('h'), token_of('e')};
  Engine engine(large, prompt, true);
  auto drafter = reprise::ModelDrafter<SmallModel>::make({&small, {}}, options);
  if (!drafter) return false;
  reprise::Session session(*std::move(drafter));
  const reprise::Limits limits{.max_tokens = 100};
  if (!session.reserve(256) || !session.begin(prompt)) return false;
  while (session.propose(limits), !session.finished()) {
    const reprise::Result<reprise::Pass> pass = session.plan();
    if (!pass) return false;
    static_cast<void>(engine.verify(pass->batch, pass->drafted));
    reprise::RejectionPicks picks(
        pass->batch.last(pass->drafted), [&](std::size_t i) { return engine.probabilities(i); },
        [&](std::size_t i) { return session.strategy().distribution(pass->nodes[i]); },
        [&] { return engine.uniform(); });
    const reprise::Result<reprise::Decision> decision = session.resolve(pass->ticket, picks);
    if (!decision || picks.failed()) return false;
    engine.commit(decision->keep);
    if (!session.commit(pass->ticket)) return false;
  }
  std::printf("own loop: %.2f tokens per pass\n", session.statistics().mean_accepted_tokens());
  return session.statistics().mean_accepted_tokens() > 1;
}

}  // namespace

int main() {
  const reprise::ModelOptions greedy;
  reprise::ModelOptions drawn;
  drawn.kind = reprise::DraftKind::sampled;
  drawn.seed = 7;  // the drafter's own seed: its random numbers must be independent of the target's
  return run("greedy", greedy, false) && run("sampled", drawn, true) && run_in_own_loop(drawn) ? 0 : 1;
}
