// SPDX-License-Identifier: Apache-2.0
// An engine with two operations: evaluate tokens, and rewind to an earlier length. No other is needed.
#include <cstddef>
#include <vector>

#include "reprise/core/token.hpp"
#include "toy.hpp"

namespace {

/// Such an engine. Logits for one token at a time would work too, but would not be faster.
class Model {
 public:
  std::vector<reprise::Token> evaluate(reprise::TokenSpan tokens) {
    std::vector<reprise::Token> best;
    for (const reprise::Token token : tokens) {
      text_.push_back(token);
      best.push_back(toy::next(text_));
    }
    return best;
  }
  void rewind(std::size_t length) { text_.resize(length); }
  [[nodiscard]] std::size_t length() const { return text_.size(); }

 private:
  std::vector<reprise::Token> text_;
};

// [sketch]
class Engine {
 public:
  Engine(Model model, reprise::TokenSpan prompt) : model_(std::move(model)) {
    static_cast<void>(model_.evaluate(prompt.first(prompt.size() - 1)));
    committed_ = model_.length();
  }
  std::vector<reprise::Token> verify(reprise::TokenSpan batch, std::size_t drafted) {
    model_.rewind(committed_);
    auto best = model_.evaluate(batch);
    best.erase(best.begin(), best.end() - static_cast<std::ptrdiff_t>(drafted + 1));  // from the anchor's row on
    return best;
  }
  void commit(std::size_t keep) {
    committed_ += keep;
    model_.rewind(committed_);
  }

 private:
  Model model_;
  std::size_t committed_ = 0;
};
// [/sketch]

}  // namespace

int main() {
  return toy::check([](reprise::TokenSpan prompt) { return Engine(Model(), prompt); });
}
