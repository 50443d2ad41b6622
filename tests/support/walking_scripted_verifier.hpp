// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::testing {

/// A ScriptedVerifier that walks the draft itself, as engines do on their device. It is a separate class, because
/// generate() calls verify_and_walk() for every pass if a verifier has it.
class SelfWalkingScriptedVerifier : public ScriptedVerifier {
 public:
  using ScriptedVerifier::ScriptedVerifier;
  explicit SelfWalkingScriptedVerifier(ScriptedVerifier engine) : ScriptedVerifier(std::move(engine)) {}

  Result<Accepted> verify_and_walk(TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
    if (const auto answer = verify_tree(batch, drafted, parents); !answer) return answer.error();
    return walk_draft();
  }
};

static_assert(SelfWalkingVerifier<SelfWalkingScriptedVerifier> && CheckpointVerifier<SelfWalkingScriptedVerifier>);

}  // namespace reprise::testing
