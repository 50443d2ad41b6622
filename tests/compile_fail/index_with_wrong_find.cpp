// SPDX-License-Identifier: Apache-2.0
// message: fixed\.find\(limits, out\)|'find'
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "support/archetypes.hpp"

struct Index : reprise::archetype::Index {
  using reprise::archetype::Index::Index;
  [[nodiscard]] reprise::Match find(const reprise::MatchLimits&) const { return {}; }
};

reprise::PromptLookupDrafter<Index>* drafter = nullptr;
