// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/core/token.hpp"
#include "reprise/draft/copy_drafter.hpp"
#include "reprise/draft/repetition_gate.hpp"
#include "reprise/draft/token_table_drafter.hpp"
#include "reprise/memory/token_table.hpp"

/// \file Settings under which CopyDrafter and TokenTableDrafter draft exactly what other systems draft, token for
/// token: baselines to compare with, and a first step for those who come from there. L is the length of the context,
/// anchor included.
namespace reprise::presets {

/// What all of them share: fixed lengths, a copy that ends with the context.
inline CopyOptions lookup(std::uint32_t min_ngram, std::uint32_t max_ngram, std::size_t draft_length) noexcept {
  CopyOptions options;
  options.min_ngram = min_ngram;
  options.max_ngram = max_ngram;
  options.extend = false;
  options.occurrence = Occurrence::earliest;
  options.candidates = 1;
  options.draft_length = draft_length;
  options.copy_past_end = false;
  return options;
}

/// Prompt lookup decoding as first published (Saxena 2023): lengths n down to 1, the first occurrence from the left
/// that is not part of the end and has `draft_length` tokens behind it; copies exactly that many.
inline CopyOptions prompt_lookup(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  CopyOptions options = lookup(1, n, draft_length);
  options.conditions.apart = true;
  options.conditions.min_copy = draft_length;
  return options;
}

/// Hugging Face transformers, prompt_lookup_num_tokens: the same without those two conditions; the copy ends at L.
inline CopyOptions hugging_face(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  return lookup(1, n, draft_length);
}

/// vLLM's ngram proposer (prompt_lookup_min, prompt_lookup_max, num_speculative_tokens): the longest length that
/// occurs earlier, its earliest occurrence.
inline CopyOptions vllm(std::uint32_t min_ngram = 2, std::uint32_t max_ngram = 5,
                        std::size_t draft_length = 5) noexcept {
  return lookup(min_ngram, max_ngram, draft_length);
}

/// llama.cpp's ngram-simple: the most recent occurrence of the last n tokens in the context without its anchor,
/// not at its very beginning; nothing when fewer than n tokens follow.
inline CopyOptions llama_cpp_simple(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  CopyOptions options = lookup(n, n, draft_length < n ? 0 : draft_length);
  options.occurrence = Occurrence::most_recent;
  options.candidates = 2;  // the nearest one may be too near
  options.conditions.min_context = n + draft_length + 3;
  options.conditions.min_distance = 2;
  options.conditions.min_copy = n;
  options.conditions.without_anchor = true;
  options.conditions.never_from_start = true;
  return options;
}

/// ds4: the most recent occurrence of the last n tokens, cut behind an end-of-sequence token.
inline CopyOptions ds4(std::uint32_t n = 4, std::size_t draft_length = 7, std::optional<Token> eos = {}) noexcept {
  CopyOptions options = lookup(n, n, draft_length);
  options.occurrence = Occurrence::most_recent;
  options.conditions.cut_after = eos;
  return options;
}

// Token tables. What differs is what was wrong with them: theirs return the tokens of other n-grams where hashes
// collide (as often as they are full), empty themselves for everybody at a quarter of their places or after a few poor
// rounds of one sequence, and can be aimed at. So drafts are theirs, token for token, until that happens to them. The
// first draft follows begin() with the prompt and the first token of the output.

/// llama.cpp's ngram-mod (PR 19164; --spec-ngram-mod-n-match): its 16 MiB. Ours holds two million n-grams in them,
/// theirs resets at one million.
inline TokenTableOptions llama_cpp_mod_table(std::uint32_t n = 24) noexcept { return {.ngram = n}; }

/// llama.cpp's ngram-mod (--spec-ngram-mod-n-min, --spec-ngram-mod-n-max): chains that break off before n_min are
/// dropped; the prompt is learned at once, output in pieces, the anchor later. A sequence rests after five rounds below
/// a quarter, where theirs resets (three below a half as first published). Room for n_max nodes has to be asked for:
/// Limits::draft and Session have 32 by default, and send so much of each draft.
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

/// mlx-lm's ngram-mod (--num-draft-tokens): chains of any length, the anchor is learned with the rest. A sequence rests
/// after three rounds below a half, where theirs resets.
inline TokenTableDrafterOptions mlx_lm_mod(TokenTable* learn_into, std::size_t draft_length = 3) noexcept {
  TokenTableDrafterOptions options;
  options.max_draft = draft_length;
  options.learn_into = learn_into;
  options.learn_gap = 32;
  options.poor_rounds = 3;
  options.poor_share = Probability::ratio(1, 2);
  return options;
}

/// mlx-lm's adaptive gate (PR 1297), which it puts before all its lookups: no drafts for prompts of whose 3-grams fewer
/// than 2% occurred before. GateOverride::open is its disable_adaptive_gate of a request.
inline RepetitionGateOptions mlx_lm_gate() noexcept { return {}; }

}  // namespace reprise::presets
