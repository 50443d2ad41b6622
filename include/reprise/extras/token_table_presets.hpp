// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/core/probability.hpp"
#include "reprise/extras/repetition_gate.hpp"
#include "reprise/extras/token_table.hpp"
#include "reprise/extras/token_table_drafter.hpp"

/// \file Settings with which TokenTableDrafter drafts exactly the same tokens as other systems; see draft/presets.hpp.
namespace reprise::inline v0::presets {

// The tables of the other systems have three faults that TokenTable does not have:
//
//  * They return tokens of other n-grams if hashes collide, with a probability that grows as they fill.
//  * They remove the entries of all sequences when a quarter of their places is used, or after a few poor rounds of one
//    sequence.
//  * Writers can target the entries of other writers.
//
// Until one of these faults occurs there, the drafts are the same, token for token. The first draft is made after
// begin() with the prompt and after the first output token.

/// Returns the table settings of llama.cpp's ngram-mod (PR 19164; --spec-ngram-mod-n-match), with its 16 MiB.
/// TokenTable holds two million n-grams in them; the original resets at one million.
inline TokenTableOptions llama_cpp_mod_table(std::uint32_t n = 24) noexcept { return {.ngram = n}; }

/// Returns the drafter settings of llama.cpp's ngram-mod (--spec-ngram-mod-n-min, --spec-ngram-mod-n-max). Chains
/// shorter than n_min tokens are dropped. The prompt is learned at once, the output in batches, and the anchor one
/// token later. A sequence rests after five consecutive rounds with less than a quarter of the sent tokens accepted.
/// The original resets its table instead (as first published: after three rounds below a half). By default,
/// Limits::draft and Session cut each draft to 32 nodes: raise both to n_max.
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

/// Returns the table settings of mlx-lm's ngram-mod (PR 1297; --ngram-size).
inline TokenTableOptions mlx_lm_mod_table(std::uint32_t n = 16) noexcept { return {.ngram = n}; }

/// Returns the drafter settings of mlx-lm's ngram-mod (--num-draft-tokens). Chains have no minimum length, and the
/// anchor is learned with the other tokens. A sequence rests after three consecutive rounds with less than half of the
/// sent tokens accepted. The original resets its table instead.
inline TokenTableDrafterOptions mlx_lm_mod(TokenTable* learn_into, std::size_t draft_length = 3) noexcept {
  TokenTableDrafterOptions options;
  options.max_draft = draft_length;
  options.learn_into = learn_into;
  options.learn_gap = 32;
  options.poor_rounds = 3;
  options.poor_share = Probability::ratio(1, 2);
  return options;
}

/// Returns the settings of mlx-lm's adaptive gate (PR 1297), which precedes all its lookups. It allows no drafts for
/// prompts in which fewer than 2% of the 3-grams occurred before. GateOverride::open corresponds to
/// disable_adaptive_gate of a request in mlx-lm.
inline RepetitionGateOptions mlx_lm_gate() noexcept { return {}; }

}  // namespace reprise::presets
