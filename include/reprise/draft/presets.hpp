// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/core/token.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"

/// \file Settings with which PromptLookupDrafter drafts exactly the tokens that other systems draft. They serve as
/// baselines for comparisons, and as a first step in a migration. L is the length of the context, anchor included.
namespace reprise::inline v0::presets {

/// Returns the common settings: look up every n-gram length from `min_ngram` to `max_ngram`, and copy after the
/// earliest occurrence. A copy stops at the end of the context. PromptLookupDrafter::make() accepts at most 8 lengths.
inline PromptLookupOptions lookup(std::uint32_t min_ngram, std::uint32_t max_ngram, std::size_t draft_length) noexcept {
  PromptLookupOptions options;
  options.min_ngram = min_ngram;
  options.max_ngram = max_ngram;
  options.extend = false;
  options.occurrence = PromptLookupOptions::Occurrence::earliest;
  options.candidates = 1;
  options.draft_length = draft_length;
  options.copy_past_end = false;
  return options;
}

/// Prompt lookup decoding as first published (Saxena 2023): tries lengths from n down to 1. Uses the earliest
/// occurrence that ends more than its own length before L and is followed by `draft_length` tokens. Copies exactly that
/// many tokens.
inline PromptLookupOptions prompt_lookup(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  PromptLookupOptions options = lookup(1, n, draft_length);
  options.conditions.apart = true;
  options.conditions.min_copy = draft_length;
  return options;
}

/// Hugging Face transformers, prompt_lookup_num_tokens: like prompt_lookup() without its two conditions, so a copy that
/// reaches L may be shorter.
inline PromptLookupOptions hugging_face(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  return lookup(1, n, draft_length);
}

/// vLLM's ngram proposer (prompt_lookup_min, prompt_lookup_max, num_speculative_tokens): uses the longest n-gram that
/// occurs earlier, at its earliest occurrence.
inline PromptLookupOptions vllm(std::uint32_t min_ngram = 2, std::uint32_t max_ngram = 5,
                                std::size_t draft_length = 5) noexcept {
  return lookup(min_ngram, max_ngram, draft_length);
}

/// llama.cpp's ngram-simple: uses the most recent occurrence of the last n tokens, unless it is at the very beginning.
/// The occurrence and the copy lie in the context without its anchor. Drafts nothing if fewer than n tokens follow the
/// occurrence, if `draft_length` is below n, or if L is below n + draft_length + 3.
inline PromptLookupOptions llama_cpp_simple(std::uint32_t n = 3, std::size_t draft_length = 10) noexcept {
  PromptLookupOptions options = lookup(n, n, draft_length < n ? 0 : draft_length);
  options.occurrence = PromptLookupOptions::Occurrence::most_recent;
  options.candidates = 2;  // the most recent one may be too close
  options.conditions.min_context = n + draft_length + 3;
  options.conditions.min_distance = 2;
  options.conditions.min_copy = n;
  options.conditions.without_anchor = true;
  options.conditions.never_from_start = true;
  return options;
}

/// ds4: uses the most recent occurrence of the last n tokens; the copy ends after `eos`, if it is given.
inline PromptLookupOptions ds4(std::uint32_t n = 4, std::size_t draft_length = 7,
                               std::optional<Token> eos = {}) noexcept {
  PromptLookupOptions options = lookup(n, n, draft_length);
  options.occurrence = PromptLookupOptions::Occurrence::most_recent;
  options.conditions.cut_after = eos;
  return options;
}

}  // namespace reprise::presets
