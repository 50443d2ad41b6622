// SPDX-License-Identifier: Apache-2.0
// Sampling with a seed gives the same tokens with and without drafting. The sampler of this engine has state: a random
// stream and a repetition penalty. SamplerHistory keeps it in step with the committed tokens.
#include <reprise/engine/sampler_history.hpp>
#include <reprise/reprise.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz ,.";
constexpr std::string_view book =
    "it was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, ";

// Stands for your sampler: temperature, repetition penalty, and a random stream that each token advances.
struct Sampler {
  std::uint64_t random = 0;
  std::array<reprise::Token, 4> recent{};
  std::size_t sampled = 0;

  reprise::Token sample(std::span<const float> logits) {
    std::array<float, alphabet.size()> weights{};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto token = static_cast<reprise::Token>(i);
      const auto repeated = std::count(recent.begin(), recent.end(), token);
      weights[i] = std::exp((logits[i] - 0.3F * static_cast<float>(repeated)) / 0.8F);  // a temperature of 0.8
    }
    random = random * 6364136223846793005 + 1442695040888963407;
    const auto drawn = reprise::draw_index(weights, static_cast<double>(random >> 11) * 0x1p-53);
    recent[sampled++ % recent.size()] = static_cast<reprise::Token>(*drawn);
    return recent[(sampled - 1) % recent.size()];
  }
};

// Yours runs a transformer. This "model" prefers the letters that follow the last four letters in the book.
struct Engine {
  std::vector<reprise::Token> rows;  // rows in the cache, then those of the last pass
  std::size_t cached = 0;
  std::size_t pending = 0;
  reprise::SamplerHistory<Sampler> sampler;

  Engine(reprise::TokenSpan prompt, std::uint64_t seed)
      : rows(prompt.begin(), prompt.end() - 1), cached(rows.size()), sampler(Sampler{.random = seed}) {}

  auto verify(reprise::TokenSpan batch, std::size_t drafted) {
    rows.resize(cached);
    rows.insert(rows.end(), batch.begin(), batch.end());
    pending = batch.size() - drafted;
    return sampler.picks(drafted, [this](Sampler& state, std::size_t i) { return state.sample(logits_after(i)); });
  }
  void commit(std::size_t keep) {
    cached += keep;
    sampler.commit(keep + 1 - pending);
  }

  [[nodiscard]] std::array<float, alphabet.size()> logits_after(std::size_t i) const {
    std::array<float, alphabet.size()> logits{};
    const std::size_t end = cached + pending + i;  // number of tokens up to and including row (anchor + i)
    for (std::size_t at = 0; at < book.size(); ++at) {
      std::size_t match = 0;
      while (match < 4 && match < end &&
             alphabet[static_cast<std::size_t>(rows[end - 1 - match])] ==
                 book[(at + book.size() - 1 - match) % book.size()])
        ++match;
      float& logit = logits[alphabet.find(book[at])];
      logit = std::max(logit, 2.5F * static_cast<float>(match));
    }
    return logits;
  }
};

struct Run {
  std::vector<reprise::Token> tokens;
  unsigned long long passes = 0;
};

template <class Session>
Run decode(Session session, reprise::TokenSpan prompt, std::uint64_t seed) {
  Engine engine(prompt, seed);
  const reprise::Limits limits{.max_tokens = 400};
  const auto generated = reprise::generate(session, engine, prompt, limits);
  if (!generated) return std::fprintf(stderr, "%s\n", generated.error().message.data()), Run();
  return {{generated->tokens.begin(), generated->tokens.end()}, generated->statistics.passes};
}

}  // namespace

int main() {
  std::vector<reprise::Token> prompt;
  for (const char letter : book) prompt.push_back(static_cast<reprise::Token>(alphabet.find(letter)));

  bool same = true;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Run plain = decode(reprise::Session<reprise::NoDrafter>(), prompt, seed);
    const Run drafted = decode(reprise::Speculator(), prompt, seed);
    if (seed == 1) {
      for (const reprise::Token token : drafted.tokens) std::putchar(alphabet[static_cast<std::size_t>(token)]);
      std::puts("");
    }
    same = same && !plain.tokens.empty() && plain.tokens == drafted.tokens;
    std::printf("seed %llu: %s tokens, %llu passes with drafting instead of %llu\n",
                static_cast<unsigned long long>(seed), same ? "the same" : "DIFFERENT", drafted.passes, plain.passes);
    same = same && drafted.passes < plain.passes;
  }
  return same ? 0 : 1;
}
