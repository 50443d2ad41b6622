// SPDX-License-Identifier: Apache-2.0
// message: v\.commit\(keep\)|'commit'
#include "reprise/core/strategy.hpp"
#include "reprise/loop/generate.hpp"

struct Engine {
  reprise::archetype::Engine::LazyPicks verify(reprise::TokenSpan, std::size_t) { return {}; }
};

void use(reprise::Session<reprise::NoDrafter>& session, Engine& engine, const reprise::Limits& limits) {
  static_cast<void>(reprise::generate(session, engine, limits));
}
