// SPDX-License-Identifier: Apache-2.0
// Suffix decoding by the code of ArcticInference. The two trees and the choice between their drafts are as in its class
// SuffixDecodingCache, which is written in Python. Its time is not included.
#include <suffix_tree.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "drafting_time.hpp"

namespace reprise::bench {
namespace {

class Arctic : public Method {
 public:
  /// `answers` holds the answers of past sessions, if any.
  Arctic(int depth, std::shared_ptr<SuffixTree> answers)
      : depth_(depth), sequence_(answers->num_seqs()), local_(depth), global_(std::move(answers)) {}

  void begin_turn(TokenSpan prompt, Token first) override {
    local_.extend(0, prompt);
    remember(prompt);
    answer({&first, 1});
  }
  TokenSpan propose() override {
    const TokenSpan end = TokenSpan(text_).last(std::min<std::size_t>(text_.size(), static_cast<std::size_t>(depth_)));
    // The defaults of vLLM: as many tokens as were matched, each with a probability of at least 0.1.
    draft_ = local_.speculate(end, depth_, 1, 0, 0.1F, false);
    ::Draft other = global_->speculate(end, depth_, 1, 0, 0.1F, false);
    if (other.score > draft_.score) draft_ = std::move(other);
    return draft_.token_ids;
  }
  void commit(TokenSpan tokens, std::size_t) override { answer(tokens); }

 private:
  void answer(TokenSpan tokens) {
    local_.extend(0, tokens);
    global_->extend(sequence_, tokens);
    remember(tokens);
  }
  void remember(TokenSpan tokens) { text_.insert(text_.end(), tokens.begin(), tokens.end()); }

  int depth_;
  int sequence_;
  SuffixTree local_;                    // the prompts and answers of this session
  std::shared_ptr<SuffixTree> global_;  // the answers
  ::Draft draft_;
  std::vector<Token> text_;
};

}  // namespace

std::vector<MethodRow> arctic_rows() {
  const auto fresh = [](int depth) { return std::make_unique<Arctic>(depth, std::make_shared<SuffixTree>(depth)); };
  const auto past = std::make_shared<SuffixTree>(24);
  return {
      {"Arctic, depth 24", [fresh] { return fresh(24); }},
      {"Arctic, depth 64", [fresh] { return fresh(64); }},
      {"Arctic, depth 24, with past answers", [past] { return std::make_unique<Arctic>(24, past); }},
  };
}

}  // namespace reprise::bench
