// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/strategy.hpp"

namespace reprise { inline namespace v0 {

/// A source of forced tokens, which have no alternative: a grammar engine, or a handle to one. Requirements that a
/// compiler cannot check:
///
///  F1  forced(out) writes the tokens that must follow the committed context, and returns their number. It stops where
///      more than one token is allowed, or when `out` is full. It changes nothing, does not allocate and does not
///      throw.
///  F2  Either the caller keeps the source in step with the committed tokens, or the source follows them itself. A
///      source that follows them has the functions of a DraftStrategy: begin(context), observe(context, fresh, origin)
///      and truncate(context, size). It may also have rebase(before, context), reserve(max_context) and memory_bytes().
///      Without rebase(), begin() is called instead.
///  F3  Copies of a handle share the object that it points to, so a fork of the sequence needs a fork of the grammar.
template <class S>
concept JumpForwardSource = std::copyable<S> && requires(S& s, std::span<Token> out) {
  { s.forced(out) } -> std::convertible_to<std::size_t>;
};

/// Drafts tokens to which a grammar leaves no alternative, with probability one (jump-forward decoding: SGLang, Zheng
/// et al. 2024). In a UnionDrafter they come first; drafts of other members that agree with them continue after them.
///
/// The tokens are drafted instead of being committed as pending tokens that the target never picked, for three reasons:
///
///  - Plain decoding picks them too. For each committed token, the sampler advances its random stream and updates
///    penalties and mirostat, and the user may request logprobs. Without these picks, a seeded run would give different
///    tokens later.
///  - A grammar forces text, and a text has more than one tokenisation. Only the target knows which tokenisation it
///    would pick, above all at the end of the forced text. A wrong guess costs rows, but does not change the output.
///  - Pending tokens would save nothing: a forced token takes one row of a pass either way.
///
/// An engine may still prefer pending tokens, because it verifies no drafts or needs the rows for other drafts. In that
/// case the engine appends the tokens to the session and to its sampler state, and the output may differ from plain
/// decoding.
///
/// Cost: that of the source. Limit: 64 tokens per draft. Threads: as for the source; copies of a handle share its
/// object.
template <JumpForwardSource Source>
class JumpForwardDrafter {
  // A function with one of these signatures would never be called, and the source would silently get out of step.
  static_assert(
      !requires(Source & s, TokenSpan tokens, Origin origin) { s.observe(tokens, origin); } &&
          !requires(Source & s, std::size_t size) { s.truncate(size); } &&
          !requires(Source & s, TokenSpan tokens) { s.rebase(tokens); },
      "a forced source follows the text with the functions of a strategy: observe(context, fresh, origin), "
      "truncate(context, size), rebase(before, context)");

 public:
  static constexpr std::size_t max_tokens = most_draft_nodes;

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
    // A grammar may do work for each token, so no more tokens are requested than the draft can hold.
    const std::size_t most = std::min({draft.budget().max_nodes, draft.budget().max_depth, max_tokens});
    if (most == 0) return;
    std::array<Token, max_tokens> tokens{};
    const std::span<Token> out = std::span(tokens).first(most);
    const std::size_t count = std::min<std::size_t>(source_.forced(out), most);
    for (const Token token : out.first(count))
      if (!draft.extend({.token = token, .source = DraftSource::jump_forward})) return;
  }

  [[nodiscard]] std::size_t memory_bytes() const {
    if constexpr (requires { source_.memory_bytes(); }) return source_.memory_bytes();
    return 0;
  }
  [[nodiscard]] Source& source() noexcept REPRISE_LIFETIMEBOUND { return source_; }
  [[nodiscard]] const Source& source() const noexcept REPRISE_LIFETIMEBOUND { return source_; }

 private:
  Source source_;
};
}}  // namespace reprise
