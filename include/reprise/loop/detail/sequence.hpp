// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The committed state of a session: tokens, the number of tokens in the engine's cache, the start of the output,
/// finish reason and statistics. It knows nothing of drafts. Refused calls change nothing.
///
/// Memory: 4 bytes per token. Threads: as for the session.
class Sequence {
 public:
  [[nodiscard]] static Error no_memory() { return {ErrorCode::out_of_memory, "out of memory; nothing was changed"}; }
  [[nodiscard]] static Error not_begun() {
    return {ErrorCode::not_begun, "no sequence: call begin() with the prompt first"};
  }
  [[nodiscard]] static Error too_many_pending(std::size_t pending, std::size_t rows) {
    return {ErrorCode::too_many_pending, "more pending tokens than a pass has rows: prefill all but the last few",
            pending, rows};
  }
  [[nodiscard]] static Error replay_not_allowed(std::size_t pending) {
    return {ErrorCode::too_many_pending,
            "the loss budget does not allow a fork to run its pending tokens again: run a pass without a draft, "
            "plan(0), before fork()",
            pending, 1};
  }

  /// Checks the arguments of begin(). Returns an error if begin() must refuse them.
  [[nodiscard]] static Result<void> check_begin(TokenSpan context, const Capabilities& capabilities,
                                                std::optional<std::size_t> cached) {
    if (context.empty())
      return Error{ErrorCode::empty_context, "the context is empty: begin with at least one token (BOS will do)"};
    if (capabilities.rollback == Rollback::none)
      return Error{ErrorCode::invalid_argument,
                   "the engine cannot roll back (Rollback::none): let it drop the last rows of a pass (trim), keep a "
                   "state for each row (per_row), or save its state and put it back (snapshot, CheckpointVerifier)"};
    if (capabilities.max_rows == 0)
      return Error{ErrorCode::invalid_argument, "Capabilities::max_rows is 0: a pass needs at least the anchor's row"};
    if (context.size() > capabilities.max_context)
      return Error{ErrorCode::context_too_long,
                   "the context is longer than Capabilities::max_context: shorten the prompt", context.size(),
                   capabilities.max_context};
    return check_cached(context.size(), cached.value_or(context.size() - 1), capabilities);
  }
  /// Starts a new sequence. Precondition: check_begin() has passed. `context` may be part of the current context.
  /// Returns false if memory runs out.
  [[nodiscard]] bool begin(TokenSpan context, const Capabilities& capabilities, std::optional<std::size_t> cached) {
    const std::size_t room = std::max(context.size() + headroom, reserved_);
    if (tokens_.capacity() < room) {
      Buffer<Token> fresh;
      if (!fresh.reserve(room)) return false;
      static_cast<void>(fresh.append(context));
      tokens_.swap(fresh);
    } else {
      tokens_.clear();
      static_cast<void>(tokens_.append(context));
    }
    capabilities_ = capabilities;
    restart(cached);
    return true;
  }
  /// Like begin(), but keeps capabilities and statistics, and moves the previous context to `old`. Returns false if
  /// memory runs out.
  [[nodiscard]] bool rebase(TokenSpan context, std::optional<std::size_t> cached, Buffer<Token>& old) {
    Buffer<Token> fresh;
    if (!fresh.reserve(std::max(context.size() + headroom, reserved_))) return false;
    static_cast<void>(fresh.append(context));
    tokens_.swap(fresh);
    old.swap(fresh);
    const Statistics counted = statistics_;
    restart(cached);
    statistics_ = counted;
    return true;
  }
  /// Allocates memory for `max_context` tokens, in this and all further sequences. Returns false if memory runs out.
  [[nodiscard]] bool reserve(std::size_t max_context) noexcept {
    if (!tokens_.reserve(max_context)) return false;
    reserved_ = max_context;
    return true;
  }
  /// Allocates memory for `extra` more tokens. Returns false if memory runs out.
  [[nodiscard]] bool reserve_extra(std::size_t extra) noexcept { return tokens_.reserve_extra(extra); }

  Result<void> append(TokenSpan tokens, std::optional<std::size_t> cached) {
    const std::size_t size = tokens_.size() + tokens.size();
    if (size > capabilities_.max_context)
      return Error{ErrorCode::context_too_long,
                   "the context would be longer than Capabilities::max_context: append fewer tokens", size,
                   capabilities_.max_context};
    if (auto checked = check_cached(size, cached.value_or(size - 1), capabilities_); !checked) return checked;
    if (!tokens_.append(tokens)) return no_memory();
    restart(cached);
    return {};
  }
  Result<void> truncate(std::size_t size) {
    if (size == 0 || size > tokens_.size())
      return Error{ErrorCode::size_out_of_range,
                   "truncate() to a size out of range: keep between 1 token and the whole context", size,
                   tokens_.size()};
    finish_ = FinishReason::none;
    trim_ = 0;
    const std::size_t kept_output = size > output_begin_ ? size - output_begin_ : 0;
    statistics_.tokens -= std::min<std::uint64_t>(statistics_.tokens, output_size() - kept_output);
    output_begin_ = std::min(output_begin_, size);
    taken_ = std::min(taken_, kept_output);
    tokens_.truncate(size);
    cached_ = std::min(cached_, size - 1);
    return {};
  }
  Result<void> set_cached(std::size_t cached) {
    if (auto checked = check_cached(tokens_.size(), cached, capabilities_); !checked) return checked;
    cached_ = cached;
    return {};
  }
  /// Copies the state of `other`. Returns false if memory runs out.
  [[nodiscard]] bool copy(const Sequence& other) noexcept {
    if (!tokens_.reserve(std::max(other.tokens_.size() + headroom, other.reserved_))) return false;
    static_cast<void>(tokens_.assign(other.tokens_));
    capabilities_ = other.capabilities_;
    statistics_ = other.statistics_;
    reserved_ = other.reserved_;
    cached_ = other.cached_;
    output_begin_ = other.output_begin_;
    taken_ = other.taken_;
    trim_ = other.trim_;
    finish_ = other.finish_;
    return true;
  }

