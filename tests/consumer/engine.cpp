// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <string_view>

namespace {

constexpr std::string_view sentence = "she sells sea shells on the sea shore. ";

}  // namespace

std::vector<reprise::Token> Engine::verify(reprise::TokenSpan batch, std::size_t drafted) {
  std::vector<reprise::Token> picks;
  const std::size_t anchor = batch.size() - drafted - 1;
  for (std::size_t i = 0; i <= drafted; ++i) picks.push_back(sentence[(position_ + anchor + i) % sentence.size()]);
  return picks;
}

void Engine::commit(std::size_t keep) { position_ += keep; }

std::vector<reprise::Token> decode_plain(std::size_t tokens) {
  Engine engine;
  reprise::Session session(reprise::NoDrafter{});
  const std::vector<reprise::Token> prompt = {'>'};
  reprise::Limits limits;
  limits.max_tokens = tokens;
  const auto generated = reprise::generate(session, engine, prompt, limits);
  if (!generated) return {};
  return {generated->tokens.begin(), generated->tokens.end()};
}
