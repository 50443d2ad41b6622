// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

/// \file The passes that check_verifier() runs, and their readable descriptions.
namespace reprise::testing::detail {

/// One unusual pass, run when `position` tokens have been decoded.
struct Step {
  std::size_t position = 0;
  std::size_t right = 0;         ///< drafted tokens that agree with plain decoding
  std::size_t wrong = 0;         ///< drafted tokens after the right ones; the first of these disagrees
  std::size_t take = unlimited;  ///< commit at most this many tokens and read no more picks
  bool twice = false;            ///< first run the pass once without a commit
  bool fail = false;             ///< first make the pass fail once
  bool refuse = false;           ///< first read one pick and commit nothing, as if a stop predicate refused it

  std::size_t siblings = 0;  ///< number of wrong siblings of each right token, and of wrong tokens after the last one
  std::size_t tail = 0;      ///< tokens after each sibling, equal to those after the right token
  std::uint64_t order = 0;   ///< tree row order. 0: right path first; 1: right token last at each depth; else: mixed
  bool tree = false;         ///< use verify_tree() and commit_rows(), even for chains
  bool drop = false;         ///< run and read the pass without a commit, then decode plainly instead
  bool walk = false;         ///< use verify_and_walk()
  bool save = false;         ///< call snapshot() first, even without a draft
  bool ask = false;          ///< call allowed() first
  bool reveal = false;       ///< read the candidates of all rows before the commit
  bool weigh = false;        ///< read probabilities instead of picks
};

/// The draft of a step: the tokens that the engine receives, and the right ones among them.
struct ProbeDraft {
  std::vector<Token> tokens;
  std::vector<NodeIndex> parents;
  std::vector<std::size_t> path;  ///< the drafted rows that hold right tokens, from the anchor's child on
};

/// The calls that begin and end a pass.
struct ProbeCall {
  const char* verify = "verify";
  bool shows_parents = false;
  bool saves = false;
  std::string end;  ///< the call that ends the pass, for example "commit(2)"
};

template <class T>
std::string listed(std::span<const T> values) {
  std::string text = "{";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += ' ';
    text += std::to_string(values[i]);
  }
  text += '}';
  return text;
}

/// The passes of a run, as readable text.
class Trace {
 public:
  void add_plain() {
    ++plain_;
    const std::string times = std::to_string(plain_) + (plain_ == 1 ? " plain pass" : " plain passes");
    if (plain_ == 1) separate();
    text_.replace(last_, std::string::npos, times);
  }
  void add(const ProbeCall& call, TokenSpan batch, const ProbeDraft& draft) {
    plain_ = 0;
    separate();
    if (call.saves) text_ += "snapshot(), ";
    text_ += std::string(call.verify) + '(' + listed(batch) + ", " + std::to_string(draft.tokens.size());
    if (call.shows_parents) text_ += ", parents " + listed(std::span<const NodeIndex>(draft.parents));
    text_ += ')';
    if (!call.end.empty()) text_ += " and " + call.end;
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void separate() {
    if (!text_.empty()) text_ += ", ";
    last_ = text_.size();
  }

  std::string text_;
  std::size_t last_ = 0;
  std::size_t plain_ = 0;
};

/// The first difference from plain decoding.
struct Difference {
  std::string message;
  bool near_tie = false;
};

}  // namespace reprise::testing::detail

namespace reprise::testing {

/// The `fail_next` argument of callers that cannot make their engine fail.
struct NeverFail {};

}  // namespace reprise::testing
