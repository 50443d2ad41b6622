// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <llama.h>

#include <cstdint>
#include <memory>
#include <string>

namespace reprise::llama {

/// The sampling settings. The order is that of llama.cpp: grammar, top-k, top-p, min-p, temperature, draw. The three
/// cuts have its defaults.
struct Sampling {
  double temperature = 0;  ///< 0: always the likeliest token
  std::uint32_t seed = 1;
  std::string grammar = {};  ///< in GBNF, with the rule "root"; empty: none

  [[nodiscard]] bool drawn() const { return temperature > 0; }
  /// True if picks are the argmax of the unchanged logits, so that no sampler is needed.
  [[nodiscard]] bool plain() const { return !drawn() && grammar.empty(); }
};

struct FreeSampler {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using SamplerOwner = std::unique_ptr<llama_sampler, FreeSampler>;

/// Returns true if llama.cpp can read the grammar, or if there is none.
inline bool readable_grammar(const Sampling& sampling, const llama_vocab* vocab) {
  if (sampling.grammar.empty()) return true;
  return SamplerOwner(llama_sampler_init_grammar(vocab, sampling.grammar.c_str(), "root")) != nullptr;
}

/// A new sampler chain at the start of its random stream; null if the likeliest token is always taken. Requires
/// readable_grammar().
inline SamplerOwner make_sampler(const Sampling& sampling, const llama_vocab* vocab) {
  if (sampling.plain()) return nullptr;
  SamplerOwner chain(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [&](llama_sampler* sampler) { llama_sampler_chain_add(chain.get(), sampler); };
  if (!sampling.grammar.empty()) add(llama_sampler_init_grammar(vocab, sampling.grammar.c_str(), "root"));
  if (sampling.drawn()) {
    add(llama_sampler_init_top_k(40));
    add(llama_sampler_init_top_p(0.95F, 1));
    add(llama_sampler_init_min_p(0.05F, 1));
    add(llama_sampler_init_temp(static_cast<float>(sampling.temperature)));
    add(llama_sampler_init_dist(sampling.seed));
  } else {
    add(llama_sampler_init_greedy());
  }
  return chain;
}

}  // namespace reprise::llama
