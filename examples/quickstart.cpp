// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <reprise/reprise.hpp>
#include <vector>

struct Engine {  // yours runs a transformer; the "model" of this one says the alphabet, over and over
  std::vector<reprise::Token> picks;
  // One pass over [pending | draft]: what the model says after the anchor and after each drafted token.
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    picks.clear();
    for (const reprise::Token token : batch.last(drafted + 1)) picks.push_back(token == 'z' ? 'a' : token + 1);
    return picks;
  }
  void commit(std::size_t /*keep*/) {}  // your KV cache keeps the first `keep` rows of that pass, and forgets the rest
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
