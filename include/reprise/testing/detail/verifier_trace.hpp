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

/// \file What check_verifier() does to an engine, and how it tells people.
namespace reprise::testing::detail {

/// One pass that is out of the ordinary, made when `position` tokens have been decoded.
struct Step {
  std::size_t position = 0;
  std::size_t right = 0;         ///< drafted tokens that plain decoding gives
  std::size_t wrong = 0;         ///< drafted tokens behind them, the first of which it does not
  std::size_t take = unlimited;  ///< commit at most that many tokens and read no more picks
  bool twice = false;            ///< run it once without a commit before
  bool fail = false;             ///< make it fail before
  bool refuse = false;           ///< read one pick first and commit nothing of it, as a stop predicate may

  std::size_t siblings = 0;  ///< wrong tokens beside each right one, and behind the last
  std::size_t tail = 0;      ///< tokens behind each of them: those that would be right behind the right one
  std::uint64_t order = 0;   ///< of the rows of a tree: 0, the right path first; 1, last at each depth; else mixed
  bool tree = false;         ///< by verify_tree() and commit_rows(), also where the draft is a chain
  bool drop = false;         ///< run it and read it, then decode plainly instead
  bool walk = false;         ///< by verify_and_walk()
  bool save = false;         ///< snapshot() before it, also without a draft
  bool ask = false;          ///< ask what is allowed before it
  bool reveal = false;       ///< read the candidates of all rows before the commit
  bool weigh = false;        ///< read probabilities in place of picks
};

/// The draft of a step: what the engine is given, and which of it is right.
struct ProbeDraft {
  std::vector<Token> tokens;
  std::vector<NodeIndex> parents;
  std::vector<std::size_t> path;  ///< the drafted rows that hold right tokens, from the anchor's child on
};

/// How a pass is asked for and ended.
struct ProbeCall {
  const char* verify = "verify";
  bool shows_parents = false;
  bool saves = false;
  std::string end;  ///< "commit(2)"
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

/// The passes of a run, for people.
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

/// Where an engine parted from plain decoding.
struct Difference {
  std::string message;
  bool near_tie = false;
};

}  // namespace reprise::testing::detail

namespace reprise::testing {

/// The argument of callers that cannot make their engine fail.
struct NeverFail {};

}  // namespace reprise::testing
