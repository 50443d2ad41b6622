// SPDX-License-Identifier: Apache-2.0
// Generation with the whole library, plain and drafted, compiled without exceptions and without type information.
#include <cstddef>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "reprise/batch.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/history.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/reprise.hpp"
#include "reprise_methods/repetition_gate.hpp"
#include "reprise_methods/token_table.hpp"
#include "reprise_methods/token_table_drafter.hpp"

namespace {

/// Counts to nine repeatedly. It states its capabilities and returns errors as values.
struct Engine {
  std::vector<reprise::Token> cache;
  std::vector<reprise::Token> picks;
  std::size_t rows = 0;

  reprise::Result<std::span<const reprise::Token>> verify(reprise::TokenSpan batch, std::size_t drafted) {
    if (batch.size() <= drafted) return reprise::Error{reprise::ErrorCode::verifier_failed, "a batch without anchor"};
    picks.clear();
    for (const reprise::Token token : batch.last(drafted + 1)) picks.push_back((token + 1) % 10);
    cache.insert(cache.end(), batch.begin(), batch.end());
    rows = batch.size();
    return std::span<const reprise::Token>(picks);
  }
  reprise::Result<void> commit(std::size_t keep) {
    cache.resize(cache.size() - rows + keep);
    return {};
  }
  [[nodiscard]] static reprise::Capabilities capabilities() { return {}; }
};

template <class Strategy>
std::vector<reprise::Token> decode(Strategy strategy) {
  reprise::Limits limits;
  limits.max_tokens = 50;
  const std::vector<reprise::Token> prompt = {1, 2, 3};
  Engine engine;
  engine.cache = {1, 2};
  reprise::Session session(std::move(strategy));
  const auto generated = reprise::generate(session, engine, prompt, limits);
  if (!generated) return {};
  return {generated->tokens.begin(), generated->tokens.end()};
}

}  // namespace

int main() {
  const auto plain = decode(reprise::NoDrafter());
  auto table = reprise::TokenTable::make({.ngram = 3, .bytes = 1 << 16});
  if (!table) return 1;
  const bool same =
      decode(reprise::PromptLookupDrafter<reprise::RollingHashIndex>()) == plain &&
      decode(reprise::PromptLookupDrafter<reprise::SuffixArrayIndex>::make(reprise::presets::vllm()).value()) ==
          plain &&
      decode(reprise::PromptLookupDrafter<>::make(reprise::presets::ds4()).value()) == plain &&
      decode(reprise::RepetitionGate(reprise::TokenTableDrafter(&*table, {.learn_into = &*table}))) == plain;
  std::printf("%zu tokens, %s\n", plain.size(), same ? "the same with every strategy" : "not the same");
  return plain.size() == 50 && same ? 0 : 1;
}
