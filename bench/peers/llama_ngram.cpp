// SPDX-License-Identifier: Apache-2.0
// The n-gram methods by the code of llama.cpp, with its default settings. The calls are those of common/speculative.cpp
// or of examples/lookup, which need the whole library; they are written anew here.
#include <common.h>
#include <log.h>
#include <ngram-cache.h>
#include <ngram-map.h>
#include <ngram-mod.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "drafting_time.hpp"

// What the n-gram code needs of the library: a log that stays empty, a clock for progress messages, and a way out.
int common_log_get_verbosity_thold() { return -1; }
common_log* common_log_main() { return nullptr; }
void common_log_add(common_log*, ggml_log_level, const char*, ...) {}
int64_t ggml_time_ms() { return 0; }
void ggml_abort(const char*, int, const char*, ...) { std::abort(); }

namespace reprise::bench {
namespace {

/// Keeps the text as the functions of llama.cpp want it: all tokens but the last, and the last.
class LlamaMethod : public Method {
 public:
  void begin_turn(TokenSpan prompt, Token first) override {
    if (!begun_) text_.clear();
    if (begun_) text_.push_back(last_);
    begun_ = true;
    text_.insert(text_.end(), prompt.begin(), prompt.end());
    last_ = first;
    begin();
  }
  TokenSpan propose() override {
    draft_.clear();
    draft();
    return draft_;
  }
  void commit(TokenSpan tokens, std::size_t accepted) override {
    if (!draft_.empty()) learn(accepted);
    for (const Token token : tokens) {
      text_.push_back(last_);
      last_ = token;
    }
  }

 protected:
  virtual void begin() {}
  virtual void draft() = 0;
  virtual void learn(std::size_t) {}

  llama_tokens text_;
  Token last_ = 0;
  llama_tokens draft_;

 private:
  bool begun_ = false;
};

class NgramSimple : public LlamaMethod {
  void draft() override { draft_ = common_ngram_simple_draft(config_, text_, last_); }

  common_ngram_simple_config config_{12, 48};
};

class NgramMap : public LlamaMethod {
 public:
  explicit NgramMap(bool key_only) : map_(12, 48, key_only, 1) {}

 private:
  void begin() override { common_ngram_map_begin(map_, text_); }
  void draft() override { common_ngram_map_draft(map_, text_, last_, draft_); }
  void learn(std::size_t accepted) override { common_ngram_map_accept(map_, static_cast<std::uint16_t>(accepted)); }

  common_ngram_map map_;
};

/// A table from 24 tokens to the next one. A draft has 48 to 64 tokens, or none. New text enters the table in pieces of
/// more than 8 tokens. Five drafts in a row of which less than a quarter was accepted empty the table.
class NgramMod : public LlamaMethod {
  static constexpr std::size_t n = 24;
  static constexpr std::size_t least = 48;
  static constexpr std::size_t most = 64;

  void begin() override {
    added_ = 0;
    add();
  }
  void draft() override {
    if (text_.size() < n) return;
    if (added_ + 32 < text_.size()) add();
    draft_.assign(text_.end() - (n - 1), text_.end());
    draft_.push_back(last_);
    while (draft_.size() < n + most) {
      const llama_token next = table_.get(&draft_[draft_.size() - n]);
      if (next == common_ngram_mod::EMPTY) break;
      draft_.push_back(next);
    }
    draft_.erase(draft_.begin(), draft_.begin() + n);
    if (draft_.size() < least) draft_.clear();
  }
  void learn(std::size_t accepted) override {
    low_ = accepted * 4 < draft_.size() ? low_ + 1 : 0;
    if (low_ < 5) return;
    table_.reset();
    low_ = 0;
    added_ = 0;
  }
  void add() {
    for (; added_ + n < text_.size(); ++added_) table_.add(&text_[added_]);
  }

  common_ngram_mod table_{n, std::size_t{4} << 20};
  std::size_t added_ = 0;
  int low_ = 0;
};

/// As in examples/lookup, where n-grams may begin before the new tokens. Drafts have at most 8 tokens, as in the
/// server.
class NgramCache : public LlamaMethod {
  void begin() override { complete(); }
  void draft() override {
    complete();
    draft_.push_back(last_);
    common_ngram_cache_draft(all_, draft_, 8, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, cache_, none_, none_);
    draft_.erase(draft_.begin());
  }
  /// Enters the tokens that came since the last call.
  void complete() {
    const std::size_t known = all_.size();
    if (known < text_.size()) all_.insert(all_.end(), text_.begin() + static_cast<std::ptrdiff_t>(known), text_.end());
    if (all_.size() == text_.size()) all_.push_back(last_);
    common_ngram_cache_update(cache_, LLAMA_NGRAM_MIN, LLAMA_NGRAM_MAX, all_, static_cast<int>(all_.size() - known),
                              false);
  }

  llama_tokens all_;  // the text with its last token
  common_ngram_cache cache_;
  common_ngram_cache none_;
};

}  // namespace

std::vector<MethodRow> llama_rows() {
  return {
      {"llama.cpp ngram-simple", [] { return std::make_unique<NgramSimple>(); }},
      {"llama.cpp ngram-map-k", [] { return std::make_unique<NgramMap>(true); }},
      {"llama.cpp ngram-map-k4v", [] { return std::make_unique<NgramMap>(false); }},
      {"llama.cpp ngram-mod", [] { return std::make_unique<NgramMod>(); }},
      {"llama.cpp ngram-cache (8)", [] { return std::make_unique<NgramCache>(); }},
  };
}

}  // namespace reprise::bench