  /// Appends the committed tokens of a pass. `keep`: number of its rows that stay in the cache. Precondition: memory
  /// for the tokens is reserved.
  void commit(std::span<const CommittedToken> tokens, const Walk& walked, std::size_t keep) noexcept {
    cached_ += keep;
    for (const CommittedToken& committed : tokens) tokens_.push_reserved(committed.token);
    finish_ = walked.finish;
    trim_ = walked.trim;
  }
  /// Sets the finish reason if a limit is reached. Clears the finish reason if it was a limit that no longer applies.
  void apply(const Limits& limits) noexcept {
    if (at_limit()) finish_ = FinishReason::none;
    if (finish_ == FinishReason::none && output_size() >= limits.max_tokens) finish_ = FinishReason::max_tokens;
    if (finish_ == FinishReason::none && tokens_.size() >= max_context(limits)) finish_ = FinishReason::context_full;
  }
  void finish() noexcept {
    if (finish_ == FinishReason::none || at_limit()) finish_ = FinishReason::caller;
  }

  /// Returns true after the first begin(). From then on, the context has at least one token.
  [[nodiscard]] bool begun() const noexcept { return !tokens_.empty(); }
  [[nodiscard]] FinishReason finish_reason() const noexcept { return finish_; }
  [[nodiscard]] TokenSpan context() const noexcept { return {tokens_.data(), tokens_.size()}; }
  [[nodiscard]] std::size_t cached() const noexcept { return cached_; }
  [[nodiscard]] TokenSpan pending() const noexcept { return context().subspan(cached_); }
  /// Returns the number of output tokens, stop tokens included.
  [[nodiscard]] std::size_t output_size() const noexcept { return tokens_.size() - output_begin_; }
  [[nodiscard]] TokenSpan output() const noexcept { return context().subspan(output_begin_, output_size() - trim_); }
  /// Returns the output, stop tokens included, followed by the rest of the reserved memory.
  [[nodiscard]] std::span<Token> output_and_room() noexcept {
    return {tokens_.data() + output_begin_, tokens_.capacity() - output_begin_};
  }
  [[nodiscard]] TokenSpan settled_output(const Limits& limits) const noexcept {
    const TokenSpan all = output();
    return finish_ != FinishReason::none ? all : all.first(all.size() - held_back(limits, all));
  }
  [[nodiscard]] TokenSpan take_settled(const Limits& limits) noexcept {
    const TokenSpan settled = settled_output(limits);
    const TokenSpan fresh = settled.subspan(std::min(taken_, settled.size()));
    taken_ = std::max(taken_, settled.size());
    return fresh;
  }
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }
  [[nodiscard]] std::size_t max_context(const Limits& limits) const noexcept {
    return std::min(limits.max_context, capabilities_.max_context);
  }
  /// Return the number of draft tokens that fit in addition to the bonus token: into the context (context_left) or into
  /// the requested output (tokens_left). Return 0 if a limit was lowered below the current size during the round.
  [[nodiscard]] std::size_t context_left(const Limits& limits) const noexcept {
    return left(max_context(limits), tokens_.size());
  }
  [[nodiscard]] std::size_t tokens_left(const Limits& limits) const noexcept {
    return left(limits.max_tokens, output_size());
  }
  [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }
  [[nodiscard]] Statistics& statistics() noexcept { return statistics_; }
  [[nodiscard]] const Statistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return tokens_.memory_bytes(); }

 private:
  static constexpr std::size_t headroom = 64;  // so that the first pass need not grow the context

  static Result<void> check_cached(std::size_t size, std::size_t cached, const Capabilities& capabilities) {
    if (cached >= size)
      return Error{ErrorCode::cached_out_of_range,
                   "at most all tokens but the last can be in the cache: the last is the anchor of the next pass",
                   cached, size};
    if (size - cached > capabilities.max_rows) return too_many_pending(size - cached, capabilities.max_rows);
    return {};
  }
  static std::size_t left(std::size_t limit, std::size_t used) noexcept { return limit > used ? limit - used - 1 : 0; }
  /// True if a limit ended generation; the caller may raise that limit.
  [[nodiscard]] bool at_limit() const noexcept {
    return finish_ == FinishReason::max_tokens || finish_ == FinishReason::context_full;
  }
  void restart(std::optional<std::size_t> cached) noexcept {
    cached_ = cached.value_or(tokens_.size() - 1);
    output_begin_ = tokens_.size();
    taken_ = 0;
    trim_ = 0;
    finish_ = FinishReason::none;
    statistics_ = {};
  }

  Capabilities capabilities_;
  Statistics statistics_;
  Buffer<Token> tokens_;
  std::size_t reserved_ = 0;
  std::size_t cached_ = 0;
  std::size_t output_begin_ = 0;
  std::size_t taken_ = 0;  // output tokens that take_settled() has returned
  std::size_t trim_ = 0;
  FinishReason finish_ = FinishReason::none;
};

}}}  // namespace reprise::detail
