// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/c/detail/arguments.hpp"
#include "reprise/c/detail/errors.hpp"
#include "reprise/c/detail/handles.hpp"
#include "reprise/c/reprise.h"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"

/// \file The rounds of followers and sessions in the C interface.
namespace reprise::inline v0::c {

[[nodiscard]] inline Result<TokenSpan> draft(reprise_follower& handle, const reprise_token* ids, std::size_t count,
                                             std::size_t most, std::int64_t now_ns,
                                             std::uint64_t conversation) noexcept {
  const auto tokens = array_of(ids, count);
  if (!tokens) return tokens.error();
  if (now_ns < 0) return refused("now_ns is negative: pass 0 if the time is unknown");
  return handle.follower.draft(*tokens, most,
                               now_ns == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(now_ns)),
                               conversation == 0 ? std::nullopt : std::optional(conversation));
}

/// Sets the limits of the next round. Changes nothing if there is an error.
[[nodiscard]] inline Result<void> set_limits(reprise_session& handle, const reprise_limits* in,
                                             std::size_t most) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  const auto eos = array_of(read->eos, read->eos_count);
  if (!eos) return eos.error();
  if (!handle.eos.assign(*eos))
    return Error{ErrorCode::out_of_memory, "there is no memory for reprise_limits.eos: free some", eos->size(), 0};
  handle.limits.max_tokens = limit_of(read->max_tokens);
  handle.limits.max_context = limit_of(read->max_context);
  handle.limits.draft.max_nodes = most;
  return {};
}

[[nodiscard]] inline Result<Pass> plan(reprise_session& handle, const reprise_limits* limits,
                                       std::size_t most) noexcept {
  if (auto set = set_limits(handle, limits, most); !set) return set.error();
  handle.open.reset();
  static_cast<void>(handle.session.propose(handle.limits));
  auto pass = handle.session.plan();
  if (!pass) return pass;
  reprise_session::Open open{pass->ticket, pass->drafted, true};
  for (std::size_t i = 0; i < pass->parents.size(); ++i)
    open.chain = open.chain && pass->parents[i] == static_cast<NodeIndex>(i) - 1;
  handle.open = open;
  return pass;
}

[[nodiscard]] inline Error not_planned() noexcept {
  return {ErrorCode::not_proposed, "there is no open pass: call reprise_session_plan() first"};
}

[[nodiscard]] inline Result<Decision> commit(reprise_session& handle, const reprise_token* picks, std::size_t count,
                                             std::int64_t pass_ns) noexcept {
  const auto given = array_of(picks, count);
  if (!given) return given.error();
  if (pass_ns < 0) return refused("pass_ns is negative: pass 0 if the time is unknown");
  if (!handle.open) return not_planned();
  const std::size_t rows = handle.open->drafted + 1;
  if (count > rows || (count < rows && !handle.open->chain))
    return Error{ErrorCode::bad_picks,
                 "the number of picks is wrong: pass one for the anchor and one for each drafted row, and none for "
                 "other pending rows",
                 count, rows};
  const auto ends = [&](TokenSpan, Token next) noexcept {
    const bool found = std::find(handle.eos.begin(), handle.eos.end(), next) != handle.eos.end();
    return found ? StopDecision::stop_after : StopDecision::proceed;
  };
  auto decision = handle.session.resolve(handle.open->ticket, *given, ends);
  if (!decision) return decision;
  auto done = handle.session.commit(handle.open->ticket,
                                    pass_ns == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(pass_ns)));
  if (!done) return done.error();
  handle.open.reset();
  return decision;
}

/// Returns the finish reason of a session. The predicate of commit() looks for eos and for nothing else.
[[nodiscard]] inline std::int32_t finish_of(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::predicate:
      return REPRISE_FINISH_EOS;
    case FinishReason::max_tokens:
      return REPRISE_FINISH_MAX_TOKENS;
    case FinishReason::context_full:
      return REPRISE_FINISH_CONTEXT_FULL;
    default:
      return REPRISE_FINISH_NONE;
  }
}

}  // namespace reprise
