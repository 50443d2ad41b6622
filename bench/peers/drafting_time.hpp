// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::bench {

/// A method of drafting that is timed, with its state for one session. It drafts chains.
class Method {
 public:
  virtual ~Method() = default;
  /// Appends a prompt, and the first token of its answer, which no draft can contain.
  virtual void begin_turn(TokenSpan prompt, Token first) = 0;
  /// Returns a draft after all tokens so far. It is valid until the next call.
  virtual TokenSpan propose() = 0;
  /// Appends the result of the pass: the accepted tokens of the draft, then the target's own token. Only at the end of
  /// an answer, `tokens` can lack the target's own token.
  virtual void commit(TokenSpan tokens, std::size_t accepted) = 0;
};

/// A row of the table. `make` returns a method for a new session. Methods that one row has made may share past
/// sessions.
struct MethodRow {
  std::string name;
  std::function<std::unique_ptr<Method>()> make;
};

/// The methods of other systems, run by their own code. Built only if their sources are there; see CMakeLists.txt.
std::vector<MethodRow> arctic_rows();
std::vector<MethodRow> llama_rows();

}  // namespace reprise::bench
