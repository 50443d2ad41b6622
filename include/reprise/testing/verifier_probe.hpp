// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/control/control.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/round.hpp"

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
};

/// The passes of a run, for people.
class Trace {
 public:
  void add(bool plain, TokenSpan batch, std::size_t drafted, std::size_t keep) {
    plain_ = plain ? plain_ + 1 : 0;
    const std::string times = std::to_string(plain_) + (plain_ == 1 ? " plain pass" : " plain passes");
    if (plain_ > 1) {
      text_.replace(last_, std::string::npos, times);
      return;
    }
    if (!text_.empty()) text_ += ", ";
    last_ = text_.size();
    if (plain) {
      text_ += times;
      return;
    }
    text_ += "verify({";
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (i != 0) text_ += ' ';
      text_ += std::to_string(batch[i]);
    }
    text_ += "}, " + std::to_string(drafted) + ") and commit(" + std::to_string(keep) + ")";
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::size_t last_ = 0;
  std::size_t plain_ = 0;
};

/// Where an engine parted from plain decoding.
struct Difference {
  std::string message;
  bool near_tie = false;
};

/// Of those who cannot make their engine fail.
struct NeverFail {};

/// Runs single passes of an engine and holds each pick against what plain decoding gave.
template <class Engine, class Fail>
class VerifierProbe {
 public:
  /// `tokens`: to decode; `epsilon`: see VerifierCheck.
  VerifierProbe(TokenSpan prompt, std::size_t tokens, double epsilon, Fail& fail)
      : text_(prompt.begin(), prompt.end()), prompt_(prompt.size()), tokens_(tokens), epsilon_(epsilon), fail_(fail) {}

  /// Learns the text from an engine that has the prompt: one token a pass.
  std::optional<Difference> decode_plainly(Engine& engine) {
    for (std::size_t p = 0; p < tokens_; ++p) {
      const Token anchor = text_.back();
      auto&& answer = engine.verify(TokenSpan(&anchor, 1), 0);
      if (!succeeded(answer)) return Difference{"verify() failed at token " + std::to_string(p)};
      const auto token = static_cast<Token>(unwrapped(answer)[0]);
      if constexpr (MarginVerifier<Engine>) margins_.push_back(static_cast<double>(engine.margin(0)));
      if (!commit(engine, 1)) return Difference{"commit(1) failed at token " + std::to_string(p)};
      text_.push_back(token);
      ++checks_;
    }
    return {};
  }

