// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "reprise/core/token.hpp"

/// \file The drafts of the systems that reprise::presets imitates, written from their own sources as plain loops over
/// the context. They use no index, and nothing of the library but Token. The presets are compared with them.
namespace reprise::testing {

using Tokens = std::vector<Token>;

/// True if the `n` tokens at `a` equal the `n` tokens at `b`.
inline bool same(const Tokens& context, std::size_t a, std::size_t b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (context[a + i] != context[b + i]) return false;
  return true;
}

/// Returns at most `count` tokens from `begin` on.
inline Tokens copy(const Tokens& context, std::size_t begin, std::size_t count) {
  Tokens copied;
  for (std::size_t i = begin; i < context.size() && copied.size() < count; ++i) copied.push_back(context[i]);
  return copied;
}

/// Prompt lookup decoding (Saxena 2023). For n, n - 1, ... 1 it takes the first place from the left that equals the
/// last n tokens, does not touch them, and has k tokens after it.
inline Tokens pld(const Tokens& context, std::size_t n, std::size_t k) {
  const std::size_t size = context.size();
  for (; n > 0; --n)
    for (std::size_t i = 0; i + n < size; ++i)
      if (same(context, i, size - n, n) && i + n + k <= size && i + n < size - n) return copy(context, i + n, k);
  return {};
}

/// Hugging Face transformers, PromptLookupCandidateGenerator: the first place with at least one token after it.
inline Tokens hugging_face(const Tokens& context, std::size_t n, std::size_t k) {
  const std::size_t size = context.size();
  for (; n > 0; --n)
    for (std::size_t i = 0; i + n < size; ++i)
      if (same(context, i, size - n, n)) return copy(context, i + n, k);
  return {};
}

/// vLLM, NgramProposer: the longest n from `longest` down to `shortest` that occurs earlier, at its first occurrence.
inline Tokens vllm(const Tokens& context, std::size_t shortest, std::size_t longest, std::size_t k) {
  const std::size_t size = context.size();
  for (std::size_t n = longest; n >= shortest && n > 0; --n)
    for (std::size_t i = 0; i + n < size; ++i)
      if (same(context, i, size - n, n)) return copy(context, i + n, k);
  return {};
}

/// llama.cpp, common_ngram_simple_draft. `history` is the context without its last token, which is the last token of
/// the pattern. Place 0 is never used, and only the first hit from the right counts.
inline Tokens ngram_simple(const Tokens& context, std::size_t n, std::size_t m) {
  if (context.empty()) return {};
  const Tokens history(context.begin(), context.end() - 1);
  const std::size_t size = history.size();
  if (size <= n + m + 1) return {};
  Tokens pattern(history.end() - static_cast<std::ptrdiff_t>(n - 1), history.end());
  pattern.push_back(context.back());
  for (std::size_t j = size - n - 1; j > 0; --j) {
    if (!std::equal(pattern.begin(), pattern.end(), history.begin() + static_cast<std::ptrdiff_t>(j))) continue;
    const std::size_t count = std::min(m, size - (j + n));
    return count < n ? Tokens() : copy(history, j + n, count);
  }
  return {};
}

/// ds4: the last place that equals the last n tokens. The copy ends after an end-of-sequence token.
inline Tokens ds4(const Tokens& context, std::size_t n, std::size_t k, std::optional<Token> eos = {}) {
  const std::size_t size = context.size();
  if (size <= n) return {};
  for (std::size_t i = size - n; i-- > 0;) {
    if (!same(context, i, size - n, n)) continue;
    Tokens copied = copy(context, i + n, k);
    const auto end = eos ? std::find(copied.begin(), copied.end(), *eos) : copied.end();
    if (end != copied.end()) copied.erase(end + 1, copied.end());
    return copied;
  }
  return {};
}

/// The rule of peers::AdaptiveLookup under a cost of a row. It scans the whole context.
struct AdaptiveRule {
  double cost;
  std::vector<double> rates = {.3, .4, .5, .6, .7, .8};
  std::size_t range = 0;

  [[nodiscard]] double rate() const { return rates[range]; }
  Tokens draft(const Tokens& context) {
    const std::size_t size = context.size();
    std::size_t best = 0;
    std::size_t end = 0;
    for (std::size_t to = 1; to < size; ++to) {  // the match ends before `to`
      std::size_t n = 0;
      while (n < 16 && n < to && context[to - 1 - n] == context[size - 1 - n]) ++n;
      if (n > 0 && n >= best) best = n, end = to;
    }
    if (best == 0) return {};
    range = best < 4 ? best - 1 : best < 6 ? 3 : best < 9 ? 4 : 5;
    std::size_t count = 0;
    for (double likely = rate(); count < 31 && likely > cost; likely *= rate()) ++count;
    return copy(context, end, count);
  }
  void learn(std::size_t drafted, std::size_t accepted) {
    for (std::size_t i = 0; i < accepted + 1 && i < drafted; ++i)
      rates[range] = std::clamp(rates[range] * .97 + (i < accepted ? .03 : 0), .02, .985);
  }
};

/// The ngram-mod of llama.cpp (common_speculative_impl_ngram_mod) and of mlx-lm (NgramModStrategy): chains the token
/// that last followed n tokens. A map replaces their table, so it has neither collisions nor resets.
struct NgramMod {
  std::size_t n;
  std::size_t n_min;
  std::size_t n_max;
  bool without_anchor;  // llama.cpp's history excludes the sampled token, mlx-lm's includes it
  std::map<Tokens, Token> table = {};
  std::size_t i_last = 0;

  [[nodiscard]] Tokens history(const Tokens& context) const {
    return {context.begin(), context.end() - (without_anchor ? 1 : 0)};
  }
  void add(const Tokens& history, std::size_t end) {
    for (std::size_t i = i_last; i < end; ++i) table[copy(history, i, n)] = history[i + n];
    i_last = end;
  }
  void begin(const Tokens& context) {
    const Tokens prompt = history(context);
    i_last = 0;
    if (prompt.size() >= n) add(prompt, prompt.size() - n);
  }
  Tokens draft(const Tokens& context) {
    const Tokens past = history(context);
    if (past.size() < n) return {};
    if (i_last + 32 < past.size()) add(past, past.size() - n);
    Tokens result = copy(context, context.size() - n, n);
    for (std::size_t i = 0; i < n_max; ++i) {
      const auto found = table.find(copy(result, i, n));
      if (found == table.end()) {
        if (i < n_min) return {};
        break;
      }
      result.push_back(found->second);
    }
    return copy(result, n, n_max);
  }
};

}  // namespace reprise::testing
