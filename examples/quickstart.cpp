// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <reprise/reprise.hpp>
#include <vector>

// Yours runs a transformer. The "model" of this one recites the alphabet.
struct Engine {
  std::vector<reprise::Token> picks;

  // Runs one pass over `batch`. Its last `drafted` tokens are a guess.
  // Returns the model's own next token after the last known token and after each guess.
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    picks.clear();
    for (const reprise::Token token : batch.last(drafted + 1)) {
      picks.push_back(token == 'z' ? 'a' : token + 1);
    }
    return picks;
  }

  // Your KV cache keeps the first `keep` rows of that pass and drops the others.
  void commit(std::size_t /*keep*/) {}
};

int main() {
  Engine engine;
  reprise::Speculator speculator;
  const std::vector<reprise::Token> prompt = {'a', 'b', 'c'};
  const reprise::Limits limits{.max_tokens = 100};
  const auto generated = reprise::generate(speculator, engine, prompt, limits);
  if (!generated) return std::puts(generated.error().message.data()), 1;
  for (const reprise::Token token : generated->tokens) std::putchar(token);
  std::printf("\n%.2f tokens per pass\n", generated->statistics.mean_accepted_tokens());
}
