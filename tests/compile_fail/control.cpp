// SPDX-License-Identifier: Apache-2.0
// compiles
// The correct version of the other files here. If it did not compile, their failures would prove nothing.
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "support/archetypes.hpp"

void control() {
  reprise::Session<reprise::archetype::Strategy> session;
  reprise::Session<reprise::archetype::Strategy, reprise::archetype::Control> controlled;
  reprise::archetype::TreeEngine trees;
  reprise::archetype::TimedEngine timed;
  reprise::PromptLookupDrafter<reprise::archetype::Index> drafter;
  reprise::archetype::Engine engine;
  const reprise::Limits limits;
  static_cast<void>(session.propose(limits));
  static_cast<void>(reprise::generate(session, engine, limits));
  static_cast<void>(reprise::generate(controlled, trees, limits));
  static_cast<void>(reprise::generate(controlled, timed, limits));
}
