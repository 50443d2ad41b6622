// SPDX-License-Identifier: Apache-2.0
// The lightest way in: a lookup without probabilities, with control and a session.
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/generate.hpp"

struct Engine {
  std::vector<reprise::Token> picks;
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted);
  void commit(std::size_t keep);
};

bool decode(Engine& engine, reprise::TokenSpan prompt) {
  reprise::Session session{reprise::PromptLookupDrafter<>(), reprise::CostControl()};
  return static_cast<bool>(reprise::generate(session, engine, prompt, reprise::Limits{.max_tokens = 100}));
}
