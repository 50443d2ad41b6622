// SPDX-License-Identifier: Apache-2.0
// An engine with an API like llama.cpp's: batches of (token, position, wants logits), a memory that removes ranges of
// positions, errors as return codes. The API here is a stand-in with the same shape.
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "toy.hpp"

namespace {

struct Batch {
  std::vector<reprise::Token> token;
  std::vector<std::size_t> position;
  std::vector<bool> logits;
};

class Context {
 public:
  static constexpr std::size_t n_vocab = 11;

  int decode(const Batch& batch) {
    logits_.clear();
    for (std::size_t i = 0; i < batch.token.size(); ++i) {
      if (batch.position[i] != memory_.size()) return 1;  // a gap in the memory
      memory_.push_back(batch.token[i]);
      if (!batch.logits[i]) continue;
      logits_.resize(logits_.size() + n_vocab, 0.0F);
      logits_[logits_.size() - n_vocab + static_cast<std::size_t>(toy::next(memory_))] = 1.0F;
    }
    return 0;
  }
  [[nodiscard]] std::span<const float> logits(std::size_t output) const {
    return std::span(logits_).subspan(output * n_vocab, n_vocab);
  }
  void memory_remove_from(std::size_t position) { memory_.resize(std::min(memory_.size(), position)); }

 private:
  std::vector<reprise::Token> memory_;
  std::vector<float> logits_;
};

// [sketch]
class Engine {
 public:
  Engine(Context context, reprise::TokenSpan prompt) : context_(std::move(context)) {
    if (prompt.size() > 1) static_cast<void>(run(prompt.first(prompt.size() - 1), 0));
    cached_ = prompt.size() - 1;  // all but the last: it is the anchor of the first pass
  }

  reprise::Result<std::span<const reprise::Token>> verify(reprise::TokenSpan batch, std::size_t drafted) {
    context_.memory_remove_from(cached_);  // V5: drops the rows of a pass that was never committed
    if (run(batch, drafted + 1) != 0)
      return reprise::Error{reprise::ErrorCode::verifier_failed, "decode() failed: no room in the memory"};
    picks_.clear();  // V2: output 0 belongs to the anchor's row, the first row with logits
    for (std::size_t i = 0; i <= drafted; ++i) {
      const auto logits = context_.logits(i);
      picks_.push_back(static_cast<reprise::Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    }
    return std::span<const reprise::Token>(picks_);
  }
  void commit(std::size_t keep) {
    cached_ += keep;
    context_.memory_remove_from(cached_);  // V4: forgets the rejected rows
  }
  [[nodiscard]] reprise::Capabilities capabilities() const {
    return {.max_rows = 512, .max_context = 4096};  // n_batch, n_ctx
  }

 private:
  /// One decode() at the end of the memory; the last `outputs` rows want logits.
  int run(reprise::TokenSpan tokens, std::size_t outputs) {
    batch_ = {};
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      batch_.token.push_back(tokens[i]);
      batch_.position.push_back(cached_ + i);  // V1: positions go on from the rows in the memory
      batch_.logits.push_back(i + outputs >= tokens.size());
    }
    return context_.decode(batch_);
  }

  Context context_;
  Batch batch_;
  std::vector<reprise::Token> picks_;
  std::size_t cached_ = 0;  // committed rows in the memory
};
// [/sketch]

}  // namespace

int main() {
  return toy::check([](reprise::TokenSpan prompt) { return Engine(Context(), prompt); });
}
