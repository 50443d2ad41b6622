// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <typeinfo>
#include <utility>
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
  virtual void reset() {}
  [[nodiscard]] virtual std::unique_ptr<llama_sampler> clone() const = 0;
  virtual void copy_from(const llama_sampler& other) = 0;
};

namespace {

/// The functions that are the same for all samplers.
template <class Self>
struct Sampler : llama_sampler {
  [[nodiscard]] std::unique_ptr<llama_sampler> clone() const override {
    auto copy = std::make_unique<Self>(static_cast<const Self&>(*this));
    if (settings().fault == Fault::clone_forgets) copy->reset();
    return copy;
  }
  void copy_from(const llama_sampler& other) override { static_cast<Self&>(*this) = static_cast<const Self&>(other); }
};

void sort_first(llama_token_data_array& tokens, std::size_t count) {
  if (tokens.sorted) return;
  std::partial_sort(tokens.data, tokens.data + count, tokens.data + tokens.size,
                    [](const llama_token_data& a, const llama_token_data& b) { return a.logit > b.logit; });
  tokens.sorted = true;
}
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
    tokens.sorted = false;
  }
  void reset() override { odd_ = false; }

 private:
  const llama_vocab* vocab_;
  bool odd_ = false;
};

/// Draws one number each time, even if no token is left.
struct Dist : Sampler<Dist> {
  explicit Dist(std::uint32_t seed) : seed_(seed), engine_(seed) {}
  void apply(llama_token_data_array& tokens) override {
    tokens.selected = -1;
    if (tokens.size == 0) return;
    const double target = weigh(tokens) * std::uniform_real_distribution<double>(0, 1)(engine_);
    double sum = 0;
    for (tokens.selected = 0; tokens.selected + 1 < static_cast<std::int64_t>(tokens.size); ++tokens.selected)
      if ((sum += static_cast<double>(tokens.data[tokens.selected].p)) >= target) break;
  }
  void reset() override { engine_.seed(seed_); }

  std::uint32_t seed_;
  std::mt19937 engine_;
};

struct TopK : Sampler<TopK> {
  explicit TopK(std::int32_t k) : k_(k) {}
  void apply(llama_token_data_array& tokens) override {
    if (k_ <= 0) return;
    const std::size_t k = std::min(static_cast<std::size_t>(k_), tokens.size);
    sort_first(tokens, k);
    tokens.size = k;
  }
  std::int32_t k_;
};

struct TopP : Sampler<TopP> {
  TopP(float p, std::size_t min_keep) : p_(p), min_keep_(min_keep) {}
  void apply(llama_token_data_array& tokens) override {
    if (p_ >= 1) return;
    sort_first(tokens, tokens.size);
    const double target = weigh(tokens) * static_cast<double>(p_);
    double sum = 0;
    for (std::size_t i = 0; i < tokens.size; ++i)
      if ((sum += static_cast<double>(tokens.data[i].p)) >= target && i + 1 >= min_keep_) tokens.size = i + 1;
  }
  float p_;
  std::size_t min_keep_;
};

struct MinP : Sampler<MinP> {
  MinP(float p, std::size_t min_keep) : p_(p), min_keep_(min_keep) {}
  void apply(llama_token_data_array& tokens) override {
    if (p_ <= 0 || tokens.size == 0) return;
    sort_first(tokens, tokens.size);
    const float least = tokens.data[0].logit + std::log(p_);
    std::size_t kept = 1;
    while (kept < tokens.size && (tokens.data[kept].logit >= least || kept < min_keep_)) ++kept;
    tokens.size = kept;
  }
  float p_;
  std::size_t min_keep_;
};

struct Temperature : Sampler<Temperature> {
  explicit Temperature(float t) : t_(t) {}
  void apply(llama_token_data_array& tokens) override {
    if (t_ > 0) {
      for (std::size_t i = 0; i < tokens.size; ++i) tokens.data[i].logit /= t_;
      return;
    }
    const float most = highest(tokens);
    bool found = false;
    for (std::size_t i = 0; i < tokens.size; ++i) {
      if (!found && tokens.data[i].logit >= most)
        found = true;
      else
        tokens.data[i].logit = -std::numeric_limits<float>::infinity();
    }
  }
  float t_;
};