  /// One pass at `p` decoded tokens; advances it. `trace` gathers what was run.
  std::optional<Difference> pass(Engine& engine, const Step& step, std::size_t pending, std::size_t& p, Trace& trace) {
    std::size_t drafted = step.right + step.wrong;
    if constexpr (DescribedVerifier<Engine>) {
      const Capabilities can = engine.capabilities();
      Room room(drafted);
      room.bound(std::min({can.max_depth, can.max_rollback, can.max_rows - std::min(can.max_rows, pending)}),
                 Cut::depth);
      room.bound(can.max_context - std::min(can.max_context, prompt_ + p + 1), Cut::context);
      drafted = widest({PassShape{1, pending, 0}, unlimited, can.allowed_widths.values()}, room.nodes());
    }
    // What follows the text is not known, so a draft ends before it does.
    const std::size_t right = std::min({step.right, drafted, tokens_ - p - 1});
    const std::size_t anchor = prompt_ + p;
    std::vector<Token> batch(text_.begin() + static_cast<std::ptrdiff_t>(anchor - pending),
                             text_.begin() + static_cast<std::ptrdiff_t>(anchor + right));
    for (std::size_t i = right; i < drafted; ++i) batch.push_back(unlike(anchor + i));
    const std::size_t take = std::max<std::size_t>(1, std::min({step.take, right + 1, tokens_ - p}));
    if (step.refuse) {
      trace.add(false, batch, drafted, pending - 1);
      if (auto difference = read(engine, batch, drafted, 1, p, trace.text())) return difference;
      if (!commit(engine, pending - 1)) return Difference{"commit() failed after " + trace.text()};
      batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(pending - 1));
      pending = 1;
    }
    trace.add(drafted == 0 && pending == 1 && !step.twice && !step.fail, batch, drafted, pending + take - 1);
    if (step.fail) provoke(engine, batch, drafted);
    if (step.twice)
      if (auto difference = read(engine, batch, drafted, take, p, trace.text() + " (the void run)")) return difference;
    if (auto difference = read(engine, batch, drafted, take, p, trace.text())) return difference;
    if (!commit(engine, pending + take - 1)) return Difference{"commit() failed after " + trace.text()};
    p += take;
    return {};
  }

  /// Comparisons made since the last call.
  std::size_t take_checks() noexcept { return std::exchange(checks_, 0); }
  [[nodiscard]] bool fits(const Engine& engine, std::size_t rows) const {
    if constexpr (DescribedVerifier<Engine>)
      return rows <= Capabilities(engine.capabilities()).max_rows;
    else
      return true;
  }

 private:
  std::optional<Difference> read(Engine& engine, TokenSpan batch, std::size_t drafted, std::size_t take, std::size_t p,
                                 const std::string& trace) {
    auto&& answer = engine.verify(batch, drafted);
    if (!succeeded(answer)) return Difference{"verify() failed in " + trace};
    auto&& picks = unwrapped(answer);
    for (std::size_t i = 0; i < take; ++i) {
      if constexpr (requires { picks.size(); })
        if (i >= picks.size()) return Difference{"the span of picks ends before the first disagreement in " + trace};
      const auto got = static_cast<Token>(picks[i]);
      const Token wanted = text_[prompt_ + p + i];
      ++checks_;
      if (got == wanted) continue;
      double margin = margins_.empty() ? 0 : margins_[p + i];
      if constexpr (MarginVerifier<Engine>) margin = std::min(margin, static_cast<double>(engine.margin(i)));
      std::string message = "token " + std::to_string(p + i) + " is " + std::to_string(got) +
                            ", plain decoding gives " + std::to_string(wanted) + ": picks[" + std::to_string(i) +
                            "] of " + trace;
      if (MarginVerifier<Engine>) message += "; margin " + std::to_string(margin);
      return Difference{std::move(message), MarginVerifier<Engine> && margin <= epsilon_};
    }
    return {};
  }
  void provoke(Engine& engine, TokenSpan batch, std::size_t drafted) {
    if constexpr (!std::is_same_v<Fail, NeverFail>) {
      fail_(engine);
#if defined(__cpp_exceptions)
      try {
        static_cast<void>(engine.verify(batch, drafted));
      } catch (...) {
      }
#else
      static_cast<void>(engine.verify(batch, drafted));
#endif
    }
  }

  static bool commit(Engine& engine, std::size_t keep) {
    if constexpr (is_result<std::remove_cvref_t<decltype(engine.commit(keep))>>)
      return engine.commit(keep).has_value();
    else
      return engine.commit(keep), true;
  }
  template <class T>
  static bool succeeded(const T& answer) {
    if constexpr (is_result<T>)
      return answer.has_value();
    else
      return true;
  }
  template <class T>
  static decltype(auto) unwrapped(T& answer) {
    if constexpr (is_result<std::remove_cv_t<T>>)
      return *answer;
    else
      return (answer);
  }
  /// A token of the text that plain decoding does not give at `at`.
  [[nodiscard]] Token unlike(std::size_t at) const {
    const Token right = at < text_.size() ? text_[at] : text_.back();
    for (std::size_t i = 0; i < text_.size(); ++i)
      if (const Token token = text_[(at + i) % text_.size()]; token != right) return token;
    return right == 0 ? 1 : 0;
  }

  std::vector<Token> text_;  // the prompt, and what plain decoding gives
  std::vector<double> margins_;
  std::size_t prompt_;
  std::size_t tokens_;
  double epsilon_;
  Fail& fail_;
  std::size_t checks_ = 0;
};

}  // namespace reprise::testing::detail
