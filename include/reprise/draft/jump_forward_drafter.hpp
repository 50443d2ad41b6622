// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/strategy.hpp"

namespace reprise::inline v0 {

/// Knows which tokens there is no choice about: a grammar engine, or a handle to one. What a compiler cannot check:
///
///  F1  forced(out) writes the tokens that have to come next, after the committed context, as far as nothing else is
///      allowed and as they fit; the answer is how many. It changes nothing, does not allocate and does not throw.
///  F2  Either the caller keeps the source in step with what is committed, or the source has begin(context),
///      observe(context, fresh, origin) and truncate(context, size), as a DraftStrategy has, and follows by itself. It
///      may then also have the optional ones: rebase(before, context), reserve(max_context), memory_bytes().
///  F3  Copies of a handle share what it points to: to fork a sequence, its grammar has to be forked too.
template <class S>
concept JumpForwardSource = std::copyable<S> && requires(S& s, std::span<Token> out) {
  { s.forced(out) } -> std::convertible_to<std::size_t>;
};

namespace archetype {

/// The least that models JumpForwardSource: nothing is forced.
struct Forced {
  std::size_t forced(std::span<Token>) { return 0; }
};
static_assert(JumpForwardSource<Forced>);

}  // namespace archetype

/// Drafts tokens that a grammar leaves no choice about (jump-forward decoding: SGLang, Zheng et al. 2024), with
/// probability one. Combined with others by UnionDrafter, they come first, and what others foresaw goes on behind them.
///
/// Why they are drafted instead of committed at once, as pending tokens that nobody picked:
///  - Plain decoding picks them too. A sampler's random stream advances once for each committed token, penalties and
///    mirostat learn from each, logprobs are asked of each; skipping picks would give a seeded run other tokens later.
///  - What is forced is text, and text has more than one tokenisation. Which of them the model would have picked,
///    above all at the end of the run, only the target can say; a draft that guessed wrong costs its rows, never the
///    output.
///  - It saves nothing more: a forced token takes a row of a pass either way, pending or drafted.
/// An engine that wants them pending all the same (it checks no drafts, or has no room for the rows of other drafts)
/// appends them to the session and to the state of its sampler itself, and its output is then its own.
///
/// Cost: the source's. Limit: 64 tokens in a draft. Threads: as the source; copies share what it points to.
template <JumpForwardSource Source>
class JumpForwardDrafter {
  // A source with one of these would be skipped in silence, and fall out of step.
  static_assert(
      !requires(Source & s, TokenSpan tokens, Origin origin) { s.observe(tokens, origin); } &&
          !requires(Source & s, std::size_t size) { s.truncate(size); } &&
          !requires(Source & s, TokenSpan tokens) { s.rebase(tokens); },
      "a forced source follows the text with the functions of a strategy: observe(context, fresh, origin), "
      "truncate(context, size), rebase(before, context)");

 public:
  static constexpr std::size_t max_tokens = 64;

  explicit JumpForwardDrafter(Source source) : source_(std::move(source)) {}

  void begin(TokenSpan context) {
    if constexpr (requires { source_.begin(context); }) source_.begin(context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    if constexpr (requires { source_.observe(context, fresh, origin); }) source_.observe(context, fresh, origin);
  }
  void truncate(TokenSpan context, std::size_t size) {
    if constexpr (requires { source_.truncate(context, size); }) source_.truncate(context, size);
  }
  void rebase(TokenSpan before, TokenSpan context) {
    if constexpr (requires { source_.rebase(before, context); })
      source_.rebase(before, context);
    else
      begin(context);
  }
  void reserve(std::size_t max_context) {
    if constexpr (requires { source_.reserve(max_context); }) source_.reserve(max_context);
  }
  void feedback(TokenSpan, const Outcome&) noexcept {}

  void propose(TokenSpan, Draft& draft) {
    // A grammar may work for each token: it is not asked for more than the draft takes.
    const std::size_t most = std::min({draft.budget().max_nodes, draft.budget().max_depth, max_tokens});
    if (most == 0) return;
    std::array<Token, max_tokens> tokens{};
    const std::span<Token> out = std::span(tokens).first(most);
    const std::size_t count = std::min<std::size_t>(source_.forced(out), most);
    for (const Token token : out.first(count)) draft.extend({.token = token, .source = DraftSource::jump_forward});
  }

  [[nodiscard]] std::size_t memory_bytes() const {
    if constexpr (requires { source_.memory_bytes(); }) return source_.memory_bytes();
    return 0;
  }
  [[nodiscard]] Source& source() noexcept { return source_; }
  [[nodiscard]] const Source& source() const noexcept { return source_; }

 private:
  Source source_;
};
static_assert(DraftStrategy<JumpForwardDrafter<archetype::Forced>>);

}  // namespace reprise