struct Penalties : Sampler<Penalties> {
  Penalties(std::int32_t last_n, float repeat, float freq, float present)
      : last_n_(static_cast<std::size_t>(std::max(last_n, 0))), repeat_(repeat), freq_(freq), present_(present) {}
  void accept(llama_token token) override {
    accepted_.push_back(token);
    if (accepted_.size() > last_n_) accepted_.pop_front();
  }
  void apply(llama_token_data_array& tokens) override {
    for (std::size_t i = 0; i < tokens.size; ++i) {
      const auto count = std::count(accepted_.begin(), accepted_.end(), tokens.data[i].id);
      if (count == 0) continue;
      float& logit = tokens.data[i].logit;
      logit = logit <= 0 ? logit * repeat_ : logit / repeat_;
      logit -= static_cast<float>(count) * freq_ + present_;
    }
    tokens.sorted = false;
  }
  void reset() override { accepted_.clear(); }

  std::size_t last_n_;
  float repeat_, freq_, present_;
  std::deque<llama_token> accepted_;
};

struct Chain : llama_sampler {
  void accept(llama_token token) override {
    for (const auto& sampler : samplers_) sampler->accept(token);
  }
  void apply(llama_token_data_array& tokens) override {
    for (const auto& sampler : samplers_) sampler->apply(tokens);
  }
  void reset() override {
    for (const auto& sampler : samplers_) sampler->reset();
  }
  [[nodiscard]] std::unique_ptr<llama_sampler> clone() const override {
    auto copy = std::make_unique<Chain>();
    for (const auto& sampler : samplers_) copy->samplers_.push_back(sampler->clone());
    return copy;
  }
  void copy_from(const llama_sampler& other) override {
    const auto& chain = static_cast<const Chain&>(other);
    expects(chain.samplers_.size() == samplers_.size(), "src_chain->samplers.size() == dst_chain->samplers.size()");
    for (std::size_t i = 0; i < samplers_.size(); ++i) llama_sampler_copy(chain.samplers_[i].get(), samplers_[i].get());
  }
  std::vector<std::unique_ptr<llama_sampler>> samplers_;
};

}  // namespace

void llama_sampler_accept(llama_sampler* smpl, llama_token token) {
  if (smpl != nullptr) smpl->accept(token);
}
void llama_sampler_apply(llama_sampler* smpl, llama_token_data_array* cur_p) {
  if (smpl != nullptr) smpl->apply(*cur_p);
}
void llama_sampler_reset(llama_sampler* smpl) {
  if (smpl != nullptr) smpl->reset();
}
llama_sampler* llama_sampler_clone(const llama_sampler* smpl) {
  return smpl == nullptr || settings().fault == Fault::no_clone ? nullptr : smpl->clone().release();
}
void llama_sampler_copy(const llama_sampler* src, llama_sampler* dst) {
  if (src == nullptr || dst == nullptr || src == dst) return;
  expects(typeid(*src) == typeid(*dst), "src->iface == dst->iface");
  dst->copy_from(*src);
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
llama_sampler* llama_sampler_init_top_k(std::int32_t k) { return new TopK(k); }
llama_sampler* llama_sampler_init_top_p(float p, std::size_t min_keep) { return new TopP(p, min_keep); }
llama_sampler* llama_sampler_init_min_p(float p, std::size_t min_keep) { return new MinP(p, min_keep); }
llama_sampler* llama_sampler_init_temp(float t) { return new Temperature(t); }
llama_sampler* llama_sampler_init_penalties(std::int32_t, std::int32_t penalty_last_n, float penalty_repeat,
                                            float penalty_freq, float penalty_present) {
  return new Penalties(penalty_last_n, penalty_repeat, penalty_freq, penalty_present);
}

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
  llama_sampler_accept(smpl, token);
  return token;
}
// NOLINTEND(readability-identifier-naming,bugprone-easily-swappable-parameters)
