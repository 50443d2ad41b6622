// SPDX-License-Identifier: Apache-2.0
// An engine whose model folds the whole text into one state (recurrent and hybrid models), so no row can be rolled
// back. It saves its state before a pass with a draft and restores it if a drafted token was rejected.
#include <cstddef>
#include <vector>

#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "toy.hpp"

namespace {

/// The state of such a model: its size does not depend on the length of the text.
struct State {
  unsigned folded = 1;

  reprise::Token step(reprise::Token token) {
    folded = folded * 2654435761U + static_cast<unsigned>(token) + 1;
    return static_cast<reprise::Token>((folded >> 16) % 7);
  }
};

// [sketch]
class Engine {
 public:
  explicit Engine(reprise::TokenSpan prompt) {
    for (const reprise::Token token : prompt.first(prompt.size() - 1)) static_cast<void>(state_.step(token));
  }

  void snapshot() {
    undo_void_pass();
    saved_ = state_;  // on a device: a copy on the same stream, into a second buffer
    has_saved_ = true;
  }
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    if (open_) undo_void_pass();
    picks_.clear();
    for (std::size_t row = 0; row < batch.size(); ++row) {
      const reprise::Token pick = state_.step(batch[row]);
      if (row + drafted + 1 >= batch.size()) picks_.push_back(pick);
    }
    open_ = true;
    return picks_;
  }
  void commit(std::size_t /*keep*/) {  // called where all rows stay; restore() otherwise
    open_ = false;
    has_saved_ = false;
  }
  void restore(std::size_t /*committed*/) {  // the accepted tokens are pending now: they come again
    state_ = saved_;
    open_ = false;
    has_saved_ = false;
  }
  [[nodiscard]] reprise::Capabilities capabilities() const { return {.rollback = reprise::Rollback::snapshot}; }

 private:
  /// V5: the pass before was never committed.
  void undo_void_pass() {
    if (open_ && has_saved_) state_ = saved_;
    open_ = false;
  }

  State state_;
  State saved_;
  std::vector<reprise::Token> picks_;
  bool open_ = false;
  bool has_saved_ = false;
};
// [/sketch]

static_assert(reprise::CheckpointVerifier<Engine>);

}  // namespace

int main() {
  return toy::check([](reprise::TokenSpan prompt) { return Engine(prompt); });
}
