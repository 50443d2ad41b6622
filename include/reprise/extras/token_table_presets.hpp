// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/core/probability.hpp"
#include "reprise/extras/repetition_gate.hpp"
#include "reprise/extras/token_table.hpp"
#include "reprise/extras/token_table_drafter.hpp"

/// \file Settings under which TokenTableDrafter drafts exactly the same tokens as other systems; see draft/presets.hpp.
namespace reprise::inline v0::presets {

// The tables of the other systems have three faults that ours do not have:
//
//  * They return tokens of other n-grams where hashes collide, with a probability that grows as they fill.
//  * They empty themselves for everybody at a quarter of their places or after a few poor rounds of one sequence.
//  * Writers can target the entries of others.
//
// The drafts are theirs, token for token, until one of these happens to them. The first draft comes after begin() with
// the prompt and after the first token of the output.

/// llama.cpp's ngram-mod (PR 19164; --spec-ngram-mod-n-match), with its 16 MiB. Ours holds two million n-grams in them;
/// theirs resets at one million.
inline TokenTableOptions llama_cpp_mod_table(std::uint32_t n = 24) noexcept { return {.ngram = n}; }

/// llama.cpp's ngram-mod (--spec-ngram-mod-n-min, --spec-ngram-mod-n-max). Chains that end before n_min tokens are
/// dropped. The prompt is learned at once, output in pieces, and the anchor one token later. A sequence rests after
/// five rounds below a quarter, where theirs resets (as first published: three rounds below a half). Limits::draft and
/// Session allow 32 nodes by default and cut each draft to that: raise both to n_max.
inline TokenTableDrafterOptions llama_cpp_mod(TokenTable* learn_into, std::size_t n_min = 48,
                                              std::size_t n_max = 64) noexcept {
  TokenTableDrafterOptions options;
  options.min_draft = n_min;
  options.max_draft = n_max;
  options.learn_into = learn_into;
  options.learn_gap = 32;
  options.without_anchor = true;
  options.poor_rounds = 5;
  options.poor_share = Probability::ratio(1, 4);
  return options;
}

/// mlx-lm's ngram-mod (PR 1297; --ngram-size).
inline TokenTableOptions mlx_lm_mod_table(std::uint32_t n = 16) noexcept { return {.ngram = n}; }

/// mlx-lm's ngram-mod (--num-draft-tokens). Chains have any length, and the anchor is learned with the rest. A sequence
/// rests after three rounds below a half, where theirs resets.
inline TokenTableDrafterOptions mlx_lm_mod(TokenTable* learn_into, std::size_t draft_length = 3) noexcept {
  TokenTableDrafterOptions options;
  options.max_draft = draft_length;
  options.learn_into = learn_into;
  options.learn_gap = 32;
  options.poor_rounds = 3;
  options.poor_share = Probability::ratio(1, 2);
  return options;
}

/// mlx-lm's adaptive gate (PR 1297), which precedes all its lookups: no drafts for prompts in which fewer than 2% of
/// the 3-grams occurred before. GateOverride::open is the disable_adaptive_gate of a request there.
inline RepetitionGateOptions mlx_lm_gate() noexcept { return {}; }

}  // namespace reprise::presets
