// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "model.hpp"

// NOLINTBEGIN(readability-identifier-naming,bugprone-easily-swappable-parameters): llama.cpp's names
using namespace reprise::llama_stand_in;

struct llama_sampler {
  llama_sampler() { ++settings().samplers; }
  llama_sampler(const llama_sampler&) { ++settings().samplers; }
  llama_sampler& operator=(const llama_sampler&) = default;
  virtual ~llama_sampler() { --settings().samplers; }
  virtual void accept(llama_token) {}
  virtual void apply(llama_token_data_array& tokens) = 0;
  [[nodiscard]] virtual std::unique_ptr<llama_sampler> clone() const = 0;
};

namespace {

template <class Self>
struct Sampler : llama_sampler {
  [[nodiscard]] std::unique_ptr<llama_sampler> clone() const override {
    return std::make_unique<Self>(static_cast<const Self&>(*this));
  }
};

float highest(const llama_token_data_array& tokens) {
  float most = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < tokens.size; ++i) most = std::max(most, tokens.data[i].logit);
  return most;
}
double weigh(llama_token_data_array& tokens) {
  const float most = highest(tokens);
  double sum = 0;
  for (std::size_t i = 0; i < tokens.size; ++i)
    sum += static_cast<double>(tokens.data[i].p = std::exp(tokens.data[i].logit - most));
  return sum;
}

struct Greedy : Sampler<Greedy> {
  void apply(llama_token_data_array& tokens) override {
    tokens.selected = 0;
    for (std::size_t i = 1; i < tokens.size; ++i)
      if (tokens.data[i].logit > tokens.data[tokens.selected].logit) tokens.selected = static_cast<std::int64_t>(i);
  }
};

/// The only grammar of the stand-in: even and odd token ids take turns. End tokens are allowed anywhere.
struct Grammar : Sampler<Grammar> {
  explicit Grammar(const llama_vocab* vocab) : vocab_(vocab) {}
  void accept(llama_token) override { odd_ = !odd_; }
  void apply(llama_token_data_array& tokens) override {
    for (std::size_t i = 0; i < tokens.size; ++i)
      if ((tokens.data[i].id % 2 == 1) != odd_ && !llama_vocab_is_eog(vocab_, tokens.data[i].id))
        tokens.data[i].logit = -std::numeric_limits<float>::infinity();
  }

 private:
  const llama_vocab* vocab_;
  bool odd_ = false;
};

/// Draws one number each time, even if no token is left.
struct Dist : Sampler<Dist> {
  explicit Dist(std::uint32_t seed) : engine_(seed) {}
  void apply(llama_token_data_array& tokens) override {
    tokens.selected = -1;
    if (tokens.size == 0) return;
    const double target = weigh(tokens) * std::uniform_real_distribution<double>(0, 1)(engine_);
    double sum = 0;
    for (tokens.selected = 0; tokens.selected + 1 < static_cast<std::int64_t>(tokens.size); ++tokens.selected)
      if ((sum += static_cast<double>(tokens.data[tokens.selected].p)) >= target) break;
  }
  std::mt19937 engine_;
};

/// Top-k, top-p and min-p, which leave out nothing here.
struct CutNothing : Sampler<CutNothing> {
  void apply(llama_token_data_array&) override {}
};

struct Temperature : Sampler<Temperature> {
  explicit Temperature(float t) : t_(t) {}
  void apply(llama_token_data_array& tokens) override {
    for (std::size_t i = 0; i < tokens.size; ++i) tokens.data[i].logit /= t_;
  }
  float t_;
};

struct Chain : llama_sampler {
  void accept(llama_token token) override {
    for (const auto& sampler : samplers_) sampler->accept(token);
  }
  void apply(llama_token_data_array& tokens) override {
    for (const auto& sampler : samplers_) sampler->apply(tokens);
  }
  [[nodiscard]] std::unique_ptr<llama_sampler> clone() const override {
    auto copy = std::make_unique<Chain>();
    for (const auto& sampler : samplers_) copy->samplers_.push_back(sampler->clone());
    return copy;
  }
  std::vector<std::unique_ptr<llama_sampler>> samplers_;
};

}  // namespace

void llama_sampler_apply(llama_sampler* smpl, llama_token_data_array* cur_p) {
  if (smpl != nullptr) smpl->apply(*cur_p);
}
llama_sampler* llama_sampler_clone(const llama_sampler* smpl) {
  return smpl == nullptr || settings().fault == Fault::no_clone ? nullptr : smpl->clone().release();
}
void llama_sampler_free(llama_sampler* smpl) { delete smpl; }
llama_sampler_chain_params llama_sampler_chain_default_params() { return {true}; }
llama_sampler* llama_sampler_chain_init(llama_sampler_chain_params) { return new Chain; }
void llama_sampler_chain_add(llama_sampler* chain, llama_sampler* smpl) {
  static_cast<Chain*>(chain)->samplers_.emplace_back(smpl);
}
llama_sampler* llama_sampler_init_greedy() { return new Greedy; }
llama_sampler* llama_sampler_init_dist(std::uint32_t seed) {
  return new Dist(seed == LLAMA_DEFAULT_SEED ? std::random_device()() : seed);
}
llama_sampler* llama_sampler_init_top_k(std::int32_t) { return new CutNothing; }
llama_sampler* llama_sampler_init_top_p(float, std::size_t) { return new CutNothing; }
llama_sampler* llama_sampler_init_min_p(float, std::size_t) { return new CutNothing; }
llama_sampler* llama_sampler_init_temp(float t) { return new Temperature(t); }
llama_sampler* llama_sampler_init_grammar(const llama_vocab* vocab, const char* grammar_str, const char*) {
  return std::string_view(grammar_str).starts_with("alternate") ? new Grammar(vocab) : nullptr;
}
llama_token llama_sampler_sample(llama_sampler* smpl, llama_context* ctx, std::int32_t idx) {
  const float* logits = llama_get_logits_ith(ctx, idx);
  expects(logits != nullptr, "logits != nullptr");
  const std::int32_t size = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
  std::vector<llama_token_data> data(static_cast<std::size_t>(size));
  for (llama_token token = 0; token < size; ++token) data[static_cast<std::size_t>(token)] = {token, logits[token], 0};
  llama_token_data_array tokens{data.data(), data.size(), -1, false};
  llama_sampler_apply(smpl, &tokens);
  expects(tokens.selected >= 0 && tokens.selected < static_cast<std::int64_t>(tokens.size),
          "cur_p.selected >= 0 && cur_p.selected < (int32_t) cur_p.size");
  const llama_token token = tokens.data[tokens.selected].id;
  smpl->accept(token);
  return token;
}
// NOLINTEND(readability-identifier-naming,bugprone-easily-swappable-parameters)
